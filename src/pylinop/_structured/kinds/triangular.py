"""Functions of a `Triangular`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ... import _core
from ..._base import config
from ..._base.dtypes import inexact, real_of
from ..._base.lengths import length
from ..dispatch import dense
from ..eig import eigvals
from ..lu import _itself, lu
from ..matrix_functions import functions_row
from ..matrix_functions_dense import general
from ..norms import _root_of_squares, frobenius, sums
from ..qr import _of, identity_of, qr
from ..singular_values import floats

# -- norms --


def _row_blocks(op: Any) -> Iterator[Any]:
    """Yields the triangle some rows at a time, as (first row, rows): as many as the memory limit
    has room for."""
    a, lower, unit = op._given("a", "lower", "unit_diagonal")
    n, limit, step = a.shape[-1], config.get("memory_limit"), 256
    if limit is not None:  # a row of the whole batch is held up to five times
        held = 5 * (op.size // max(n, 1)) * inexact(op.dtype).itemsize
        step = max(1, min(step, limit // max(held, 1)))
    for at in range(0, n, step):
        end = min(at + step, n)
        rows, keep = floats(a[..., at:end, :]), np.arange(at, end)[:, None] - np.arange(n)
        inside = keep >= (1 if unit else 0) if lower else keep <= (-1 if unit else 0)
        rows = np.where(inside, rows, 0)
        if unit:
            rows[..., np.arange(end - at), np.arange(at, end)] = 1
        yield at, rows


@sums.row("triangular")
def _(op: Any, axis: int) -> Any:
    if op._init is None:
        return NotImplemented
    total = np.zeros((*op.shape[:-2], op.shape[-1]), real_of(op.dtype))
    for at, rows in _row_blocks(op):
        if axis == -2:
            total += np.abs(rows).sum(axis=-2)
        else:
            total[..., at : at + rows.shape[-2]] = np.abs(rows).sum(axis=-1)
    return total


@frobenius.row("triangular")
def _(op: Any) -> Any:
    if op._init is None:
        return NotImplemented
    return _root_of_squares([length(length(rows)) for _, rows in _row_blocks(op)])


# -- eig --


@eigvals.row("triangular", how="the diagonal", cost="O(n)", far="n")
def _(op: Any) -> Any:
    return floats(op.diagonal())


# -- qr --


@qr.row("triangular", how="an upper one itself: Q is an Identity", cost="O(1)", guard="upper")
def _(op: Any, mode: str) -> Any:
    if op.dtype.kind not in "fc":
        return NotImplemented
    return _of(mode, identity_of(op, op.shape[-1], op.shape[-1]), op)


# -- lu, ldl --


@lu.row("triangular", how="an upper one itself: P and L are Identities", cost="O(1)", guard="upper")
def _(op: Any) -> Any:
    return _itself(op) if op.dtype.kind in "fc" else NotImplemented


# -- exp, log, powers --


@functions_row("triangular", how="SciPy on the triangle; Triangular", cost="O(n^3)", guard="given")
def _(op: Any, f: Any) -> Any:
    a, lower = dense(op, f.arrays), op._given("lower")
    if not lower:
        return _core.Triangular(general(a, f), False)
    turned = general(np.ascontiguousarray(np.swapaxes(a, -1, -2)), f)
    return _core.Triangular(np.swapaxes(turned, -1, -2))
