"""How much memory a sparse LU may take, known before it is made: asked where a memory limit is set.

SuperLU finds an order of the columns first. An incomplete LU that drops all it can finds the same
one, in a third of the time and in no more memory than the matrix takes. In this order L and U have
no more entries than the Cholesky factor of the pattern, with exchanges of rows than that of A^T A
(George and Ng 1987; its cliques are those of stars around the first column of each row, so that
A^T A is not made), which are counted along the elimination tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._base import config, errors

_GROWN = 1.25  # entries for which SuperLU has room at a time, of those there are in the end

_INSTEAD = "iterative methods keep no factor (pl.solve(A, b, method=...))"


def refuse(A: Any, how: dict[str, Any]) -> None:
    """Raises where SuperLU of the CSC matrix A, with these options, may pass the limit."""
    if config.get("memory_limit") is None or A.shape[0] == 0:
        return
    beside = A.shape[0] * (300 + 20 * A.dtype.itemsize) + 40 * A.nnz  # its workspace, and ours
    _refuse_bytes(A, beside)
    entries = most_entries(A, how)
    if entries is not None:
        _refuse_bytes(A, beside + nbytes(A, _GROWN * entries))


def nbytes(A: Any, entries: float) -> int:
    """What so many entries of L and U take."""
    return int(entries * (A.dtype.itemsize + 4))


def refuse_entries(A: Any, entries: float, what: str, instead: str) -> None:
    """Raises where so many entries of L and U pass the limit."""
    _refuse_bytes(A, nbytes(A, entries), what, instead)


def _refuse_bytes(A: Any, need: int, what: str = "sparse LU", instead: str = _INSTEAD) -> None:
    limit = config.get("memory_limit")
    if limit is not None and need > limit:
        raise errors.MaterializationError(
            f"{what} of the {A.shape} matrix may need {need:,} bytes; "
            f"pl.config(memory_limit=...) allows {limit:,}: {instead}"
        )


def most_entries(A: Any, how: dict[str, Any]) -> int | None:
    """The entries of L and U at most. None where there is no LU."""
    import scipy.sparse as sp  # type: ignore[import-untyped, unused-ignore]
    from scipy.sparse.linalg import spilu  # type: ignore[import-untyped, unused-ignore]

    try:
        order = spilu(A, drop_tol=1.0, fill_factor=1.0, **how).perm_c
    except RuntimeError:  # singular by how it is written: SuperLU will say so
        return None
    n = A.shape[0]
    row, col = A.indices, order[np.repeat(np.arange(n), np.diff(A.indptr))]
    if how["diag_pivot_thresh"] < 1.0:
        row = order[row]
    else:
        first = np.full(n, n, order.dtype)
        np.minimum.at(first, row, col)
        row, col = col, first[row]
    below = row > col
    ones = np.ones(int(below.sum()), np.int8)
    lower = sp.csr_array((ones, (row[below], col[below])), shape=(n, n))
    start, index = lower.indptr.astype(np.int64), lower.indices.astype(np.int64)
    parent, at = np.empty(n, np.int64), np.empty(n + 1, np.int64)
    _core._select_counts(n, start, index, parent, at)
    return 2 * (int(at[-1]) + int(n))


_MANY = 4  # rows for a column of the right side, at most
_LEAST, _LARGEST = 768, 4096  # rows; below, one factor for all uses is worth more
_SPARSE, _DENSE = 0.7e9, 25e9  # flops a second of solves by SuperLU, and of dense LU; 2026-11-29


def dense_is_sooner(factor: Any, columns: int) -> bool:
    """Are so many columns sooner solved for by the dense form than by this factor, which has filled
    in, as those of random graphs do? Asked once the factor is there: nothing tells before."""
    n, lu = factor.n, getattr(factor, "lu", None)  # that of an update has none of its own
    if lu is None or not _LEAST <= n <= _LARGEST or _MANY * columns < n:
        return False
    limit = config.get("memory_limit")
    if limit is not None and 4 * n * n * factor.A.dtype.itemsize > limit:
        return False
    dense: float = (2 / 3 * n**3 + 2.0 * n**2 * columns) / _DENSE
    return bool(2.0 * lu.nnz * columns / _SPARSE > 2 * dense)
