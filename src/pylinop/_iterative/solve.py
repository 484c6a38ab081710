"""``solve(A, b, method=...)``: iterative methods, judged by the true residual alone.

    b - A x, recomputed --> a correction d with A d = r by the method --> x + d --> again

Corrections continue as long as they help (iterative refinement): a recursive residual that has
drifted from the true one costs a restart, not a wrong answer. x has converged if |b - A x| <=
max(rtol |b|, atol), or if its backward error is at working accuracy, which no method in that
precision can improve on."""

from __future__ import annotations

import math
import operator
import time
import warnings
from typing import Any

import numpy as np

from .. import _core
from .._base import errors
from .._base.checks import square
from .._base.dlpack import as_array
from .._base.memory import room
from . import batches, record, scipy_api
from .batches import columns_of
from .krylov_run import Run, run
from .loops import IN_PYTHON
from .memory import CHECKS, CYCLES, memory_of, products_of, restart_of, width_of
from .problem import Problem, default_rtol, norms, options_of, power_of_two, start_of

_PASSES = 12
_POSITIVE = ("pos", "positive definite")
_HERMITIAN = ("her", "hermitian")
_SYMMETRIC = ("sym", "symmetric")
_USELESS = 1e-3  # of |b|: an x that leaves more than that solves nothing, however large x is


class SolveRecord:
    """How an iterative solve went.

    Attributes
    ----------
    method : str
        The method that gave x; ``tried`` names all methods, with what ended them.
    iterations, matvecs : int
    time : float
        Seconds.
    residuals : ndarray
        Recursive residual norms of all passes, one after the other.
    residual, backward_error : float
        |b - A x| / |b|, recomputed, and |b - A x| / (|A| |x| + |b|) with a lower bound of |A|
        (so the backward error is an upper estimate); the largest of the columns. The backward error
        is None where the residual was enough.
    criterion : str
        'residual' or 'backward error', by which x was accepted; '' where it was not.
    tolerance, working_accuracy : float
        The bounds that they are compared with.
    passes : int
        Corrections.
    memory : int
        Bytes of the vectors of this method and of the checks, known beforehand.
    why : str
        Why this method was chosen.
    """

    def __init__(self, method: str, tolerance: float, working: float) -> None:
        self.memory, self.why = 0, "named"
        self.method, self.tolerance, self.working_accuracy = method, tolerance, working
        self.tried: list[tuple[str, str]] = []
        self.iterations = self.matvecs = self.passes = 0
        self.time = 0.0
        self.residuals = np.zeros(0)
        self.residual = math.inf
        self.backward_error: float | None = None
        self.criterion = ""

    @property
    def converged(self) -> bool:
        """Was x accepted?"""
        return self.criterion != ""

    def __repr__(self) -> str:
        ends = f"by the {self.criterion}" if self.criterion else "not converged"
        eta = "" if self.backward_error is None else f", backward error {self.backward_error:.2g}"
        return (
            f"<{self.method}: {self.iterations} iterations, {self.matvecs} products, residual "
            f"{self.residual:.2g}{eta}, {ends}>"
        )


def _pass(name: str, p: Problem, r: Any, goals: Any, left: int, call: Any) -> Any:
    if name in IN_PYTHON:
        wide = r[:, None] if r.ndim == 1 else r
        d = np.zeros(wide.shape, p.dtype)
        tell = None if call is None else lambda v: call(v.reshape(r.shape))
        loop = IN_PYTHON[name].run
        answer = loop(p.op, p.M, wide, d, goals, left, tell, p.options["progress"])
        return d.reshape(r.shape), answer
    least = name in ("lsqr", "lsmr")
    if least:
        r = r.astype(np.result_type(r.dtype, np.float64))
    d = np.zeros(r.shape, r.dtype)
    asked = Run(
        name=name, op=p.op, M=None if least else p.M, b=r, x=d, maxiter=left, goals=goals,
        callback=call, progress=p.options["progress"],
    )  # fmt: skip
    if least:
        asked.atol = p.eps / 4
    elif name in CYCLES:
        asked.name, asked.restart = "gmres", restart_of(p, name)
        asked.inner, asked.flexible = True, name == "fgmres"
    else:
        asked.strict = True
    answer = run(asked)
    return d.astype(p.dtype, copy=False), answer


def _wrapped(call: Any, x: Any, scale: float, on: Any) -> Any:
    """Calls the user's callback with the whole iterate."""
    if call is None:
        return None

    def tell(d: Any) -> None:
        y = x.copy()
        if on is None:
            y += d / scale
        else:
            y[:, on] += d / scale
        call(y)

    return tell


