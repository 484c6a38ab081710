"""Sums with products in them by one function for each product: on a device a function costs as much
as a pass over a long vector. Only where a library has such functions
(`Namespace.fuses`).

    b - (d x + U t)   is   b,  then - d x,  then - U t

A node that one sum alone reads is not computed: it is a term of that sum. So are determinants that
one product alone reads."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import kinds

__all__ = ["Sums", "sums_of"]

_IS_DIAGONAL = {"diag": True, "dense": False}  # kinds whose products are one function


class _Term(NamedTuple):
    at: int  # a node of this value; or a product that is computed within the sum
    factor: Any
    is_product: bool


class Sums(NamedTuple):
    """The terms of sums by their nodes, and the nodes that are computed within another."""

    terms: dict[int, list[_Term]]
    within: set[int]

    def value(self, w: Any, at: int) -> Any:
        """Of a sum."""
        terms, ns, dtype = list(self.terms[at]), w.ns, w.rows[at].dtype
        first = next((k for k, t in enumerate(terms) if not t.is_product), 0)
        total = _first(w, terms.pop(first), dtype)
        for term in terms:
            if not term.is_product:
                total = ns.plus_scaled(total, ns.cast(w.value(term.at), dtype), term.factor)
                continue
            is_diagonal, a, x = _product(w, term.at, dtype)
            added = ns.plus_times if is_diagonal else ns.plus_product
            total = added(total, a, x, term.factor)
        return total


def _first(w: Any, term: _Term, dtype: str) -> Any:
    if not term.is_product:
        y = w.ns.cast(w.value(term.at), dtype)
    else:
        is_diagonal, a, x = _product(w, term.at, dtype)
        y = a * x if is_diagonal else w.ns.matmul(a, x)
    return y if term.factor == 1 else y * term.factor


def _product(w: Any, at: int, dtype: str) -> Any:
    """Is it one with a diagonal matrix; that, a column or a matrix; what it is applied to."""
    row = w.rows[at]
    of, mode = kinds.through_views(w, row.children[0], 0)
    a, x = (w.ns.cast(v, dtype) for v in (w.child(of, 0), w.value(row.children[1])))
    if not _IS_DIAGONAL[of.head]:
        return False, kinds.seen(w.ns, a, mode), x
    return True, (w.ns.conj(a) if mode & 2 else a)[..., None], x


def sums_of(w: Any, reads: list[int]) -> Sums:
    """Of a walk; `reads` is how often each node is read, 0 where it is not needed."""
    found = Sums({}, set())

    def alone(at: int) -> bool:
        return reads[at] == 1 and w.rows[at].head in ("vector_det", "cholesky_det")

    for at in range(len(w.rows) - 1, -1, -1):
        row = w.rows[at]
        if row.head == "mul_det" and reads[at] and all(map(alone, row.children)):
            found.within.update(row.children)
        if row.head == "add" and reads[at] and at not in found.within and _floats(row):
            inner: set[int] = set()
            terms = [t for k in row.children for t in _terms(w, k, 1, row, reads, inner)]
            if inner:
                found.terms[at] = terms
                found.within.update(inner)
    return found


def _floats(row: Any) -> bool:
    return bool(row.dtype.startswith(("float", "complex")))


def _terms(w: Any, at: int, c: Any, whole: Any, reads: list[int], inner: set[int]) -> list[_Term]:
    row = w.rows[at]
    alone = reads[at] == 1 and (row.dtype, row.shape) == (whole.dtype, whole.shape)
    if alone and row.head == "scale" and not row.num and w.coefficient(row) == -1:
        inner.add(at)
        return _terms(w, row.children[0], -c, whole, reads, inner)
    if alone and row.head == "add" and c == -1:  # not of what a refined solution is moved by
        inner.add(at)
        return [t for k in row.children for t in _terms(w, k, c, whole, reads, inner)]
    if alone and row.head == "apply" and _is_plain(w, row, whole):
        inner.add(at)
        return [_Term(at, c, True)]
    return [_Term(at, c, False)]


def _is_plain(w: Any, row: Any, whole: Any) -> bool:
    """A diagonal matrix or a dense one of the sum's dtype, times columns of that dtype."""
    of, _ = kinds.through_views(w, row.children[0], 0)
    return (
        of.head in _IS_DIAGONAL
        and {of.dtype, w.rows[of.children[0]].dtype, w.rows[row.children[1]].dtype} == {whole.dtype}
        and len(of.shape) == len(row.shape) == 2
    )
