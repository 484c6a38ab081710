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
_Slogdet = type(np.linalg.slogdet(np.ones((1, 1))))


def _scaled(op: Any) -> tuple[Any, Any] | None:
    """(mantissa, exponent of 2) of the determinant: Python numbers, or arrays for batches."""
    pair = op._scaledet()
    if pair is NotImplemented:
        return None
    if pair.ndim > 1:
        return pair[..., 0], pair[..., 1].real
    m, e = pair.tolist()
    return m, e.real


def _ldexp(x: Any, e: Any) -> float:
    """x 2^e for floats; inf where it is too large."""
    try:
        return math.ldexp(x, int(e))
    except OverflowError:
        return math.copysign(math.inf, x)


def _log(m: Any, e: Any) -> tuple[float, Any]:
    """Sign and logarithm of one m 2^e; accurate where the number is near 1."""
    size = abs(m)
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
    pair = _scaled(op)
    if pair is None:
        return np.linalg.det(dispatch.dense(op, 1.5))
    m, e = pair
    dtype = inexact(op.dtype)
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
    pair = _scaled(op)
    if pair is None:
        return np.linalg.slogdet(dispatch.dense(op, 1.5))
    dtype = inexact(op.dtype)
    if isinstance(pair[0], np.ndarray):
        sign, log = _logs(*pair)
        return _Slogdet(sign.astype(dtype), log.astype(real_of(dtype)))
    sign, log = _log(*pair)
    return _Slogdet(dtype.type(sign), real_of(dtype).type(log))


def logdet(op: Any) -> Any:
    if hasattr(type(op), "_logdet"):
        return op._logdet()
    sign, log = slogdet(op)
    with np.errstate(divide="ignore", invalid="ignore"):
        if np.iscomplexobj(sign):
            return number(np.log(sign) + log)
        return number(np.where(sign < 0, np.asarray(np.nan, log.dtype), log))
