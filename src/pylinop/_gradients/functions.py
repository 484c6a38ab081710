"""Cotangents of the arguments of NumPy's functions: element-wise ones by their derivative, sums and
shapes by what undoes them.

A row gets the call ``y = f(*args, **kwargs)``, its cotangent ``g`` and the number of an argument,
and gives that argument's cotangent before broadcasting is undone. Where a function is not
holomorphic (abs, real, conjugate) the row says so; for all others the conjugate of the derivative
is meant."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._base.checks import is_lazy
from .._lazy import build
from .pieces import call, conj, dtype_of

Row = Callable[[Any, Any, int], Any]
ELEMENTWISE: dict[str, Row] = {}
_LN2, _LN10 = math.log(2.0), math.log(10.0)


def _names(*names: str) -> Callable[[Row], Row]:
    def register(row: Row) -> Row:
        for name in names:
            ELEMENTWISE[name] = row
        return row

    return register


def _by(*names: str) -> Callable[[Any], Any]:
    """Registers a derivative f'(x, y) of a function of one argument."""

    def register(slope: Callable[[Any, Any], Any]) -> Any:
        @_names(*names)
        def row(y: Any, g: Any, k: int) -> Any:
            return g * conj(slope(y._args[0], y))

        return slope

    return register


_by("exp")(lambda x, y: y)
_by("exp2")(lambda x, y: y * _LN2)
_by("expm1")(lambda x, y: y + 1.0)
_by("log")(lambda x, y: 1.0 / x)
_by("log2")(lambda x, y: 1.0 / (x * _LN2))
_by("log10")(lambda x, y: 1.0 / (x * _LN10))
_by("log1p")(lambda x, y: 1.0 / (1.0 + x))
_by("sqrt")(lambda x, y: 0.5 / y)
_by("cbrt")(lambda x, y: 1.0 / (3.0 * y * y))
_by("square")(lambda x, y: 2.0 * x)
_by("reciprocal")(lambda x, y: -(y * y))
_by("sin")(lambda x, y: np.cos(x))
_by("cos")(lambda x, y: -np.sin(x))
_by("tan")(lambda x, y: 1.0 + y * y)
_by("tanh")(lambda x, y: 1.0 - y * y)
_by("sinh")(lambda x, y: np.cosh(x))
_by("cosh")(lambda x, y: np.sinh(x))
_by("arctan")(lambda x, y: 1.0 / (1.0 + x * x))
_by("arcsin")(lambda x, y: 1.0 / np.sqrt(1.0 - x * x))
_by("arccos")(lambda x, y: -1.0 / np.sqrt(1.0 - x * x))
_by("arctanh")(lambda x, y: 1.0 / (1.0 - x * x))
_by("arcsinh")(lambda x, y: 1.0 / np.sqrt(1.0 + x * x))
_by("erf")(lambda x, y: (2.0 / math.sqrt(math.pi)) * np.exp(-(x * x)))
_by("erfc")(lambda x, y: (-2.0 / math.sqrt(math.pi)) * np.exp(-(x * x)))


@_names("positive")
def _positive(y: Any, g: Any, k: int) -> Any:
    return g


@_names("negative")
def _negative(y: Any, g: Any, k: int) -> Any:
    return -g


@_names("conjugate")
def _conjugate(y: Any, g: Any, k: int) -> Any:
    return np.conjugate(g)


@_names("add")
def _add(y: Any, g: Any, k: int) -> Any:
    return g


@_names("subtract")
def _subtract(y: Any, g: Any, k: int) -> Any:
    return -g if k else g


@_names("multiply")
def _multiply(y: Any, g: Any, k: int) -> Any:
    return g * conj(y._args[1 - k])


@_names("divide")
def _divide(y: Any, g: Any, k: int) -> Any:
    b = conj(y._args[1])
    return -g * conj(y) / b if k else g / b


@_names("power", "float_power")
def _power(y: Any, g: Any, k: int) -> Any:
    x, p = y._args
    if k == 0:
        return g * conj(p * x ** (p - 1))
    return g * conj(y * np.log(np.where(x == 0, 1.0, x)))  # 0^p is 0 near by


def _unit(x: Any) -> Any:
    """x / |x|; 0 at 0."""
    size = np.abs(x)
    return x / np.where(size == 0, 1.0, size)


@_names("absolute", "fabs")
def _absolute(y: Any, g: Any, k: int) -> Any:
    x = y._args[0]
    return g * (_unit(x) if dtype_of(x).kind == "c" else np.sign(x))


@_names("sign")
def _sign(y: Any, g: Any, k: int) -> Any:
    if y.dtype.kind == "c":
        raise NotImplementedError("np.sign of complex numbers has no derivative here")
    return g * 0.0


def _share(mine: Any, other: Any, more: Any) -> Any:
    """1 where mine is taken, 1/2 where both are equal."""
    return np.where(mine == other, 0.5, np.where(more(mine, other), 1.0, 0.0))


@_names("maximum", "fmax")
def _maximum(y: Any, g: Any, k: int) -> Any:
    return g * _share(y._args[k], y._args[1 - k], np.greater)


@_names("minimum", "fmin")
def _minimum(y: Any, g: Any, k: int) -> Any:
    return g * _share(y._args[k], y._args[1 - k], np.less)


