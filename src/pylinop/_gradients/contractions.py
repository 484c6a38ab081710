"""Cotangents of einsum's operands: contractions of the result's cotangent with the other operands,
conjugated, over the same axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._contractions import equations
from .._contractions.equations import Task
from .._contractions.grammar import Axis, Equation, Index, labels_of
from .._contractions.recorded import Deferred
from .._contractions.scatter import Scattered
from .._lazy.contractions import contraction
from .pieces import conj


def _named(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """Axes of an ellipsis as axes with names."""
    return tuple(f"_{a[3:]}" if isinstance(a, str) and a.startswith("...") else a for a in axes)


def cotangent(y: Any, g: Any, k: int) -> Any:
    """Of operand k of the contraction y."""
    f: Deferred = y._more[0]
    task = f.task
    text = task.equation.text
    s = equations.resolved(task.equation, tuple(tuple(x.shape) for x in y._args), task.sizes)
    operands = [_named(axes) for axes in s.operands]
    sizes = {str(_named((label,))[0]): n for label, n in s.sizes.items()}
    own = operands[k]
    shape = tuple(y._args[k].shape)
    read: tuple[Axis, ...] = tuple(
        1 if isinstance(axis, str) and n == 1 else axis for axis, n in zip(own, shape)
    )
    labels = [label for axis in read for label in labels_of(axis)]
    placed = len(set(labels)) < len(labels) or any(isinstance(axis, Index) for axis in read)
    result: tuple[Axis, ...] = tuple(dict.fromkeys(labels)) if placed else read
    others = [i for i in range(len(operands)) if i != k]
    terms = [_named(s.result), *(operands[i] for i in others)]
    values = [g, *(conj(y._args[i]) for i in others)]
    there = {label for axes in terms for axis in axes for label in labels_of(axis)}
    of_own = (x for axis in own for x in labels_of(axis) if x not in there)
    alone = tuple(x for x in dict.fromkeys(of_own) if x in labels or sizes[x] != 1)
    if alone:  # summed in this operand alone: the same number along it
        terms.append(alone)
        values.append(np.broadcast_to(np.float32(1), [sizes[x] for x in alone]))
    shown = f"the cotangent of operand {k} of {text}"
    back = Equation(tuple(terms), result, False, shown)
    made = contraction(Task(back, tuple(sorted(sizes.items())), task.outside), values)
    if not placed:
        return made
    function = Scattered(read, sizes, shape, task.outside)
    return _core._LazyArray("call", (made,), shape, made.dtype, (function, {}))


def windows(y: Any, g: Any, k: int) -> Any:
    """The cotangent of the array that `sliding_window_view` is of: sums of what it reads."""
    x, kwargs = y._args[0], y._more[1]
    shape, axis = tuple(x.shape), kwargs["axis"]
    given = range(x.ndim) if axis is None else np.atleast_1d(axis)
    along = [[f"_{i}"] for i in range(x.ndim)]
    for w, i in enumerate(given):
        along[i].append(f"_w{w}")
    axes = tuple(
        Index(tuple((name, 1) for name in names), 0, " + ".join(names)) if names[1:] else names[0]
        for names in along
    )
    order = [f"_{i}" for i in range(x.ndim)] + [f"_w{w}" for w in range(y.ndim - x.ndim)]
    turned = np.transpose(g, [order.index(name) for names in along for name in names])
    function = Scattered(axes, dict(zip(order, y.shape)), shape, None)
    return _core._LazyArray("call", (turned,), shape, g.dtype, (function, {}))


def gathered(f: Scattered, g: Any) -> Any:
    """The cotangent of what was put back: what is read there."""
    labels = tuple(dict.fromkeys(label for axis in f.axes for label in labels_of(axis)))
    e = Equation((f.axes,), labels, False, "the cotangent of what an equation reads")
    return contraction(Task(e, tuple(sorted(f.sizes.items())), f.outside), [g])
