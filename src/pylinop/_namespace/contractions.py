"""Contractions on arrays of a namespace: equations read by taking and reshaping, then pair by pair
products of matrices, in the order that the planner in C finds for these sizes.

    operand -- its axes: indices taken, groups split, diagonals --> one axis a label
    pair -- axes in order: both and kept, left, summed, right --> matmul of three dimensions
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._contractions import equations, show, views
from .._contractions.equations import Task
from .._contractions.grammar import Axis, Group, Index, labels_of
from .._contractions.scatter import Scattered
from .._contractions.sizes import Sized

__all__ = ["einsum"]

_Labels = tuple[str, ...]


def einsum(run: Any, a: Any, kwargs: Any, *values: Any) -> Any:
    """A contraction, or what is put back where an equation read it: both go by this name."""
    function = a._more[0]
    values = tuple(run.ns.cast(x, a.dtype.name) for x in values)
    if isinstance(function, Scattered):
        return _scattered(run.ns, function, values[0])
    return _contraction(run.ns, function.task, values, a.dtype.name)


# -- operands


def _contraction(ns: Any, task: Task, values: Sequence[Any], dtype: str) -> Any:
    s = equations.resolved(task.equation, tuple(tuple(x.shape) for x in values), task.sizes)
    shape, result = views.merged_shape(s), views.result_labels(s)
    if 0 in s.sizes.values():
        return ns.zeros(shape, dtype)
    read = [_read(ns, x, axes, s, task.outside) for x, axes in zip(values, s.operands, strict=True)]
    there = {label for _, labels in read for label in labels}
    for label, n in s.sizes.items():  # that nothing moves along
        if label not in there and n != 1:
            read.append((ns.ones((n,), dtype), (label,)))
            there.add(label)
    kept = tuple(label for label in result if label in there)
    made = _multiplied(ns, read, kept, s.sizes, task.path)
    return ns.reshape(made, shape)


def _read(ns: Any, x: Any, axes: Sequence[Axis], s: Sized, outside: Any) -> tuple[Any, _Labels]:
    """An operand with one axis for each label along which it moves."""
    labels: list[str] = []
    for axis in axes:
        k = len(labels)
        before, n, behind = tuple(x.shape[:k]), int(x.shape[k]), tuple(x.shape[k + 1 :])
        own = labels_of(axis)
        if isinstance(axis, Index):
            x = _taken(ns, x, k, axis, s, outside)
        elif isinstance(axis, Group):
            x = ns.reshape(x, (*before, *(s.sizes[label] for label in own), *behind))
        elif n == 1:
            x, own = ns.reshape(x, (*before, *behind)), ()
        labels += own
    while len(set(labels)) < len(labels):
        label = next(label for label in labels if labels.count(label) > 1)
        x, labels = _diagonal(ns, x, labels, label)
    return x, tuple(labels)


def _taken(ns: Any, x: Any, k: int, axis: Index, s: Sized, outside: Any) -> Any:
    """Axis k at the indices that an equation says, for all its labels."""
    sizes, n = [s.sizes[label] for label, _ in axis.terms], int(x.shape[k])
    at = _places(axis, sizes).reshape(-1)
    shape = (*x.shape[:k], *sizes, *x.shape[k + 1 :])
    inside = (at >= 0) & (at < n)
    if outside != "wrap" and not inside.any():
        return ns.zeros(shape, ns.name_of(x))
    x = ns.take(x, at % n, k)
    if outside == 0 and not inside.all():
        keep = ns.reshape(ns.constant(inside), (-1, *(1,) * (x.ndim - k - 1)))
        x = ns.where(keep, x, ns.zeros((), ns.name_of(x)))
    return ns.reshape(x, shape)


def _places(axis: Index, sizes: Sequence[int]) -> Any:
    at: Any = np.full(sizes, axis.constant, np.int64)
    for k, (_, c) in enumerate(axis.terms):
        at = at + c * np.arange(sizes[k]).reshape([-1 if j == k else 1 for j in range(len(sizes))])
    return at


def _diagonal(ns: Any, x: Any, labels: list[str], label: str) -> tuple[Any, list[str]]:
    """One axis for a label that has two; it comes last."""
    i = labels.index(label)
    j = labels.index(label, i + 1)
    others = [k for k in range(len(labels)) if k not in (i, j)]
    x = ns.diagonal(ns.moved(x, [*others, i, j]), 0)
    return x, [labels[k] for k in others] + [label]


# -- pairs


def _order(
    read: Sequence[tuple[Any, _Labels]], result: _Labels, sizes: Any, path: Any
) -> Sequence[tuple[int, int]]:
    """Pairs of places among those that are left, the made one behind the others."""
    if len(read) < 3:
        return [(0, 1)] * (len(read) - 1)
    if path is not None and len(path) == len(read) - 1:
        return tuple(path)
    stand_ins = [np.broadcast_to(np.zeros(()), [sizes[x] for x in labels]) for _, labels in read]
    planned = equations._equation(tuple(labels for _, labels in read), result, None, False)
    return show.pairs(planned.plan(*stand_ins))


def _multiplied(
    ns: Any, read: list[tuple[Any, _Labels]], result: _Labels, sizes: Any, path: Any
) -> Any:
    if not read:
        raise ValueError("einsum: there are no operands")
    live = list(read)
    for i, j in _order(read, result, sizes, path):
        x, y = live[i], live[j]
        live = [v for k, v in enumerate(live) if k not in (i, j)]
        needed = {label for _, labels in live for label in labels} | set(result)
        live.append(_pair(ns, x, y, needed, sizes))
    x, labels = _summed(ns, *live[0], set(result))
    return ns.moved(x, [labels.index(label) for label in result]) if labels else x


def _summed(ns: Any, x: Any, labels: _Labels, kept: set[str]) -> tuple[Any, _Labels]:
    """Without the axes that nothing else has."""
    gone = tuple(k for k, label in enumerate(labels) if label not in kept)
    if not gone:
        return x, labels
    return ns.sum(x, gone), tuple(label for label in labels if label in kept)


def _pair(
    ns: Any, x: tuple[Any, _Labels], y: tuple[Any, _Labels], needed: set[str], sizes: Any
) -> tuple[Any, _Labels]:
    """Sums of products of two arrays: one product of stacks of matrices."""
    a, in_a = _summed(ns, *x, needed | set(y[1]))
    b, in_b = _summed(ns, *y, needed | set(in_a))
    batch = tuple(label for label in in_a if label in in_b and label in needed)
    summed = tuple(label for label in in_a if label in in_b and label not in needed)
    rows = tuple(label for label in in_a if label not in in_b)
    cols = tuple(label for label in in_b if label not in in_a)
    count = [math.prod(sizes[label] for label in of) for of in (batch, rows, summed, cols)]
    a = _in_order(ns, a, in_a, batch + rows + summed, count[:3])
    b = _in_order(ns, b, in_b, batch + summed + cols, [count[0], *count[2:]])
    made = ns.matmul(a, b) if summed else a * b
    labels = batch + rows + cols
    return ns.reshape(made, [sizes[label] for label in labels]), labels


def _in_order(ns: Any, x: Any, labels: _Labels, order: _Labels, shape: Sequence[int]) -> Any:
    at = [labels.index(label) for label in order]
    return ns.reshape(x if at == sorted(at) else ns.moved(x, at), shape)


# -- what operands get back


def _scattered(ns: Any, f: Scattered, values: Any) -> Any:
    """Each element of an operand is the sum of what was read there."""
    labels = list(dict.fromkeys(label for axis in f.axes for label in labels_of(axis)))
    index = {
        label: np.arange(f.sizes[label]).reshape([-1 if k == j else 1 for k in range(len(labels))])
        for j, label in enumerate(labels)
    }
    place: Any = np.zeros((), np.int64)
    inside: Any = np.ones((), bool)
    for axis, n in zip(f.axes, f.shape, strict=True):
        at: Any = np.zeros((), np.int64)
        if isinstance(axis, Index):
            at = axis.constant + sum(c * index[label] for label, c in axis.terms)
        for label in labels_of(axis) if not isinstance(axis, Index) else ():
            at = at * f.sizes[label] + index[label]
        at = at % n if f.outside == "wrap" and n else at
        inside = inside & (at >= 0) & (at < n)
        place = place * n + at
    place = np.broadcast_to(place, values.shape).reshape(-1)
    inside = np.flatnonzero(np.broadcast_to(inside, values.shape))
    flat = ns.reshape(values, (-1, 1))
    if not inside.size:
        return ns.zeros(f.shape, ns.name_of(values))
    if inside.size < place.size:
        flat, place = ns.take(flat, inside, 0), place[inside]
    made = ns.scatter(flat, ns.constant(place, "int64"), math.prod(f.shape))
    return ns.reshape(made, f.shape)
