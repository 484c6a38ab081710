"""Conjugate gradients over blocks, for a positive definite A by rows, and for normal equations.

Vectors live here; the parts keep nothing between iterations, so a lost worker costs what reading
its blocks again costs, and the iterates do not change. Normal equations take one sweep an
iteration: each part answers (|A p|^2, A^H A p). They square the condition number: `lsmr` does not.

Hestenes and Stiefel 1952. The residual follows its recurrence, and is computed from x when the
recurrence says that it is small enough; if it is not, the iteration begins anew from x."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from .arguments import (
    damping,
    first,
    held_right_side,
    operator_of,
    resumed,
    right_side,
    started,
)
from .operator import BlockOperator
from .precondition import of_least_squares, of_square, parsed
from .precondition import said as said_of
from .record import Record, Result, Watch, load, stored

__all__ = ["cg", "cgls"]

_RESTARTS = 10


class _System:
    """A x = b: the product with A, the residual."""

    def __init__(self, A: BlockOperator, b: Any, dtype: Any, M: Any) -> None:
        self.engine, self.A = A.engine, A
        self.held = A._held(A.axis)  # of rows and columns alike: along the parts
        self.M = of_square(A, M, self.held)
        self.b = held_right_side(b, self.held, dtype)
        self.scale = self.held.norm(self.b)

    def product(self, p: Any) -> tuple[float, Any]:
        """(p^H A p, A p)."""
        q = self._times(p)
        return self.held.dot(p, q), q

    def residual(self, x: Any) -> tuple[Any, float | None]:
        """b - A x; that of the least-squares problem is not of it."""
        return self.b - self._times(x), None

    def _times(self, x: Any) -> Any:
        return self.A._between(x, self.held, self.held)


class _Normal(_System):
    """(A^H A + damp^2) x = A^H b, by one sweep."""

    def __init__(self, A: BlockOperator, b: Any, dtype: Any, M: Any, damp: float) -> None:
        self.engine, self.A, self.damp = A.engine, A, damp
        self.held, self.pieces = A._held(1, M[1]), A._slices(b)
        self.M = of_least_squares(A, M, self.held, damp)
        self.scale = self.held.norm(self._sweep("residual", self.held.zeros(dtype), 1.0)[1])

    def _sweep(self, method: str, x: Any, *scale: float) -> tuple[float, Any]:
        """(|u|^2, what is here of A^H u), of all parts' answers."""
        each = self.pieces if method == "residual" else None
        answers = self.engine.here(method, self.held.whole(x), *scale, each=each)
        w = self.held.add([share for _, share in answers], x.dtype)
        return self.held.sum([ssq for ssq, _ in answers]), w

    def product(self, p: Any) -> tuple[float, Any]:
        """(|A p|^2 + damp^2 |p|^2, A^H A p + damp^2 p)."""
        ssq, w = self._sweep("normal", p)
        if self.damp:
            ssq += self.damp**2 * self.held.dot(p, p)
            w += self.damp**2 * p
        return ssq, w

    def residual(self, x: Any) -> tuple[Any, float | None]:
        """A^H (b - A x) - damp^2 x, and |b - A x|."""
        ssq, w = self._sweep("residual", -x, 1.0)
        if self.damp:
            w -= self.damp**2 * x
        return w, math.sqrt(ssq)


class _State:
    """x, r, p and r^H M r; what a checkpoint holds."""

    def __init__(self, system: _System, x: Any) -> None:
        self.system, self.x = system, x
        self.begin()

    def begin(self) -> None:
        """r and p from x."""
        self.r, self.short = self.system.residual(self.x)
        self.p = self._turned().copy()
        self.rho = self.system.held.dot(self.r, self.p)

    def _turned(self) -> Any:
        """M r."""
        return self.r if self.system.M is None else self.system.M.inverse(self.r)

    def step(self) -> bool:
        """The next x; False where p^H A p or r^H M r is not positive."""
        curvature, q = self.system.product(self.p)
        if not math.isfinite(curvature) or not math.isfinite(self.rho):
            raise np.linalg.LinAlgError(
                f"numbers are not finite: p^H A p is {curvature:g}, r^H M r {self.rho:g}; A, b or "
                "x0 hold NaN or infinity, or their scale overflows"
            )
        if self.rho == 0:
            raise np.linalg.LinAlgError(
                f"r^H M r underflows where |r| is {self.system.held.norm(self.r):g}: scale b up"
            )
        if curvature <= 0 or self.rho < 0:
            return False
        alpha = self.rho / curvature
        self.x += alpha * self.p
        self.r -= alpha * q
        z = self._turned()
        before, self.rho = self.rho, self.system.held.dot(self.r, z)
        self.p *= self.rho / before
        self.p += z
        return True


