"""Cotangents of the matrix of a decomposition: Cholesky, eigenvalues and eigenvectors, singular
values and vectors, QR, the pseudo-inverse.

Formulas: Giles, An extended collection of matrix derivative results (2008), sections 2 and 3;
Smith, Differentiation of the Cholesky algorithm (1995); Golub and Pereyra, The differentiation of
pseudo-inverses (1973); Townsend, Differentiating the singular value decomposition (2016); Walter
and Lehmann, Algorithmic differentiation of linear algebra functions (2012), section 4 (QR)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _core
from .._base import errors
from .._lazy.build import inverse, view
from .._lazy.decompositions import Result
from .._lazy.matrix_functions import Piece
from .._lazy.numpy_functions import diagonal
from . import cholesky_pulled, pseudo_inverses
from .pieces import Through, call, times


def _rows(v: Any) -> Any:
    """Vectors as rows: (..., 1, n)."""
    return np.reshape(v, (*v.shape[:-1], 1, v.shape[-1]))


def _columns(v: Any) -> Any:
    """Vectors as columns: (..., n, 1)."""
    return np.reshape(v, (*v.shape, 1))


def cholesky(y: Any, g: Any, upper: Any = False) -> Any:
    """Block by block where A is dense, else by the triangles."""
    L, g = (view(y, 3), view(g, 3)) if upper else (y, g)
    found = cholesky_pulled.cotangent(y._args[0], L, g)
    return cholesky_pulled.by_triangles(L, g) if found is None else found


def eigvalsh(y: Any, g: Any) -> Any:
    """Q diag(g) Q^H."""
    found: Any = np.linalg.eigh(y._args[0], **y._more[1])
    w, Q = found
    D: Any = _core.Diag(g)
    return _of_values(Q @ D @ view(Q, 3), Q, Q, w, g)


def svdvals(y: Any, g: Any) -> Any:
    """U diag(g) V^H."""
    found: Any = np.linalg.svd(y._args[0], full_matrices=False)
    U, S, Vh = found
    D: Any = _core.Diag(g)
    return _of_values(U @ D @ Vh, U, view(Vh, 3), S, g)


class OfValues:
    """U diag(g) V^H, the cotangent of a matrix from the g of its eigenvalues or singular values.
    Its own derivative goes through the vectors; on a space of equal values whose g are zero it is
    either zero, as of a projection, or that of g, as of a function: that cannot be told from g."""

    __name__ = "spectral cotangent"

    def __call__(self, made: Any, *unused: Any) -> Any:
        return made

    def cotangent(self, y: Any, h: Any, k: int) -> Any:
        if k:
            return None
        return call(_AS_IT_IS, (h, *y._args[1:]), h.shape, h.dtype)


class AsItIs(OfValues):
    """A direction, in which the derivative can be told."""

    def __call__(self, h: Any, *about: Any) -> Any:
        _told(h, *about)
        return h

    def cotangent(self, y: Any, h: Any, k: int) -> Any:
        return None if k else h


_OF_VALUES, _AS_IT_IS = OfValues(), AsItIs()


def _of_values(made: Any, U: Any, V: Any, values: Any, g: Any) -> Any:
    return call(_OF_VALUES, (made, U, V, values, g), made.shape, made.dtype)


def _told(h: Any, U: Any, V: Any, values: Any, g: Any) -> None:
    """An error where a derivative in the direction h depends on more than g."""
    small = 1e3 * np.finfo(values.dtype).eps
    top = np.max(np.abs(values), axis=-1, keepdims=True, initial=0.0)
    flat = np.abs(g) <= small * np.max(np.abs(g), axis=-1, keepdims=True, initial=0.0)
    near = np.abs(values[..., :, None] - values[..., None, :]) <= small * top[..., None]
    near &= flat[..., :, None] & flat[..., None, :] & ~np.eye(values.shape[-1], dtype=bool)
    zero = flat & (np.abs(values) <= small * top) & (V.shape[-2] != U.shape[-2])
    if not (near.any() or zero.any()):
        return
    across = h @ V
    inner = np.conj(np.swapaxes(U, -1, -2)) @ across
    size = small * np.max(np.abs(h), axis=(-2, -1), keepdims=True, initial=0.0)
    beyond = np.max(np.abs(across - U @ inner), axis=-2, initial=0.0)
    other = h.conj().swapaxes(-1, -2) @ U
    beside = np.max(np.abs(other - V @ inner.conj().swapaxes(-1, -2)), axis=-2, initial=0.0)
    away = np.maximum(beyond, beside) > size[..., 0]
    if (near & (np.abs(inner) > size)).any() or (zero & away).any():
        raise errors.LinAlgError(
            "repeated eigenvalues or singular values at which the first derivative is zero have no "
            "second one that could be told from it: write what is made of them by functions of the "
            "matrix (np.sum(A * A), trace(A @ A), expm, ...)"
        )


def pinv(y: Any, g: Any, given: Any) -> Any:
    """-P^H G P^H + (I - A P) G^H P P^H + P^H P G^H (I - P A), for matrices of one rank; a
    tolerance `given` among the keywords may cut more than zeros."""
    A, P = y._args[0], y
    Ph, gh = view(P, 3), view(g, 3)
    first, last = gh @ P @ Ph, Ph @ P @ gh
    made = (first - A @ (P @ first)) + (last - last @ P @ A) - Ph @ g @ Ph
    if given.get("rcond") is None and given.get("rtol") is None:
        return made
    return made + pseudo_inverses.correction(A, P, g)


def _repeated(over: Any, gap: Any, sizes: Any) -> Any:
    """Which values are equal to rounding; an error where their vectors are in use.

    Of Q f(w) Q^H the numerator of the quotient is zero too, and its limit f'(w) cannot be told from
    the zero of a projection on their space: `over` is all of Q^H G, not its skew part."""
    eps = np.finfo(over.dtype).eps
    top = np.max(sizes, axis=-1, keepdims=True, initial=0.0)
    near = np.abs(gap) <= 1e3 * eps * np.maximum(top, np.finfo(over.dtype).tiny)
    near &= ~np.eye(gap.shape[-1], dtype=bool)
    size = np.abs(over).max(axis=(-2, -1), keepdims=True, initial=0.0)
    if (near & (np.abs(over) > 1e3 * eps * size)).any():
        raise errors.LinAlgError(
            "repeated eigenvalues have no derivative of their eigenvectors: write what is made of "
            "them by functions of the matrix (inv, expm, sqrtm, logdet, ...), or add what tells "
            "the eigenvalues apart"
        )
    return near


def _quotients(over: Any, skew: Any, w: Any, gap: Any) -> Any:
    """`skew` / `gap`, 0 for values w that are equal."""
    apart = _rows(w) - _columns(w)
    near = call(_repeated, (over, apart, np.abs(_rows(w))), over.shape, np.dtype(bool))
    near = near | (gap == 0)
    return np.where(near, 0.0, skew / np.where(near, 1.0, gap))


def eigenvectors(w: Any, Q: Any, g: Any) -> Any:
    """Q (M / (w_j - w_i)) Q^H, M the skew part of Q^H G: the Hermitian part moves no vector."""
    over = view(Q, 3) @ g
    inner = _quotients(over, (over - view(over, 3)) / 2, w, _rows(w) - _columns(w))
    return Q @ inner @ view(Q, 3)


# -- singular vectors, QR --------------------------------------------------------------------------


def _skew_over(S: Any, W: Any) -> Any:
    """(W - W^H)_ij / (s_j^2 - s_i^2), 0 on the diagonal."""
    gap = (_rows(S) - _columns(S)) * (_rows(S) + _columns(S))
    return _quotients(W, W - view(W, 3), S, gap)


def _or_zero(a: Any, b: Any) -> Any:
    """a / b, 0 for 0 / 0."""
    return a / np.where((a == 0) & (b == 0), 1.0, b)


def _phases(W: Any, S: Any) -> Any:
    """What the phases of complex vectors add: nothing for results that do not depend on them."""
    turn = _or_zero(np.imag(diagonal(W)), 2 * S)
    D: Any = _core.Diag(turn * 1j)
    return D


def singular_vectors(left: bool, U: Any, S: Any, Vh: Any, g: Any) -> Any:
    """The cotangent of A from that of U or of Vh, in the reduced decomposition."""
    k = S.shape[-1]
    if U.shape[-1] != k or Vh.shape[-2] != k:
        raise NotImplementedError(
            "the vectors beyond min(m, n) have no derivative: say full_matrices=False"
        )
    if left:
        W = view(U, 3) @ g
        inner, sign = _skew_over(S, W) * _rows(S), 1
    else:
        g = view(g, 3)
        W = Vh @ g
        inner, sign = _columns(S) * _skew_over(S, W), -1
    if g.dtype.kind == "c":
        inner = inner + sign * _phases(W, S)
    made = U @ inner @ Vh
    over = _or_zero(g, _rows(S))
    if left and U.shape[-2] > k:
        made = made + (over - U @ (view(U, 3) @ over)) @ Vh
    if not left and Vh.shape[-1] > k:
        made = made + U @ view(over - view(Vh, 3) @ (Vh @ over), 3)
    return made


def _triangular_half(N: Any) -> Any:
    """The Hermitian matrix whose upper triangle is N's."""
    T: Any = np.triu(N)
    d = diagonal(N)
    D: Any = _core.Diag(np.real(d))
    strict = T - _core.Diag(d)
    return strict + view(strict, 3) + D


