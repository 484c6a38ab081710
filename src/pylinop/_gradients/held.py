"""Arrays that a gradient is wanted by, where the formula holds their memory by other objects too:
what is found by identity would be a part of the gradient."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import _core
from .._base import errors
from .._base.checks import is_lazy
from .._lazy.kinds import Kind
from .contents import inside
from .pieces import stop
from .rules import Formula

__all__ = ["alike", "is_apart", "others"]

_WORK = 10**6  # steps of the search for a number in both


def _held(value: Any) -> Iterator[tuple[Any, Any]]:
    """(array or operator, the kind of LazyArrays that it is a constant of, or None) of all that a
    gradient may pass to."""
    stack: list[tuple[Any, Any]] = [(value, None)]
    seen = set()
    while stack:
        x, by = stack.pop()
        if isinstance(x, np.ndarray):
            yield x, by
            continue
        if (id(x), by is None) in seen:
            continue
        seen.add((id(x), by is None))
        if not is_lazy(x):
            if isinstance(x, _core.Operator):
                yield x, by
            stack += [(y, by) for y in inside(x)]
            continue
        f = x._more[0] if x._head in ("call", "made") else None
        if f is stop:
            continue
        if isinstance(f, Kind):
            stack += [(y, x) for y in (*f.args, *f.kwargs.values())]
        args = x._args[1:] if isinstance(f, Formula) else x._args
        stack += [(y, by) for y in args]


def _sources(x: Any, ends: frozenset[int]) -> tuple[set[int], list[Any]]:
    """What has numbers of its own in x, but for what only the ends are made of: leaves and
    operators by their ids, and arrays. Truth values and integers, as those of x > 0, have no
    derivatives, whatever they are made of."""
    stack, seen, arrays = [x], set(ends), []
    while stack:
        y = stack.pop()
        if id(y) in seen:
            continue
        seen.add(id(y))
        if isinstance(y, np.ndarray):
            if y.dtype.kind in "fc":
                arrays.append(y)
        elif not is_lazy(y):
            stack += inside(y)
        elif y.dtype.kind in "fc" and not (y._head in ("call", "made") and y._more[0] is stop):
            f = y._more[0] if y._head == "made" else None
            stack += [*y._args, *((*f.args, *f.kwargs.values()) if isinstance(f, Kind) else ())]
    return seen - ends, arrays


def _leaves(part: Any) -> set[int]:
    """The ids of a LazyArray and of its leaves; of an operator its own and those of its operands.
    Arrays do not count: two leaves may be of one."""
    stack, found, seen = [part], {id(part)}, set()
    while stack:
        y = stack.pop()
        if id(y) in seen or isinstance(y, np.ndarray):
            continue
        seen.add(id(y))
        if not is_lazy(y):
            found.add(id(y))
            stack += [z for z in inside(y) if isinstance(z, _core.Operator)]
        elif y._head in ("leaf", "operator"):
            found.add(id(y))
        else:
            stack += y._args
    return found


def is_apart(expression: Any, part: Any, ends: frozenset[int]) -> bool:
    """Has an expression nothing that a part is made of, but by the ends? Then its derivative by
    that part is zero. Leaves are told by identity, arrays by their memory."""
    seen, arrays = _sources(expression, ends)
    if not seen.isdisjoint(_leaves(part)):
        return False
    if is_lazy(part):
        return True
    mine = _sources(part, frozenset())[1]
    return not any(np.may_share_memory(a, b) and _meet(a, b) for a in mine for b in arrays)


def _meet(a: Any, b: Any) -> bool:
    """Have they a number in common? Yes, where that is too long a search."""
    work: Any = _WORK  # NumPy's stubs know two of the numbers
    try:
        return np.shares_memory(a, b, max_work=work)
    except np.exceptions.TooHardError:
        return True


def _layout(a: Any) -> tuple[Any, ...]:
    return a.__array_interface__["data"][0], a.shape, a.strides, a.dtype


def alike(wanted: list[Any]) -> dict[int, Any]:
    """The first of the wanted ones that is the same array as each of them, by id."""
    found = {}
    first: dict[Any, Any] = {}
    for a in wanted:
        found[id(a)] = first.setdefault(_layout(a), a) if isinstance(a, np.ndarray) else a
    return found


def others(value: Any, wanted: list[Any]) -> dict[int, Any]:
    """The arrays of the formula that are one of the wanted ones, in another object, by id: (their
    array, the wanted one). Those that overlap with one in part are an error, and constants of
    kinds of LazyArrays that are wanted."""
    if not wanted:
        return {}
    found = {}
    for b, by in _held(value):
        for a in wanted:
            if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
                if b is a and by is not None:
                    raise ValueError(_text(a, b, by) + errors.built(by))
                continue
            if (b is a and by is None) or not np.may_share_memory(a, b) or not _meet(a, b):
                continue
            if by is None and _layout(a) == _layout(b):
                found[id(b)] = b, a
                continue
            raise ValueError(_text(a, b, by) + errors.built(value if by is None else by))
    return found


def _text(a: Any, b: Any, by: Any) -> str:
    one = f"the {type(a).__name__} of shape {tuple(a.shape)}"
    if by is not None:
        kind = by._more[0].__name__
        return (
            f"a gradient by {one} that {_an(kind)} of LazyArrays holds as a constant: give it "
            "pl.lazy(...) of that, and take the gradient by this"
        )
    return (
        f"a gradient by {one}, of which the formula also holds another view, of shape {b.shape} "
        f"and strides {b.strides}: it would lack what comes through that. Index a LazyArray of it "
        "(x = pl.lazy(array); x[...]), and take the gradient by that"
    )


def _an(kind: str) -> str:
    return f"an {kind}" if kind[0] in "AEIOU" else f"a {kind}"
