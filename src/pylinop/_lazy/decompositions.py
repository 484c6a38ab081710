"""NumPy's decompositions of LazyArrays, deferred: computed from the operator form, so that its
structure counts, once for all of a function's results.

A function of several results is one node, whose value holds them one after the other, as bytes;
each result is a node that takes its own from there."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._base import errors
from .._base.dtypes import inexact, real_of

_ONE = np.ones((1, 1))
_Eig, _Eigh = type(np.linalg.eig(_ONE)), type(np.linalg.eigh(_ONE))
_Svd, _Qr = type(np.linalg.svd(_ONE)), type(np.linalg.qr(_ONE))
_Part = tuple[tuple[int, ...], np.dtype[Any]]  # shape, dtype
_MOST = 8  # dimensions of an operator


class Function:
    """``np.linalg.<name>`` of an operator form, its results in one array of bytes if `parts` says
    what they are."""

    def __init__(self, name: str, parts: tuple[_Part, ...] | None = None) -> None:
        self.name, self.parts = name, parts
        self.__name__ = f"linalg.{name}"

    def __call__(self, form: Any, **kwargs: Any) -> Any:
        found = getattr(np.linalg, self.name)(form, **kwargs)
        if self.parts is None:
            return np.asarray(found)
        made = [
            np.ascontiguousarray(np.broadcast_to(np.asarray(x), shape), dtype)
            for x, (shape, dtype) in zip(found, self.parts, strict=True)
        ]
        return np.concatenate([x.reshape(-1).view(np.uint8) for x in made])


class Result:
    """One of the results that a `Function` has packed."""

    def __init__(self, name: str, part: _Part, start: int, at: int) -> None:
        self.__name__, self.part, self.start, self.at = name, part, start, at

    def __call__(self, packed: Any) -> Any:
        shape, dtype = self.part
        stop = self.start + math.prod(shape) * dtype.itemsize
        return packed[self.start : stop].copy().view(dtype).reshape(shape)


def _is_deferred(a: Any) -> bool:
    return 2 <= a.ndim <= _MOST and a.dtype.char != "e" and a.dtype.kind in "biufc"


def is_number(x: Any) -> bool:
    """Is a tolerance a number, or not given?"""
    return x is None or isinstance(x, (int, float, np.integer, np.floating))


def _square(a: Any) -> None:
    if a.shape[-1] != a.shape[-2]:
        raise errors.LinAlgError(
            f"Last 2 dimensions of the array must be square: {a.shape}" + errors.built(a)
        )


def _one(name: str, a: Any, shape: Any, dtype: Any, kwargs: dict[str, Any]) -> Any:
    return _core._LazyArray("of form", (a,), shape, dtype, (Function(name), kwargs))


def _several(
    name: str, a: Any, parts: dict[str, _Part], kwargs: dict[str, Any], named: Callable[..., Any]
) -> Any:
    specs = tuple(parts.values())
    sizes = [math.prod(shape) * dtype.itemsize for shape, dtype in specs]
    whole = Function(name, specs)
    packed = _core._LazyArray("of form", (a,), (sum(sizes),), np.dtype(np.uint8), (whole, kwargs))
    made = []
    for k, (part, spec) in enumerate(parts.items()):
        f = Result(part, spec, sum(sizes[:k]), k)
        made.append(_core._LazyArray("call", (packed,), *spec, (f, {})))
    return named(*made)


def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    if not _is_deferred(a):
        return NotImplemented
    _square(a)
    return _one("cholesky", a, a.shape, inexact(a.dtype), {"upper": True} if upper else {})


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, **more: Any) -> Any:
    rtol = {} if more.get("rtol") is np._NoValue else more
    if (
        not _is_deferred(a)
        or not all(map(is_number, (rcond, *rtol.values())))
        or more.keys() - {"rtol"}
    ):
        return NotImplemented
    if hermitian and 0 not in a.shape[-2:]:  # NumPy asks nothing of an empty matrix
        _square(a)
    if rcond is not None and rtol:
        return NotImplemented  # NumPy refuses both
    how = (
        rtol
        | ({"rcond": rcond} if rcond is not None else {})
        | ({"hermitian": True} if hermitian else {})
    )
    shape = (*a.shape[:-2], a.shape[-1], a.shape[-2])
    return _one("pinv", a, shape, inexact(a.dtype), how)


def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    if not _is_deferred(a):
        return NotImplemented
    _square(a)
    return _one("eigvalsh", a, a.shape[:-1], real_of(inexact(a.dtype)), {"UPLO": UPLO})


def eigvals(a: Any) -> Any:
    """Of complex matrices: whether those of a real one are real, the values say."""
    if not _is_deferred(a) or a.dtype.kind != "c":
        return NotImplemented
    _square(a)
    return _one("eigvals", a, a.shape[:-1], inexact(a.dtype), {})


def eig(a: Any) -> Any:
    if not _is_deferred(a) or a.dtype.kind != "c":
        return NotImplemented
    _square(a)
    dtype = inexact(a.dtype)
    parts = {"eigenvalues": (a.shape[:-1], dtype), "eigenvectors": (a.shape, dtype)}
    return _several("eig", a, parts, {}, _Eig)


def svdvals(x: Any, /) -> Any:
    if not _is_deferred(x):
        return NotImplemented
    shape = (*x.shape[:-2], min(x.shape[-2:]))
    return _one("svdvals", x, shape, real_of(inexact(x.dtype)), {})


def eigh(a: Any, UPLO: str = "L") -> Any:
    if not _is_deferred(a):
        return NotImplemented
    _square(a)
    dtype = inexact(a.dtype)
    parts = {"eigenvalues": (a.shape[:-1], real_of(dtype)), "eigenvectors": (a.shape, dtype)}
    return _several("eigh", a, parts, {"UPLO": UPLO}, _Eigh)


def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    if not _is_deferred(a) or hermitian:
        return NotImplemented
    if not compute_uv:
        return svdvals(a)
    *batch, m, n = a.shape
    k, dtype = min(m, n), inexact(a.dtype)
    parts: dict[str, _Part] = {
        "U": ((*batch, m, m if full_matrices else k), dtype),
        "S": ((*batch, k), real_of(dtype)),
        "Vh": ((*batch, n if full_matrices else k, n), dtype),
    }
    return _several("svd", a, parts, {"full_matrices": full_matrices}, _Svd)


def qr(a: Any, mode: str = "reduced") -> Any:
    if not _is_deferred(a) or mode not in ("reduced", "complete", "r"):
        return NotImplemented
    *batch, m, n = a.shape
    k, dtype = min(m, n), inexact(a.dtype)
    if mode == "r":
        return _one("qr", a, (*batch, k, n), dtype, {"mode": "r"})
    inner = m if mode == "complete" else k
    parts: dict[str, _Part] = {"Q": ((*batch, m, inner), dtype), "R": ((*batch, inner, n), dtype)}
    return _several("qr", a, parts, {"mode": mode}, _Qr)


def _vector_norm(x: Any, ord: Any, axis: Any, keepdims: bool) -> Any:
    """The norm of vectors along one axis, or of all elements."""
    if axis is None and ord is None:
        shape = (1,) * x.ndim if keepdims else ()
    else:
        at = np.lib.array_utils.normalize_axis_tuple(0 if axis is None else axis, x.ndim)
        if len(at) != 1 or (axis is None and x.ndim != 1) or isinstance(ord, str):
            return NotImplemented
        axis, kept = at[0], list(x.shape)
        kept[axis] = 1
        shape = tuple(kept) if keepdims else x.shape[:axis] + x.shape[axis + 1 :]
    more = {"ord": ord, "axis": axis, "keepdims": True if keepdims else None}
    kwargs = {k: v for k, v in more.items() if v is not None}
    dtype = real_of(inexact(x.dtype))
    return _core._LazyArray("call", (x,), shape, dtype, (np.linalg.norm, kwargs))


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Of each matrix of a stack."""
    if not _is_deferred(x):
        return NotImplemented
    dtype, kwargs = real_of(inexact(x.dtype)), {} if ord is None else {"ord": ord}
    name = "norm" if x.ndim == 2 else "matrix_norm"
    found = _one(name, x, x.shape[:-2], dtype, kwargs)
    return np.reshape(found, (*x.shape[:-2], 1, 1)) if keepdims else found


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if axis is None and x.ndim == 2:
        return matrix_norm(x, keepdims=keepdims, ord=ord)
    axes = np.lib.array_utils.normalize_axis_tuple(() if axis is None else axis, x.ndim)
    if len(axes) != 2:
        return NotImplemented if x.dtype.char == "e" else _vector_norm(x, ord, axis, keepdims)
    moved = x
    if axes == (x.ndim - 1, x.ndim - 2):
        moved = np.swapaxes(x, -1, -2)
    elif axes != (x.ndim - 2, x.ndim - 1):
        moved = np.moveaxis(x, axes, (-2, -1))
    found: Any = matrix_norm(moved, ord=ord)
    if found is NotImplemented or not keepdims:
        return found
    return np.reshape(found, tuple(1 if k in axes else n for k, n in enumerate(x.shape)))


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """Of all elements, or along axes."""
    if x.dtype.char == "e" or isinstance(ord, str) or axis == () or 0 in x.shape:
        return NotImplemented
    at = np.lib.array_utils.normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)
    kept = [k for k in range(x.ndim) if k not in at]
    lines = x
    if len(at) != 1:
        lines = np.reshape(np.transpose(x, (*kept, *at)), (*(x.shape[k] for k in kept), -1))
    found = _vector_norm(lines, ord, at[0] if len(at) == 1 else len(kept), False)
    if found is NotImplemented or not keepdims:
        return found
    return np.reshape(found, tuple(1 if k in at else n for k, n in enumerate(x.shape)))


def cond(x: Any, p: Any = None) -> Any:
    if not _is_deferred(x):
        return NotImplemented
    kwargs = {} if p is None else {"p": p}
    return _one("cond", x, x.shape[:-2], real_of(inexact(x.dtype)), kwargs)


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    both = tol is not None and rtol is not None  # NumPy refuses that
    if both or not _is_deferred(A) or not is_number(tol) or not is_number(rtol):
        return NotImplemented
    if hermitian:
        _square(A)
    given = {"tol": tol, "rtol": rtol, "hermitian": hermitian or None}
    kwargs = {k: v for k, v in given.items() if v is not None}
    return _one("matrix_rank", A, A.shape[:-2], np.dtype(np.intp), kwargs)


TABLE = (
    cholesky, pinv, eigvals, eigvalsh, svdvals, eig, eigh, svd, qr, norm, matrix_norm, vector_norm,
    cond, matrix_rank,
)  # fmt: skip


def later(name: str, a: Any, *args: Any, **kwargs: Any) -> Any:
    """A row by its name, for `pl`'s own functions; None where it computes now."""
    found = {f.__name__: f for f in TABLE}[name](a, *args, **kwargs)
    return None if found is NotImplemented else found
