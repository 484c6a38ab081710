"""Cotangents of the arguments of NumPy's functions that are not element-wise: sums, shapes, what
puts elements elsewhere, norms. Rows are as in functions.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .._base.checks import is_lazy
from .._base.dlpack import fixed
from .._lazy import build, numpy_functions
from .._lazy.numpy_shapes import joined
from . import contractions, inverses, markov, pseudo_inverses, recurrences
from .functions import ELEMENTWISE, OTHERS, Row
from .pieces import call, conj, dtype_of

_SHAPES: dict[Any, Row] = {}


def broadcast(g: Any, shape: Any) -> Any:
    """A view of g in a larger shape."""
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
    x = y._args[0]
    x = x if x.dtype == y.dtype else build.cast(x, y.dtype)
    return _spread(y, g) * conj(recurrences.others(x, y._more[1].get("axis")))


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
    zero = fixed(np.zeros((), dtype_of(g)))
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


def _element(g: Any) -> int | None:
    """The place along the first axis of the one element that g holds; None of another one."""
    if not is_lazy(g) or g._head != "call" or g._more[0] is not scattered:
        return None
    key = g._more[1]["key"]
    one = isinstance(key, (int, np.integer)) and not isinstance(key, bool)
    return int(key) % g.shape[0] if one else None


def _stacked(parts: list[Any]) -> Any:
    """As one array, which they may be the elements of."""
    held = parts[0]._args[0] if is_lazy(parts[0]) and parts[0]._head == "index" else None
    if held is not None and held.shape == (len(parts), *parts[0].shape):
        here = [is_lazy(x) and x._head == "index" and x._args[0] is held for x in parts]
        if all(here) and [x._more for x in parts] == [*range(len(parts))]:
            return held
    return np.stack(parts)


def elements_together(terms: list[Any]) -> list[Any]:
    """Terms of a sum, of which those that hold an element along the first axis each are one: as
    many sums of all take time by their square."""
    at: dict[int, Any] = {}
    rest = []
    for g in terms:
        k = _element(g)
        if k is None or k in at or g.dtype != terms[0].dtype:
            rest.append(g)
        else:
            at[k] = g
    if len(at) < 2:
        return terms
    first = at[min(at)]
    stack = _stacked([at[k]._args[0] for k in sorted(at)])
    if len(at) < first.shape[0]:
        key = np.asarray(sorted(at))
        stack = call(scattered, (stack,), first.shape, first.dtype, key=key, shape=first.shape)
    return [stack, *rest]


def _scattered(y: Any, h: Any, k: int) -> Any:
    return h[y._more[1]["key"]]


def checked(y: Any, g: Any, k: int) -> Any:
    """The cotangent of a function that returns its first argument or raises."""
    return g if k == 0 else g * 0.0


# -- elements elsewhere ----------------------------------------------------------------------------


def _joined(y: Any, g: Any, k: int) -> Any:
    """The part of the cotangent at the argument's place in the joined array."""
    axis = y._more[1]["axis"]
    start = sum(x.shape[axis] for x in y._args[:k])
    part = slice(start, start + y._args[k].shape[axis])
    if g._head == "made" and g.ndim == 2:  # what a kind's array is meant: one array for all parts
        g = np.reshape(np.reshape(g, (-1,)), g.shape)
    return g[(*(slice(None),) * axis, part)]


def _padded(y: Any, g: Any, k: int) -> Any:
    x = y._args[0]
    widths = np.broadcast_to(np.asarray(y._more[1]["pad_width"]), (x.ndim, 2))
    return g[tuple(slice(w, w + n) for w, n in zip(widths[:, 0].tolist(), x.shape, strict=True))]


def _rounded(y: Any, g: Any, k: int) -> Any:
    return g * 0.0


def _cumsum(y: Any, g: Any, k: int) -> Any:
    axis = y._more[1]["axis"]
    return np.flip(np.cumsum(np.flip(g, axis), axis=axis), axis)


