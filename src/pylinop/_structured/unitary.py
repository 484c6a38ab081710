"""Finds what is unitary by how it is written; and makes the unitary operators that spectra need and
that are not kinds: Hartley's transform, the sine transform, products of reflections."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _core
from .._base.kind_flags import OF_PARTS
from .._operators.parameters import written


def complex_of(dtype: Any) -> np.dtype[Any]:
    return np.result_type(dtype, np.complex64)


def is_unitary(Q: Any) -> bool:
    """Is Q known to be square and unitary?"""
    stack = [Q]
    while stack:
        q = stack.pop()
        if q.shape[-1] != q.shape[-2]:
            return False
        if q._known("unitary"):
            continue
        turned = written(q, "scaled") and abs(complex(q._operands[1])) == 1
        if turned and not _is_sine(q):  # which is a multiple of what is no basis itself
            stack.append(q._operands[0])
            continue
        if q._init is None and q._by in ("view", "prod", "inverse"):
            stack += q._operands
        elif q._init is not None and q._head in OF_PARTS:
            stack += q._given("ops")
        elif not _unitary_leaf(q):
            return False
    return True


def _unitary_leaf(q: Any) -> Any:
    if q._init is None:
        return _is_hartley(q) or _is_sine(q)
    return q._head == "lowrankupdate" and _is_reflections(q)


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


def _part_of(q: Any, which: Any) -> Any:
    """The operator whose real (0) or imaginary (1) part q is; else None."""
    return q._operands[0] if written(q, "part") and q._mode == which else None


def _is_hartley(q: Any) -> Any:
    if not written(q, "sum"):
        return False
    one, other = q._operands
    if not written(other, "scaled") or other._operands[1] != -1:
        return False
    real, imag = _part_of(one, 0), _part_of(other._operands[0], 1)
    return real is not None and real is imag and real._head == "dft" and is_unitary(real)


def sine(n: int, dtype: Any) -> Any:
    """The orthogonal symmetric matrix of sin(pi (i + 1) (j + 1) / (n + 1)) sqrt(2 / (n + 1))."""
    waves = _core.DFT(2 * n + 2, None, complex_of(dtype))[1 : n + 1, 1 : n + 1].imag
    return -math.sqrt(2 / (n + 1)) * waves


def _is_sine(q: Any) -> Any:
    n = q.shape[-1]
    if not written(q, "scaled") or q._operands[1] != -math.sqrt(2 / (n + 1)):
        return False
    waves = _part_of(q._operands[0], 1)
    if waves is None or not written(waves, "sliced"):
        return False
    whole, steps = waves._operands
    if whole._head != "dft" or whole._init is None:
        return False
    size, norm = whole._given("n", "norm")
    taken = {s[0]: s[1:] for s in steps}
    return (
        size == 2 * n + 2
        and norm in (None, "backward")
        and [taken.get(k) for k in (0, 1)] == [(1, 1, n)] * 2
    )


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


def _is_reflections(q: Any) -> bool:
    """Is I + Y C Y^H unitary? By C + C^H + C^H (Y^H Y) C = 0, to rounding."""
    base, u, v, c = q._given("base", "U", "V", "C")
    parts = [p for p in (u, v, c) if p is not None]
    if base._head != "identity" or base._operands or c is None:
        return False
    if any(p._head != "dense" or p._init is None for p in parts):
        return False
    y, c = u._given("a"), c._given("a")
    right = y if v is None else v._given("a")
    if right is not y and not np.array_equal(right, y):
        return False
    other = np.swapaxes(c, -1, -2).conj()
    gram = other @ (np.swapaxes(y, -1, -2).conj() @ y) @ c
    given = [np.finfo(p.dtype).eps for p in (y, c) if p.dtype.kind in "fc"]
    eps = max(given, default=np.finfo(np.float64).eps)
    size = np.abs(c).max(initial=0) * eps * q.shape[-1]
    return bool((np.abs(c + other + gram) <= 4 * size).all())
