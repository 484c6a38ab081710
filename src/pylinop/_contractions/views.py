"""The arrays that an equation's operands mean once groups are split and index equations are read:
views where strides can say it, with one label an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .grammar import Equation, Group, Index, fail, labels_of
from .sizes import Sized, extremes

OUTSIDE = (None, 0, "wrap")


def _bounded(e: Equation, axis: Index, n: int, sizes: dict[str, int], i: int) -> None:
    low, high = extremes(axis, sizes)
    if low < 0 or high >= n:
        raise fail(
            e.text,
            f"({axis.text}) runs from {low} to {high}; operand {i} has size {n} there"
            " (outside=0 reads zeros beyond it, outside='wrap' goes round)",
        )


def padded(a: Any, around: Sequence[tuple[int, int, int]], outside: Any) -> Any:
    """With what lies outside of these axes, each read from its second number to its third."""
    for k, low, high in around:
        a = _padded(a, k, low, high, outside)
    return a


def _padded(a: Any, at: int, low: int, high: int, outside: Any) -> Any:
    """With what lies outside of an axis: zeros, or the axis once more."""
    n = a.shape[at]
    before, after = max(0, -low), max(0, high + 1 - n)
    if outside == "wrap":
        if n == 0:
            raise ValueError("an axis of size 0 cannot go round")
        return np.take(a, np.arange(-before, n + after) % n, axis=at)
    made = np.zeros((*a.shape[:at], before + n + after, *a.shape[at + 1 :]), a.dtype)
    made[(*(slice(None),) * at, slice(before, before + n))] = a
    return made


class Reading(NamedTuple):
    """How the labels of an operand lie on an array's axes: of each its axis, the step along it and
    the size; and where along each axis all of them start."""

    shape: tuple[int, ...]
    starts: tuple[int, ...]
    along: tuple[tuple[int, int, int], ...]
    labels: tuple[str, ...]
    around: tuple[tuple[int, int, int], ...]  # axes that are read beyond their ends, with the range
    empty: bool

    def inside(self) -> Reading:
        """Of the array with what is around it."""
        shape, starts = [*self.shape], [*self.starts]
        for k, low, high in self.around:
            starts[k] += max(0, -low)
            shape[k] += max(0, -low) + max(0, high + 1 - shape[k])
        return self._replace(shape=tuple(shape), starts=tuple(starts), around=())


def reading(e: Equation, s: Sized, i: int, shape: tuple[int, ...], outside: Any) -> Reading:
    """Of operand i. What lies beyond an axis is `around` it, or raises where outside is None."""
    starts = [0] * len(shape)
    along: list[tuple[int, int, int]] = []
    labels: list[str] = []
    around: list[tuple[int, int, int]] = []
    axes = s.operands[i]
    indexed = [x for axis in axes if isinstance(axis, Index) for x, _ in axis.terms]
    empty = any(s.sizes[x] == 0 for x in indexed)
    for k, (axis, n) in enumerate(zip(axes, shape)):
        if isinstance(axis, Index):
            low, high = extremes(axis, s.sizes)
            if not empty and outside is None:
                _bounded(e, axis, n, s.sizes, i)
            elif not empty and (low < 0 or high >= n):
                around.append((k, low, high))
            starts[k] = axis.constant
            along += [(k, c, s.sizes[x]) for x, c in axis.terms]
        elif isinstance(axis, Group):
            sizes = [s.sizes[x] for x in axis.labels]
            along += [(k, math.prod(sizes[j + 1 :]), m) for j, m in enumerate(sizes)]
        elif isinstance(axis, str):
            wide = axis in s.spread
            along.append((k, 0 if wide else 1, s.sizes[axis] if wide else n))
        labels += labels_of(axis)
    return Reading(tuple(shape), tuple(starts), tuple(along), tuple(labels), tuple(around), empty)


def view(e: Equation, s: Sized, i: int, a: Any, outside: Any) -> tuple[Any, tuple[str, ...]]:
    """(array, its labels) of operand i."""
    axes = s.operands[i]
    if all(isinstance(axis, str) for axis in axes) and s.spread.isdisjoint(axes):
        return a, axes  # type: ignore[return-value]
    r = reading(e, s, i, a.shape, outside)
    shape = [n for _, _, n in r.along]
    if r.empty:
        return np.zeros(shape, a.dtype), r.labels
    a, r = padded(a, r.around, outside), r.inside()
    strides = [by * a.strides[k] for k, by, _ in r.along]
    corner = a[tuple(slice(start, None) for start in r.starts)] if any(r.starts) else a
    made = np.lib.stride_tricks.as_strided(corner, shape, strides, writeable=False)
    return made, r.labels


def merged(s: Sized, made: Any) -> Any:
    """The result with its groups as one axis each."""
    if all(isinstance(axis, str) for axis in s.result):
        return made
    return made.reshape(merged_shape(s))


def merged_shape(s: Sized) -> tuple[int, ...]:
    shape = []
    for axis in s.result:
        if isinstance(axis, Group):
            shape.append(math.prod(s.sizes[label] for label in axis.labels))
        else:
            shape.append(1 if axis == 1 else s.sizes[axis])  # type: ignore[index]
    return tuple(shape)


def result_labels(s: Sized) -> tuple[str, ...]:
    out: list[str] = []
    for axis in s.result:
        if isinstance(axis, Group):
            out += axis.labels
        elif isinstance(axis, str):
            out.append(axis)
    return tuple(out)
