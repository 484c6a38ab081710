"""Some eigenpairs of a Hermitian operator by Lanczos with thick restarts.

m steps from a unit vector; the Ritz pairs that are wanted, and some beside them, are kept as the
beginning of the next basis, in which the matrix is diagonal with one row and column more; so each
restart loses nothing of what was wanted (Wu and Simon, 2000). One vector sees one copy of a
multiple eigenvalue, and rounding alone brings others: what has converged is confirmed by some steps
from a fresh vector orthogonal to it, and what these find better is iterated on. After the
recurrence a pass of Gram-Schmidt against all that is kept, and another where that took much. Cost
of a restart: m - l products, 2 m n (m - l) flops and more to stay orthogonal, 2 n m l to turn the
basis. Memory: m + 1 vectors, and l while it is turned."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ._errors import LinAlgError

_FRESH = 8  # vectors of a second look, at least


class Pairs(NamedTuple):
    """What came out: ascending values, vectors as columns, and how."""

    values: Any
    vectors: Any
    converged: Any
    products: int
    restarts: int
    scale: float  # about the norm of the operator


def picked(w: Any, k: int, which: str) -> Any:
    """Where the k values of w (ascending) that are wanted are, best first."""
    n = w.shape[0]
    if which == "LA":
        return np.arange(n - 1, n - 1 - k, -1)
    if which == "SA":
        return np.arange(k)
    if which == "BE":
        high = np.arange(n - 1, n - 1 - (k + 1) // 2, -1)
        low = np.arange(k // 2)
        return np.concatenate([high, low])
    order = np.argsort(-np.abs(w) if which == "LM" else np.abs(w), kind="stable")
    return order[:k]


def _against(w: Any, basis: Any) -> Any:
    """w without its parts in the rows of the basis; again where that took much of it."""
    before = np.linalg.norm(w)
    for _ in range(3):
        w = w - (basis.conj() @ w) @ basis
        after = np.linalg.norm(w)
        if after > 0.7 * before:
            break
        before = after
    return w, float(after)


def restarted(
    apply: Callable[[Any], Any],
    n: int,
    dtype: Any,
    k: int,
    which: str,
    start: Any,
    m: int,
    most: int,
    tol: float,
    rng: np.random.Generator,
    watch: Callable[[Any, Any, int, int], None] | None = None,
) -> Pairs:
    """k eigenpairs of the operator whose products ``apply`` gives; ``most`` restarts. ``watch`` is
    told (values, residuals, products, restart) of what is wanted before each."""
    eps = float(np.finfo(dtype).eps)
    tol = max(tol, eps)
    basis, t = np.empty((m + 1, n), dtype), np.zeros((m, m))
    basis[0] = start / np.linalg.norm(start)
    kept, products, scale, end = 0, 0, 0.0, m
    seen: Any = None  # the values that a fresh vector is to confirm
    for restart in range(most + 1):
        beta, scale = _extended(apply, basis, t, kept, end, scale, rng)
        products += end - kept
        values, turn = np.linalg.eigh(t[:end, :end])
        at = picked(values, k, which)
        residual = beta * np.abs(turn[-1])
        # below eps |A| a residual says nothing
        good = residual <= np.maximum(tol * np.abs(values), eps * scale)
        done = bool(good[at].all())
        if watch is not None:
            order = np.sort(at)
            watch(values[order], residual[order], products, restart)
        sure = end == n or (
            seen is not None and np.abs(values[at] - seen).max() <= 4 * math.sqrt(n) * eps * scale
        )
        if (done and sure) or restart == most:
            break
        if done:  # a second look, for the copies of what one vector cannot tell apart
            kept, keep, seen, coupled = k, at, values[at], 0.0
        else:
            more = int(good[at].sum()) // 2
            kept = min(k + more + (m - k) // 3, m - max((m - k) // 3, 2), end)
            keep, seen = picked(values, kept, which), None
            coupled = beta * turn[-1, keep]
        last = basis[end].copy()
        basis[:kept] = turn[:, keep].T.astype(dtype) @ basis[:end]
        basis[kept] = _fresh(basis[:kept], n, dtype, rng) if done else last
        end = min(m, k + max(_FRESH, (m - k) // 2)) if done else m
        t[:] = 0
        t[np.arange(kept), np.arange(kept)] = values[keep]
        t[kept, :kept] = t[:kept, kept] = coupled
    at = np.sort(at)
    vectors = (turn[:, at].T.astype(dtype) @ basis[:end]).T
    return Pairs(values[at], vectors, good[at], products, restart, scale)


def _extended(
    apply: Callable[[Any], Any],
    basis: Any,
    t: Any,
    kept: int,
    end: int,
    scale: float,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Lanczos from the kept-th vector of the basis, coupled to those before by t, to the end-th:
    the last off-diagonal, and about the norm of the operator."""
    n, dtype = basis.shape[1], basis.dtype
    eps = float(np.finfo(dtype).eps)
    beta = 0.0
    for j in range(kept, end):
        w = apply(basis[j])
        if j > kept:
            w = w - beta * basis[j - 1]
        elif kept:
            w = w - t[j, :j] @ basis[:j]
        t[j, j] = np.vdot(basis[j], w).real
        w, beta = _against(w - t[j, j] * basis[j], basis[: j + 1])
        if not (math.isfinite(beta) and math.isfinite(t[j, j])):
            raise LinAlgError(f"a product with the operator of {n} rows is not finite")
        scale = max(scale, abs(t[j, j]) + beta)
        if beta <= 4 * eps * math.sqrt(n) * scale:  # an invariant subspace: begin another
            beta = 0.0
            if j + 1 < n:
                w = _fresh(basis[: j + 1], n, dtype, rng)
        else:
            w /= beta
        basis[j + 1] = w if j + 1 < n else 0
        if j + 1 < end:
            t[j + 1, j] = t[j, j + 1] = beta
    return beta, scale


def _fresh(basis: Any, n: int, dtype: Any, rng: np.random.Generator) -> Any:
    """A random unit vector orthogonal to the rows of the basis."""
    w = rng.standard_normal(n).astype(dtype)
    for _ in range(2):
        w, _ = _against(w, basis)
    return w / np.linalg.norm(w)