@_names("logaddexp")
def _logaddexp(y: Any, g: Any, k: int) -> Any:
    return g * np.exp(y._args[k] - y)


@_names("hypot")
def _hypot(y: Any, g: Any, k: int) -> Any:
    return g * (y._args[k] / np.where(y == 0, 1.0, y))


@_names("arctan2")
def _arctan2(y: Any, g: Any, k: int) -> Any:
    a, b = y._args
    return g * ((a if k else b) * (-1.0 if k else 1.0)) / (a * a + b * b)


# -- sums and shapes: by function, not element-wise ------------------------------------------------

_SHAPES: dict[Any, Row] = {}


def broadcast(g: Any, shape: Any) -> Any:
    """g seen in a larger shape."""
    if tuple(np.shape(g) if not is_lazy(g) else g.shape) == tuple(shape):
        return g
    if not is_lazy(g):
        return np.broadcast_to(g, shape)
    return call(np.broadcast_to, (g,), shape, g.dtype, shape=tuple(shape))


def _spread(y: Any, g: Any) -> Any:
    """The cotangent of a reduction, in the shape of what was reduced."""
    x, kwargs = y._args[0], y._more[1]
    axis = kwargs.get("axis")
    if axis is not None and not kwargs.get("keepdims") and g is not None and is_lazy(g):
        axes = np.lib.array_utils.normalize_axis_tuple(axis, x.ndim)
        kept = tuple(1 if k in axes else d for k, d in enumerate(x.shape))
        g = np.reshape(g, kept)
    return broadcast(g, x.shape)


def _sum(y: Any, g: Any, k: int) -> Any:
    return _spread(y, g)


def _mean(y: Any, g: Any, k: int) -> Any:
    return _spread(y, g) * (math.prod(y.shape) / max(1, math.prod(y._args[0].shape)))


def _prod(y: Any, g: Any, k: int) -> Any:
    if y._more[1].get("axis") is not None:
        raise NotImplementedError("np.prod has a derivative over all axes only: axis=None")
    x = y._args[0]
    return broadcast(g, x.shape) * conj(y / x)


def _extreme(y: Any, g: Any, k: int) -> Any:
    x = y._args[0]
    hit = np.where(x == _spread(y, y), 1.0, 0.0)
    axis = y._more[1].get("axis")
    return _spread(y, g) * hit / np.sum(hit, axis=axis, keepdims=True)


def _real(y: Any, g: Any, k: int) -> Any:
    return g


def _imag(y: Any, g: Any, k: int) -> Any:
    return g * 1j if y._args[0].dtype.kind == "c" else g * 0.0


def _reshape(y: Any, g: Any, k: int) -> Any:
    return np.reshape(g, y._args[0].shape)


def _transpose(y: Any, g: Any, k: int) -> Any:
    return np.transpose(g, tuple(np.argsort(y._more[1]["axes"]).tolist()))


def _where(y: Any, g: Any, k: int) -> Any:
    zero = np.zeros((), dtype_of(g))
    return np.where(y._args[0], g, zero) if k == 1 else np.where(y._args[0], zero, g)


def _broadcast_to(y: Any, g: Any, k: int) -> Any:
    return g  # broadcasting is undone by the caller


def _astype(y: Any, g: Any, k: int) -> Any:
    return g


def scattered(g: Any, key: Any, shape: Any) -> Any:
    """Zeros with g added where key says."""
    out = np.zeros(shape, g.dtype)
    np.add.at(out, key, g)
    return out


def _scattered(y: Any, h: Any, k: int) -> Any:
    return h[y._more[1]["key"]]


def checked(y: Any, g: Any, k: int) -> Any:
    """Of a function that gives its first argument, or an error."""
    return g if k == 0 else g * 0.0


_SHAPES.update(
    {
        np.sum: _sum,
        np.mean: _mean,
        np.prod: _prod,
        np.max: _extreme,
        np.min: _extreme,
        np.real: _real,
        np.imag: _imag,
        np.reshape: _reshape,
        np.transpose: _transpose,
        np.where: _where,
        np.broadcast_to: _broadcast_to,
        build._astype: _astype,
        scattered: _scattered,
    }
)


def row_of(function: Any) -> Row | None:
    """The row of a function; None: it has none."""
    row = _SHAPES.get(function)
    if row is None and isinstance(function, np.ufunc):
        row = ELEMENTWISE.get(function.__name__)
    return row


def unbroadcast(g: Any, like: Any) -> Any:
    """g summed over the axes that `like` was broadcast along."""
    shape = tuple(like.shape)
    own = tuple(g.shape) if hasattr(g, "shape") else ()
    if own == shape:
        return g
    if len(own) < len(shape) or any(
        a != b and b != 1 for a, b in zip(own[len(own) - len(shape) :], shape, strict=True)
    ):
        return unbroadcast(broadcast(g, np.broadcast_shapes(own, shape)), like)
    extra = len(own) - len(shape)
    axes = (*range(extra), *(k + extra for k, d in enumerate(shape) if d == 1 != own[k + extra]))
    summed = np.sum(g, axis=axes) if axes else g
    return summed if tuple(summed.shape) == shape else np.reshape(summed, shape)
