"""Cotangents of einsum's operands: contractions of the result's cotangent with the other operands,
conjugated, over the same axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base import errors
from .._contractions import equations
from .._contractions.equations import Deferred, Task
from .._contractions.grammar import Axis, Equation, Index, labels_of
from .._lazy.contractions import contraction
from .pieces import conj


def _named(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """Axes of an ellipsis as axes with names."""
    return tuple(f"_{a[3:]}" if isinstance(a, str) and a.startswith("...") else a for a in axes)


def _refuse(y: Any, text: str, why: str) -> Any:
    raise NotImplementedError(f"einsum {text!r} has no derivative here: {why}" + errors.built(y))


def cotangent(y: Any, g: Any, k: int) -> Any:
    """Of operand k of the contraction y."""
    f: Deferred = y._more[0]
    task = f.task
    text = task.equation.text
    s = equations.resolved(task.equation, tuple(tuple(x.shape) for x in y._args), task.sizes)
    operands = [_named(axes) for axes in s.operands]
    sizes = {str(_named((label,))[0]): n for label, n in s.sizes.items()}
    own = operands[k]
    if any(isinstance(axis, Index) for axis in own):
        return _refuse(y, text, f"operand {k} is read by an index equation")
    labels = [label for axis in own for label in labels_of(axis)]
    if len(set(labels)) < len(labels):
        return _refuse(y, text, f"an axis is twice in operand {k}")
    shape = tuple(y._args[k].shape)
    result: tuple[Axis, ...] = tuple(
        1 if isinstance(axis, str) and n == 1 else axis for axis, n in zip(own, shape)
    )
    others = [i for i in range(len(operands)) if i != k]
    terms = [_named(s.result), *(operands[i] for i in others)]
    values = [g, *(conj(y._args[i]) for i in others)]
    there = {label for axes in terms for axis in axes for label in labels_of(axis)}
    alone = tuple(x for axis in result for x in labels_of(axis) if x not in there)
    if alone:  # summed in this operand alone: the same number along it
        terms.append(alone)
        values.append(np.broadcast_to(np.float32(1), [sizes[x] for x in alone]))
    shown = f"the cotangent of operand {k} of {text}"
    back = Equation(tuple(terms), result, False, shown)
    return contraction(Task(back, tuple(sorted(sizes.items())), task.outside), values)
