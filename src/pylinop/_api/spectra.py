"""Eigenvalues, singular values and their vectors; functions of operators: the public functions.

The rows of each kind are in _structured: eigh.py, eig.py, svd.py and matrix_functions.py."""

import operator
from collections.abc import Callable
from typing import Any, Unpack

import numpy as np

from .._base import config
from .._base.checks import is_lazy, is_symbolic, square, triangle
from .._base.dtypes import inexact, real_of
from .._base.errors import deferrable
from .._base.lazy_import import Later
from .._base.signatures import listed
from .._lazy import decompositions
from .._lazy import functions_of_structure as _of_parts
from .._lazy import matrix_functions as _deferred
from .._operators.convert import as_operator
from .._structured import eig as _eig
from .._structured import eigh as _eigh
from .._structured import matrix_functions, operands, questions
from .._structured import svd as _svd
from .._structured.scalar_function import Function
from .basic import inv
from .norms import Pairs, eigvalsh, svdvals

__all__ = [
    "eig",
    "eigh",
    "eigvals",
    "expm",
    "fractional_matrix_power",
    "funm",
    "log_pdet",
    "logm",
    "sqrtm",
    "svd",
]
_eigenpairs = Later("_eigen.choose_method")
_action = Later("_eigen.exponential_action")

_ONE = np.ones((1, 1))
_Eigh, _Eig, _Svd = (type(f(_ONE)) for f in (np.linalg.eigh, np.linalg.eig, np.linalg.svd))


@deferrable
def eigh(
    A: Any,
    UPLO: str = "L",
    *,
    method: str = "auto",
    k: int | None = None,
    **how: Unpack[Pairs],
) -> Any:
    """Eigenvalues and eigenvectors of a Hermitian operator, the values ascending.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
        Assumed to be Hermitian; one triangle of a dense form is read.
    UPLO : {'L', 'U'}, optional
        Which triangle.
    method : {'auto', 'direct', 'iterative'}
        'direct' computes all pairs, by structure or the dense form; 'iterative' computes ``k`` of
        them by Lanczos (`eigsh`); 'auto' takes the one with the lower estimate where ``k`` is
        given, and 'direct' otherwise.
    k : int, optional
        How many pairs: the largest ones, unless ``how`` names others.
    **how
        With ``k``: ``which`` and ``sigma`` as in `eigsh`; for an iterative method all of its
        options.

    Returns
    -------
    EighResult
        NumPy's named tuple: ``eigenvalues``, an array (..., n), and ``eigenvectors``, an operator
        (..., n, n) whose columns are orthonormal, real where A is. With ``k``, that many of both.

    Raises
    ------
    LinAlgError
        When A is not square, or LAPACK does not converge.
    ValueError
        For names that do not exist, and a k not from 1 to n.
    scipy.sparse.linalg.ArpackNoConvergence
        When 'iterative' does not converge.

    Notes
    -----
    A is decomposed by structure where its kind allows (docs/factorisations.md has the table): the
    vectors of a Kron are a Kron, of a BlockDiag a BlockDiag, of a circulant the Fourier or Hartley
    transform, of a thin matrix k reflections, times a `Permutation` where the order needs it.
    Otherwise NumPy runs on the dense form.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> w, Q = pl.eigh(pl.Kron(np.array([[2.0, 1.0], [1.0, 2.0]]), pl.Identity(1000)))
    >>> w[[0, -1]], Q.shape
    (array([1., 3.]), (2000, 2000))
    """
    if is_lazy(A) and method == "auto" and k is None and not how:
        _deferred.square(A, "eigh")
        dtype = inexact(A.dtype)
        parts = ((tuple(A.shape[:-1]), real_of(dtype)), (tuple(A.shape), dtype))
        return _Eigh(*_deferred.several("eigh", eigh, A, parts, UPLO=triangle(UPLO)))
    if method != "auto" or k is not None or how or config.recording():
        return _Eigh(
            *_eigenpairs.pairs(square(as_operator(A)), triangle(UPLO), method, k, True, {**how})
        )
    return _Eigh(*_eigh.ascending(square(as_operator(A)), triangle(UPLO)))


listed(eigh, Pairs, which="LA", tol=0, mode="normal")


