"""Solves, determinants, norms and their kin: numbers, arrays and operators, computed now.

Solves and determinants are plans of the core, the rest questions with a table (_structured/dispatch.py)."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from .. import _core
from .._base import config, errors, scipy_bridge
from .._base.dlpack import as_array
from .._lazy import array, build
from .._operators.convert import as_operator
from .._structured import dispatch, norms
from .._structured import pinv as _pinv
from .._structured.pinv import pinv_words
from .basic import inv

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "cond",
    "det",
    "eigvalsh",
    "logdet",
    "matrix_norm",
    "matrix_rank",
    "pinv",
    "slogdet",
    "solve",
    "svdvals",
]

_ROWS = (norms, _pinv)  # imported for the rows they add to the questions
_SQRT_HALF, _LOG_2 = math.sqrt(0.5), math.log(2.0)
_Slogdet = type(np.linalg.slogdet(np.ones((1, 1))))


def _square(op):
    if op.shape[-1] != op.shape[-2]:
        raise errors.make_error(
            "LinAlgError",
            f"Last 2 dimensions of the array must be square: {op.shape}",
            op,
            "compute",
            -1,
        )


def _is_lazy(x):
    # isinstance would go on to ask an operator for its __class__, which costs more than a solve
    return issubclass(type(x), array.LazyArray)


def _number(x):
    """A scalar instead of an array without dimensions."""
    return x[()] if isinstance(x, np.ndarray) else x


class _How(TypedDict, total=False):
    method: str
    rtol: float | None
    atol: float | None
    maxiter: int | None
    M: Any
    x0: Any
    callback: Callable[["NDArray[Any]"], Any] | None
    progress: bool | Callable[[int, float], Any] | None
    precision: str | None


def solve(A: Any, b: Any, assume_a: str | None = None, **how: Unpack[_How]) -> Any:
    """The x with A x = b, computed now; an operator b gives the operator ``inv(A) @ b``.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
    b : array_like, shape (n,) or (..., n, k), or operator
        A vector only when it has one dimension, as in NumPy 2.
    assume_a : str, optional
        What is promised of an array ``A``, in scipy.linalg.solve's words; as in `Dense`. With an
        iterative method of an operator too: 'pos' or 'her' choose for 'iterative'.
    method : str, optional
        'direct' factors, or uses a closed form; 'auto' does the same, and where the dense form
        would pass the memory limit tries an iterative method to working accuracy; 'iterative',
        'cg', 'block_cg', 'minres', 'gmres', 'fgmres', 'bicgstab', 'lsqr', 'lsmr' iterate, with
        products alone (docs/iterative.md says when which), for several columns together.
    rtol, atol : float, optional
        Iterative: converged when |b - A x| <= max(rtol |b|, atol), recomputed at the end, or when
        the backward error |b - A x| / (|A| |x| + |b|) is at working accuracy, 5 sqrt(n) eps. rtol
        is 1e-10 by default, 1e-5 in float32; atol is 0.
    maxiter : int, optional
        Iterations of a method; max(10 n, 50) by default.
    M : operator, array_like, str or callable, optional
        A preconditioner: about the inverse of A; Hermitian positive definite for cg and minres. A
        callable v -> M v may change from call to call with fgmres.
    x0 : array_like or 'Mb', optional
        Where to begin; zeros by default.
    callback : callable, optional
        Called with a copy of x after each iteration (gmres: after each cycle).
    progress : bool or callable, optional
        True shows a bar (tqdm where it is there); a callable gets (iteration, residual).
    precision : {'working', 'mixed'}, optional
        As ``pl.config(precision=...)``, for this one solve, without ``method``.

    Returns
    -------
    ndarray or LinearOperator

    Raises
    ------
    LinAlgError
        When A is not square, or exactly singular.
    ConvergenceError
        When an iterative method does not get there; it carries the best iterate as ``best``, its
        ``residual``, ``iterations`` and the ``record`` of the run.
    MaterializationError
        When a dense form, or the vectors of an iterative method, would pass the memory limit.

    Notes
    -----
    Diag, Identity and Kron of square factors in closed form, products and multiples factor by
    factor, declared triangles by substitution, declared positive definite by Cholesky (LU, with a
    FallbackWarning, where that fails), what is sparse and large by CHOLMOD (definite, with
    scikit-sparse) or SciPy's SuperLU (checked), all others by LU of the dense form. Factors are
    kept.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.solve(pl.Diag([2.0, 4.0]), [1.0, 1.0])
    array([0.5 , 0.25])
    >>> pl.solve(pl.Toeplitz([4.0, 1.0, 0.0]), [5.0, 6.0, 5.0], method="cg").round(8)
    array([1., 1., 1.])
    """
    if how.get("precision") is not None:
        return _in_precision(A, b, assume_a, how)
    how.pop("precision", None)
    if how:
        from .._iterative import solve as _solve

        return _solve.solve(A, b, assume_a, **how)
    try:
        if assume_a is None and type(b) is np.ndarray and b.ndim and isinstance(A, _core.Operator):
            *_, m, n = A.shape
            if m == n == b.shape[-1 if b.ndim == 1 else -2]:  # what most calls are, at once
                return _core._build("solver", A) @ _inexact(A, b)
        return direct(A, b, assume_a)
    except errors.MaterializationError as error:
        if _is_lazy(A) or _is_lazy(b) or scipy_bridge.issparse(b):
            raise
        from .._iterative import solve as _solve

        return _solve.instead(A, b, error, assume_a)


def _in_precision(A, b, assume_a, how):
    """``solve`` where its factor's precision was named."""
    precision = how.pop("precision")
    if how:
        raise TypeError(f"precision= goes with factors, not with {', '.join(sorted(how))}=")
    if _is_lazy(A) or _is_lazy(b) or isinstance(b, _core.Operator):
        raise TypeError(
            "precision= is for solves that are computed now; for what is computed later use "
            "pl.config(precision=...)"
        )
    with config.config(precision=precision):
        return solve(A, b, assume_a)


