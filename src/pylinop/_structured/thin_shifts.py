"""c I + U C V^H by the space of few columns that it moves.

With [U V] = Q R it is Q M Q^H on the range of Q, where M = c I + R_u C R_v^H has 2 k rows, and c
on the rest: singular values and functions of the whole are those of M, and |c| or f(c)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._operators.convert import as_operator
from .dispatch import GUARDS, Guard
from .eigenvalues_hermitian import constant_of, shifted_thin, update_parts
from .eigh import thin_hermitian
from .least_squares import frames
from .pinv import _reciprocals, _relative
from .questions import pinv, svdvals
from .singular_values import descending, low_rank_parts
from .square_roots import _powers, nonnegative, power
from .svd import _matched, singular
from .unitary import completed


def _shifted(op: Any) -> tuple[Any, Any] | None:
    """(c, the LowRank) of c I + U C V^H with fewer columns than rows; else None."""
    parts = update_parts(op)
    if parts is None or op.shape[-1] != op.shape[-2] or op.dtype.kind not in "fc":
        return None
    base, thin = parts
    c = constant_of(base)
    if c is None or thin._init is None:
        return None
    u, v = thin._given("U", "V")
    columns = as_operator(u).shape[-1] * (1 if v is None or v is u else 2)
    return (c, thin) if columns < op.shape[-1] else None


def moved(op: Any) -> tuple[Any, Any, Any] | None:
    """(c, Q, M) of c I + U C V^H; None where it is not one, or M would be no smaller."""
    found = _shifted(op)
    if found is None:
        return None
    c, thin = found
    parts = low_rank_parts(thin)
    if parts is None:
        return None
    u, inner, v = parts
    both = u if v is u else _beside(u, v)
    k = u.shape[-1]
    q, r = np.linalg.qr(both)
    left, right = r[..., :k], r[..., r.shape[-1] - k :]
    m = (left if inner is None else left @ inner) @ np.swapaxes(right, -1, -2).conj()
    if not np.isfinite(m).all():
        return None
    return c, q, m + c * np.eye(m.shape[-1], dtype=m.dtype)


def _beside(u: Any, v: Any) -> Any:
    batch = np.broadcast_shapes(u.shape[:-2], v.shape[:-2])
    return np.concatenate([np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (u, v)], axis=-1)


GUARDS["thinner_shift"] = Guard(
    "c I, square, and a thin part of fewer columns than rows",
    lambda op: _shifted(op) is not None,
    lambda op: _shifted(op) is not None,
)


@svdvals.row(
    "lowrankupdate",
    how="of c I + U C V^H: |c| and those of 2k x 2k",
    cost="O(n k^2)",
    guard="thinner_shift",
)
def _(op: Any) -> Any:
    found = moved(op)
    if found is None:
        return NotImplemented
    c, _, m = found
    s = np.linalg.svdvals(m)
    rest = np.full((*s.shape[:-1], op.shape[-1] - s.shape[-1]), abs(complex(c)), s.dtype)
    return descending(np.concatenate([s, rest], axis=-1))


@singular.row(
    "lowrankupdate",
    how="of c I + U C V^H: QR of [U V], svd of 2k x 2k; reflections",
    cost="O(n k^2)",
    guard="thinner_shift",
)
def _(op: Any, full: bool) -> Any:
    found = moved(op)
    if found is None:
        return NotImplemented
    c, q, m = found
    u, s, vh = np.linalg.svd(m)
    whole, r = completed(q)
    turn = np.sign(np.diagonal(r, 0, -2, -1).real)[..., :, None]  # q has whole's columns, rotated
    rest = op.shape[-1] - s.shape[-1]
    size = abs(complex(c))
    one = _core.Identity(rest, m.dtype)
    phase = complex(c) / size if size else 1.0
    phase = phase if np.imag(phase) else np.real(phase)
    left = whole @ _core.BlockDiag(_core.Dense(turn * u), one if phase == 1 else phase * one)
    right = whole @ _core.BlockDiag(_core.Dense(turn * np.swapaxes(vh, -1, -2).conj()), one)
    s = np.concatenate([s, np.full((*s.shape[:-1], rest), size, s.dtype)], axis=-1)
    return _matched(left, s, right)


@frames.row("lowrankupdate", how="of c I + U C V^H: as svd", cost="O(n k^2)", guard="thinner_shift")
def _(op: Any, want: str) -> Any:
    found = singular(op, True)
    return found.u, found.s, found.v


@pinv.row(
    "lowrankupdate",
    how="of c I + U C V^H: 1/c I and a thin part, by the pinv of 2k x 2k",
    cost="O(n k^2)",
    guard="single thin_shift",
)
def _(op: Any, how: Any) -> Any:
    found = moved(op)
    if found is None:
        return NotImplemented
    c, q, m = found
    u, s, vh = np.linalg.svd(m)
    cut = float(_relative(how, op) * max(s.max(initial=0), abs(complex(c))))
    inner = (np.swapaxes(vh, -1, -2).conj() * _reciprocals(s, cut)) @ np.swapaxes(u, -1, -2).conj()
    if abs(complex(c)) <= cut:
        return _core.LowRank(q, None, inner)
    one = 1 / np.asarray(c).astype(m.dtype)
    base = _core.Diag(np.full(op.shape[-1], one))
    return _core.LowRankUpdate(base, q, None, inner - one * np.eye(m.shape[-1], dtype=m.dtype))


@power.row(
    "lowrankupdate",
    how="of c I + U C U^H: f(c) I and a low rank",
    cost="O(n k^2)",
    guard="thin_shift",
)
def _(op: Any, p: Any) -> Any:
    found = shifted_thin(op)
    thin = None if found is None else thin_hermitian(found[0])
    if found is None or thin is None:
        return NotImplemented
    q, m = thin
    w, v = np.linalg.eigh(m)
    c = complex(found[1]).real
    every = np.concatenate([np.full((*w.shape[:-1], 1), c, w.dtype), w + c], axis=-1)
    f = _powers(nonnegative(every, p > 0), p)
    base = np.broadcast_to(f[..., :1], (*f.shape[:-1], op.shape[-1])).astype(m.dtype)
    return _core.LowRankUpdate(
        _core.Diag(base.copy()), q @ v, None, _core.Diag(f[..., 1:] - f[..., :1])
    )
