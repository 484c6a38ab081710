"""Block conjugate gradients: all right-hand sides share one Krylov space.

O'Leary 1980, in Dubrulle's form (2001): the residuals are kept as Q C with orthonormal Q, so that
nothing breaks down where they become dependent; directions that no column needs any more are
dropped from the block (Ji and Li 2017 do that with the search directions). An iteration takes one
product with the block and about 16 n k^2 flops."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from .. import _core
from .._base.progress import shown


class _Broken(Exception):
    """Why the method cannot go on, and the number that shows it."""


def orthonormal(V: Any) -> tuple[Any, Any]:
    """Q with orthonormal columns and S with Q S = V."""
    first = _by_cholesky(V, np.finfo(V.dtype).eps ** 0.4)
    second = None if first is None else _by_cholesky(first[0], 0.5)
    if first is None or second is None:
        q, s = np.linalg.qr(V)
        return np.ascontiguousarray(q), s
    return second[0], second[1] @ first[1]


def _by_cholesky(V: Any, least: float) -> Any:
    """The same by Cholesky, if the columns are independent enough (one pass leaves an error of 1 /
    least^2)."""
    G = V.conj().T @ V
    if not np.isfinite(G).all():
        raise _Broken("a product is not finite", float("nan"))
    try:
        L = np.linalg.cholesky(G)
    except np.linalg.LinAlgError:
        return None
    d = L.diagonal().real
    if d.min(initial=np.inf) < least * d.max(initial=0.0):
        return None
    return V @ np.linalg.inv(L).conj().T, L.conj().T


def _solved(T: Any, B: Any, what: str) -> Any:
    """T^-1 B of a positive definite T; directions in which T has no correct digits are left out."""
    T = (T + T.conj().T) / 2
    d = T.diagonal().real
    if not (d > 0).all():
        raise _Broken(what, float(d.min()))
    scale = (1 / np.sqrt(d)).astype(d.dtype)
    T = T * scale[:, None] * scale
    values, vectors = np.linalg.eigh(T)
    small = 10 * len(d) * np.finfo(d.dtype).eps * values[-1]
    if values[0] < -10 * small:
        raise _Broken(what, float(values[0]))
    with np.errstate(divide="ignore"):
        inverse = np.where(values > small, 1 / values, 0).astype(d.dtype)
    y = vectors.conj().T @ (B * scale[:, None])
    return (vectors @ (y * inverse[:, None])) * scale[:, None]


class _Run:
    """The block, its residuals Q C, and the directions P."""

    def __init__(self, op: Any, M: Any, r: Any, d: Any, goals: Any) -> None:
        self.op, self.M, self.x, self.goals, self.dtype = op, M, d, goals, r.dtype
        self.bound: dict[Any, Any] = {}
        self.products = 0
        self.dropped = np.zeros(r.shape[1])  # norms of the parts dropped from the residuals
        self.done = -1
        Q, self.C = orthonormal(r)
        self.Q = self.narrowed(Q, np.eye(Q.shape[1], dtype=r.dtype))[0]
        self.P, self.QZ = self.shaped(self.Q)

    def applied(self, op: Any, V: Any) -> Any:
        """A product with a block of any width, bound once for each width."""
        key = op is self.M, V.shape[1]
        if key not in self.bound:
            self.bound = {k: b for k, b in self.bound.items() if k[0] != key[0]}
            self.bound[key] = _core._Applied(op, self.dtype, V.shape[1])
        return self.bound[key](np.ascontiguousarray(V)).astype(self.dtype, copy=False)

    def shaped(self, Q: Any) -> tuple[Any, Any]:
        """M Q and Q^H M Q."""
        if self.M is None:
            return Q, None
        Z = self.applied(self.M, Q)
        return Z, Q.conj().T @ Z

    def norms(self) -> Any:
        return np.linalg.norm(self.C, axis=0).astype(np.float64) + self.dropped

    def narrowed(self, Q: Any, S: Any) -> tuple[Any, Any]:
        """Q and S without the directions that the columns above their goals do not need."""
        u, s, vh = np.linalg.svd(self.C, full_matrices=False)
        parts = s[:, None].astype(np.float64) * np.abs(vh)
        below = np.sqrt(np.cumsum(parts[::-1] ** 2, axis=0))[::-1]  # of row i and the rows after it
        free = (below + self.dropped <= 0.4 * self.goals).all(axis=1)
        free |= s <= np.finfo(s.dtype).eps * s.max(initial=0)
        keep = int(np.argmax(free)) if free.any() else len(s)
        if keep == len(s):
            return Q, S
        self.dropped = self.dropped + below[keep]
        u = u[:, :keep]
        self.C = s[:keep, None] * vh[:keep]
        return np.ascontiguousarray(Q @ u), u.conj().T @ S

    def step(self) -> None:
        W = self.applied(self.op, self.P)
        self.products += 1
        T = self.P.conj().T @ W
        if not np.isfinite(T).all():
            raise _Broken("a product is not finite", float("nan"))
        skew = float(np.abs(T - T.conj().T).max(initial=0.0))
        if skew > 1e-3 * float(np.abs(T).max(initial=0.0)):
            raise _Broken("P^H A P is not Hermitian: A is not", skew)
        right = np.eye(len(T), self.Q.shape[1], dtype=self.dtype) if self.M is None else self.QZ
        what = "P^H A P is not positive definite: A is not Hermitian positive definite"
        alpha = _solved(T, right, what)
        self.x += self.P @ (alpha @ self.C)
        Q, S = orthonormal(self.Q - W @ alpha)
        self.C = S @ self.C
        done = int((self.norms() <= self.goals).sum())
        size = np.abs(S.diagonal())
        loose = size.min(initial=np.inf) <= 1e3 * np.finfo(size.dtype).eps * size.max(initial=0)
        if done != self.done or loose:
            self.done = done
            Q, S = self.narrowed(Q, S)
        self.Q = Q
        Z, QZ = self.shaped(Q)
        beta = S.conj().T
        if self.M is not None:
            what = "r^H M r is not positive: M is not positive definite"
            beta = _solved(self.QZ, beta @ QZ, what)
        self.P, self.QZ = Z + self.P @ beta, QZ


def block_cg(
    op: Any, M: Any, r: Any, d: Any, goals: Any, maxiter: int, callback: Any, progress: Any
) -> Any:
    """d <- A^-1 r of (n, k), d being 0, until each column's recursive residual norm is at most its
    goal; the record of the run as _core._krylov gives it."""
    begin, iterations, why, at = time.perf_counter(), 0, None, 0.0
    show, bar = shown(progress, "block_cg")
    sizes = np.linalg.norm(r.astype(np.result_type(r.dtype, np.float64)), axis=0)
    size = np.exp2(
        np.floor(np.log2(np.where(sizes > 0, sizes, 1)))
    )  # columns of similar norms mix well
    goals, unit = goals / size, size.astype(r.real.dtype)
    history = [float(sizes.max())]
    told, run = begin, None
    try:
        run = _Run(op, M, r / unit, d, goals)
        while iterations < maxiter and (run.norms() > goals).any() and run.Q.shape[1]:
            run.step()
            iterations += 1
            history.append(float((run.norms() * size).max()))
            if callback is not None:
                callback(d * unit)
            if show is not None and time.perf_counter() - told >= 0.1:
                told = time.perf_counter()
                show(iterations, history[-1])
    except _Broken as broken:
        why, at = broken.args
    finally:
        for bound in run.bound.values() if run is not None else ():
            bound.close()
        if bar is not None:
            bar.close()
    products = 0 if run is None else run.products
    d *= unit
    failed = why is not None or run is None or bool((run.norms() > goals).any())
    taken = time.perf_counter() - begin
    return int(failed), iterations, products, taken, np.array(history), why, at, ()