def _solve(
    method: str,
    system: _System,
    x: Any,
    tol: float,
    maxiter: int,
    watch: Watch,
    resume: str | None,
    said: dict[str, Any],
) -> Result:
    found = load(resume, said) if resume else None
    record = Record(method, parts=len(system.A._specs))
    losses, itn, info = system.engine.losses, 0, 0
    normal, held = method == "cgls", system.held
    if found:
        with found:
            state = _State.__new__(_State)
            state.system, state.short, state.rho = system, None, float(found["rho"])
            state.x, state.r, state.p = (stored(found, k, held.at) for k in "xrp")
            itn = record.resumed = int(found["itn"])
            record.residuals = found["residuals"].tolist()
            record.restarts = int(found["restarts"])
    else:
        state = _State(system, x)
    try:
        while True:
            norm = held.norm(state.r)
            if norm <= tol:  # so it says: x itself decides
                state.begin()
                norm = held.norm(state.r)
                if norm <= tol:
                    break
                record.restarts += 1
                if record.restarts > _RESTARTS:
                    info = max(itn, 1)
                    break
            if itn >= maxiter:
                info = max(itn, 1)
                break
            if not state.step():
                info = -1
                break
            itn += 1
            norm = held.norm(state.r)
            record.residuals.append(norm)
            watch.tell(itn, held, state.x, norm, norm if normal else None)
            if watch.due(itn):
                _write(state, watch, record, said, itn)
        if info:
            state.begin()
    finally:
        watch.close()
    record.iterations, record.losses = itn, system.engine.losses - losses
    true = held.norm(state.r)
    record.true_residual = state.short if normal else true
    record.true_normal_residual = true if normal else None
    if normal:
        record.normal_residuals, record.residuals = record.residuals, []
    record.seconds = watch.seconds()
    record.piece = held.piece
    return Result((held.given(state.x), info), record)


def _write(state: _State, watch: Watch, record: Record, said: dict[str, Any], itn: int) -> None:
    def arrays() -> Any:
        values = {**said, "itn": itn, "rho": state.rho}
        values |= {"residuals": record.residuals, "restarts": record.restarts}
        for name, value in values.items():
            yield name, np.array(value)
        for name in "xrp":
            yield name, state.system.held.stream(getattr(state, name))

    watch.save(arrays())


