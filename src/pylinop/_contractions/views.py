"""The arrays that an equation's operands mean once groups are split and index equations are read:
views where strides can say it, with one label an axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .grammar import Axis, Equation, Group, Index, fail
from .sizes import Sized, extremes

OUTSIDE = (None, 0, "wrap")


def _split(a: Any, axes: tuple[Axis, ...], sizes: dict[str, int]) -> Any:
    """Groups as axes of their own."""
    shape: list[int] = []
    for axis, n in zip(axes, a.shape):
        if isinstance(axis, Group):
            shape += [sizes[label] for label in axis.labels]
        elif axis != 1:
            shape.append(n)
    return a.reshape(shape) if len(shape) != a.ndim or tuple(shape) != a.shape else a


def _bounded(e: Equation, axis: Index, n: int, sizes: dict[str, int], i: int) -> None:
    low, high = extremes(axis, sizes)
    if low < 0 or high >= n:
        raise fail(
            e.text,
            f"({axis.text}) runs from {low} to {high}; operand {i} has size {n} there"
            " (outside=0 reads zeros beyond it, outside='wrap' goes round)",
        )


def _padded(a: Any, at: int, low: int, high: int, outside: Any) -> Any:
    """With what lies outside of an axis: zeros, or the axis once more."""
    n = a.shape[at]
    before, after = max(0, -low), max(0, high + 1 - n)
    if outside == "wrap":
        if n == 0:
            raise ValueError("an axis of size 0 cannot go round")
        return np.take(a, np.arange(-before, n + after) % n, axis=at)
    widths = [(0, 0)] * a.ndim
    widths[at] = (before, after)
    return np.pad(a, widths)


def view(e: Equation, s: Sized, i: int, a: Any, outside: Any) -> tuple[Any, tuple[str, ...]]:
    """(array, its labels) of operand i."""
    axes = s.operands[i]
    if all(isinstance(axis, str) for axis in axes) and s.spread.isdisjoint(axes):
        return a, axes  # type: ignore[return-value]
    a = _split(a, axes, s.sizes)
    flat: list[str | Index] = []
    for axis in axes:
        if isinstance(axis, Group):
            flat += axis.labels
        elif isinstance(axis, (str, Index)):
            flat.append(axis)
    empty = any(s.sizes[label] == 0 for x in flat if isinstance(x, Index) for label, _ in x.terms)
    starts = [0] * len(flat)
    for k, axis in enumerate(flat):
        if not isinstance(axis, Index) or empty:
            continue
        low, high = extremes(axis, s.sizes)
        if outside is None:
            _bounded(e, axis, a.shape[k], s.sizes, i)
        elif low < 0 or high >= a.shape[k]:
            a = _padded(a, k, low, high, outside)
            starts[k] = max(0, -low)
        starts[k] += axis.constant
    shape: list[int] = []
    strides: list[int] = []
    labels: list[str] = []
    for k, axis in enumerate(flat):
        terms = axis.terms if isinstance(axis, Index) else ((axis, 1),)
        for label, c in terms:
            labels.append(label)
            wide = isinstance(axis, str) and label in s.spread
            shape.append(s.sizes[label] if wide or isinstance(axis, Index) else a.shape[k])
            strides.append(0 if wide else c * a.strides[k])
    if empty:
        return np.zeros(shape, a.dtype), tuple(labels)
    corner = a[tuple(slice(start, None) for start in starts)] if any(starts) else a
    made = np.lib.stride_tricks.as_strided(corner, shape, strides, writeable=False)
    return made, tuple(labels)


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
