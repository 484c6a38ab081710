"""Operators among einsum's operands that are labels or arrays of fewer numbers:

    Diag            a vector, rows and columns one label
    Identity        that label alone
    Permutation     the other operands' axis in another order
    LowRank         two matrices, or three, that share a label
    Kron            its factors; rows and columns are groups of labels
    KhatriRao       its two factors
    BlockDiag       of blocks of one shape: a stack; rows and columns are groups
    Sparse          its numbers, a label for them; the others are read at their rows and columns

The parts take the operator's place among the operands; no dense form is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._base.checks import is_lazy
from .._contractions.grammar import Group, labels_of


class Network(NamedTuple):
    """Axes of the operands and of the result, labels and groups of labels alone; the operands."""

    terms: list[tuple[Any, ...]]
    result: tuple[Any, ...]
    left: list[Any]

    def labels(self) -> set[str]:
        return {x for t in (*self.terms, self.result) for axis in t for x in labels_of(axis)}

    def new(self, like: str, count: int) -> list[str]:
        """Labels that are nowhere yet."""
        there, k = self.labels(), 0
        found: list[str] = []
        while len(found) < count:
            name = f"{like}{k}"
            if name not in there:
                found.append(name)
            k += 1
        return found

    def replaced(self, k: int, parts: Sequence[tuple[tuple[Any, ...], Any]]) -> Network:
        """With (axes, operand)s in place of operand k."""
        axes, arrays = [p[0] for p in parts], [p[1] for p in parts]
        terms = [*self.terms[:k], *axes, *self.terms[k + 1 :]]
        return Network(terms, self.result, [*self.left[:k], *arrays, *self.left[k + 1 :]])

    def renamed(self, label: str, to: tuple[str, ...]) -> Network:
        """With a label as one or several everywhere."""

        def axis(x: Any) -> Any:
            if label not in labels_of(x):
                return x
            if x == label:
                return to[0] if len(to) == 1 else Group(to)
            return Group(tuple(z for y in x.labels for z in (to if y == label else (y,))))

        terms = [tuple(map(axis, t)) for t in self.terms]
        return Network(terms, tuple(map(axis, self.result)), self.left)

    def others(self, k: int, label: str) -> list[int]:
        """Further operands that have the label."""
        found = enumerate(self.terms)
        return [i for i, t in found if i != k and any(label in labels_of(x) for x in t)]

    def exact(self, i: int, label: str, n: int) -> bool:
        """Is the label an axis of operand i, of size n, wherever it has it? A 1 broadcasts."""
        shape = self.left[i].shape
        return len(shape) == len(self.terms[i]) and all(
            x == label and m == n
            for x, m in zip(self.terms[i], shape, strict=True)
            if label in labels_of(x)
        )


def _parts(net: Network, k: int) -> tuple[Any, str, str]:
    row, col = net.terms[k]
    return net.left[k], row, col


def _merged(net: Network, k: int, parts: Sequence[Any]) -> Network | None:
    """Rows and columns one label; where the result has both it is a matrix, and stays."""
    op, row, col = _parts(net, k)
    kept = {x for axis in net.result for x in labels_of(axis)}
    if row != col and {row, col} <= kept:
        return None
    for label in (row, col):
        if not all(net.exact(i, label, op.shape[0]) for i in net.others(k, label)):
            return None
    stays, goes = (col, row) if col in kept else (row, col)
    own = parts or not (net.others(k, row) or net.others(k, col))
    made = net.replaced(k, [((stays,), parts[0] if parts else np.ones(op.shape[0]))] if own else [])
    return made.renamed(goes, (stays,))


def _diag(net: Network, k: int) -> Network | None:
    d, offset, shape = net.left[k]._given("d", "k", "shape")
    if offset or shape is not None:
        return None
    return _merged(net, k, [_array(d)])


def _identity(net: Network, k: int) -> Network | None:
    dtype = net.left[k]._given("dtype")
    return _merged(net, k, [] if dtype is None else [np.ones(net.left[k].shape[0], dtype)])


def _permutation(net: Network, k: int) -> Network | None:
    op, row, col = _parts(net, k)
    kept = {x for axis in net.result for x in labels_of(axis)}
    p = np.asarray(op._given("p"))
    n = op.shape[0]
    p = np.where(p < 0, p + n, p)
    if p.min(initial=0) < 0 or not np.array_equal(np.sort(p), np.arange(n)):
        return None  # the operator says what is wrong
    if row == col or {row, col} <= kept or op._given("dtype") is not None:
        return None
    if col in kept:
        row, col, p = col, row, np.argsort(p)
    others = net.others(k, col)
    if not others or not all(net.exact(i, col, n) for i in others):
        return None
    if not all(net.exact(i, row, n) for i in net.others(k, row)):
        return None
    left = list(net.left)
    for i in others:
        if isinstance(left[i], _core.Operator):
            return None
        for axis, x in enumerate(net.terms[i]):
            if x == col:
                left[i] = _at(left[i], axis, p)
    return Network(net.terms, net.result, left).replaced(k, []).renamed(col, (row,))


def _low_rank(net: Network, k: int) -> Network | None:
    op, row, col = _parts(net, k)
    u, v, c = op._given("U", "V", "C")
    v = u if v is None else v
    r, s = net.new("_rank", 2)
    left, right = _factor(u), _factor(v).conj()
    middle = [] if c is None else [((r, s), _factor(c))]
    return net.replaced(k, [((row, r), left), *middle, ((col, r if c is None else s), right)])


def _khatri_rao(net: Network, k: int) -> Network | None:
    op, row, col = _parts(net, k)
    a, b = (_factor(x) for x in op._given("A", "B"))
    p, q = net.new("_row", 2)
    if row == col or not _groups(net, k, row, op.shape[0]):
        return None
    made = net.replaced(k, [((p, col), a), ((q, col), b)])
    return made.renamed(row, (p, q))


def _kron(net: Network, k: int) -> Network | None:
    op, row, col = _parts(net, k)
    factors = [_factor(x) for x in op._given("ops")]
    rows = net.new("_row", len(factors))
    cols = rows if row == col else net.new("_col", len(factors))
    if row == col and any(x.shape[0] != x.shape[1] for x in factors):
        return None
    if not _groups(net, k, row, op.shape[0]) or not _groups(net, k, col, op.shape[1]):
        return None
    made = net.replaced(k, list(zip(zip(rows, cols), factors)))
    made = made.renamed(row, tuple(rows))
    return made if row == col else made.renamed(col, tuple(cols))


def _block_diag(net: Network, k: int) -> Network | None:
    op, row, col = _parts(net, k)
    blocks = [_factor(x) for x in op._given("ops")]
    kept = {x for axis in net.result for x in labels_of(axis)}
    if row == col or {row, col} <= kept or len({x.shape for x in blocks}) != 1:
        return None
    if any(isinstance(x, _core.Operator) or is_lazy(x) for x in blocks):
        return None
    if not _groups(net, k, row, op.shape[0]) or not _groups(net, k, col, op.shape[1]):
        return None
    b, p, q = (net.new(x, 1)[0] for x in ("_block", "_row", "_col"))
    made = net.replaced(k, [((b, p, q), np.stack(blocks))])
    return made.renamed(row, (b, p)).renamed(col, (b, q))


def _sparse(net: Network, k: int) -> Network | None:
    """Where neither rows nor columns are in the result: a sum over the entries."""
    op, row, col = _parts(net, k)
    kept = {x for axis in net.result for x in labels_of(axis)}
    others = {*net.others(k, row), *net.others(k, col)}
    if row == col or row in kept or col in kept or not others:
        return None
    for i in others:
        alike = net.exact(i, row, op.shape[0]) and net.exact(i, col, op.shape[1])
        once = net.terms[i].count(row) <= 1 and net.terms[i].count(col) <= 1
        if isinstance(net.left[i], _core.Operator) or not alike or not once:
            return None
    entries = op._given("A").tocoo()
    (e,) = net.new("_entry", 1)
    terms, left = list(net.terms), list(net.left)
    for i in others:
        x, t = left[i], terms[i]
        if row in t and col in t:
            x = np.moveaxis(x, (t.index(row), t.index(col)), (0, 1))[entries.row, entries.col]
            terms[i] = (e, *(y for y in t if y not in (row, col)))
        else:
            label, at = (row, entries.row) if row in t else (col, entries.col)
            x = _at(x, t.index(label), at)
            terms[i] = tuple(e if y == label else y for y in t)
        left[i] = x
    return Network(terms, net.result, left).replaced(k, [((e,), np.asarray(entries.data))])


def _groups(net: Network, k: int, label: str, n: int) -> bool:
    """May a label become several? Not that of an operator's axis, nor one that broadcasts."""
    return all(
        not isinstance(net.left[i], _core.Operator) and net.exact(i, label, n)
        for i in net.others(k, label)
    )