def cg(
    A: BlockOperator,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[Any], Any] | None = None,
    progress: Any = False,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 300.0,
    resume: str | os.PathLike[str] | bool | None = None,
) -> Result:
    """Solve A x = b for a Hermitian positive definite A in blocks, by conjugate gradients.

    Parameters
    ----------
    A : BlockOperator
        Square, Hermitian positive definite.
    b : array_like, shape (n,), or path of a ``.npy`` file
    x0, rtol, atol, maxiter, callback
        As in `scipy.sparse.linalg.cg`: it ends at |b - A x| <= max(rtol |b|, atol).
    M : {'jacobi', 'block_jacobi'}, ('block_jacobi', k), array_like or operator, optional
        A preconditioner near A^-1. 'jacobi' is made of A's diagonal, 'block_jacobi' of k x k blocks
        on it (k is 8 when not given), which are read in one more sweep; none reaches over the edge
        of a block of A. An array of shape (n,) is its diagonal; a matrix or an operator is applied
        to whole vectors in this process.
    progress, checkpoint, checkpoint_every, resume
        As in `lsmr`.

    Returns
    -------
    Result
        SciPy's (x, info), with ``record``: info is 0 where the true residual is small enough, the
        number of iterations where it is not, -1 where p^H A p <= 0 or r^H M r <= 0 shows that A or
        M is not positive definite.

    Raises
    ------
    ValueError
        For shapes that do not fit, or a checkpoint of another problem.
    LinAlgError
        Where numbers are not finite; with M by name also where A's diagonal is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> import pylinop.dask as pld
    >>> A = pld.BlockOperator([np.array([[2.0, 1.0]]), np.array([[1.0, 2.0]])], engine="serial")
    >>> x, info = pld.cg(A, np.array([3.0, 3.0]))
    >>> x.round(6), info
    (array([1., 1.]), 0)
    """
    m, n = operator_of(A, "cg", rows=False).shape
    if m != n:
        raise ValueError(f"cg takes a square operator, got shape {A.shape}")
    (b, b_dtype), x0 = right_side(b, m), first(x0, A)
    dtype = A._vector_dtype(b_dtype, *(() if x0 is None else (x0.dtype,)))
    turn = parsed(M, n, "cg")
    if turn[2] is not None:
        dtype = np.result_type(dtype, turn[2].dtype)
    system = _System(A, b, dtype, turn)
    maxiter = 10 * n if maxiter is None else int(maxiter)
    watch = Watch(A.engine, maxiter, callback, progress, checkpoint, checkpoint_every)
    said = {"method": "cg", "shape": [m, n], "dtype": dtype.str, "M": said_of(A, turn)}
    tol = max(rtol * system.scale, atol)
    x = system.held.zeros(dtype) if x0 is None else started(x0, system.held, dtype)
    return _solve("cg", system, x, tol, maxiter, watch, resumed(resume, checkpoint), said)


def cgls(
    A: BlockOperator,
    b: Any,
    damp: float = 0.0,
    x0: Any = None,
    *,
    rtol: float = 1e-6,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[Any], Any] | None = None,
    progress: Any = False,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 300.0,
    resume: str | os.PathLike[str] | bool | None = None,
) -> Result:
    """Least squares by conjugate gradients on the normal equations (A^H A + damp^2) x = A^H b.

    No worker keeps anything between iterations, which makes it the cheapest to resume; the price
    is that errors grow with the square of the condition number: for an ill-conditioned A prefer
    `lsmr`.

    Parameters
    ----------
    A : BlockOperator
        An operator in blocks of rows (``axis=0``).
    b : array_like, shape (m,), or path of a ``.npy`` file
    damp : float
        The minimum is that of |b - A x|^2 + damp^2 |x|^2.
    x0 : array_like, optional
        Where to begin.
    rtol, atol : float
        The iteration ends at |A^H (b - A x) - damp^2 x| <= max(rtol |A^H b|, atol).
    M
        As in `lsmr`.
    maxiter, callback
        As in `scipy.sparse.linalg.cg`.
    progress, checkpoint, checkpoint_every, resume
        As in `lsmr`.

    Returns
    -------
    Result
        (x, info), with ``record``: info is 0 where it ended by the rule, as x itself confirms;
        else the number of iterations.

    Raises
    ------
    ValueError
        For shapes that do not fit, blocks of columns, a checkpoint of another problem.
    LinAlgError
        Where numbers are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> import pylinop.dask as pld
    >>> A = pld.BlockOperator([np.eye(2), np.ones((1, 2))], engine="serial")
    >>> x, info = pld.cgls(A, np.array([1.0, 0.0, 1.0]))
    >>> abs(x - [1.0, 0.0]).max() < 1e-6, info
    (np.True_, 0)
    """
    (m, n), damp = operator_of(A, "cgls").shape, damping(damp)
    turn = parsed(M, n, "cgls")
    (b, b_dtype), x0 = right_side(b, m), first(x0, A, turn[1])
    dtype = A._vector_dtype(b_dtype, *(() if x0 is None else (x0.dtype,)))
    system = _Normal(A, b, dtype, turn, damp)
    maxiter = 10 * n if maxiter is None else int(maxiter)
    watch = Watch(A.engine, maxiter, callback, progress, checkpoint, checkpoint_every)
    said = {"method": "cgls", "shape": [m, n], "dtype": dtype.str, "damp": damp}
    said["M"] = said_of(A, turn)
    tol = max(rtol * system.scale, atol)
    x = system.held.zeros(dtype) if x0 is None else started(x0, system.held, dtype)
    return _solve("cgls", system, x, tol, maxiter, watch, resumed(resume, checkpoint), said)
