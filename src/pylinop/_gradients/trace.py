"""One call of a function on watched arguments: what derivatives of functions are made from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._base import config, errors
from .._base.checks import is_lazy
from .._lazy.leaves import lazy
from .._lazy.program import evaluate
from .._operators.convert import inverse
from . import matrices, trees
from .watched import release, watched

_Function = Callable[..., Any]


class Trace:
    """One call of a function on watched arguments."""

    def __init__(self, f: _Function, argnums: Any, has_aux: bool, args: Any, kwargs: Any) -> None:
        __tracebackhide__ = True
        self.name = getattr(f, "__name__", type(f).__name__)
        several = isinstance(argnums, (tuple, list))
        self.numbers = [
            _number(k, len(args), self.name) for k in (argnums if several else [argnums])
        ]
        self.parameters: list[Any] = []
        self.structures = []
        held = list(args)
        for k in self.numbers:
            parts: list[Any] = []
            structure = trees.flatten(args[k], parts)
            start = len(self.parameters)
            made = [trees.as_parameter(x, f"{self.name}, argument {k}") for x in parts]
            self.parameters += [
                OfOperator(x) if isinstance(x, _core.Operator) else OfArray(x) for x in made
            ]
            self.structures.append((structure, start))
            held[k] = trees.filled(structure, [p.lazy for p in self.parameters[start:]])
        self.several = several
        try:
            made = f(*held, **kwargs)
        finally:
            for p in self.parameters:
                p.release()
        self.aux = None
        if has_aux:
            made, self.aux = made
        self.value = made

    def number(self) -> Any:
        """The value, which has to be one number."""
        value = self.lazy_value()
        if value.shape != ():
            raise ValueError(
                f"{self.name} gave an array of shape {value.shape}; a gradient is of one real "
                "number: sum it up, or use pl.vjp or pl.jacobian" + errors.built(value)
            )
        if value.dtype.kind == "c":
            raise TypeError(
                f"{self.name} gave a complex number; a gradient is of a real one: take .real or "
                "np.abs" + errors.built(value)
            )
        return value

    def lazy_value(self) -> Any:
        if not is_lazy(self.value):
            raise TypeError(
                f"{self.name} gave a {type(self.value).__name__}, which does not depend on its "
                "arguments as a LazyArray does: the gradient would be lost"
            )
        return self.value

    def wanted(self) -> dict[int, Any]:
        return {id(x): x for p in self.parameters for x in p.wanted()}

    def gathered(self, found: dict[int, Any]) -> list[list[Any]]:
        """For each parameter the LazyArrays of its gradient."""
        return [p.gradient(found) for p in self.parameters]

    def converted(self, arrays: list[Any]) -> list[Any]:
        """Gradients by arrays as they are handed out: numbers as numbers."""
        return [p.finished([a]) for p, a in zip(self.parameters, arrays, strict=True)]

    def shaped(self, values: list[Any]) -> Any:
        """Gradients, one a parameter, as the arguments were nested."""
        made = tuple(
            trees.filled(structure, values[start:]) for structure, start in self.structures
        )
        return made if self.several else made[0]


def _number(k: Any, n: int, name: str) -> int:
    if not hasattr(k, "__index__"):
        raise TypeError(f"argnums={k!r}: the numbers of arguments are integers")
    at = k.__index__() + (n if k < 0 else 0)
    if not 0 <= at < n:
        raise ValueError(f"argnums={k}: {name} was called with {n} arguments")
    return int(at)


class OfArray:
    """An array that is a parameter."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.lazy = watched(array)

    def release(self) -> None:
        release(self.lazy)

    def wanted(self) -> list[Any]:
        return [self.lazy]

    def tangents(self, t: Any) -> list[Any]:
        if isinstance(t, _core.Operator):
            raise TypeError(f"a tangent of an array is an array, not a {type(t).__name__}")
        if np.shape(t) != self.array.shape:
            raise ValueError(f"a tangent of shape {np.shape(t)} for an array of {self.array.shape}")
        dtype = t.dtype if hasattr(t, "dtype") else np.asarray(t).dtype
        if dtype.kind == "c" and self.array.dtype.kind != "c":
            raise TypeError(f"a tangent of dtype {dtype} for an array of {self.array.dtype}")
        return [np.asarray(t)]

    def gradient(self, found: dict[int, Any]) -> list[Any]:
        g = found.get(id(self.lazy))
        return [lazy(np.zeros_like(self.array)) if g is None else g]

    def finished(self, values: list[Any]) -> Any:
        value = values[0]
        return self.array.dtype.type(value) if value.ndim == 0 else value.astype(self.array.dtype)