def promised(A, op, assume_a):
    """An array with what is promised of it, as an operator."""
    if isinstance(A, _core.Operator) and not (op._head == "dense" and op._init is not None):
        raise ValueError(
            "assume_a says something of an array; an operator knows its own structure, "
            f"and this is {type(op).__name__} {op.shape} (there is Dense(a, assume_a=...))"
        )
    return _core.Dense(dispatch.dense(op), assume_a)


def direct(A, b, assume_a=None):
    """``solve`` by factors or a closed form."""
    if _is_lazy(A) or _is_lazy(b):
        return build.solve(A if assume_a is None else array.lazy(A, assume_a), b)
    op = as_operator(A)
    if assume_a is not None:
        op = promised(A, op, assume_a)
    if isinstance(b, _core.Operator):
        return inv(op) @ b
    _square(op)
    if scipy_bridge.issparse(b):
        return inv(op) @ b
    x = as_array(b)
    if x.ndim == 0 or x.shape[-1 if x.ndim == 1 else -2] != op.shape[-1]:
        n = op.shape[-1]
        raise errors.shape_error(op, "solve", f"({n},) or (..., {n}, k)", x.shape)
    return _core._build("solver", op) @ _inexact(op, x)


def _inexact(op, x):
    """A right side whose solution is no integer: kinds without numbers take x's dtype."""
    return x.astype(np.float64) if op._weak and x.dtype.kind in "iub" else x


def _scaled(op):
    """(mantissa, exponent of 2) of the determinant: Python numbers, or arrays for batches."""
    pair = op._scaledet()
    if pair is NotImplemented:
        return None
    if pair.ndim > 1:
        return pair[..., 0], pair[..., 1].real
    m, e = pair.tolist()
    return m, e.real


