"""c I + U C V^H by the space of few columns that it moves.

With [U V] = Q R it is Q M Q^H on the range of Q, where M = c I + R_u C R_v^H has 2 k rows, and c
on the rest: singular values and functions of the whole are those of M, and |c| or f(c)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._operators.convert import as_operator
from .dispatch import mirrored
from .eigenvalues_hermitian import constant_of, update_parts
from .rows import GUARDS, Guard
from .singular_values import low_rank_parts


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
    columns = as_operator(u).shape[-1] * (1 if mirrored(u, v) else 2)
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