@deferrable
def eig(A: Any) -> Any:
    """Eigenvalues and eigenvectors of a square operator, in no order.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)

    Returns
    -------
    EigResult
        NumPy's named tuple: ``eigenvalues``, an array (..., n), and ``eigenvectors``, an operator
        (..., n, n) with columns of length 1. Both are real where A, all values and the vectors are.

    Raises
    ------
    LinAlgError
        When A is not square, or LAPACK does not converge.

    Notes
    -----
    A is decomposed by structure where its kind allows, by `eigh` if it is Hermitian in all its
    entries, and otherwise by NumPy on the dense form. Of a complex LazyArray both results are
    deferred; of a real one their dtype depends on the values, which are computed at once.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> w, V = pl.eig(pl.Circulant([0.0, 1.0, 0.0, 0.0]))
    >>> np.allclose(pl.Circulant([0.0, 1.0, 0.0, 0.0]) @ V.toarray(), V.toarray() * w)
    True
    """
    if is_lazy(A) and A.dtype.kind == "c":
        _deferred.square(A, "eig")
        dtype = inexact(A.dtype)
        parts = ((tuple(A.shape[:-1]), dtype), (tuple(A.shape), dtype))
        return _Eig(*_deferred.several("eig", eig, A, parts))
    return _Eig(*_eig.pairs_of(square(as_operator(A))))


@deferrable
def eigvals(A: Any) -> Any:
    """The eigenvalues of a square operator, in no order.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)

    Returns
    -------
    ndarray, shape (..., n)
        Real where A and all values are; deferred, as from `eig`, where A is a complex LazyArray.

    Raises
    ------
    LinAlgError
        When A is not square, or LAPACK does not converge.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.eigvals(pl.Kron(pl.Triangular([[2.0, 0.0], [5.0, 3.0]]), pl.Diag([1.0, 10.0])))
    array([ 2., 20.,  3., 30.])
    """
    later = decompositions.later("eigvals", A) if is_lazy(A) else None
    return _eig.values_of(square(as_operator(A))) if later is None else later


