"""NumPy's functions on LazyArrays: ``__array_function__``. A function without a row computes the
arguments and calls NumPy, which returns an array."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base.checks import is_kept
from .._contractions import equations
from .._structured import determinants
from . import contraction_parts, decompositions, evaluate, matrix_functions
from .build import (
    apply_ufunc,
    as_plain,
    by_value,
    inner_fits,
    inverse,
    matmul,
    node,
    number_of,
    slogdet,
    solve,
    together,
    ufunc_dtype,
    view,
)
from .contractions import by_text, contraction
from .leaves import lazy

if TYPE_CHECKING:
    from .._base.type_variables import Registered

TABLE: dict[Any, Any] = {}


def row(*functions: str) -> Callable[[Registered], Registered]:
    def register(run: Registered) -> Registered:
        for name in functions:
            f: Any = np
            for part in name.split("."):
                f = getattr(f, part, None)
            if f is not None:
                TABLE[f] = run
        return run

    return register


def call(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``func(*args, **kwargs)`` with a LazyArray in it."""
    run = TABLE.get(func)
    if run is not None:
        result = run(*args, **kwargs)
        if result is not NotImplemented:
            return result
    return by_value(func, args, kwargs)


def deferred(func: Callable[..., Any], a: Any, shape: Any, dtype: Any, kwargs: Any = None) -> Any:
    """``func(a, **kwargs)``, deferred: computed from the operator form where a has two
    dimensions."""
    kwargs = kwargs or {}
    form = 2 <= a.ndim <= 8 and func in _OF_FORM  # operators have at most 8 dimensions
    if func in (np.sum, np.mean) and a.dtype.kind in "biu":
        form = False  # by products with ones, a narrow integer would not wrap before it is summed
    head = "of form" if form else "call"
    return _core._LazyArray(head, (a,), shape, dtype, (func, kwargs))


_OF_FORM = {evaluate.trace, evaluate.diagonal, np.sum, np.mean}


def _axes(a: Any, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(a.ndim))
    return np.lib.array_utils.normalize_axis_tuple(axis, a.ndim, "axis")


def reduced(a: Any, axis: Any, keepdims: Any) -> tuple[int, ...]:
    axes = _axes(a, axis)
    if keepdims:
        return tuple(1 if i in axes else d for i, d in enumerate(a.shape))
    return tuple(d for i, d in enumerate(a.shape) if i not in axes)


_NEUTRAL = {np.sum: 0, np.prod: 1}


def _among(a: Any, where: Any, neutral: int) -> Any:
    """a, with what counts for nothing where `where` is false; None where that is no mask for a."""
    mask = where if hasattr(where, "dtype") else np.asarray(where)
    if mask.dtype != bool or together(np.add, (a, mask)) != a.shape:
        return None
    return np.where(mask, a, neutral)


def _reduction(func: Callable[..., Any], dtype_of: Callable[[Any], Any]) -> Callable[..., Any]:
    def run(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = np._NoValue,
        **more: Any,
    ) -> Any:
        a = node(a)
        if set(more) == {"where"} and a is not None and func in _NEUTRAL:
            a = _among(a, more.pop("where"), _NEUTRAL[func])
        if a is None or out is not None or more:
            return NotImplemented
        kept = is_kept(keepdims)
        given = {"dtype": np.dtype(dtype)} if dtype is not None else {}
        kwargs = {"axis": axis, **given, **({"keepdims": True} if kept else {})}
        if func is np.sum and not kept and not given:
            part = contraction_parts.summed(a, _axes(a, axis))
            if part is not None:
                return part
        made = given.get("dtype") or dtype_of(a.dtype)
        return deferred(func, a, reduced(a, axis, kept), made, kwargs)

    return run


def summed(dtype: Any) -> Any:
    if dtype.char in "fdFD":
        return dtype
    return np.add.resolve_dtypes((None, dtype, None), reduction=True)[-1]


def _averaged(dtype: Any) -> Any:
    return dtype.newbyteorder("=") if dtype.kind in "fc" else np.dtype(np.float64)


