"""Cholesky factors of sparse matrices that stay sparse.

SuperLU factors in the given order of the rows, without exchanges: L D L^H with D real and positive.
There is no reordering, since a triangle in a different order is not a Cholesky factor of A."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._base import config, errors
from .._base.dtypes import inexact
from .._operators.parameters import written
from .._sparse.tosparse import FEW
from .cholesky import cholesky, not_definite, real_diagonal

_ROWS, _SHARE, _PARTS = 400, 16, 96  # as where solves go by a sparse factor


def _is_written_sparse(op: Any) -> bool:
    """Is it made of sparse leaves by sums, multiples and views only?"""
    stack, seen = [op], 0
    while stack and seen < _PARTS:
        o = stack.pop()
        seen += 1
        if written(o, "sum", "scaled", "view"):
            stack += [p for p in o._operands if isinstance(p, _core.Operator)]
        elif o._head not in FEW:
            return False
    return not stack


def matrix_of(op: Any) -> Any:
    """A large square matrix with few entries, as CSC; None for others."""
    n = op.shape[-1]
    if op.ndim != 2 or op.shape[-2] != n or n < _ROWS or not _is_written_sparse(op):
        return None
    try:
        a = op.tosparse("csc")
    except ImportError:
        return None
    return a.astype(inexact(op.dtype)) if a.nnz <= n * n // _SHARE else None


def _envelope(a: Any) -> int:
    """How many elements lie between the first of each row and the diagonal: no fill lies
    outside."""
    n = a.shape[0]
    first = np.arange(n)
    rows, columns = a.nonzero()
    np.minimum.at(first, rows, columns)
    return int((np.arange(n) - first).sum()) + int(n)


def _refuse_fill(op: Any, most: int) -> None:
    """Raises where the factor, and SuperLU's memory beside it, might not fit."""
    limit = config.get("memory_limit")
    free = limit if limit is not None else config.free_memory()
    if free is not None and most > free:
        text = (
            f"a Cholesky factor in the order of its rows may take {most:,} bytes where {free:,} "
            "are allowed: bring the entries nearer to the diagonal"
        )
        raise errors.make_error("MaterializationError", text, op, "factor", -1)


def is_hermitian(a: Any) -> bool:
    return bool(abs(a - a.conj().T).max() == 0)


def factor_of(op: Any, a: Any, uplo: str) -> Any:
    """The lower factor of the Hermitian matrix that one triangle of ``a`` stands for."""
    import scipy.sparse as sp  # type: ignore[import-untyped, unused-ignore]
    from scipy.sparse.linalg import splu  # type: ignore[import-untyped, unused-ignore]

    n, dtype = a.shape[0], a.dtype
    low = sp.tril(a if uplo == "L" else a.conj().T, format="csc")
    main = real_diagonal(low.diagonal())
    if not (main > 0).all():  # nor NaN
        raise not_definite(True)
    below = sp.tril(low, -1, format="csc")
    if not np.isfinite(below.data).all() or not np.isfinite(main).all():
        raise not_definite(True)
    _refuse_fill(op, 2 * _envelope(low) * (dtype.itemsize + 4))
    whole = (below + below.conj().T + sp.diags_array(main.astype(dtype))).tocsc()
    whole.indices, whole.indptr = whole.indices.astype(np.intc), whole.indptr.astype(np.intc)
    try:
        found = splu(
            whole,
            permc_spec="NATURAL",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True, "Equil": False},
        )
    except RuntimeError:  # exactly singular
        raise not_definite(True) from None
    pivots = found.U.diagonal()
    order = np.arange(n)
    exchanged = (found.perm_r != order).any() or (found.perm_c != order).any()
    if exchanged or not (pivots.real > 0).all():
        raise not_definite(True)
    low = found.L.tocsc()
    low.data = low.data * np.repeat(np.sqrt(pivots.real), np.diff(low.indptr)).astype(dtype)
    low.sort_indices()
    return _core.SparseTriangular(low, True)


@cholesky.row(
    "sparse",
    "laplacian",
    "sum",
    how="sparse ones of 400 rows or more: SuperLU, rows as they stand; a SparseTriangular",
    cost="its fill",
    kept=True,
)
def _of_sparse(op: Any, uplo: str) -> Any:
    a = matrix_of(op)
    return NotImplemented if a is None else factor_of(op, a, uplo)
