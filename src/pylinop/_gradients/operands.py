"""An operator that a derivative is by: its arrays, and the operator again, of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _core
from .._base import errors
from .._operators.convert import inverse
from . import matrices

__all__ = ["arrays", "filled", "own"]


def arrays(op: Any) -> list[Any]:
    """The arrays of an operator's parameters, each once."""
    found: dict[int, Any] = {}
    _rebuilt(op, lambda a: found.setdefault(id(a), a))
    return list(found.values())


def own(op: Any) -> tuple[Any, list[Any]]:
    """The operator again, of a view of its array in each place, and these; an operand that
    operations take twice, as A @ A.T does, stays one. TypeError where there are none."""
    mine = _rebuilt(op, lambda a: a.view())
    found = arrays(mine)
    if not found:
        raise TypeError(
            f"a gradient by a {type(op).__name__} {op.shape}, which holds no arrays of real or "
            "complex numbers: there is nothing to derive by" + errors.built(op)
        )
    return mine, found


def filled(op: Any, values: Any) -> Any:
    """The operator again, of values in place of what `arrays` gives."""
    held = {id(a): v for a, v in zip(arrays(op), values, strict=True)}
    return _rebuilt(op, lambda a: held[id(a)])


def _rebuilt(op: Any, value: Callable[[Any], Any], shared: dict[int, Any] | None = None) -> Any:
    """An operator of the same kind, or made by the same operations, with a value in place of each
    of its arrays."""
    shared = {} if shared is None else shared
    if op._init is not None:
        return type(op)(*_again(op, matrices.given(op), value, shared))
    stack = [op]
    while stack:
        x = stack[-1]
        below = [y for y in _made(x) if id(y) not in shared] if id(x) not in shared else []
        if below:
            stack += below
            continue
        if id(x) not in shared:
            shared[id(x)] = _AGAIN[x._by](x, *_again(x, x._operands, value, shared))
        stack.pop()
    return shared[id(op)]


def _made(op: Any) -> list[Any]:
    """The operands that operations made."""
    if op._by not in _AGAIN:
        how = (
            f"made by '{op._by}': give the operators" if op._by else "of callables: give the arrays"
        )
        raise NotImplementedError(
            f"a gradient by a {type(op).__name__} {op.shape}, {how} that it is made of"
            + errors.built(op)
        )
    return [x for x in op._operands if isinstance(x, _core.Operator) and x._init is None]


def _again(op: Any, given: Any, value: Callable[[Any], Any], shared: dict[int, Any]) -> list[Any]:
    """What the operator is made of, of other arrays."""
    places = {id(x) for _, x in matrices.parts(op)}

    def again(x: Any) -> Any:
        if type(x) is list:
            return [again(y) for y in x]
        if not isinstance(x, _core.Operator):
            return value(x) if id(x) in places else x
        if op._init is not None:
            return _rebuilt(x, value, shared)
        if id(x) not in shared:
            shared[id(x)] = _rebuilt(x, value, shared)
        return shared[id(x)]

    return [again(x) for x in given]


def _sliced(op: Any, A: Any, steps: Any) -> Any:
    """The slice of another operator, axis by axis."""
    for axis, *how in steps:
        if len(how) == 1:
            key: Any = how[0]
        else:
            start, step, count = how
            stop = start + step * count
            key = start if count < 0 else slice(start, None if stop < 0 else stop, step)
        A = A[(..., key, *(slice(None),) * (1 - axis if axis < 2 else axis))]
    return A


_AGAIN: dict[str, Callable[..., Any]] = {
    "sum": lambda op, a, b: a + b,
    "prod": lambda op, a, b: a @ b,
    "scaled": lambda op, a, c: a * c,
    "view": lambda op, a: (a, a.T, a.conj(), a.H)[op._mode],
    "inverse": lambda op, a: inverse(a),
    "power": lambda op, a, p: a**p,
    "part": lambda op, a: a.imag if op._mode else a.real,
    "sliced": _sliced,
}
