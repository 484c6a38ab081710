"""Conjugate gradients over blocks: of a positive definite A by rows, and of normal equations.

Vectors live here; the parts keep nothing between iterations, so a lost worker costs what reading
its blocks again costs, and the iterates do not change. Normal equations take one sweep an
iteration: each part answers (|A p|^2, A^H A p). They square the condition number: `lsmr` does not.

Hestenes and Stiefel 1952. The residual is carried by its recurrence and computed from x where
that says it is done; where it is not, the iteration begins anew from x."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from .arguments import all_due, damping, first, operator_of, resumed, right_side
from .operator import BlockOperator
from .part import scaled_norm
from .record import Record, Result, Watch, load, save

__all__ = ["cg", "cgls"]

_RESTARTS = 10


class _System:
    """A x = b: the product with A, the residual."""

    def __init__(self, A: BlockOperator, b: Any, dtype: Any) -> None:
        self.engine, self.A = A.engine, A
        self.b = np.array(np.load(b) if isinstance(b, str) else b, dtype)
        self.scale = scaled_norm(self.b)

    def product(self, p: Any) -> tuple[float, Any]:
        """(p^H A p, A p)."""
        q = self.A.matvec(p)
        return float(np.vdot(p, q).real), q

    def residual(self, x: Any) -> tuple[Any, float | None]:
        """b - A x; that of the least-squares problem is not of it."""
        return self.b - self.A.matvec(x), None


class _Normal(_System):
    """(A^H A + damp^2) x = A^H b, by one sweep."""

    def __init__(self, A: BlockOperator, b: Any, dtype: Any, damp: float) -> None:
        self.engine, self.A, self.damp = A.engine, A, damp
        self.pieces = A._slices(b)
        zero = np.zeros(A.shape[1], dtype)
        self.scale = scaled_norm(self.engine.total("residual", zero, 1.0, each=self.pieces)[1])

    def product(self, p: Any) -> tuple[float, Any]:
        """(|A p|^2 + damp^2 |p|^2, A^H A p + damp^2 p)."""
        ssq, w = self.engine.total("normal", p)
        if self.damp:
            ssq += self.damp**2 * float(np.vdot(p, p).real)
            w += self.damp**2 * p
        return ssq, w

    def residual(self, x: Any) -> tuple[Any, float | None]:
        """A^H (b - A x) - damp^2 x, and |b - A x|."""
        ssq, w = self.engine.total("residual", x, 1.0, each=self.pieces)
        if self.damp:
            w -= self.damp**2 * x
        return w, math.sqrt(ssq)


class _State:
    """x, r, p and |r|^2; what a checkpoint holds."""

    def __init__(self, system: _System, x: Any) -> None:
        self.system, self.x = system, x
        self.begin()

    def begin(self) -> None:
        """r and p from x."""
        self.r, self.short = self.system.residual(self.x)
        self.p = self.r.copy()
        self.rho = float(np.vdot(self.r, self.r).real)

    def step(self) -> bool:
        """The next x; False where p^H A p is not positive."""
        curvature, q = self.system.product(self.p)
        if not math.isfinite(curvature) or not math.isfinite(self.rho):
            raise np.linalg.LinAlgError(
                f"numbers are not finite: p^H A p is {curvature:g}, |r|^2 {self.rho:g}; A, b or x0 "
                "hold NaN or infinity, or their scale overflows"
            )
        if curvature <= 0:
            return False
        alpha = self.rho / curvature
        self.x += alpha * self.p
        self.r -= alpha * q
        before, self.rho = self.rho, float(np.vdot(self.r, self.r).real)
        self.p *= self.rho / before
        self.p += self.r
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
    normal = method == "cgls"
    if found:
        with found:
            x = found["x"].copy()
            state = _State.__new__(_State)
            state.system, state.x, state.short = system, x, None
            state.r, state.p, state.rho = found["r"].copy(), found["p"].copy(), float(found["rho"])
            itn = record.resumed = int(found["itn"])
            record.residuals = found["residuals"].tolist()
            record.restarts = int(found["restarts"])
    else:
        state = _State(system, x)
    try:
        while True:
            norm = scaled_norm(state.r)
            if norm <= tol:  # so it says: x itself decides
                state.begin()
                norm = scaled_norm(state.r)
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
            norm = scaled_norm(state.r)
            record.residuals.append(norm)
            watch.tell(itn, state.x, norm, norm if normal else None)
            if all_due(watch, system.engine, itn):
                _write(state, watch, record, said, itn)
        if info:
            state.begin()
    finally:
        watch.close()
    record.iterations, record.losses = itn, system.engine.losses - losses
    true = scaled_norm(state.r)
    record.true_residual = state.short if normal else true
    record.true_normal_residual = true if normal else None
    if normal:
        record.normal_residuals, record.residuals = record.residuals, []
    record.seconds = watch.seconds()
    return Result((state.x, info), record)


def _write(state: _State, watch: Watch, record: Record, said: dict[str, Any], itn: int) -> None:
    values = {**said, "itn": itn, "rho": state.rho, "x": state.x, "r": state.r, "p": state.p}
    values |= {"residuals": record.residuals, "restarts": record.restarts}
    if watch.writes:
        assert watch.path is not None
        save(watch.path, ((name, np.array(value)) for name, value in values.items()))
    watch.saved()


def cg(
    A: BlockOperator,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
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
    progress, checkpoint, checkpoint_every, resume
        As in `lsmr`.

    Returns
    -------
    Result
        SciPy's (x, info), with ``record``: info is 0 where the true residual is small enough, the
        number of iterations where it is not, -1 where p^H A p <= 0 shows that A is not positive
        definite.

    Raises
    ------
    ValueError
        For shapes that do not fit, or a checkpoint of another problem.
    LinAlgError
        Where numbers are not finite.

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
    system = _System(A, b, dtype)
    maxiter = 10 * n if maxiter is None else int(maxiter)
    watch = Watch(A.engine.writes, maxiter, callback, progress, checkpoint, checkpoint_every)
    said = {"method": "cg", "shape": [m, n], "dtype": dtype.str}
    tol = max(rtol * system.scale, atol)
    x = np.zeros(n, dtype) if x0 is None else x0.astype(dtype)
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
    callback: Callable[[Any], Any] | None = None,
    progress: Any = False,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 300.0,
    resume: str | os.PathLike[str] | bool | None = None,
) -> Result:
    """Least squares by conjugate gradients on the normal equations (A^H A + damp^2) x = A^H b.

    No worker keeps anything between iterations, which makes it the cheapest to resume; the price
    is that errors grow with the square of the condition number: prefer `lsmr` where A is not kind.

    Parameters
    ----------
    A : BlockOperator
        Of blocks of rows (``axis=0``).
    b : array_like, shape (m,), or path of a ``.npy`` file
    damp : float
        The minimum is that of |b - A x|^2 + damp^2 |x|^2.
    x0 : array_like, optional
        Where to begin.
    rtol, atol : float
        It ends at |A^H (b - A x) - damp^2 x| <= max(rtol |A^H b|, atol).
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
    (b, b_dtype), x0 = right_side(b, m), first(x0, A)
    dtype = A._vector_dtype(b_dtype, *(() if x0 is None else (x0.dtype,)))
    A.engine  # noqa: B018  # the parts are placed before b is cut along them
    system = _Normal(A, b, dtype, damp)
    maxiter = 10 * n if maxiter is None else int(maxiter)
    watch = Watch(A.engine.writes, maxiter, callback, progress, checkpoint, checkpoint_every)
    said = {"method": "cgls", "shape": [m, n], "dtype": dtype.str, "damp": damp}
    tol = max(rtol * system.scale, atol)
    x = np.zeros(n, dtype) if x0 is None else x0.astype(dtype)
    return _solve("cgls", system, x, tol, maxiter, watch, resumed(resume, checkpoint), said)
