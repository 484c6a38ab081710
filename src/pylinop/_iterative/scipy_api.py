"""The iterative solvers under SciPy's names: its signatures, defaults, tuples and numbers of info.

The loops are in C (solvers/krylov.h); this module handles arguments as SciPy does."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base import dlpack, sparse_arrays
from .._base.lazy_import import Later
from .._base.progress import in_notebook
from .._base.signatures import hinted
from .._operators.convert import as_operator
from .._operators.linear_operator import LinearOperator, MatVec
from .krylov_run import CALL_NORM, CALL_X, Run, run

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["IterativeResult", "bicgstab", "cg", "gmres", "minres"]
_BRIEF = 256  # rows that need no bar
_preconditioners = Later("_precondition.api")

_CHARS = "fdFD"


class IterativeResult(tuple[Any, ...]):
    """The result of an iterative solver: SciPy's tuple, and the record of the run.

    Attributes
    ----------
    iterations : int
    residuals : ndarray
        The recursive residual norms, before the first iteration and after each; the largest of the
        columns. For gmres and minres these are preconditioned norms, for lsqr and lsmr those of the
        damped problem.
    converged : bool
        Whether the method's own stopping rule was met, which looks at the recursive residual.
        ``pl.solve`` looks at the true one.
    matvecs : int
        Products with A and its adjoint, blocks counted once.
    time : float
        Seconds.
    reason : str or None
        What broke down, with the number that shows it.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> x, info = found = pl.cg(pl.Diag([1.0, 2.0, 4.0]), np.ones(3))
    >>> info, found.converged, found.iterations
    (0, True, 3)
    """

    iterations: int
    residuals: NDArray[Any]
    converged: bool
    matvecs: int
    time: float
    reason: str | None


def made(answer: Any, converged: bool, *items: Any) -> IterativeResult:
    """The result tuple of items, with the record of a run."""
    _, iterations, matvecs, seconds, residuals, why, at, _ = answer
    found = IterativeResult(items)
    found.__dict__ = {
        "iterations": iterations,
        "matvecs": matvecs,
        "time": seconds,
        "residuals": residuals,
        "converged": converged,
        "reason": None if why is None else f"{why} ({at:.3g})",
    }
    return found


def _nothing(*items: Any) -> IterativeResult:
    """The result where there was nothing to do."""
    return made((0, 0, 0, 0.0, np.zeros(1), None, 0.0, ()), True, *items)


# -- arguments --


def operator_of(A: Any) -> LinearOperator:
    """``A`` as an operator; of a LazyArray its form, where it has one."""
    if hasattr(A, "_computed") and not isinstance(A, _core.Operator):
        form = _core._lazy_operator(A)
        _core._lazy_run([], None)  # what it holds of arrays as they are now is for this call
        return as_operator(A) if form is None else form
    return as_operator(A)


def _char(dtype: Any) -> str:
    return dtype.char if dtype is not None and dtype.char in _CHARS else "d"


def work_dtype(op: Any, *others: Any) -> np.dtype[Any]:
    """float32, float64 or their complex kin, for operators and arrays; others count as float64."""
    chars = [_char(x.dtype) for x in (op, *others) if x is not None]
    return np.result_type(*(np.dtype(c) for c in chars))


def columns(b: Any, dtype: Any) -> NDArray[Any]:
    """A right side in C order, of one dtype; (n, 1) becomes (n,)."""
    a = np.ascontiguousarray(b, dtype=dtype) if np.ndim(b) else np.asarray(b, dtype=dtype)
    return a.ravel() if a.ndim == 2 and a.shape[1] == 1 else a


def first(x0: Any, shape: Any, dtype: Any, M: Any = None, b: Any = None) -> NDArray[Any]:
    """The first iterate, in an array of its own."""
    if x0 is None:
        return np.zeros(shape, dtype)
    if isinstance(x0, str):
        if x0 != "Mb":
            raise ValueError(f"x0 is an array, None or 'Mb', got {x0!r}")
        return np.array(b if M is None else M @ b, dtype=dtype, order="C")
    x = np.array(x0, dtype=dtype, order="C")
    if x.ndim == 2 and x.shape[1] == 1 and len(shape) == 1:
        x = x.ravel()
    if x.shape != tuple(shape):
        raise ValueError(f"x0 has shape {x.shape}, the solution {tuple(shape)}")
    return x


def operator_or_name(M: Any, A: Any) -> Any:
    """M as an operator, which a function v -> M v becomes; a name or None as it is."""
    if M is None or isinstance(M, str):
        return M
    if callable(M) and not hasattr(M, "shape") and not hasattr(M, "__array__"):
        return MatVec(A.shape[-2:], M, dtype=A.dtype)
    return as_operator(M)


def preconditioner(M: Any, A: Any) -> LinearOperator | None:
    """M as an operator of A's shape; a name makes the preconditioner of that name."""
    op = operator_or_name(M, A)
    if op is None:
        return None
    if isinstance(op, str):
        op = _preconditioners.make(A, op)
    if op.shape[-2:] != A.shape[-2:]:
        raise ValueError(f"matrix and preconditioner have different shapes: {A.shape}, {op.shape}")
    found: LinearOperator = op
    return found


