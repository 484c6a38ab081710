"""``solve``: by factors, by closed forms, by iteration."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from .. import _core
from .._base import config, errors, scipy_bridge, sparse_arrays
from .._base.checks import is_lazy, square
from .._base.dlpack import as_array
from .._base.lazy_import import Later
from .._base.signatures import listed
from .._lazy import build
from .._lazy import matrix_functions as _deferred
from .._lazy.leaves import lazy
from .._operators.convert import as_operator, inverse
from .._structured import dispatch
from .._structured.found_band import as_band

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["direct", "solve"]
_problem = Later("_iterative.problem")
_krylov = Later("_iterative.scipy_api")
_iterative = Later("_iterative.solve")


class _How(TypedDict, total=False):
    method: str
    rtol: float | None
    atol: float | None
    maxiter: int | None
    M: Any
    x0: Any
    callback: Callable[[NDArray[Any]], Any] | None
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
        What to assume of an array ``A``, in scipy.linalg.solve's words, as in `Dense`. How wide a
        'banded' one is its numbers say, by one pass at each call. With an iterative method it may
        be said of an operator too: 'pos' and 'her' decide what 'iterative' runs.
    method : str, optional
        'direct' factors, or uses a closed form; 'auto' does the same, but where that makes a dense
        form it first tries an iterative method, if the planner's prices say that this is cheaper,
        within a third of the factor's price and to working accuracy, and also where the dense form
        would pass the memory limit, then without that bound ('direct' of a LazyArray, or of an
        operator b, is 'auto': there ``pl.config(iterate=False)`` goes by the factor); 'iterative',
        'cg', 'block_cg', 'minres', 'gmres', 'fgmres', 'bicgstab', 'lsqr', 'lsmr' iterate, with
        products alone, for several columns together (docs/iterative.md says when to use which).
    rtol, atol : float, optional
        For iterative methods: converged when |b - A x| <= max(rtol |b|, atol), recomputed at the
        end, or when the backward error |b - A x| / (|A| |x| + |b|) is at working accuracy, 5
        sqrt(n) eps. rtol is 1e-10 by default, 1e-5 in float32; atol is 0.
    maxiter : int, optional
        The most iterations of a method; max(10 n, 50) by default.
    M : operator, array_like, str or callable, optional
        A preconditioner, which approximates the inverse of A; Hermitian positive definite for cg
        and minres. A callable v -> M v may change from call to call with fgmres.
    x0 : array_like or 'Mb', optional
        Where to begin; zeros by default.
    callback : callable, optional
        Called with a copy of x after each iteration (gmres: after each cycle).
    progress : bool or callable, optional
        True shows a bar (tqdm's where it is installed), False none; a callable gets (iteration,
        residual). By default a notebook shows one after two seconds.
    precision : {'working', 'mixed'}, optional
        As ``pl.config(precision=...)``, for this solve only; not with ``method``.

    Returns
    -------
    ndarray or LinearOperator

    Raises
    ------
    LinAlgError
        When A is not square, or exactly singular.
    ConvergenceError
        When an iterative method does not converge; the error carries the best iterate as ``best``,
        its ``residual``, ``iterations`` and the ``record`` of the run.
    MaterializationError
        When a dense form, or the vectors of an iterative method, would pass the memory limit.

    Notes
    -----
    Diag, Identity and Kron of square factors are solved in closed form, products and multiples
    factor by factor, matrices assumed triangular by substitution, matrices assumed positive
    definite by Cholesky (by LU, with a FallbackWarning, where that fails), large sparse ones by
    CHOLMOD (definite, with scikit-sparse) or SciPy's SuperLU (checked), all others by LU of the
    dense form. Factors are cached.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.solve(pl.Diag([2.0, 4.0]), [1.0, 1.0])
    array([0.5 , 0.25])
    >>> pl.solve(pl.Toeplitz([4.0, 1.0, 0.0]), [5.0, 6.0, 5.0], method="cg").round(8)
    array([1., 1., 1.])
    """
    __tracebackhide__ = True
    if how:
        try:
            if how.get("precision") is not None:
                return _in_precision(A, b, assume_a, {**how})
            how.pop("precision", None)
            if how:
                return _with_keywords(A, b, assume_a, **how)
        except errors.NoValue as placeholder:
            return placeholder.deferred(solve, A, b, assume_a, **how)
    try:
        if assume_a is None and type(b) is np.ndarray and b.ndim and isinstance(A, _core.Operator):
            *_, m, n = A.shape
            if m == n == b.shape[-1 if b.ndim == 1 else -2]:  # the short way for most calls
                return _core._build("solver", A) @ _inexact(A, b)
        return direct(A, b, assume_a)
    except errors.NoValue as placeholder:
        return placeholder.deferred(solve, A, b, assume_a)
    except errors.MaterializationError as error:
        if is_lazy(A) or is_lazy(b) or scipy_bridge.issparse(b):
            raise
        return _iterative.instead(A, b, error, assume_a)


