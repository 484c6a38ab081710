"""The cotangent of A from the G of its Cholesky factor, block by block from the last column to the
first (Murray, Differentiation of the Cholesky decomposition, 2016, section 4; of complex matrices
as well): some n^3 flops, where ``L^-H phi(L^H G) L^-1`` takes 4 n^3. With the rows of L

    [R D; B C],   D = chol(A_D - R R^H),   C = (A_C - B R^H) D^-H

each step turns the cotangents of C and D into those of A_C and A_D and adds what they mean for the
columns before."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._base.checks import is_lazy
from .._base.kind_flags import heads
from .._lazy.build import inverse, view
from .._lazy.kinds import Kind
from . import inverses, matrices
from .pieces import Through, call

_BLOCK = 96
_LEAST = 128  # rows
_DEEPEST = 16
_DENSE = heads("columns")  # kinds without zeros


def _solved(D: Any, b: Any, mode: int) -> Any:
    """mode(D)^-1 b."""
    op: Any = _core.Triangular(np.ascontiguousarray(D))
    return _core._build("solver", _core._build("view", op, None, mode) if mode else op) @ b


def _beside(x: Any, D: Any) -> Any:
    """x D^-1."""
    return _solved(D, x.T, 1).T


def _of_block(D: Any, g: Any) -> Any:
    """D^-H phi(D^H G) D^-1, its Hermitian part."""
    phi = np.tril(D.conj().T @ g)
    phi[np.diag_indices(len(phi))] *= 0.5
    x = _beside(_solved(D, phi, 3), D)
    return (x + x.conj().T) / 2


def _of_one(L: Any, g: Any) -> Any:
    n = len(L)
    made = np.tril(g)
    for k in range(n, 0, -_BLOCK):
        j = max(0, k - _BLOCK)
        R, D, B, C = L[j:k, :j], L[j:k, j:k], L[k:, :j], L[k:, j:k]
        of_C, of_D = made[k:, j:k], made[j:k, j:k]
        if k < n:
            of_C[...] = _beside(of_C, D)
            made[k:, :j] -= of_C @ R
            turned = of_C.conj().T
            of_D -= np.tril(turned @ C)
            made[j:k, :j] -= turned @ B
            of_C *= 0.5  # the other half is that of the part above the diagonal
        of_D[...] = _of_block(D, of_D)
        made[j:k, :j] -= 2 * (of_D @ R)
    made = np.tril(made)
    return made + np.tril(made, -1).conj().T


class Pulled:
    """Of values of L and G; its own derivative goes by the triangles."""

    __name__ = "cotangent of a Cholesky factor"

    def __call__(self, L: Any, g: Any) -> Any:
        dtype = np.result_type(L, g)
        L, g = np.broadcast_arrays(L, g)
        L, g = L.astype(dtype, copy=False), g.astype(dtype, copy=False)
        if L.ndim == 2:
            return _of_one(L, g) if np.isfinite(L).all() else np.full(L.shape, np.nan, dtype)
        made = np.empty(L.shape, dtype)
        for at in np.ndindex(L.shape[:-2]):
            made[at] = self(L[at], g[at])
        return made

    def cotangent(self, y: Any, h: Any, k: int) -> Any:
        L, g = y._args
        return Through(by_triangles(L, g), h, (L, g))


_PULLED = Pulled()


def _is_dense(A: Any, depth: int = _DEEPEST) -> bool:
    """A matrix of numbers, or a kernel matrix, beside anything?"""
    if depth == 0:
        return False
    if A._head == "add":
        return any(is_lazy(x) and _is_dense(x, depth - 1) for x in A._args)
    if A._head in ("view", "scale", "over"):
        return _is_dense(A._args[0], depth - 1)
    if A._head in ("leaf", "call", "index"):
        return True
    if A._head == "operator":
        return A._args[0]._head in _DENSE
    kind = A._more[0] if A._head == "made" else None
    return isinstance(kind, Kind) and matrices.head_of(kind.cls) in _DENSE


def by_triangles(L: Any, g: Any) -> Any:
    """L^-H phi(L^H G) L^-1, phi the lower triangle with half the diagonal."""
    n = L.shape[-1]
    phi = np.tril(np.ones((n, n))) - 0.5 * np.eye(n)
    triangle: Any = _core.Triangular(L)
    back = inverse(triangle)
    found = view(back, 3) @ ((view(L, 3) @ g) * phi) @ back
    return inverses.value((found + view(found, 3)) / 2)  # once, for all parameters of the matrix


def cotangent(A: Any, L: Any, g: Any) -> Any:
    """Of A, from g of its factor L; None where the triangles may have a structure."""
    if L.shape[-1] < _LEAST or g.shape != L.shape or L.ndim != 2 or not _is_dense(A):
        return None
    return call(_PULLED, (L, g), L.shape, np.result_type(L.dtype, g.dtype))
