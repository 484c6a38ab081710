"""Norms, condition numbers, ranks, singular and Hermitian eigenvalues, pseudo-inverses.

Each is a question with a table (_structured/questions.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from .. import _core
from .._base import config
from .._base.checks import is_lazy, number, square, triangle
from .._base.dtypes import real_of
from .._base.errors import deferrable
from .._base.lazy_import import Later
from .._base.signatures import hinted, listed
from .._lazy import decompositions
from .._lazy import matrix_functions as _deferred
from .._operators.convert import as_operator
from .._structured import norms, operands, questions
from .._structured import pinv as _pinv
from .._structured.pinv import BOTH_TOLERANCES, Rtol, pinv_words

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["cond", "eigvalsh", "matrix_norm", "matrix_rank", "norm", "pinv", "svdvals"]
_eigenpairs = Later("_eigen.choose_method")

_ROWS = (norms, _pinv)  # imported for the rows they add to the questions


@deferrable
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
    if is_lazy(A) and (later := decompositions.later("svdvals", A)) is not None:
        return later
    op = as_operator(A)
    if (a := operands.small_dense(op)) is not None:
        return np.asarray(questions.svdvals.dense(a))
    return np.asarray(questions.svdvals(op)).astype(real_of(op.dtype), copy=False)


def _order(ord: Any) -> Any:
    if ord is None or ord == "f":
        return "fro"
    if isinstance(ord, np.ndarray) or ord not in questions.ORDERS:
        raise ValueError(f"Invalid norm order for matrices: {ord!r}; there are {questions.ORDERS}")
    return ord


@deferrable
@hinted
def matrix_norm(A: Any, /, ord: Any = "fro", *, keepdims: bool = False) -> Any:
    """A norm of the matrix, with NumPy's orders.

    Parameters
    ----------
    A : operator or array_like, shape (..., m, n)
    ord : {'fro', 'nuc', 1, -1, 2, -2, inf, -inf}, optional
        The Frobenius norm, the sum of singular values, the largest (least) column sum, singular
        value or row sum.
    keepdims : bool, optional
        Keep the last two dimensions, as ones.

    Returns
    -------
    number or ndarray, shape (...) or (..., 1, 1)

    Notes
    -----
    The norm comes from the parameters or from `svdvals` where a kind has an immediate answer
    (docs/linalg.md has the table), otherwise from NumPy on the dense form.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> float(pl.matrix_norm(pl.Kron(np.ones((2, 2)), pl.Diag([3.0, -4.0])), 2))
    8.0
    """
    if is_lazy(A):
        later: Any = decompositions.matrix_norm(A, keepdims=keepdims, ord=_order(ord))
        if later is not NotImplemented:
            return later
    op = as_operator(A)
    value = np.asarray(questions.norm(op, _order(ord))).astype(real_of(op.dtype), copy=False)
    return value[..., None, None] if keepdims else number(value)


@deferrable
def norm(A: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of a matrix, as `matrix_norm`; numpy.linalg.norm for plain arrays.

    Parameters
    ----------
    A : operator or array_like
    ord : optional
        The Frobenius norm when None.
    axis : tuple, optional
        For operators the last two axes, in either order.
    keepdims : bool, optional

    Examples
    --------
    >>> import pylinop as pl
    >>> float(pl.linalg.norm(pl.Diag([3.0, 4.0])))
    5.0
    """
    if not isinstance(A, _core.Operator):
        if isinstance(A, np.ma.MaskedArray):  # whose mask NumPy does not look at here
            raise TypeError("masked arrays are not taken: fill them first")
        return np.linalg.norm(A, ord, axis, keepdims)
    if axis is None and A.ndim > 2:
        if ord is not None:
            raise ValueError("Improper number of dimensions to norm.")
        all = np.linalg.norm(matrix_norm(A))
        return np.full((1,) * A.ndim, all) if keepdims else all
    if axis is not None:
        try:
            axis = tuple(int(i) % A.ndim for i in axis)
        except TypeError:
            axis = (int(axis),)
        if sorted(axis) != [A.ndim - 2, A.ndim - 1]:
            raise NotImplementedError(
                "operators have norms as matrices, over the last two axes; "
                "for others take the dense form, A.toarray()"
            )
        if axis[0] > axis[1]:
            A = A.T
    return matrix_norm(A, ord, keepdims=keepdims)


@deferrable
@hinted
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
    if (
        is_lazy(A)
        and (later := decompositions.cond(A, 2 if p is None else _order(p))) is not NotImplemented
    ):
        return later
    op = as_operator(A)
    p = 2 if p is None else _order(p)
    if 0 in op.shape[-2:]:
        raise np.linalg.LinAlgError("cond is not defined on empty arrays")
    if p not in (2, -2):
        square(op)
    return number(np.asarray(questions.cond(op, p)).astype(real_of(op.dtype), copy=False))