TABLE[np.sum] = _reduction(np.sum, summed)
TABLE[np.mean] = _reduction(np.mean, _averaged)
TABLE[np.prod] = _reduction(np.prod, summed)


_OF_TWO: dict[Any, Any] = {np.max: np.maximum, np.min: np.minimum}


def _is_first(func: Any, a: Any, initial: Any) -> bool:
    """May an extreme of a start with it, as with another element? Of no elements NumPy decides."""
    plain = func in _OF_TWO and type(initial) in (int, float) and a.size > 0
    return plain and np.result_type(a.dtype, initial) == a.dtype


def _extreme(func: Callable[..., Any], dtype_of: Callable[[Any], Any]) -> Callable[..., Any]:
    def run(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = np._NoValue, **more: Any
    ) -> Any:
        a = node(a)
        initial = None
        if set(more) == {"initial"} and a is not None and _is_first(func, a, more["initial"]):
            initial = more.pop("initial")
        if a is None or out is not None or more:
            return NotImplemented
        kept = is_kept(keepdims)
        kwargs = {"axis": axis, **({"keepdims": True} if kept else {})}
        found = deferred(func, a, reduced(a, axis, kept), dtype_of(a.dtype), kwargs)
        return found if initial is None else _OF_TWO[func](found, initial)

    return run


for _f, _dtype in (
    (np.max, lambda d: d),
    (np.min, lambda d: d),
    (np.any, lambda d: np.dtype(bool)),
    (np.all, lambda d: np.dtype(bool)),
):
    TABLE[_f] = _extreme(_f, _dtype)


@row("shape")
def _shape_of(a: Any) -> Any:
    return a.shape


@row("ndim")
def _ndim(a: Any) -> Any:
    return a.ndim


@row("size")
def _size(a: Any, axis: Any = None) -> Any:
    return a.size if axis is None else a.shape[axis]


@row("iscomplexobj")
def _iscomplexobj(x: Any) -> Any:
    return x.dtype.kind == "c"


@row("isrealobj")
def _isrealobj(x: Any) -> Any:
    return x.dtype.kind != "c"


@row("result_type")
def _result_type(*args: Any) -> np.dtype[Any]:
    return np.result_type(*(a.dtype if isinstance(a, _core.Lazy) else a for a in args))


@row("transpose", "permute_dims")
def _transpose(a: Any, axes: Any = None) -> Any:
    axes = tuple(range(a.ndim))[::-1] if axes is None else _axes(a, tuple(axes))
    if axes == tuple(range(a.ndim)):
        return a
    if axes == (*range(a.ndim - 2), a.ndim - 1, a.ndim - 2):
        return view(a, 1)
    return deferred(np.transpose, a, tuple(a.shape[k] for k in axes), a.dtype, {"axes": axes})


@row("matrix_transpose", "linalg.matrix_transpose")
def _matrix_transpose(x: Any, /) -> Any:
    return x.mT


@row("real")
def _real(a: Any) -> Any:
    return (
        a if a.dtype.kind != "c" else deferred(np.real, a, a.shape, np.empty(0, a.dtype).real.dtype)
    )


@row("imag")
def _imag(a: Any) -> Any:
    return deferred(np.imag, a, a.shape, np.empty(0, a.dtype).real.dtype)


def reshaped(a: Any, shape: Any) -> Any:
    """``np.reshape``, whose argument of the shape has two names in two NumPys."""
    return np.reshape(a, shape)


reshaped.__name__ = "reshape"


@row("reshape")
def _reshape(a: Any, /, shape: Any = None, order: str = "C", **more: Any) -> Any:
    if order != "C" or shape is None or more:
        return NotImplemented
    hollow = np.broadcast_to(np.zeros((), bool), a.shape)
    shape = np.reshape(hollow, shape).shape
    return deferred(reshaped, a, shape, a.dtype, {"shape": shape})


@row("ravel")
def _ravel(a: Any, order: str = "C") -> Any:
    return _reshape(a, (-1,), order)


@row("expand_dims")
def _expand_dims(a: Any, axis: Any) -> Any:
    hollow = np.broadcast_to(np.zeros((), bool), a.shape)
    shape = np.expand_dims(hollow, axis).shape
    return deferred(reshaped, a, shape, a.dtype, {"shape": shape})


