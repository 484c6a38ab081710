"""f(A) b without f(A), by Krylov spaces: f(A) b is about |b| V f(H) e_1 with an orthonormal basis V
of the space and H = V^H A V, a small matrix."""

from __future__ import annotations

import math
import operator
import types
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base import dlpack, errors
from .._base.dtypes import inexact
from .._base.errors import LinAlgError
from .._base.memory import room
from .._base.signatures import hinted
from .._base.trampoline import run
from .._operators.convert import as_operator
from .._structured import matrix_functions
from .._structured.scalar_function import Function
from . import eigsh as _eigsh
from .scipy_api import grown, refuse_other

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from .._core import _OperatorLike

__all__ = ["funm_multiply"]

_STEPS = 300  # a basis of more vectors is not made unasked: 2 n k^2 flops to keep it orthogonal
_FIRST, _GROWTH = 8, 1.25  # steps before f is first taken of H, and by how much they grow then
# Functions that have a method of their own for matrices that are not Hermitian.
_KNOWN: dict[Any, tuple[str, float | None]] = {
    np.exp: ("exp", None),
    np.log: ("log", None),
    np.sqrt: ("power", 0.5),
}


def _function(func: Any) -> Any:
    if not callable(func):
        raise TypeError(f"func must be a function of arrays, as np.sqrt, got {func!r}")
    ufunc: Any = func
    known = _KNOWN.get(ufunc) if isinstance(func, np.ufunc) else None
    if known is None:
        return Function("any", call=func)
    return Function(*known)


def _is_hermitian(H: Any, scale: float) -> bool:
    """Is H its own adjoint, but for the rounding of its making?"""
    size = 16 * H.shape[0] * np.finfo(H.dtype).eps * scale
    return bool(np.abs(H - H.conj().T).max() <= size)


def _first_column(H: Any, f: Any, hermitian: bool) -> Any:
    """f(H) e_1."""
    if hermitian:
        w, q = np.linalg.eigh((H + H.conj().T) / 2)
        return q @ (f.of_spectrum(w) * q[0].conj())
    found = matrix_functions.applied(matrix_functions.named(f), _core.Dense(H), f)
    return np.asarray(found.toarray())[:, 0]


def _of_column(op: Any, f: Any, x: Any, how: tuple[bool, float, int]) -> tuple[Any, float, int]:
    """(f(op) x, the estimated relative error, steps); x is not zero."""
    hermitian, rtol, most = how
    size = np.linalg.norm(x)
    before: Any = None
    y: Any = None
    at, error, j = _FIRST, math.inf, 0
    for basis, H, last, scale in grown(op, x / size, most):
        j = H.shape[0]
        if not (last == 0 or j >= at or j == most):
            continue
        if hermitian:
            refuse_other(op, H, scale)
        c = _first_column(H, f, hermitian or _is_hermitian(H, scale))
        if not np.isfinite(c).all():
            raise LinAlgError(f"the function is not finite at step {j}: it has values of {H.dtype}")
        y = c @ basis
        if before is not None:
            more = c.copy()
            more[: before.size] -= before
            whole = float(np.linalg.norm(c))  # of zeros nothing is known: f may not be met yet
            error = float(np.linalg.norm(more)) / whole if whole else math.inf
        if last == 0 or j == op.shape[0]:
            error = 0.0  # the space is invariant: there is nothing beyond
        if error <= rtol:
            break
        at, before = math.ceil(_GROWTH * j) + 2, c
    return size * y, error, j


def _checked(A: Any, b: Any, maxiter: Any) -> tuple[Any, Any, int]:
    op = as_operator(A)
    if op.ndim != 2 or op.shape[0] != op.shape[1]:
        raise LinAlgError(f"funm_multiply takes one square matrix, not shape {op.shape}")
    x = dlpack.as_array(b)
    if x.dtype.kind not in "biufc":
        raise TypeError(f"b must be numbers, got an array of dtype {x.dtype}")
    n = op.shape[0]
    if x.ndim not in (1, 2) or x.shape[0] != n:
        raise ValueError(f"b must be ({n},) or ({n}, k), got {x.shape}")
    most = min(n, _STEPS if maxiter is None else operator.index(maxiter))
    if most < 1 and n:
        raise ValueError(f"maxiter must be positive, got {maxiter}")
    return op, x, most


