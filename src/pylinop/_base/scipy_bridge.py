"""SciPy's sparse matrices, operators and isinstance. This module never imports SciPy itself."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

import numpy as np

from .. import _core
from . import sparse_arrays

_FORMATS = {"csr": 0, "csc": 1, "coo": 2}


def issparse(x: Any) -> bool:
    """Is x a scipy.sparse matrix or array? (False as long as scipy.sparse is not loaded.)"""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and hasattr(sparse, "issparse") and bool(sparse.issparse(x))


def is_scipy_operator(x: Any) -> bool:
    base = _scipy_class()
    return base is not None and isinstance(x, base) and not isinstance(x, _core.Operator)


def _scipy_class() -> Any:
    interface = sys.modules.get("scipy.sparse.linalg._interface")
    return getattr(interface, "LinearOperator", None)


_shadows: dict[Any, Any] = {}


def shadow(cls: Any) -> Any:
    """The class ``op.__class__`` answers with: ``cls``, and SciPy's too once that is loaded.

    It has our name and module, calling it builds our class, and each class has one."""
    base = _scipy_class()
    if base is None:
        return cls
    found = _shadows.get(cls)
    if found is None:
        if issubclass(cls, base):
            return cls

        def __new__(shadow_cls: Any, *args: Any, **kwargs: Any) -> Any:
            return cls(*args, **kwargs)

        found = type(cls.__name__, (cls, base), {"__new__": __new__, "__doc__": cls.__doc__})
        found.__module__ = cls.__module__
        found.__qualname__ = cls.__qualname__
        _shadows[cls] = found
    return found


def real_class(cls: Any) -> Any:
    """The class behind a shadow."""
    for real, made in _shadows.items():
        if made is cls:
            return real
    return cls


def cast(S: Any, dtype: Any) -> Any:
    """Casts a scipy.sparse array to a dtype; duplicate entries are added first."""
    if not getattr(S, "has_canonical_format", True):
        S = S.copy()
        S.sum_duplicates()
    return S.astype(dtype)


def parts_of_sparse(A: Any, data: Any = None) -> Any:
    """Arrays and numbers of a scipy.sparse matrix: (data, indices, indptr) or (data, row, col);
    `data` in place of its own where that is given."""
    if not issparse(A):
        raise TypeError(
            f"Sparse takes a scipy.sparse matrix, got {type(A).__name__}; arrays go to Dense"
        )
    if A.ndim != 2:
        raise ValueError(f"Sparse takes a 2-dimensional matrix, got shape {A.shape}")
    layout = A.format
    if layout not in _FORMATS:
        A = sparse_arrays.checked(A).tocsr()
    m, n = A.shape
    arrays = sparse_arrays.parts_of(A)
    if data is not None:
        if layout not in _FORMATS:
            raise ValueError(
                f"Sparse(A, data=...): the order of the numbers of a {layout!r} matrix is not that "
                "of its operator: give A.tocsr(), A.tocsc() or A.tocoo()"
            )
        if data.shape != arrays[0].shape:
            raise ValueError(
                f"Sparse(A, data=...): {data.shape} numbers for {arrays[0].shape} entries of A"
            )
        arrays = (data, *arrays[1:])
    return tuple(np.asarray(v) for v in arrays), (_FORMATS[A.format], m, n)


def sparse_ready() -> int:
    """Which sparse solvers there are: 0 none, 1 SciPy's SuperLU, 2 CHOLMOD too. Looked up once."""
    if find_spec("scipy") is None:
        return 0
    return 2 if find_spec("sksparse") is not None else 1