def numbers(b: Any) -> NDArray[Any]:
    """A right side as an array of numbers; a sparse column too."""
    a = np.asarray(sparse_arrays.as_dense(b))
    if a.dtype.kind not in "biufc":
        raise TypeError(f"b of dtype {a.dtype}: numbers are wanted")
    return a


def _system(A: Any, M: Any, x0: Any, b: Any) -> Any:
    """(A, M, x, b, is there an x0?) as SciPy's make_system returns them."""
    if x0 is None and M is None and type(b) is np.ndarray and b.ndim == 1:  # most calls, at once
        if isinstance(A, _core.Operator) and A.dtype is b.dtype and A.shape == b.shape * 2:
            x = np.empty_like(b)
            if b.dtype.char in _CHARS and b.flags.carray:
                return A, None, x, b, False
    op = operator_of(A)
    if len(op.shape) != 2 or op.shape[0] != op.shape[1]:
        raise ValueError(f"expected square matrix, but got shape={op.shape}")
    n = op.shape[0]
    b = numbers(b)
    if b.ndim not in (1, 2) or len(b) != n:
        raise ValueError(f"shapes of A {op.shape} and b {b.shape} are incompatible")
    M = preconditioner(M, op)
    start = None if x0 is None or isinstance(x0, str) else dlpack.as_array(x0)
    if start is not None and start.dtype.kind != "c":
        start = None  # its precision does not count
    dtype = work_dtype(op, b, M, start)
    b = columns(b, dtype)
    x = first(x0, b.shape, dtype, M, b)
    return op, M, x, b, x0 is not None and bool(x.any())


def _tolerance(name: str, atol: Any, rtol: Any) -> tuple[float, float]:
    if atol is None or isinstance(atol, str) or atol < 0:
        raise ValueError(
            f"'{name}' called with invalid `atol`={atol}; "
            "if set, `atol` must be a real, non-negative number."
        )
    return float(rtol), float(atol)


def _info(answer: Any) -> int:
    """0 if converged, else the number of iterations, which were not enough."""
    return max(1, int(answer[1])) if answer[0] == 1 else int(answer[0])


# -- linear systems --


def _linear(
    name: str, A: Any, b: Any, x0: Any, rtol: Any, atol: Any, maxiter: Any, M: Any, callback: Any,
    progress: Any,
) -> IterativeResult:  # fmt: skip
    """Runs cg or bicgstab."""
    size = getattr(b, "size", 0)  # of a tensor a method
    plain = x0 is None and M is None and callback is None and progress is None
    plain = plain and not callable(size)
    if plain and not (size > _BRIEF and in_notebook()):  # most calls, at once
        found = _core._krylov_plain(name, A, b, rtol, atol, maxiter)
        if found is not None:
            x, answer = found
            info = _info(answer)
            return made(answer, info == 0, x, info)
    rtol, atol = _tolerance(name, atol, rtol)
    op, M, x, side, begun = _system(A, M, x0, b)
    if begun and not side.any():
        return _nothing(side, 0)
    limit = 10 * len(side) if maxiter is None else int(maxiter)
    answer = run(
        Run(
            name=name, op=op, M=M, b=side, x=x, has_x0=begun, maxiter=limit, rtol=rtol, atol=atol,
            callback=callback, progress=progress,
        )
    )  # fmt: skip
    info = _info(answer)
    return made(answer, info == 0, x, info)


