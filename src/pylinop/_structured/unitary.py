"""Asks what is unitary; and makes the unitary operators that spectra need and that are not kinds:
Hartley's transform, the sine transform, products of reflections."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _core
from .._fallback import interpreter
from .properties import THIN, known, measured
from .rows import GUARDS, guard_of


def complex_of(dtype: Any) -> np.dtype[Any]:
    return np.result_type(dtype, np.complex64)


def is_unitary(Q: Any) -> bool:
    """Is Q known to be square and unitary? The numbers of reflections that are held as a thin
    factor, ``completed``, are looked at; else nothing is."""
    thin = known(Q, "unitary but")
    return thin is not None and all(
        measured((interpreter.toarray(y), interpreter.toarray(c)), "unitary", THIN) for y, c in thin
    )


GUARDS["unitary"] = guard_of("known to be unitary", is_unitary)
GUARDS["unitary_q"] = guard_of(
    "its Q is known to be unitary", lambda op: is_unitary(op._given("Q"))
)
GUARDS["unitary_a"] = guard_of(
    "its A is known to be unitary", lambda op: is_unitary(op._given("A"))
)


def unitary(q: Any) -> Any:
    """An array with orthonormal columns and rows, as an operator assumed orthogonal."""
    return _core.Dense(q, "orthogonal")


# -- transforms --


def fourier(sizes: Any, dtype: Any) -> Any:
    """The unitary matrix whose columns are the waves."""
    return _core.DFT(tuple(sizes), "ortho", complex_of(dtype)).H


def hartley(sizes: Any, dtype: Any) -> Any:
    """The orthogonal symmetric matrix of cos + sin over all levels together: a real basis in which
    real symmetric circulants are diagonal."""
    transform = _core.DFT(tuple(sizes), "ortho", complex_of(dtype))
    return transform.real - transform.imag


def sine(n: int, dtype: Any) -> Any:
    """The orthogonal symmetric matrix of sin(pi (i + 1) (j + 1) / (n + 1)) sqrt(2 / (n + 1))."""
    waves = _core.DFT(2 * n + 2, None, complex_of(dtype))[1 : n + 1, 1 : n + 1].imag
    return -math.sqrt(2 / (n + 1)) * waves


# -- products of reflections --


def reflector(v: Any) -> Any:
    """The Householder reflection whose first column is parallel to v; v (..., n) is not zero."""
    v = v / np.abs(v).max(axis=-1, keepdims=True)
    size, first = np.linalg.norm(v, axis=-1), v[..., 0]
    lead = np.abs(first)
    turn = np.where(lead > 0, first, 1) / np.where(lead > 0, lead, 1)
    u = v.copy()
    u[..., 0] += turn * size
    return _core.Householder(u)


def completed(u: Any) -> Any:
    """(Q, R) with u = Q[:, :r] R and a unitary n x n Q, held as n x r numbers:
    I - Y T Y^H (Schreiber and Van Loan, 1989)."""
    h, tau = np.linalg.qr(u, mode="raw")
    h = np.swapaxes(h, -1, -2)
    n, r = h.shape[-2:]
    y = np.tril(h, -1)
    y[..., np.arange(r), np.arange(r)] = 1
    g = np.swapaxes(y, -1, -2).conj() @ y
    t = np.zeros_like(g)
    for i in range(r):
        t[..., i, i] = tau[..., i]
        before = (t[..., :i, :i] @ g[..., :i, i, None])[..., 0]
        t[..., :i, i] = -tau[..., i, None] * before
    base = _core.Identity(n, y.dtype)
    return _core.LowRankUpdate(base, y, y, -t), np.triu(h[..., :r, :])


def begun_by(q: Any, x: Any) -> Any:
    """A unitary operator whose first columns are q x, with orthonormal columns of q and a unitary
    x; it holds n x k numbers."""
    whole, r = completed(q)
    turn = np.sign(np.diagonal(r, 0, -2, -1).real)[..., :, None]
    n, k = q.shape[-2:]
    return whole @ _core.BlockDiag(unitary(turn * x), _core.Identity(n - k))
