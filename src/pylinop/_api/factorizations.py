"""Matrix factorisations: the public functions. Their tables of kinds are in _structured:
cholesky.py, qr.py, lu.py and svd.py."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base import dlpack, errors, memory
from .._base.checks import is_lazy, number, square
from .._base.dtypes import inexact, real_of
from .._base.errors import deferrable
from .._base.lazy_import import Later
from .._base.signatures import hinted
from .._lazy import matrix_functions as _deferred
from .._operators.convert import as_operator
from .._structured import cholesky as _cholesky
from .._structured import least_squares
from .._structured import lu as _lu
from .._structured import qr as _qr
from .._structured.dispatch import dense

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._core import _OperatorLike
    from .._operators.linear_operator import LinearOperator

__all__ = [
    "cholesky",
    "cholesky_append",
    "cholesky_update",
    "ldl",
    "lstsq",
    "lu",
    "null_space",
    "orth",
    "qr",
]
_lstsq = Later("_iterative.lstsq")

_QR = type(np.linalg.qr(np.ones((1, 1))))


def _asked(question: Callable[..., Any], op: Any, *args: Any) -> Any:
    """A question's answer; the error of a matrix that is not definite names the operator and the
    line that built it."""
    __tracebackhide__ = True
    try:
        return question(op, *args)
    except _cholesky.NotDefinite as error:
        text = str(error)
    raise errors.make_error("LinAlgError", text, op, "factor", -1)


def _precise(op: Any, dtype: Any) -> Any:
    """The operator in at least that precision."""
    if op.dtype is None or real_of(op.dtype).itemsize >= real_of(dtype).itemsize:
        return op
    wide = np.result_type(op.dtype, real_of(dtype))
    if op._head == "dense":
        memory.room(op, op.size * wide.itemsize, f"the form in {wide}")
    return op.astype(wide)


@deferrable
@hinted
def cholesky(
    A: _OperatorLike, /, *, upper: bool = False, jitter: float | None = None
) -> LinearOperator:
    """The Cholesky factor of a Hermitian positive definite operator, an operator.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
        Assumed to be Hermitian: only the triangle that is asked for is read; of a Dense assumed
        positive definite the upper one, which solves read too.
    upper : bool, optional
        True gives the upper factor U with A = U^H U, False the lower factor L with A = L L^H.
    jitter : float, optional
        Where A is not positive definite, add this fraction of the mean of its diagonal to the
        diagonal and try again, then ten and a hundred times as much. None: raise an error.

    Returns
    -------
    LinearOperator
        A Diag of a Diag, a Kron of a Kron, a BlockDiag of a BlockDiag, a Banded of a Banded or
        Tridiagonal, a SparseTriangular of a large sparse matrix, else a Triangular.

    Raises
    ------
    LinAlgError
        A is not square, or not positive definite (the element of a batch is named), or complex and
        symmetric instead of Hermitian.
    MaterializationError
        The dense form, or the fill of a sparse matrix factored in the order of its rows, might not
        fit.

    Warns
    -----
    FallbackWarning
        Jitter was needed; the warning says how much was added.

    Notes
    -----
    A is factored by structure where docs/factorisations.md says so, otherwise with n^3 / 3 flops on
    the dense form. The factors of a Kron must be Hermitian themselves. The factor is cached, as
    those of all functions here are, until the matrix changes (docs/linalg.md). If A is assumed
    positive definite, or is its own adjoint as it is written, the factor is the one that `solve`
    and `logdet` keep.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> a = np.array([[4.0, 2.0], [2.0, 5.0]])
    >>> L = pl.cholesky(pl.Kron(a, pl.Diag([1.0, 9.0])))
    >>> L
    <4x4 Kron with dtype=float64>
    >>> L.diagonal()
    array([2., 6., 2., 6.])
    """
    if is_lazy(A):
        later: Any = _deferred.square(A, "cholesky")
        later = _deferred.made(
            "cholesky", cholesky, later, later.shape, upper=bool(upper), jitter=jitter
        )
        return later  # type: ignore[no-any-return]
    op = as_operator(A)
    square(op)
    side = "U" if upper else "L"
    if jitter is None:
        factor = _asked(_cholesky.cholesky, op, side)
    else:
        ask = functools.partial(_asked, _cholesky.cholesky)
        factor = _cholesky.jittered(ask, op, side, jitter)
    made: LinearOperator = _cholesky.upper_of(factor) if upper else factor
    return made


def cholesky_update(L: _OperatorLike, v: ArrayLike, downdate: bool = False) -> LinearOperator:
    """The Cholesky factor of L L^H + v v^H, or of L L^H - v v^H, from L, an operator.

    Parameters
    ----------
    L : operator or array_like, shape (..., n, n)
        A lower factor with a positive diagonal, as `cholesky` gives it.
    v : array_like, shape (n,) or (..., n, k)
        One vector, or k columns, added or taken away one after the other.
    downdate : bool, optional
        Take away instead of add.

    Returns
    -------
    Triangular

    Raises
    ------
    LinAlgError
        L L^H - v v^H is not positive definite, as far as rounding lets one see.
    ValueError
        L is an operator that is not lower triangular; of an array the lower triangle is read.

    Notes
    -----
    An update takes 4 n^2 flops a column, a downdate 6 n^2, where a new factor takes n^3 / 3. Both
    use rotations (Gill, Golub, Murray and Saunders 1974; LINPACK's chud and chdd). A downdate is as
    accurate as the problem allows: taking away nearly all of the matrix leaves few correct digits.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> L = pl.linalg.cholesky_update(pl.Diag([4.0, 1.0]), [3.0, 0.0])
    >>> L.toarray()
    array([[5., 0.],
           [0., 1.]])
    """
    column = dlpack.as_array(v)
    column = column[:, None] if column.ndim == 1 else column
    op = as_operator(L)
    if column.ndim == 0 or column.shape[-2] != op.shape[-1]:
        n = op.shape[-1]
        raise errors.shape_error(op, "cholesky_update", f"({n},) or (..., {n}, k)", np.shape(v))
    updated: LinearOperator = _asked(_cholesky.updated, op, column, bool(downdate))
    return updated


def cholesky_append(L: _OperatorLike, B: ArrayLike, C: ArrayLike) -> LinearOperator:
    """The Cholesky factor of [[A, B], [B^H, C]] from the factor L of A, an operator.

    Parameters
    ----------
    L : operator or array_like, shape (..., n, n)
        The lower factor of A.
    B : array_like, shape (n,) or (..., n, k)
        The new columns beside A.
    C : array_like, shape () or (..., k, k)
        The block in the corner, of which the lower triangle is read.

    Returns
    -------
    Triangular
        Of n + k rows.

    Raises
    ------
    LinAlgError
        The larger matrix is not positive definite.

    Notes
    -----
    It takes n^2 k + n k^2 + k^3 / 3 flops and a copy of L.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> L = pl.cholesky([[4.0]])
    >>> pl.linalg.cholesky_append(L, [2.0], 5.0).toarray()
    array([[2., 0.],
           [1., 2.]])
    """
    op = as_operator(L)
    b, c = dlpack.as_array(B), dlpack.as_array(C)
    b = b[:, None] if b.ndim == 1 else b
    c = c.reshape(1, 1) if c.ndim == 0 else c
    n = op.shape[-1]
    if b.ndim < 2 or b.shape[-2] != n or c.shape[-2:] != (b.shape[-1],) * 2:
        want = f"({n},) and (), or (..., {n}, k) and (..., k, k)"
        got = f"{np.shape(B)} and {np.shape(C)}"
        raise errors.shape_error(op, "cholesky_append", want, got)
    appended: LinearOperator = _asked(_cholesky.appended, op, b, c)
    return appended


@deferrable
@hinted
def qr(A: _OperatorLike, mode: str = "reduced") -> Any:
    """The QR factors A = Q R, operators.

    Parameters
    ----------
    A : operator or array_like, shape (..., m, n)
    mode : {'reduced', 'complete', 'r', 'raw'}, optional
        As in numpy.linalg.qr: Q is m x k with k = min(m, n), or m x m; R alone; LAPACK's arrays.

    Returns
    -------
    QRResult, LinearOperator or (h, tau)
        Q and R keep structure: those of a Kron are Krons, of a BlockDiag BlockDiags; a unitary or
        upper triangular A has an Identity as its other factor; a band gives Reflections and a
        Banded.

    Raises
    ------
    ValueError
        The mode is unknown.

    Notes
    -----
    A is factored by structure where docs/factorisations.md says so, otherwise by LAPACK on the
    dense form. As in NumPy, the signs of R's diagonal are not fixed.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> Q, R = pl.qr(pl.Kron(pl.Permutation([1, 0]), np.ones((3, 2))))
    >>> Q, R
    (<6x4 Kron with dtype=float64>, <4x4 Kron with dtype=float64>)
    """
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ValueError(f"Unrecognized mode '{mode}'")
    if is_lazy(A) and mode != "raw":
        return _qr_later(A, mode)
    op = as_operator(A)
    if mode == "raw":
        return _qr.raw(op)
    found = _qr.qr(op, mode)
    return found if mode == "r" else _QR(*found)


def _matrices(A: Any, name: str) -> Any:
    if A.ndim < 2:
        raise errors.LinAlgError(f"{name} needs a matrix, got shape {A.shape}" + errors.built(A))
    return A


def _qr_later(A: Any, mode: str) -> Any:
    *batch, m, n = _matrices(A, "qr").shape
    k, dtype = min(m, n), inexact(A.dtype)
    if mode == "r":
        return _deferred.made("r of qr", qr, A, (*batch, k, n), mode="r")
    inner = m if mode == "complete" else k
    parts = (((*batch, m, inner), dtype), ((*batch, inner, n), dtype))
    return _QR(*_deferred.several("qr", qr, A, parts, mode=mode))


def _lu_later(A: Any, permute_l: bool, p_indices: bool) -> Any:
    *batch, m, n = _matrices(A, "lu").shape
    k, dtype = min(m, n), inexact(A.dtype)
    parts: list[Any] = [((*batch, m, k), dtype), ((*batch, k, n), dtype)]
    if p_indices and not permute_l:
        parts.insert(0, ((*batch, m), np.dtype(np.intp)))
    elif not permute_l:
        parts.insert(0, ((*batch, m, m), dtype))
    return tuple(_deferred.several("lu", lu, A, parts, permute_l=permute_l, p_indices=p_indices))


@deferrable
@hinted
def lu(A: _OperatorLike, permute_l: bool = False, *, p_indices: bool = False) -> Any:
    """The LU factors A = P L U with row exchanges, operators.

    Parameters
    ----------
    A : operator or array_like, shape (..., m, n)
    permute_l : bool, optional
        Return (P L, U) instead.
    p_indices : bool, optional
        Return P as indices, an array p with ``A = (L @ U)[p]``.

    Returns
    -------
    (P, L, U)
        As in scipy.linalg.lu: P is a Permutation, L unit lower triangular m x k, U upper triangular
        k x n, k = min(m, n). All are Krons for a Kron, BlockDiags for a BlockDiag. For a band, U is
        a Banded, and L is a Banded or, where rows were exchanged, a SparseTriangular.

    Notes
    -----
    A is factored by structure where docs/factorisations.md says so, otherwise by LAPACK's getrf on
    the dense form, which gives the factor that `solve` and `logdet` keep where they go by LU. A
    singular A has factors too, with zeros on U's diagonal.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> P, L, U = pl.lu(np.array([[1.0, 2.0], [4.0, 4.0]]))
    >>> U.toarray()
    array([[4., 4.],
           [0., 1.]])
    """
    if is_lazy(A):
        return _lu_later(A, permute_l, p_indices)
    p, low, up = _lu.lu(as_operator(A))
    if permute_l:
        return p @ low, up
    if p_indices:
        return np.rint(np.real(p @ np.arange(p.shape[-1], dtype=float))).astype(np.intp), low, up
    return p, low, up


@deferrable
def ldl(A: _OperatorLike, lower: bool = True, hermitian: bool = True) -> Any:
    """The factors A = L D L^H (L^T where ``hermitian`` is False) of an indefinite operator.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
        Assumed to be Hermitian, or symmetric; one triangle of a dense form is read: the upper one
        of a Dense with that assumption, whose factor is the one that `solve` and `logdet` keep.
    lower : bool, optional
        Which triangle; the upper one gives A = U D U^H.
    hermitian : bool, optional
        Whether a complex A is Hermitian (True) or complex symmetric (False).

    Returns
    -------
    (L, D, perm)
        As in scipy.linalg.ldl: ``L[perm]`` is unit triangular; D is a Diag, or a Tridiagonal with
        blocks of 2 x 2; perm is an array of indices. A BlockDiag gives BlockDiags; a definite band
        gives a Banded and a Diag, from its lower triangle.

    Raises
    ------
    LinAlgError
        A is not square; or ``hermitian`` is True and the diagonal is not real.
    ImportError
        A dense form needs SciPy, which is not installed.

    Notes
    -----
    Bunch and Kaufman's pivoting (LAPACK's sytrf, hetrf): n^3 / 3 flops.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> L, D, perm = pl.ldl(pl.Diag([2.0, -3.0]))
    >>> L, D.diagonal(), perm
    (<2x2 Identity with dtype=float64>, array([ 2., -3.]), array([0, 1]))
    """
    if is_lazy(A):
        return _ldl_later(A, lower, hermitian)
    op = as_operator(A)
    square(op)
    return _asked(_lu.ldl, op, bool(lower), bool(hermitian))


def _ldl_later(A: Any, lower: bool, hermitian: bool) -> Any:
    n, whole = _deferred.square(A, "ldl").shape[-1], (tuple(A.shape), inexact(A.dtype))
    parts = (whole, whole, ((*A.shape[:-2], n), np.dtype(np.intp)))
    return tuple(_deferred.several("ldl", ldl, A, parts, lower=lower, hermitian=hermitian))


@deferrable
@hinted
def lstsq(
    A: _OperatorLike,
    b: Any,
    rcond: float | None = None,
    *,
    method: str | None = None,
    rtol: float | None = None,
    maxiter: int | None = None,
    damp: float = 0.0,
    x0: Any = None,
    rng: Any = None,
    block: int | None = None,
    extended: bool | None = None,
    callback: Any = None,
    progress: Any = None,
) -> Any:
    """The x of least norm that makes |b - A x| least.

    Parameters
    ----------
    A : operator or array_like, shape (..., m, n)
    b : array_like, shape (m,) or (..., m, k)
        It is a vector only if it has one dimension. Operators are made dense; with a ``method`` it
        may also be a scipy.sparse matrix.
    rcond : float, optional
        Singular values up to ``rcond`` times the largest count as zero; max(m, n) eps when None.
    method : {None, 'lsmr', 'lsqr', 'block_kaczmarz', 'sgd'}, optional
        None solves by factors. The others iterate without a dense form: by Krylov spaces, by
        projections onto random blocks of rows, by stochastic gradients.
    rtol : float, optional
        Converged when |A^H r| <= rtol |A| |r| or |r| <= rtol |b|, with r recomputed; by default
        1e-6, in single precision 1e-4.
    maxiter : int, optional
        Iterations, by default 4 min(m, n); for the random methods passes over A, by default 100.
    damp, x0 : optional
        |b - A x|^2 + damp^2 |x|^2 is minimised; x0 is where to begin, (n,) or (n, k), also sparse.
    rng, block, extended : optional
        For the random methods: a Generator or seed; the rows in a block; for block_kaczmarz,
        whether to project onto columns too, as a least-squares problem needs (None: only when rows
        alone make no more progress).
    callback, progress : optional
        Called as callback(x) and progress(iteration, error); progress=True shows a bar of tqdm's.

    Returns
    -------
    (x, residuals, rank, s)
        As in numpy.linalg.lstsq: x of shape (n,) or (..., n, k); the squares |b - A x|^2 of the
        columns, empty where the rank is below n or m <= n; the rank; the singular values,
        descending. Batches give arrays of ranks. With a ``method`` rank and s are None, and the
        tuple has attributes: method, problem ("consistent" or "least squares"), error, residual,
        iterations.

    Raises
    ------
    LinAlgError
        b and A have different numbers of rows.
    ConvergenceError
        An iterative method did not reach rtol; the error's attribute ``x`` is the best iterate.

    Notes
    -----
    Kron, BlockDiag, Diag, Circulant, LowRank and unitary kinds are solved by the singular values of
    their parts, whatever their rank; which values count as zero is decided on those of the whole.
    Bands of full rank, and tall or wide parts of them (``A[:, :k]``), are solved by QR within the
    band; their singular values take O(n^2 w). All others are solved by LAPACK's gelsd on the dense
    form. For the iterative methods see docs/preconditioners.md.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> A = pl.Kron(pl.Identity(1000), np.ones((3, 1)))
    >>> x, residuals, rank, s = pl.lstsq(A, np.ones(3000))
    >>> x.shape, int(rank)
    ((1000,), 1000)
    >>> pl.lstsq(A, np.ones(3000), method="lsmr").problem
    'consistent'
    """
    plain = method is None and not damp and x0 is None
    if plain and (is_lazy(A) or is_lazy(b)):
        later = _deferred.lstsq(A, b, rcond)
        if later is not NotImplemented:
            return later
    op = as_operator(A)
    how = {"rtol": rtol, "maxiter": maxiter, "damp": damp, "x0": x0, "rng": rng, "block": block}
    how |= {"extended": extended, "callback": callback, "progress": progress}
    if method is not None:
        if rcond is not None:
            raise TypeError(f"rcond= belongs to method=None, got method={method!r}")
        return _lstsq.solve(op, b, method, **how)
    if asked := [k for k, v in how.items() if v is not None and not (k == "damp" and v == 0)]:
        raise TypeError(f"{asked} belong to an iterative method: give method=")
    right = dense(b) if isinstance(b, _core.Operator) else dlpack.as_array(b)
    rows = right.shape[-1 if right.ndim == 1 else -2] if right.ndim else 0
    if right.ndim == 0 or rows != op.shape[-2]:
        raise np.linalg.LinAlgError(
            f"Incompatible dimensions: an operator of shape {op.shape} takes ({op.shape[-2]},) or "
            f"(..., {op.shape[-2]}, k), got shape {right.shape}"
        )
    dtype = inexact(np.result_type(inexact(op.dtype), right.dtype))
    right = right.astype(dtype, copy=False)
    vector = right.ndim == 1
    x, rest, rank, s = least_squares.lstsq(
        _precise(op, dtype), right[:, None] if vector else right, rcond
    )
    return x[..., 0] if vector else x, rest, number(np.asarray(rank, np.intc)), s


@deferrable
def null_space(A: _OperatorLike, rcond: float | None = None) -> LinearOperator:
    """An orthonormal basis of the x with A x = 0, the columns of an operator.

    Parameters
    ----------
    A : operator or array_like, shape (..., m, n)
    rcond : float, optional
        Singular values up to ``rcond`` times the largest count as zero; max(m, n) eps when None.

    Returns
    -------
    LinearOperator, shape (..., n, k)
        For a Kron these are columns of the Kron of the factors' bases, and so on. Computed now, of
        LazyArrays too: how many columns there are, the values say.

    Raises
    ------
    ValueError
        The elements of a batch have null spaces of different dimensions.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.null_space(pl.Kron(np.ones((2, 2)), pl.Identity(100)))
    <200x100 Product with dtype=float64>
    """
    basis: LinearOperator = least_squares.null_space(as_operator(A), rcond)
    return basis


@deferrable
def orth(A: _OperatorLike, rcond: float | None = None) -> LinearOperator:
    """An orthonormal basis of the range of A, the columns of an operator.

    Parameters
    ----------
    A : operator or array_like, shape (..., m, n)
    rcond : float, optional
        Singular values up to ``rcond`` times the largest count as zero; max(m, n) eps when None.

    Returns
    -------
    LinearOperator, shape (..., m, k)
        Computed now, of LazyArrays too: how many columns there are, the values say.

    Raises
    ------
    ValueError
        The elements of a batch have ranges of different dimensions.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.orth(pl.LowRank(np.ones((1000, 1)))).shape
    (1000, 1)
    """
    basis: LinearOperator = least_squares.orth(as_operator(A), rcond)
    return basis
