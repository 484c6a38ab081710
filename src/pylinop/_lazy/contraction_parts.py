"""Parts of contractions that are nodes of their own, as contractions: a trace and a diagonal are
one with two labels made one, a sum over axes leaves labels out of the result, an element or a slice
reads its operands there alone. So they cost what they need, not the whole result."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._contractions import equations
from .._contractions.equations import Task
from .._contractions.grammar import Equation
from .._contractions.recorded import Deferred
from .contractions import contraction

_Terms = tuple[tuple[str, ...], ...]


class _Whole(NamedTuple):
    """A contraction that is not computed yet, all axes of which are labels."""

    operands: tuple[Any, ...]
    terms: _Terms
    result: tuple[str, ...]
    sizes: dict[str, int]
    task: Task

    def made(self, terms: _Terms, result: tuple[str, ...], operands: Sequence[Any]) -> Any:
        shown = f"a part of {self.task.equation.text}"
        e = Equation(_plain(terms), _plain((result,))[0], False, shown)
        return contraction(Task(e, (), None, self.task.dtype, self.task.casting), operands)


def _plain(terms: _Terms) -> _Terms:
    """Axes of an ellipsis as axes with names."""
    return tuple(tuple(f"_{x[3:]}" if x.startswith("...") else x for x in t) for t in terms)


def _whole(a: Any) -> _Whole | None:
    if a._head != "call" or a._value is not None or not isinstance(a._more[0], Deferred):
        return None
    task = a._more[0].task
    if task.path is not None or task.outside is not None or a.dtype.char not in "fdFD":
        return None
    s = equations.resolved(task.equation, tuple(tuple(x.shape) for x in a._args), task.sizes)
    if not all(isinstance(x, str) for t in (*s.operands, s.result) for x in t):
        return None
    for x, n in s.sizes.items():
        known = (m for t, b in zip(s.operands, a._args) for y, m in zip(t, b.shape) if x == y)
        if max(known, default=-1) != n:
            return None  # a size that `sizes=` alone says
    terms = tuple(tuple(str(x) for x in t) for t in s.operands)
    return _Whole(tuple(a._args), terms, tuple(str(x) for x in s.result), s.sizes, task)


def _joined(a: Any, kept: bool) -> Any:
    w = _whole(a)
    if w is None or a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        return None
    one, other = w.result[-2:]
    terms = tuple(tuple(one if x == other else x for x in t) for t in w.terms)
    return w.made(terms, (*w.result[:-2], one) if kept else w.result[:-2], w.operands)


def trace(a: Any) -> Any:
    """Over the last two axes; None where a is no such contraction."""
    return _joined(a, False)


def diagonal(a: Any) -> Any:
    """Of the last two axes; None where a is no such contraction."""
    return _joined(a, True)


def summed(a: Any, axes: Sequence[int]) -> Any:
    """Without these axes of the result; None where a is no such contraction."""
    w = _whole(a)
    if w is None:
        return None
    left = tuple(x for k, x in enumerate(w.result) if k not in axes)
    return w.made(w.terms, left, w.operands)


def _key(a: Any, key: Any) -> list[Any] | None:
    """Numbers and slices, one an axis; None where there is anything else."""
    parts = list(key) if isinstance(key, tuple) else [key]
    if sum(k is Ellipsis for k in parts) == 1:
        at = next(i for i, k in enumerate(parts) if k is Ellipsis)
        parts[at : at + 1] = [slice(None)] * (a.ndim - len(parts) + 1)
    parts += [slice(None)] * (a.ndim - len(parts))
    if len(parts) != a.ndim:
        return None
    for i, k in enumerate(parts):
        if isinstance(k, slice):
            continue
        if isinstance(k, (bool, np.bool_)) or not isinstance(k, (int, np.integer)):
            return None
        parts[i] = operator.index(k) % a.shape[i]
    return parts


def part(a: Any, key: Any) -> Any:
    """``a[key]``, a key that is known to fit; None where a is no such contraction, or the key no
    numbers and slices."""
    w = _whole(a)
    found = _key(a, key) if w is not None else None
    if w is None or found is None or all(k == slice(None) for k in found):
        return None
    at = dict(zip(w.result, found))
    operands = []
    for t, x in zip(w.terms, w.operands):
        own: list[Any] = []
        for label, n in zip(t, x.shape):
            k = at.get(label, slice(None))
            alone = n == 1 != w.sizes[label]  # it broadcasts
            own.append(k if not alone else slice(None) if isinstance(k, slice) else 0)
        operands.append(x if all(k == slice(None) for k in own) else x[tuple(own)])
    gone = {label for label, k in at.items() if not isinstance(k, slice)}
    terms = tuple(tuple(x for x in t if x not in gone) for t in w.terms)
    return w.made(terms, tuple(x for x in w.result if x not in gone), operands)
