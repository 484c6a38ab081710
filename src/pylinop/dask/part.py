"""A part: some consecutive blocks on one worker, with what an iteration keeps there.

A question to all parts gets one answer from each; these are added in the order of the parts, so
that the sum has the same bits whichever worker holds which part and answers first."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .blocks import InMemory
from .work import worker_of

__all__ = ["Part", "Spec"]


class Spec(NamedTuple):
    """What a part is made of; small, pickled to its worker, and again to another if that dies."""

    number: int
    blocks: tuple[Any, ...]
    axis: int  # 0: the blocks stand above each other, 1: beside each other
    dtype: np.dtype[Any]
    budget: int | None  # bytes for blocks that stay in memory; None: all stay


class Part:
    """The blocks of a `Spec`, read when needed and kept as far as the budget goes."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self._kept: dict[int, Any] = {}
        self._held = 0
        sizes = [b.shape[spec.axis] for b in spec.blocks]
        self._edges = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).tolist()
        self._lock = threading.Lock()
        self._u: Any = None
        self._count: int | None = None
        self._last: Any = None

    def call(self, method: str, args: tuple[Any, ...]) -> Any:
        """What an engine asks: a method by name. One after the other: of an interrupted question a
        thread may still be at work."""
        with self._lock:
            return getattr(self, method)(*(_aligned(a) for a in args))

    def _works(self) -> Iterator[tuple[slice, Any]]:
        """(rows or columns, block), read one after the other."""
        for i, block in enumerate(self.spec.blocks):
            work = self._kept.get(i)
            if work is None:
                work = worker_of(block.load(), block.shape, self.spec.dtype)
                if self._stays(block) and not isinstance(block, InMemory):  # those may change
                    self._kept[i] = work
                    self._held += work.nbytes
            yield slice(self._edges[i], self._edges[i + 1]), work

    def _stays(self, block: Any) -> bool:
        budget = self.spec.budget
        return budget is None or self._held + block.nbytes <= budget

    # -- products ----------------------------------------------------------------------------------

    def apply(self, X: Any) -> Any:
        """A X of blocks above each other; the part's share of A X where they stand beside."""
        if self.spec.axis == 0:
            rows = [work.matmat(X) for _, work in self._works()]
            return np.concatenate(rows) if rows else np.zeros((0, X.shape[1]), X.dtype)
        total: Any = None
        for at, work in self._works():
            share = work.matmat(X[at])
            total = share if total is None else total + share
        return total

    def rapply(self, X: Any) -> Any:
        """A^H X, likewise."""
        if self.spec.axis == 1:
            rows = [work.rmatmat(X) for _, work in self._works()]
            return np.concatenate(rows) if rows else np.zeros((0, X.shape[1]), X.dtype)
        total: Any = None
        for at, work in self._works():
            share = work.rmatmat(X[at])
            total = share if total is None else total + share
        return total

    def normal(self, x: Any) -> Any:
        """(|A x|^2, A^H A x) in one sweep."""
        w, total = np.zeros_like(x), 0.0
        for at, work in self._works():
            u = np.empty(at.stop - at.start, x.dtype)
            total += work.step(0.0, x, u, w)
        return total, w

    # -- the fused step ----------------------------------------------------------------------------

    def begin(self, count: int, c: float, g: Any, answers: bool, b: Any) -> Any:
        """u <- c b + A g; with ``answers`` the answer is (|u|^2, A^H u), as of a step."""
        u = _rows(b, self._edges[-1], g.dtype)
        self._count, self._u, self._last = None, u, None
        w, total = (np.zeros_like(g) if answers else None), 0.0
        for at, work in self._works():
            total += work.step(-c, g, u[at], w)
        self._count, self._last = count, (total, w)
        return self._last if answers else None

    def step(self, count: int, v: Any, alpha: float) -> Any:
        """u <- A v - alpha u: (|u|^2, A^H u). Asked again with the same count: the same answer."""
        if self._count == count:
            return self._last
        if self._count != count - 1:
            raise RuntimeError(f"part {self.spec.number} is at step {self._count}, not {count - 1}")
        self._count, self._last, u = None, None, self._u  # until it is whole again
        w, total = np.zeros_like(v), 0.0
        for at, work in self._works():
            total += work.step(alpha, v, u[at], w)
        self._count, self._last = count, (total, w)
        return self._last

    def across(self, u: Any, w: Any, M: Any = None, y: Any = None) -> Any:
        """(w + A^H u, A of that): w is this part's columns', u and the second all rows'.

        With a preconditioner F (`precondition`): (F^H (w + A^H u) + y, A F of that)."""
        w, t = w.copy(), np.zeros_like(u)
        for at, work in self._works():
            work.step(0.0, None, u, w[at])
            if M is None:
                work.step(-1.0, w[at], t, None)
            else:
                F = M[at]
                w[at] = F.left(w[at]) + y[at]
                work.step(-1.0, F.right(w[at]), t, None)
        return w, t

    def residual(self, minus: Any, scale: float, b: Any) -> Any:
        """(|r|^2, A^H r) of r = b / scale + A minus, whatever iteration is under way."""
        self._last = None  # nobody asks for that again
        r = _rows(b, self._edges[-1], minus.dtype)
        r /= scale
        w, total = np.zeros_like(minus), 0.0
        for at, work in self._works():
            total += work.step(-1.0, minus, r[at], w)
        return total, w

    def norm(self) -> float:
        """|u|, without over- or underflow."""
        return scaled_norm(self._u)

    def get_u(self) -> Any:
        """What the part keeps of the iteration."""
        return self._u

    def set_u(self, count: int, u: Any) -> None:
        """Put that back."""
        self._u, self._count, self._last = np.array(u), count, None

    def forget(self) -> None:
        """Drop what an iteration kept."""
        self._u = self._count = self._last = None

    # -- the whole ---------------------------------------------------------------------------------

    def diagonal(self, first: int, k: int) -> Any:
        """Entries (i, i + k) of a matrix of which this part's first row or column is ``first``."""
        turn = 1 if self.spec.axis == 0 else -1
        found = [work.diagonal(k + turn * (first + at.start)) for at, work in self._works()]
        return np.concatenate(found)

    def squares(self) -> float:
        """The sum of |entries|^2."""
        return float(sum(work.squares() for _, work in self._works()))

    def column_grams(self, k: int) -> Any:
        """Blocks of k columns on the diagonal of A^H A, side by side, flat; of blocks beside each
        other each begins with a new one."""
        grams = (work.column_grams(k) for _, work in self._works())
        if self.spec.axis == 1:
            return np.concatenate(list(grams)).reshape(-1)
        total = next(grams)
        for share in grams:
            total += share
        return total.reshape(-1)

    def diagonal_blocks(self, first: int, k: int) -> Any:
        """Blocks of k on the diagonal of a matrix of which this part's first row or column is
        ``first``, side by side, flat; each of the part's blocks begins with a new one."""
        found = [
            work.diagonal_blocks(first + at.start, k, self.spec.axis) for at, work in self._works()
        ]
        return np.concatenate(found).reshape(-1)

    def gram(self) -> Any:
        """A^H A, summed over the blocks."""
        total: Any = None
        for _, work in self._works():
            share = work.gram()
            total = share if total is None else np.add(total, share, out=total)
        return total

    def triangle(self) -> Any:
        """R of the QR of the part's rows, block under block."""
        kept: Any = None
        for _, work in self._works():
            rows = work.dense()
            kept = np.linalg.qr(rows if kept is None else np.vstack([kept, rows]), mode="r")
        return kept


def _aligned(x: Any) -> Any:
    """What came over a network may lie at any address: kernels take aligned arrays."""
    if isinstance(x, np.ndarray) and not x.flags.aligned:
        return x.copy()
    return x


def _rows(b: Any, m: int, dtype: Any) -> Any:
    """A copy of the part's share of a right-hand side: an array, or a block to be read."""
    values = b.load() if hasattr(b, "load") else b
    if values.shape != (m,):
        raise ValueError(f"a right-hand side of shape {values.shape} came where ({m},) was said")
    return np.array(values, dtype)


def scaled_norm(u: Any) -> float:
    """|u|_2, without over- or underflow of the squares."""
    square = float(np.vdot(u, u).real)
    if 1e-280 < square < 1e280:
        return math.sqrt(square)
    top = float(np.max(np.abs(u), initial=0.0))
    if top == 0 or not np.isfinite(top):
        return top
    u = u / top
    return top * math.sqrt(np.vdot(u, u).real)
