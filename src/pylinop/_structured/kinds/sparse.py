"""Functions of a `Sparse` matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._base import scipy_bridge, sparse_arrays
from ..._base.lengths import length
from ..norms import frobenius, sums
from ..questions import hermitian
from ..singular_values import floats

# -- singular values, norms, eigenvalues --


@hermitian.row("sparse")
def _(op: Any) -> Any:
    if op._init is None or not scipy_bridge.issparse(op._given("A")) or op.dtype.kind in "bui":
        return NotImplemented
    if op.shape[-1] != op.shape[-2]:
        return False
    a = sparse_arrays.matrix_of(op).tocsr()
    return (a != a.conj().T).nnz == 0


# -- norms --


def _entries(op: Any) -> tuple[Any, Any, Any]:
    """Rows, columns and values of a Sparse, without duplicates."""
    a = sparse_arrays.matrix_of(op)
    parts = a.tocsr(copy=True) if a.format != "csr" else a.copy()
    parts.sum_duplicates()
    parts = parts.tocoo()
    return parts.row, parts.col, floats(parts.data)


@sums.row("sparse")
def _(op: Any, axis: int) -> Any:
    if op._init is None or not scipy_bridge.issparse(op._given("A")) or op.dtype.kind in "bui":
        return NotImplemented
    i, j, v = _entries(op)
    own = -1 if axis == -2 else -2
    return np.bincount(j if axis == -2 else i, weights=np.abs(v), minlength=op.shape[own])


@frobenius.row("sparse")
def _(op: Any) -> Any:
    if op._init is None or not scipy_bridge.issparse(op._given("A")) or op.dtype.kind in "bui":
        return NotImplemented
    return length(_entries(op)[2])
