"""Entries of the inverse of a sparse matrix from its LU factor, without the inverse.

With P A Q = L D U the entries of (L D U)^-1 on the pattern of L + U follow from the last column to
the first (k_selected_inverse.c); a pattern that includes the requested places gives those too.
Places far from the pattern would fill it in: then columns of the inverse are solved for, in
blocks. The inverse on the pattern of L + U alone is kept with the factor, for all that asks for
entries there."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from . import cholmod, fill

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
        found = _selected(by, lu, row, col)
        if found is not None:
            return found
        by = by.again()
    return _by_columns(factor, row, col)


def _selected(factor: Any, lu: Any, row: Any, col: Any) -> Any:
    """The entries by the recurrence; None where the pattern would grow too far or the check
    fails."""
    i, j = lu.perm_c.astype(np.int64)[row], lu.perm_r.astype(np.int64)[col]
    if factor.inverse is not None and factor.inverse.has(i, j):
        return _finite(factor.inverse.at_places(i, j))
    checked = _checked_places(factor, lu)
    pattern = _Pattern(lu, checked, i, j)
    if pattern.n_rows > _GROWTH * lu.nnz + 64 * factor.n:
        return None
    pattern.invert()
    if not _is_inverse(factor, pattern, checked):
        return None
    if not pattern.grown and pattern.n_rows <= room(factor):
        factor.inverse = pattern
    return _finite(pattern.at_places(i, j))


def _finite(values: Any) -> Any:
    return values if np.isfinite(values).all() else None


def room(factor: Any) -> int:
    """Places below the diagonal up to which the inverse on the factor's own pattern is kept: as
    many as a factor of a symmetric pattern has. Its bytes are counted with the factor's."""
    entries: int = factor.lu.nnz
    lower_alone = isinstance(factor.lu, cholmod.Cholesky)
    return entries if factor.pivoted or lower_alone else entries // 2


def _checked_places(factor: Any, lu: Any) -> list[tuple[Any, Any, Any, Any, int]]:
    """(place in the factor's order, row, number, offset) of the entries of A, for A A^-1 on its
    diagonal: A^-1 is needed where A^T has entries."""
    A, n = factor.A.tocoo(), factor.n
    at_row, at_col = lu.perm_c.astype(np.int64), lu.perm_r.astype(np.int64)
    (r, c), data = A.coords, A.data
    found = [(at_row[c], at_col[r], r, data, 0)]
    h = n // factor.blocks
    for off in range(h, n, h) if h else ():  # each block above the diagonal has a check of its own
        on = r < n - off
        found.append((at_row[c[on]], at_col[r[on] + off], r[on], data[on], off))
    return found


def _is_inverse(factor: Any, pattern: Any, checked: list[tuple[Any, Any, Any, Any, int]]) -> bool:
    """Is A A^-1 the identity on its diagonal, and zero on those of blocks above it?"""
    n = factor.n
    for i, j, r, data, off in checked:
        values = pattern.at_places(i, j)
        if not np.isfinite(values).all():
            return False
        terms = data * values
        sums, sizes = np.zeros(n, terms.dtype), np.zeros(n)
        np.add.at(sums, r, terms)
        np.add.at(sizes, r, np.abs(terms))
        if np.any(np.abs(sums - (off == 0)) > 64 * _EPS * np.sqrt(n) * sizes):
            return False
    return True


class _Pattern:
    """The pattern of L + U and what is checked, symmetric, with further places (i, j), closed under
    elimination; with `invert` the entries of (L U)^-1 there, which are the same whatever was asked
    for as long as no place is added."""

    def __init__(self, lu: Any, checked: Any, i: Any, j: Any) -> None:
        import scipy.sparse as sp  # type: ignore[import-untyped, unused-ignore]

        self.n = n = lu.shape[0]
        self.L, self.U = lu.L.tocoo(), lu.U.tocoo()
        pairs = [self.L.coords, self.U.coords[::-1], *((i, j) for i, j, *_ in checked)]
        lower = _below(sp, n, pairs)
        low, high = np.minimum(i, j), np.maximum(i, j)
        self.grown = not _has(lower.indptr, lower.indices, high, low)
        if self.grown:
            lower = _below(sp, n, [*pairs, (i, j)])
        start, col = lower.indptr.astype(np.int64), lower.indices.astype(np.int64)
        parent, self.at = np.empty(n, np.int64), np.empty(n + 1, np.int64)
        _core._select_counts(n, start, col, parent, self.at)
        self.n_rows = int(self.at[-1])
        self.lower: Any = (start, col, parent)

    def invert(self) -> None:
        """The entries of (L U)^-1; L and U are given up."""
        n, at = self.n, self.at
        rows = self.rows = np.empty(self.n_rows, np.int64)
        start, col, parent = self.lower
        _core._select_rows(n, start, col, parent, at, rows)
        keys = self._keys()
        dtype = self.L.data.dtype
        self.d = d = np.zeros(n, dtype)
        lo, up = np.zeros(self.n_rows, dtype), np.zeros(self.n_rows, dtype)
        for M, out, turned in ((self.L, lo, False), (self.U, up, True)):
            r, c = M.coords[::-1] if turned else M.coords
            on = r == c
            if turned:
                d[r[on]] = M.data[on]
            off = ~on
            out[np.searchsorted(keys, c[off].astype(np.int64) * n + r[off])] = M.data[off]
        with np.errstate(all="ignore"):
            self.d = d = 1 / d
            up *= np.repeat(d, np.diff(at))
        _core._select(dtype.char, n, at, rows, lo, up, d)
        self.lo, self.up = lo, up
        self.L = self.U = self.lower = None

    def _keys(self) -> Any:
        return np.repeat(np.arange(self.n), np.diff(self.at)) * self.n + self.rows

    def has(self, i: Any, j: Any) -> bool:
        """Are these places of the pattern?"""
        return _has(self.at, self.rows, np.minimum(i, j), np.maximum(i, j))

    def at_places(self, i: Any, j: Any) -> Any:
        """Entries (i, j) of (L U)^-1."""
        found = self.d[np.minimum(i, self.n - 1)]
        if self.n_rows and not np.array_equal(i, j):
            place = np.searchsorted(self._keys(), np.minimum(i, j) * self.n + np.maximum(i, j))
            place = np.minimum(place, self.n_rows - 1)
            found = np.where(i > j, self.lo[place], np.where(i < j, self.up[place], found))
        return found


def _below(sp: Any, n: int, pairs: list[Any]) -> Any:
    """The places below the diagonal of pairs and their mirrors, row by row."""
    i, j = (np.concatenate([p[k] for p in pairs]) for k in (0, 1))
    row, col = np.maximum(i, j), np.minimum(i, j)
    off = row > col
    row, col = row[off], col[off]
    found = sp.csr_array((np.ones(len(row), np.int8), (row, col)), shape=(n, n))
    found.sort_indices()
    return found


def _has(start: Any, index: Any, line: Any, other: Any) -> bool:
    """Are (line, other) places of a pattern with sorted indices, or on the diagonal?"""
    n, off = len(start) - 1, line != other
    if not off.any():
        return True
    keys = np.repeat(np.arange(n), np.diff(start)) * n + index
    due = line[off] * n + other[off]
    place = np.searchsorted(keys, due)
    return bool(len(keys)) and bool((keys[np.minimum(place, len(keys) - 1)] == due).all())


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
