"""Preconditioners by a low rank beside a diagonal: pivoted Cholesky and Nystrom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base.dtypes import inexact, real_of
from .._base.errors import NotFit
from .._base.memory import room
from .terms import main_diagonal, positive_part, split, told

if TYPE_CHECKING:
    from .._operators.linear_operator import LinearOperator


def _noise(op: Any, noise: Any, name: str) -> tuple[Any, Any]:
    """X and d > 0 with op = X + Diag(d); d comes from the sum or is given."""
    rest, d = split(op)
    n = op.shape[-1]
    if noise is not None:
        given = np.broadcast_to(np.asarray(noise, float), (n,))
        if not bool((given > 0).all()):
            raise ValueError(f"noise must be positive, got {noise!r}")
        if d is None:
            return op - _core.Diag(np.ascontiguousarray(given)), given
        d = given
    if d is None or rest is None:
        raise NotFit(
            f"{name}: {type(op).__name__} is no sum of a matrix and a diagonal: give noise="
        )
    real = positive_part(np.asarray(d))
    if real is None:
        raise NotFit(f"{name}: the diagonal that is added is not positive throughout")
    return rest, real


def _pivots(X: Any, d: Any, rank: int, rtol: float, dtype: Any) -> tuple[Any, float]:
    """L with X near L L^H, and the fraction of the trace that is left (Harbrecht, Peters and
    Schneider 2012, On the low-rank approximation by the pivoted Cholesky decomposition)."""
    n, whole = len(d), float(d.sum())
    L, left = np.empty((n, rank), dtype, order="F"), 1.0
    slack = 1e3 * np.finfo(dtype).eps * float(d.max(initial=0))
    for k in range(rank):
        at = int(d.argmax())
        if d[at] <= slack or left <= rtol:
            return L[:, :k], left
        column = np.asarray(X[:, at]).astype(dtype)
        column -= L[:, :k] @ L[at, :k].conj()
        column /= np.sqrt(d[at])
        L[:, k] = column
        d -= (column * column.conj()).real
        d[at] = 0
        if not d.min() >= -1e3 * slack:
            j = int(d.argmin())
            raise NotFit(f"pivoted_cholesky: not semidefinite: {d[j]:.2g} is left at element {j}")
        np.maximum(d, 0, out=d)
        left = float(d.sum()) / whole
    return L, left


def pivoted_cholesky(
    op: Any, rank: int = 100, rtol: float = 1e-8, noise: Any = None, why: str = ""
) -> LinearOperator:
    """(D + L L^H)^-1 for X + D, where L L^H is near X, from X's diagonal and `rank` of its
    columns."""
    X, d = _noise(op, noise, "pivoted_cholesky")
    dtype = np.result_type(inexact(op.dtype), real_of(op.dtype))
    n = op.shape[-1]
    rank = _rank(rank, n)
    room(op, 3 * n * rank * dtype.itemsize, "pivoted Cholesky")
    own = positive_part(main_diagonal(X) + np.finfo(real_of(dtype)).tiny)
    if own is None:
        raise NotFit("pivoted_cholesky: the diagonal of what is approximated is not positive")
    L, left = _pivots(X, own.astype(real_of(dtype)).copy(), rank, rtol, dtype)
    root = (1 / np.sqrt(d)).astype(real_of(dtype))
    u, s, _ = np.linalg.svd(root[:, None] * L, full_matrices=False)
    U = np.ascontiguousarray(root[:, None] * u)
    middle = _core.Diag((-(s**2) / (1 + s**2)).astype(real_of(dtype)))
    M: Any = _core.Diag(root**2)
    M = _core.LowRankUpdate(M, U, None, middle) if L.shape[1] else M
    why = why or "a diagonal and a matrix of falling spectrum"
    why += f"; {L.shape[1]} columns leave {left:.2g} of the trace"
    nbytes = U.nbytes + root.nbytes
    return told(M, op, "pivoted_cholesky", why, True, nbytes, rank=L.shape[1], trace_error=left)


def _rank(rank: Any, n: int) -> int:
    if isinstance(rank, bool) or not isinstance(rank, (int, np.integer)) or rank < 1:
        raise ValueError(f"rank must be a number of columns of at least 1, got {rank!r}")
    return int(min(rank, n))


def _sketch(X: Any, rank: int, rng: Any, dtype: Any) -> tuple[Any, Any]:
    """U and w with X near U diag(w) U^H: Frangella, Tropp and Udell 2023, algorithm 2.1."""
    n = X.shape[-1]
    omega = rng.standard_normal((n, rank))
    if dtype.kind == "c":
        omega = omega + 1j * rng.standard_normal((n, rank))
    omega = np.linalg.qr(omega)[0].astype(dtype)
    y = np.asarray(X @ omega)
    shift = float(np.finfo(dtype).eps * np.linalg.norm(y))
    y = y + shift * omega
    core = omega.conj().T @ y
    try:
        c = np.linalg.cholesky((core + core.conj().T) / 2)
    except np.linalg.LinAlgError:
        raise NotFit("nystrom: what is sketched is not positive semidefinite") from None
    b = np.linalg.solve(c, y.conj().T).conj().T
    u, s, _ = np.linalg.svd(b, full_matrices=False)
    return u, np.maximum(s**2 - shift, 0)


def nystrom(
    op: Any, rank: int | None = None, mu: float | None = None, rng: Any = None
) -> LinearOperator:
    """I + U ((w_k + mu) / (w + mu) - 1) U^H for X + mu I, U diag(w) U^H a sketch of X."""
    rng = np.random.default_rng(rng)
    n = op.shape[-1]
    rest, d = split(op)
    if mu is None:
        real = None if d is None else positive_part(np.asarray(d))
        mu = 0.0 if real is None or not real.size else float(real.min())
        X = op if rest is None or mu == 0 else rest
    elif mu < 0:
        raise ValueError(f"mu must not be negative, got {mu}")
    else:
        X = op - mu * _core.Identity(n)
    dtype = inexact(op.dtype)
    most = _rank(rank, n) if rank is not None else min(n, 256)
    size = most if rank is not None else min(n, 16)
    room(op, 4 * n * most * dtype.itemsize, "nystrom")
    if n == 0:
        return told(_core.Identity(0, dtype), op, "nystrom", "no rows", True)
    while True:
        u, w = _sketch(X, size, rng, dtype)
        if size >= most or w[-1] <= 10 * mu:
            break
        size = min(2 * size, most)
    if not w[0] > 0:
        raise NotFit("nystrom: the sketch is zero")
    keep = w > max(float(w[0]) * np.finfo(dtype).eps * n, 0.0) if mu == 0 else w >= 0
    u, w = np.ascontiguousarray(u[:, keep]), w[keep]
    middle = ((w[-1] + mu) / (w + mu) - 1).astype(real_of(dtype))
    M = _core.LowRankUpdate(_core.Identity(n, dtype), u, None, _core.Diag(middle))
    why = f"a sketch of rank {len(w)}, eigenvalues from {w[0]:.2g} to {w[-1]:.2g}, mu {mu:.2g}"
    return told(M, op, "nystrom", why, True, u.nbytes, rank=len(w), mu=mu)
