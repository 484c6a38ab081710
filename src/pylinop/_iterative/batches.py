"""Batches of operators in one iterative solve: the systems of all elements become the columns of
one system, whose product with a block is the batch's own product."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._base import errors
from .._operators.linear_operator import MatVec
from . import record, scipy_api
from .loops import IN_PYTHON
from .memory import RESTART, limit_of, memory_of
from .problem import Problem, start_of


def columns_of(b: Any) -> Any:
    """Reshapes (..., n, k) to (n, all columns)."""
    return np.moveaxis(b, -2, 0).reshape(b.shape[-2], -1)


def _joined(op: Any, shape: Any, dtype: Any) -> Any:
    """A batched op as one operator on (n, all columns), for x of that shape; an op without a batch
    takes all columns as it is."""
    if op is None or len(op.shape) == 2:
        return op
    n, batch, k = shape[-2], shape[:-2], shape[-1]

    def by(f: Any) -> Any:
        def times(v: Any) -> Any:
            apart = np.ascontiguousarray(np.moveaxis(v.reshape(n, *batch, k), 0, -2))
            return columns_of(f @ apart)

        return times

    def never(v: Any) -> Any:
        raise AssertionError("columns of a batch go together")

    return MatVec(
        (n, n), never, rmatvec=never, matmat=by(op), rmatmat=by(op.H), dtype=op.dtype or dtype
    )


# Bytes of an element's product below which all elements go together: above, the product stays in #
# the cache when they go one by one. Dense batches of 20 to 300 rows, one column, AMD EPYC,
# 2026-11-22: 13 times as fast at 1000 x 20, 2.5 at 400 x 50, 1.2 at 100 x 150, 0.7 at 20 x 300
# (cg); lsmr 0.6 at 200 x 100.
_LIGHT, _LIGHT_BOTH = 3 << 16, 1 << 15


def _fits(problem: Any, method: str) -> bool:
    """Is there memory for all at once?"""
    room, cycle = limit_of(problem), min(RESTART, problem.n)
    names = ("cg", "minres", "gmres", "bicgstab") if method == "iterative" else (method,)
    return room is None or max(memory_of(name, problem, cycle) for name in names) <= room


def problem_of(op: Any, b: Any, M: Any, method: str, own: Any, dtype: Any) -> Any:
    """All systems as the columns of one. None where they go one by one: for callables, callbacks,
    block_cg, a named M other than "jacobi", a named x0, elements that fill the cache alone, and
    where there is no memory for all."""
    side = b[:, None] if b.ndim == 1 else b
    batch = np.broadcast_shapes(op.shape[:-2], side.shape[:-2])
    shape = (*batch, *side.shape[-2:])
    words = isinstance(own["x0"], str) or (isinstance(M, str) and M != "jacobi")
    if words or op._opaque or method in IN_PYTHON or own["callback"] is not None:
        return None
    if math.prod(batch) < 2 or not math.prod(shape):
        return None
    each = op._explain(0, np.empty(shape, dtype), 0, 0)["bytes"] / math.prod(batch)
    if each > (_LIGHT_BOTH if method in ("lsqr", "lsmr") else _LIGHT):
        return None
    begin = None
    if own["x0"] is not None:
        start = start_of(own["x0"], shape[:-1] if b.ndim == 1 else shape)
        begin = columns_of(start.reshape(shape))
    right = np.ascontiguousarray(columns_of(np.broadcast_to(side, shape)), dtype)
    inverse = _joined(scipy_api.preconditioner(M, op), shape, dtype)
    x = scipy_api.first(begin, right.shape, dtype)
    problem = Problem(_joined(op, shape, dtype), inverse, right, x, own)
    problem.said, problem.batch = (op, b), True
    return problem if _fits(problem, method) else None


def solved(
    op: Any, b: Any, M: Any, method: str, own: Any, dtype: Any, records: list[Any], one: Any
) -> Any:
    """x, with all systems solved together by ``one(problem)``; or None."""
    problem = problem_of(op, b, M, method, own, dtype)
    if problem is None:
        return None
    k = 1 if b.ndim == 1 else b.shape[-1]
    batch = np.broadcast_shapes(op.shape[:-2], b.shape[:-2])

    def apart(x: Any) -> Any:
        out = np.moveaxis(x.reshape(len(x), *batch, k), 0, -2)
        return np.ascontiguousarray(out[..., 0] if b.ndim == 1 else out)

    try:
        with record.noted(problem, records):
            records.append(one(problem))
    except errors.ConvergenceError as error:
        error.x = error.best = apart(error.best)
        raise
    return apart(problem.x)
