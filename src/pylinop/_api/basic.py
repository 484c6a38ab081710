"""Functions that lie at the top level: `inv`, `trace`, `diagonal`, `freeze` and more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

import numpy as np

from .. import _core
from .._base import config, dlpack
from .._base.checks import is_lazy
from .._base.errors import NoValue
from .._base.lazy_import import Later
from .._base.signatures import listed
from .._lazy import numpy_functions
from .._operators.convert import as_operator
from .._stochastic.sampling import Sampling

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from .._core import _OperatorLike
    from .._operators.linear_operator import LinearOperator

_Scalar = TypeVar("_Scalar", bound=np.generic)

__all__ = ["aslinearoperator", "diagonal", "freeze", "inv", "trace"]
_estimates = Later("_stochastic.choose_method")


def aslinearoperator(A: _OperatorLike) -> LinearOperator:
    """``A`` as a `LinearOperator`, without copying.

    Parameters
    ----------
    A : array_like, sparse matrix, operator
        Arrays become `Dense`, scipy.sparse matrices `Sparse`, operators of ours stay the same
        object; anything with ``shape`` and ``matvec`` becomes a `MatVec`.

    Returns
    -------
    LinearOperator

    Raises
    ------
    TypeError
        For anything else.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.aslinearoperator(np.eye(2))
    <2x2 Dense with dtype=float64>
    """
    return as_operator(A)


def inv(A: _OperatorLike) -> LinearOperator:
    """The inverse of a square operator, lazy.

    Nothing is computed before the inverse is used: ``inv(A) @ b`` is `solve`, by structure where
    there is a way (docs/linalg.md), else by a factor of the dense form, which is kept while the
    content of A stays the same. ``inv(A).diagonal()`` and ``inv(A).trace()`` are found without the
    inverse where the kind allows.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)

    Returns
    -------
    LinearOperator

    Raises
    ------
    LinAlgError
        When A is not square; or, when the inverse is used, A is exactly singular.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.inv(pl.Diag([2.0, 4.0])) @ np.ones(2)
    array([0.5 , 0.25])
    """
    form: Any = A
    if is_lazy(A):
        form = _core._lazy_inverse(form)
    else:
        try:
            form = _core._build("inverse", as_operator(A))
        except NoValue as error:
            return error.deferred(inv, A)  # type: ignore[no-any-return]
    return form  # type: ignore[no-any-return]


def _matrix(A: Any, what: str) -> Any:
    """The operand of a function: a LazyArray itself, all else as an operator; never a vector."""
    lazy = is_lazy(A)
    if lazy or not isinstance(A, _core.Operator):
        ndim = getattr(A, "ndim", None)
        if (np.ndim(A) if ndim is None and isinstance(A, (list, tuple)) else ndim) in (0, 1):
            raise ValueError(
                f"{what} takes a matrix or an operator, got an array of shape {np.shape(A)}"
            )
    return A if lazy else as_operator(A)


def given_how(method: str, how: dict[str, Any]) -> dict[str, Any]:
    """The keywords of a call that may estimate, as they were written."""
    return how if method == "auto" else {"method": method, **how}


def trace(A: _OperatorLike, method: str = "auto", **how: Unpack[Sampling]) -> Any:
    """The sum of the main diagonal, a number, computed now by the cheapest known way.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
    method : {'auto', 'direct', 'hutchinson', 'hutch++', 'xtrace'}
        The last three give an `Estimate` from products with random vectors (`estimate_trace`).
        'auto' is 'direct', unless ``pl.config(accuracy="estimate")`` allows an estimate.
    **how
        Passed to `estimate_trace`: ``num_samples``, ``rtol``, ``rng`` and so on.

    Returns
    -------
    number, ndarray or Estimate

    Raises
    ------
    ValueError
        For an unknown method, and for a vector.
    TypeError
        For ``how`` without an estimate.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> float(pl.trace(pl.Kron(np.eye(2), np.ones((3, 3)))))
    6.0
    >>> e = pl.trace(pl.Toeplitz(np.ones(100)), method="xtrace", rng=0)
    >>> round(e.value, 6), e.samples, e.error_kind
    (100.0, 30, 'heuristic')
    """
    lazy = is_lazy(A)
    try:
        form = _matrix(A, "trace")
    except NoValue as error:
        return error.deferred(trace, A, **given_how(method, {**how}))
    if method != "auto" or how or (config.estimates and not lazy):
        return _estimates.number(form, "trace", method, {**how}, lambda op: op.trace())
    return numpy_functions.trace(form) if lazy else form.trace()


listed(trace, Sampling, confidence=0.95)


@overload
def diagonal(A: _OperatorLike, offset: int = 0) -> NDArray[Any]: ...
@overload
def diagonal(A: _OperatorLike, offset: int = 0, *, method: str, **how: Unpack[Sampling]) -> Any: ...
def diagonal(
    A: _OperatorLike, offset: int = 0, *, method: str = "auto", **how: Unpack[Sampling]
) -> Any:
    """The diagonal at an offset, a vector, computed now by the cheapest known way.

    Parameters
    ----------
    A : operator or array_like, shape (..., m, n)
    offset : int
        0 is the main diagonal, 1 the one above it, -1 the one below it.
    method : {'auto', 'direct', 'hutchinson', 'hutch++'}
        The last two give an `Estimate` of the main diagonal from products with random vectors
        (`estimate_diagonal`); 'auto' is 'direct'.
    **how
        Passed to `estimate_diagonal`: ``num_samples``, ``rtol``, ``rng`` and so on.

    Returns
    -------
    ndarray or Estimate

    Raises
    ------
    ValueError
        For an unknown method, for a vector, and for an offset other than 0 with an estimate.
    TypeError
        For ``how`` without an estimate.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.diagonal(pl.Toeplitz([1.0, 2.0, 3.0]), offset=1)
    array([2., 2.])
    """
    try:
        form = _matrix(A, "diagonal")
    except NoValue as error:
        return error.deferred(diagonal, A, offset, **given_how(method, {**how}))
    if method != "auto" or how:
        if offset and method not in ("auto", "direct", "exact"):
            raise ValueError(f"an estimate is of the main diagonal, not of offset {offset}")
        return _estimates.number(form, "diagonal", method, {**how}, lambda op: op.diagonal(offset))
    return numpy_functions.diagonal(form, offset) if is_lazy(form) else form.diagonal(offset)


listed(diagonal, Sampling, confidence=0.95)


@overload
def freeze(a: NDArray[_Scalar]) -> NDArray[_Scalar]: ...
@overload
def freeze(a: ArrayLike) -> NDArray[Any]: ...
def freeze(a: ArrayLike) -> NDArray[Any]:
    """A read-only copy of an array that nobody can write to.

    What operators derive of such an array (factors, spectra) is used again without a look at its
    bytes; of any other array they are read at each call, since they might have changed.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.freeze(np.zeros(2)).flags.writeable
    False
    """
    array: NDArray[Any] = dlpack.as_array(a)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"freeze takes arrays of numbers, got dtype {array.dtype}")
    if dlpack.is_immutable(array):
        return array
    held = np.ascontiguousarray(array).tobytes()
    return np.frombuffer(held, dtype=array.dtype).reshape(array.shape)
