"""Operators among einsum's operands: applied by their own kernels along the axis that they sum over
with one other operand, which takes the operator's place."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from .._base import dlpack
from .._base.checks import is_lazy
from .._contractions.equations import Task
from .._contractions.grammar import Group, labels_of
from .._contractions.sizes import implicit
from .contraction_splits import EARLY, LATE, Network, split

_Terms = list[tuple[Any, ...]]


def _partner(terms: _Terms, result: Sequence[Any], k: int, label: str, other: str) -> int | None:
    """The operand that alone has the operator's `label`, to be summed, and has not the other."""
    if not all(isinstance(x, str) for x in (label, other)) or label in _flat(result):
        return None
    found = [i for i, t in enumerate(terms) if i != k and label in _flat(t)]
    if len(found) != 1 or terms[found[0]].count(label) != 1 or other in _flat(terms[found[0]]):
        return None
    return found[0]


def _flat(axes: Sequence[Any]) -> list[str]:
    return [x for axis in axes for x in labels_of(axis)]


def _along(op: Any, x: Any, axis: int) -> Any:
    """The operator applied along an axis."""
    front = np.moveaxis(x, axis, 0)
    shape = tuple(front.shape)
    flat = np.reshape(front, (shape[0], math.prod(shape[1:])))
    return np.moveaxis(np.reshape(op @ flat, (op.shape[0], *shape[1:])), 0, axis)


def applied(task: Task, operands: Sequence[Any]) -> tuple[Task, list[Any]]:
    """The same contraction with fewer operators: diagonals and the like become vectors and labels,
    others are applied along an axis where they can be, then what has factors is split into these;
    what is left is as good as its dense form."""
    e = task.equation
    left = [
        x if is_lazy(x) or isinstance(x, _core.Operator) else dlpack.as_array(x) for x in operands
    ]
    if task.path is not None or len(e.operands) != len(left):
        return task, left
    if not all(isinstance(x, (str, Group)) for t in (*e.operands, e.result or ()) for x in t):
        return task, left
    result = implicit(e.operands) if e.result is None else e.result
    net = Network([tuple(t) for t in e.operands], tuple(result), left)
    while any(isinstance(x, _core.Operator) for x in net.left):
        before = net
        net = _along_axes(split(net, EARLY))
        net = split(net, LATE)
        if len(net.left) == len(before.left) and all(map(operator.is_, net.left, before.left)):
            break
    if not net.left:
        return task, left
    return task._replace(
        equation=e._replace(operands=tuple(net.terms), result=net.result)
    ), net.left


def _along_axes(net: Network) -> Network:
    """With each operator applied that is summed with one array that has not its other label."""
    k = 0
    terms, result, left = list(net.terms), net.result, list(net.left)
    while k < len(left):
        op = left[k]
        fits = isinstance(op, _core.Operator) and op.ndim == 2 and len(set(terms[k])) == 2
        pairs = [terms[k], terms[k][::-1]] if fits and len(terms[k]) == 2 else []
        for row, col in pairs:
            i = _partner(terms, result, k, col, row)
            if i is None or isinstance(left[i], _core.Operator):
                continue
            x = left[i]
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
    return Network(terms, result, left)
