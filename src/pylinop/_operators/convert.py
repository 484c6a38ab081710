"""Conversions: operators from anything, shapes, real and imaginary parts, dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base import dlpack, kind_flags, scipy_bridge, sparse_arrays
from .._fallback import interpreter
from . import pickling

if TYPE_CHECKING:
    from .linear_operator import LinearOperator


def as_array(x: Any) -> Any:
    if isinstance(x, _core.Operator):
        return _dense_parameter(x)
    return dlpack.as_array(x)


def _dense_parameter(x: Any) -> None:
    raise TypeError(f"an array is due here, not an operator ({type(x).__name__} {x.shape})")


def as_shape(shape: Any) -> Any:
    """A shape that a user sets: a tuple of at least two integers, with SciPy's errors."""
    try:
        shape = tuple(int(np.asarray(d).__index__()) for d in tuple(shape))
    except (TypeError, ValueError):
        raise ValueError(
            f"invalid shape {shape!r} (must be a tuple of at least two integers)"
        ) from None
    if len(shape) < 2 or min(shape) < 0:
        raise ValueError(f"invalid shape {shape!r} (must be at least 2-d, sizes not negative)")
    return shape


def kind_shape(shape: Any, square: bool) -> Any:
    """The shape of Identity(n), Identity((n, n)), Zeros((m, n)), Zeros(n).

    ``square`` is the name of a kind that must be square, or None."""
    if isinstance(shape, (bool, np.bool_)) or not hasattr(shape, "__index__"):
        shape = as_shape(shape)
    else:
        shape = as_shape((shape, shape))
    if square and shape[-1] != shape[-2]:
        raise ValueError(f"{square} is square, got shape {shape}")
    if len(shape) > 8:
        raise ValueError(f"at most 8 dimensions, got {len(shape)}")
    return shape


def as_operator(A: Any) -> LinearOperator:
    """``A`` as a pylinop operator: itself, or wrapped without copying."""
    if type(A) is np.ndarray and A.ndim >= 2:  # of which most operators are made
        return _core.Dense(A)
    if isinstance(A, _core.Operator):
        return A  # type: ignore[return-value]  # LinearOperator is its one child
    if scipy_bridge.issparse(A):
        return _core.Sparse(A) if A.ndim == 2 else _core.Dense(sparse_arrays.as_dense(A))
    if dlpack.given(A):
        a = dlpack.taken(A)
        return _core.Dense(a if a.ndim >= 2 else np.atleast_2d(a))
    if (
        isinstance(A, np.ndarray)
        or hasattr(A, "__array_interface__")
        or hasattr(A, "_computed")  # a LazyArray
        or isinstance(A, (list, tuple))
    ):
        if isinstance(A, np.ma.MaskedArray):
            raise TypeError("masked arrays are not taken: fill them first")
        if getattr(A, "_head", None) == "leaf" and A._form is not None:
            as_assumed: LinearOperator = A._form  # with what lazy() was told of the array
            return as_assumed
        a = dlpack.as_array(A) if isinstance(A, np.ndarray) else np.asarray(A)
        return _core.Dense(a if a.ndim >= 2 else np.atleast_2d(a))
    if hasattr(A, "shape") and hasattr(A, "matvec"):
        return make_matvec(A)
    if hasattr(A, "__array__"):
        return as_operator(np.asarray(A))
    raise TypeError(
        f"type not understood: {type(A).__name__} is no array, sparse matrix or operator"
    )


def inverse(A: Any) -> LinearOperator:
    """The inverse of a square operator, lazy."""
    return _core._build("inverse", as_operator(A))


# -- operands of constructors --

_COLUMNS = {"U", "V", "L"}  # parameters that take a vector as a column


def _is_matrix(x: Any, least: int) -> bool:
    if isinstance(x, (list, tuple)):
        return any(isinstance(e, (list, tuple)) or len(getattr(e, "shape", ())) for e in x)
    if isinstance(x, _core.Operator) or scipy_bridge.issparse(x) or hasattr(x, "matvec"):
        return True
    return len(getattr(x, "shape", ())) >= least


def _are_listed(x: Any, least: int) -> bool:
    """Is x a list of matrices, rather than of the rows of one matrix?"""
    return isinstance(x, (list, tuple)) and any(_is_matrix(e, least) for e in x)


