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
from .._contractions.equations import Task, dtype_of, run, shape_of
from .._contractions.grammar import Ellipsis_, Equation, Group, labels_of
from .._contractions.recorded import Deferred
from .._contractions.sizes import implicit
from .contraction_splits import EARLY, LATE, Network, split
from .leaves import lazy

_Terms = list[tuple[Any, ...]]


def _partners(terms: _Terms, result: Sequence[Any], k: int, label: str, other: str) -> list[int]:
    """The operands that have the operator's `label`, to be summed, and have not the other."""
    if not all(isinstance(x, str) for x in (label, other)) or label in _flat(result):
        return []
    found = [i for i, t in enumerate(terms) if i != k and label in _flat(t)]
    for i in found:
        own = _flat(terms[i])
        if label not in terms[i] or own.count(label) != 1 or other in own:
            return []
    return found


def _joined(net: Network, k: int, found: list[int]) -> Network | None:
    """With several arrays that share an axis of operator k as one, where that is no larger than
    they and the operator are."""
    op, own = net.left[k], [net.left[i] for i in found]
    terms = [net.terms[i] for i in found]
    plain = all(isinstance(x, str) for t in terms for x in t)
    if not plain or any(isinstance(x, _core.Operator) for x in own):
        return None
    rest = [t for i, t in enumerate(net.terms) if i not in found]
    kept = {x for t in (*rest, net.result) for x in _flat(t)}
    result = tuple(x for x in dict.fromkeys(x for t in terms for x in t) if x in kept)
    task = Task(Equation(tuple(terms), result, False, "arrays beside an operator"))
    shape = shape_of(task, [tuple(x.shape) for x in own])
    if math.prod(shape) > op.shape[0] * op.shape[1] + sum(x.size for x in own):
        return None
    if any(is_lazy(x) for x in own):
        values = tuple(x if is_lazy(x) else lazy(x) for x in own)
        made: Any = _core._LazyArray(
            "call", values, shape, dtype_of(task, own), (Deferred(task), {})
        )
    else:
        made = np.asarray(run(task, own))
    left = [x for i, x in enumerate(net.left) if i not in found]
    return net._replace(terms=[*rest, result], left=[*left, made])


def _flat(axes: Sequence[Any]) -> list[str]:
    return [x for axis in axes for x in labels_of(axis)]


def _along(op: Any, x: Any, axis: int) -> Any:
    """The operator applied along an axis."""
    front = np.moveaxis(x, axis, 0)
    shape = tuple(front.shape)
    flat = np.reshape(front, (shape[0], math.prod(shape[1:])))
    return np.moveaxis(np.reshape(op @ flat, (op.shape[0], *shape[1:])), 0, axis)


def as_dtype(x: Any, dtype: Any) -> Any:
    """Before it meets the others: NumPy casts all operands first. Operators take the dtype of what
    they are applied to."""
    if isinstance(x, _core.Operator) or (is_lazy(x) and x._head == "operator"):
        return x
    x = x if is_lazy(x) else dlpack.as_array(x)
    return x if x.dtype == dtype else x.astype(dtype)


def _weak(x: Any) -> bool:
    op = x._args[0] if is_lazy(x) and x._head == "operator" else x
    return isinstance(op, _core.Operator) and bool(op._weak)


def dtype_among(operands: Sequence[Any]) -> np.dtype[Any]:
    """Of the result. An Identity and its kin without a dtype of their own adopt the others', where
    that is floating-point."""
    dtypes = [getattr(x, "dtype", None) or np.asarray(x).dtype for x in operands]
    if all(t is dtypes[0] for t in dtypes) and dtypes[0].isnative:
        return dtypes[0]
    whole: np.dtype[Any] = np.result_type(*dtypes)
    strong = [t for x, t in zip(operands, dtypes) if not _weak(x)]
    made: np.dtype[Any] = np.result_type(*strong) if strong else whole
    if made.kind not in "fc":
        return whole
    return np.result_type(made, np.complex64) if whole.kind == "c" else made


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
    dtype = dtype_among(left)
    if task.dtype is None and dtype.char in "fdFD":
        left = [as_dtype(x, dtype) for x in left]
    if not task.sizes and all(map(is_lazy, left)):
        return task, left
    axes = [x for t in (*e.operands, e.result or ()) for x in t]
    if any(isinstance(x, Ellipsis_) for x in axes):
        return task, left
    plain = all(isinstance(x, (str, Group)) for x in axes)  # else nothing is split
    result = implicit(e.operands) if e.result is None else e.result
    net = Network([tuple(t) for t in e.operands], tuple(result), left)
    while any(isinstance(x, _core.Operator) for x in net.left):
        before = net
        net = _along_axes(split(net, EARLY) if plain else net)
        net = split(net, LATE) if plain else net
        if len(net.left) == len(before.left) and all(map(operator.is_, net.left, before.left)):
            break
    if not net.left:
        return task, left
    if task.dtype is None:
        net = net._replace(left=[x.astype(dtype) if _weak(x) else x for x in net.left])
    left_labels = {x for t in net.terms for x in _flat(t)}
    return task._replace(
        equation=e._replace(operands=tuple(net.terms), result=net.result),
        sizes=tuple((x, n) for x, n in task.sizes if x in left_labels),
    ), net.left


def _along_axes(net: Network) -> Network:
    """With each operator applied that is summed with arrays that have not its other label."""
    k = 0
    terms, result, left = list(net.terms), net.result, list(net.left)
    while k < len(left):
        op = left[k]
        fits = isinstance(op, _core.Operator) and op.ndim == 2 and len(set(terms[k])) == 2
        pairs = [terms[k], terms[k][::-1]] if fits and len(terms[k]) == 2 else []
        for row, col in pairs:
            found = _partners(terms, result, k, col, row)
            if len(found) > 1:
                joined = _joined(Network(terms, result, left), k, found)
                if joined is not None:
                    return _along_axes(joined)
            i = found[0] if len(found) == 1 else k
            if isinstance(left[i], _core.Operator):
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
