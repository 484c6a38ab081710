"""The Cholesky factor of a Toeplitz matrix by Schur's algorithm.

T - Z T Z^H = u u^H - v v^H with the shift Z, so a column of the factor takes one hyperbolic
rotation of two vectors, and the whole O(n^2) where LAPACK's takes n^3 / 3. With the rotation in
its mixed form the factor of a definite T is backward stable: |T - L L^H| is O(n^2 eps) |T|
(Bojanczyk, Brent, de Hoog and Sweet 1995, SIAM J. Matrix Anal. Appl. 16)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._base.dtypes import inexact
from .cholesky import cholesky, not_definite, real_diagonal, refuse_where_symmetric
from .dispatch import announce, keep_within
from .singular_values import toeplitz_of

# Rows from which the rotations, one call of NumPy each, take less than LAPACK on the dense form:
# measured 2026-11-25 on a loaded machine, ratios of minima: 1.0 at n = 700, 0.35 at 1000, 0.13 at
# 2000.
_ROWS = 700


def ends_of(op: Any) -> tuple[Any, Any] | None:
    """The first column and row of a square Toeplitz, also of one that a sum closed to; None where
    the numbers are whole and might wrap."""
    if op.shape[-1] != op.shape[-2]:
        return None
    found = toeplitz_of(op)
    if found is not None or op._opaque or op.dtype.kind not in "fc":
        return found
    first = np.zeros(op.shape[-1], op.dtype)
    first[0] = 1
    return op @ first, op.T @ first


def _rotated(u: Any, v: Any) -> tuple[Any, Any, Any]:
    """u and v after the hyperbolic rotation that takes v's first element, in the mixed form: the
    new v from the new u. And where there is none."""
    turn = v[..., :1] / u[..., :1]
    size = np.abs(turn)
    bad = ~(size[..., 0] < 1)
    keep = np.sqrt((1 - size) * (1 + size))
    u = (u - turn.conj() * v) / keep
    return u, keep * v - turn * u, bad


def schur(c: Any) -> tuple[Any, Any]:
    """(L^H, where there is no L) of the Hermitian Toeplitz matrices with first columns c."""
    batch, n = c.shape[:-1], c.shape[-1]
    factor = np.zeros((*batch, n, n), c.dtype)
    bad = ~(c[..., 0].real > 0)
    with np.errstate(all="ignore"):  # of what is not definite
        u = c / np.sqrt(c[..., :1].real)
        v = u[..., 1:]
        factor[..., 0, :] = u.conj()
        for k in range(1, n):
            u, v, worse = _rotated(u[..., : n - k], v)
            bad |= worse
            if bad.all():
                break
            factor[..., k, k:] = u.conj()
            v = v[..., 1:]
    return factor, bad | ~np.isfinite(factor).all(axis=(-2, -1))


@cholesky.row(
    "toeplitz",
    how="of 700 rows or more: Schur's algorithm, backward stable; a Triangular",
    cost="5 n^2",
    kept=True,
    asks=lambda op, uplo: [] if op.shape[-1] >= _ROWS else None,
)
def _(op: Any, uplo: str) -> Any:
    ends = ends_of(op) if op.shape[-1] >= _ROWS else None
    if ends is None:
        return NotImplemented
    announce(op)
    keep_within(op, 1)
    c, r = (np.broadcast_to(x, (*op.shape[:-2], op.shape[-1])).copy() for x in ends)
    r[..., 0] = c[..., 0]  # what a Toeplitz was given there does not count
    real_diagonal(c[..., :1])
    if c.dtype.kind == "c":
        size = 16 * c.shape[-1] * np.finfo(c.dtype).eps * np.abs(c).max(axis=-1)
        refuse_where_symmetric(np.abs(c - r).max(axis=-1), np.abs(c.imag).max(axis=-1), size)
    dtype = inexact(op.dtype)
    c = (c if uplo == "L" else r.conj()).astype(np.result_type(dtype, np.float64))
    c[..., 0] = c[..., 0].real
    factor, bad = schur(c)
    if bad.any():
        raise not_definite(bad)
    return _core.Triangular(np.swapaxes(factor, -1, -2).conj().astype(dtype, copy=False))