def _ldexp(x, e):
    """x 2^e for floats; inf where it is too large."""
    try:
        return math.ldexp(x, int(e))
    except OverflowError:
        return math.copysign(math.inf, x)


def _log(m, e):
    """Sign and logarithm of one m 2^e; small where that is near 1."""
    size = abs(m)
    if size == 0:
        return 0.0, -math.inf
    sign = m / size if isinstance(m, complex) or m != m else math.copysign(1.0, m)
    if size < _SQRT_HALF:
        size, e = 2 * size, e - 1
    return sign, math.log(size) + e * _LOG_2


def _logs(m, e):
    """Likewise of arrays."""
    size = np.abs(m)
    low = size < _SQRT_HALF
    with np.errstate(divide="ignore", invalid="ignore"):
        sign = np.sign(m) if m.dtype.kind != "c" else np.where(size == 0, 0, m / size)
        return sign, np.log(np.where(low, 2 * size, size)) + (e - low) * _LOG_2


def det(A: Any) -> Any:
    """The determinant, a number (an array for batches), computed now by structure or LU.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)

    Returns
    -------
    number or ndarray, shape (...)
        Of A's dtype; float64 for integers. Over- and underflows only where the determinant itself
        does: see `slogdet`.

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
    if _is_lazy(A):
        return build.number_of(A, det)
    op = as_operator(A)
    pair = _scaled(op)
    if pair is None:
        return np.linalg.det(dispatch.dense(op, 1.5))
    m, e = pair
    dtype = dispatch.inexact(op.dtype)
    if isinstance(m, float):
        return dtype.type(_ldexp(m, e))
    if isinstance(m, complex):
        return dtype.type(complex(_ldexp(m.real, e), _ldexp(m.imag, e)))
    e = np.clip(e, -(2.0**20), 2.0**20).astype(np.int32)
    if m.dtype.kind == "c":
        value = np.empty(m.shape, m.dtype)
        value.real, value.imag = np.ldexp(m.real, e), np.ldexp(m.imag, e)
    else:
        value = np.ldexp(m, e)
    return value.astype(dtype, copy=False)


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
    permutations, transforms and triangles exactly as far as rounding goes: with p factors met on
    the way (np for A^p) the absolute error of ``logabsdet`` is at most (p + 2 |logabsdet|) u. By
    LU or Cholesky (within the band where there is one), by a spectrum or the determinant lemma it
    is that of a nearby matrix: about n u cond(A) more.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> sign, logabsdet = pl.slogdet(pl.Diag(np.full(1000, -0.001)))
    >>> float(sign), round(float(logabsdet), 3)
    (1.0, -6907.755)
    """
    if _is_lazy(A):
        return build.now(A, slogdet)
    op = as_operator(A)
    pair = _scaled(op)
    if pair is None:
        return np.linalg.slogdet(dispatch.dense(op, 1.5))
    dtype = dispatch.inexact(op.dtype)
    if isinstance(pair[0], np.ndarray):
        sign, log = _logs(*pair)
        return _Slogdet(sign.astype(dtype), log.astype(dispatch.real_of(dtype)))
    sign, log = _log(*pair)
    return _Slogdet(dtype.type(sign), dispatch.real_of(dtype).type(log))


