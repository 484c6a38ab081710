"""Square roots of positive semidefinite operators, for A^-1/2 b and draws from N(0, A).

There are two questions. ``power`` gives the Hermitian A^p for p = 1/2 or -1/2, as an operator.
``root`` gives some R with R R^H = A, chosen by the kind and never by cost, so that a seed gives the
same draws again."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from .. import _core
from .._base import errors
from .._base.dtypes import inexact, real_of
from .._operators.convert import as_operator
from . import cholesky_sparse
from .cholesky import (
    NotDefinite,
    cholesky,
    not_definite,
)
from .dispatch import Question, one_call
from .eigh import eigenbasis
from .properties import ROUNDED, largest, measured, rounding

# -- eigenvalues --


def nonnegative(
    w: Any, singular: bool = True, axes: tuple[int, ...] = (-1,), exact: bool = False
) -> Any:
    """Checks the eigenvalues of a positive (semi)definite matrix: those negative by no more than
    rounding are set to 0, with a warning that says how much; more negative ones raise. If the
    matrix may not be ``singular``, values no larger than rounding raise, unless w is ``exact``."""
    n = math.prod(w.shape[k] for k in axes)
    top = np.abs(w).max(axis=axes, initial=0)
    least = w.min(axis=axes, initial=np.inf)
    allowed = n * np.finfo(w.dtype).eps * top
    bad = ~(least >= -16 * allowed) if singular else ~(least > (0 if exact else allowed))
    if bad.any():
        where = np.unravel_index(np.argmax(bad), bad.shape)
        words = "not positive semidefinite" if singular else "not positive definite"
        raise not_definite(
            bad,
            f"is {words}: its least eigenvalue is {least[where]:.3g}, the largest in modulus "
            f"{top[where]:.3g}",
        )
    if (least < 0).any():
        worst = np.max(-least / np.where(top > 0, top, 1))
        warnings.warn(
            f"{np.count_nonzero(w < 0)} eigenvalues of {w.size} were negative by rounding, at most "
            f"{worst:.2g} of the largest, and are taken as 0",
            errors.FallbackWarning,
            stacklevel=errors.outside(),
        )
        w = np.maximum(w, 0)
    return w


def require_hermitian(a: Any) -> None:
    if not measured(a, "hermitian", ROUNDED):
        gap = largest(a, np.swapaxes(a, -1, -2), True)
        raise not_definite(
            gap > rounding(a) * largest(a),
            f"is not Hermitian: elements differ from those of its adjoint by up to {gap.max():.3g}",
        )


def _powers(w: Any, p: Any) -> Any:
    return w**p if p > 0 else 1 / np.sqrt(w)


# -- A^p --


def _by_eigenvectors(a: Any, p: Any, op: Any) -> Any:
    require_hermitian(a)
    w, q = eigenbasis.of_dense(op, "L", array=a)
    return _core.Eigen(q, _powers(nonnegative(w, p > 0), p))


power = Question(
    _by_eigenvectors,
    "sqrt_inv_matmul",
    how="LAPACK's syevd; Q f(w) Q^H b",
    cost="that of eigh",
    whole=True,
    arrays=0,
)


def by_basis(op: Any, p: Any) -> Any:
    """A^p by the eigenvectors that the kind has."""
    w, q = eigenbasis(op, "L")
    return _core.Eigen(q, _powers(nonnegative(w.astype(real_of(op.dtype), copy=False), p > 0), p))


# -- R with R R^H = A --


def _lower_or_symmetric(a: Any, op: Any) -> Any:
    """The Cholesky factor if op is definite, else the symmetric root with negative values
    clipped."""
    require_hermitian(a)
    try:
        return cholesky.of_dense(op, "L", array=a)
    except NotDefinite:
        w, q = eigenbasis.of_dense(op, "L", array=a)
        return q @ _core.Diag(np.sqrt(nonnegative(w)))


root = Question(
    _lower_or_symmetric,
    "sample",
    how="Cholesky; where that fails Q w^1/2 of eigh, negative w clipped and told of",
    cost="that of `cholesky`; 9 n^3 where that fails",
    whole=True,
    arrays=0,
    doubt=lambda op: ("where it is not definite", [cholesky, eigenbasis]),
)


def _power_of(op: Any) -> Any:
    return [("sqrt_inv_matmul", op, 0.5)]


@root.row("circulant", how="the Hermitian root, a Circulant", cost="O(n)", asks=_power_of)
@root.row(
    "kronsum",
    how="the Hermitian root, by eigenvectors of the factors",
    cost="the factors'",
    asks=_power_of,
)
def _(op: Any) -> Any:
    return power(op, 0.5)


@root.row(
    "sparse",
    "laplacian",
    how="Cholesky, sparse; where that fails as a dense one",
    cost="that of `cholesky`; w the envelope's mean width",
    asks=lambda op: None if cholesky_sparse.asks(op) is None else [("cholesky", op, "L")],
    doubt=lambda op: ("where it is not definite", [("cholesky", op, "L"), None]),
)
def _(op: Any) -> Any:
    a = cholesky_sparse.matrix_of(op)
    if a is None or not cholesky_sparse.is_hermitian(a):
        return NotImplemented
    try:
        return cholesky(op, "L")
    except NotDefinite:
        return NotImplemented


def _beside(terms: Any) -> Any:
    """The roots of positive semidefinite terms side by side, which are a root of their sum;
    NotImplemented where a term is not semidefinite."""
    try:
        return _core.Block([[root(as_operator(t)) for t in terms]])
    except NotDefinite:
        return NotImplemented


@one_call("sample")
def draws(op: Any, count: int, rng: Any) -> Any:
    """``count`` draws from N(0, A): (count, ..., n)."""
    found = root(op)
    dtype, batch = inexact(op.dtype), op.shape[:-2]
    z = normals((count, *batch, found.shape[-1]), dtype, rng)
    return np.moveaxis(found @ np.moveaxis(z, 0, -1), -1, 0)


def normals(shape: tuple[int, ...], dtype: np.dtype[Any], rng: Any) -> Any:
    """Standard normal numbers, circular ones where they are complex."""
    if dtype.kind == "c":
        z = rng.standard_normal((*shape, 2)).view(np.complex128)[..., 0] * math.sqrt(0.5)
    else:
        z = rng.standard_normal(shape)
    return z.astype(dtype, copy=False)
