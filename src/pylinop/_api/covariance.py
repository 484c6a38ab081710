"""Functions of a covariance: quadratic forms with its determinant, products with its inverse root,
draws. The tables of kinds are in _structured/square_roots.py and _structured/cholesky.py."""

from __future__ import annotations  # numpy.random is not imported by naming its types

import operator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _core
from .._base import config, dlpack
from .._base.checks import is_lazy, number, square
from .._base.dtypes import inexact
from .._base.errors import deferrable
from .._base.signatures import hinted
from .._lazy import build
from .._lazy import matrix_functions as _deferred
from .._lazy.program import evaluate
from .._operators.convert import as_operator
from .._operators.quasiseparable import likelihood_of
from .._structured import square_roots
from .determinants import logdet
from .factorizations import _asked, _precise, cholesky
from .solve import solve

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from .._core import _OperatorLike

__all__ = ["inv_quad_logdet", "sample", "sqrt_inv_matmul"]


class InvQuadLogdet(NamedTuple):
    """The named tuple that `inv_quad_logdet` returns."""

    inv_quad: Any
    logdet: Any


def _is_vector_each(op: Any, b: Any) -> bool:
    """Is b one vector for each matrix of a batch? ValueError where it could also be columns."""
    if op.ndim < 3 or b.shape != op.shape[:-1] or op.shape[-2] != op.shape[-1]:
        return False
    if b.shape[-2] == op.shape[-1]:
        raise ValueError(
            f"inv_quad_logdet: b of shape {b.shape} is a vector for each of the {b.shape[-2]} "
            f"matrices of {op.shape}, or {b.shape[-1]} columns for all of them: write "
            "b[..., None] for the first, b[None] for the second"
        )
    return True


def _later(A: Any, b: Any) -> InvQuadLogdet:
    """Of LazyArrays, deferred."""
    A, b = build.node(A), build.node(b)
    if b._head == "operator":
        quad = np.diagonal(build.matmul(b.conj().mT, solve(A, b)))
    elif b.ndim == 1 and A.ndim == 2:
        quad = b.conj() @ solve(A, b)
    else:
        one = b.ndim == 1 or _is_vector_each(A, b)
        columns = b[..., None] if one else b
        quad = (columns.conj() * solve(A, columns)).sum(axis=-2)
        quad = quad[..., 0] if one else quad
    return InvQuadLogdet(quad, logdet(A))


_TOGETHER = 128  # rows from which one plan of both pays for its overhead, some 40 us


def _solution_and_logdet(op: Any, b: Any) -> tuple[Any, Any]:
    """Both by one plan, so that one factor serves them, where that is not the dearer."""
    many = op.ndim > 2 or b.ndim > 2  # one factor then serves all b by itself
    apart = many or op.dtype is None or config.get("accuracy") != "exact"
    if apart or op.shape[-1] < _TOGETHER or b.dtype.char not in "fdFD":
        return solve(op, b), logdet(op)
    A = build.node(op)
    x, log = evaluate(solve(A, b), logdet(A))
    return x, number(log)


@deferrable
def inv_quad_logdet(A: _OperatorLike, b: Any) -> InvQuadLogdet:
    """b^H A^-1 b, one number a column, and log det A, from one factor.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
        Positive definite arrays are best given as ``Dense(a, assume_a='pos')``.
    b : array_like, shape (n,), (..., n) or (..., n, k), or operator
        A vector where it has one dimension; one vector for each matrix where A has batches and b
        has the shape ``A.shape[:-1]``, as residuals have; columns otherwise.

    Returns
    -------
    InvQuadLogdet
        A named tuple: ``inv_quad``, a number (one for each matrix, of shape ``A.shape[:-2]``), or
        an array (..., k), of the dtype of A and b (complex where one is); ``logdet``, as `logdet`
        gives it.

    Raises
    ------
    LinAlgError
        A is not square, or singular.
    ValueError
        The shapes do not fit; or b is ambiguous: it has the shape ``A.shape[:-1]``, and the last
        batch dimension equals the number of rows. Write ``b[..., None]`` for one vector a matrix,
        ``b[None]`` for the same columns for all.

    Notes
    -----
    The plans of `solve` and `logdet` run, and share one factor, which is cached for later calls. A
    `QuasiSeparable` with one vector takes one sweep that keeps nothing, where all pivots are well
    above rounding. The log-likelihood of a Gaussian y is ``-(inv_quad+logdet+n*log(2*pi))/2``.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> q, log = pl.inv_quad_logdet(pl.Diag([1.0, 4.0]), [3.0, 2.0])
    >>> float(q), round(float(log), 3)
    (10.0, 1.386)
    """
    if is_lazy(A) or is_lazy(b):
        return _later(A, b)
    op = as_operator(A)
    if isinstance(b, _core.Operator):
        return InvQuadLogdet((b.H @ solve(op, b)).diagonal(), logdet(op))
    right = dlpack.as_array(b)
    if _is_vector_each(op, right):
        quad, log = inv_quad_logdet(op, right[..., None])
        return InvQuadLogdet(quad[..., 0], log)
    if op._head == "quasiseparable":
        found = likelihood_of(op, right)
        if found is not None:
            if op.dtype == right.dtype == np.float64:
                return InvQuadLogdet(*map(np.float64, found))
            dtype = np.result_type(inexact(op.dtype), inexact(right.dtype))
            return InvQuadLogdet(dtype.type(found[0]), inexact(op.dtype).type(found[1]))
    x, log = _solution_and_logdet(op, right)
    axis = -1 if right.ndim == 1 else -2
    return InvQuadLogdet(number((np.conj(right) * x).sum(axis=axis)), log)


