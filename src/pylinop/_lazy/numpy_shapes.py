"""NumPy's functions on LazyArrays that put elements elsewhere: joined, stacked, turned, repeated,
sorted, triangles of matrices, running sums; and what is made of sums. Rows of
``numpy_functions.call``.

Of matrices that formulas make the structure stays: ``np.block`` of them is a `Block`, ``np.tril`` a
`Triangular`, ``np.diag`` of a vector a `Diag`, ``np.kron`` a `Kron`."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .. import _core
from .._base.checks import is_kept, is_lazy
from .build import node
from .numpy_functions import TABLE, call, deferred, reduced, row, summed

_MADE = ("leaf", "call", "index")  # of these the value is as good as a form


def _nodes(arrays: Any) -> list[Any] | None:
    found = [node(a) for a in arrays]
    return None if any(a is None for a in found) else found


def _axis(axis: Any, ndim: int) -> int:
    return int(np.lib.array_utils.normalize_axis_index(axis, ndim))


def _dtype_of(parts: Sequence[Any]) -> Any:
    return np.result_type(*(a.dtype for a in parts))


# -- joined ----------------------------------------------------------------------------------------


def joined(*arrays: Any, axis: int) -> Any:
    """``np.concatenate`` of its arguments."""
    return np.concatenate(arrays, axis)


def _by_blocks(rows: list[list[Any]]) -> bool:
    """Are these matrices of one dtype, one of which is a formula with a form to keep?"""
    parts = [a for row in rows for a in row]
    alike = all(a.ndim == 2 and a.dtype == parts[0].dtype for a in parts)
    return alike and parts[0].dtype.char in "fdFD" and any(a._head not in _MADE for a in parts)


def _join(parts: list[Any], axis: Any) -> Any:
    ndim = parts[0].ndim
    axis = _axis(axis, ndim) if ndim else axis
    hollow = [np.broadcast_to(np.zeros((), bool), a.shape) for a in parts]
    if ndim == 0 or any(
        a.ndim != ndim or a.shape[:axis] + a.shape[axis + 1 :] != _without(parts[0].shape, axis)
        for a in parts
    ):
        return np.concatenate(hollow, axis)  # raises NumPy's error
    rows = [parts] if axis == 1 else [[a] for a in parts]
    if ndim == 2 and _by_blocks(rows):
        return _core.Block(rows)
    shape = list(parts[0].shape)
    shape[axis] = sum(a.shape[axis] for a in parts)
    return _core._LazyArray(
        "call", tuple(parts), tuple(shape), _dtype_of(parts), (joined, {"axis": axis})
    )


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


@row("concatenate", "concat")
def _concatenate(arrays: Any, axis: Any = 0, out: Any = None, **more: Any) -> Any:
    parts = _nodes(arrays)
    if not parts or out is not None or any(v is not None for v in more.values()):
        return NotImplemented
    if axis is None:
        return _join([np.reshape(a, (-1,)) for a in parts], 0)
    return _join(parts, axis)


@row("stack")
def _stack(arrays: Any, axis: Any = 0, out: Any = None, **more: Any) -> Any:
    parts = _nodes(arrays)
    if not parts or out is not None or any(v is not None for v in more.values()):
        return NotImplemented
    if any(a.shape != parts[0].shape for a in parts):
        raise ValueError("all input arrays must have the same shape")
    at = _axis(axis, parts[0].ndim + 1)
    return _join([np.expand_dims(a, at) for a in parts], at)


def _at_least(a: Any, ndim: int) -> Any:
    return a if a.ndim >= ndim else np.reshape(a, (1,) * (ndim - a.ndim) + tuple(a.shape))


@row("hstack")
def _hstack(tup: Any, **more: Any) -> Any:
    parts = _nodes(tup)
    if not parts or more:
        return NotImplemented
    parts = [_at_least(a, 1) for a in parts]
    return _join(parts, 0 if parts[0].ndim == 1 else 1)


@row("vstack", "row_stack")
def _vstack(tup: Any, **more: Any) -> Any:
    parts = _nodes(tup)
    return NotImplemented if not parts or more else _join([_at_least(a, 2) for a in parts], 0)


@row("column_stack")
def _column_stack(tup: Any) -> Any:
    parts = _nodes(tup)
    if not parts:
        return NotImplemented
    return _join([np.reshape(a, (-1, 1)) if a.ndim < 2 else a for a in parts], 1)


@row("append")
def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    return _concatenate((arr, values), axis)


def _depth(x: Any) -> int:
    return 1 + max(map(_depth, x), default=0) if type(x) is list else 0


def _leaves(x: Any) -> list[Any]:
    return [y for part in x for y in _leaves(part)] if type(x) is list else [x]


@row("block")
def _block(arrays: Any) -> Any:
    depth, parts = _depth(arrays), _nodes(_leaves(arrays))
    if not parts:
        return NotImplemented
    ndim = max(depth, *(a.ndim for a in parts))
    found = iter(parts)

    def along(x: Any, axis: int) -> Any:
        if type(x) is not list:
            return _at_least(next(found), ndim)
        return _join([along(y, axis + 1) for y in x], axis)

    matrices = depth == 2 and all(a.ndim == 2 for a in parts)
    if matrices and all(type(row) is list for row in arrays):
        rows = [[node(a) for a in row] for row in arrays]
        if len({len(row) for row in rows}) == 1 and _by_blocks(rows):
            return _core.Block(rows)
    return along(arrays, ndim - depth)


# -- turned and repeated: indices ------------------------------------------------------------------


def _key(axis: int, ndim: int, at: Any) -> Any:
    return tuple(at if k == axis else slice(None) for k in range(ndim))


@row("flip")
def _flip(m: Any, axis: Any = None) -> Any:
    axes = range(m.ndim) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, m.ndim)
    return m[tuple(slice(None, None, -1 if k in axes else None) for k in range(m.ndim))]


@row("flipud")
def _flipud(m: Any) -> Any:
    return _flip(m, 0)


@row("fliplr")
def _fliplr(m: Any) -> Any:
    return _flip(m, 1)


@row("roll")
def _roll(a: Any, shift: Any, axis: Any = None) -> Any:
    if axis is None:
        return np.reshape(_roll(np.reshape(a, (-1,)), shift, 0), a.shape)
    for s, at in np.broadcast(shift, axis):
        k = _axis(at, a.ndim)
        n = a.shape[k]
        if n and s % n:
            places = np.roll(np.arange(n), int(s))
            a = a[_key(k, a.ndim, places)]
    return a


@row("repeat")
def _repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    if axis is None:
        a, axis = np.reshape(a, (-1,)), 0
    k = _axis(axis, a.ndim)
    return a[_key(k, a.ndim, np.repeat(np.arange(a.shape[k]), repeats))]


@row("tile")
def _tile(A: Any, reps: Any) -> Any:
    counts = tuple(int(r) for r in np.atleast_1d(reps))
    A = _at_least(A, len(counts))
    counts = (1,) * (A.ndim - len(counts)) + counts
    for k, r in enumerate(counts):
        if r != 1:
            A = A[_key(k, A.ndim, np.tile(np.arange(A.shape[k]), r))]
    return A


@row("take")
def _take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    if out is not None or mode != "raise" or is_lazy(indices):
        return NotImplemented
    if axis is None:
        return np.reshape(a, (-1,))[np.asarray(indices)]
    return a[_key(_axis(axis, a.ndim), a.ndim, np.asarray(indices))]


@row("swapaxes")
def _swapaxes(a: Any, axis1: Any, axis2: Any) -> Any:
    axes = list(range(a.ndim))
    i, j = _axis(axis1, a.ndim), _axis(axis2, a.ndim)
    axes[i], axes[j] = axes[j], axes[i]
    return np.transpose(a, axes)


@row("moveaxis")
def _moveaxis(a: Any, source: Any, destination: Any) -> Any:
    hollow = np.moveaxis(np.broadcast_to(np.zeros((), bool), (1,) * a.ndim), source, destination)
    if hollow.ndim != a.ndim:
        return NotImplemented
    norm = np.lib.array_utils.normalize_axis_tuple
    given, to = norm(source, a.ndim), norm(destination, a.ndim)
    axes = [k for k in range(a.ndim) if k not in given]
    for at, k in sorted(zip(to, given, strict=True)):
        axes.insert(at, k)
    return np.transpose(a, axes)


@row("rollaxis")
def _rollaxis(a: Any, axis: Any, start: Any = 0) -> Any:
    hollow = np.broadcast_to(np.zeros((), bool), (1,) * a.ndim)
    np.rollaxis(hollow, axis, start)  # raises NumPy's error
    axis, start = _axis(axis, a.ndim), int(start) + (a.ndim if start < 0 else 0)
    axes = [k for k in range(a.ndim) if k != axis]
    axes.insert(start - (axis < start), axis)
    return np.transpose(a, axes)


@row("lib.stride_tricks.sliding_window_view")
def _windows(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    if subok or writeable:
        return NotImplemented
    window_shape = tuple([operator.index(n) for n in np.atleast_1d(window_shape)])
    if axis is not None:
        axis = tuple([operator.index(k) for k in np.atleast_1d(axis)])
    hollow = np.broadcast_to(np.zeros((), bool), x.shape)
    shape = sliding_window_view(hollow, window_shape, axis).shape
    kwargs = {"window_shape": window_shape, "axis": axis}
    return deferred(sliding_window_view, x, shape, x.dtype, kwargs)


@row("broadcast_to")
def _broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    shape = np.broadcast_to(np.broadcast_to(np.zeros((), bool), array.shape), shape).shape
    return deferred(np.broadcast_to, array, shape, array.dtype, {"shape": shape})


@row("atleast_1d")
def _atleast_1d(*arys: Any) -> Any:
    found = tuple(_at_least(node(a), 1) for a in arys)
    return found[0] if len(found) == 1 else found


@row("atleast_2d")
def _atleast_2d(*arys: Any) -> Any:
    found = tuple(_at_least(node(a), 2) for a in arys)
    return found[0] if len(found) == 1 else found


@row("copy")
def _copy(a: Any, order: Any = "K", subok: bool = False) -> Any:
    return a


# -- matrices --------------------------------------------------------------------------------------


def _triangle(func: Any, lower: bool) -> Any:
    def run(m: Any, k: int = 0) -> Any:
        square = m.ndim == 2 and m.shape[0] == m.shape[1] and m.dtype.char in "fdFD"
        if square and k == 0:
            return _core.Triangular(m, lower)
        shape = m.shape if m.ndim > 1 else m.shape + m.shape  # of a vector each row is that
        return deferred(func, m, shape, m.dtype, {"k": int(k)})

    return run


TABLE[np.tril] = _triangle(np.tril, True)
TABLE[np.triu] = _triangle(np.triu, False)

_diagonal_of = TABLE[np.diag]


@row("diag")
def _diag(v: Any, k: int = 0) -> Any:
    if v.ndim != 1:
        return _diagonal_of(v, k)
    if v.dtype.char in "fdFD":
        return _core.Diag(v, k)
    n = v.shape[0] + abs(k)
    return deferred(np.diag, v, (n, n), v.dtype, {"k": int(k)})


@row("kron")
def _kron(a: Any, b: Any) -> Any:
    a, b = node(a), node(b)
    if a is None or b is None:
        return NotImplemented
    if a.ndim == b.ndim == 2 and a.dtype.kind in "fc" and a.dtype == b.dtype:
        return _core.Kron(a, b)
    ndim = max(a.ndim, b.ndim)
    a, b = _at_least(a, ndim), _at_least(b, ndim)
    one = np.reshape(a, tuple(n for k in a.shape for n in (k, 1)))
    other = np.reshape(b, tuple(n for k in b.shape for n in (1, k)))
    shape = tuple(i * j for i, j in zip(a.shape, b.shape, strict=True))
    return np.reshape(one * other, shape)


@row("tensordot", "linalg.tensordot")
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    a, b = node(a), node(b)
    if a is None or b is None:
        return NotImplemented
    if isinstance(axes, (int, np.integer)):
        axes = (range(a.ndim - axes, a.ndim), range(axes))
    norm = np.lib.array_utils.normalize_axis_tuple
    left, right = norm(axes[0], a.ndim), norm(axes[1], b.ndim)
    if [a.shape[k] for k in left] != [b.shape[k] for k in right]:
        raise ValueError(
            f"tensordot: axes {left} of shape {a.shape} and {right} of shape {b.shape} differ"
        )
    rows = [k for k in range(a.ndim) if k not in left]
    columns = [k for k in range(b.ndim) if k not in right]
    inner = math.prod(a.shape[k] for k in left)
    shape = tuple(a.shape[k] for k in rows) + tuple(b.shape[k] for k in columns)
    m, n = (math.prod(x.shape[k] for k in ks) for x, ks in ((a, rows), (b, columns)))
    one = _seen(np.transpose(a, (*rows, *left)), (m, inner))
    other = _seen(np.transpose(b, (*right, *columns)), (inner, n))
    return _seen(one @ other, shape)


def _seen(a: Any, shape: Any) -> Any:
    return a if tuple(a.shape) == tuple(shape) else np.reshape(a, shape)


# -- running sums, moments, order ------------------------------------------------------------------


def _running(func: Any) -> Any:
    def run(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        if out is not None or dtype is not None:
            return NotImplemented
        if axis is None:
            a, axis = np.reshape(a, (-1,)), 0
        k = _axis(axis, a.ndim)
        return _core._LazyArray("call", (a,), a.shape, summed(a.dtype), (func, {"axis": k}))

    return run


TABLE[np.cumsum] = _running(np.cumsum)
TABLE[np.cumprod] = _running(np.cumprod)


def _cumulative(func: Any) -> Any:
    def run(x: Any, /, *, axis: Any = None, include_initial: bool = False, **more: Any) -> Any:
        if include_initial or any(v is not None for v in more.values()):
            return NotImplemented
        return func(x, axis) if x.ndim == 1 or axis is not None else NotImplemented

    return run


for _name, _f in (("cumulative_sum", np.cumsum), ("cumulative_prod", np.cumprod)):
    if hasattr(np, _name):  # since NumPy 2.1
        TABLE[getattr(np, _name)] = _cumulative(_f)


@row("diff")
def _diff(a: Any, n: int = 1, axis: Any = -1, prepend: Any = None, append: Any = None) -> Any:
    if prepend is not None or append is not None or a.dtype.kind == "b":
        return NotImplemented
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    k = _axis(axis, a.ndim)
    for _ in range(n):
        a = a[_key(k, a.ndim, slice(1, None))] - a[_key(k, a.ndim, slice(None, -1))]
    return a


def _variance(a: Any, axis: Any, ddof: Any, keepdims: bool) -> Any:
    count = math.prod(a.shape) // max(1, math.prod(reduced(a, axis, False)))
    d = a - np.mean(a, axis=axis, keepdims=True)
    square = d * d if a.dtype.kind != "c" else np.real(d * np.conjugate(d))
    return np.sum(square, axis=axis, keepdims=keepdims) / max(count - ddof, 0)


def _moment(root: bool) -> Any:
    def run(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: Any = 0,
        keepdims: Any = np._NoValue,
        **more: Any,
    ) -> Any:
        correction = more.pop("correction", np._NoValue)
        if dtype is not None or out is not None or more:
            return NotImplemented
        ddof = ddof if correction is np._NoValue else correction
        v = _variance(a, axis, ddof, is_kept(keepdims))
        return np.sqrt(v) if root else v

    return run


TABLE[np.var] = _moment(False)
TABLE[np.std] = _moment(True)


@row("sort")
def _sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, **more: Any) -> Any:
    if order is not None or any(v is not None for v in more.values()):
        return NotImplemented
    if axis is None:
        a, axis = np.reshape(a, (-1,)), 0
    k = _axis(axis, a.ndim)
    return _core._LazyArray("call", (a,), a.shape, a.dtype, (np.sort, {"axis": k}))


@row("argsort")
def _argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, **more: Any) -> Any:
    if axis is None or order is not None or any(v is not None for v in more.values()):
        return NotImplemented
    kwargs = {"axis": _axis(axis, a.ndim), **({} if kind is None else {"kind": kind})}
    return _core._LazyArray("call", (a,), a.shape, np.dtype(np.intp), (np.argsort, kwargs))


def _place(func: Any) -> Any:
    def run(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = np._NoValue) -> Any:
        if out is not None:
            return NotImplemented
        kept = is_kept(keepdims)
        kwargs = {"axis": axis, **({"keepdims": True} if kept else {})}
        return deferred(func, a, reduced(a, axis, kept), np.dtype(np.intp), kwargs)

    return run


TABLE[np.argmax] = _place(np.argmax)
TABLE[np.argmin] = _place(np.argmin)

__all__ = ["call", "joined"]