@hinted
def cg(
    A: Any,
    b: ArrayLike,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[..., Any] | None = None,
    progress: Any = None,
) -> IterativeResult:
    """Conjugate gradients for A x = b with a Hermitian positive definite A, as SciPy's ``cg``.

    Parameters
    ----------
    A : operator, array_like or sparse, shape (n, n)
    b : array_like, shape (n,), (n, 1) or (n, k)
        With k columns, one product with A serves all of them; each column converges by itself.
    x0 : array_like or 'Mb', optional
        Where to begin; zeros by default.
    rtol, atol : float
        Converged when ``|b - A x| < max(rtol |b|, atol)``, by the recursive residual.
    maxiter : int, optional
        10 n by default.
    M : operator, array_like or str, optional
        An approximate inverse of A, Hermitian positive definite, or the name of a preconditioner.
    callback : callable, optional
        Called with a copy of x after each iteration.
    progress : bool or callable, optional
        True shows a bar (tqdm where it is there); a callable gets (iteration, residual).

    Returns
    -------
    IterativeResult
        ``(x, info)`` as SciPy's, with the record of the run. info is 0, or the number of
        iterations that were not enough; nothing is raised then.

    Raises
    ------
    ValueError
        For shapes that do not fit, and a negative atol.
    MaterializationError
        When the vectors would pass the memory limit.

    Notes
    -----
    Hestenes and Stiefel 1952. Each iteration has a product with A, one with M, and 10 n flops;
    memory: 4 vectors. ``pl.solve(A, b, method="cg")`` tests the true residual, and raises.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> x, info = pl.cg(pl.Toeplitz([2.0, -1.0, 0.0, 0.0]), np.ones(4))
    >>> x.round(6), info
    (array([2., 3., 3., 2.]), 0)
    """
    return _linear("cg", A, b, x0, rtol, atol, maxiter, M, callback, progress)


@hinted
def bicgstab(
    A: Any,
    b: ArrayLike,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[..., Any] | None = None,
    progress: Any = None,
) -> IterativeResult:
    """BiCGStab for A x = b with any square A, as SciPy's ``bicgstab``.

    Parameters
    ----------
    A, b, x0, rtol, atol, maxiter, M, callback, progress
        As in `cg`, with any M.

    Returns
    -------
    IterativeResult
        ``(x, info)``; info is 0, the number of iterations that were not enough, or -10 or -11
        where the method broke down.

    Raises
    ------
    ValueError
        For shapes that do not fit, and a negative atol.

    Notes
    -----
    van der Vorst 1992. Each iteration has two products with A and two with M; memory: 6 vectors.
    Its residual jumps; where it stalls, `gmres` does not.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> x, info = pl.bicgstab(pl.Tridiagonal([1.0, 1.0], [4.0, 4.0, 4.0], [2.0, 2.0]), np.ones(3))
    >>> x.round(6), info
    (array([0.208333, 0.083333, 0.229167]), 0)
    """
    return _linear("bicgstab", A, b, x0, rtol, atol, maxiter, M, callback, progress)


_MINRES = {
    -1: "beta2 = 0: b and x are eigenvectors",
    1: "a solution was found, given rtol",
    2: "a least-squares solution was found, given rtol",
    3: "reasonable accuracy achieved, given eps",
    4: "x has converged to an eigenvector",
    6: "the iteration limit was reached",
}


@hinted
def minres(
    A: Any,
    b: ArrayLike,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    shift: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[..., Any] | None = None,
    show: bool = False,
    check: bool = False,
    progress: Any = None,
) -> IterativeResult:
    """MINRES for (A - shift I) x = b with a Hermitian A, definite or not, as SciPy's ``minres``.

    Parameters
    ----------
    A, b, x0, M, callback, progress
        As of `cg`.
    rtol : float
        Converged when ``|r| <= rtol |A| |x|``, with estimates of the norms; or when
        ``|A r| <= rtol |A| |r|``, a least-squares solution of a singular system.
    shift : float
    maxiter : int, optional
        5 n by default.
    show : bool
        Print how it went.
    check : bool
        Test first, with one vector, whether A and M are Hermitian.

    Returns
    -------
    IterativeResult
        ``(x, info)``; info is 0, or maxiter.

    Raises
    ------
    ValueError
        For shapes that do not fit; where A or M is found not to be Hermitian, or M not definite.

    Notes
    -----
    Paige and Saunders 1975. Each iteration has a product with A and one with M; memory: 8 vectors.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> x, info = pl.minres(pl.Diag([1.0, -2.0, 4.0]), np.ones(3), rtol=1e-12)
    >>> x.round(6), info
    (array([ 1.  , -0.5 ,  0.25]), 0)
    """
    op, M, x, side, begun = _system(A, M, x0, b)
    if check:
        _check_hermitian(op, M, side)
    limit = 5 * len(side) if maxiter is None else int(maxiter)
    answer = run(
        Run(
            name="minres", op=op, M=M, b=side, x=x, has_x0=begun, maxiter=limit, rtol=float(rtol),
            shift=float(shift), callback=callback, progress=progress,
        )
    )  # fmt: skip
    istop = answer[0]
    if istop == 9:
        raise ValueError(
            ("indefinite preconditioner: " if answer[1] == 0 else "non-symmetric matrix: ")
            + f"{answer[5]} ({answer[6]:.3g})"
        )
    if show:
        show_history("minres", answer, _MINRES.get(istop, "the exact solution is x0"))
    failed = istop == 6 or answer[5] is not None
    return made(answer, not failed and istop < 3, x, max(1, limit) if failed else 0)


