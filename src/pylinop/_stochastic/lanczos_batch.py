"""Lanczos from many starting vectors at once, and the quadrature that follows from it.

For A = A^H, k steps from v give a tridiagonal T_k = V^H A V; the Gauss rule v^H f(A) v = |v|^2
sum_i w_i f(theta_i), theta the eigenvalues of T_k, w the squared first entries of its vectors, is
exact for polynomials of degree 2 k - 1. One more node prescribed at an end of the spectrum gives
Radau's rule. Where the derivatives of f keep their signs the error of one is >= 0 and that of the
other <= 0: a bracket (Golub and Meurant, 2010, section 6).

All vectors advance together, by products with as many columns. Where their bases are kept, a
recurrence estimates the loss of orthogonality; where that passes sqrt(eps), two steps in a row are
made orthogonal to all vectors before (Simon, 1984). Short runs, where nothing has converged yet,
need no such pass. Memory: steps n numbers for each starting vector where the bases are kept, four
vectors each where not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _core
from .._base import config, memory
from .._base.errors import LinAlgError

_BLOCK = 16  # vectors of a basis that are allocated together
KEPT = 100  # steps up to which bases are kept
_ROOM = 1 << 30  # bytes of bases at once, at most
EPS = 2.0**-52
HALF = 2.0**-26  # how much vectors may overlap


def double(op: Any) -> np.dtype[Any]:
    """The dtype that estimates are computed in."""
    return np.dtype(np.complex128 if op.dtype is not None and op.dtype.kind == "c" else np.float64)


def room() -> int:
    """Bytes that bases may take."""
    limit = config.get("memory_limit")
    if limit is None:
        free = config.free_memory()
        limit = _ROOM if free is None else free // 4
    return int(min(limit, _ROOM))


def together(op: Any, count: int, vectors: int) -> int:
    """How many starting vectors advance at once when each takes `vectors` vectors of memory; 0
    where there is not room for one."""
    one = math.prod(op.shape[:-1]) * double(op).itemsize * vectors
    return int(min(count, room() // max(one, 1)))


class Products:
    """A times vectors given as rows (..., k, n); the result has rows too, in memory of its own."""

    def __init__(self, op: Any) -> None:
        self.op = op

    def __call__(self, rows: Any) -> Any:
        x = np.swapaxes(rows, -1, -2)
        if self.op.ndim == 2 and x.ndim == 2 and not self.op._opaque and x.size:
            y = np.empty((rows.shape[0], self.op.shape[0]), np.result_type(double(self.op), x))
            np.matmul(self.op, x, out=y.T)  # columns that lie one after the other
            return y
        y = np.swapaxes(self.op @ x, -1, -2)
        # a callable may give memory that it goes on using
        return np.array(y, order="C") if self.op._opaque else np.ascontiguousarray(y)


class Overlaps:
    """How far Lanczos vectors are from orthogonal, estimated without looking at them (Simon, 1984):
    the products v_i^H v_j obey the recurrence of the vectors, started by rounding.

    Up to sqrt(eps) they do no harm: T is that of an orthonormal basis up to some eps."""

    def __init__(self, shape: Any, noise: float) -> None:
        self._noise = noise  # of a step, relative to the norm
        self._now = np.ones((*shape, 1))  # v_i^H v_j of the last vector, i = 0 ... j
        self._before = np.zeros((*shape, 0))  # of the last but one
        self._again = False

    def passed(self, alpha: list[Any], beta: list[Any], scale: Any) -> bool:
        """Does the next vector, whose coefficients stand last, need to be made orthogonal to all?
        If so, it is assumed to be made so."""
        j = len(alpha) - 1
        now, before, last = self._now, self._before, beta[-1]
        safe = np.where(last > 0, last, 1)[..., None]
        nxt = np.empty((*now.shape[:-1], j + 2))
        if j:
            a, b = np.stack(alpha, -1), np.stack(beta[:-1], -1)  # b_i between v_i and v_i+1
            t = b * now[..., 1:] + (a[..., :j] - a[..., j:]) * now[..., :j]
            t[..., 1:] += b[..., :-1] * now[..., : j - 1]
            t -= b[..., -1:] * before
            nxt[..., :j] = (t + np.copysign(self._noise * scale[..., None], t)) / safe
        nxt[..., j] = self._noise * scale / safe[..., 0]
        nxt[..., j + 1] = 1
        nxt[last == 0] = 0
        far = not (np.abs(nxt[..., : j + 1]).max(initial=0) <= HALF)
        due = far or self._again
        self._again = far and not self._again  # two in a row: the recurrence looks two back
        if due:
            nxt[..., : j + 1] = self._noise
        self._now, self._before = nxt, now
        return due


class Run:
    """Lanczos from the rows of `starts` (k, n), for each matrix of a batch (..., n, n).

    ``alpha`` and ``beta`` are lists of arrays (..., k), one a step; ``size2`` the squared lengths
    of the starts; ``gram`` is V^H A V of the starts made unit vectors V, ``image`` the largest
    |A v|; ``passes`` counts the steps that were made orthogonal to all before. The memory of
    ``after``, a finished run, is reused."""

    def __init__(self, op: Any, starts: Any, keep: bool, after: Run | None = None) -> None:
        shape = (*op.shape[:-2], *starts.shape[-2:])
        if not keep:
            memory.materialising(op, 3 * math.prod(shape) * double(op).itemsize, True)
        self.op, self.keep, self.times = op, keep, Products(op)
        self.size2 = np.broadcast_to(np.vecdot(starts, starts).real, shape[:-1])
        size = np.sqrt(self.size2)
        self.alpha: list[Any] = []
        self.beta: list[Any] = []
        self.scale = np.zeros(shape[:-1])
        self.blocks: list[Any] = []
        # a finished run leaves its memory, whose pages are mapped already
        self._spare: list[Any] = after.blocks if after is not None else []
        self.before: Any = None
        self.now = self._place(shape, double(op))
        np.divide(starts, np.where(size > 0, size, 1)[..., None], out=self.now)
        noise = EPS * math.sqrt(max(shape[-1], 16))
        self.overlaps = Overlaps(shape[:-1], noise) if keep else None
        self.passes = 0
        self.gram: Any = None
        self.image = 0.0
        self._room: Any = np.empty(shape, double(op))

    def _place(self, shape: Any, dtype: Any) -> Any:
        """The memory for the next vectors."""
        if not self.keep:
            return np.empty(shape, dtype)
        at = len(self.alpha) % _BLOCK
        if at == 0:
            size = (*shape[:-1], _BLOCK, shape[-1])
            spare = self._spare and self._spare[0].shape == size
            self.blocks.append(self._spare.pop(0) if spare else np.empty(size, dtype))
        return self.blocks[-1][..., at, :]

    def step(self) -> None:
        """Advances all by one product; NaN passes through."""
        with np.errstate(invalid="ignore", over="ignore"):
            self._step()

    def _take(self, w: Any, c: Any, v: Any) -> None:
        """w -= c v, with one factor for each vector."""
        np.multiply(v, c[..., None], out=self._room)
        w -= self._room

    def _orthogonal(self, w: Any) -> None:
        """w without its parts in all vectors so far."""
        self.passes += 1
        left = len(self.alpha)
        for block in self.blocks:
            basis = block[..., : min(left, _BLOCK), :]
            left -= basis.shape[-2]
            if basis.shape[-2] == 0:
                break
            c = np.matmul(basis, w.conj()[..., None])
            w -= np.matmul(np.swapaxes(c.conj(), -1, -2), basis)[..., 0, :]

    def _step(self) -> None:
        v, n = self.now, self.now.shape[-1]
        w = self.times(v)
        if self.gram is None:
            self.gram = np.matmul(v.conj(), np.swapaxes(w, -1, -2))
            self.image = float(np.linalg.norm(w, axis=-1).max(initial=0))
        if self.beta:
            self._take(w, self.beta[-1], self.before)
        alpha = np.vecdot(v, w).real
        self._take(w, alpha, v)
        over = (self.beta[-1] == 0) if self.beta else False
        self.alpha.append(np.where(over, self.alpha[0], alpha) if self.beta else alpha)
        beta = self._length(w)
        if self.overlaps is not None:
            if self.overlaps.passed(self.alpha, [*self.beta, beta], self.scale):
                self._orthogonal(w)
                beta = self._length(w)
            if len(self.alpha) >= n:
                beta = np.zeros_like(beta)
        self.beta.append(beta)
        self.before, self.now = v, self._place(w.shape, w.dtype)
        np.divide(w, np.where(beta > 0, beta, 1)[..., None], out=self.now)
        self.now[beta == 0] = 0

    def _length(self, w: Any) -> Any:
        """|w|, or 0 in an invariant subspace, where only rounding remains."""
        beta = np.sqrt(np.vecdot(w, w).real)
        self.scale = np.maximum(self.scale, np.abs(self.alpha[-1]) + beta)
        return np.where(beta <= 4 * EPS * math.sqrt(w.shape[-1]) * self.scale, 0.0, beta)

    def steps(self, count: int) -> None:
        while len(self.alpha) < min(count, self.op.shape[-1]):
            self.step()

    def tridiagonal(self) -> Any:
        """T, (..., k, s, s)."""
        s = len(self.alpha)
        t = np.zeros((*self.alpha[0].shape, s, s))
        i = np.arange(s)
        t[..., i, i] = np.stack(self.alpha, -1)
        if s > 1:
            t[..., i[1:], i[:-1]] = t[..., i[:-1], i[1:]] = np.stack(self.beta[:-1], -1)
        return t

    def gauss(self) -> tuple[Any, Any]:
        """Nodes and weights (..., k, s) for the starts as they are; the nodes are in no order."""
        return _rule(self.alpha, self.beta, self.size2)

    def radau(self, at: float) -> tuple[Any, Any]:
        """Nodes and weights (..., k, s + 1), with one node `at` an end of the spectrum or beyond
        it."""
        pivot = self.alpha[0] - at  # T - at I = L D L^T, definite: the last pivot is needed
        for a, b in zip(self.alpha[1:], self.beta, strict=False):
            pivot = (a - at) - b * b / np.where(b > 0, pivot, 1)
        last = self.beta[-1]
        corner = at + last * last / np.where(last > 0, pivot, 1)
        return _rule([*self.alpha, corner], [*self.beta, last], self.size2)


def _rule(alpha: list[Any], beta: list[Any], size2: Any) -> tuple[Any, Any]:
    """Nodes and weights of the matrix with diagonal alpha; the last of beta is not read."""
    w, e = np.stack(alpha, -1), np.stack(beta, -1)
    weights = np.empty(w.shape)
    if w.size and not _core._gauss(w.shape[-1], w, e, weights):
        raise LinAlgError("Eigenvalues of Lanczos' tridiagonal matrix did not converge")
    return w, weights * size2[..., None]
