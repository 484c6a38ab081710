"""np.einsum's patterns that are linear algebra: a network of matrices and vectors is taken apart
into products, transposes, diagonal scalings, traces, diagonals, sums and outer products.

    labels --> steps, a function of earlier values each --> values

The steps are found by the labels alone and kept. A label that three matrices share has none; the
order of products is the planner's, which sees one formula."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _core

_Labels = tuple[str, ...]
_MOST_BATCH = 4  # axes of stacks; kinds take six


class Step(NamedTuple):
    run: Callable[..., Any]
    places: tuple[int, ...]  # of its arguments: operands first, then the steps' values
    turned: tuple[bool, ...]  # which of them are transposed


# -- what a step does ------------------------------------------------------------------------------


def _turned(a: Any) -> Any:
    return a.T if a.ndim == 2 else a.mT


def _same(a: Any) -> Any:
    return a


def _trace(a: Any) -> Any:
    return np.trace(a) if a.ndim == 2 else np.linalg.trace(a)


def _diagonal(a: Any) -> Any:
    return np.diagonal(a).copy() if a.ndim == 2 else np.linalg.diagonal(a)


def _sum(a: Any) -> Any:
    return np.sum(a, axis=a.ndim - 1)


def _product(a: Any, b: Any) -> Any:
    return a @ b


def _trace_of(a: Any, b: Any) -> Any:
    return _trace(a @ b)


def _diagonal_of(a: Any, b: Any) -> Any:
    return _diagonal(a @ b)


def _each(a: Any, b: Any) -> Any:
    """Of two vectors, or of anything and a number."""
    return a * b


def _elements(a: Any, b: Any) -> Any:
    """Of two matrices."""
    return a * b


def _rows(v: Any, a: Any) -> Any:
    """Row i times v[i]."""
    if np.result_type(v.dtype, a.dtype).char in "fdFD":
        return _core.Diag(v) @ a
    return np.reshape(v, (-1, 1)) * a


def _outer(a: Any, b: Any) -> Any:
    return np.outer(a, b)


def _kron(*factors: Any) -> Any:
    return functools.reduce(np.kron, factors)


_OF_STACKS = (_same, _product)
_LAST_OF_STACKS = (*_OF_STACKS, _trace, _diagonal, _trace_of, _diagonal_of)


# -- which steps -----------------------------------------------------------------------------------


class _Network:
    """Terms that are left: (labels, place of the value), and the steps so far."""

    def __init__(self, terms: Sequence[_Labels], kept: frozenset[str]) -> None:
        self.live = [(t, k) for k, t in enumerate(terms)]
        self.kept = kept  # labels of the result
        self.made = len(terms)
        self.steps: list[Step] = []
        self.holders: dict[str, list[Any]] = {}  # of each label, while a step is looked for

    def emit(
        self, run: Callable[..., Any], taken: Sequence[Any], labels: _Labels, turned: Any = ()
    ) -> None:
        turns = tuple(turned) or (False,) * len(taken)
        self.steps.append(Step(run, tuple(place for _, place in taken), turns))
        at = min(self.live.index(x) for x in taken)  # so that what is left stays in its order
        self.live = [x for x in self.live if x not in taken]
        self.live.insert(at, (labels, self.made))
        self.made += 1

    def gone(self, label: str, *terms: Any) -> bool:
        """Is a label summed, and in these terms alone?"""
        return label not in self.kept and all(x in terms for x in self.holders[label])

    def single(self, x: Any) -> bool:
        """A diagonal, a trace, a sum along an axis that is here alone."""
        labels, _ = x
        if len(labels) == 2 and labels[0] == labels[1]:
            alone = self.gone(labels[0], x)
            self.emit(_trace if alone else _diagonal, [x], () if alone else labels[:1])
            return True
        for k, label in enumerate(labels):
            if self.gone(label, x):
                left = labels[:k] + labels[k + 1 :]
                self.emit(_sum, [x], left, (len(labels) == 2 and k == 0,))
                return True
        return False

    def vectors(self, x: Any, y: Any) -> bool:
        """x is a vector: with a vector or a matrix along the same label."""
        label = x[0][0]
        if label not in y[0]:
            return False
        alone = self.gone(label, x, y)
        if len(y[0]) == 1:
            self.emit(_product if alone else _each, [x, y], () if alone else x[0])
            return True
        first = y[0][0] == label
        other = y[0][1] if first else y[0][0]
        if alone:
            self.emit(_product, [y, x], (other,), (first, False))
        else:
            self.emit(_rows, [x, y], (label, other), (False, not first))
        return True

    def matrices(self, x: Any, y: Any) -> bool:
        (p, _), (q, _) = x, y
        shared = [label for label in p if label in q]
        alone = [label for label in shared if self.gone(label, x, y)]
        left: _Labels
        if len(shared) == 2:
            if not alone:
                self.emit(_elements, [x, y], p, (False, p != q))
            elif len(alone) == 2:
                self.emit(_trace_of, [x, y], (), (False, p == q))
            else:
                (c,) = alone
                left = (p[1] if p[0] == c else p[0],)
                self.emit(_diagonal_of, [x, y], left, (p[0] == c, q[1] == c))
            return True
        if len(shared) != 1 or not alone:
            return False
        (c,) = alone
        left = (p[0] if p[1] == c else p[1], q[0] if q[1] == c else q[1])
        self.emit(_product, [x, y], left, (p[0] == c, q[1] == c))
        return True

    def one(self) -> bool:
        """One step, the cheapest sort first."""
        self.holders = {}
        for x in self.live:
            for label in dict.fromkeys(x[0]):
                self.holders.setdefault(label, []).append(x)
        if any(self.single(x) for x in self.live if x[0]):
            return True
        place = {x: k for k, x in enumerate(self.live)}
        pairs = [
            (x, y)
            for x in self.live
            for y in sorted({y for c in x[0] for y in self.holders[c]}, key=place.__getitem__)
            if x is not y
        ]
        of_vectors = [z for z in pairs if len(z[0][0]) == 1]
        of_vectors.sort(key=lambda z: len(z[1][0]))
        if any(self.vectors(x, y) for x, y in of_vectors):
            return True
        squares = [z for z in pairs if len(z[0][0]) == len(z[1][0]) == 2]
        squares.sort(key=lambda z: set(z[0][0]) != set(z[1][0]))
        return any(self.matrices(x, y) for x, y in squares)

    def finish(self, result: tuple[_Labels, ...]) -> bool:
        """The parts that are left as the result; False: these are none of linear algebra."""
        numbers = [x for x in self.live if not x[0]]
        parts = [x for x in self.live if x[0]]
        flat = tuple(label for axis in result for label in axis)
        if any(len(axis) != 1 for axis in result):
            if len(result) != 2 or not parts or not self._blocks(result, parts):
                return False
        elif len(parts) == 2 and all(len(x[0]) == 1 for x in parts) and len(flat) == 2:
            parts.sort(key=lambda x: x[0] != flat[:1])
            self.emit(_outer, parts, flat)
        elif len(parts) == 1:
            if parts[0][0] != flat:
                self.emit(_same, parts, flat, (True,))
        elif parts:
            return False
        while numbers and len(self.live) > 1:
            first = next((x for x in self.live if x[0]), self.live[0])
            self.emit(_each, [first, next(x for x in self.live if x is not first)], flat)
        return len(self.live) == 1

    def _blocks(self, result: tuple[_Labels, ...], parts: Any) -> bool:
        """A Kronecker product: axes (i k) and (j l) of ij and kl."""
        rows, columns = result
        found = {frozenset(x[0]): x for x in parts}
        if len(rows) != len(columns) or len(rows) != len(parts):
            return False
        factors = [found.get(frozenset(z)) for z in zip(rows, columns, strict=True)]
        if any(x is None for x in factors):
            return False
        turned = [x[0][0] not in rows for x in factors if x is not None]
        self.emit(_kron, [x for x in factors if x is not None], rows + columns, turned)
        return True


@functools.lru_cache(maxsize=1024)
def steps(terms: tuple[_Labels, ...], result: tuple[_Labels, ...]) -> tuple[Step, ...] | None:
    """The steps of a network of matrices, vectors and numbers; None: it is not all of these.
    An axis of the result is a label, or several for a Kronecker product."""
    if any(len(t) > 2 for t in terms) or len(result) > 2:
        return None
    network = _Network(terms, frozenset(label for axis in result for label in axis))
    while network.one():
        pass
    return tuple(network.steps) if network.finish(result) else None


@functools.lru_cache(maxsize=1024)
def steps_of_stacks(terms: tuple[_Labels, ...], result: _Labels) -> tuple[Step, ...] | None:
    """The same for stacks of matrices, whose axes come first in all that have them."""
    for k in range(len(result) - 2, len(result) + 1):
        batch = result[:k]
        cores = [t[len(t) - 2 :] for t in terms]
        if not 0 < k <= _MOST_BATCH or any(len(t) < 2 or set(t) & set(batch) for t in cores):
            continue
        fronts = [t[:-2] for t in terms]
        if any(f != batch[k - len(f) :] for f in fronts) or max(map(len, fronts)) < k:
            continue
        found = steps(tuple(cores), tuple((label,) for label in result[k:]))
        if not found:  # also where nothing is to be done: broadcasting alone
            continue
        if found[-1].run in _LAST_OF_STACKS and all(s.run in _OF_STACKS for s in found[:-1]):
            return found
    return None


def run(found: tuple[Step, ...], operands: Sequence[Any]) -> Any:
    """The value of the last step; NotImplemented where operators have no such step."""
    if any(isinstance(x, _core.Operator) for x in operands):
        whole = any(x.dtype.char not in "fdFD" for x in operands if hasattr(x, "dtype"))
        if any(s.run is _elements or (whole and s.run is _rows) for s in found):
            return NotImplemented
    return values(found, operands)


def values(found: tuple[Step, ...], operands: Sequence[Any]) -> Any:
    """The same where no operator is among the operands themselves."""
    values = list(operands)
    for step in found:
        args = [_turned(values[k]) if t else values[k] for k, t in zip(step.places, step.turned)]
        values.append(step.run(*args))
    return values[-1]