@hinted
def funm_multiply(
    A: _OperatorLike,
    func: Callable[[Any], Any],
    b: ArrayLike,
    *,
    hermitian: bool | None = None,
    rtol: float | None = None,
    maxiter: int | None = None,
) -> NDArray[Any]:
    """f(A) b from products with A alone: roots, logarithms, cosines of large operators.

    Parameters
    ----------
    A : operator or array_like, shape (n, n)
    func : callable
        The scalar function, of arrays, as `funm` takes it: ``np.sqrt``, ``np.cos``,
        ``lambda w: 1 / np.sqrt(w)``.
    b : array_like, shape (n,) or (n, k)
    hermitian : bool, optional
        Whether A is Hermitian; when None, whether that is known from how it is written, or H is to
        rounding. True for a matrix that is not raises where its basis shows it.
    rtol : float, optional
        The error, relative to the result and by the estimate below, at which a column is done;
        1e-10, and in single precision 1e-6, when None.
    maxiter : int, optional
        Products at most for each column; n or 300, the lesser, when None.

    Returns
    -------
    ndarray, shape of b
        Complex where A, b or the values of the function are.

    Raises
    ------
    ConvergenceError
        A column did not reach ``rtol`` in ``maxiter`` products: ``best`` is the result as far as it
        is, ``residual`` the estimated error.
    LinAlgError
        A is not one square matrix; the function is not finite where it is taken; ``hermitian=True``
        is wrong; a matrix that is not Hermitian has eigenvalues too near to each other for a
        function without a method of its own (np.exp, np.log, np.sqrt have one).
    TypeError
        ``func`` is no function, or ``b`` no array of numbers.
    ValueError
        ``b``, ``rtol`` or ``maxiter`` does not fit.

    Notes
    -----
    Where f(A) is at hand by structure (Diag, Circulant, Laplacian, Kron sums of small operands,
    thin matrices and c I beside them) that is applied, at the cost of `funm`. Else Lanczos's method
    for Hermitian A, Arnoldi's for others, with all vectors kept orthogonal: k products, 2 n k^2
    flops and memory for k vectors in k steps. The error is estimated by the change since a basis of
    a fifth fewer steps: it is no bound, and is too small for functions with a singularity at the
    edge of the spectrum, where the method is slow, and for those that are nearly zero on most of
    it. ``pl.expm_multiply`` is for exp(t A) of many times.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> A = pl.Tridiagonal(np.ones(999), np.full(1000, 4.0), np.ones(999))
    >>> b = np.ones(1000)
    >>> x = pl.funm_multiply(A, np.sqrt, pl.funm_multiply(A, np.sqrt, b))
    >>> np.allclose(x, A @ b)
    True
    """
    op, x, most = _checked(A, b, maxiter)
    f = _function(func)
    dtype = np.result_type(inexact(op.dtype), inexact(x.dtype))
    if rtol is None:
        rtol = 1e-6 if dtype.char in "fF" else 1e-10
    if not 0 < rtol < 1:
        raise ValueError(f"rtol must be between 0 and 1, got {rtol}")
    if 0 in x.shape:
        return np.zeros(x.shape, dtype)
    if run(_eigsh._small_parts, op):
        whole = matrix_functions.applied(matrix_functions.named(f), op, f)
        y: NDArray[Any] = whole @ x.astype(dtype)
        if not np.isfinite(y).all() and np.isfinite(x).all():
            raise LinAlgError(
                f"the function is not finite on the spectrum of {errors.describe(op)}"
            )
        return y
    known = op._known("hermitian") if hermitian is None else hermitian
    room(op, (most + 6) * op.shape[0] * dtype.itemsize, f"a basis of {most} vectors,")
    columns = x.reshape(x.shape[0], -1).astype(dtype)
    found, worst, steps = [], 0.0, 0
    for column in columns.T:
        if not column.any():
            found.append(np.zeros_like(column))
            continue
        one, error, j = _of_column(op, f, column, (bool(known), float(rtol), most))
        found.append(one)
        worst, steps = max(worst, error), max(steps, j)
    result = np.stack(found, axis=-1).reshape(x.shape)
    if dtype.kind == "f" and result.dtype.kind == "f" and result.dtype != dtype:
        result = result.astype(dtype)
    if worst > rtol:
        _did_not_converge(op, result, worst, rtol, steps)
    return result


def _did_not_converge(op: Any, result: Any, worst: float, rtol: float, steps: int) -> None:
    words = (
        f"funm_multiply of {type(op).__name__} {op.shape}: the estimated error is {worst:.2g} "
        f"after {steps} products, rtol is {rtol:.2g}; give a larger maxiter= or rtol=, or take "
        "pl.funm(A, f), by the dense form"
    )
    record = types.SimpleNamespace(residual=worst, iterations=steps)
    raise errors.ConvergenceError(words, result, record)