def _iterate(name: str, p: Problem, record: SolveRecord) -> str:
    """Improves p.x until it is accepted or the method can do no more; returns why it ended."""
    limit = p.options["maxiter"]
    limit = max(10 * p.n, 50) if limit is None else limit
    used, reason, x = 0, "", p.x
    r = p.residual(x)
    size = norms(r)
    for _ in range(_PASSES):
        goal = _goals(p, x)
        if _accepted(p, x, size, record, record.passes > 0) or used >= limit:
            break
        open_ = ~(size <= goal)  # NaN is not solved
        most = float(np.max(size[open_], initial=0.0))
        scale = power_of_two(most)
        if not open_.any() or not math.isfinite(most):
            reason = "the residual is not finite"
            break
        on = None if open_.all() or p.batch else np.flatnonzero(open_)  # converged ones are dropped
        if on is not None:
            part = np.ascontiguousarray(r[:, on])
        else:
            part = r if open_.all() else np.where(open_, r, 0)  # a batch: each column has its A
        # One pass gains no more than 1 / eps; the next pass does the rest.
        goals = scale * np.maximum(0.5 * goal, 2 * p.eps * size)
        goals = goals if on is None else goals[on]
        d, answer = _pass(name, p, part * p.dtype.type(scale), goals, limit - used,
            _wrapped(p.options["callback"], x, scale, on))  # fmt: skip
        used += answer[1]
        record.iterations += answer[1]
        p.products += answer[2]
        record.passes += 1
        record.residuals = np.concatenate([record.residuals, answer[4] / scale])
        if answer[5]:
            reason = f"{answer[5]} ({answer[6]:.3g})"
        y = x.copy()
        if on is None:
            y += d / p.dtype.type(scale)
        else:
            y[:, on] += d / p.dtype.type(scale)
        r_new = p.residual(y)
        new = norms(r_new)
        gained = new <= 0.5 * size
        better = new < size
        x = np.where(better, y, x).astype(p.dtype)
        r, before = np.where(better, r_new, r), size
        size = np.where(better, new, size)
        if not gained[before > goal].any():
            reason = reason or f"the residual stands still at {np.max(size):.3g}"
            if not _accepted(p, x, size, record):
                break
    p.x = x
    _accepted(p, x, size, record)
    if not reason and used >= limit:
        reason = f"{used} iterations were not enough"
    return reason


def _goals(p: Problem, x: Any) -> Any:
    """The goal for each column's residual norm."""
    if not p.options["working"]:
        return p.tolerances()
    return p.working * (p.norm() * norms(x) + p.bnorm)


def _accepted(p: Problem, x: Any, size: Any, record: SolveRecord, deep: bool = True) -> bool:
    """Is x good enough? Unless `deep`, only the residual is looked at, which costs no product."""
    with np.errstate(divide="ignore", invalid="ignore"):
        record.residual = float(np.max(np.where(size == 0, 0.0, size / p.bnorm), initial=0.0))
    record.backward_error = None
    record.criterion = ""
    finite = bool(np.isfinite(size).all())  # |b| may be infinite, and the tolerance with it
    if not p.options["working"] and finite and (size <= p.tolerances()).all():
        record.criterion = "residual"
    elif (deep or p.options["working"]) and finite:
        eta = float(np.max(p.backward(x, size), initial=0.0))
        record.backward_error = eta
        if eta <= p.working and record.residual <= _USELESS:
            record.criterion = "backward error"
    return record.converged


# -- methods by name --


def _looks_hermitian(p: Problem) -> bool:
    """Compares <A v, w> with <v, A w> for two pairs of vectors: only by accident does an A that is
    not Hermitian pass."""
    rng = np.random.default_rng(21)
    shape = p.b.shape if p.batch else (p.n,)
    for _ in range(2):
        v, w = rng.standard_normal((2, *shape)).astype(p.dtype)
        av, aw = p.op @ v, p.op @ w
        p.products += 2
        size = np.maximum(norms(av) * norms(w), norms(v) * norms(aw))
        apart = np.abs((av.conj() * w).sum(axis=0) - (v.conj() * aw).sum(axis=0))
        if not (apart <= math.sqrt(p.eps) * 1e-2 * size).all():
            return False
    return True