@deferrable
def sqrt_inv_matmul(A: _OperatorLike, b: ArrayLike) -> NDArray[Any]:
    """A^-1/2 b, by the Hermitian root of a positive definite operator.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
    b : array_like, shape (n,) or (..., n, k)

    Returns
    -------
    ndarray
        Whitened columns: if the columns of b are draws from N(0, A), these are draws from N(0, I).

    Raises
    ------
    LinAlgError
        A is not Hermitian, or not positive definite within rounding.

    Notes
    -----
    It is computed from the eigenvalues of the parts where docs/factorisations.md says so, otherwise
    by LAPACK on the dense form: 9 n^3 flops, as accurate as the square root of the condition number
    allows.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.sqrt_inv_matmul(pl.Kron(pl.Diag([4.0, 1.0]), pl.Diag([1.0, 25.0])), np.ones(4))
    array([0.5, 0.1, 1. , 0.2])
    """
    if is_lazy(A) or is_lazy(b):
        a, x = build.node(A), build.node(b)
        n = _deferred.square(a, "sqrt_inv_matmul").shape[-1]
        if x.ndim == 0 or x.shape[-2 if x.ndim > 1 else -1] != n:
            raise ValueError(f"sqrt_inv_matmul: b of shape {x.shape} has not the {n} rows of A")
        return _deferred.solved("sqrt_inv_matmul", sqrt_inv_matmul, a, x, n)  # type: ignore[no-any-return]
    op = as_operator(A)
    square(op)
    right = dlpack.as_array(b)
    dtype = inexact(np.result_type(inexact(op.dtype), right.dtype))
    root = _asked(square_roots.power, _precise(op, dtype), -0.5)
    y: NDArray[Any] = root @ right.astype(dtype, copy=False)
    return y


def _sizes(size: Any) -> tuple[Any, ...]:
    return tuple(size) if isinstance(size, (tuple, list, np.ndarray)) and np.ndim(size) else (size,)


@hinted
def sample(
    A: _OperatorLike,
    size: int | tuple[int, ...] | None = None,
    rng: np.random.Generator | int | None = None,
    mean: ArrayLike | None = None,
) -> NDArray[Any]:
    """Draws from the normal distribution with covariance A. `MultivariateNormal` has densities too.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
        Hermitian positive semidefinite. A complex A gives circular draws, E[x x^H] = A.
    size : int or tuple of int, optional
        How many; one when None.
    rng : numpy.random.Generator or int, optional
        The source of random numbers, or its seed; a new one seeded by the system when None.
    mean : array_like, shape (n,) or (..., n), optional
        What is added to each draw; 0 when None.

    Returns
    -------
    ndarray, shape (\\*size, ..., n)

    Raises
    ------
    LinAlgError
        A is not Hermitian, or has an eigenvalue that is negative by more than rounding.

    Warns
    -----
    FallbackWarning
        Eigenvalues that were negative by rounding were set to 0; the warning says how many and how
        large they were.

    Notes
    -----
    A draw is R z with R R^H = A and standard normal z. R is fixed by the kind (the table of
    `sample` in docs/factorisations.md), never by cost: the Kron of the factors' roots for a Kron,
    the Hermitian root for a Circulant, rows of a circulant's root for a Toeplitz or a
    MultilevelToeplitz, L for a Root, otherwise the Cholesky factor, and where that fails a root
    made from the eigenvectors.
    Draws of a LazyArray are a LazyArray, L z with the Cholesky factor L for every kind, and have
    derivatives; an A that is not positive definite raises. ``sample(A, k)`` begins as
    ``sample(A, j)`` does for j < k, with the same seed, but for the rounding of sums.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.sample(pl.Kron(pl.Identity(100), np.ones((3, 3)) + np.eye(3)), 5, rng=0).shape
    (5, 300)
    """
    shape = _counts(size)
    count = int(np.prod(shape, dtype=np.int64))
    if is_lazy(A):
        later: NDArray[Any] = _sampled_later(A, shape, count, np.random.default_rng(rng))
        return later if mean is None else later + (mean if is_lazy(mean) else _mean(mean, A))
    op = as_operator(A)
    square(op)
    found: NDArray[Any] = _asked(square_roots.draws, op, count, np.random.default_rng(rng))
    found = found.reshape(*shape, *found.shape[1:])
    return found if mean is None else found + _mean(mean, op)


def _sampled_later(A: Any, shape: tuple[int, ...], count: int, rng: Any) -> Any:
    """The draws of a LazyArray, by its Cholesky factor."""
    L = cholesky(A)
    z = square_roots.normals((count, *A.shape[:-1]), inexact(A.dtype), rng)
    y = np.moveaxis(L @ np.moveaxis(z, 0, -1), -1, 0)
    return np.reshape(y, (*shape, *A.shape[:-1]))


def _counts(size: Any) -> tuple[int, ...]:
    """``size`` as a tuple."""
    try:
        shape = () if size is None else tuple(map(operator.index, _sizes(size)))
    except TypeError:
        text = f"size must be an integer or a tuple of integers, got {size!r}"
        raise TypeError(text) from None
    if any(k < 0 for k in shape):
        raise ValueError(f"size must not be negative, got {size}")
    return shape


def _mean(mean: Any, op: Any) -> Any:
    """A mean that fits an operator, in its precision."""
    m = dlpack.as_array(mean)
    if m.dtype.kind not in "biufc":
        raise TypeError(f"mean of dtype {m.dtype}: numbers are taken")
    if m.ndim and (m.shape[-1] != op.shape[-1] or m.shape[:-1] not in ((), op.shape[:-2])):
        raise ValueError(f"mean of shape {m.shape} does not fit an operator of shape {op.shape}")
    return m.astype(inexact(op.dtype), copy=False) if m.dtype.kind in "biuf" else m
