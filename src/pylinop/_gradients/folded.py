"""Cotangents of the numbers in blocks that are multiples of one another's numbers, as those of
panels, ``BlockDiag(c R_1 + s I, c R_2 + s I, ..)``: each block's would be a trace of its own, of a
cotangent that is one for all. Together they are

    sum_i <R_i, G_ii> = <BlockDiag(R_1, R_2, ..), G>

one trace for each number, which the planner takes block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._base.checks import is_lazy
from .._lazy.build import scaled
from .._lazy.leaves import lazy
from . import matrices, multiples
from .shapes import unbroadcast

_FEWEST = 4  # blocks
_MULTIPLES = 8  # within each other


class Numbers:
    """What is due to numbers, which stand at the end of a sweep: until then it is held."""

    def __init__(self, order: list[tuple[Any, Any]], wanted: dict[int, Any]) -> None:
        self.one = _one_of_each([o for o in order if id(o[0]) not in wanted])
        self.held: dict[int, dict[Any, list[tuple[Any, Any, Any]]]] = {}

    def take(self, x: Any, g: Any, key: Any, part: Any) -> bool:
        """Is this cotangent one of a list's, which is found with the others?"""
        if not is_lazy(x) or x._head != "scale" or key != 1 or not _is_real_multiple(x):
            return False
        a, times = x._args[0], g
        for _ in range(_MULTIPLES):
            if times._head != "scale" or not _is_real_number(times._args[1]):
                break
            a, times = scaled(a, times._args[1]), times._args[0]
        at = matrices.list_of(times)
        if at is None or not _is_blockdiag(times._args[0]):
            return False
        part = self.one.get(id(part), part)
        self.held.setdefault(id(part), {}).setdefault(at, []).append((times, a, x))
        return True

    def due(self, x: Any) -> Any:
        """The cotangent of a number by all lists; None where there is none."""
        total: Any = None
        for found in self.held.pop(id(x), {}).values():
            for term in _of_list(found):
                term = unbroadcast(term, x)
                total = term if total is None else total + term
        return total


def _is_real_number(c: Any) -> bool:
    return np.ndim(c) == 0 and np.result_type(c.dtype if is_lazy(c) else c).kind != "c"


def _is_real_multiple(x: Any) -> bool:
    a, c = x._args
    return bool(is_lazy(c) and a.ndim == 2 and a.dtype.kind == "f" and _is_real_number(c))


def _is_blockdiag(op: Any) -> bool:
    cls: Any = op._more[0].cls if is_lazy(op) else type(op)
    return op.ndim == 2 and matrices.head_of(cls) == "blockdiag"


def _of_list(found: list[tuple[Any, Any, Any]]) -> list[Any]:
    """Of all blocks together; of a few, each by itself."""
    op, g = found[0][0]._args
    grown: dict[int, Any] = {}
    for y, a, _ in found:
        place = y._more[0].key[1]
        grown[place] = grown[place] + a if place in grown else a
    count = len(op._args) if is_lazy(op) else len(op._init)
    if count < _FEWEST or len(grown) < count:
        return [multiples.inner(a, y) for y, a, _ in found]
    return [multiples.traced(lazy(_core.BlockDiag(*(grown[k] for k in range(count)))), g)]


def _one_of_each(order: list[tuple[Any, Any]]) -> dict[int, Any]:
    """Of numbers that are the same by how they are made, as c[0] for each block, the first one; of
    those that are wanted themselves each is its own."""
    first: dict[Any, Any] = {}
    one: dict[int, Any] = {}
    for x, _ in order:
        if is_lazy(x) and x.ndim == 0 and (key := _key(x, one)) is not None:
            one[id(x)] = first.setdefault(key, x)
    return one


def _key(x: Any, one: dict[int, Any]) -> Any:
    if x._head == "index" and type(x._more) is int:
        return "index", id(x._args[0]), x._more
    if x._head == "call" and isinstance(x._more[0], np.ufunc) and not x._more[1]:
        return x._more[0], *(id(one.get(id(a), a)) for a in x._args)
    return None
