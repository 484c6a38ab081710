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
from .._base.lazy_import import Standard
from .pieces import call, conj, dtype_of

_special: Any = Standard("scipy.special")

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


def _root(y: Any, slope: Callable[[Any], Any]) -> Any:
    """The slope of a root by its value; 0 at 0, where it is infinite: of sqrt(x x) = |x| it is."""
    zero = y == 0
    return np.where(zero, 0.0, slope(np.where(zero, 1.0, y)))


_by("exp")(lambda x, y: y)
_by("exp2")(lambda x, y: y * _LN2)
_by("expm1")(lambda x, y: y + 1.0)
_by("log")(lambda x, y: 1.0 / x)
_by("log2")(lambda x, y: 1.0 / (x * _LN2))
_by("log10")(lambda x, y: 1.0 / (x * _LN10))
_by("log1p")(lambda x, y: 1.0 / (1.0 + x))
_by("sqrt")(lambda x, y: _root(y, lambda y: 0.5 / y))
_by("cbrt")(lambda x, y: _root(y, lambda y: 1.0 / (3.0 * y * y)))
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


_by("exp10")(lambda x, y: y * _LN10)
_by("expit")(lambda x, y: y * (1.0 - y))
_by("logit")(lambda x, y: 1.0 / (x * (1.0 - x)))
_by("log_expit")(lambda x, y: -np.expm1(y))
_by("ndtr")(lambda x, y: np.exp(-0.5 * (x * x)) / math.sqrt(2.0 * math.pi))
_by("log_ndtr")(lambda x, y: np.exp(-0.5 * (x * x) - y) / math.sqrt(2.0 * math.pi))
_by("ndtri")(lambda x, y: np.exp(0.5 * (y * y)) * math.sqrt(2.0 * math.pi))
_by("erfinv")(lambda x, y: np.exp(y * y) * (math.sqrt(math.pi) / 2.0))
_by("erfcinv")(lambda x, y: np.exp(y * y) * (-math.sqrt(math.pi) / 2.0))
_by("erfcx")(lambda x, y: 2.0 * x * y - 2.0 / math.sqrt(math.pi))
_by("deg2rad", "radians")(lambda x, y: math.pi / 180.0)
_by("rad2deg", "degrees")(lambda x, y: 180.0 / math.pi)
_by("floor", "ceil", "trunc", "rint")(lambda x, y: 0.0)
_by("gammaln", "loggamma")(lambda x, y: _special.psi(x))
_by("gamma")(lambda x, y: y * _special.psi(x))
_by("psi")(lambda x, y: _trigamma(x))
_by("i0")(lambda x, y: _special.i1(x))
_by("i0e")(lambda x, y: _special.i1e(x) - np.sign(x) * y)
_by("i1")(lambda x, y: _special.i0(x) - _over(y, x))
_by("i1e")(lambda x, y: _special.i0e(x) - _over(y, x) - np.sign(x) * y)


def _over(y: Any, x: Any) -> Any:
    """I_1(x) / x, and its limit."""
    return np.where(x == 0, 0.5, y / np.where(x == 0, 1.0, x))


def _trigamma(x: Any) -> Any:
    return call(_polygamma, (x,), x.shape, x.dtype, order=1)


def _polygamma(x: Any, order: int) -> Any:
    return _special.polygamma(order, x).astype(x.dtype)


def of_polygamma(y: Any, g: Any, k: int) -> Any:
    """The derivative of one is the next."""
    x, order = y._args[0], y._more[1]["order"]
    return g * call(_polygamma, (x,), x.shape, x.dtype, order=order + 1)


OTHERS = {_polygamma: of_polygamma}


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


def _slope_of_power(x: Any, p: Any) -> Any:
    """p x^(p - 1); 0 where it is infinite."""
    if not is_lazy(p) and np.ndim(p) == 0 and dtype_of(p).kind != "c":
        if p == 0:
            return 0.0
        if p < 0 or p >= 1:
            return p * x ** (p - 1)
    steep = (x == 0) & (np.real(p) < 1) & (np.real(p) >= 0)
    return np.where(steep, 0.0, p * np.where(steep, 1.0, x) ** (p - 1))


@_names("power", "float_power")
def _power(y: Any, g: Any, k: int) -> Any:
    x, p = y._args
    if k == 0:
        return g * conj(_slope_of_power(x, p))
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
    """1 where this argument is taken, 1/2 where both are equal."""
    return np.where(mine == other, 0.5, np.where(more(mine, other), 1.0, 0.0))


@_names("maximum", "fmax")
def _maximum(y: Any, g: Any, k: int) -> Any:
    return g * _share(y._args[k], y._args[1 - k], np.greater)


@_names("minimum", "fmin")
def _minimum(y: Any, g: Any, k: int) -> Any:
    return g * _share(y._args[k], y._args[1 - k], np.less)


@_names("copysign")
def _copysign(y: Any, g: Any, k: int) -> Any:
    x, sign = y._args
    return g * 0.0 if k else g * (np.sign(x) * np.copysign(1.0, sign))


@_names("heaviside")
def _heaviside(y: Any, g: Any, k: int) -> Any:
    return g * np.where(y._args[0] == 0, 1.0, 0.0) if k else g * 0.0


@_names("fmod")
def _fmod(y: Any, g: Any, k: int) -> Any:
    a, b = y._args
    return g * -np.trunc(a / b) if k else g


@_names("remainder")
def _remainder(y: Any, g: Any, k: int) -> Any:
    a, b = y._args
    return g * -np.floor(a / b) if k else g


@_names("xlogy")
def _xlogy(y: Any, g: Any, k: int) -> Any:
    a, x = y._args
    if k:
        return g * (a / np.where(a == 0, 1.0, x))
    return g * np.log(np.where(x == 0, 1.0, x))


@_names("xlog1py")
def _xlog1py(y: Any, g: Any, k: int) -> Any:
    a, x = y._args
    if k:
        return g * (a / np.where(a == 0, 1.0, 1.0 + x))
    return g * np.log1p(np.where(x == -1, 0.0, x))


@_names("logaddexp2")
def _logaddexp2(y: Any, g: Any, k: int) -> Any:
    return g * np.exp2(y._args[k] - y)


@_names("logaddexp")
def _logaddexp(y: Any, g: Any, k: int) -> Any:
    return g * np.exp(y._args[k] - y)


@_names("hypot")
def _hypot(y: Any, g: Any, k: int) -> Any:
    return g * (y._args[k] / np.where(y == 0, 1.0, y))


@_names("arctan2")
def _arctan2(y: Any, g: Any, k: int) -> Any:
    a, b = y._args
    size = np.hypot(a, b)
    size = np.where(size == 0, 1.0, size)
    return g * ((-a if k else b) / size) / size
