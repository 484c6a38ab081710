"""Inverses within formulas that are too large to be written out (`reference.py`): any solution is
good whose residual, by products of the written nodes, is that of a backward stable solve. Where it
comes from does not matter then, so the library computes it.

|y - A^-1 x| <= |A^-1| |x - A y| is a part of what an inverse in a formula is allowed, |A^-1| |A|
|A^-1| |x|. Both norms are estimated by what A and A^-1 do to random vectors; their solutions are
judged by their residuals too."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .. import _core
from .._api.solve import solve
from .._base import config
from .._base.dtypes import C, H, T
from .reference_leaf import NotVerified

_DRAWS = 8
_REFINED = 2
_WORST = 1e-3  # relative error that is allowed: beyond it a comparison says nothing
_UNIT = np.finfo(float).eps / 2


def _solve(op: Any, mode: int, x: Any) -> Any:
    """mode(A)^-1 x by the library, unseen: neither recorded nor verified."""
    if not isinstance(op, _core.Operator):
        op = _core._lazy_operator(op) or _core.Dense(np.asarray(op))
    op = op.T if mode & T else op
    op = op.conj() if mode & C else op
    before: dict[str, Any] = config._local.get() or {}
    options = {k: v for k, v in before.items() if k != "_record"}
    token = config._local.set(config._Local({**options, "verify": False}))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(solve(op, x))
    except (ArithmeticError, ValueError, TypeError, MemoryError, RuntimeError) as error:
        raise _unknown(op, f"the solve failed, {type(error).__name__}") from None
    finally:
        config._local.reset(token)


def _unknown(op: Any, why: str) -> NotVerified:
    return NotVerified(f"an inverse of {op.shape[-1]} rows within an expression: {why}")


def _norm(x: Any) -> Any:
    return np.linalg.norm(x, axis=-2, keepdims=True)


class Inverse:
    """Of one operand, in one walk."""

    def __init__(self, walk: Any, op: Any, steps: Any) -> None:
        self.walk, self.op, self.allowed = walk, op, 10 * _UNIT * steps
        self.norms: tuple[Any, Any] | None = None

    def solved(self, x: Any, mode: int) -> Any:
        """y with |x - A y| at most what is promised of a solve."""
        walk, op = self.walk, self.op
        y = _solve(op, mode, x)
        for left in range(_REFINED, -1, -1):
            r = x - walk.apply(op, y, mode)
            size = _norm(walk.apply(op, np.abs(y), mode, True)) + _norm(x)
            if not np.isfinite(r).all():
                raise _unknown(op, "the solution is not finite")
            if np.all(_norm(r) <= self.allowed * size):
                return y
            if left:
                y = y + _solve(op, mode, r)
        raise _unknown(op, "no solution has a residual as small as is promised")

    def bound(self, x: Any) -> Any:
        """|A^-1| |A| |A^-1| |x|, with the norms of them, spread over the rows: a single one may
        have all of it, but no 2 n roundings, by which this is multiplied, add up there."""
        if self.norms is None:
            self.norms = self._norms()
        inverse, norm = self.norms
        size = inverse * (1 + norm * inverse) * _norm(x) / np.sqrt(x.shape[-2])
        return np.broadcast_to(size, np.broadcast_shapes(size.shape, x.shape))

    def _norms(self) -> tuple[Any, Any]:
        """Of A^-1 and A: of the largest of random vectors, and after a step of the power method,
        which is sharper, but may be too small."""
        op = self.op
        z = np.random.default_rng(20261122).standard_normal((op.shape[-1], _DRAWS))
        z = np.broadcast_to(z, (*op.shape[:-2], *z.shape))
        found = []
        for act in (self.solved, lambda x, mode: self.walk.apply(op, x, mode)):
            w = act(z, 0)
            v = act(w / np.maximum(_norm(w), 1e-300), H)
            v = act(v / np.maximum(_norm(v), 1e-300), 0)
            first, second = (_norm(a).max((-2, -1), keepdims=True) for a in (w, v))
            found.append(np.minimum(first, 4 * second))
        inverse, norm = found
        if not np.all(self.allowed * inverse * norm <= _WORST):
            raise _unknown(op, f"its condition is {float((inverse * norm).max()):.1g}")
        return inverse, norm
