"""Lanczos from many starting vectors at once, and the quadrature that it gives.

From v with A = A^H, k steps give T_k = V^H A V, tridiagonal; the Gauss rule v^H f(A) v = |v|^2
sum_i w_i f(theta_i), theta the eigenvalues of T_k, w the squared first entries of its vectors, is
exact for polynomials of degree 2 k - 1. One more node prescribed at an end of the spectrum gives
Radau's rule. Where the derivatives of f keep their signs the error of one is >= 0 and that of the
other <= 0: a bracket (Golub and Meurant, 2010, section 6).

All vectors advance together: a product with as many columns, and reorthogonalisation against what
each has behind it, one pass (the recurrence leaves little to take away). Memory: steps n numbers a
vector where the bases are kept, three vectors each where not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _config, _core, _walk

_BLOCK = 16  # vectors of a basis that lie together
KEPT = 100  # steps up to which bases are kept
_ROOM = 1 << 30  # bytes of bases at once, at most
EPS = 2.0**-52


def double(op: Any) -> np.dtype[Any]:
    """The dtype that estimates are computed in."""
    return np.dtype(np.complex128 if op.dtype is not None and op.dtype.kind == "c" else np.float64)


def room() -> int:
    """Bytes that bases may take."""
    limit = _config.get("memory_limit")
    if limit is None:
        free = _config.free_memory()
        limit = _ROOM if free is None else free // 4
    return int(min(limit, _ROOM))


def together(op: Any, count: int, vectors: int) -> int:
    """How many starting vectors advance at once when each takes `vectors` vectors of memory; 0
    where there is not room for one."""
    one = math.prod(op.shape[:-1]) * double(op).itemsize * vectors
    return int(min(count, room() // max(one, 1)))


class Products:
    """A times vectors that lie as rows (..., k, n), as rows again: bound once where that can be."""

    def __init__(self, op: Any) -> None:
        self.op = op
        self._bound: Any = None

    def __call__(self, rows: Any) -> Any:
        x = np.swapaxes(rows, -1, -2)
        if self.op.ndim == 2 and x.ndim == 2 and not self.op._opaque and x.size:
            asked = x.shape[1], x.dtype
            if self._bound is None or self._bound[0] != asked:
                self._bound = asked, _core._Applied(self.op, x.dtype, x.shape[1])
            y = self._bound[1](x)
        else:
            y = self.op @ x
        return np.ascontiguousarray(np.swapaxes(y, -1, -2))


class Run:
    """Lanczos from the rows of `starts` (k, n), for each matrix of a batch (..., n, n).

    ``alpha`` and ``beta`` are lists of arrays (..., k), one a step; ``size2`` the squared lengths
    of the starts."""

    def __init__(self, op: Any, starts: Any, keep: bool) -> None:
        shape = (*op.shape[:-2], *starts.shape[-2:])
        if not keep:
            _walk.materialising(op, 3 * math.prod(shape) * double(op).itemsize, True)
        self.op, self.keep, self.times = op, keep, Products(op)
        self.size2 = np.broadcast_to(np.vecdot(starts, starts).real, shape[:-1])
        size = np.sqrt(self.size2)
        v = np.broadcast_to(starts, shape) / np.where(size > 0, size, 1)[..., None]
        self.now = v.astype(double(op))
        self.before: Any = np.zeros_like(self.now)
        self.alpha: list[Any] = []
        self.beta: list[Any] = []
        self.scale = np.zeros(shape[:-1])
        self.blocks: list[Any] = []
        self.first: Any = None  # A times the starts

    def _remember(self) -> None:
        at = len(self.alpha) % _BLOCK
        if at == 0:
            self.blocks.append(np.zeros((*self.now.shape[:-1], _BLOCK, self.now.shape[-1]),
                                        self.now.dtype))  # fmt: skip
        self.blocks[-1][..., at, :] = self.now

    def step(self) -> None:
        """One product with all; what is not a number goes through."""
        with np.errstate(invalid="ignore", over="ignore"):
            self._step()

    def _step(self) -> None:
        v = self.now
        if self.keep:
            self._remember()
        w = self.times(v)
        if self.first is None:
            self.first = w * np.sqrt(self.size2)[..., None]
        if self.beta:
            w = w - self.beta[-1][..., None] * self.before
        alpha = np.vecdot(v, w).real
        w = w - alpha[..., None] * v
        for block in self.blocks:
            c = np.matmul(block.conj(), w[..., None])
            w -= np.matmul(np.swapaxes(c, -1, -2), block)[..., 0, :]
        beta = np.sqrt(np.vecdot(w, w).real)
        # an invariant subspace: what remains is rounding
        self.scale = np.maximum(self.scale, np.abs(alpha) + beta)
        beta = np.where(beta <= 4 * EPS * math.sqrt(w.shape[-1]) * self.scale, 0.0, beta)
        if self.keep and len(self.alpha) + 1 >= w.shape[-1]:
            beta = np.zeros_like(beta)
        over = self.alpha and (self.beta[-1] == 0)
        self.alpha.append(np.where(over, self.alpha[0], alpha) if self.alpha else alpha)
        self.beta.append(beta)
        self.before = v
        self.now = w / np.where(beta > 0, beta, 1)[..., None]
        self.now[beta == 0] = 0

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
        """Nodes and weights (..., k, s), of the starts as they are."""
        return _rule(self.tridiagonal(), self.size2)

    def radau(self, at: float) -> tuple[Any, Any]:
        """Nodes and weights (..., k, s + 1), a node `at` an end of the spectrum or beyond it."""
        t = self.tridiagonal()
        s = t.shape[-1]
        e = np.zeros((s, 1))
        e[-1] = 1
        b2 = self.beta[-1] ** 2
        last = np.linalg.solve(t - at * np.eye(s), np.broadcast_to(e, (*t.shape[:-1], 1)))
        whole = np.zeros((*t.shape[:-2], s + 1, s + 1))
        whole[..., :s, :s] = t
        whole[..., s, s] = at + b2 * last[..., -1, 0]
        whole[..., s, s - 1] = whole[..., s - 1, s] = self.beta[-1]
        return _rule(whole, self.size2)


def _rule(t: Any, size2: Any) -> tuple[Any, Any]:
    w, q = np.linalg.eigh(t)
    return w, q[..., 0, :] ** 2 * size2[..., None]
