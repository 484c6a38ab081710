"""Running products, and the recurrence r_k = b_k + a_k r_{k-1} that their derivatives are, to any
order and also where elements are zero: nothing is divided."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._lazy import build
from .pieces import call, conj

_SHORT = 64  # elements that are taken one after the other


def recurred(a: Any, b: Any, axis: int) -> Any:
    """r_k = b_k + a_k r_{k-1} along an axis, from r_0 = b_0 on."""
    a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    if a.shape[0] > _SHORT:
        with np.errstate(all="ignore"):
            found = _doubled(a, b)
        if np.isfinite(found).all():
            return np.moveaxis(found, 0, axis)
    found = b.copy()
    for k in range(1, a.shape[0]):
        found[k] += a[k] * found[k - 1]
    return np.moveaxis(found, 0, axis)


def _doubled(a: Any, b: Any) -> Any:
    """Likewise by products over 2, 4, 8, ... neighbours, some of which may overflow."""
    a, b, by = a.copy(), b.copy(), 1
    while by < len(a):
        b[by:] += a[by:] * b[:-by]
        a[by:] *= a[:-by].copy()
        by *= 2
    return b


def _behind(x: Any, axis: int, first: float) -> Any:
    """Each element's predecessor; of the first one that number."""
    start = np.full((*x.shape[:axis], 1, *x.shape[axis + 1 :]), first, x.dtype)
    kept = tuple(slice(None, -1) if k == axis else slice(None) for k in range(x.ndim))
    return np.concatenate([start, x[kept]], axis=axis)


def _back(a: Any, g: Any, axis: int) -> Any:
    """s_k = g_k + conj(a_{k+1}) s_{k+1}."""
    a, g = _behind(np.flip(conj(a), axis), axis, 1.0), np.flip(g, axis)
    dtype = np.result_type(a.dtype, g.dtype)  # g may be real where a is not
    g = g if g.dtype == dtype else build.cast(g, dtype)
    return np.flip(call(recurred, (a, g), g.shape, dtype, axis=axis), axis)


def _recurred(y: Any, g: Any, k: int) -> Any:
    axis = y._more[1]["axis"]
    if 0 in y.shape:
        return g
    s = _back(y._args[0], g, axis)
    return s if k else s * _behind(conj(y), axis, 0.0)


def _cumprod(y: Any, g: Any, k: int) -> Any:
    x, axis = y._args[0], y._more[1]["axis"]
    return _behind(conj(y), axis, 1.0) * _back(x, g, axis) if 0 not in y.shape else g


def others(x: Any, axis: Any) -> Any:
    """For each element the product of all others along the axes; right also where elements are
    zero."""
    at = np.lib.array_utils.normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)
    order = (*(k for k in range(x.ndim) if k not in at), *at)
    turned = np.transpose(x, order)
    kept = x.ndim - len(at)
    lines = np.reshape(turned, (*turned.shape[:kept], math.prod(turned.shape[kept:])))
    if 0 in lines.shape:
        return x
    before = _behind(np.cumprod(lines, axis=-1), kept, 1.0)
    rest = np.flip(_behind(np.cumprod(np.flip(lines, kept), axis=-1), kept, 1.0), kept)
    made = np.reshape(before * rest, turned.shape)
    return np.transpose(made, tuple(np.argsort(order).tolist()))


ROWS: dict[Any, Any] = {np.cumprod: _cumprod, recurred: _recurred}
