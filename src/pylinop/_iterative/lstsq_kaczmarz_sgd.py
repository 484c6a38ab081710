"""Least squares by blocks of rows: block Kaczmarz, and stochastic gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._base import errors
from .._base.memory import room
from .row_blocks import Lines, Right

if TYPE_CHECKING:
    from .lstsq import Watch


def adjoint(B: Any) -> Any:
    """B^H; for a real block without a copy."""
    return B.conj().T if B.dtype.kind == "c" else B.T


def measure(lines: Lines, right: Right, x: Any) -> tuple[float, Any]:
    """|b - A x| and A^H (b - A x), block by block, without a vector of m elements."""
    total, g = 0.0, np.zeros_like(x)
    for i, j, B in lines:
        r = right.block(i, j) - B @ x
        total += float(np.vdot(r, r).real)
        g += adjoint(B) @ r
    return float(np.sqrt(total)), g


def largest(lines: Lines, n: int, dtype: Any) -> float:
    """A lower bound of |A| that the power method brings close to |A|."""
    rng = np.random.default_rng(0)
    v = rng.standard_normal(n).astype(dtype)
    norm = 0.0
    for _ in range(6):
        size = float(np.linalg.norm(v))
        if not size > 0:
            return norm
        v = v / size
        w, total = np.zeros_like(v), 0.0
        for _, _, B in lines:
            y = B @ v
            total += float(np.vdot(y, y).real)
            w += adjoint(B) @ y
        norm, v = max(norm, float(np.sqrt(total))), w
    return norm


def _gram(B: Any, H: Any) -> Any:
    G = B @ H
    return G.toarray() if hasattr(G, "toarray") else np.asarray(G)


def _onto(G: Any, r: Any) -> Any:
    """G^+ r for a Gram matrix, with a tiny multiple of the identity added so that dependent rows do
    no harm. That does not change the solution, at which r vanishes."""
    top = float(np.diagonal(G).real.max(initial=0))
    if not 0 < top < np.inf:
        return np.zeros_like(r)
    G[np.diag_indices(len(G))] += top * 1e4 * np.finfo(G.dtype).eps
    return np.linalg.solve(G, r)


def _sweep(lines: Lines, right: Right, x: Any, rng: Any, z: Any) -> None:
    """Projects x onto the solutions of each block, in random order (Needell and Tropp 2014)."""
    for k in rng.permutation(len(lines)).tolist():
        i, j, B = lines.at(k)
        r = right.block(i, j) - B @ x
        if z is not None:
            r -= z[i:j]
        H = adjoint(B)
        x += H @ _onto(_gram(B, H), r)


def _columns_sweep(columns: Lines, z: Any, rng: Any) -> None:
    """Removes from z its part in the range of A, block by block of A's columns."""
    for k in rng.permutation(len(columns)).tolist():
        _, _, B = columns.at(k)
        H = adjoint(B)
        z -= B @ _onto(_gram(H, B), H @ z)


def block_kaczmarz(
    op: Any, lines: Lines, right: Right, x: Any, watch: Watch, rng: Any, size: Any, extended: Any,
    wide: Lines, held: int,
) -> None:  # fmt: skip
    """Block Kaczmarz: projections onto blocks of rows; where the system has no solution, onto
    columns as well by the extended method (Zouzias and Freris 2013; Needell, Zhao and Zouzias
    2015)."""
    m = op.shape[0]
    columns = z = None
    before = np.inf
    while True:
        if extended and columns is None:
            needed = held + (3 if right.sparse else 2) * m * x.itemsize
            room(op, needed, "the extended block Kaczmarz method")
            columns = Lines(op, x.dtype, size, axis=1, held=needed)
            needed += sum(piece.kept for piece in columns.pieces)
            needed += columns.memory("block_kaczmarz")
            room(op, needed, "the extended block Kaczmarz method")
            z = np.array(right.whole(m))
        if columns is not None:
            _columns_sweep(columns, z, rng)
        _sweep(lines, right, x, rng, z)
        if watch.done(x, *measure(wide, right, x)):
            return
        if extended is None and watch.passes > 1 and watch.error > 0.5 * before:
            extended = True  # it comes no nearer: there is no solution
        before = watch.error


def _scales(lines: Lines, n: int) -> tuple[Any, Any]:
    """1 / |a_j|^2 for the columns, and the blocks' shares of the scaled squares."""
    c = np.zeros(n)
    for _, _, B in lines:
        c += np.asarray(abs(B).power(2).sum(0) if hasattr(B, "power") else (abs(B) ** 2).sum(0))
    d = np.divide(1.0, c, out=np.zeros(n), where=c > 0)
    share = np.array(
        [
            float(((abs(B).power(2) if hasattr(B, "power") else abs(B) ** 2) @ d).sum())
            for _, _, B in lines
        ]
    )
    if not np.isfinite(share).all():
        raise errors.LinAlgError(
            "sgd draws rows by their norms, and A has some that are not finite"
        )
    return d, share / max(share.sum(), np.finfo(float).tiny)


def _steepest(lines: Lines, d: Any, p: Any, rng: Any, n: int, dtype: Any) -> float:
    """The largest eigenvalue of D B^H B / p over some of the blocks."""
    worst = 0.0
    for k in rng.choice(len(lines), min(len(lines), 12), p=p):
        _, _, B = lines.at(int(k))
        v, size = rng.standard_normal(n).astype(dtype) * np.sqrt(d), 0.0
        for _ in range(8):
            v = d * (adjoint(B) @ (B @ v))
            size = float(np.linalg.norm(v))
            if not size > 0:
                break
            v = v / size
        worst = max(worst, size / float(p[k]))
    return worst


def sgd(lines: Lines, right: Right, x: Any, watch: Watch, rng: Any, wide: Lines) -> None:
    """Stochastic gradients of blocks drawn by their norms, with the full gradient once a pass to
    reduce their variance (Johnson and Zhang 2013), scaled columns, and momentum."""
    n, blocks = len(x), len(lines)
    d, p = _scales(lines, n)
    L = _steepest(lines, d, p, rng, n, x.dtype)
    step, best, least = 0.5 / max(L, np.finfo(float).tiny), x.copy(), np.inf
    while True:
        size, g = measure(wide, right, x)
        if watch.done(x, size, g):
            return
        if np.isfinite(watch.error) and watch.error <= 1.5 * least:
            if watch.error < least:
                best[:], least = x, watch.error
        else:  # too far: back, and shorter steps
            x[:] = best
            step /= 2
            continue
        centre, speed = x.copy(), np.zeros_like(x)
        for k in rng.choice(blocks, 2 * blocks, p=p).tolist():
            _, _, B = lines.at(k)
            away = adjoint(B) @ (B @ (x - centre)) / p[k] - g
            speed = 0.5 * speed - step * (d * away)
            x += speed