@deferrable
def svd(
    A: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """The singular value decomposition, A = U diag(S) Vh, the values descending.

    Parameters
    ----------
    A : operator or array_like, shape (..., m, n)
    full_matrices : bool, optional
        True: U and Vh are square. False: they have min(m, n) columns and rows.
    compute_uv : bool, optional
        When False, return the values alone, as `svdvals` does.
    hermitian : bool, optional
        Assume that A is Hermitian, and use `eigh`.

    Returns
    -------
    SVDResult
        NumPy's named tuple: ``U`` and ``Vh``, operators, real where A is, and ``S``, an array
        (..., min(m, n)).

    Raises
    ------
    LinAlgError
        When LAPACK does not converge.

    Notes
    -----
    A is decomposed by structure where its kind allows (docs/factorisations.md has the table), with
    a `Permutation` or a `Selection` where the order needs it. Full U and Vh of a low-rank A are
    reflections, held as m k and n k numbers. Otherwise NumPy runs on the dense form.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> U, S, Vh = pl.svd(pl.LowRank(np.ones((1000, 1)), 2 * np.ones((4, 1))))
    >>> S.round(3), U.shape
    (array([126.491,   0.   ,   0.   ,   0.   ]), (1000, 1000))
    """
    if is_lazy(A) and compute_uv and not hermitian:
        return _svd_later(A, full_matrices)
    op = as_operator(A)
    if hermitian:
        square(op)
    if not compute_uv:
        if hermitian:
            return np.sort(np.abs(questions.eigvalsh(op, "L")), axis=-1)[..., ::-1]
        return svdvals(op)
    return _Svd(*_svd.descending(op, full_matrices, hermitian))


def _svd_later(A: Any, full_matrices: bool) -> Any:
    *batch, m, n = A.shape
    k, dtype = min(m, n), inexact(A.dtype)
    parts = (
        ((*batch, m, m if full_matrices else k), dtype),
        ((*batch, k), real_of(dtype)),
        ((*batch, n if full_matrices else k, n), dtype),
    )
    return _Svd(*_deferred.several("svd", svd, A, parts, full_matrices=bool(full_matrices)))


@deferrable
def log_pdet(A: Any, *, rtol: Any = None) -> Any:
    """The logarithm of the product of a Hermitian operator's nonzero eigenvalues.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
        Assumed to be Hermitian; the lower triangle of a dense form is read.
    rtol : array_like, optional
        Eigenvalues up to ``rtol`` times the largest in modulus count as zero; n eps when None, as
        in `matrix_rank`.

    Returns
    -------
    number or ndarray, shape (...)
        Real; nan where the product is negative, 0 where all values are zero.

    Raises
    ------
    LinAlgError
        When A is not square, or LAPACK does not converge.

    Notes
    -----
    The eigenvalues are those of `eigvalsh`. The name is that of scipy.stats.Covariance.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> float(pl.log_pdet(pl.Kron(np.ones((2, 2)), pl.Identity(100))).round(3))
    69.315
    """
    w = eigvalsh(A)
    if is_symbolic(w):
        float(w)  # it has no value: a formula as a whole
    size = np.abs(w)
    r = w.shape[-1] * np.finfo(w.dtype).eps if rtol is None else rtol
    r = operands.tolerance_of("rtol", r)[..., None]
    top = size.max(axis=-1, keepdims=True) if w.shape[-1] else 0.0
    kept = ~(size <= r * top)
    log = np.log(np.where(kept, size, 1)).sum(axis=-1)
    odd = (kept & (w < 0)).sum(axis=-1) % 2 == 1
    return np.where(odd, np.nan, log).astype(w.dtype)[()]


# -- functions of matrices --


@deferrable
def expm(A: Any) -> Any:
    """The exponential of a square operator.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)

    Returns
    -------
    LinearOperator
        Real where A is: Diag, Circulant, BlockDiag, Triangular where A is, a Kron of exponentials
        where it is a KronSum, an Eigen where it is Hermitian; else Dense. Computed now, or of A as
        it is now when it is used (see Notes).

    Raises
    ------
    LinAlgError
        When A is not square.
    ImportError
        When SciPy is needed and not installed: A is not Hermitian, and its kind has no route of its
        own.

    Notes
    -----
    This is not the exponential of each element, which is ``np.exp(A)``. A factor c or a term c I
    beside A is taken into the function, so ``pl.expm(t * A)`` costs what ``pl.expm(A)`` does. A
    matrix without a structured route goes by scipy.linalg.expm (Al-Mohy and Higham, 2009).

    Of 100 rows and more without a quick route, products ``expm(A) @ x``, from both sides and of all
    views, go by products with A where these take at most half as long by estimate: of a few columns
    and a norm that is not large. Hermitian A by a Chebyshev series, others by steps of Taylor's
    (Al-Mohy and Higham, 2011), at working accuracy: the error is that of some roundings of A. All
    else (entries, diagonals, solves, determinants, wide products) takes the dense form, and so does
    ``pl.evaluate`` for products too where it is asked for the exponential itself. A is copied for
    it. Operators that hold a `Dense` alone, and callables, are computed now; of a LazyArray the
    array is looked at too. Each product chooses alone, so that the same formula has the same bits:
    for very many products with one exponential take ``pl.Dense(pl.expm(A).toarray())``.
    ``A.explain("expm")`` names the way; 800 rows of a graph, one product: 1 ms for 50.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> L = pl.KronSum(pl.Diag([0.0, 1.0]), pl.Diag([0.0, 2.0]))
    >>> type(pl.expm(L)).__name__, pl.expm(-L).diagonal().round(4)
    ('Kron', array([1.    , 0.1353, 0.3679, 0.0498]))
    """
    if is_lazy(A):
        return _of_parts.function("expm", _expm_once, A)
    return _exponential(A, False)


def _expm_once(A: Any) -> Any:
    """As `expm`, of what one evaluation takes."""
    return expm(A) if is_lazy(A) else _exponential(A, True)


def _exponential(A: Any, once: bool) -> Any:
    op = square(as_operator(A))
    found = _action.offered(op, once)
    return matrix_functions.exponential(op) if found is None else found


@deferrable
def logm(A: Any) -> Any:
    """The principal logarithm of a square operator.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
        Regular.

    Returns
    -------
    LinearOperator
        Computed now: Diag, Circulant, BlockDiag, Triangular where A is, a KronSum of logarithms
        where it is a Kron whose branches add up, an Eigen where it is Hermitian; else Dense.
        Complex where A has negative eigenvalues.

    Raises
    ------
    LinAlgError
        When A is not square, or singular (to working precision where its eigenvalues are computed),
        or the result fails expm(logm(A)) = A.
    ImportError
        When SciPy is needed and not there.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> K = pl.logm(pl.Kron(np.array([[2.0, 1.0], [1.0, 2.0]]), pl.Diag([1.0, 4.0])))
    >>> type(K).__name__, round(float(K.trace()), 6), round(float(np.log(9 * 16)), 6)
    ('KronSum', 4.969813, 4.969813)
    """
    if is_lazy(A):
        return _of_parts.function("logm", logm, A)
    return matrix_functions.applied(matrix_functions.logm, A, Function("log"))


@deferrable
def sqrtm(A: Any) -> Any:
    """The principal square root of a square operator.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)

    Returns
    -------
    LinearOperator
        Computed now: Diag, Circulant, BlockDiag, Triangular where A is, a Kron of roots where it is
        a Kron whose branches add up, low rank and shifted low rank where it is thin, an Eigen where
        it is Hermitian; else Dense. Complex where A has negative eigenvalues; those that are
        negative by rounding alone (n eps times the largest) count as zero.

    Raises
    ------
    LinAlgError
        When A is not square, or has no square root that squares to it.
    ImportError
        When SciPy is needed and not there.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> R = pl.sqrtm(pl.Kron(np.array([[2.0, 1.0], [1.0, 2.0]]), pl.Diag([1.0, 4.0])))
    >>> type(R).__name__, (R @ (R @ np.ones(4))).round(6)
    ('Kron', array([ 3., 12.,  3., 12.]))
    """
    if is_lazy(A):
        return _of_parts.function("sqrtm", sqrtm, A)
    return matrix_functions.applied(matrix_functions.power, A, Function("power", 0.5))


@deferrable
def fractional_matrix_power(A: Any, t: Any) -> Any:
    """The principal power of a square operator, for any real exponent.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
        Regular where ``t`` is negative.
    t : float
        The exponent; for an integer the result is ``pl.linalg.matrix_power(A, t)``, lazy.

    Returns
    -------
    LinearOperator
        As from `sqrtm`.

    Raises
    ------
    LinAlgError
        When A is not square, or singular (to working precision) and ``t`` negative.
    TypeError
        When ``t`` is not a real number.
    ImportError
        When SciPy is needed and not there.

    Notes
    -----
    ``A ** 0.5`` raises, as with numpy.matrix: it could be mistaken for a power of the elements.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.fractional_matrix_power(pl.Diag([4.0, 9.0]), -0.5).diagonal().round(6)
    array([0.5     , 0.333333])
    """
    if np.ndim(t) != 0 or np.asarray(t).dtype.kind not in "biuf":
        raise TypeError(f"the exponent is a real number, not {t!r}")
    p = float(t)
    if p == int(p) if np.isfinite(p) else False:
        n = operator.index(int(p))
        if is_lazy(A):
            return np.linalg.matrix_power(A, n)
        op = square(as_operator(A))
        return op**n if n >= 0 else inv(op) ** -n
    if not np.isfinite(p):
        raise ValueError(f"the exponent is a finite number, not {t!r}")
    if is_lazy(A):
        name = "fractional_matrix_power"
        return _deferred.made(
            name, fractional_matrix_power, _deferred.square(A, name), A.shape, t=p
        )
    return matrix_functions.applied(matrix_functions.power, A, Function("power", p))


@deferrable
def funm(A: Any, func: Callable[[Any], Any]) -> Any:
    """A function of a square operator, given as one of its eigenvalues.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
    func : callable
        Takes an array of eigenvalues, real where A is Hermitian, and returns as many values. If it
        returns NaN for real eigenvalues, it is called again with complex ones.

    Returns
    -------
    LinearOperator
        Computed now: Diag, Circulant, BlockDiag where A is, an Eigen where it is Hermitian; else
        Dense.

    Raises
    ------
    LinAlgError
        When A is not square; or when it is not Hermitian and so near to a matrix with multiple
        eigenvalues that more than half the digits could be lost (no derivatives are known).
    ValueError
        When ``func`` returns a different number of values.
    ImportError
        When SciPy is needed and not there.

    Notes
    -----
    A matrix that is not Hermitian goes by the Schur form and Parlett's recurrence, as in
    scipy.linalg.funm, which prints a warning where this function raises.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> clipped = pl.funm(pl.Toeplitz([1.0, 2.0]), lambda w: np.maximum(w, 0))
    >>> clipped.toarray().round(6)
    array([[1.5, 1.5],
           [1.5, 1.5]])
    """
    if not callable(func):
        raise TypeError(f"func takes an array of eigenvalues: it must be callable, got {func!r}")
    if is_lazy(A):
        return _deferred.made("funm", funm, _deferred.square(A, "funm"), A.shape, func=func)
    return matrix_functions.applied(matrix_functions.funm, A, Function("any", call=func))