def _at(x: Any, axis: int, places: Any) -> Any:
    return x[(slice(None),) * axis + (places,)]


def _array(x: Any) -> Any:
    return x if is_lazy(x) else np.asarray(x)


def _factor(x: Any) -> Any:
    """A part of an operator: an operator again, or its array."""
    if isinstance(x, _core.Operator):
        plain = x._head == "dense" and x._init is not None and x._given("assume_a") is None
        return _array(x._given("a")) if plain else x
    return _array(x)


EARLY: dict[str, Callable[[Network, int], Network | None]] = {
    "diag": _diag,
    "identity": _identity,
    "permutation": _permutation,
}
LATE: dict[str, Callable[[Network, int], Network | None]] = {
    "lowrank": _low_rank,
    "khatrirao": _khatri_rao,
    "kron": _kron,
    "blockdiag": _block_diag,
    "sparse": _sparse,
}


def split(net: Network, which: dict[str, Callable[[Network, int], Network | None]]) -> Network:
    """The same contraction with operators of these kinds as what they are made of."""
    k = 0
    while k < len(net.left):
        op = net.left[k]
        fits = isinstance(op, _core.Operator) and op.ndim == 2 and len(net.terms[k]) == 2
        if fits and op._init is not None and all(isinstance(x, str) for x in net.terms[k]):
            made = which[op._head](net, k) if op._head in which else None
            if made is not None:
                net, k = made, -1
        k += 1
    return net
