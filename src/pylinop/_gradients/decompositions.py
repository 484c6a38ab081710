"""Cotangents of the matrix of a decomposition: Cholesky, eigenvalues and eigenvectors, singular
values, the pseudo-inverse.

Formulas: Giles, An extended collection of matrix derivative results (2008), sections 2 and 3;
Smith, Differentiation of the Cholesky algorithm (1995); Golub and Pereyra, The differentiation of
pseudo-inverses (1973)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._base import errors
from .._lazy.build import inverse, view
from .._lazy.decompositions import Result
from .pieces import call


def _inverse_of_triangle(L: Any) -> Any:
    triangle: Any = _core.Triangular(L)
    return inverse(triangle)


def _hermitian(g: Any) -> Any:
    return (g + view(g, 3)) / 2


def cholesky(y: Any, g: Any) -> Any:
    """L^-H phi(L^H G) L^-1, phi the lower triangle with half the diagonal."""
    if y.ndim != 2:
        raise NotImplementedError("np.linalg.cholesky of a stack has no derivative here")
    upper = y._more[1].get("upper")
    L, g = (view(y, 3), view(g, 3)) if upper else (y, g)
    n = y.shape[0]
    phi = np.tril(np.ones((n, n))) - 0.5 * np.eye(n)
    back = _inverse_of_triangle(L)
    return _hermitian(view(back, 3) @ ((view(L, 3) @ g) * phi) @ back)


def eigvalsh(y: Any, g: Any) -> Any:
    """Q diag(g) Q^H."""
    found: Any = np.linalg.eigh(y._args[0], **y._more[1])
    Q = found[1]
    D: Any = _core.Diag(g)
    return Q @ D @ view(Q, 3)


def svdvals(y: Any, g: Any) -> Any:
    """U diag(g) V^H."""
    found: Any = np.linalg.svd(y._args[0], full_matrices=False)
    U, _, Vh = found
    D: Any = _core.Diag(g)
    return U @ D @ Vh


def pinv(y: Any, g: Any) -> Any:
    """-P^H G P^H + (I - A P) G^H P P^H + P^H P G^H (I - P A), for matrices of one rank."""
    A, P = y._args[0], y
    if A.ndim != 2:
        raise NotImplementedError("np.linalg.pinv of a stack has no derivative here")
    Ph, gh = view(P, 3), view(g, 3)
    first, last = gh @ P @ Ph, Ph @ P @ gh
    return (first - A @ (P @ first)) + (last - last @ P @ A) - Ph @ g @ Ph


def _no_repeated(over: Any, gap: Any, top: Any) -> Any:
    """`over`, which is divided by the gaps; a gap of nothing has to divide nothing."""
    eps = np.finfo(over.dtype).eps
    near = np.abs(gap) <= 4 * eps * np.maximum(top, np.finfo(over.dtype).tiny)
    np.fill_diagonal(near, False)
    held = np.abs(over)[near]
    size = np.abs(over).max(initial=0.0)
    if held.size and held.max() > 1e3 * eps * max(size, 1.0):
        raise errors.LinAlgError(
            "repeated eigenvalues have no derivative of their eigenvectors: what is made of them "
            "has to be the same for every basis of their space"
        )
    return np.where(near, 0.0, over)


def eigenvectors(w: Any, Q: Any, g: Any) -> Any:
    """Q (M / (w_j - w_i)) Q^H, M the skew part of Q^H G: the Hermitian part moves no vector."""
    over = view(Q, 3) @ g
    over = (over - view(over, 3)) / 2
    gap = w[None, :] - w[:, None]
    top = np.max(np.abs(w))
    over = call(_no_repeated, (over, gap, top), over.shape, over.dtype)
    safe = np.where(gap == 0, 1.0, gap)
    return Q @ (over * np.where(gap == 0, 0.0, 1.0 / safe)) @ view(Q, 3)


WHOLE = {"cholesky": cholesky, "eigvalsh": eigvalsh, "svdvals": svdvals, "pinv": pinv}


def part(y: Any, g: Any) -> Any:
    """The cotangent of the matrix whose decomposition `y` is one of the results of."""
    packed = y._args[0]
    function, kwargs = packed._more
    name = y._more[0].__name__
    if function.name == "eigh" and packed._args[0].ndim == 2:
        starts, made = 0, []
        for at, spec in enumerate(function.parts):
            f = Result(("eigenvalues", "eigenvectors")[at], spec, starts)
            made.append(call(f, (packed,), *spec))
            starts += int(np.prod(spec[0])) * spec[1].itemsize
        w, Q = made
        if name == "eigenvalues":
            return Q @ _core.Diag(g) @ view(Q, 3)
        return eigenvectors(w, Q, g)
    if function.name == "svd" and name == "S" and packed._args[0].ndim == 2:
        return svdvals(packed, g)
    raise NotImplementedError(
        f"{name} of np.linalg.{function.name} has no derivative here" + errors.built(y)
    )


def is_part(y: Any) -> bool:
    """Is it one of several results of a decomposition?"""
    return y._head == "call" and isinstance(y._more[0], Result)
