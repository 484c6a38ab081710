"""Indices as the core keeps them: steps (axis, start, step, count) or (axis, array of indices).

Axis 0 has the rows, axis 1 the columns; higher axes are those of the batch, counted from the
last."""

from __future__ import annotations

from typing import Any


def as_slice(step: Any) -> Any:
    """A step along an axis as a slice."""
    _, start, by, count = step
    stop = start + by * count
    return slice(start, None if stop < 0 else stop, by)


def taken(a: Any, steps: Any) -> Any:
    """Applies the steps to the dense form."""
    for s in steps:
        axis = a.ndim - 2 + s[0] if s[0] < 2 else a.ndim - 1 - s[0]
        what = s[1] if len(s) == 2 or s[3] < 0 else as_slice(s)
        a = a[(slice(None),) * axis + (what,)]
    return a
