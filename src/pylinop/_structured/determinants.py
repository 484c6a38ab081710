"""Determinants of operators, from the core's m 2^e; by NumPy on the dense form where the core has
none."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._base.checks import number
from .._base.dtypes import inexact, real_of
from . import dispatch

_SQRT_HALF, _LOG_2 = math.sqrt(0.5), math.log(2.0)
SlogdetResult = type(np.linalg.slogdet(np.ones((1, 1))))


def _scaled(op: Any) -> tuple[Any, Any] | None:
    __tracebackhide__ = True
    found = op._scaledet()
    return None if found is NotImplemented else split(found)


def split(found: Any) -> tuple[Any, Any]:
    """(mantissa, exponent of 2) of the core's determinants: Python numbers, or arrays for
    batches."""
    if found.ndim > 1:
        return found[..., 0], found[..., 1].real
    m, e = found.tolist()
    return m, e.real


def pair(op: Any) -> Any:
    """The core's determinant: an array of mantissa and exponent of 2."""
    found = op._scaledet()
    if found is not NotImplemented:
        return found
    sign, log = np.linalg.slogdet(dispatch.dense(op, 1.5))
    e = np.where(np.isfinite(log), np.ceil(log / _LOG_2), 0.0)
    m = np.where(np.isneginf(log), 0.0, sign * np.exp(log - e * _LOG_2))
    dtype = np.result_type(m.dtype, np.float64)
    return np.stack([m.astype(dtype), e.astype(dtype)], axis=-1)


def sign_of(found: Any) -> Any:
    """The sign of a determinant, or its phase."""
    return slogdet_of(*split(found), found.dtype).sign


def logabs_of(found: Any) -> Any:
    """The logarithm of the modulus of a determinant."""
    return slogdet_of(*split(found), found.dtype).logabsdet


def _ldexp(x: Any, e: Any) -> float:
    """x 2^e for floats; inf where it is too large, nan where there is no e."""
    if e != e:
        return math.nan
    try:
        return math.ldexp(x, int(e))
    except OverflowError:
        return math.copysign(math.inf, x)


def _log(m: Any, e: Any) -> tuple[float, Any]:
    """Sign and logarithm of one m 2^e; accurate where the number is near 1."""
    if isinstance(m, complex) and max(abs(m.real), abs(m.imag)) > 1e300:
        m, e = m / 4, e + 2  # its modulus may be too large
    # Python's abs of a complex NaN raises OverflowError after an overflow anywhere else
    size = math.hypot(m.real, m.imag) if isinstance(m, complex) else abs(m)
    if size == 0:
        return 0.0, -math.inf
    sign = m / size if isinstance(m, complex) or m != m else math.copysign(1.0, m)
    if size < _SQRT_HALF:
        size, e = 2 * size, e - 1
    return sign, math.log(size) + e * _LOG_2


def _logs(m: Any, e: Any) -> Any:
    """Signs and logarithms of arrays of m 2^e."""
    size = np.abs(m)
    low = size < _SQRT_HALF
    with np.errstate(divide="ignore", invalid="ignore"):
        sign = np.sign(m) if m.dtype.kind != "c" else np.where(size == 0, 0, m / size)
        return sign, np.log(np.where(low, 2 * size, size)) + (e - low) * _LOG_2


def det(op: Any) -> Any:
    found = _scaled(op)
    if found is None:
        return np.linalg.det(dispatch.dense(op, 1.5))
    return det_of(*found, inexact(op.dtype))


def det_of(m: Any, e: Any, dtype: Any) -> Any:
    """m 2^e in a dtype."""
    if isinstance(m, float):
        return dtype.type(_ldexp(m, e))
    if isinstance(m, complex):
        return dtype.type(complex(_ldexp(m.real, e), _ldexp(m.imag, e)))
    e = np.clip(e, -(2.0**20), 2.0**20).astype(np.int32)
    if m.dtype.kind == "c":
        value = np.empty(m.shape, m.dtype)
        value.real, value.imag = np.ldexp(m.real, e), np.ldexp(m.imag, e)
    else:
        value = np.ldexp(m, e)
    return value.astype(dtype, copy=False)


def slogdet(op: Any) -> Any:
    __tracebackhide__ = True
    found = _scaled(op)
    if found is None:
        return np.linalg.slogdet(dispatch.dense(op, 1.5))
    return slogdet_of(*found, inexact(op.dtype))


def slogdet_of(m: Any, e: Any, dtype: Any) -> Any:
    """NumPy's named tuple, of m 2^e."""
    if isinstance(m, np.ndarray):
        sign, log = _logs(m, e)
        return SlogdetResult(sign.astype(dtype), log.astype(real_of(dtype)))
    sign, log = _log(m, e)
    return SlogdetResult(dtype.type(sign), real_of(dtype).type(log))


def logdet(op: Any) -> Any:
    __tracebackhide__ = True
    if hasattr(type(op), "_logdet"):
        return op._logdet()
    found = _scaled(op)
    if found is None:
        return _logdet(*np.linalg.slogdet(dispatch.dense(op, 1.5)))
    return logdet_of(*found, inexact(op.dtype))


def logdet_of(m: Any, e: Any, dtype: Any) -> Any:
    """The logarithm of m 2^e."""
    if isinstance(m, float) and dtype.kind == "f":  # one number: without arrays
        sign, log = _log(m, e)
        return dtype.type(math.nan if sign < 0 else log)
    return _logdet(*slogdet_of(m, e, dtype))


def _logdet(sign: Any, log: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        if np.iscomplexobj(sign):
            return number(np.log(sign) + log)
        return number(np.where(sign < 0, np.asarray(np.nan, log.dtype), log))