@row("squeeze")
def _squeeze(a: Any, axis: Any = None) -> Any:
    hollow = np.broadcast_to(np.zeros((), bool), a.shape)
    shape = np.squeeze(hollow, axis).shape
    return deferred(reshaped, a, shape, a.dtype, {"shape": shape})


def trace(a: Any, offset: int = 0) -> Any:
    """The trace of a matrix, or of each of a stack, deferred."""
    made = contraction_parts.trace(a) if offset == 0 else None
    return (
        made
        if made is not None
        else deferred(evaluate.trace, a, a.shape[:-2], summed(a.dtype), {"offset": offset})
    )


def _matrices(a: Any, axis1: Any, axis2: Any) -> Any:
    """A stack of matrices along two axes; None where they are no two of them."""
    n, inside = a.ndim, all(isinstance(k, int) and -a.ndim <= k < a.ndim for k in (axis1, axis2))
    if not inside or axis1 % n == axis2 % n:
        return None
    pair = axis1 % n, axis2 % n
    return a if pair == (n - 2, n - 1) else np.moveaxis(a, pair, (-2, -1))


@row("trace")
def _trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Any:
    if dtype is not None or out is not None:
        return NotImplemented
    a = _matrices(a, axis1, axis2)
    return NotImplemented if a is None else trace(a, offset)


@row("linalg.trace")
def _linalg_trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    return NotImplemented if dtype is not None or x.ndim < 2 else trace(x, offset)


def diagonal(a: Any, offset: int = 0) -> Any:
    """A diagonal of a matrix, or of each of a stack, deferred."""
    made = contraction_parts.diagonal(a) if offset == 0 else None
    if made is not None:
        return made
    m, n = a.shape[-2:]
    shape = (*a.shape[:-2], max(0, min(m + min(offset, 0), n - max(offset, 0))))
    return deferred(evaluate.diagonal, a, shape, a.dtype, {"offset": offset})


@row("diagonal")
def _diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    a = _matrices(a, axis1, axis2)
    return NotImplemented if a is None else diagonal(a, offset)


@row("linalg.diagonal")
def _linalg_diagonal(x: Any, /, *, offset: int = 0) -> Any:
    return NotImplemented if x.ndim < 2 else diagonal(x, offset)


@row("diag")
def _diag(v: Any, k: int = 0) -> Any:
    return _diagonal(v, k) if v.ndim == 2 else NotImplemented


@row("dot")
def _dot(a: Any, b: Any, out: Any = None) -> Any:
    a, b = node(a), node(b)
    if out is not None or a is None or b is None:
        return NotImplemented
    if a.ndim == 0 or b.ndim == 0:
        return apply_ufunc(np.multiply, "__call__", (a, b))
    if b.ndim <= 2 and a.ndim <= 2:
        return matmul(a, b)
    left, right = list(range(a.ndim)), list(range(a.ndim, a.ndim + b.ndim))
    right[-2 if b.ndim > 1 else -1] = left[-1]
    inner_fits("dot", a, b, -1, -2 if b.ndim > 1 else -1)
    return _summed(a, b, left, right)


def _summed(a: Any, b: Any, left: list[int], right: list[int]) -> Any:
    """The sum over the axes that both have, the others in their order."""
    result = [k for k in left + right if not (k in left and k in right)]
    return _einsum(a, left, b, right, result)


@row("vdot")
def _vdot(a: Any, b: Any, /) -> Any:
    a, b = node(a), node(b)
    if a.ndim == b.ndim == 1:
        return matmul(a.conj(), b)
    if a.ndim == b.ndim == 2 and a.shape == b.shape and a.dtype.kind not in "biu":
        return np.trace(matmul(a.H, b))  # of integers a trace is of wider ones
    if a.size != b.size:
        return NotImplemented
    x = np.reshape(a, (-1,))
    return matmul(np.conjugate(x) if a.dtype.kind == "c" else x, np.reshape(b, (-1,)))