def ordered(h: Any, x: Any, axis: int) -> Any:
    """Reorders h as sorting reorders x."""
    return np.take_along_axis(h, np.argsort(x, axis, kind="stable"), axis)


def unordered(g: Any, x: Any, axis: int) -> Any:
    """Undoes `ordered`: from the sorted order back to x's own."""
    made = np.empty_like(g)
    np.put_along_axis(made, np.argsort(x, axis, kind="stable"), g, axis)
    return made


def _sort(y: Any, g: Any, k: int) -> Any:
    x, axis = y._args[0], y._more[1]["axis"]
    return call(unordered, (g, x), x.shape, g.dtype, axis=axis)


def _unordered(y: Any, h: Any, k: int) -> Any:
    x, axis = y._args[1], y._more[1]["axis"]
    return call(ordered, (h, x), h.shape, h.dtype, axis=axis) if k == 0 else x * 0.0


def _ordered(y: Any, g: Any, k: int) -> Any:
    x, axis = y._args[1], y._more[1]["axis"]
    return call(unordered, (g, x), g.shape, g.dtype, axis=axis) if k == 0 else x * 0.0


def _tril(y: Any, g: Any, k: int) -> Any:
    return np.tril(g, y._more[1]["k"])


def _triu(y: Any, g: Any, k: int) -> Any:
    return np.triu(g, y._more[1]["k"])


def _picked(y: Any, g: Any, k: int) -> Any:
    """The cotangent of an array indexed by LazyArrays; the index itself has none."""
    if k:
        return None
    x, key = y._args[0], y._more[1]["key"]
    return call(build.put, (g, *y._args[1:]), x.shape, g.dtype, key=key, shape=tuple(x.shape))


def _put(y: Any, h: Any, k: int) -> Any:
    if k:
        return None
    g = y._args[0]
    return call(build.picked, (h, *y._args[1:]), g.shape, h.dtype, key=y._more[1]["key"])


# -- norms of vectors ------------------------------------------------------------------------------


def _norm(y: Any, g: Any, k: int) -> Any:
    """|x|_p; 0 where the norm is."""
    x, kwargs = y._args[0], y._more[1]
    p = kwargs.get("ord")
    size = np.abs(x)
    unit = conj(np.conjugate(x) / np.where(size == 0, 1.0, size))
    whole, back = _spread(y, y), _spread(y, g)
    safe = np.where(whole == 0, 1.0, whole)
    if p is None or p == 2:
        return back * (x / safe)
    if p == 1:
        return back * unit
    if p in (np.inf, -np.inf):
        hit = np.where(size == whole, 1.0, 0.0)
        shares = np.sum(hit, axis=kwargs.get("axis"), keepdims=True)
        return back * hit * unit / shares
    if p == 0:
        return g * 0.0
    ratio = np.where(size == 0, 1.0, size) / safe
    return back * unit * np.where(size == 0, 0.0, ratio ** (p - 1))


_SHAPES.update(
    {
        joined: _joined,
        np.cumsum: _cumsum,
        np.pad: _padded,
        np.round: _rounded,
        np.sort: _sort,
        ordered: _ordered,
        unordered: _unordered,
        np.tril: _tril,
        np.triu: _triu,
        build.picked: _picked,
        build.put: _put,
        np.linalg.norm: _norm,
        np.sum: _sum,
        np.mean: _mean,
        np.prod: _prod,
        np.max: _extreme,
        np.min: _extreme,
        np.real: _real,
        np.imag: _imag,
        numpy_functions.reshaped: _reshape,
        np.transpose: _transpose,
        np.where: _where,
        np.broadcast_to: _broadcast_to,
        sliding_window_view: contractions.windows,
        build._astype: _astype,
        scattered: _scattered,
        inverses.held: _astype,
        **OTHERS,
        **markov.ROWS,
        **pseudo_inverses.ROWS,
        **recurrences.ROWS,
    }
)


def row_of(function: Any) -> Row | None:
    """The row of a function in the table; None if there is none."""
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
