"""Derivatives of functions of matrices, numbers and all.

Higham, Functions of matrices (2008): of a Hermitian A = Q diag(w) Q^H the derivative of f along G
is Q (D o (Q^H G Q)) Q^H, where D holds the divided differences of f at w (theorem 3.11); of others
it stands at the top right of f([[A, G], [0, A]]) (section 3.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .dispatch import dense
from .eigh import eigenbasis
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


# And is f taken where eigenvalues are positive only?
_DIFFERENCES: dict[str, tuple[Any, bool]] = {
    "expm": (_of_exp, False),
    "logm": (_of_log, True),
    "sqrtm": (_of_power, True),
    "fractional_matrix_power": (_of_power, True),
}


def _basis(op: Any) -> Any:
    """The eigenvalues and eigenvectors, as arrays; None where A is not Hermitian."""
    if known(op, "hermitian"):
        w, q = eigenbasis(op, "L")
    else:
        a = dense(op)
        if not measured(a, "hermitian", GRAM):
            return None
        w, q = eigenbasis.of_dense(op, "L", array=a)
    return w, q if isinstance(q, np.ndarray) else q.toarray()


def _by_basis(w: Any, q: Any, g: Any, divided: Any, p: Any) -> Any:
    back = q.conj().swapaxes(-1, -2)
    return q @ (divided(w[..., :, None], w[..., None, :], p) * (back @ g @ q)) @ back


def derivative(form: Any, g: Any, by: Any, of: str, **kwargs: Any) -> Any:
    """The derivative at A^H along g of the function of matrices `by`, whose name is `of`: the
    adjoint of that at A."""
    divided, positive = _DIFFERENCES[of]
    found = _basis(form)
    if found is not None:
        w, q = found
        least = w.shape[-1] * np.finfo(w.dtype).eps * np.abs(w).max(axis=-1, initial=0)
        if not positive or (w.size and (w.min(axis=-1) > least).all()):
            with np.errstate(over="ignore", invalid="ignore"):
                return _by_basis(w, q, g, divided, kwargs.get("t", 0.5))
    n, adjoint = form.shape[-1], dense(form).conj().swapaxes(-1, -2)
    batch = np.broadcast_shapes(adjoint.shape[:-2], g.shape[:-2])
    size = np.linalg.norm(g, axis=(-2, -1), keepdims=True)
    size = np.where(size == 0, 1, size)  # f of a block that is not too large is accurate
    whole = np.zeros((*batch, 2 * n, 2 * n), np.result_type(adjoint, g, size))
    whole[..., :n, :n] = whole[..., n:, n:] = adjoint
    whole[..., :n, n:] = g / size
    made = by(whole, **kwargs)[..., :n, n:]
    return (made if isinstance(made, np.ndarray) else made.toarray()) * size
