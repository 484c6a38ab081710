"""Parts of a batch of normal distributions: marginals, conditioning, affine maps. They are taken of
arrays: what is cut out of many matrices at once has no structure that one plan could keep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._operators.convert import as_operator
from .._structured import dispatch
from .._structured.singular_values import adjoint
from . import normal_parts as parts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .normal import MultivariateNormal

# The mean and the matrix of a new distribution, and by which of the two matrices it is given.
_Made = tuple[Any, Any, str]


def _array(op: Any) -> NDArray[Any]:
    """The dense form; a warning where it is large."""
    found: NDArray[Any] = np.asarray(dispatch.dense(as_operator(op), 1))
    return found


def _positive(a: Any) -> Any:
    """The Hermitian part of a, as the definite matrix that it is but for rounding."""
    return _core.Dense((a + adjoint(a)) / 2, "pos")


def _definite(a: Any, what: str) -> parts.Held:
    return parts.Held(_positive(a), what).definite()


def _times(a: Any, x: Any) -> Any:
    """a x for vectors x (..., m)."""
    return np.matmul(a, x[..., None])[..., 0]


def _by_factor(F: parts.Held, x: Any) -> Any:
    """The solution for vectors x (..., m), which have the batch's shape or none."""
    full = np.broadcast_to(x, (*F.shape[:-2], x.shape[-1]))
    return F.solve(full[..., None])[..., 0]


def _fits(y: Any, d: MultivariateNormal) -> None:
    batch = d._matrix.shape[:-2]
    if y.shape[:-1] not in ((), batch):
        raise ValueError(
            f"observations of shape {y.shape} do not fit distributions of shape {batch}: one row, "
            f"or shape {(*batch, y.shape[-1])}"
        )


def marginal(d: MultivariateNormal, i: Any) -> _Made:
    """Of the entries i."""
    K = _array(d.cov)
    return d.mean[..., i], _core.Dense(K[..., i[:, None], i], "pos"), "covariance"


def given(d: MultivariateNormal, y: Any, i: Any) -> _Made:
    """Of the others, given that the entries i are y."""
    a, A = parts.others(i, d.dim), _array(d._matrix)
    y = parts.observed(y, len(i))
    _fits(y, d)
    r, m = y - d.mean[..., i], d.mean[..., a]
    low = A[..., a[:, None], i]
    own = A[..., a[:, None], a]
    if d._by == "precision":
        F = _definite(own, "precision")
        return m - _by_factor(F, _times(low, r)), F.A, "precision"
    S = _definite(A[..., i[:, None], i], "covariance")
    left = own - low @ S.solve(adjoint(low))
    return m + _times(low, _by_factor(S, r)), _positive(left), "covariance"


def seen(d: MultivariateNormal, y: Any, H: Any, noise: Any) -> _Made:
    """Of all entries, given y = H x + noise."""
    _fits(y, d)
    A, h = _array(d._matrix), _array(H)
    r = y - _times(h, d.mean)
    R = None if noise is None else _array(parts.noise_of(noise, y.shape[-1]))
    if d._by == "covariance":
        C = A @ adjoint(h)
        S = _definite(h @ C + (0 if R is None else R), "covariance")
        left = A - C @ S.solve(adjoint(C))
        return d.mean + _times(C, _by_factor(S, r)), _positive(left), "covariance"
    if R is None:
        raise parts.without_noise()
    W = _definite(R, "covariance")
    F = _definite(A + adjoint(h) @ W.solve(h), "precision")
    full = np.broadcast_to(r, (*A.shape[:-2], r.shape[-1]))
    weighed = np.moveaxis(W.solve(np.moveaxis(full, -1, 0).reshape(r.shape[-1], -1)), 0, -1)
    shift = _by_factor(F, _times(adjoint(h), weighed.reshape(full.shape)))
    return d.mean + shift, F.A, "precision"


def affine(d: MultivariateNormal, A: Any, b: Any) -> _Made:
    """Of A x + b."""
    a = _array(A)
    K = a @ _array(d.cov) @ adjoint(a)
    return _times(a, d.mean) + b, _positive(K), "covariance"
