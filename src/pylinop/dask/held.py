"""How a solver holds its vectors: whole in this process, or a piece of them on each rank.

Solvers are written on these few operations, so that they are the same on all engines:

    at                  which numbers are here
    norm, dot, sum      scalars of the whole; the same bits on all ranks
    whole(x)            all numbers, for parts that need them
    add(shares)         the sum of vectors of all n numbers, cut to what is here
    each(x)             what the parts of this process get of a vector that lies along them
    stream(x)           all numbers, a few at a time, on all ranks: for checkpoints"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .part import scaled_norm

__all__ = ["Held", "Split", "Streamed"]

_CHUNK = 1 << 21  # numbers that are sent at once for a checkpoint


class Streamed(NamedTuple):
    """A vector of n numbers that comes in pieces, one after the other."""

    n: int
    dtype: np.dtype[Any]
    chunks: Iterator[Any]


class Held:
    """Vectors of n numbers that are whole in this process.

    ``edges`` are the parts' first numbers, and n, where vectors lie along the parts."""

    split = False

    def __init__(self, engine: Any, n: int, edges: Sequence[int] | None = None) -> None:
        self.engine, self.n, self.edges = engine, n, edges
        self.at = slice(0, n)

    @property
    def size(self) -> int:
        """How many numbers are here."""
        return int(self.at.stop - self.at.start)

    @property
    def piece(self) -> tuple[int, int]:
        """The first number that is here, and the first that is not any more."""
        return self.at.start, self.at.stop

    def times(self, k: int) -> Held:
        """Of vectors with k numbers where these have one."""
        made: Held = copy.copy(self)
        made.n, made.at = self.n * k, slice(self.at.start * k, self.at.stop * k)
        return made

    def zeros(self, dtype: Any) -> Any:
        """What is here of a vector of zeros."""
        return np.zeros(self.size, dtype)

    def each(self, x: Any) -> dict[int, tuple[Any]]:
        """For the parts of this process, their piece of a vector along the parts."""
        assert self.edges is not None
        lo, edges = self.at.start, self.edges
        return {i: (x[edges[i] - lo : edges[i + 1] - lo],) for i in self.engine.mine()}

    def whole(self, x: Any) -> Any:
        """All numbers of it."""
        return x

    def given(self, x: Any) -> Any:
        """x as the caller gets it."""
        return x

    def norm(self, x: Any) -> float:
        """|x|, without over- or underflow."""
        return scaled_norm(x)

    def dot(self, x: Any, y: Any) -> float:
        """The real part of x^H y."""
        return float(np.vdot(x, y).real)

    def sum(self, numbers: Sequence[float]) -> float:
        """The sum of a number of each part, in the order of the parts."""
        total = numbers[0]
        for number in numbers[1:]:
            total += number
        return total

    def add(self, shares: Sequence[Any], dtype: Any) -> Any:
        """The sum of a vector of each part, in the order of the parts."""
        total = shares[0].copy()
        for share in shares[1:]:
            total += share
        return total

    def joined(self, pieces: Sequence[Any], dtype: Any) -> Any:
        """What is here of a vector along the parts, of this process's parts' pieces."""
        return np.concatenate(pieces) if pieces else self.zeros(dtype)

    def stream(self, x: Any) -> Any:
        """The vector for a checkpoint, whole or `Streamed`."""
        return x


class Split(Held):
    """Vectors of which each rank of a communicator has a piece, ``cuts[rank]`` to the next."""

    split = True

    def __init__(self, engine: Any, n: int, cuts: list[int], edges: Any = None) -> None:
        super().__init__(engine, n, edges)
        self.comm, self.cuts = engine.comm, cuts
        self.rank = self.comm.Get_rank()
        self.counts = np.diff(cuts).tolist()
        self.at = slice(cuts[self.rank], cuts[self.rank + 1])

    def times(self, k: int) -> Held:
        """Of vectors with k numbers where these have one."""
        made = super().times(k)
        assert isinstance(made, Split)
        made.counts = [k * count for count in self.counts]
        return made

    def whole(self, x: Any) -> Any:
        """All numbers of it, on all ranks: Allgatherv."""
        x = np.ascontiguousarray(x)
        total = np.empty(self.n, x.dtype)
        self.comm.Allgatherv(x, [total, self.counts])
        return total

    def given(self, x: Any) -> Any:
        """The piece, or the whole where the engine does not say ``pieces``."""
        return x if self.engine.pieces else self.whole(x)

    def norm(self, x: Any) -> float:
        """Of the ranks' norms."""
        return math.hypot(*self.comm.allgather(scaled_norm(x)))

    def dot(self, x: Any, y: Any) -> float:
        """The sum of the ranks' dots, in their order."""
        return float(sum(self.comm.allgather(super().dot(x, y))))

    def sum(self, numbers: Sequence[float]) -> float:
        """Over all ranks' parts, in their order."""
        return super().sum([a for rank in self.comm.allgather(list(numbers)) for a in rank])

    def add(self, shares: Sequence[Any], dtype: Any) -> Any:
        """Summed here, then over the ranks by Reduce_scatter, which leaves each its piece."""
        if not shares:
            total = np.zeros(self.n, dtype)
        else:
            total = np.ascontiguousarray(shares[0] if len(shares) == 1 else super().add(shares, 0))
        piece = np.empty(self.size, total.dtype)
        self.comm.Reduce_scatter(total, piece, self.counts)
        return piece

    def stream(self, x: Any) -> Any:
        """Rank after rank tells all others its piece, so much at a time as fits anywhere."""

        def chunks() -> Iterator[Any]:
            for root, count in enumerate(self.counts):
                for i in range(0, count, _CHUNK):
                    said = x[i : i + _CHUNK] if root == self.rank else None
                    yield self.comm.bcast(said, root)

        return Streamed(self.n, x.dtype, chunks())