def logdet(A: Any, method: str = "auto", **how: Any) -> Any:
    """The logarithm of the determinant, as torch has it.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
    method : {'auto', 'direct', 'slq'}
        'direct' is by structure or a factor; 'slq' gives an `Estimate` by stochastic Lanczos
        quadrature (`estimate_logdet`). 'auto' is direct, unless
        ``pl.config(accuracy="estimate")`` allows an estimate.
    **how
        What `estimate_logdet` takes: ``num_samples``, ``rtol``, ``bounds``, ``rng`` and so on.

    Returns
    -------
    number or ndarray, shape (...), or Estimate
        Real A: nan for a negative determinant, -inf for zero. Complex A: the complex logarithm.

    Raises
    ------
    LinAlgError
        When A is not square; with 'slq' when it is seen not to be positive definite.
    ValueError
        For another method.
    TypeError
        For ``how`` without an estimate.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> round(float(pl.logdet(pl.Kron(3 * np.eye(20), pl.Identity(50)))), 3)
    1098.612
    """
    if method != "auto" or how or (config.estimates and not _is_lazy(A)):
        from .._stochastic import choose_method

        return choose_method.number(A, "logdet", method, how, _logdet)
    if _is_lazy(A):
        return build.number_of(A, logdet)
    return _logdet(as_operator(A))


def _logdet(op):
    if hasattr(type(op), "_logdet"):
        return op._logdet()  # type: ignore[attr-defined]
    sign, log = slogdet(op)
    with np.errstate(divide="ignore", invalid="ignore"):
        if np.iscomplexobj(sign):
            return _number(np.log(sign) + log)
        return _number(np.where(sign < 0, np.asarray(np.nan, log.dtype), log))


def svdvals(A: Any) -> Any:
    """The singular values, descending: those of Diag, Kron, Circulant, ... by structure.

    Parameters
    ----------
    A : operator or array_like, shape (..., m, n)

    Returns
    -------
    ndarray, shape (..., min(m, n))

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.svdvals(pl.Kron(pl.Diag([1.0, -3.0]), pl.Diag([2.0, 5.0])))
    array([15.,  6.,  5.,  2.])
    """
    op = as_operator(A)
    if (a := dispatch.small_dense(op)) is not None:
        return np.asarray(dispatch.svdvals.dense(a))
    return np.asarray(dispatch.svdvals(op)).astype(dispatch.real_of(op.dtype), copy=False)


def _order(ord):
    if ord is None or ord == "f":
        return "fro"
    if isinstance(ord, np.ndarray) or ord not in dispatch.ORDERS:
        raise ValueError(f"Invalid norm order for matrices: {ord!r}; there are {dispatch.ORDERS}")
    return ord


def matrix_norm(A: Any, /, ord: Any = "fro", *, keepdims: bool = False) -> Any:
    """A norm of the matrix, with NumPy's orders.

    Parameters
    ----------
    A : operator or array_like, shape (..., m, n)
    ord : {'fro', 'nuc', 1, -1, 2, -2, inf, -inf}, optional
        Frobenius, sum of singular values, largest (least) column sum, singular value, row sum.
    keepdims : bool, optional
        Keep the last two dimensions, as ones.

    Returns
    -------
    number or ndarray, shape (...) or (..., 1, 1)

    Notes
    -----
    By the parameters, or from `svdvals`, where a kind has an immediate answer (docs/linalg.md has
    the table); all others by NumPy on the dense form.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> float(pl.matrix_norm(pl.Kron(np.ones((2, 2)), pl.Diag([3.0, -4.0])), 2))
    8.0
    """
    op = as_operator(A)
    value = np.asarray(dispatch.norm(op, _order(ord))).astype(
        dispatch.real_of(op.dtype), copy=False
    )
    return value[..., None, None] if keepdims else _number(value)


