"""Checks scipy.sparse matrices before loops that trust their indices get them.

SciPy checks the arrays of a matrix when it is built, and never again: its loops, SuperLU's and
csgraph's read and write wherever the indices say. So indices that were overwritten since may crash
the process. Every path by which a user's matrix comes to these loops goes through `checked` or
`matrix_of`.

Cost: the pointers and the indices are read once; nothing is copied, except when arrays are longer
than the entries in use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .dlpack import as_array

if TYPE_CHECKING:
    from .._core import Operator

_LAYOUTS = ("csr", "csc", "coo")


def _sp() -> Any:
    import scipy.sparse  # type: ignore[import-untyped, unused-ignore]

    return scipy.sparse


# -- looks at arrays -------------------------------------------------------------------------------


def _vector(a: Any, what: str, shape: tuple[int, ...]) -> Any:
    a = np.asarray(a)
    if a.ndim != 1 or a.dtype.kind not in "iu":
        raise ValueError(
            f"{what} of a sparse matrix of shape {shape} must be a vector of integers, got "
            f"shape {a.shape} of {a.dtype}"
        )
    return a


def within(index: Any, size: int, shape: tuple[int, ...], what: str = "index") -> None:
    """IndexError where one of the indices is negative, or not below the size."""
    index = _vector(index, f"the {what} array", shape)
    if index.size == 0:
        return
    low, high = int(index.min()), int(index.max())
    if low < 0 or high >= size:
        raise IndexError(
            f"a sparse index is out of bounds: {low if low < 0 else high} where {size} is the "
            f"size, in a matrix of shape {shape}; its arrays were written to since it was built"
        )


def pointers(ptr: Any, major: int, room: int, shape: tuple[int, ...]) -> int:
    """How many entries indptr speaks of; IndexError where it does not begin with 0, falls, or
    passes the entries that are there."""
    ptr = _vector(ptr, "indptr", shape)
    if ptr.size != major + 1:
        raise ValueError(
            f"indptr has {ptr.size} elements where a sparse matrix of shape {shape} takes "
            f"{major + 1}"
        )
    if ptr[0] != 0:
        raise IndexError(f"indptr begins with {ptr[0]}, not 0, in a matrix of shape {shape}")
    falls = ptr[1:] < ptr[:-1]
    if falls.any():
        at = int(falls.argmax())
        raise IndexError(
            f"indptr is not increasing: {ptr[at]} and then {ptr[at + 1]} at {at}, in a matrix of "
            f"shape {shape}"
        )
    last = int(ptr[-1])
    if last > room:
        raise IndexError(
            f"indptr ends with {last} where there are {room} entries, in a matrix of shape {shape}"
        )
    return last


def _compressed(S: Any, block: tuple[int, int] = (1, 1)) -> Any:
    """CSR, CSC and BSR: the matrix, or a copy without what lies behind its last entry."""
    shape = tuple(S.shape)
    sizes = [n // b for n, b in zip(((1,) + shape)[-2:], block)]
    major, minor = sizes[::-1] if S.format == "csc" else sizes
    if any(n % b for n, b in zip(((1,) + shape)[-2:], block)):
        raise ValueError(f"blocks of {block} do not make a matrix of shape {shape}")
    nnz = pointers(S.indptr, major, min(len(S.indices), len(S.data)), shape)
    index, data = S.indices[:nnz], S.data[:nnz]
    within(index, minor, shape)
    if len(S.indices) == len(S.data) == nnz:
        return S
    return type(S)((data, index, S.indptr), shape=shape)


def _bsr(S: Any) -> Any:
    if S.data.ndim != 3 or 0 in S.data.shape[1:]:
        raise ValueError(f"blocks of shape {S.data.shape} do not make a matrix of {S.shape}")
    return _compressed(S, S.data.shape[1:])


def _coo(S: Any) -> Any:
    shape, at = tuple(S.shape), _coordinates(S)
    if len(at) != len(shape) or any(len(a) != len(S.data) for a in at):
        raise ValueError(
            f"{len(S.data)} entries with coordinates of lengths {[len(a) for a in at]} do not make "
            f"a sparse matrix of shape {shape}"
        )
    for a, size in zip(at, shape):
        within(a, size, shape, "coordinate")
    return S


def _coordinates(S: Any) -> tuple[Any, ...]:
    return tuple(S.coords) if hasattr(S, "coords") else (S.row, S.col)


def _dia(S: Any) -> Any:
    at = _vector(S.offsets, "offsets", tuple(S.shape))
    if S.data.ndim != 2 or len(S.data) != len(at):
        raise ValueError(f"{len(at)} offsets do not fit diagonals of shape {S.data.shape}")
    return S


def _lil(S: Any) -> Any:
    here = len(S.rows), len(S.data), *{len(r) - len(d) for r, d in zip(S.rows, S.data)} - {0}
    if here != (S.shape[0], S.shape[0]):
        raise ValueError(f"the lists of a LIL matrix do not make one of shape {S.shape}")
    return checked(S.tocsr())


_LOOKS: dict[str, Any] = {
    "csr": _compressed,
    "csc": _compressed,
    "bsr": _bsr,
    "coo": _coo,
    "dia": _dia,
    "lil": _lil,
}


def checked(S: Any) -> Any:
    """A scipy.sparse matrix whose indices stay within it: S itself wherever possible.

    IndexError, with the numbers, where indices or pointers leave the matrix; ValueError where the
    arrays' lengths do not fit its shape."""
    look = _LOOKS.get(S.format)
    return S if look is None else look(S)  # a dictionary of keys is checked as it is read


