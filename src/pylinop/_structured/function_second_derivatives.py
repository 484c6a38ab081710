"""Second derivatives of functions of matrices, numbers and all.

Of a Hermitian A = Q diag(w) Q^H the second derivative of f along U and V has in the eigenbasis,
with P = Q^H U Q and R = Q^H V Q, the elements (Daleckii and Krein; Bhatia, Matrix analysis, V.3)

    L_kj = sum_m f[k, m, j] (P_km R_mj + R_km P_mj),    f[k, m, j] second divided differences at w.

With the first differences D these are four products of matrices where w_k and w_j are apart,

    L_kj = (((D o P) R - P (D o R) + (D o R) P - R (D o P))_kj / (w_k - w_j),

two for a square root, whose differences are products, and sums over m where they are near. Of other
matrices it stands at the top right of f([[A, U, 0], [0, A, V], [0, 0, A]]), and with U and V
exchanged (Higham, Functions of matrices, section 3.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .function_derivatives import DIFFERENCES, adjoint_of, basis, regular
from .operands import keep_within

__all__ = ["second_derivative"]

NEAR = 2.0**-5  # apart by so much of their size a quotient of differences loses 1.5 digits
_TERMS = 12  # of a series in NEAR, to the last digit
_AT_ONCE = 1 << 20  # numbers of a sum
_CLUSTERED = 1 / 3  # of all triples


def second_derivative(form: Any, g: Any, h: Any, by: Any, of: str, **kwargs: Any) -> Any:
    """That of the function of matrices `by`, whose name is `of`, at A^H along g and h^H."""
    keep_within(form, 7)
    v, p = h.conj().swapaxes(-1, -2), kwargs.get("t", 0.5)
    found = basis(form)
    if found is not None:
        w = regular(form, found[0], of, p)
        fit = w is not None and (of == "expm" or (w > 0).all())
        if fit and (of == "sqrtm" or not _is_clustered(w, of)):
            return _by_basis(w, found[1], g, v, of, p)
    adjoint = adjoint_of(form, found)
    return _by_blocks(adjoint, g, v, by, kwargs) + _by_blocks(adjoint, v, g, by, kwargs)


def _by_blocks(a: Any, u: Any, v: Any, by: Any, kwargs: Any) -> Any:
    n, sizes = a.shape[-1], []
    for x in (u, v):  # f of blocks that are not too large is accurate
        size = np.linalg.norm(x, axis=(-2, -1), keepdims=True)
        sizes.append(np.where(size == 0, 1, size))
    batch = np.broadcast_shapes(a.shape[:-2], u.shape[:-2], v.shape[:-2])
    whole = np.zeros((*batch, 3 * n, 3 * n), np.result_type(a, u, v, *sizes))
    for k in range(3):
        whole[..., k * n : (k + 1) * n, k * n : (k + 1) * n] = a
    whole[..., :n, n : 2 * n] = u / sizes[0]
    whole[..., n : 2 * n, 2 * n :] = v / sizes[1]
    made = by(whole, **kwargs)[..., :n, 2 * n :]
    return (made if isinstance(made, np.ndarray) else made.toarray()) * (sizes[0] * sizes[1])


def _by_basis(w: Any, q: Any, u: Any, v: Any, of: str, p: Any) -> Any:
    back = q.conj().swapaxes(-1, -2)
    P, R = back @ u @ q, back @ v @ q
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if of == "sqrtm":
            root = np.sqrt(w)
            over = 1 / (root[..., :, None] + root[..., None, :])
            P, R = over * P, over * R
            return -(q @ (over * (P @ R + R @ P)) @ back)
        D = DIFFERENCES[of](w[..., :, None], w[..., None, :], p)
        gap = w[..., :, None] - w[..., None, :]
        near = _is_near(w[..., :, None], w[..., None, :], of)
        DP, DR = D * P, D * R
        made = (DP @ R - P @ DR + DR @ P - R @ DP) / np.where(near, 1, gap)
        for at in np.ndindex(made.shape[:-2]):
            own, *four = (
                _of_batch(x, at, d) for x, d in ((w, 1), (D, 2), (P, 2), (R, 2), (near, 2))
            )
            _put_near(made[at], own, *four, of=of, p=p)
    return q @ made @ back


def _of_batch(x: Any, at: tuple[int, ...], ndim: int) -> Any:
    """The element of a batch, which may be broadcast along some dimensions."""
    own = x.shape[: x.ndim - ndim]
    return x[tuple(k if n > 1 else 0 for k, n in zip(at[len(at) - len(own) :], own, strict=True))]


def _is_near(a: Any, b: Any, of: str) -> Any:
    size = 1.0 if of == "expm" else np.maximum(a, b)
    return np.abs(a - b) < NEAR * size


def _is_clustered(w: Any, of: str) -> bool:
    """Are so many triples of eigenvalues near that blocks take less time than a series for each?
    Measured 2026-11-27, n = 200, all the same: 840 and 570 ms for `expm` and `logm`, blocks 275 and
    510."""
    near = _is_near(w[..., :, None], w[..., None, :], of).astype(float)
    return bool(near.size and ((near @ near) * near).sum() > _CLUSTERED * near.size * w.shape[-1])


def _put_near(made: Any, w: Any, D: Any, P: Any, R: Any, near: Any, *, of: str, p: Any) -> None:
    """The elements whose eigenvalues are near; the differences are the same at k, j and j, k."""
    rows, columns = np.nonzero(np.triu(near))
    lines = np.ascontiguousarray(R.T), np.ascontiguousarray(P.T)
    step = max(1, _AT_ONCE // max(1, w.shape[0]))
    for start in range(0, len(rows), step):
        k, j = rows[start : start + step], columns[start : start + step]
        by_k, by_j = w - w[k, None], w - w[j, None]
        far_from_k = np.abs(by_k) >= np.abs(by_j)
        over = np.where(far_from_k, by_k, by_j)
        close = near[k] & near[j]
        own = np.where(far_from_k, D[j], D[k]) - D[k, j][:, None]
        second = own / np.where(close, 1, over)
        pair, m = np.nonzero(close)
        second[pair, m] = _series(w[k[pair]], w[m], w[j[pair]], of, p)
        for at, to in ((k, j), (j, k)):
            made[at, to] = sum(
                np.einsum("qm,qm,qm->q", second, x[at], y[to])
                for x, y in zip((P, R), lines, strict=True)
            )


def _series(a: Any, b: Any, c: Any, of: str, p: Any) -> Any:
    """Second divided differences at points that are near: Taylor's series about the middle one,
    sum_k f^(k)(m) / k! h_(k - 2)(x, z), with the sums h of all products of x and z."""
    low, high = np.minimum(np.minimum(a, b), c), np.maximum(np.maximum(a, b), c)
    m = np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))
    size = 1.0 if of == "expm" else m
    x, z = (low - m) / size, (high - m) / size
    term, power = np.ones_like(m), np.ones_like(m)
    factor = {"expm": 0.5, "logm": -0.5}.get(of, p * (p - 1) / 2)
    total = factor * term
    for k in range(3, _TERMS + 2):
        power = power * z
        term = x * term + power
        factor *= {"expm": 1 / k, "logm": -(k - 1) / k}.get(of, (p - k + 1) / k)
        total = total + factor * term
    if of == "expm":
        return np.exp(m) * total
    return total / m**2 if of == "logm" else m ** (p - 2) * total