def _check_hermitian(op: Any, M: Any, b: Any) -> None:
    """Makes SciPy's tests: compares <A y, A y> with <y, A A y>, where y = M b."""
    eps = np.finfo(b.dtype).eps
    y = b if M is None else M @ b
    for what, what_of in (("matrix", op), ("preconditioner", M)):
        if what_of is None:
            continue
        w = what_of @ y
        s, t = np.vdot(w, w).real, np.vdot(y, what_of @ w)
        if abs(s - t) > (s + eps) * eps ** (1 / 3):
            raise ValueError(f"non-symmetric {what}")


def show_history(name: str, answer: Any, how: str) -> None:
    print(f"{name}: {how}")
    print(f"{'iteration':>10} {'residual':>12}")
    norms = answer[4]
    for i, norm in enumerate(norms):
        if i <= 10 or i >= len(norms) - 10 or i % 10 == 0:
            print(f"{i:10} {norm:12.5e}")


@hinted
def gmres(
    A: Any,
    b: ArrayLike,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    restart: int | None = None,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[..., Any] | None = None,
    callback_type: str | None = None,
    progress: Any = None,
) -> IterativeResult:
    """GMRES with restarts for A x = b with any square A, as SciPy's ``gmres``.

    Parameters
    ----------
    A, b, x0, rtol, atol, M, progress
        As of `cg`, with any M, applied from the left.
    restart : int, optional
        Iterations of a cycle: 20 by default, n at most.
    maxiter : int, optional
        Cycles: 10 n by default. With callback_type='legacy' iterations.
    callback : callable, optional
    callback_type : {'x', 'pr_norm', 'legacy'}, optional
        'x': called with a copy of x after each cycle; 'pr_norm': with the relative preconditioned
        residual norm after each iteration, the largest of the columns; 'legacy', which is also the
        default: the same.

    Returns
    -------
    IterativeResult
        ``(x, info)``; info is 0, or maxiter.

    Raises
    ------
    ValueError
        For shapes that do not fit, a negative atol, an unknown callback_type.

    Notes
    -----
    Saad and Schultz 1986. Two passes of Gram-Schmidt keep the basis orthogonal. Step j of a cycle
    has a product with A, one with M, and 8 n j flops; memory: restart + 5 vectors a column. The
    true residual decides the end. Each column has cycles of its own.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> x, info = pl.gmres(pl.Tridiagonal([1.0, 1.0], [4.0, 4.0, 4.0], [2.0, 2.0]), np.ones(3))
    >>> x.round(6), info
    (array([0.208333, 0.083333, 0.229167]), 0)
    """
    if callback is not None and callback_type is None:
        warnings.warn(
            "gmres called with a callback and without callback_type: it is 'legacy' then; say "
            "callback_type='pr_norm' or 'legacy'",
            DeprecationWarning,
            stacklevel=2,
        )
    kind = "legacy" if callback_type is None else callback_type
    if kind not in ("x", "pr_norm", "legacy"):
        raise ValueError(f"Unknown callback_type: {callback_type!r}")
    rtol, atol = _tolerance("gmres", atol, rtol)
    op, M, x, side, begun = _system(A, M, x0, b)
    if not side.any():
        return _nothing(side, 0)
    limit = 10 * len(side) if maxiter is None else int(maxiter)
    answer = run(
        Run(
            name="gmres", op=op, M=M, b=side, x=x, has_x0=begun, maxiter=limit, rtol=rtol,
            atol=atol, restart=20 if restart is None else int(restart),
            inner=callback is not None and kind == "legacy", callback=callback,
            style=CALL_X if kind == "x" else CALL_NORM, progress=progress,
        )
    )  # fmt: skip
    info = max(1, limit) if answer[0] else 0
    return made(answer, info == 0, x, info)