# -- the matrix of an operator ---------------------------------------------------------------------


def parts_of(S: Any) -> tuple[Any, ...]:
    """(data, indices, indptr) or (data, row, col)."""
    return (S.data, *_coordinates(S)) if S.format == "coo" else (S.data, S.indices, S.indptr)


def made(layout: str, parts: tuple[Any, ...], shape: tuple[int, int]) -> Any:
    """A scipy.sparse array on these very arrays; SciPy's constructor might copy indices."""
    S = getattr(_sp(), layout + "_array")(shape)
    if layout == "coo":
        S.data, S.has_canonical_format = parts[0], False
        if hasattr(S, "coords"):
            S.coords = parts[1:]
        else:
            S.row, S.col = parts[1:]
    else:
        S.data, S.indices, S.indptr = parts
    return S


def _is(a: Any, b: Any) -> bool:
    """Are they the same elements of the same memory?"""
    return a is b or (
        a.__array_interface__["data"] == b.__array_interface__["data"]
        and (a.shape, a.strides, a.dtype) == (b.shape, b.strides, b.dtype)
    )


def matrix_of(op: Operator) -> Any:
    """The matrix of a `Sparse`, on the arrays and the shape that its products use, checked.

    That is the user's own matrix as long as it has these arrays. If its arrays were replaced, or
    its shape was changed, the operator still stands for what it was made of."""
    S, held, (m, n) = op._given("A"), op._arrays, op.shape
    shape = (m, n)
    layout = S.format if S.format in _LAYOUTS else "csr"
    if layout == S.format and tuple(S.shape) == shape:
        if all(isinstance(a, np.ndarray) and _is(a, b) for a, b in zip(parts_of(S), held)):
            return checked(S)
    return checked(made(layout, held, shape))


def renewed(S: Any) -> Any:
    """A CSR or CSC on the same arrays that has not looked yet whether they are sorted."""
    return made(S.format, parts_of(S), S.shape)


def as_dense(x: Any) -> Any:
    """The dense array of x if it is a scipy.sparse matrix, else x."""
    return checked(x).toarray() if hasattr(x, "toarray") and hasattr(x, "nnz") else as_array(x)