@row("inner")
def _inner(a: Any, b: Any, /) -> Any:
    a, b = node(a), node(b)
    if a.ndim == 0 or b.ndim == 0:
        return apply_ufunc(np.multiply, "__call__", (a, b))
    if b.ndim > 2 or a.ndim > 2:
        left, right = list(range(a.ndim)), list(range(a.ndim, a.ndim + b.ndim))
        right[-1] = left[-1]
        inner_fits("inner", a, b, -1, -1)
        return _summed(a, b, left, right)
    return matmul(a, b if b.ndim == 1 else b.T)


@row("linalg.outer")
def _outer_of_vectors(x1: Any, x2: Any) -> Any:
    return _outer(x1, x2) if np.ndim(x1) == np.ndim(x2) == 1 else NotImplemented


@row("outer")
def _outer(a: Any, b: Any, out: Any = None) -> Any:
    a, b = node(a), node(b)
    if out is not None:
        return NotImplemented
    return matmul(_reshape(a, (-1, 1)), _reshape(b, (1, -1)))


@row("round", "around")
def _round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    if out is not None or a.dtype.kind not in "fc":
        return NotImplemented
    return _core._LazyArray("call", (a,), a.shape, a.dtype, (np.round, {"decimals": decimals}))


@row("clip")
def _clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **more: Any) -> Any:
    if out is not None or more:
        return NotImplemented
    low = a if a_min is None else np.maximum(a, a_min)
    return low if a_max is None else np.minimum(low, a_max)


@row("where")
def _where(condition: Any, *choices: Any) -> Any:
    if len(choices) != 2:
        return NotImplemented
    args = tuple(map(as_plain, (condition, *choices)))
    shape, dtype = together(np.where, args), ufunc_dtype(np.add, *args[1:])
    return _core._LazyArray("call", args, shape, dtype, (np.where, {}))


@row("linalg.matmul")
def _matmul(a: Any, b: Any, /) -> Any:
    return matmul(a, b)


@row("linalg.multi_dot")
def _multi_dot(arrays: Any, *, out: Any = None) -> Any:
    if out is not None or len(arrays) < 2:
        return NotImplemented
    result = node(arrays[0])
    for a in arrays[1:]:
        result = matmul(result, a)
    return result


@row("linalg.inv")
def _inv(a: Any) -> Any:
    return inverse(a)


@row("linalg.solve")
def _solve(a: Any, b: Any) -> Any:
    return solve(a, b)


@row("linalg.slogdet")
def _slogdet(a: Any) -> Any:
    return slogdet(a)


@row("linalg.det")
def _det(a: Any) -> Any:
    return number_of(a, determinants.det)


@row("linalg.matrix_power")
def _matrix_power(a: Any, n: Any) -> Any:
    n = operator.index(n)
    result: Any = None
    base = inverse(a) if n < 0 else a
    for _ in range(abs(n)):
        result = base if result is None else matmul(result, base)
    if result is not None:
        return result
    one = lazy(_core.Identity(a.shape[-1], a.dtype))
    return np.broadcast_to(one, a.shape) if a.ndim > 2 else one


@row("einsum")
def _einsum(
    *args: Any,
    out: Any = None,
    dtype: Any = None,
    order: str = "K",
    casting: str = "safe",
    optimize: Any = False,
) -> Any:
    if out is not None or order not in ("K", "C"):
        return NotImplemented
    plain = dtype is None and casting == "safe" and isinstance(optimize, bool)
    if plain and len(args) > 1 and isinstance(args[0], str) and hasattr(args[1], "dtype"):
        made = by_text(args)
        if made is not NotImplemented:
            return made
    return contraction(*equations.task_of(args, None, None, dtype, casting, optimize))


@row("linalg.lstsq")
def _lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    if np.ndim(a) != 2 or np.ndim(b) > 2:
        return NotImplemented  # NumPy refuses it
    return matrix_functions.lstsq(a, b, rcond)


for _decomposition in decompositions.TABLE:
    if hasattr(np.linalg, _decomposition.__name__):
        TABLE[getattr(np.linalg, _decomposition.__name__)] = _decomposition

del _f, _dtype, _decomposition