def qr(y: Any, of_q: bool, Q: Any, R: Any, g: Any) -> Any:
    """(gQ + Q copyltu(...)) R^-H, of the reduced factors of a matrix of full rank; the columns of a
    wide one behind the square are Q times R's."""
    m, n = R.shape[-2:]
    if Q.shape[-1] != m or m > n:
        raise NotImplementedError(
            f"QR has a derivative here for mode='reduced' and 'r', not for Q of shape {Q.shape} "
            f"and R of shape {R.shape}" + errors.built(y)
        )
    if m == n:
        return _square_qr(of_q, Q, R, g)
    first, rest = R[..., :m], R[..., m:]
    if of_q:
        behind: Any = np.zeros(rest.shape, g.dtype)
        return np.concatenate([_square_qr(True, Q, first, g), behind], axis=-1)
    g_rest = g[..., m:]
    made = _square_qr(False, Q, first, g[..., :m])
    made = made + _square_qr(True, Q, first, Q @ (rest @ view(g_rest, 3)))
    return np.concatenate([made, Q @ g_rest], axis=-1)


def _square_qr(of_q: bool, Q: Any, R: Any, g: Any) -> Any:
    triangle: Any = _core.Triangular(R, False)
    back = view(inverse(triangle), 3)
    if of_q:
        return (g - Q @ _triangular_half(view(Q, 3) @ g)) @ back
    g = np.triu(g)
    return Q @ _triangular_half(g @ view(R, 3)) @ back


