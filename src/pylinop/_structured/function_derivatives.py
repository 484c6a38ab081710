"""Derivatives of functions of matrices, numbers and all.

Higham, Functions of matrices (2008): of a Hermitian A = Q diag(w) Q^H the derivative of f along G
is Q (D o (Q^H G Q)) Q^H, where D holds the divided differences of f at w (theorem 3.11); of others
it stands at the top right of f([[A, G], [0, A]]) (section 3.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.dtypes import TRANSPOSED
from .dispatch import dense
from .eigh import eigenbasis
from .operands import keep_within
from .properties import GRAM, known, measured

# The divided differences of f at a and b, to all digits also where these are near.


def _of_exp(a: Any, b: Any, p: Any) -> Any:
    half, apart = (a - b) / 2, a - b
    near = np.abs(half) < 1
    of_far = (np.exp(a) - np.exp(b)) / np.where(near, 1, apart)
    half = np.where(near & (half != 0), half, 1)
    ratio = np.where(apart == 0, 1, np.sinh(half) / half)
    return np.where(near, np.exp((a + b) / 2) * ratio, of_far)


def _of_log(a: Any, b: Any, p: Any) -> Any:
    z = (a - b) / (a + b)
    near = np.abs(z) < 0.5
    of_far = np.log(a / b) / np.where(near, 1, a - b)
    z = np.where(near & (z != 0), z, 0.25)
    ratio = np.where(a == b, 1, np.arctanh(z) / z)
    return np.where(near, 2 * ratio / (a + b), of_far)


def _of_power(a: Any, b: Any, p: Any) -> Any:
    most, least = np.maximum(a, b), np.minimum(a, b)
    near = least > most / 2
    below = np.where(near, np.log1p(np.where(near, (least - most) / most, 0)), np.log(least / most))
    below = np.where(a == b, 1, below)
    ratio = np.where(a == b, p, np.expm1(p * below) / np.expm1(below))
    return most ** (p - 1) * ratio


DIFFERENCES = {
    "expm": _of_exp,
    "logm": _of_log,
    "sqrtm": _of_power,
    "fractional_matrix_power": _of_power,
}


def named_triangle(op: Any) -> Any:
    """Of an array that is said to be Hermitian the upper one is read, seen through transposes."""
    uplo: Any = "U"
    while op._head in ("view", "scaled"):
        if op._head == "view" and op._mode & TRANSPOSED:
            uplo = "L" if uplo == "U" else "U"
        op = op._operands[0]
    return uplo


def basis(op: Any) -> Any:
    """The eigenvalues and eigenvectors, as arrays; None where A is not Hermitian. Of single
    precision in double, as other matrices go."""
    uplo = named_triangle(op)
    hermitian, is_double = known(op, "hermitian"), op.dtype.char in "dD"
    if hermitian and is_double:
        w, q = eigenbasis(op, uplo)
    else:
        a = dense(op)
        if not hermitian and not measured(a, "hermitian", GRAM):
            return None
        if is_double:
            w, q = eigenbasis.of_dense(op, uplo, array=a)
        else:
            w, q = np.linalg.eigh(a.astype(np.result_type(a, np.float64)), uplo)
    return w, q if isinstance(q, np.ndarray) else q.toarray()


def regular(op: Any, w: Any, of: str, p: Any) -> Any:
    """The eigenvalues where f is taken at positive ones; None where some are negative and f is a
    power with an integer. Zero has a derivative of powers above 1 alone."""
    if w.size == 0 or of == "expm":
        return w
    most = np.abs(w).max(axis=-1, keepdims=True)
    noise = 0 if known(op, "diagonal") else w.shape[-1] * np.finfo(w.dtype).eps * most
    if (w < -noise).any():
        if op.dtype.kind == "c" and not float(p).is_integer():
            raise np.linalg.LinAlgError(
                f"{of} of a complex matrix with the eigenvalue {w.min():.3g} has no derivative: "
                "that lies on the function's branch cut"
            )
        return None
    zero = w <= noise
    if zero.any() and (of == "logm" or p < 1):
        raise np.linalg.LinAlgError(
            f"{of} of a singular matrix has no derivative: an eigenvalue of {w[zero].min():.1e} "
            f"beside {most.max():.1e}"
        )
    return np.where(zero, np.maximum(w, 0), w)


def _by_basis(w: Any, q: Any, g: Any, of: str, p: Any) -> Any:
    back = q.conj().swapaxes(-1, -2)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        divided = DIFFERENCES[of](w[..., :, None], w[..., None, :], p)
        return q @ (divided * (back @ g @ q)) @ back


def adjoint_of(form: Any, found: Any) -> Any:
    """A^H; of what is known to be Hermitian, of which a triangle is there, by its eigenvectors."""
    adjoint = dense(form).conj().swapaxes(-1, -2)
    if found is None or not known(form, "hermitian"):
        return adjoint
    w, q = found
    return ((q * w[..., None, :]) @ q.conj().swapaxes(-1, -2)).astype(adjoint.dtype)


def derivative(form: Any, g: Any, by: Any, of: str, **kwargs: Any) -> Any:
    """The derivative at A^H along g of the function of matrices `by`, whose name is `of`: the
    adjoint of that at A."""
    keep_within(form, 7)
    found, p = basis(form), kwargs.get("t", 0.5)
    if found is not None:
        w = regular(form, found[0], of, p)
        if w is not None:
            return _by_basis(w, found[1], g, of, p)
    n, adjoint = form.shape[-1], adjoint_of(form, found)
    batch = np.broadcast_shapes(adjoint.shape[:-2], g.shape[:-2])
    size = np.linalg.norm(g, axis=(-2, -1), keepdims=True)
    size = np.where(size == 0, 1, size)  # f of a block that is not too large is accurate
    whole = np.zeros((*batch, 2 * n, 2 * n), np.result_type(adjoint, g, size))
    whole[..., :n, :n] = whole[..., n:, n:] = adjoint
    whole[..., :n, n:] = g / size
    made = by(whole, **kwargs)[..., :n, n:]
    return (made if isinstance(made, np.ndarray) else made.toarray()) * size
