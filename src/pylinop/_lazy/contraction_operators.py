"""Operators among einsum's operands: applied by their own kernels along the axis that they sum over
with one other operand, which takes the operator's place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from .._base.checks import is_lazy
from .._contractions.equations import Task

_Terms = list[tuple[Any, ...]]


def _partner(terms: _Terms, result: Sequence[Any], k: int, label: str, other: str) -> int | None:
    """The operand that alone has the operator's `label`, to be summed, and has not the other."""
    if label in result:
        return None
    found = [i for i, t in enumerate(terms) if i != k and label in t]
    if len(found) != 1 or terms[found[0]].count(label) != 1 or other in terms[found[0]]:
        return None
    return found[0]


def _along(op: Any, x: Any, axis: int) -> Any:
    """The operator applied along an axis."""
    front = np.moveaxis(x, axis, 0)
    shape = tuple(front.shape)
    flat = np.reshape(front, (shape[0], math.prod(shape[1:])))
    return np.moveaxis(np.reshape(op @ flat, (op.shape[0], *shape[1:])), 0, axis)


def applied(task: Task, operands: Sequence[Any]) -> tuple[Task, list[Any]]:
    """The same contraction with fewer operators: those that have such an operand are applied to
    it, the others stay."""
    e = task.equation
    terms: _Terms = [tuple(t) for t in e.operands]
    left = list(operands)
    if e.result is None or task.path is not None or len(terms) != len(left):
        return task, left
    if not all(isinstance(x, str) for t in (*terms, e.result) for x in t):
        return task, left
    k = 0
    while k < len(left):
        op = left[k]
        fits = isinstance(op, _core.Operator) and op.ndim == 2 and len(set(terms[k])) == 2
        pairs = [terms[k], terms[k][::-1]] if fits and len(terms[k]) == 2 else []
        for row, col in pairs:
            i = _partner(terms, e.result, k, col, row)
            if i is None or isinstance(left[i], _core.Operator):
                continue
            x = left[i] if is_lazy(left[i]) else np.asarray(left[i])
            axis = terms[i].index(col)
            turned = op if (row, col) == terms[k] else op.T
            if x.ndim != len(terms[i]) or x.shape[axis] != turned.shape[1]:
                continue  # the equation says what is wrong
            left[i] = _along(turned, x, axis)
            terms[i] = tuple(row if label == col else label for label in terms[i])
            del left[k], terms[k]
            k = -1
            break
        k += 1
    return task._replace(equation=e._replace(operands=tuple(terms))), left
