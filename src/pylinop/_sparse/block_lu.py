"""LU of a matrix of blocks that are zero below the diagonal, with pivots on the diagonal or, of
rows and columns exchanged within each block, on that of what they are then (blocks.py)."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import fill
from .checked import scipy_sparse

_ON_DIAGONAL = {
    "permc_spec": "MMD_AT_PLUS_A",
    "diag_pivot_thresh": 0.0,
    "options": {"SymmetricMode": True},
}
_AS_IT_STANDS = {**_ON_DIAGONAL, "permc_spec": "NATURAL"}
_EXCHANGED = {"permc_spec": "COLAMD", "diag_pivot_thresh": 1.0}


def factored(A: Any, blocks: int, exchanged: bool) -> Any:
    """SuperLU's factor of A, CSC with small indices; None: a pivot was zero."""
    return _exchanged(A, blocks) if exchanged else _made(A, _ON_DIAGONAL)


def _made(A: Any, how: dict[str, Any]) -> Any:
    from scipy.sparse.linalg import splu  # type: ignore[import-untyped, unused-ignore]

    fill.refuse(A, how)
    try:
        lu = splu(A, **how)
    except RuntimeError as error:
        if "singular" not in str(error).lower():
            raise MemoryError(f"sparse LU of {A.shape} failed: {error}") from None
        return None
    away = how["diag_pivot_thresh"] == 0.0 and not np.array_equal(lu.perm_r, lu.perm_c)
    return None if away else lu


def _exchanged(A: Any, blocks: int) -> Any:
    h = A.shape[0] // blocks
    row, col = np.empty(A.shape[0], np.int64), np.empty(A.shape[0], np.int64)
    before: Any = None
    for k in range(blocks):
        part = slice(k * h, (k + 1) * h)
        own = A[part, part]
        if before is None or (own != before[0]).nnz:
            lu = _made(own, _EXCHANGED)
            if lu is None:
                return None
            before = own, lu.perm_r.astype(np.int64), lu.perm_c.astype(np.int64)
        row[part], col[part] = before[1] * blocks + k, before[2] * blocks + k
    C = A.tocoo()
    ix = A.indices.dtype
    at = row[C.coords[0]].astype(ix), col[C.coords[1]].astype(ix)
    lu = _made(scipy_sparse().csc_array((C.data, at), shape=A.shape), _AS_IT_STANDS)
    return None if lu is None else Exchanged(lu, row, col)


class Exchanged:
    """The factor of a matrix by that of one with its rows and columns at these places; with the
    members of SuperLU's."""

    def __init__(self, lu: Any, row: Any, col: Any) -> None:
        self.own, self.row, self.col = lu, row, col
        self.shape, self.nnz, self.L, self.U = lu.shape, lu.nnz, lu.L, lu.U
        self.perm_r, self.perm_c = lu.perm_r[row], lu.perm_c[col]

    def solve(self, b: Any, mode: str) -> Any:
        into, out = (self.row, self.col) if mode == "N" else (self.col, self.row)
        moved = np.empty_like(b, order="F")
        moved[into] = b
        return self.own.solve(moved, mode)[out]
