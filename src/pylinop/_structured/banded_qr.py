"""QR of bands within the band, and least squares by it.

Each column gets a Householder reflection of the rows that it reaches: Q is a `Reflections`, and R
gains as many diagonals above as the matrix has below (k_band_qr.c). Bands are the banded kinds,
their transposes, and contiguous parts of them; so they may be tall or wide."""

from typing import Any

import numpy as np

from .. import _core
from .._base.dtypes import CONJUGATED, TRANSPOSED, inexact
from .._base.kind_flags import BAND
from .._operators.parameters import written
from .singular_values import bands_of

KINDS = BAND

Bands = list[tuple[int, Any]]


def _turned(bands: Bands, mode: int) -> Bands:
    sign = -1 if mode & TRANSPOSED else 1
    return [(sign * k, np.conj(d) if mode & CONJUGATED else d) for k, d in bands]


def _part(bands: Bands, rows: tuple[int, int], columns: tuple[int, int]) -> Bands:
    """The diagonals of the block of these rows and columns, each given as (first, count)."""
    (r, m), (c, n), found = rows, columns, []
    for k, d in bands:
        row, column = max(-k, 0), max(k, 0)  # of d's first element
        first = max(r - row, c - column, 0)
        last = min(r + m - row, c + n - column, d.shape[-1])
        if first < last:
            found.append((k + r - c, d[..., first:last]))
    return found


def _taken(op: Any) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """(first, count) of the rows and columns that a Sliced keeps; None where they are not
    contiguous."""
    whole, steps = op._operands
    found = {0: (0, whole.shape[-2]), 1: (0, whole.shape[-1])}
    for axis, *step in steps:
        if axis not in found or len(step) != 3 or step[1] != 1:
            return None  # indices, or every other row
        found[axis] = (step[0], step[2])
    return (found[0], found[1]) if op.ndim == whole.ndim else None


def bands_within(op: Any) -> Bands | None:
    """(offset, diagonal) of a band, of a transposed band, or of a contiguous part of one; None for
    anything else, and for parts far off the diagonal."""
    path, base = [], op
    while written(base, "view", "sliced"):
        path.append(base)
        base = base._operands[0]
    found = bands_of(base) if base._head in KINDS else None
    if found is None:
        return None
    for seen in reversed(path):
        if seen._head == "view":
            found = _turned(found, seen._mode)
            continue
        taken = _taken(seen)
        if taken is None:
            return None
        found = _part(found, *taken)
    low, up = _reach(found)
    return found if op._head in KINDS or 2 * low + up + 1 <= max(op.shape[-2:]) else None


def _reach(bands: Bands) -> tuple[int, int]:
    """The numbers of diagonals below and above the main one."""
    offsets = [k for k, _ in bands]
    return max(0, -min(offsets, default=0)), max(0, *offsets, 0)


def _factored(bands: Bands, shape: tuple[int, ...], dtype: Any) -> tuple[Any, Any, int]:
    """The vectors of the reflections, the diagonals of R by column, and how many lie above the main
    one."""
    *batch, m, n = shape
    low, up = _reach(bands)
    width = 2 * low + up + 1
    by_column = np.zeros((*batch, n, width), dtype)
    for k, d in bands:
        at = max(k, 0)
        by_column[..., at : at + d.shape[-1], low + up - k] = d
    v = np.empty((*batch, min(m, n), low + 1), dtype)
    for i in np.ndindex(*batch):
        _core._band_qr(dtype.char, m, n, low, up, by_column[i], v[i])
    return v, by_column, low + up


def _upper(by_column: Any, above: int) -> Any:
    """R with n rows; rows beyond those of the matrix are zero."""
    n = by_column.shape[-2]
    w = min(above, n - 1)
    rows = np.swapaxes(by_column[..., above - w : above + 1], -1, -2)
    return _core.Banded((0, w), np.ascontiguousarray(rows))


def qr(op: Any, bands: Bands, mode: str) -> Any:
    """(Q, R), or R, as in NumPy's modes, of an operator with these bands."""
    m, n = op.shape[-2:]
    dtype = inexact(op.dtype)
    v, by_column, above = _factored(bands, op.shape, dtype)
    r = _upper(by_column, above)
    if m < n:
        r = r[..., :m, :]
    if mode == "complete" and m > n:
        r = _core.Diag(np.ones((*op.shape[:-2], n), dtype), 0, (m, n)) @ r
    if mode == "r":
        return r
    q = _core.Reflections(v, m)
    return (q if m <= n or mode == "complete" else q[..., :, :n]), r