class OfOperator:
    """An operator that is a parameter: its arrays are."""

    def __init__(self, op: Any) -> None:
        self.op = op
        self.lazy = lazy(op)
        self.arrays = list(_arrays(op))

    def release(self) -> None:
        pass

    def wanted(self) -> list[Any]:
        return self.arrays

    def tangents(self, t: Any) -> list[Any]:
        """Its arrays', of an operator of the same kind."""
        alike = type(t) is type(self.op) and t.shape == self.op.shape
        held = _arrays(t) if alike else []
        shapes = [tuple(a.shape) for a in self.arrays]
        if not alike or [tuple(a.shape) for a in held] != shapes:
            shown = f"{type(t).__name__} {getattr(t, 'shape', ())}"
            raise ValueError(
                f"a tangent of a {type(self.op).__name__} {self.op.shape} is one too, with arrays "
                f"of shapes {shapes}: got {shown}"
            )
        return [np.array(a) for a in held]  # copies: they may be the arrays that are wanted

    def gradient(self, found: dict[int, Any]) -> list[Any]:
        return [lazy(np.zeros_like(a)) if id(a) not in found else found[id(a)] for a in self.arrays]

    def finished(self, values: list[Any]) -> Any:
        return _rebuilt(self.op, {id(a): v for a, v in zip(self.arrays, values, strict=True)})


def _arrays(op: Any) -> list[Any]:
    """The arrays of an operator's parameters, each once."""
    if op._init is None and op._by not in _AGAIN:
        raise NotImplementedError(
            f"a gradient by a {type(op).__name__} {op.shape} made by '{op._by}': give the "
            "operators it is made of as arguments"
        )
    found: dict[int, Any] = {}
    for _, x in matrices.parts(op):
        for a in _arrays(x) if isinstance(x, _core.Operator) else [x]:
            found[id(a)] = a
    return list(found.values())


def _rebuilt(op: Any, values: dict[int, Any]) -> Any:
    """An operator of the same kind, or made by the same operations, with the values in place of
    its arrays."""

    def again(x: Any) -> Any:
        if type(x) is list:
            return [again(y) for y in x]
        return _rebuilt(x, values) if isinstance(x, _core.Operator) else values.get(id(x), x)

    if op._init is None:
        return _AGAIN[op._by](op, *map(again, op._operands))
    return type(op)(*map(again, matrices.given(op)))


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


def finished(
    trace: Trace, extra: list[Any], groups: list[list[Any]]
) -> tuple[list[Any], list[Any]]:
    """The values of LazyArrays and of gradients, computed by one plan. Where results are NaN for
    want of a definite matrix, so are the gradients of such a value."""
    flat = [g for group in groups for g in group]
    values = evaluate(*extra, *flat) if len(extra) + len(flat) > 1 else (evaluate(*extra, *flat),)
    head, rest = list(values[: len(extra)]), list(values[len(extra) :])
    if config.get("not_definite") == "nan" and any(np.isnan(x).any() for x in head):
        rest = [np.full(x.shape, np.nan, x.dtype) for x in rest]
    made = []
    for p, group in zip(trace.parameters, groups, strict=True):
        own, rest = rest[: len(group)], rest[len(group) :]
        made.append(p.finished(own))
    return head, made
