"""Weighted Gram matrices, ``ki,k,kj->ij`` of one array twice: one triangle, in one pass over the
rows (src/c/kernels/dense/k_weighted_gram.c), where a plan scales a copy and takes the whole
product."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import _core

_LEAST_COLUMNS, LEAST = 16, 1 << 14  # below, a plan found again is quicker than a formula


class Places(NamedTuple):
    """Which operands are the matrix, twice, and the weights; is the matrix columns by rows?"""

    one: int
    other: int
    weights: tuple[int, ...]
    turned: bool


@functools.lru_cache(maxsize=1024)
def places(labels: tuple[tuple[str, ...], ...], result: tuple[str, ...]) -> Places | None:
    """None where the equation is none of these, or has no weights."""
    wide = [i for i, t in enumerate(labels) if len(t) == 2]
    weights = tuple(i for i, t in enumerate(labels) if len(t) == 1)
    if len(wide) != 2 or not weights or len(labels) != 2 + len(weights) or len(result) != 2:
        return None
    p, q = (labels[i] for i in wide)
    shared = set(p) & set(q)
    if len(shared) != 1 or len({*p, *q}) != 3 or any(labels[i] != tuple(shared) for i in weights):
        return None
    (row,) = shared
    k = p.index(row)
    if q.index(row) != k or {p[1 - k], q[1 - k]} != set(result):
        return None
    return Places(wide[0], wide[1], weights, k == 1)


def _same(a: Any, b: Any) -> bool:
    """Are they one array?"""
    if a is b:
        return True
    one, other = a.__array_interface__, b.__array_interface__
    return (one["data"][0], a.shape, a.strides) == (other["data"][0], b.shape, b.strides)


def product(
    labels: tuple[tuple[str, ...], ...], result: tuple[str, ...], arrays: Sequence[Any]
) -> Any:
    """The result, or None: the matrices are two, or small, or complex."""
    found = places(labels, result)
    if found is None:
        return None
    x = arrays[found.one]
    if x.dtype.char not in "fd" or x.size < LEAST or not _same(x, arrays[found.other]):
        return None
    x = x.T if found.turned else x
    weights = [arrays[i] for i in found.weights]
    if x.shape[1] < _LEAST_COLUMNS or any(w.shape != x.shape[:1] for w in weights):
        return None
    d = weights[0]
    for w in weights[1:]:
        d = d * w
    form = _core.Dense(x)
    return (form.T @ (_core.Diag(d) @ form)).toarray()
