"""Derivatives of formulas of small matrices that are cheaper where no structure is seen.

A product of inverses of sums, ``inv(B + U @ U.T) @ (X + Y) @ inv(B)`` of a BlockDiag B, is a sum of
products by its structure: each inverse of a sum is two terms, and each derivative multiplies them
once more, by a cotangent that is such a product itself. Of some hundred rows the steps that this
takes, each of a few microseconds, and the search among them come to far more than a product of
such matrices. Here the kinds below become the arrays that they mean, in a formula that is the same
otherwise: what is small enough, by the number of its terms and rows alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _core
from .._base.checks import is_lazy
from .._base.kind_flags import heads
from .._lazy import text
from .._lazy.kinds import Kind
from .likelihoods import shortened
from .matrices import Cotangent, head_of

__all__ = ["simplified"]

# Up to so many rows from so many terms on, or from so many that inverses of sums alone are the
# factors of, which later ones multiply. By random formulas of both (2026-11-29): second derivatives
# of 4 terms and 100 rows take 0.1 to 10 s by their structure, 0.01 to 0.1 by arrays, where they are
# planned for the first time 0.2; of sums between two inverses and 200 rows as much as by arrays.
SIZES = ((160, 4, 4), (224, 16, 4), (320, 24, 8))
ROWS = SIZES[-1][0]
WIDE = 2 * ROWS  # of the inner size of a product
MANY = 1 << 20  # terms are not counted further
# The inverse of a diagonal, a band or a circulant beside a low rank is two terms, but two of them
# have rows of their own (between-expanded): three are more than four terms, up to so many rows. Of
# Diag + LowRank second derivatives of three take 130 ms for 15 of 100 rows, 116 for 36 of 150.
UPDATE, UPDATED = 1.6, 128
# Kinds whose inverses, beside others, are sums; a Dense or a Diag is as good as an array.
_SUMS = heads("joins") | heads("multilinear") | heads("adds") | heads("scattered")
_ONE = ("scale", "over", "view")


def _is_operator(x: Any) -> bool:
    return bool(x._head == "operator")


def _has_structure(x: Any) -> bool:
    """Is it a kind, of LazyArrays or given, whose structure makes sums?"""
    if _is_operator(x):
        return x._args[0]._head in _SUMS
    is_kind = x._head == "made" and isinstance(x._more[0], Kind)
    return is_kind and head_of(x._more[0].cls) in _SUMS


def _matrices(x: Any) -> list[Any]:
    """The arguments of x that are matrices of its formula."""
    if x._head in ("matmul", "add", "inverse", *_ONE):
        return [a for a in x._args if is_lazy(a) and a.ndim == 2]
    return []


def _is_thin(x: Any) -> bool:
    return bool(4 * min(x.shape) <= max(x.shape))


def _is_update(x: Any, of: dict[int, float]) -> bool:
    """Is it a sum of what has terms and what has none, as a diagonal and a low rank?"""
    while x._head in _ONE:
        x = _matrices(x)[0]
    have = [bool(of.get(id(a), 0)) for a in _matrices(x)]
    return x._head == "add" and any(have) and not all(have)


def _terms(x: Any, of: dict[int, float]) -> float:
    """How many products the formula of x is the sum of, by its structure; 0: it has none."""
    counts = [of.get(id(a), 0) for a in _matrices(x)]
    if _has_structure(x):
        return 1
    if not any(counts):
        return 0
    if x._head == "add":
        return min(sum(counts), MANY)
    if x._head == "inverse":
        few = counts[0] == 1 and max(x.shape) <= UPDATED and _is_update(_matrices(x)[0], of)
        return UPDATE if few else min(2, counts[0])
    if x._head == "matmul":
        if any(map(_is_thin, x._args)):
            return 1
        one, other = (max(c, 1) for c in counts)
        return min(one * other, MANY)
    return max(counts)


def _is_small(x: Any, wanted: Any) -> bool:
    """Is it no large matrix, nor one that is to be known by its structure?"""
    known = id(x) in wanted or (_is_operator(x) and x._args[0]._opaque)
    return x._guard is None and not known and min(x.shape) <= ROWS and max(x.shape) <= WIDE


def _array(x: Any) -> Any:
    """A kind as an array: a formula that shows its operands' structure no longer."""
    return np.reshape(np.reshape(x, (-1,)), x.shape)


def _inverses(x: Any, terms: dict[int, float], of: dict[int, int]) -> int:
    """How many of the products inverses of sums make, of those that are multiplied."""
    counts = [of.get(id(a), 1) for a in _matrices(x)] or [1]
    if x._head == "inverse":
        return max(counts[0], min(2, int(terms[id(x)])))
    if x._head == "matmul" and terms[id(x)] > 1:
        return min(math.prod(counts), MANY)
    return max(counts)


def _places(order: list[Any], wanted: Any) -> set[int]:
    """The kinds that are to be arrays."""
    terms: dict[int, float] = {}
    inverses: dict[int, int] = {}
    small: set[int] = set()  # and so are those that it is a formula of
    within: set[int] = set()
    for x in order:
        if x.ndim != 2 or not x.size:
            continue
        terms[id(x)] = count = _terms(x, terms)
        inverses[id(x)] = factors = _inverses(x, terms, inverses)
        if not (_is_small(x, wanted) and all(id(a) in small for a in _matrices(x))):
            continue
        small.add(id(x))
        if any(
            max(x.shape) <= rows and (count >= least or factors >= fewest)
            for rows, least, fewest in SIZES
        ):
            within.add(id(x))
    if not within:
        return within
    places = set()
    for x in reversed(order):
        if id(x) in within:
            within.update(map(id, _matrices(x)))
            if _has_structure(x):
                places.add(id(x))
    return places


def _differentiated(order: list[Any]) -> set[int]:
    """The operators that derivatives within the formula are by: those look at their kinds."""
    found = [x for x in order if x._head == "made" and type(x._more[0]) is Cotangent]
    return {id(a) for x in found for a in x._args if is_lazy(a)}


def simplified(value: Any, wanted: Any) -> Any:
    """The value, or one that is equal and whose derivatives are cheaper: likelihoods of Markov
    processes by one sweep, small matrices of many terms as arrays."""
    value = shortened(value, wanted)
    order = text.postorder(value)
    places = _places(order, {*wanted, *_differentiated(order)})
    if not places:
        return value
    made: dict[int, Any] = {}
    for x in order:
        args = tuple([made.get(id(a), a) if is_lazy(a) else a for a in x._args])
        found = None
        if any(a is not b for a, b in zip(args, x._args, strict=True)):
            found = _core._LazyArray(x._head, args, x.shape, x.dtype, x._more)
        if id(x) in places:
            found = _array(x if found is None else found)
        if found is not None:
            if x._guard is not None:
                return value
            made[id(x)] = found
    return made.get(id(value), value)
