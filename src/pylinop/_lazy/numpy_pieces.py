"""NumPy's functions on LazyArrays that are written with others of them: cut to pieces, padded,
averages, integrals, angles. Rows of ``numpy_functions.call``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from .._base.checks import is_lazy
from .build import node
from .numpy_functions import call, row
from .numpy_shapes import _axis, _key, _nodes

# -- cut to pieces ---------------------------------------------------------------------------------


def _cut(split: Any, a: Any, where: Any, axis: int) -> Any:
    """``split`` of the numbers along an axis says what each piece has of it."""
    if is_lazy(where) or a.ndim == 0:
        return NotImplemented
    k = _axis(axis, a.ndim)
    parts = split(np.arange(a.shape[k]), where)
    return [a[_key(k, a.ndim, slice(p[0], p[-1] + 1) if len(p) else slice(0, 0))] for p in parts]


@row("split")
def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    return _cut(np.split, ary, indices_or_sections, axis)


@row("array_split")
def _array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    return _cut(np.array_split, ary, indices_or_sections, axis)


@row("hsplit")
def _hsplit(ary: Any, indices_or_sections: Any) -> Any:
    return _cut(np.split, ary, indices_or_sections, 1 if ary.ndim > 1 else 0)


@row("vsplit")
def _vsplit(ary: Any, indices_or_sections: Any) -> Any:
    return NotImplemented if ary.ndim < 2 else _cut(np.split, ary, indices_or_sections, 0)


@row("dsplit")
def _dsplit(ary: Any, indices_or_sections: Any) -> Any:
    return NotImplemented if ary.ndim < 3 else _cut(np.split, ary, indices_or_sections, 2)


@row("unstack")
def _unstack(x: Any, /, *, axis: int = 0) -> Any:
    if x.ndim == 0:
        return NotImplemented
    k = _axis(axis, x.ndim)
    return tuple(x[_key(k, x.ndim, at)] for at in range(x.shape[k]))


# -- turned, padded --------------------------------------------------------------------------------


@row("rot90")
def _rot90(m: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Any:
    if len(axes) != 2 or m.ndim < 2:
        return NotImplemented
    p, q = (_axis(x, m.ndim) for x in axes)
    if p == q:
        return NotImplemented
    if k % 4 == 2:
        return np.flip(m, (p, q))
    if k % 2:
        m = np.flip(m, q) if k % 4 == 1 else m
        turned = np.swapaxes(m, p, q)
        return turned if k % 4 == 1 else np.flip(turned, q)
    return m


_BY_INDEX = ("edge", "reflect", "symmetric", "wrap")


@row("pad")
def _pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    a = node(array)
    if a is None or a.ndim == 0 or is_lazy(pad_width) or isinstance(pad_width, dict):
        return NotImplemented
    if mode == "constant" and not any(map(is_lazy, kwargs.values())):
        hollow = np.pad(np.zeros(a.shape, bool), pad_width, mode, **kwargs)
        kwargs = {"pad_width": pad_width, "mode": mode, **kwargs}
        return _core._LazyArray("call", (a,), hollow.shape, a.dtype, (np.pad, kwargs))
    if mode not in _BY_INDEX or kwargs:
        return NotImplemented
    widths = np.broadcast_to(np.asarray(pad_width), (a.ndim, 2))
    at = [np.pad(np.arange(n), w, mode) for n, w in zip(a.shape, widths, strict=True)]
    return a[np.ix_(*at)]


# -- sums and numbers ------------------------------------------------------------------------------


@row("average")
def _average(
    a: Any, axis: Any = None, weights: Any = None, returned: Any = False, **more: Any
) -> Any:
    a = node(a)
    if a is None or returned:
        return NotImplemented
    if weights is None:
        return np.mean(a, axis=axis, **more)
    if is_lazy(weights) or a.dtype.kind not in "fc":
        return NotImplemented
    w = np.asarray(weights)
    dtype = np.result_type(a.dtype, w.dtype)
    if w.shape != a.shape:
        if not isinstance(axis, int) or w.shape != a.shape[axis : axis + 1 or None]:
            return NotImplemented
        w = w.reshape((-1,) + (1,) * (a.ndim - 1 - _axis(axis, a.ndim)))
    full = np.broadcast_to(w, a.shape)
    total = full.sum(axis=axis, dtype=dtype, **more)
    if np.any(total == 0):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    return np.sum(a * w, axis=axis, **more) / total


@row("trapezoid")
def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    parts = _nodes([y] if x is None else [y, x])
    if parts is None or parts[0].ndim == 0 or parts[0].dtype.kind not in "fc":
        return NotImplemented
    y, k = parts[0], _axis(axis, parts[0].ndim)
    step = dx
    if x is not None:
        x = parts[1]
        step = np.diff(x, axis=0 if x.ndim == 1 else axis)  # of x as of y, counted in each
        if x.ndim == 1:
            step = np.reshape(step, (-1,) + (1,) * (y.ndim - 1 - k))
    both = y[_key(k, y.ndim, slice(1, None))] + y[_key(k, y.ndim, slice(None, -1))]
    return np.sum(step * both / 2.0, axis=k)


@row("ptp")
def _ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = np._NoValue) -> Any:
    a = node(a)
    if a is None or out is not None or a.dtype.kind == "b":
        return NotImplemented
    more = {} if keepdims is np._NoValue else {"keepdims": keepdims}
    return np.max(a, axis=axis, **more) - np.min(a, axis=axis, **more)


@row("angle")
def _angle(z: Any, deg: Any = False) -> Any:
    if z.dtype.kind not in "fc":
        return NotImplemented
    real = np.real(z)
    found = np.arctan2(np.imag(z) if z.dtype.kind == "c" else np.zeros((), z.dtype), real)
    return found * (180 / np.pi) if deg else found


@row("linalg.vecdot")
def _vecdot(x1: Any, x2: Any, *, axis: int = -1) -> Any:
    parts = _nodes([x1, x2])
    if parts is None or any(x.dtype.kind not in "fc" or x.ndim == 0 for x in parts):
        return NotImplemented
    x1, x2 = parts
    k, j = _axis(axis, x1.ndim), _axis(axis, x2.ndim)
    if x1.shape[k] != x2.shape[j]:
        return NotImplemented
    if k - x1.ndim != j - x2.ndim:  # counted from the front of each
        x1, x2, k = np.moveaxis(x1, k, -1), np.moveaxis(x2, j, -1), x1.ndim - 1
    product = (np.conjugate(x1) if x1.dtype.kind == "c" else x1) * x2
    return np.sum(product, axis=k - x1.ndim)


def _choice(x: Any) -> Any:
    return x if type(x) in (int, float, complex) else node(x)  # numbers of Python have no dtype


@row("select")
def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    conditions, choices = _nodes(condlist), [_choice(x) for x in choicelist]
    found = _choice(default)
    given = [*choices, found]
    if conditions is None or len(conditions) != len(choices) or not choices:
        return NotImplemented
    if any(x is None for x in given) or any(c.dtype != bool for c in conditions):
        return NotImplemented
    for c, x in zip(conditions[::-1], choices[::-1], strict=True):
        found = np.where(c, x, found)
    dtype = np.result_type(*(x.dtype if is_lazy(x) else x for x in given))
    return found if found.dtype == dtype else NotImplemented


# -- arrays of the same shape, which no value is read for ------------------------------------------


def _alike(make: Any) -> Any:
    """np.zeros_like and kin: an array, as NumPy's."""

    def run(a: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_lazy(a):  # a number to fill with
            return NotImplemented
        filling = make is np.full_like
        fill = args[:1] if filling else ()
        if filling and (not fill or is_lazy(fill[0])):
            return NotImplemented
        names = ("dtype", "order", "subok", "shape")
        given = dict(zip(names, args[len(fill) :], strict=False)) | kwargs
        if given.get("shape") is None:
            given["shape"] = a.shape
        return make(np.empty((), a.dtype), *fill, **given)

    return run


for _name in ("zeros_like", "ones_like", "empty_like", "full_like"):
    row(_name)(_alike(getattr(np, _name)))


# -- differences, polynomials ---------------------------------------------------------------------


@row("gradient")
def _gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Any:
    """Of equal steps."""
    a = node(f)
    if a is None or edge_order != 1 or a.dtype.kind not in "fc":
        return NotImplemented
    given = range(a.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = [_axis(k, a.ndim) for k in given]
    steps = list(varargs) * (len(axes) if len(varargs) == 1 else 1) or [1.0] * len(axes)
    plain = all(type(h) in (int, float) for h in steps) and len(steps) == len(axes)
    if not plain or not axes or len(set(axes)) < len(axes) or any(a.shape[k] < 2 for k in axes):
        return NotImplemented
    found = tuple([_slopes(a, k, h) for k, h in zip(axes, steps, strict=True)])
    return found[0] if len(found) == 1 else found


def _slopes(a: Any, k: int, h: Any) -> Any:
    """Central differences along an axis, one-sided at its ends."""

    def part(start: Any, stop: Any) -> Any:
        return a[_key(k, a.ndim, slice(start, stop))]

    first, last = (part(1, 2) - part(0, 1)) / h, (part(-1, None) - part(-2, -1)) / h
    inner = [(part(2, None) - part(None, -2)) / (2.0 * h)] if a.shape[k] > 2 else []
    return np.concatenate([first, *inner, last], axis=k)


@row("ediff1d")
def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    a = node(ary)
    if a is None or a.dtype.kind not in "fc" or not (to_end is None and to_begin is None):
        return NotImplemented
    return np.diff(np.reshape(a, (-1,)))


@row("polyval")
def _polyval(p: Any, x: Any) -> Any:
    if isinstance(x, np.poly1d):  # put into p, a poly1d
        return NotImplemented
    parts = _nodes([p, x])  # the length of a poly1d is its degree
    if parts is None or parts[0].ndim != 1 or parts[0].size == 0 or parts[0].dtype.kind not in "fc":
        return NotImplemented
    found = parts[0][0] + 0.0 * parts[1]
    for k in range(1, parts[0].size):
        found = found * parts[1] + parts[0][k]
    return found


__all__ = ["call"]