# -- which rule ------------------------------------------------------------------------------------


def _cholesky_of_numpy(y: Any, g: Any) -> Any:
    return cholesky(y, g, y._more[1].get("upper"))


def _pinv_of_numpy(y: Any, g: Any) -> Any:
    return pinv(y, g, y._more[1])


def _r_alone(y: Any, g: Any) -> Any:
    if y._more[1].get("mode") != "r":
        raise NotImplementedError(
            f"np.linalg.qr with mode={y._more[1].get('mode')!r} has no derivative here"
            + errors.built(y)
        )
    found: Any = np.linalg.qr(y._args[0])
    # the R of another call: LAPACK makes the same one
    return qr(y, False, found[0], found[1], g)


def eigvals(y: Any, g: Any) -> Any:
    """V^-H diag(g) V^H."""
    found: Any = np.linalg.eig(y._args[0])
    return _of_eigenvalues(found[1], g)


def _of_eigenvalues(V: Any, g: Any) -> Any:
    D: Any = _core.Diag(g)
    return view(inverse(V), 3) @ D @ view(V, 3)


def _norm(y: Any, g: Any) -> Any:
    """The cotangent of A from that of its norm, by the sums and singular values that make it."""
    A, order = y._args[0], y._more[1].get("ord")
    if order in (None, "fro"):
        return times(A, g / np.where(y == 0, 1.0, y))
    if order in ("nuc", 2, -2):
        s: Any = np.linalg.svdvals(A)
        picked = np.sum(s, axis=-1) if order == "nuc" else s[..., 0 if order == 2 else -1]
        return Through(picked, g, (A,))
    sums: Any = np.sum(np.abs(A), axis=-2 if abs(order) == 1 else -1)
    return Through(np.max(sums, axis=-1) if order > 0 else np.min(sums, axis=-1), g, (A,))


