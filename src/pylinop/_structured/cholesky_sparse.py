"""Cholesky factors of sparse matrices that stay sparse.

SuperLU factors in the given order of the rows, without exchanges: L D L^H with D real and positive.
There is no reordering, since a triangle in a different order is not a Cholesky factor of A."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _core
from .._base import config, errors
from .._base.dtypes import inexact
from .._base.kind_flags import OF_PARTS
from .._operators.parameters import factors, written
from .._sparse.tosparse import FEW
from .cholesky import cholesky, not_definite, real_diagonal

_ROWS, _SHARE, _PARTS = 400, 16, 96  # as where solves go by a sparse factor
_A_ROW, _FILLED = 8000, 0.5  # flops that a row takes, and a pair of entries of its envelope


def _entries(op: Any, left: list[int]) -> float:
    """How many entries ``op`` has at most, going by how it is written: sums, products, multiples,
    views, Krons and blocks of sparse leaves; inf for others, and for more than `_PARTS` parts. An
    entry of a product's left factor meets a mean row of the right one."""
    left[0] -= 1
    if left[0] < 0 or op.ndim != 2:
        return math.inf
    if written(op, "sum", "scaled", "view"):
        return sum(_entries(p, left) for p in op._operands if isinstance(p, _core.Operator))
    if written(op, "prod"):
        a, b = op._operands
        both = _entries(a, left) * _entries(b, left)
        return both / a.shape[1] if a.shape[1] else 0.0
    if op._head in OF_PARTS and (op._init is not None or op._by in ("prod", "view")):
        parts = factors(op)
        each = [_entries(p, left) for p in parts]
        return math.prod(each) if op._head == "kron" else sum(each)
    return float(op.tosparse().nnz) if op._head in FEW else math.inf


def is_sparse(op: Any) -> bool:
    """Is it large and square, with few entries by how it is written?"""
    n = op.shape[-1]
    if op.ndim != 2 or op.shape[-2] != n or n < _ROWS:
        return False
    try:
        return bool(_entries(op, [_PARTS]) <= n * n)  # nor NaN
    except ImportError:
        return False


def matrix_of(op: Any) -> Any:
    """A large square matrix with few entries, as CSC; None for others."""
    if not is_sparse(op):
        return None
    n = op.shape[-1]
    try:
        a = op.tosparse("csc")
    except ImportError:
        return None
    return a.astype(inexact(op.dtype)) if a.nnz <= n * n // _SHARE else None


def _envelope(a: Any) -> Any:
    """How far the first element of each row is from the diagonal: no fill lies further."""
    n = a.shape[0]
    first = np.arange(n)
    rows, columns = a.nonzero()
    np.minimum.at(first, rows, columns)
    return np.arange(n) - first


def price(op: Any, *args: Any) -> str | None:
    """The cost, by the envelope, as SuperLU and the reading of the pattern were measured to take
    (2026-11-26); None of what is not sparse."""
    a = matrix_of(op)
    if a is None:
        return None
    wide = _envelope(a).astype(float)
    return f"{_A_ROW} n, {_FILLED * float(wide @ wide):.0f}"


def asks(op: Any, *args: Any) -> Any:
    """What the rows ask: nothing, or None where they refuse."""
    return [] if is_sparse(op) else None


def _refuse_fill(op: Any, most: int) -> None:
    """Raises where the factor, and SuperLU's memory beside it, might not fit."""
    limit = config.get("memory_limit")
    free = limit if limit is not None else config.free_memory()
    if free is not None and most > free:
        text = (
            f"a Cholesky factor in the order of its rows, and SuperLU's memory beside it, may take "
            f"{most:,} bytes where {free:,} are allowed: bring the entries nearer to the diagonal"
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
    fill = int(_envelope(low).sum()) + n
    _refuse_fill(op, 5 * fill * (dtype.itemsize + 4))  # 4.4 of a Laplacian, 2026-11-26
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
    cost="O(n w^2); w the envelope's mean width",
    kept=True,
    asks=asks,
    instead=price,
)
def _of_sparse(op: Any, uplo: str) -> Any:
    a = matrix_of(op)
    return NotImplemented if a is None else factor_of(op, a, uplo)
