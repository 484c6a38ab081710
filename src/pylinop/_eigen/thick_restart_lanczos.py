"""Some eigenpairs of a Hermitian operator by Lanczos with thick restarts.

A cycle takes m steps from a unit vector. The wanted Ritz pairs, and some more, are kept as the
beginning of the next basis, in which the matrix is diagonal with one row and column more; so a
restart loses nothing of what was wanted (Wu and Simon, 2000).

One start vector sees one copy of a multiple eigenvalue; only rounding brings others. So converged
vectors are deflated. To catch further copies, a fresh vector orthogonal to them is iterated on
until its best Ritz value plus residual falls behind the wanted ones that a copy could displace. A
better value that it finds is taken in, and the search is repeated. A copy of the last wanted value
displaces nothing, so k = 1 needs no search.

After the recurrence comes a pass of Gram-Schmidt against all vectors kept, and a second pass where
the first took much away. Cost of a restart: m - l products, 2 m n (m - l) flops and more to stay
orthogonal, 2 n m l to rotate the basis. Memory: m + 1 vectors, and l more while it is rotated."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._base.errors import LinAlgError

_FRESH = 8  # vectors of a second look, at least
_TURNED = 16  # eps |A|, what the residuals of what had converged come to in later restarts


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


def _rivals(values: Any, residual: Any, at: Any, which: str) -> Any:
    """(the wanted, the best of all others, what it could at most be), each so that more is better;
    of both ends where both are wanted."""
    rest = np.setdiff1d(np.arange(values.size), at)
    high = (at.size + 1) // 2
    sides = {
        "LA": [(values, at)],
        "SA": [(-values, at)],
        "LM": [(np.abs(values), at)],
        "SM": [(-np.abs(values), at)],
        "BE": [(values, at[:high]), (-values, at[high:])],
    }[which]
    for key, wanted in sides:
        ends = [rest[np.argmax(key[rest])]]
        if which == "LM":  # the best of either sign
            ends = [rest[0], rest[-1]]
        for i in ends if wanted.size else []:
            yield key[wanted], i, key[i] + residual[i]


def _unrivalled(
    values: Any, residual: Any, good: Any, at: Any, which: str, near: float, trusted: bool
) -> bool:
    """Is nothing hidden from the vectors so far that is better than some of the wanted?

    ``trusted``: the first vector had parts in all eigenspaces; then only copies can be hidden, and
    one of the last wanted (all that are ``near`` it) changes nothing."""
    if at.size >= values.size:
        return False
    for keys, i, reach in _rivals(values, residual, at, which):
        bar = keys.min()
        if trusted:
            above = keys[keys > bar + near]
            if above.size == 0:
                continue
            bar = above.min()
        if not (reach < bar or good[i]):
            return False
    return True


def _alone(values: Any, at: Any, which: str, near: float) -> bool:
    """Are the wanted all one value, to rounding, at each end?"""
    w = np.abs(values[at]) if which in ("LM", "SM") else values[at]
    ends = [w[: (w.size + 1) // 2], w[(w.size + 1) // 2 :]] if which == "BE" else [w]
    return all(np.ptp(end) <= near for end in ends if end.size)


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
    trusted: bool = False,
) -> Pairs:
    """k eigenpairs of the operator whose products ``apply`` gives; ``most`` restarts. ``watch`` is
    told (values, residuals, products, restart) of what is wanted before each. ``trusted``: the
    start is random, not a vector of the user's."""
    eps = float(np.finfo(dtype).eps)
    tol = max(tol, eps)
    basis, t = np.empty((m + 1, n), dtype), np.zeros((m, m))
    basis[0] = start / np.linalg.norm(start)
    kept, products, scale, end = 0, 0, 0.0, m
    looking = False  # behind what has converged, for what the vectors so far could not show
    floor = 1  # of residuals, in eps |A|
    for restart in range(most + 1):
        beta, scale = _extended(apply, basis, t, kept, end, scale, rng)
        products += end - kept
        values, turn = np.linalg.eigh(t[:end, :end])
        at = picked(values, k, which)
        residual = beta * np.abs(turn[-1])
        # below eps |A| a residual says nothing, and turning what has converged brings some of that
        good = residual <= np.maximum(tol * np.abs(values), floor * eps * scale)
        done = bool(good[at].all())
        if watch is not None:
            order = np.sort(at)
            watch(values[order], residual[order], products, restart)
        near = max(4 * math.sqrt(n) * eps * scale, tol * float(np.abs(values[at]).max()))
        sure = end == n or (trusted and _alone(values, at, which, near))
        sure = sure or (looking and _unrivalled(values, residual, good, at, which, near, trusted))
        if (done and sure) or restart == most:
            break
        fresh = done and not looking
        looking = done
        if fresh:
            kept, keep, coupled, floor = k, at, 0.0, _TURNED
        else:
            more = int(good[at].sum()) // 2
            kept = min(k + more + (m - k) // 3, m - max((m - k) // 3, 2), end)
            keep = picked(values, kept, which)
            coupled = beta * turn[-1, keep]
        last = basis[end].copy()
        basis[:kept] = turn[:, keep].T.astype(dtype) @ basis[:end]
        basis[kept] = _fresh(basis[:kept], n, dtype, rng) if fresh else last
        end = min(m, k + max(_FRESH, (m - k) // 2)) if fresh else m
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
        if beta <= 4 * eps * math.sqrt(n) * scale:  # an invariant subspace: begin a new one
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
