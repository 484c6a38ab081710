"""Indices of symbolic shapes, and NumPy's functions that are indices: parts of axes turned,
repeated, taken, moved round."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import numpy as np

from .._base.checks import is_lazy
from . import elements
from .elements import rule
from .expressions import Size, quotient
from .placeholder import Sides, Symbolic, formula, named, operand, shape_of


def taken(a: Any, key: Any) -> Any:
    return a[key]


def _slice(n: Any, key: slice, sides: Sides) -> Any:
    """How many a slice takes; its ends lie within the axis, whatever its size becomes."""
    step = 1 if key.step is None else key.step
    if isinstance(step, Size) or step == 0:
        raise ValueError("the step of a slice is a number other than zero")

    def end(x: Any) -> Any:
        if isinstance(x, Size) or x >= 0:
            sides.least(n, x)
            return x
        sides.least(n, -x)
        return n + x

    if step > 0:
        start = 0 if key.start is None else end(key.start)
        stop = n if key.stop is None else end(key.stop)
        count = stop - start
    elif key.start is None and key.stop is None:
        count = n
    else:
        raise NotImplementedError("slices of placeholders that go backwards, but for x[::-1]")
    sides.least(count, 0)
    return quotient(count + abs(step) - 1, abs(step))


def _is_later(p: Any) -> bool:
    """Is it an array whose values are known when the formula is computed?"""
    return isinstance(p, Symbolic) or is_lazy(p)


def _is_place(p: Any) -> bool:
    """Is it an integer, or a size?"""
    if isinstance(p, Size):
        return True
    return hasattr(p, "__index__") and not isinstance(p, (bool, np.bool_, np.ndarray))


def _held(p: Any) -> Any:
    """A part of an index as a formula holds it: arrays are copied, since the sizes that fit are
    those of what they hold now; NumPy's indices by arrays, too, take what these hold then. A mask
    is the places that it takes (`_masks`)."""
    if isinstance(p, np.ndarray) and p.ndim == 0 and p.dtype.kind in "iu":
        return operator.index(p)
    if p is None or p is Ellipsis or isinstance(p, slice) or _is_later(p) or _is_place(p):
        return p
    if isinstance(p, (list, tuple, np.ndarray)):
        a = np.array(p, None if np.size(p) else np.intp)
        if a.ndim and a.dtype.kind in "iub":
            return a
        p = f"{type(p).__name__} {a.shape} {a.dtype}"
    else:
        p = type(p).__name__
    raise NotImplementedError(
        "indices of placeholders are integers, sizes, slices, arrays of integers and masks, "
        f"got {p}"
    )


def _masks(parts: list[Any], shape: Any, sides: Sides) -> list[Any]:
    """The parts of an index with places instead of masks, whose sizes are those of the axes."""
    found: list[Any] = []
    rest = sum(1 if not _is_mask(p) else p.ndim for p in parts if p is not None and p is not ...)
    axis = 0
    for p in parts:
        if _is_later(p) and p.dtype.kind not in "iub":
            raise IndexError(f"an index by {_shown(p)}: indices are of integers or booleans")
        if _is_later(p) and p.dtype.kind == "b":
            raise NotImplementedError(
                f"an index by {_shown(p)}: how many it takes, its values say; np.where(mask, x, 0)"
                " keeps the shape, or index the function's result"
            )
        if _is_mask(p):
            for n in p.shape:
                if axis < len(shape):
                    sides.same(shape[axis], n)
                axis += 1
            found += p.nonzero()
            continue
        found.append(p)
        axis += len(shape) - rest if p is Ellipsis else p is not None
    return found


def _is_mask(p: Any) -> bool:
    return isinstance(p, np.ndarray) and p.dtype.kind == "b"


def _shown(p: Any) -> str:
    return f"{named(p) if isinstance(p, Symbolic) else f'a LazyArray {p.shape}'} of {p.dtype}"


def _within(n: Any, places: Any, sides: Sides) -> None:
    """All places lie within an axis; of those that are computed NumPy says that."""
    if isinstance(places, np.ndarray):
        if places.size:
            low, high = int(places.min()), int(places.max())
            sides.least(n, high + 1)
            if low < 0:
                sides.least(n, -low)
    elif not _is_later(places):
        sides.least(n, places + 1 if isinstance(places, Size) or places >= 0 else -places)


def _together(arrays: list[Any], sides: Sides) -> tuple[Any, ...]:
    shapes = [tuple(x.shape) if isinstance(x, Symbolic) else np.shape(x) for x in arrays]
    if not any(isinstance(n, Size) for s in shapes for n in s):
        try:
            return np.broadcast_shapes(*shapes)
        except ValueError:
            text = " ".join(map(str, shapes))
            raise IndexError(
                f"shape mismatch: indexing arrays could not be broadcast together: {text}"
            ) from None
    return sides.together(shapes)


@rule("index")
def _index(a: Any, key: Any) -> Any:
    parts = list(map(_held, key if isinstance(key, tuple) else (key,)))
    sides = Sides(f"an index of {named(a)}")
    parts = _masks(parts, shape_of(a), sides)
    taking = [p for p in parts if p is not None and p is not ...]
    if len(taking) > a.ndim:
        raise IndexError(f"too many indices: {len(taking)} for {a.ndim} dimensions")
    if sum(p is Ellipsis for p in parts) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    held = tuple(parts) if isinstance(key, tuple) or len(parts) != 1 else parts[0]
    if not any(p is Ellipsis for p in parts):
        parts.append(Ellipsis)
    arrays = [p for p in parts if isinstance(p, np.ndarray) or _is_later(p)]
    sizes, shape, at = iter(shape_of(a)), [], []
    for k, p in enumerate(parts):
        if p is Ellipsis:
            shape += list(itertools.islice(sizes, a.ndim - len(taking)))
        elif p is None:
            shape.append(1)
        elif isinstance(p, slice):
            n = next(sizes)
            shape.append(n if p == slice(None) else _slice(n, p, sides))
        else:
            _within(next(sizes), p, sides)
            at.append((k, len(shape)))
    if arrays:  # which of NumPy's are together stay there, others come first; integers are of them
        beside = at[-1][0] - at[0][0] == len(at) - 1
        first = at[0][1] if beside else 0
        shape[first:first] = _together(arrays, sides)
    return formula(taken, (a, held), shape, a.dtype, sides)


# -- functions that are indices --------------------------------------------------------------------


def _axis(axis: Any, ndim: int) -> int:
    return int(np.lib.array_utils.normalize_axis_index(operator.index(axis), ndim))


def _along(a: Any, axis: int, at: Any) -> Any:
    return a[(slice(None),) * axis + (at,)]


@rule(np.take)
def _take(a: Any, indices: Any, axis: Any = None, *, mode: str = "raise") -> Any:
    a = operand(a)
    if mode != "raise":
        raise NotImplementedError(f"np.take(mode={mode!r}) of placeholders: indices lie within")
    at = indices if _is_later(indices) or np.ndim(indices) else operator.index(indices)
    if not _is_later(at) and np.asarray(at).dtype.kind == "b":
        raise TypeError("np.take takes integers; a mask is an index, x[mask]")
    if not isinstance(a, Symbolic):
        raise NotImplementedError("np.take of an array at places that are a formula")
    if axis is None:
        return _along(np.reshape(a, (-1,)), 0, at)
    return _along(a, _axis(axis, a.ndim), at)


@rule(np.flip)
def _flip(m: Any, axis: Any = None) -> Any:
    axes = range(m.ndim) if axis is None else elements.axes_of(axis, m.ndim)
    return m[tuple(slice(None, None, -1 if k in axes else None) for k in range(m.ndim))]


@rule(np.flipud)
def _flipud(m: Any) -> Any:
    return _flip(m, 0)


@rule(np.fliplr)
def _fliplr(m: Any) -> Any:
    return _flip(m, 1)


def moved(function: Any, a: Any, kwargs: Any) -> Any:
    return function(a, **kwargs)


@rule(np.roll)
def _roll(a: Any, shift: Any, axis: Any = None) -> Any:
    if axis is not None:
        for _, k in np.broadcast(shift, axis):
            _axis(k, a.ndim)
    kwargs = {"shift": _plain(shift), "axis": _plain(axis)}
    return formula(moved, (np.roll, a, kwargs), a.shape, a.dtype)


def _plain(x: Any) -> Any:
    """Integers that a formula holds: numbers, or tuples of them."""
    if x is None or np.ndim(x) == 0:
        return x if x is None else operator.index(x)
    return tuple(operator.index(y) for y in x)


@rule(np.repeat)
def _repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    if axis is None:
        a, axis = np.reshape(a, (-1,)), 0
    k, sides = _axis(axis, a.ndim), Sides(f"repeat of {named(a)}")
    counts: Any = np.array(repeats)
    if counts.dtype.kind not in "iu" or (counts < 0).any():
        raise ValueError(f"np.repeat of placeholders: counts are integers from 0 on, not {repeats}")
    shape = list(a.shape)
    if counts.size == 1:
        counts = int(counts.reshape(()))
        shape[k] = shape[k] * counts
    else:
        sides.same(shape_of(a)[k], counts.size)
        shape[k] = int(counts.sum())
    kwargs = {"repeats": counts, "axis": k}
    return formula(moved, (np.repeat, a, kwargs), shape, a.dtype, sides)


@rule(np.tile)
def _tile(A: Any, reps: Any) -> Any:
    counts = tuple(operator.index(r) for r in np.atleast_1d(reps))
    if any(r < 0 for r in counts):
        raise ValueError(f"np.tile: negative counts in {counts}")
    shape = (1,) * (len(counts) - A.ndim) + tuple(A.shape)
    counts = (1,) * (len(shape) - len(counts)) + counts
    made = tuple(n * r for n, r in zip(shape, counts))
    return formula(moved, (np.tile, A, {"reps": counts}), made, A.dtype)


@rule(np.diff)
def _diff(a: Any, n: int = 1, axis: Any = -1) -> Any:
    n, k = operator.index(n), _axis(axis, a.ndim)
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if a.dtype.kind == "b":
        raise NotImplementedError("np.diff of booleans: cast them with astype")
    for _ in range(n):
        a = _along(a, k, slice(1, None)) - _along(a, k, slice(None, -1))
    return a
