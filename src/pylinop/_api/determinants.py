"""Determinants: numbers, computed now."""

from typing import Any, Unpack

from .._base import config
from .._base.checks import is_lazy
from .._base.errors import NoValue, deferrable
from .._base.lazy_import import Later
from .._base.signatures import listed
from .._lazy import build
from .._operators.convert import as_operator
from .._stochastic.sampling import Sampling
from .._structured import determinants
from .basic import given_how

__all__ = ["det", "logdet", "slogdet"]
_estimates = Later("_stochastic.choose_method")
_deferred = Later("_stochastic.deferred")


def det(A: Any) -> Any:
    """The determinant, a number (an array for batches), computed now by structure or LU.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)

    Returns
    -------
    number or ndarray, shape (...)
        In A's dtype, or float64 for integers. It over- or underflows only where the determinant
        itself does: see `slogdet`.

    Raises
    ------
    LinAlgError
        When A is not square.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> float(pl.det(pl.Kron(2 * np.eye(2), pl.Diag([1.0, 3.0, 1.0]))))
    576.0
    """
    if is_lazy(A):
        return build.number_of(A, determinants.det)
    try:
        op = as_operator(A)
    except NoValue as error:
        return error.deferred(det, A)
    return determinants.det(op)


@deferrable
def slogdet(A: Any) -> Any:
    """Sign and logarithm of the modulus of the determinant, which never over- or underflows.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)

    Returns
    -------
    SlogdetResult
        NumPy's named tuple: ``sign`` (a number of modulus 1, or 0 for a singular A) and
        ``logabsdet`` (real; -inf for a singular A).

    Raises
    ------
    LinAlgError
        When A is not square.

    Notes
    -----
    Diagonals, Kronecker and other products, block diagonals, powers, inverses, multiples,
    permutations, transforms and triangles are exact up to rounding: with p factors met on the way
    (np for A^p) the absolute error of ``logabsdet`` is at most (p + 2 |logabsdet|) u. A result by
    LU or Cholesky (within the band where there is one), by a spectrum or by the determinant lemma
    is that of a nearby matrix, which adds about n u cond(A).

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> sign, logabsdet = pl.slogdet(pl.Diag(np.full(1000, -0.001)))
    >>> float(sign), round(float(logabsdet), 3)
    (1.0, -6907.755)
    """
    if is_lazy(A):
        return build.slogdet(A)
    return determinants.slogdet(as_operator(A))


class _Quadrature(Sampling, total=False):
    bounds: tuple[float | None, float | None] | None
    steps: int | None


def logdet(A: Any, method: str = "auto", **how: Unpack[_Quadrature]) -> Any:
    """The logarithm of the determinant, as torch has it.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
    method : {'auto', 'direct', 'slq'}
        'direct' goes by structure or a factor; 'slq' gives an `Estimate` by stochastic Lanczos
        quadrature (`estimate_logdet`). 'auto' is 'direct', unless
        ``pl.config(accuracy="estimate")`` allows an estimate. Of a LazyArray 'slq' is a LazyArray,
        the mean of samples by probes that are drawn now; its gradient is Hutchinson's on the same
        probes (docs/gradients.md).
    **how
        Passed to `estimate_logdet`: ``num_samples``, ``rtol``, ``bounds``, ``rng`` and so on.

    Returns
    -------
    number or ndarray, shape (...), or Estimate
        Real A: nan for a negative determinant, -inf for zero. Complex A: the complex logarithm.

    Raises
    ------
    LinAlgError
        When A is not square; with 'slq' also when A turns out not to be positive definite.
    ValueError
        For an unknown method.
    TypeError
        For ``how`` without an estimate.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> round(float(pl.logdet(pl.Kron(3 * np.eye(20), pl.Identity(50)))), 3)
    1098.612
    """
    if is_lazy(A):
        if method == "slq":
            return _deferred.logdet(A, **how)
        if method != "auto" or how:
            return _estimates.number(A, "logdet", method, {**how}, determinants.logdet)
        return build.number_of(A, determinants.logdet)
    try:
        op = as_operator(A)
    except NoValue as error:
        return error.deferred(logdet, A, **given_how(method, {**how}))
    if method != "auto" or how or config.estimates:
        return _estimates.number(op, "logdet", method, {**how}, determinants.logdet)
    return determinants.logdet(op)


listed(logdet, _Quadrature, confidence=0.95)