def _cond(y: Any, g: Any) -> Any:
    A, p = y._args[0], y._more[1].get("p", 2)
    if p in (2, -2):
        s: Any = np.linalg.svdvals(A)
        first, last = s[..., 0], s[..., -1]
        return Through(first / last if p == 2 else last / first, g, (A,))
    norm: Any = np.linalg.matrix_norm
    return Through(norm(A, ord=p) * norm(inverse(A), ord=p), g, (A,))


WHOLE = {
    "cholesky": _cholesky_of_numpy,
    "eigvalsh": eigvalsh,
    "eigvals": eigvals,
    "svdvals": svdvals,
    "pinv": _pinv_of_numpy,
    "qr": _r_alone,
    "norm": _norm,
    "matrix_norm": _norm,
    "cond": _cond,
}


def _siblings(y: Any) -> tuple[Any, str, int, list[Any]]:
    """The matrix, the name of its decomposition, which of the results y is, and all results."""
    if isinstance(y._more[0], Piece):
        piece, A = y._more[0], y._args[0]
        return A, piece.joint.name, piece.at, [piece.node(A, k) for k in range(len(piece.parts))]
    packed, at = y._args[0], y._more[0].at
    function = packed._more[0]
    start, made = 0, []
    for k, spec in enumerate(function.parts):
        f = Result(f"{function.name}[{k}]", spec, start, k)
        made.append(call(f, (packed,), *spec))
        start += math.prod(spec[0]) * spec[1].itemsize
    return packed._args[0], function.name, at, made


def part(y: Any, g: Any) -> Any:
    """The cotangent of the matrix whose decomposition `y` is one of the results of."""
    A, name, at, found = _siblings(y)
    if name == "eigh":
        w, Q = found
        D: Any = _core.Diag(g) if at == 0 else None
        made = Q @ D @ view(Q, 3) if at == 0 else None
        return eigenvectors(w, Q, g) if at else _of_values(made, Q, Q, w, g)
    if name == "eig" and at == 0:
        return _of_eigenvalues(found[1], g)
    if name == "svd":
        U, S, Vh = found
        if at != 1:
            return singular_vectors(at == 0, U, S, Vh, g)
        k = S.shape[-1]
        D = _core.Diag(g)
        if max(U.shape[-1], Vh.shape[-2]) > k:
            U, Vh = U[..., :k], Vh[..., :k, :]
        return _of_values(U @ D @ Vh, U, view(Vh, 3), S, g)
    if name == "qr":
        return qr(y, at == 0, found[0], found[1], g)
    raise NotImplementedError(f"result {at} of {name} has no derivative here" + errors.built(y))


def is_part(y: Any) -> bool:
    """Is it one of several results of a decomposition?"""
    if y._head == "call":
        return isinstance(y._more[0], Result)
    return y._head in ("made", "of form") and isinstance(y._more[0], Piece)
