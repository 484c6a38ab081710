"""Numbers of a kind that are made of the numbers of two others: index vectors, blocks, circulants,
pieces of Toeplitz matrices, products of sparse matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from . import kinds, products

__all__ = ["HEADS"]


def _wrapped(w: Any, at: int, n: int) -> Any:
    """An index vector whose negative numbers count from the end, as int64."""
    index = w.ns.cast(w.value(at), "int64")
    return w.ns.where(index < 0, index + n, index)


def _inverse_permutation(w: Any, row: Any) -> Any:
    return w.ns.xp.argsort(_wrapped(w, row.children[0], row.shape[-1]))


def _compose(w: Any, row: Any) -> Any:
    """p[q], element by element of a batch."""
    ns, (p, q) = w.ns, row.children
    n, batch = int(w.value(p).shape[-1]), tuple(row.shape[:-1])
    index = ns.expand(_wrapped(w, q, n), row.shape)
    whole = ns.expand(w.value(p), (*batch, n))
    if batch:
        first = ns.reshape(ns.arange(math.prod(batch)) * n, (*batch, 1))
        index, whole = index + first, ns.reshape(whole, (math.prod(batch) * n,))
    found = ns.take(whole, ns.reshape(index, (math.prod(row.shape),)), 0)
    return ns.reshape(found, tuple(row.shape))


def _diagrun(w: Any, row: Any) -> Any:
    """Some of a Toeplitz matrix's diagonals, by its first column and row."""
    c, r = (w.whole(row, k) for k in (0, 1))
    batch, (start, step, count) = tuple(row.shape[:-1]), row.i[:3]
    above = r[..., min(1, r.shape[-1]) :]
    parts = [w.ns.expand(x, (*batch, x.shape[-1])) for x in (w.ns.flip(above, (-1,)), c)]
    index = start + above.shape[-1] + step * w.ns.arange(count)
    return w.ns.take(w.ns.concat(parts, -1), index, len(batch))


def _blockplus(w: Any, row: Any) -> Any:
    """Blocks on a diagonal, and a vector along it."""
    ns, b = w.ns, row.i[0]
    blocks, v = w.whole(row, 0), w.whole(row, 1)
    if not b:
        return ns.zeros(tuple(row.shape), row.dtype)
    count = row.shape[-1] // (b * b)
    blocks = ns.reshape(blocks, (*blocks.shape[:-1], count, b, b))
    v = ns.reshape(v, (*v.shape[:-1], count, b, 1))
    return ns.reshape(blocks + v * ns.eye(b, b, 0, row.dtype), tuple(row.shape))


def _circular_convolution(w: Any, row: Any) -> Any:
    """The first column of a product of circulants."""
    sizes, real = kinds.levels(w, row, 2), row.dtype.startswith("float")
    values = products.spectrum(w, w.whole(row, 0), sizes)
    found = products.by_spectrum(w, values, sizes, w.whole(row, 1)[..., None], real)
    return found[..., 0]


def _sparse_pair(w: Any, row: Any) -> Any:
    """A D B or one of its diagonals: the second factor is made dense, which is announced."""
    b = w.ns.cast(kinds.dense(w, row.children[1]), row.dtype)
    if len(row.children) > 2:
        b = w.whole(row, 2)[..., None] * b
    found = products.apply(w, row.children[0], 0, b, row.dtype)
    return w.ns.diagonal(found, row.i[1]) if row.i[0] else found


HEADS: dict[str, Callable[..., Any]] = {
    "inverse_permutation": _inverse_permutation,
    "compose": _compose,
    "diagrun": _diagrun,
    "blockplus": _blockplus,
    "circular_convolution": _circular_convolution,
    "sparsepair": _sparse_pair,
}