listed(solve, _How, method="auto")


def _in_precision(A: Any, b: Any, assume_a: str | None, how: _How) -> Any:
    """``solve`` with a given precision of the factor."""
    __tracebackhide__ = True
    precision: Any = how.pop("precision")
    if how:
        raise TypeError(f"precision= goes with factors, not with {', '.join(sorted(how))}=")
    if is_lazy(A) or is_lazy(b) or isinstance(b, _core.Operator):
        raise TypeError(
            "precision= is for solves that are computed now; for what is computed later use "
            "pl.config(precision=...)"
        )
    with config.config(precision=precision):
        return solve(A, b, assume_a)


def assuming(A: Any, op: Any, assume_a: str | None) -> Any:
    """An array with the assumption about it, as an operator."""
    if isinstance(A, _core.Operator) and not (op._head == "dense" and op._init is not None):
        raise ValueError(
            "assume_a says something of an array; an operator knows its own structure, "
            f"and this is {type(op).__name__} {op.shape} (there is Dense(a, assume_a=...))"
        )
    return _core.Dense(dispatch.dense(op), assume_a)


def direct(A: Any, b: Any, assume_a: str | None = None) -> Any:
    """``solve`` by factors or a closed form."""
    __tracebackhide__ = True
    if is_lazy(A) or is_lazy(b):
        return build.solve(A if assume_a is None else lazy(A, assume_a), b)
    op = as_operator(A)
    if assume_a is not None:
        op = assuming(A, op, assume_a)
    if isinstance(b, _core.Operator):
        return inverse(op) @ b
    square(op)
    if assume_a == "banded":
        op = as_band(op)
    if scipy_bridge.issparse(b):
        return inverse(op) @ b
    x = as_array(b)
    if x.ndim == 0 or x.shape[-1 if x.ndim == 1 else -2] != op.shape[-1]:
        n = op.shape[-1]
        raise errors.shape_error(op, "solve", f"({n},) or (..., {n}, k)", x.shape)
    return _core._build("solver", op) @ _inexact(op, x)


def _inexact(op: Any, x: Any) -> Any:
    """Integers as float64, but where op is in single precision: it may have no numbers of its own,
    or be the inverse of integers, and applied to integers it would give such."""
    if x.dtype.kind not in "iub" or op.dtype is None:
        return x
    return x.astype(np.float64) if op._weak or op.dtype.char in "?bBhHiIlLqQdD" else x


def _with_keywords(A: Any, b: Any, assume_a: str | None, method: Any = "auto", **how: Any) -> Any:
    """``solve`` with more arguments than ``assume_a``."""
    __tracebackhide__ = True
    options = _problem.options_of(how)
    if not isinstance(method, str) or method not in _problem.METHODS:
        close = config.near(str(method), _problem.METHODS)
        raise ValueError(f"no method {method!r}; there are {', '.join(_problem.METHODS)}{close}")
    if method in ("auto", "direct"):
        _problem.refuse(method, options)
        if method == "auto":
            return solve(A, b, assume_a)
        with config.config(iterate=False):
            return direct(A, b, assume_a)
    if is_lazy(A) or is_lazy(b):
        right = build.node(b)
        if right is not None and right.ndim and right._head != "operator":
            more = {k: v for k, v in how.items() if v is not None}
            more |= {} if assume_a is None else {"assume_a": assume_a}
            A = lazy(A)
            return _deferred.solved("solve", solve, A, right, A.shape[-1], method=method, **more)
    deferred = is_lazy(A) or is_lazy(b)
    op = _krylov.operator_of(A)
    if assume_a is not None:
        _core.Dense(np.empty((0, 0)), assume_a)  # is it one of the words?
        if not isinstance(A, _core.Operator):
            op = assuming(A, op, assume_a)
        options["assume_a"] = assume_a
    if isinstance(b, _core.Operator):
        raise TypeError(f"method={method!r} takes an array b, got {type(b).__name__} {b.shape}")
    x, _ = _iterative.iterate(
        op, sparse_arrays.as_dense(b) if scipy_bridge.issparse(b) else b, method, options
    )
    return lazy(x) if deferred else x
