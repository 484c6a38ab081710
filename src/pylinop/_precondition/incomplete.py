"""Preconditioners of sparse matrices: SSOR and incomplete Cholesky, by triangular solves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base.errors import NotFit
from .._base.memory import room
from .._operators.convert import inverse
from .terms import is_hermitian, positive_part, sparse_of, told

if TYPE_CHECKING:
    from .._operators.linear_operator import LinearOperator


def _hermitian(op: Any, name: str) -> tuple[Any, Any]:
    """The CSR array and its diagonal; NotFit where it is not Hermitian with a positive diagonal."""
    S = sparse_of(op)
    if not is_hermitian(S):
        raise NotFit(f"{name}: the matrix is not Hermitian")
    d = S.diagonal()
    real = positive_part(d)
    if real is None:
        at = int(np.flatnonzero(~(d.real > 0))[0]) if (~(d.real > 0)).any() else 0
        raise NotFit(f"{name}: element {at} of the diagonal, {d[at]:.3g}, is not positive")
    return S, real


def ssor(op: Any, omega: float = 1.0) -> LinearOperator:
    """Symmetric successive over-relaxation: a sweep forward and one back (Young 1971).

    M = (2 - w) / w  (D/w + U)^-1 D (D/w + L)^-1. With w = 1 the matrix's own arrays are read."""
    if not 0 < omega < 2:
        raise ValueError(f"omega must lie between 0 and 2, got {omega}")
    S, d = _hermitian(op, "ssor")
    nbytes = d.nbytes
    if omega != 1:
        room(op, S.data.nbytes + S.indices.nbytes + S.indptr.nbytes + d.nbytes, "ssor")
        S = S.copy()
        S.sum_duplicates()
        S.setdiag(d / omega)
        nbytes += S.data.nbytes + S.indices.nbytes + S.indptr.nbytes
    A = _core.Sparse(S)
    below, above = _core.SparseTriangular(A), _core.SparseTriangular(A, False)
    middle = _core.Diag((d * ((2 - omega) / omega)).astype(d.dtype))
    M = inverse(above) @ middle @ inverse(below)
    return told(M, op, "ssor", f"a sweep forward and one back, omega {omega}", True, nbytes)


def incomplete_cholesky(
    op: Any,
    drop: float | None = None,
    fill: int | None = None,
    shift: float = 0.0,
    why: str = "",
) -> LinearOperator:
    """L L^H near A: on A's own pattern, or (with drop or fill) by dual dropping.

    Where a pivot is not positive, the diagonal is multiplied by 1 + shift, with shift starting at
    1e-3 and doubled until the factorisation succeeds (Manteuffel 1980; Lin and More 1999)."""
    import scipy.sparse as sp  # type: ignore[import-untyped, unused-ignore]

    dual = drop is not None or fill is not None
    name = "ict" if dual else "ic"
    keep = -1 if not dual else 10 if fill is None else int(fill)
    tolerance = (1e-3 if dual else 0.0) if drop is None else float(drop)
    if shift < 0 or tolerance < 0 or (dual and keep < 0):
        raise ValueError(
            f"shift, drop and fill must not be negative, got {shift}, {drop} and {fill}"
        )
    S, _ = _hermitian(op, name)
    lower = sp.tril(S, format="csc")
    lower.sum_duplicates()
    n, nnz = S.shape[0], lower.nnz
    size = nnz + max(keep, 0) * n
    room(op, size * (lower.dtype.itemsize + 8) + 2 * nnz * 16 + 64 * n, "incomplete Cholesky")
    index, ptr = lower.indices.astype(np.int64), lower.indptr.astype(np.int64)
    out = np.empty(n + 1, np.int64), np.empty(size, np.int64), np.empty(size, lower.dtype)
    data, used, tries, broke = np.ascontiguousarray(lower.data), float(shift), 0, -1
    while tries < 60:
        where = _core._ichol(lower.dtype.char, n, ptr, index, data, *out, used, tolerance, keep)
        if where < 0:
            break
        tries, broke = tries + 1, where if broke < 0 else broke
        used = max(1e-3, 2 * used)
    else:
        raise NotFit(f"{name}: no shift up to {used:.2g} gives positive pivots")
    kept = int(out[0][-1])
    small = np.int32 if max(kept, n) < 2**31 else np.int64
    arrays = out[2][:kept].copy(), out[1][:kept].astype(small), out[0].astype(small)
    L = _core.SparseTriangular(_core.Sparse(sp.csc_array(arrays, shape=(n, n))))
    M = inverse(L.H) @ inverse(L)
    why = why or ("incomplete Cholesky" + ("" if dual else " on A's own pattern"))
    if tries:
        why += f"; pivot {broke} was not positive: shifted"
    nbytes = sum(a.nbytes for a in arrays)
    return told(M, op, name, why, True, nbytes, shift=used, nnz=kept)