def _order(method: str, p: Problem, assumed: str | None) -> tuple[tuple[str, ...], str]:
    """The methods to try, one after the other, and why."""
    if method != "iterative":
        return (method,), "named"
    real = p.dtype.kind != "c"
    if assumed in _POSITIVE:
        return ("cg", "minres", "gmres"), f"A is said to be {assumed!r}"
    if assumed in _HERMITIAN or (assumed in _SYMMETRIC and real):
        return ("minres", "gmres"), f"A is said to be {assumed!r}"
    if assumed in _SYMMETRIC:
        return ("gmres", "bicgstab"), f"A is said to be {assumed!r}, and complex"
    if _looks_hermitian(p):
        return ("cg", "minres", "gmres"), "A looks Hermitian, by two pairs of vectors"
    return ("gmres", "bicgstab"), "A is not Hermitian, by a pair of vectors"


def _columns(name: str, p: Problem, record: SolveRecord) -> str:
    """Solves for all right sides, some at a time; returns why it ended."""
    width = width_of(name, p)
    if p.b.ndim == 1 or width >= p.b.shape[1]:
        return _iterate(name, p, record)
    why, eta, parts = "", None, []
    worst, by = 0.0, "residual"
    for j in range(0, p.b.shape[1], width):
        at = j if width == 1 else slice(j, j + width)
        one = Problem(p.op, p.M, p.b[:, at].copy(), p.x[:, at].copy(), p.options)
        one.norm_a = p.norm_a
        if p.room not in (..., None):  # the others' checks keep theirs
            one.room = p.room - CHECKS * (p.b.nbytes - one.b.nbytes)
        ends = _iterate(name, one, record)
        p.norm_a, p.products = one.norm_a, p.products + one.products
        parts.append(one.x.reshape(p.n, -1))
        worst = max(worst, record.residual)
        if record.backward_error is not None:
            eta = max(eta or 0.0, record.backward_error)
        by = by if record.criterion == "residual" else record.criterion
        if not record.converged:
            why = why or f"column {j}{'' if width == 1 else ' or after'}: {ends}"
    p.x = np.concatenate(parts, axis=1)
    record.residual, record.backward_error = worst, eta
    record.criterion = "" if why else by
    return why


def _solved(p: Problem, method: str, assumed: str | None) -> SolveRecord:
    """Solves, or raises ConvergenceError."""
    __tracebackhide__ = True
    begin = time.perf_counter()
    rtol = p.options["rtol"]
    record = SolveRecord(method, rtol, p.working)
    best, least, used = p.x, math.inf, 0
    order, record.why = _order(method, p, assumed)
    for name in order:
        record.method, p.x = name, best
        record.memory = memory_of(name, p)
        try:
            room(p.said[0], record.memory + products_of(p, name), f"solve by {name}")
        except errors.MaterializationError as error:
            if name == order[-1] and not used:
                raise
            record.tried.append((name, str(error).split("\n")[0]))
            continue
        used += 1
        why = _columns(name, p, record)
        record.tried.append((name, why))
        if record.residual < least:
            best, least = p.x, record.residual
        if record.converged:
            break
    record.matvecs, record.time = p.products, time.perf_counter() - begin
    if record.converged:
        if assumed in _POSITIVE and record.method == "minres":
            text = f"assume_a={assumed!r}, but {record.tried[0][1]}: solved by {record.method}"
            warnings.warn(text, errors.FallbackWarning, stacklevel=errors.outside())
        return record
    p.x, record.residual = best, least
    raise errors.ConvergenceError(_words(p, record, method), best, record)


def _words(p: Problem, record: SolveRecord, method: str) -> str:
    tried = "; ".join(f"{name}: {why or 'no convergence'}" for name, why in record.tried)
    asked = "" if p.options["working"] else f"|b - A x| <= {record.tolerance:.3g} |b| or "
    got = f"the residual is {record.residual:.3g} |b|"
    if record.backward_error is not None:
        got += f", the backward error {record.backward_error:.3g}"
    text = (
        f"solve(method={method!r}) did not converge in {record.iterations} iterations: {got}, "
        f"where {asked}a backward error of {p.working:.3g} was asked for ({tried}). Try more "
        "iterations (maxiter=), a preconditioner (M=), another method, or a larger rtol; the best "
        f"iterate is the exception's .best\n  in: {errors.describe(p.said[0])}"
    )
    return text


# -- solve --