def operands_of(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The operands; a single list of matrices stands for the matrices in it, and so does one array
    of three dimensions (of a BlockDiag: the core asks for no other kind)."""
    (only,) = args
    if not isinstance(only, (list, tuple)):
        stacked = isinstance(only, np.ndarray) and only.ndim == 3 and len(only) > 0
        return tuple(only) if stacked else args
    return tuple(only) if len(only) == 0 or _are_listed(only, 1) else args


def operand(A: Any, kind: str, name: str, several: bool) -> LinearOperator:
    """An operand of a kind, but for operators and plain matrices, which the core takes as they are.
    A vector is a column where the kind says so, and never a row."""
    if several and _are_listed(A, 2):
        raise ValueError(
            f"{kind}: {name} is a list of {len(A)} matrices: give them as operands of their own, "
            "or as one array (numpy.stack) where a batch is meant"
        )
    A = as_array(A) if isinstance(A, (list, tuple)) or dlpack.given(A) else A
    if len(getattr(A, "shape", ())) == 1:
        A = sparse_arrays.as_dense(A)
        if name not in _COLUMNS:
            n = A.shape[0]
            raise ValueError(
                f"{kind}: {name} is a vector of shape ({n},), not a matrix: give a[:, None] for a "
                f"column ({n}, 1), a[None, :] for a row (1, {n}), or Diag(a)"
            )
        A = A[:, None]
    return as_operator(A)


def make_matvec(A: Any) -> LinearOperator:
    """An operator around any object with ``shape`` and ``matvec``; its ``matmat`` is used too."""
    return _core._LinearOperator(  # makes a MatVec
        A.shape,
        A.matvec,
        rmatvec=getattr(A, "rmatvec", None),
        matmat=getattr(A, "matmat", None),
        rmatmat=getattr(A, "rmatmat", None),
        dtype=getattr(A, "dtype", None),
    )


# -- small forms --


def _is_real(op: Any) -> bool:
    return op.dtype is not None and op.dtype.kind != "c"


def real_part(op: Any) -> LinearOperator:
    return op if _is_real(op) else _core._build("part", op, None, 0)


def imag_part(op: Any) -> LinearOperator:
    if _is_real(op):
        zeros = _core.Zeros(op.shape, None if op._weak else op.dtype)
        made: LinearOperator = zeros * 1.0 if op._weak > 2 else zeros  # of floats: floats at least
        return made
    return _core._build("part", op, None, 1)


def astype(op: Any, dtype: Any, copy: bool) -> LinearOperator:
    made: LinearOperator
    dtype = np.dtype(dtype)
    if op.dtype == dtype and not op._weak:
        made = op.copy() if copy else op
        return made
    if op._init is not None and op._head == "sparse":
        return _core.Sparse(scipy_bridge.cast(sparse_arrays.matrix_of(op), dtype))
    if op._head == "view" and op._by == "view" and not op._opaque:
        return _core._build("view", astype(op._operands[0], dtype, copy), None, op._mode)
    if op._head == "kernel" and dtype.kind == "c":  # its points stay real
        return astype(op, np.dtype(dtype.char.lower()), False) @ _core.Identity(op.shape[-1], dtype)
    if op._init is not None and op._head != "opaque" and _casts_in_place(op, dtype):
        if (
            op._head == "dense" and op._given("assume_a") == "orthogonal"
        ):  # to the precision it was given in
            return _core.Dense(op._given("a").astype(dtype))
        made = pickling.rebuilt(op, lambda a: a.astype(dtype), dtype)
        return made
    if np.can_cast(op.dtype, dtype, "same_kind") and np.result_type(op.dtype, dtype) == dtype:
        made = op @ _core.Identity(op.shape[-1], dtype)
        return made
    return _core.Dense(interpreter.toarray(op).astype(dtype))


# Kinds of which each entry is a parameter, an entry of an operand, or 0.
_ENTRIES = kind_flags.heads("entries")


def _casts_in_place(op: Any, dtype: Any) -> bool:
    """Can a kind be cast by casting its parameters? Not where fractions or imaginary parts are cut
    off and entries are products of parameters."""
    return op._head in _ENTRIES or op.dtype is None or np.can_cast(op.dtype, dtype, "same_kind")


_PLAIN = frozenset((str, bool, int, float, complex))


def arrays_of(op: Any) -> Any:
    found, stack, seen = [], [op], set()
    while stack:
        o = stack.pop()
        if id(o) in seen:
            continue
        seen.add(id(o))
        for p in (*o._operands, *(o._init or ())):
            if p is None or type(p) in _PLAIN:
                continue
            if isinstance(p, _core.Operator):
                stack.append(p)
            elif isinstance(p, np.ndarray):
                if id(p) not in seen:
                    seen.add(id(p))
                    found.append(p)
            elif scipy_bridge.issparse(p) and id(p) not in seen:
                seen.add(id(p))
                found += o._arrays
    return found


def nbytes(op: Any) -> int:
    return sum(a.nbytes for a in arrays_of(op))


def bounded(op: Any, i: Any, j: Any) -> tuple[Any, Any]:
    """The indices of one element, checked and counted from 0."""
    for at, size in ((i, op.shape[-2]), (j, op.shape[-1])):
        if not -size <= at < size:
            raise IndexError(
                f"index {at} is out of bounds for size {size} (operator of shape {op.shape})"
            )
    return i % op.shape[-2], j % op.shape[-1]
