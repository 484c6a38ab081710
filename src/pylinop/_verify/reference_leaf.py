"""What the independent forms of kinds share (`reference_kinds.py`, `reference_fft.py`): how a kind
is read, and the memory for results."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base import config

T, C = 1, 2
LARGEST = 1 << 22  # entries of a dense form
LONGEST = 1 << 28  # of vectors on the way


class NotVerified(Exception):
    """There is no independent way; the message says why."""


class Leaf:
    """One kind and how it is seen: mode, dtype to work in, absolute values or not."""

    def __init__(self, op: Any, work: Any, mode: int, bound: Any) -> None:
        self.op, self.work, self.bound = op, work, bound
        self.turned, self.conj = bool(mode & T), bool(mode & C)
        self.given = op._given  # (*names): what the kind was constructed of

    def get(self, a: Any) -> Any:
        """An argument as an array to compute with."""
        a = np.asarray(a)
        work = np.dtype(complex) if a.dtype.kind == "c" and self.work.kind == "f" else self.work
        a = a.astype(work, copy=False)
        if self.bound:
            return np.abs(a)
        return np.conjugate(a) if self.conj and a.dtype.kind == "c" else a

    def plain(self, a: Any) -> Any:
        """The same, neither conjugated nor by its absolute values."""
        return Leaf(self.op, self.work, 0, False).get(a)

    def seen(self, a: Any) -> Any:
        """A matrix that was made of `plain` arguments."""
        a = np.abs(a) if self.bound else np.conjugate(a) if self.conj else a
        return np.swapaxes(a, -1, -2) if self.turned else a


def magnitudes(a: Any) -> Any:
    """|a| in floats: |-128| is -128 in int8."""
    return np.abs(a.astype(float) if a.dtype.kind in "biu" else a).astype(float, copy=False)


def sizes(a: Any, x: Any) -> Any:
    """|a| x for x >= 0; of large a a bound, the norms of its rows times those of x's columns, which
    takes one pass and no copy."""
    if a.size <= 1 << 15 or a.ndim > 2:
        return magnitudes(a) @ x
    parts = (a.real, a.imag) if a.dtype.kind == "c" else (a,)
    square = sum(np.einsum("ij,ij->i", p, p, dtype=float) for p in parts)
    return np.sqrt(square)[:, None] * np.sqrt((x * x).sum(-2))


def top(size: Any) -> Any:
    """The largest entry of each column, in all rows: the norms of a backward error."""
    return np.broadcast_to(size.max(-2, keepdims=True, initial=0), size.shape)


def thin(a: Any, x: Any) -> Any:
    """a x of a large a and few columns: by vectors, which is faster than OpenBLAS's gemm is."""
    if a.ndim == x.ndim == 2 and x.shape[1] <= 6 and a.size > 1 << 15 and a.dtype.kind in "fc":
        return np.stack([a @ x[:, j] for j in range(x.shape[1])], axis=1)
    return a @ x


def zeros(leaf: Any, x: Any, *parts: Any) -> Any:
    """Room for the result, of the right batch and dtype."""
    m = leaf.op.shape[-1 if leaf.turned else -2]
    batch = np.broadcast_shapes(x.shape[:-2], leaf.op.shape[:-2])
    dtype = np.dtype(float) if leaf.bound else np.result_type(x, *parts)
    return np.zeros((*batch, m, x.shape[-1]), dtype)


def has_room(entries: Any) -> Any:
    """May so many numbers be formed for the comparison?"""
    limit = config.get("memory_limit")
    return entries <= (LARGEST if limit is None else min(LARGEST, limit // 16))


def check_length(rows: Any, columns: Any) -> None:
    """Raises where so many vectors are too long to be made for the comparison."""
    limit = config.get("memory_limit")
    if rows * columns > (LONGEST if limit is None else min(LONGEST, limit // 8)):
        many = "a vector" if columns == 1 else f"{columns} vectors"
        raise NotVerified(f"{many} of {rows:,} entries on the way as written: no room for that")


def units(n: int, at: Any, dtype: Any) -> Any:
    """Columns of the identity."""
    check_length(n, len(at))
    unit = np.zeros((n, len(at)), dtype)
    unit[at, np.arange(len(at))] = 1
    return unit


def fits(leaf: Any) -> None:
    if not has_room(leaf.op.size):
        raise NotVerified(f"{type(leaf.op).__name__} {leaf.op.shape} is too large for a dense form")