def cond(A: Any, p: Any = None) -> Any:
    """The condition number in a norm of `matrix_norm`; the 2-norm when ``p`` is None.

    Parameters
    ----------
    A : operator or array_like, shape (..., m, n)
        Square unless ``p`` is None, 2 or -2.
    p : {None, 'fro', 'nuc', 1, -1, 2, -2, inf, -inf}, optional

    Returns
    -------
    number or ndarray, shape (...)
        inf for a singular A.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> float(pl.cond(pl.Kron(pl.Diag([1.0, 2.0]), pl.Diag([5.0, 1.0]))))
    10.0
    """
    op = as_operator(A)
    p = 2 if p is None else _order(p)
    if 0 in op.shape[-2:]:
        raise np.linalg.LinAlgError("cond is not defined on empty arrays")
    if p not in (2, -2):
        _square(op)
    return _number(np.asarray(dispatch.cond(op, p)).astype(dispatch.real_of(op.dtype), copy=False))


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """The number of singular values above a tolerance.

    Parameters
    ----------
    A : operator or array_like, shape (..., m, n)
    tol : array_like, optional
        Absolute; when None ``rtol`` times the largest singular value.
    hermitian : bool, optional
        Promises that A is Hermitian: eigenvalues are used.
    rtol : array_like, optional
        Relative; max(m, n) eps when None.

    Returns
    -------
    int or ndarray of int, shape (...)

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> int(pl.matrix_rank(pl.Kron(np.ones((2, 2)), pl.Identity(5))))
    5
    """
    if tol is not None and rtol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    op = as_operator(A)
    s = np.abs(eigvalsh(op)) if hermitian else svdvals(op)
    if tol is None:
        rtol = max(op.shape[-2:]) * np.finfo(s.dtype).eps if rtol is None else rtol
        rtol = dispatch.tolerance_of("rtol", rtol)[..., None]
        tol = s.max(axis=-1, keepdims=True, initial=0) * rtol
    else:
        tol = dispatch.tolerance_of("tol", tol)[..., None]
    return np.count_nonzero(s > tol, axis=-1)


def eigvalsh(
    A: Any, UPLO: str = "L", *, method: str = "auto", k: int | None = None, **how: Any
) -> Any:
    """The eigenvalues of a Hermitian operator, ascending.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
        Promised to be Hermitian; of a dense form one triangle is read.
    UPLO : {'L', 'U'}, optional
        Which one.
    method, k, **how
        As in `eigh`: all of them, or ``k`` of them, by a direct or an iterative way.

    Returns
    -------
    ndarray, shape (..., n) or (k,)

    Raises
    ------
    LinAlgError
        When A is not square, or LAPACK does not converge.
    ValueError
        For names that do not exist, and a k not from 1 to n.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.eigvalsh(-2 * pl.Kron(pl.Diag([1.0, 3.0]), pl.Identity(2)))
    array([-6., -6., -2., -2.])
    """
    op = as_operator(A)
    uplo = str(UPLO).upper()
    if uplo not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    _square(op)
    if method != "auto" or k is not None or how or config.recording():
        from .._eigen import choose_method

        values = choose_method.pairs(op, uplo, method, k, False, how)[0]
        return np.asarray(values).astype(dispatch.real_of(op.dtype), copy=False)
    if (a := dispatch.small_dense(op)) is not None:
        return np.asarray(dispatch.eigvalsh.dense(a, uplo))
    return np.asarray(dispatch.eigvalsh(op, uplo)).astype(dispatch.real_of(op.dtype), copy=False)


def pinv(A: Any, rcond: Any = None, hermitian: bool = False, **rtol: Any) -> Any:
    """The pseudo-inverse (Moore and Penrose), an operator.

    Parameters
    ----------
    A : operator or array_like, shape (..., m, n)
    rcond : array_like, optional
        Singular values up to ``rcond`` times the largest count as zero; 1e-15 when None.
    hermitian : bool, optional
        Promises that A is Hermitian (a dense form goes by eigenvalues).
    rtol : array_like, optional
        Same as ``rcond``, with max(m, n) eps when None is given.

    Returns
    -------
    LinearOperator
        Diag, Kron, Circulant, BlockDiag, LowRank, ... again where A is one (a Kron factor by
        factor: what counts as zero is decided in each), their multiples and transposes; otherwise
        a Dense, computed now.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.pinv(pl.Diag([2.0, 0.0])).diagonal()
    array([0.5, 0. ])
    """
    return dispatch.pinv(as_operator(A), pinv_words(rcond, hermitian, rtol))