def _checked(method: Any, op: Any, b: Any, options: dict[str, Any]) -> None:
    if b.dtype.kind not in "biufc":
        raise TypeError(f"b of dtype {b.dtype}: method={method!r} takes numbers")
    square(op, "solve")
    if b.ndim == 0 or b.shape[-1 if b.ndim == 1 else -2] != op.shape[-1]:
        n = op.shape[-1]
        raise errors.shape_error(op, "solve", f"({n},) or (..., {n}, k)", b.shape)
    for name in ("rtol", "atol"):
        value = options[name]
        if value is not None and not value >= 0:
            raise ValueError(f"{name} must be 0 or more, got {value}")
    if options["maxiter"] is not None and operator.index(options["maxiter"]) < 0:
        raise ValueError(f"maxiter must be 0 or more, got {options['maxiter']}")
    if options["M"] is not None and method in ("lsqr", "lsmr"):
        raise TypeError(f"{method} takes no preconditioner M")


def _elements(op: Any, b: Any, x0: Any, fold: bool) -> Any:
    """(operator, right side, x0, place) of each element of a batch, and the shape of x. One
    operator with many right sides is one element if `fold`: all of them become its columns."""
    vec = b.ndim == 1
    own = 1 if vec else 2
    batch = np.broadcast_shapes(op.shape[:-2], b.shape[: b.ndim - own])
    whole = np.broadcast_to(b, (*batch, *b.shape[b.ndim - own :]))
    begin = start_of(x0, whole.shape)
    word = begin is None or isinstance(begin, str)
    lead = len(batch) - len(op.shape) + 2

    def parts() -> Any:
        if fold and len(op.shape) == 2 and whole.ndim > 2 and whole.size:
            own = begin if word else columns_of(begin)
            yield op, columns_of(whole), own, None
            return
        for at in np.ndindex(*batch):
            place = tuple(0 if size == 1 else i for size, i in zip(op.shape[:-2], at[lead:]))
            yield op[place] if place else op, whole[at], begin if word else begin[at], at

    return parts(), whole.shape


def iterate(
    op: Any, b: Any, method: str, options: dict[str, Any], working: bool = False
) -> tuple[Any, list[SolveRecord]]:
    """Returns x, and a record for each element of the batch; or raises ConvergenceError."""
    __tracebackhide__ = True
    b = as_array(b)
    _checked(method, op, b, options)
    x0, M, assumed = options["x0"], options["M"], options.get("assume_a")
    M = scipy_api.operator_or_name(M, op)
    word = isinstance(M, str)
    several = M is not None and not word and len(M.shape) > 2
    fold = options["callback"] is None and not several
    elements, shape = _elements(op, b, x0, fold)
    extra = None if x0 is None or isinstance(x0, str) else as_array(x0)
    dtype = scipy_api.work_dtype(op, b, extra, None if word else M)
    rtol = default_rtol(dtype) if options["rtol"] is None else float(options["rtol"])
    own = {**options, "rtol": rtol, "atol": float(options["atol"] or 0.0), "working": working}
    assumed = assumed or getattr(op, "assume_a", None)
    records: list[SolveRecord] = []
    if len(op.shape) > 2:
        together = batches.solved(
            op, b, M, method, own, dtype, records, lambda p: _solved(p, method, assumed)
        )
        if together is not None:
            return together, records
    x = np.empty(shape, dtype)
    for part, side, start, at in elements:
        inverse = scipy_api.preconditioner(M[at] if several else M, part)
        side = np.ascontiguousarray(side, dtype)
        begin = scipy_api.first(start, side.shape, dtype, inverse, side)
        if not side.size:
            continue
        problem = Problem(part, inverse, side, begin, own)
        with record.noted(problem, records):
            records.append(_solved(problem, method, assumed))
        if at is None:
            x[...] = np.moveaxis(problem.x.reshape(shape[-2], *shape[:-2], shape[-1]), 0, -2)
        else:
            x[at] = problem.x
    return x, records


def instead(A: Any, b: Any, error: MemoryError, assume_a: str | None = None) -> Any:
    """``auto`` where the dense form is too large: iterates to x at working accuracy, or raises the
    error."""
    nothing = {**options_of({}), "assume_a": assume_a}
    op = scipy_api.operator_of(A)
    if isinstance(b, _core.Operator) or op.shape[-1] != op.shape[-2]:
        raise error
    try:
        return iterate(op, b, "iterative", nothing, working=True)[0]
    except errors.ConvergenceError as failed:
        text = f"{error}\nNor does an iterative method get there: {failed}"
        raise errors.MaterializationError(text) from failed