@deferrable
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """The number of singular values above a tolerance.

    Parameters
    ----------
    A : operator or array_like, shape (..., m, n)
    tol : array_like, optional
        The absolute tolerance; when None, ``rtol`` times the largest singular value.
    hermitian : bool, optional
        Assume that A is Hermitian: eigenvalues are used.
    rtol : array_like, optional
        The relative tolerance; max(m, n) eps when None.

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
    if is_lazy(A):
        later = decompositions.later("matrix_rank", A, tol, hermitian, rtol=rtol)
        if later is not None:
            return later
    op = as_operator(A)
    s = np.abs(eigvalsh(op)) if hermitian and np.ndim(A) > 1 else svdvals(op)  # vectors: a row
    if tol is None:
        rtol = max(op.shape[-2:]) * np.finfo(s.dtype).eps if rtol is None else rtol
        rtol = operands.tolerance_of("rtol", rtol)[..., None]
        tol = s.max(axis=-1, keepdims=True, initial=0) * rtol
    else:
        tol = operands.tolerance_of("tol", tol)[..., None]
    return np.count_nonzero(s > tol, axis=-1)


class Pairs(TypedDict, total=False):
    """The options of `eigsh` that `eigh` and `eigvalsh` take with ``k=``."""

    which: str
    sigma: float | None
    v0: Any
    ncv: int | None
    maxiter: int | None
    tol: float
    M: Any
    Minv: Any
    OPinv: Any
    mode: str
    rng: Any
    callback: Callable[[Any], Any] | None
    progress: bool | Callable[[int, float], Any] | None


@deferrable
def eigvalsh(
    A: Any, UPLO: str = "L", *, method: str = "auto", k: int | None = None, **how: Unpack[Pairs]
) -> Any:
    """The eigenvalues of a Hermitian operator, ascending.

    Parameters
    ----------
    A : operator or array_like, shape (..., n, n)
        Assumed to be Hermitian; one triangle of a dense form is read.
    UPLO : {'L', 'U'}, optional
        Which one.
    method, k, **how
        As in `eigh`: all eigenvalues, or ``k`` of them, by a direct or an iterative method.

    Returns
    -------
    ndarray, shape (..., n) or (k,)

    Raises
    ------
    LinAlgError
        When A is not square, or LAPACK does not converge.
    ValueError
        For unknown names, and a k that is not from 1 to n.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.eigvalsh(-2 * pl.Kron(pl.Diag([1.0, 3.0]), pl.Identity(2)))
    array([-6., -6., -2., -2.])
    """
    if is_lazy(A) and method == "auto" and k is None and not how:
        later = decompositions.later("eigvalsh", A, triangle(UPLO))
        if later is not None:
            return later
    op = as_operator(A)
    uplo = triangle(UPLO)
    square(op)
    if method != "auto" or k is not None or how or config.recording():
        values = _eigenpairs.pairs(op, uplo, method, k, False, {**how})[0]
        return np.asarray(values).astype(real_of(op.dtype), copy=False)
    if (a := operands.small_dense(op)) is not None:
        return np.asarray(questions.eigvalsh.dense(a, uplo))
    return np.asarray(questions.eigvalsh(op, uplo)).astype(real_of(op.dtype), copy=False)


listed(eigvalsh, Pairs, which="LA", tol=0, mode="normal")


@deferrable
def pinv(A: Any, rcond: Any = None, hermitian: bool = False, **rtol: Unpack[Rtol]) -> Any:
    """The pseudo-inverse (Moore and Penrose), an operator.

    Parameters
    ----------
    A : operator or array_like, shape (..., m, n)
    rcond : array_like, optional
        Singular values up to ``rcond`` times the largest count as zero; 1e-15 when None.
    hermitian : bool, optional
        Assume that A is Hermitian (a dense form goes by eigenvalues).
    rtol : array_like, optional
        Same as ``rcond``, with max(m, n) eps when None is given.

    Returns
    -------
    LinearOperator
        A Diag, Kron, Circulant, BlockDiag, LowRank, ... where A is one, or a multiple or transpose
        of one (a Kron goes factor by factor, and each factor decides which of its values count as
        zero); otherwise a Dense, computed now.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.pinv(pl.Diag([2.0, 0.0])).diagonal()
    array([0.5, 0. ])
    """
    if is_lazy(A):
        if rtol and rcond is not None:
            raise ValueError(BOTH_TOLERANCES)
        shape = (*A.shape[:-2], A.shape[-1], A.shape[-2])
        return _deferred.made("pinv", pinv, A, shape, rcond=rcond, hermitian=hermitian, **rtol)
    return questions.pinv(as_operator(A), pinv_words(rcond, hermitian, rtol))


listed(pinv, Rtol)
