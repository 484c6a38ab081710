"""Products entry by entry of kernels of the coordinates of constant points that are all pairs of
two lists, as `pm.gp.cov.Kron` writes them, or a product of kernels with `active_dims`: one kernel
of the first coordinate and one of the second are a Kronecker product of those of the lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt

from ._compat import (
    AdvancedSubtensor,
    CAReduce,
    Constant,
    DimShuffle,
    Dot,
    Elemwise,
    ancestors,
)

__all__ = ["factors"]


class _Other(Exception):
    """It is no function of one list alone."""


class _Part:
    """Of n points the first of each run of `step`, or the first `step` of a list that repeats."""

    def __init__(self, n: int, step: int, is_run: bool) -> None:
        self.n, self.step, self.is_run = n, step, is_run

    def of(self, a: Any) -> Any:
        """A constant's entries for these, along each axis that has one for each point."""
        for axis in (k for k in range(a.ndim) if a.shape[k] == self.n):
            places = np.arange(self.n)
            if self.is_run:
                kept, where = places[:: self.step], places // self.step
            else:
                kept, where = places[: self.step], places % self.step
            part = np.take(a, kept, axis)
            if not np.array_equal(np.take(part, where, axis), a):
                raise _Other
            a = part
        return a


def _steps(column: Any) -> list[tuple[int, bool]]:
    """(length, is it that of runs of equal points, or of what repeats?), what may be."""
    n = len(column)
    run = int(np.argmax(column != column[0]))
    again = np.flatnonzero(column[1:] == column[0])
    found = [(run, True)] if run > 1 and n % run == 0 else []
    return found + [(int(p) + 1, False) for p in again[:1] if run == 1 and n % (p + 1) == 0]


def _smaller(v: Any, part: _Part, known: dict[Any, Any]) -> Any:
    """v for some of the points: what is made of entries alone, and of no sum over the points."""
    if v not in known:
        known[v] = _made(v, part, known)
    return known[v]


def _made(v: Any, part: _Part, known: dict[Any, Any]) -> Any:
    if isinstance(v, Constant):
        return pt.constant(part.of(np.asarray(v.data)))
    if None in v.type.shape:
        raise _Other
    if part.n not in v.type.shape:
        return v
    op, inputs = (None, []) if v.owner is None else (v.owner.op, v.owner.inputs)
    if isinstance(op, Dot):
        over = [inputs[0].type.shape[-1]]
    elif isinstance(op, CAReduce):
        axes = range(inputs[0].ndim) if op.axis is None else op.axis
        over = [inputs[0].type.shape[k] for k in axes]
    elif isinstance(op, Elemwise | DimShuffle) and len(v.owner.outputs) == 1:
        over = []
    elif isinstance(op, AdvancedSubtensor) and op.idx_list == (0, 1):
        over = list(inputs[0].type.shape)  # B[i, j], as `pm.gp.cov.Coregion` writes it
    else:
        raise _Other
    if part.n in over or None in over:
        raise _Other
    small = [_smaller(x, part, known) for x in inputs]
    return small[0].dimshuffle(*op.new_order) if isinstance(op, DimShuffle) else op(*small)


def _factor(v: Any, n: int) -> Any:
    """(the kernel of its list, the list's step, has it runs?) of a kernel of n points."""
    for x in ancestors([v]):
        if isinstance(x, Constant) and n in x.type.shape:
            axis = x.type.shape.index(n)
            steps = _steps(np.moveaxis(np.asarray(x.data), axis, 0).reshape(n, -1)[:, 0])
            break
    else:
        return None
    for step, is_run in steps:
        try:
            return _smaller(v, _Part(n, step, is_run), {}), step, is_run
        except _Other:
            continue
    return None


def factors(given: list[Any]) -> tuple[Any, Any] | None:
    """A and B where the product of all that is given entry by entry is kron(A, B); None where that
    is not seen."""
    n = given[0].type.shape[0]
    if n is None or n < 4 or any(x.type.shape != (n, n) for x in given):
        return None
    runs: list[Any] = []
    repeats: list[Any] = []
    steps = set()
    for x in given:
        found = _factor(x, n)
        if found is None:
            return None
        small, step, is_run = found
        steps.add(step)
        (runs if is_run else repeats).append(small)
    if len(steps) != 1 or not runs or not repeats:
        return None
    A, B = (pt.mul(*xs) if len(xs) > 1 else xs[0] for xs in (runs, repeats))
    return A, B
