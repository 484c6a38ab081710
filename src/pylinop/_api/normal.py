"""``MultivariateNormal``: the normal distribution of a structured covariance or precision.

    log p(x) = -h (n log(pi / h) + log det A + (x - m)^H A^-1 (x - m)),   h = 1/2, complex: h = 1

    given x_b            m_a + C S^-1 (x_b - m_b),  A_aa - C S^-1 C^H,   S = A_bb, C = A_ab
    ... by precision     m_a - P_aa^-1 P_ab (x_b - m_b),  precision P_aa
    given y = H x + e    m + C S^-1 (y - H m),  A - C S^-1 C^H,   S = H A H^H + R, C = A H^H
    ... by precision     m + Q^-1 H^H R^-1 (y - H m),  precision Q = P + H^H R^-1 H

The matrix is held as `factorized` holds it: all that is asked uses one factor of its kind, made
when it is first needed. Results of conditioning are written as these formulas, on operators; what
they cost is decided where a number is asked of them.

Bishop, Pattern Recognition and Machine Learning, section 2.3; Rue and Held, Gaussian Markov Random
Fields, section 2.2."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from .. import _core
from .._base import dlpack
from .._base.checks import is_lazy, number
from .._base.dtypes import inexact
from .._base.kind_flags import DIAGONAL
from .._base.signatures import hinted
from .._operators import draw
from .._operators.convert import as_operator
from . import normal_batches
from . import normal_parts as parts
from .covariance import inv_quad_logdet
from .determinants import logdet
from .normal_draws import Given, Mapped, Root, Seen, rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from .._core import _OperatorLike
    from .._operators.linear_operator import LinearOperator

__all__ = ["MultivariateNormal"]


def _of(mean: Any, matrix: Any, by: str) -> MultivariateNormal:
    if by == "covariance":
        return MultivariateNormal(mean, matrix)
    return MultivariateNormal(mean, precision=matrix)


class MultivariateNormal:
    """The normal distribution with a mean, and a covariance or a precision matrix of any kind.

    Methods have the names of ``scipy.stats.multivariate_normal``. Use `factorized` where there is
    a matrix and no distribution, `sample` for draws with mean 0 alone.

    Parameters
    ----------
    mean : array_like, shape (n,) or (..., n), optional
        0 by default. A number stands for n of them.
    cov : operator or array_like, shape (n, n) or (..., n, n)
        The covariance. Of arrays: a number is a multiple of the identity, a vector a diagonal; a
        matrix must be Hermitian.
    precision : operator or array_like
        Its inverse, in place of ``cov``.

    Attributes
    ----------
    mean : ndarray
    dim : int
        n.
    batch_shape : tuple of int
        Of several distributions: what stands before n.
    dtype : numpy.dtype
    cov, precision : LinearOperator
        Both, whichever was given; the other is its inverse, not computed.

    Raises
    ------
    TypeError
        Neither or both of ``cov`` and ``precision``.
    ValueError
        Shapes that do not fit; an array that is not Hermitian, or not finite.
    LinAlgError
        When a density, a condition or a divergence is asked for: the matrix is not positive
        definite. Draws are made of semidefinite covariances too.

    Cost
    ----
    Building it copies the arrays. One factor of the matrix's kind, kept, then a solve a call:
    O(n) for a `Diag`, two sweeps for bands and `QuasiSeparable`, n^3 / 3 flops for a dense matrix.

    Notes
    -----
    Arrays are read when it is made, later writes are not seen. The factor tells whether a dense
    matrix is positive definite, and of other kinds where its sign or a quadratic form shows it; an
    indefinite one of an even number of negative eigenvalues may pass, but not under
    ``pl.config(check="full")``. With a complex matrix the distribution is circular.

    Where mean, matrix or argument is a LazyArray, `logpdf` is one, so that `value_and_grad` can
    differentiate it.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> prior = pl.MultivariateNormal([0.0, 0.0, 1.0], cov=pl.Toeplitz([2.0, 1.0, 0.5]))
    >>> round(float(prior.logpdf([0.0, 1.0, 1.0])), 4)
    -3.9255
    >>> given = prior.condition([1.0], index=[1])
    >>> given.mean, given.var()
    (array([0.5, 1.5]), array([1.5, 1.5]))
    """

    mean: NDArray[Any]

    @hinted
    def __init__(
        self,
        mean: ArrayLike | None = None,
        cov: _OperatorLike | ArrayLike | None = None,
        precision: _OperatorLike | ArrayLike | None = None,
    ) -> None:
        if (cov is None) == (precision is None):
            what = "both were" if cov is not None else "neither was"
            raise TypeError(
                f"MultivariateNormal takes a covariance or a precision, {what} given: cov=A, or "
                "precision=P; cov=1.0 is the identity"
            )
        self._by = "covariance" if precision is None else "precision"
        name = "cov" if precision is None else "precision"
        given: Any = cov if precision is None else precision
        matrix = parts.matrix_of(name, given, mean)
        self.mean = parts.mean_of(mean, matrix)
        self._held = None if is_lazy(matrix) else parts.Held(matrix, self._by)
        self._matrix: Any = matrix if self._held is None else self._held.A
        self.dim: int = matrix.shape[-1]
        self.batch_shape: tuple[int, ...] = matrix.shape[:-2] or self.mean.shape[:-1]
        self._draw: Any = None  # set where another way to draw is known than a root
        both = np.result_type(inexact(matrix.dtype), inexact(self.mean.dtype))
        self.dtype: np.dtype[Any] = both
        self._half = 1.0 if matrix.dtype.kind == "c" else 0.5

    # -- the matrix

    def _factor(self) -> parts.Held:
        return self._computed().definite()

    def _computed(self) -> parts.Held:
        """What is held of the matrix."""
        if self._held is None:
            raise NotImplementedError(
                "of a matrix that is a LazyArray logpdf, pdf and mahalanobis are deferred, and "
                "sample computes it; for all else give its value, K.toarray()"
            )
        return self._held

    @property
    def cov(self) -> LinearOperator:
        """The covariance."""
        return self._matrix if self._by == "covariance" else self._inverse()  # type: ignore[no-any-return]

    @property
    def precision(self) -> LinearOperator:
        """The precision, the inverse of the covariance."""
        return self._matrix if self._by == "precision" else self._inverse()  # type: ignore[no-any-return]

    def _inverse(self) -> Any:
        return _core._build("inverse", as_operator(self._matrix))

    def var(self) -> NDArray[Any]:
        """The variance of each entry, shape (..., n)."""
        if self._by == "precision":
            found: NDArray[Any] = self._factor().diagonal()
        else:
            found = as_operator(self._matrix).diagonal()
        return np.ascontiguousarray(found.real)

    def std(self) -> NDArray[Any]:
        """The standard deviation of each entry."""
        found: NDArray[Any] = np.sqrt(self.var())
        return found

    # -- densities

    def _quad(self, x: Any) -> Any:
        """The squared Mahalanobis distance of each x."""
        if any(map(is_lazy, (x, self.mean, self._matrix))):
            return self._later(x)[0]
        r = dlpack.as_array(x)
        if r.dtype.kind not in "biufc":
            raise TypeError(f"x of dtype {r.dtype}: numbers are taken")
        r = r.reshape(1) if r.ndim == 0 and self.dim == 1 else r
        self._fits(r.shape)
        r = r - self.mean
        R, lead = parts.as_columns(r, self._matrix.shape[:-2])
        R = R[:, 0] if R.ndim == 2 and not lead else R
        F = self._factor()
        Y = F._solved(R, False) if self._by == "covariance" else F.A @ R
        q = (np.conj(R) * Y).real.sum(axis=-1 if R.ndim == 1 else -2)
        size = np.linalg.norm(R, axis=0 if R.ndim < 3 else -2)
        size = size * np.linalg.norm(Y, axis=0 if R.ndim < 3 else -2)
        if (q < -10 * self.dim * np.finfo(q.dtype).eps * size).any():
            parts.not_positive(self._by, F.A)
        q = np.moveaxis(q, -1, 0).reshape(*lead, *q.shape[:-1]) if R.ndim > 1 else q
        return number(q)

    def _fits(self, shape: tuple[int, ...]) -> None:
        n = self.dim
        if not shape or shape[-1] != n:
            raise ValueError(
                f"x must have shape ({n},), or (..., {n}) for several points, got {shape}"
            )
        try:
            np.broadcast_shapes(shape[:-1], self.batch_shape)
        except ValueError:
            raise ValueError(
                f"points of shape {shape} do not fit distributions of shape {self.batch_shape}"
            ) from None

    def _later(self, x: Any) -> tuple[Any, Any]:
        """The quadratic form and the log-determinant of the covariance, deferred."""
        x = x if is_lazy(x) else np.asarray(dlpack.as_array(x), inexact(np.asarray(x).dtype))
        self._fits(x.shape)
        r = x - self.mean
        A = self._matrix
        if r.ndim > 2 or A.ndim > 2:
            raise NotImplementedError(
                f"densities of LazyArrays at points of shape {r.shape} under matrices of shape "
                f"{A.shape}: one matrix, and points of shape (k, n)"
            )
        R = r if r.ndim == 1 else r.T
        if self._by == "covariance":
            quad, log = inv_quad_logdet(A, R)
        else:
            quad, log = (R.conj() * (A @ R)).sum(axis=0), -logdet(A)
        return (quad.real if quad.dtype.kind == "c" else quad), log

    def _logdet(self) -> Any:
        """The log-determinant of the covariance."""
        found = self._factor().slogdet().logabsdet
        return found if self._by == "covariance" else -found

    def logpdf(self, x: Any) -> Any:
        """The logarithm of the density.

        Parameters
        ----------
        x : array_like, shape (n,) or (..., n)
            Points, along the last axis. NaN gives NaN.

        Returns
        -------
        float or ndarray, shape (...)
            A LazyArray where x, mean or matrix is one.
        """
        if any(map(is_lazy, (x, self.mean, self._matrix))):
            quad, log = self._later(x)
        else:
            quad, log = self._quad(x), self._logdet()
        h, n = self._half, self.dim
        return -h * (quad + log + n * math.log(math.pi / h))

    def pdf(self, x: Any) -> Any:
        """The density; arguments as for `logpdf`."""
        return np.exp(self.logpdf(x))

    def mahalanobis(self, x: Any) -> Any:
        """The distance ((x - mean)^H cov^-1 (x - mean))^1/2; arguments as for `logpdf`."""
        quad = self._quad(x)
        return np.sqrt(quad if is_lazy(quad) else np.maximum(quad, 0))

    def entropy(self) -> Any:
        """The differential entropy, in nats."""
        h, n = self._half, self.dim
        return h * (n * (1 + math.log(math.pi / h)) + self._logdet())

    def kl_divergence(self, other: MultivariateNormal) -> Any:
        """The divergence KL(self || other), in nats: the mean of log p - log q under p, this one.

        Parameters
        ----------
        other : MultivariateNormal
            Of the same dimension.
        """
        if not isinstance(other, MultivariateNormal):
            raise TypeError(f"other must be a MultivariateNormal, got {type(other).__name__}")
        if other.dim != self.dim:
            raise ValueError(f"distributions of dimensions {self.dim} and {other.dim}")
        F, G = self._factor(), other._factor()
        cov = F.inv() if self._by == "precision" else F.A
        by = G.A if other._by == "precision" else G.inv()
        both = (by @ cov).trace().real - self.dim
        return self._half * (both + other._quad(self.mean) + other._logdet() - self._logdet())

    kl = kl_divergence

    # -- draws

    def sample(
        self,
        size: int | tuple[int, ...] | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> NDArray[Any]:
        """Draws, of shape (\\*size, ..., n).

        Parameters
        ----------
        size : int or tuple of int, optional
            How many; one when None.
        rng : numpy.random.Generator or int, optional
            The source of random numbers, or its seed; a new one when None.

        Notes
        -----
        As the function `sample` draws; of a precision by the root of its inverse. Where a
        covariance was conditioned, by draws from what it was before and from the noise (Matheron's
        rule).
        """
        rng = np.random.default_rng(rng)
        sizes = () if size is None else tuple(np.atleast_1d(size).tolist())
        if self._matrix.ndim == 2:
            sizes += self.mean.shape[:-1]
        found: NDArray[Any] = self._draws()(sizes, rng) + np.asarray(self.mean)
        return found

    def _draws(self) -> Any:
        """What makes draws with mean 0 of a size."""
        if self._draw is None:
            by = self._by == "precision"
            inverse = self._factor().inv() if by and self._held is not None else None
            self._draw = Root(self.cov if inverse is None else inverse)
        return self._draw

    def _drawn_by(self, draw: Any) -> Self:
        self._draw = draw
        return self

    def rvs(
        self,
        size: int | tuple[int, ...] = 1,
        random_state: np.random.Generator | int | None = None,
    ) -> NDArray[Any]:
        """`sample` as SciPy names it: ``rvs()`` is one draw, of shape (..., n)."""
        return self.sample(None if isinstance(size, int) and size == 1 else size, random_state)

    # -- other distributions

    def marginal(self, index: Any) -> MultivariateNormal:
        """The distribution of some entries.

        Parameters
        ----------
        index : int, slice, integers or mask
            Which, and in which order.

        Notes
        -----
        Of a covariance its block. Of a precision the covariance of k entries takes k solves and an
        array n x k; of more than half of the entries the precision is the Schur complement,
        ``P_aa - P_ab inv(P_bb) P_ba``. Of a batch of distributions, marginals, conditioning and
        affine maps are taken of the dense matrices.
        """
        n = self.dim
        i = parts.indices(index, n)
        if self._matrix.ndim > 2:
            self._computed()
            return _of(*normal_batches.marginal(self, i))
        mean = self.mean[..., i]
        if self._by == "covariance":
            made = MultivariateNormal(mean, parts.block_of(as_operator(self._matrix), i, i))
            return made if self._draw is None else made._drawn_by(self._mapped(i))
        P = as_operator(self._matrix)
        rest = parts.others(i, n)
        if 2 * len(i) > n and len(rest):
            low = parts.block_of(P, i, rest)
            inner = parts.Held(parts.block_of(P, rest, rest), "precision").definite()
            made = parts.block_of(P, i, i) - low @ inner.inv() @ low.H
            return MultivariateNormal(mean, precision=made)
        unit = np.zeros((n, len(i)), self.dtype)
        unit[i, np.arange(len(i))] = 1
        cov = self._factor()._solved(unit, False)[i]
        return MultivariateNormal(mean, (cov + np.conj(cov.T)) / 2)

    def _mapped(self, i: Any) -> Any:
        return Mapped(self._draws(), _core.Selection(i, self.dim))

    def condition(
        self,
        y: ArrayLike,
        index: Any = None,
        H: _OperatorLike | None = None,
        noise: _OperatorLike | ArrayLike | None = None,
    ) -> MultivariateNormal:
        """The distribution given observations.

        ``condition(y, index)``: the entries of these indices are y; the result is the distribution
        of the *other* entries, in their order. ``condition(y, index, noise=r)`` and
        ``condition(y, H=H, noise=r)``: y was x[index], or H x, plus noise; the result is of all n.

        Parameters
        ----------
        y : array_like, shape (m,) or (..., m)
            What was observed; several rows give several means with one covariance.
        index : int, slice, integers or mask, optional
            Which entries; what is missing is left out.
        H : operator or array_like, shape (m, n), optional
            What is seen of x, in place of ``index``.
        noise : operator or array_like, optional
            The *variance* of the noise: a number, m of them, or a covariance (m, m).

        Returns
        -------
        MultivariateNormal
            By its precision, where this one is; also where the covariance is diagonal and there are
            more observations than entries. Else by its covariance.

        Raises
        ------
        LinAlgError
            The covariance of the observations is not positive definite.
        ValueError
            Shapes that do not fit, and values that are not finite.
        """
        if (index is None) == (H is None):
            raise TypeError("condition takes index= (which entries) or H= (what is seen of x)")
        self._computed()
        if index is not None and noise is None:
            return self._given(y, parts.indices(index, self.dim))
        if index is not None:
            i = parts.indices(index, self.dim)
            see: Any = _core.Selection(i, self.dim)
        else:
            see = as_operator(H)
        if see.ndim != 2 or see.shape[1] != self.dim:
            raise ValueError(f"H must have shape (m, {self.dim}), got {see.shape}")
        y = parts.observed(y, see.shape[0])
        if self._matrix.ndim > 2:
            return _of(*normal_batches.seen(self, y, see, noise))
        return self._seen(y, see, noise)

    def _given(self, y: Any, i: Any) -> MultivariateNormal:
        """Of the entries that i leaves."""
        if self._matrix.ndim > 2:
            return _of(*normal_batches.given(self, y, i))
        a, A = parts.others(i, self.dim), self._matrix
        r = parts.observed(y, len(i)) - self.mean[..., i]
        m = self.mean[..., a]
        if self._by == "precision":
            Paa = parts.Held(parts.block_of(A, a, a), "precision").definite()
            shift = rows(Paa.solve, rows(parts.block_of(A, a, i).__matmul__, r))
            return MultivariateNormal(m - shift, precision=Paa.A)
        S = parts.Held(parts.block_of(A, i, i), "covariance").definite()
        C = parts.block_of(A, a, i)
        mean = m + rows(C.__matmul__, rows(S.solve, r))
        made = MultivariateNormal(mean, parts.block_of(A, a, a) - _core.Congruence(C, S.inv()))
        return made._drawn_by(Given(self._draws(), a, i, C, S))

    def _seen(self, y: Any, H: Any, noise: Any) -> MultivariateNormal:
        """Of all entries, given y = H x + noise."""
        A, m = self._matrix, self.mean
        r = y - rows(H.__matmul__, m)
        R = None if noise is None else parts.noise_of(noise, len(y) if y.ndim == 1 else y.shape[-1])
        prior = A
        if self._by == "covariance" and R is not None and H.shape[0] >= self.dim:
            inner = A._operands[0] if A._head == "scaled" else A
            prior = self._inverse() if inner._head in DIAGONAL else A
        if prior is A and self._by == "covariance":
            C = A @ H.H
            S = parts.Held(H @ C if R is None else H @ C + R, "covariance").definite()
            mean = m + rows(C.__matmul__, rows(S.solve, r))
            post = MultivariateNormal(mean, A - _core.Congruence(C, S.inv()))
            return post._drawn_by(Seen(self._draws(), H, C, S, R))
        if R is None:
            raise parts.without_noise()
        weigh = parts.Held(R, "covariance").definite()
        made = MultivariateNormal(m, precision=parts.information(prior, H, weigh))
        F = made._factor()
        shift = rows(F.solve, rows(H.H.__matmul__, rows(weigh.solve, r)))
        made.mean = parts.mean_of(m + shift, F.A)
        made.batch_shape = made.mean.shape[:-1]
        return made

    def affine(self, A: _OperatorLike, b: ArrayLike = 0.0) -> MultivariateNormal:
        """The distribution of A x + b, with covariance A cov A^H; also as ``A @ d + b``.

        Parameters
        ----------
        A : operator or array_like, shape (m, n)
        b : array_like, shape () or (m,)
        """
        op = as_operator(A)
        if op.ndim != 2 or op.shape[1] != self.dim:
            raise ValueError(f"A must have shape (m, {self.dim}), got {op.shape}")
        if self._matrix.ndim > 2:
            self._computed()
            return _of(*normal_batches.affine(self, op, np.asarray(b)))
        mean = rows(op.__matmul__, self.mean) + np.asarray(b)
        if self._by == "precision":
            made = MultivariateNormal(mean, _core.Congruence(op, self._factor().inv()))
        else:
            made = MultivariateNormal(mean, _core.Congruence(op, as_operator(self._matrix)))
        return made._drawn_by(Mapped(self._draws(), op))

    # -- as a random vector under arithmetic

    __array_ufunc__ = None  # arrays leave the operators below to this class

    def __rmatmul__(self, A: Any) -> MultivariateNormal:
        return self.affine(A)

    def __add__(self, b: Any) -> MultivariateNormal:
        if isinstance(b, MultivariateNormal):
            raise TypeError(
                "the sum of two random vectors depends on how they are related: if they are "
                "independent, MultivariateNormal(p.mean + q.mean, p.cov + q.cov)"
            )
        return self._like(self.mean + np.asarray(b), self._matrix, 1)

    __radd__ = __add__

    def __sub__(self, b: Any) -> MultivariateNormal:
        return self.__add__(-b)

    def __rsub__(self, b: Any) -> MultivariateNormal:
        return self.__neg__().__add__(b)

    def __neg__(self) -> MultivariateNormal:
        return self._like(-self.mean, self._matrix, -1)

    def __mul__(self, c: Any) -> MultivariateNormal:
        c = np.asarray(c)[()]
        if np.ndim(c):
            raise TypeError("only numbers scale a distribution: pl.Diag(c) @ d scales each entry")
        if not np.isfinite(c) or c == 0:
            raise ValueError(f"a distribution is scaled by a number other than 0, got {c}")
        size = abs(c) ** 2
        return self._like(
            self.mean * c, self._matrix * (size if self._by == "covariance" else 1 / size), c
        )

    __rmul__ = __mul__

    def __truediv__(self, c: Any) -> MultivariateNormal:
        return self * (1 / np.asarray(c)[()])

    def __getitem__(self, index: Any) -> MultivariateNormal:
        return self.marginal(index)

    def _like(self, mean: Any, matrix: Any, c: Any) -> MultivariateNormal:
        """Of c x, moved."""
        if self._by == "precision":
            return MultivariateNormal(mean, precision=matrix)
        made = MultivariateNormal(mean, matrix)
        if self._draw is None or isinstance(self._draw, Root):
            return made
        return made._drawn_by(Mapped(self._draw, c * _core.Identity(self.dim)))

    # -- itself

    def __reduce__(self) -> Any:
        mean = self.mean if is_lazy(self.mean) else np.array(self.mean)
        by = (self._matrix, None) if self._by == "covariance" else (None, self._matrix)
        return MultivariateNormal, (mean, *by), {"_draw": self._draw}

    def __copy__(self) -> MultivariateNormal:
        return self

    def __deepcopy__(self, memo: Any) -> MultivariateNormal:
        return self

    def __getattr__(self, name: str) -> NoReturn:
        parts.elsewhere(name, dir(type(self)))

    def _said(self) -> str:
        several = f"{self.batch_shape} of dimension" if self.batch_shape else "dimension"
        return f"MultivariateNormal, {several} {self.dim}"

    def __repr__(self) -> str:
        name = "cov" if self._by == "covariance" else "precision"
        return f"<{self._said()}, {name}={self._matrix!r}>"

    def _repr_html_(self) -> str:
        shown = "" if is_lazy(self._matrix) else draw.html(self._matrix)
        return f"<div><b>{self._said()}</b>, by its {self._by}</div>{shown}"


MultivariateNormal.__module__ = "pylinop"
