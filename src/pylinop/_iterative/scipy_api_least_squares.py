"""Least squares by iteration under SciPy's names; the loops are in C (solvers/krylov.h)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.dlpack import as_array
from .._base.signatures import hinted
from .krylov_run import Run, run
from .scipy_api import (
    IterativeResult,
    columns,
    first,
    made,
    numbers,
    operator_of,
    show_history,
    work_dtype,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["lsmr", "lsqr"]

_LEAST = (
    "the exact solution is x = 0, or x = x0",
    "A x - b is small enough, given atol, btol",
    "the least-squares solution is good enough, given atol",
    "the estimate of cond(Abar) has exceeded conlim",
    "A x - b is small enough for this machine",
    "the least-squares solution is good enough for this machine",
    "cond(Abar) seems to be too large for this machine",
    "the iteration limit has been reached",
)


def _least(A: Any, b: Any, x0: Any) -> Any:
    op = operator_of(A)
    if len(op.shape) != 2:
        raise ValueError(f"expected one matrix, but got shape={op.shape}")
    b = np.atleast_1d(numbers(b).squeeze())
    if b.shape != op.shape[:1]:
        raise ValueError(f"shapes of A {op.shape} and b {b.shape} are incompatible")
    start = None if x0 is None else as_array(x0)
    dtype = np.result_type(work_dtype(op, b, start), np.float64)
    b = columns(b, dtype)
    return op, b, first(None if x0 is None else start, op.shape[1:], dtype)


def _run(
    name: str, A: Any, b: Any, x0: Any, show: bool, damp: Any, atol: Any, btol: Any, conlim: Any,
    limit: Any, callback: Any, progress: Any, calc_var: bool = False,
) -> Any:  # fmt: skip
    """x, the loop's answer, and lsqr's variances."""
    op, side, x = _least(A, b, x0)
    if limit is None:
        limit = 2 * op.shape[1] if name == "lsqr" else min(op.shape)
    var = np.zeros(op.shape[1])
    answer = run(
        Run(
            name=name, op=op, M=None, b=side, x=x, has_x0=x0 is not None, maxiter=int(limit),
            rtol=float(btol), atol=float(atol), damp=float(damp), conlim=float(conlim),
            callback=callback, progress=progress, var=var if calc_var else None,
        )
    )  # fmt: skip
    if show:
        show_history(name, answer, _LEAST[answer[0]])
    return x, answer, var


@hinted
def lsqr(
    A: Any,
    b: ArrayLike,
    damp: float = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    conlim: float = 1e8,
    iter_lim: int | None = None,
    show: bool = False,
    calc_var: bool = False,
    x0: Any = None,
    *,
    callback: Callable[..., Any] | None = None,
    progress: Any = None,
) -> IterativeResult:
    """Least squares of any shape and rank, damped if asked, as SciPy's ``lsqr``.

    Parameters
    ----------
    A : operator, array_like or sparse, shape (m, n)
        Products with A and its adjoint are used.
    b : array_like, shape (m,)
    damp : float
        The damping: ``|b - A x|^2 + damp^2 |x - x0|^2`` is minimised.
    atol, btol, conlim : float
        Stopping tolerances as in SciPy: relative errors of A and b, the largest condition.
    iter_lim : int, optional
        2 n by default.
    show : bool
        Print how it went.
    calc_var : bool
        Estimate the diagonal of (A^H A + damp^2 I)^-1.
    x0 : array_like, shape (n,), optional
    callback, progress
        As of `cg`.

    Returns
    -------
    IterativeResult
        ``(x, istop, itn, r1norm, r2norm, anorm, acond, arnorm, xnorm, var)``.

    Raises
    ------
    ValueError
        For shapes that do not fit.

    Notes
    -----
    Paige and Saunders 1982. An iteration takes a product with A and one with A^H; memory holds 2 m
    + 4 n numbers. It runs in float64, as SciPy's does.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> x, istop = pl.lsqr(pl.Dense([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), [1.0, 0.0, -1.0])[:2]
    >>> x.round(6), istop
    (array([ 1., -1.]), 1)
    """
    how = (damp, atol, btol, conlim, iter_lim, callback, progress, calc_var)
    x, answer, var = _run("lsqr", A, b, x0, show, *how)
    return made(answer, answer[0] != 7, x, answer[0], answer[1], *answer[7], var)


@hinted
def lsmr(
    A: Any,
    b: ArrayLike,
    damp: float = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    conlim: float = 1e8,
    maxiter: int | None = None,
    show: bool = False,
    x0: Any = None,
    *,
    callback: Callable[..., Any] | None = None,
    progress: Any = None,
) -> IterativeResult:
    """Least squares of any shape and rank, damped if asked, as SciPy's ``lsmr``.

    Parameters
    ----------
    A, b, damp, atol, btol, conlim, show, x0, callback, progress
        As of `lsqr`.
    maxiter : int, optional
        min(m, n) by default.

    Returns
    -------
    IterativeResult
        ``(x, istop, itn, normr, normar, norma, conda, normx)``.

    Raises
    ------
    ValueError
        For shapes that do not fit.

    Notes
    -----
    Fong and Saunders 2011: |A^H r| falls with each iteration, so it may be stopped early. An
    iteration takes a product with A and one with A^H; memory holds 2 m + 5 n numbers. It runs in
    float64, as SciPy's does.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> x, istop = pl.lsmr(pl.Dense([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), [1.0, 0.0, -1.0])[:2]
    >>> x.round(6), istop
    (array([ 1., -1.]), 1)
    """
    how = (damp, atol, btol, conlim, maxiter, callback, progress)
    x, answer, _ = _run("lsmr", A, b, x0, show, *how)
    return made(answer, answer[0] != 7, x, answer[0], answer[1], *answer[7][:5])
