"""Entries of the inverse of a sparse matrix from its LU factor, without the inverse.

With P A Q = L D U the entries of (L D U)^-1 on the pattern of L + U follow from the last column to
the first (k_selected_inverse.c); a pattern that includes the requested places gives those too.
Places far from the pattern would fill it in: then columns of the inverse are solved for, in
blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from . import fill

_EPS = np.finfo(np.float64).eps
_COLUMNS = 64  # columns of the inverse at once
_TAKES = 6  # times what the factor takes; Laplacians 4
_GROWTH = 4  # the factor by which the pattern may grow for the requested places


def entries(factor: Any, row: Any, col: Any) -> Any:
    """A^-1[row, col] for arrays of places; or the core's code where there is no good answer."""
    if len(row) == 0:
        return np.zeros(0, factor.A.dtype)
    by = factor.by_pivots()
    while by is not None:
        lu = by.lu
        if lu is None:
            return True
        fill.refuse_entries(
            factor.A,
            _TAKES * lu.nnz,
            "the inverse by sparse LU, on its pattern,",
            "pl.estimate_diagonal and pl.estimate_trace take products and solves",
        )
        found = _selected(factor, lu, row, col)
        if found is not None:
            return found
        by = by.again()
    return _by_columns(factor, row, col)


def _selected(factor: Any, lu: Any, row: Any, col: Any) -> Any:
    """The entries by the recurrence; None where the pattern would grow too far or the check
    fails."""
    A, n = factor.A, factor.n
    at_row, at_col = lu.perm_c.astype(np.int64), lu.perm_r.astype(np.int64)
    C = A.tocoo()  # A^-1 is needed where A^T has entries: for the check
    check = [(C.coords[0], C.coords[1], C.data, 0)]
    if factor.doubled:  # [B X; 0 C]: the block on the right has a check of its own
        on = C.coords[0] < n // 2
        check.append((*(x[on] for x in (*C.coords, C.data)), n // 2))
    i = np.concatenate([at_row[row], *(at_row[k] for _, k, _, _ in check)])
    j = np.concatenate([at_col[col], *(at_col[r + off] for r, _, _, off in check)])
    pattern = _Pattern(lu, i, j)
    if pattern.n_rows > _GROWTH * lu.nnz + 64 * n:
        return None
    values = pattern.inverse(i, j)
    if not np.isfinite(values).all():
        return None
    start = len(row)
    for r, _, data, off in check:  # A A^-1 on its diagonal, or on that of the block
        terms = data * values[start : start + len(r)]
        start += len(r)
        sums, sizes = np.zeros(n, terms.dtype), np.zeros(n)
        np.add.at(sums, r, terms)
        np.add.at(sizes, r, np.abs(terms))
        if np.any(np.abs(sums - (off == 0)) > 64 * _EPS * np.sqrt(n) * sizes):
            return None
    return values[: len(row)]


class _Pattern:
    """The pattern of L + U, symmetric, with further places (i, j), closed under elimination."""

    def __init__(self, lu: Any, i: Any, j: Any) -> None:
        import scipy.sparse as sp  # type: ignore[import-untyped, unused-ignore]

        self.n = n = lu.shape[0]
        self.L, self.U = lu.L.tocoo(), lu.U.tocoo()
        row = np.concatenate([self.L.coords[0], self.U.coords[1], np.maximum(i, j)])
        col = np.concatenate([self.L.coords[1], self.U.coords[0], np.minimum(i, j)])
        below = row > col
        row, col = row[below], col[below]
        lower = sp.csr_array((np.ones(len(row), np.int8), (row, col)), shape=(n, n))
        start, self.col = lower.indptr.astype(np.int64), lower.indices.astype(np.int64)
        self.parent, self.at = np.empty(n, np.int64), np.empty(n + 1, np.int64)
        _core._select_counts(n, start, self.col, self.parent, self.at)
        self.start, self.n_rows = start, int(self.at[-1])

    def inverse(self, i: Any, j: Any) -> Any:
        """Entries (i, j) of (L U)^-1."""
        n, at = self.n, self.at
        rows = np.empty(self.n_rows, np.int64)
        _core._select_rows(n, self.start, self.col, self.parent, at, rows)
        keys = np.repeat(np.arange(n), np.diff(at)) * n + rows
        dtype = self.L.data.dtype
        d = np.zeros(n, dtype)
        lo, up = np.zeros(self.n_rows, dtype), np.zeros(self.n_rows, dtype)
        for M, out, turned in ((self.L, lo, False), (self.U, up, True)):
            r, c = M.coords[::-1] if turned else M.coords
            on = r == c
            if turned:
                d[r[on]] = M.data[on]
            off = ~on
            out[np.searchsorted(keys, c[off].astype(np.int64) * n + r[off])] = M.data[off]
        with np.errstate(all="ignore"):
            d = 1 / d
            up *= np.repeat(d, np.diff(at))
        _core._select(dtype.char, n, at, rows, lo, up, d)
        high, low = np.maximum(i, j), np.minimum(i, j)
        place = np.searchsorted(keys, low * n + high) if len(keys) else np.zeros(len(i), np.int64)
        place = np.minimum(place, max(len(keys) - 1, 0))
        found = d[np.minimum(i, n - 1)]
        if len(keys):
            found = np.where(i > j, lo[place], np.where(i < j, up[place], found))
        return found


def _by_columns(factor: Any, row: Any, col: Any) -> Any:
    """Solves with unit vectors, a block at a time, for the requested columns."""
    asked, which = np.unique(col, return_inverse=True)
    order = np.argsort(which, kind="stable")
    ends = np.searchsorted(which[order], np.arange(0, len(asked) + _COLUMNS, _COLUMNS))
    out = np.empty(len(row), factor.A.dtype)
    for k, first in enumerate(range(0, len(asked), _COLUMNS)):
        part = asked[first : first + _COLUMNS]
        unit = np.zeros((factor.n, len(part)), factor.A.dtype)
        unit[part, np.arange(len(part))] = 1
        x = factor.solve(unit, 0)
        if isinstance(x, bool):
            return x
        mine = order[ends[k] : ends[k + 1]]
        out[mine] = x[row[mine], which[mine] - first]
    return out
