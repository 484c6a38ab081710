"""Products of operators with scipy.sparse matrices."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._base import config, memory, sparse_arrays
from .._base.lazy_import import Later

_matmul_api = Later("_sparse.matmul_api")


def _no_matmat(op: Any) -> bool:
    return hasattr(op, "_callables") and op._callables[2] is None


def _refuse(op: Any) -> None:
    raise TypeError(
        "Unable to multiply a LinearOperator with a sparse matrix. "
        "Try wrapping the matrix with `aslinearoperator` first."
    )


def _product_room(op: Any, A: Any, B: Any) -> None:
    """Checks the memory limit, where one is set, before two sparse matrices are multiplied."""
    if config.get("memory_limit") is None or A.ndim != 2 or B.ndim != 2:
        return
    if A.shape[1] == B.shape[0]:
        size = _matmul_api.sparse_product_size(A, B)
        memory.room(op, size.nbytes, "the product with a sparse matrix")


def product(op: Any, S: Any) -> Any:
    """op @ S for scipy.sparse S: sparse when op is Sparse, else a lazy operator."""
    if op._head == "sparse":
        A, B = sparse_arrays.matrix_of(op), sparse_arrays.checked(S)
        _product_room(op, A, B)
        return A @ B
    if op._opaque and op._init is None and not op._operands:
        if _no_matmat(op):
            _refuse(op)
        if hasattr(op, "_callables"):
            try:
                return op._callables[2](sparse_arrays.checked(S))
            except Exception:
                _refuse(op)
    return op @ _core.Sparse(S)


def rproduct(op: Any, S: Any) -> Any:
    """S @ op."""
    if op._head == "sparse":
        A, B = sparse_arrays.checked(S), sparse_arrays.matrix_of(op)
        _product_room(op, A, B)
        return A @ B
    if op._opaque and op._init is None and not op._operands and _no_matmat(op):
        _refuse(op)
    return _core.Sparse(S) @ op
