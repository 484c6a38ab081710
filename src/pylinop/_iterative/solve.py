"""``solve(A, b, method=...)``: iterative methods that are believed on the true residual alone.

    b - A x, recomputed --> a correction d with A d = r by the method --> x + d --> again

A correction is asked for as long as it pays (iterative refinement): a recursive residual that has
lost touch with the true one costs a restart, not a wrong answer. Converged is what has
``|b - A x| <= max(rtol |b|, atol)``, or a backward error at working accuracy, which no method in
that precision can better."""

from __future__ import annotations

import functools
import math
import operator
import time
import warnings
from typing import Any

import numpy as np

from .. import _core
from .._base import errors, sparse_arrays
from .._base.dlpack import as_array
from . import batches, explain, scipy_api
from .batches import columns_of
from .memory import CHECKS, CYCLES, memory_of, products_of, restart_of, width_of

ITERATIVE = ("cg", "block_cg", "minres", "gmres", "fgmres", "bicgstab", "lsqr", "lsmr")
METHODS = ("auto", "direct", "iterative", *ITERATIVE)
_PASSES = 12
_POSITIVE = ("pos", "positive definite")
_HERMITIAN = ("her", "hermitian")
_SYMMETRIC = ("sym", "symmetric")
_USELESS = 1e-3  # of |b|: x that leaves more solves nothing, however large it is


class SolveRecord:
    """How an iterative solve went.

    Attributes
    ----------
    method : str
        The one that gave x; ``tried`` names all, with what ended them.
    iterations, matvecs : int
    time : float
        Seconds.
    residuals : ndarray
        Recursive residual norms of all passes, one after the other.
    residual, backward_error : float
        |b - A x| / |b|, recomputed, and |b - A x| / (|A| |x| + |b|) with a lower bound of |A|
        (so that it is rather too large); the largest of the columns. The latter is None where the
        residual was enough.
    criterion : str
        'residual' or 'backward error': by which x is accepted; '' where it is not.
    tolerance, working_accuracy : float
        What they are held against.
    passes : int
        Corrections.
    memory : int
        Bytes of the vectors, of this method and of the checks: known beforehand.
    why : str
        What this method was chosen by.
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


class _Problem:
    """One A, right sides (n,) or (n, k), and what is asked of x."""

    def __init__(self, op: Any, M: Any, b: Any, x: Any, options: dict[str, Any]) -> None:
        self.op, self.M, self.b, self.x, self.options = op, M, b, x, options
        self.n, self.dtype = b.shape[0], b.dtype
        self.eps = float(np.finfo(b.dtype).eps)
        self.working = 5 * math.sqrt(max(self.n, 1)) * self.eps
        self.norm_a: Any = None
        self.light: bool | None = None  # do vectors take longer than a product?
        self.product: int | None = None  # bytes that one takes, once it was asked
        self.room: Any = ...  # bytes for its vectors, once it was asked
        self.said, self.batch = (op, b), False  # what is written down; are columns of a batch's?
        self.products = 0

    @functools.cached_property
    def bnorm(self) -> Any:
        return _norms(self.b)

    def residual(self, x: Any) -> Any:
        """b - A x, or b where x is 0."""
        if not x.any():
            return self.b.copy()
        self.products += 1
        return self.b - (self.op @ x).astype(self.dtype, copy=False)

    def tolerances(self) -> Any:
        rtol, atol = self.options["rtol"], self.options["atol"]
        return np.maximum(rtol * self.bnorm, atol)

    def norm(self) -> Any:
        """A lower bound of |A|, the largest of |A v| / |v| over some steps of a power iteration; of
        each column's A in a batch."""
        if self.norm_a is None:
            rng = np.random.default_rng(20)
            shape = self.b.shape if self.batch else (self.n,)
            v = rng.standard_normal(shape).astype(self.dtype)
            best = np.zeros(_norms(v).shape)
            for _ in range(8):
                size = _norms(v)
                good = np.isfinite(size) & (size > 0)
                if not good.any():
                    break
                size = np.where(good, size, 1).astype(v.real.dtype)
                v = (self.op @ (v / (size if v.ndim > 1 else size[0]))).astype(
                    self.dtype, copy=False
                )
                self.products += 1
                new = _norms(v)
                best = np.where(good & (new > best), new, best)
            self.norm_a = best if self.batch else float(best[0])
        return self.norm_a

    def backward(self, x: Any, size: Any) -> Any:
        below = self.norm() * _norms(x) + self.bnorm
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(size == 0, 0.0, size / below)


def _norm(v: Any) -> float:
    most = float(np.abs(v).max(initial=0.0))
    if most == 0 or not math.isfinite(most):
        return most
    return most * float(np.linalg.norm((v / most).astype(np.result_type(v.dtype, np.float64))))


def _norms(b: Any) -> Any:
    """The norms of the columns, as float64."""
    if b.ndim == 1:
        return np.array([_norm(b)])
    return np.array([_norm(b[:, j]) for j in range(b.shape[1])])


def _power_of_two(x: float) -> float:
    return math.ldexp(1.0, -math.frexp(x)[1]) if x and math.isfinite(x) else 1.0


# -- one pass of one method: d with A d = r, each column of r - A d below its goal --


def _pass(name: str, p: _Problem, r: Any, goals: Any, left: int, call: Any) -> Any:
    if name == "block_cg":
        from .block_cg import block_cg

        wide = r[:, None] if r.ndim == 1 else r
        d = np.zeros(wide.shape, p.dtype)
        tell = None if call is None else lambda v: call(v.reshape(r.shape))
        answer = block_cg(p.op, p.M, wide, d, goals, left, tell, p.options["progress"])
        return d.reshape(r.shape), answer
    least = name in ("lsqr", "lsmr")
    more: dict[str, Any] = {"flags": scipy_api.STRICT}
    if least:
        more = {"atol": p.eps / 4}
        r = r.astype(np.result_type(r.dtype, np.float64))
    elif name in CYCLES:
        flags = scipy_api.INNER | (scipy_api.FLEXIBLE if name == "fgmres" else 0)
        more = {"flags": flags, "restart": restart_of(p, name)}
    d = np.zeros(r.shape, r.dtype)
    loop = "gmres" if name == "fgmres" else name
    answer = scipy_api.run(loop, p.op, None if least else p.M, r, d, False, left, goals=goals,
        callback=call, progress=p.options["progress"], **more)  # fmt: skip
    return d.astype(p.dtype, copy=False), answer


def _wrapped(call: Any, x: Any, scale: float, on: Any) -> Any:
    """The user's callback with the whole iterate."""
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


def _iterate(name: str, p: _Problem, record: SolveRecord) -> str:
    """Improves p.x until it is accepted or the method is at its end; why it ended."""
    limit = p.options["maxiter"]
    limit = max(10 * p.n, 50) if limit is None else limit
    used, reason, x = 0, "", p.x
    r = p.residual(x)
    size = _norms(r)
    for _ in range(_PASSES):
        goal = _goals(p, x)
        if _accepted(p, x, size, record, record.passes > 0) or used >= limit:
            break
        open_ = ~(size <= goal)  # not a number is not solved
        most = float(np.max(size[open_], initial=0.0))
        scale = _power_of_two(most)
        if not open_.any() or not math.isfinite(most):
            reason = "the residual is not finite"
            break
        on = None if open_.all() or p.batch else np.flatnonzero(open_)  # who is done leaves
        if on is not None:
            part = np.ascontiguousarray(r[:, on])
        else:
            part = r if open_.all() else np.where(open_, r, 0)  # of a batch: each has its A
        # What no pass can do the next one does.
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
        new = _norms(r_new)
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


def _goals(p: _Problem, x: Any) -> Any:
    """What each column's residual norm is to come down to."""
    if not p.options["working"]:
        return p.tolerances()
    return p.working * (p.norm() * _norms(x) + p.bnorm)


def _accepted(p: _Problem, x: Any, size: Any, record: SolveRecord, deep: bool = True) -> bool:
    """Is x good enough? Not `deep`: by the residual alone, which costs no product."""
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


def _looks_hermitian(p: _Problem) -> bool:
    """<A v, w> against <v, A w> for two pairs of vectors: what is not, is found but by accident."""
    rng = np.random.default_rng(21)
    shape = p.b.shape if p.batch else (p.n,)
    for _ in range(2):
        v, w = rng.standard_normal((2, *shape)).astype(p.dtype)
        av, aw = p.op @ v, p.op @ w
        p.products += 2
        size = np.maximum(_norms(av) * _norms(w), _norms(v) * _norms(aw))
        apart = np.abs((av.conj() * w).sum(axis=0) - (v.conj() * aw).sum(axis=0))
        if not (apart <= math.sqrt(p.eps) * 1e-2 * size).all():
            return False
    return True


def _order(method: str, p: _Problem, promise: str | None) -> tuple[tuple[str, ...], str]:
    """What to try, one after the other, and why."""
    if method != "iterative":
        return (method,), "named"
    real = p.dtype.kind != "c"
    if promise in _POSITIVE:
        return ("cg", "minres", "gmres"), f"A is said to be {promise!r}"
    if promise in _HERMITIAN or (promise in _SYMMETRIC and real):
        return ("minres", "gmres"), f"A is said to be {promise!r}"
    if promise in _SYMMETRIC:
        return ("gmres", "bicgstab"), f"A is said to be {promise!r}, and complex"
    if _looks_hermitian(p):
        return ("cg", "minres", "gmres"), "A looks Hermitian, by two pairs of vectors"
    return ("gmres", "bicgstab"), "A is not Hermitian, by a pair of vectors"


def _columns(name: str, p: _Problem, record: SolveRecord) -> str:
    """All right sides, some at a time; why it ended."""
    width = width_of(name, p)
    if p.b.ndim == 1 or width >= p.b.shape[1]:
        return _iterate(name, p, record)
    why, eta, parts = "", None, []
    worst, by = 0.0, "residual"
    for j in range(0, p.b.shape[1], width):
        at = j if width == 1 else slice(j, j + width)
        one = _Problem(p.op, p.M, p.b[:, at].copy(), p.x[:, at].copy(), p.options)
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


def _solved(p: _Problem, method: str, promise: str | None) -> SolveRecord:
    """Solves, or raises ConvergenceError."""
    from .._precondition.terms import room

    begin = time.perf_counter()
    rtol = p.options["rtol"]
    record = SolveRecord(method, rtol, p.working)
    best, least, used = p.x, math.inf, 0
    order, record.why = _order(method, p, promise)
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
        if promise in _POSITIVE and record.method == "minres":
            text = f"assume_a={promise!r}, but {record.tried[0][1]}: solved by {record.method}"
            warnings.warn(text, errors.FallbackWarning, stacklevel=errors.outside())
        return record
    p.x, record.residual = best, least
    raise errors.ConvergenceError(_words(p, record, method), best, record)


def _words(p: _Problem, record: SolveRecord, method: str) -> str:
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


def _default_rtol(dtype: Any) -> float:
    return 1e-5 if np.finfo(dtype).eps > 1e-10 else 1e-10


def _refuse(method: str, given: dict[str, Any]) -> None:
    said = [name for name, value in given.items() if value is not None]
    if said:
        raise TypeError(
            f"{', '.join(said)} is for iterative methods, and method={method!r}: say which, "
            f"one of {', '.join(METHODS[2:])}"
        )


def _checked(method: Any, op: Any, b: Any, options: dict[str, Any]) -> None:
    if b.dtype.kind not in "biufc":
        raise TypeError(f"b of dtype {b.dtype}: method={method!r} takes numbers")
    if op.shape[-1] != op.shape[-2]:
        raise errors.make_error(
            "LinAlgError",
            f"Last 2 dimensions of the array must be square: {op.shape}",
            op,
            "solve",
            -1,
        )
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


def _start(x0: Any, shape: Any) -> Any:
    """x0 of the solution's shape; a word or None as it is."""
    if x0 is None or isinstance(x0, str):
        return x0
    start = as_array(x0)
    if len(shape) == 1 and start.shape == (*shape, 1):
        start = start[:, 0]
    try:
        return np.broadcast_to(start, shape)
    except ValueError:
        raise ValueError(f"x0 has shape {start.shape}, the solution {shape}") from None


def _elements(op: Any, b: Any, x0: Any, fold: bool) -> Any:
    """Of a batch: (the operator, right side, x0, place) of each element, and the shape of x. One
    operator with many right sides is one element, if they `fold`: all of them are its columns."""
    vec = b.ndim == 1
    own = 1 if vec else 2
    batch = np.broadcast_shapes(op.shape[:-2], b.shape[: b.ndim - own])
    whole = np.broadcast_to(b, (*batch, *b.shape[b.ndim - own :]))
    begin = _start(x0, whole.shape)
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
    """x, and a record for each element of the batch; ConvergenceError."""
    b = as_array(b)
    _checked(method, op, b, options)
    x0, M, promise = options["x0"], options["M"], options.get("assume_a")
    M = scipy_api.operator_or_name(M, op)
    word = isinstance(M, str)
    several = M is not None and not word and len(M.shape) > 2
    fold = options["callback"] is None and not several
    elements, shape = _elements(op, b, x0, fold)
    extra = None if x0 is None or isinstance(x0, str) else as_array(x0)
    dtype = scipy_api.work_dtype(op, b, extra, None if word else M)
    rtol = _default_rtol(dtype) if options["rtol"] is None else float(options["rtol"])
    own = {**options, "rtol": rtol, "atol": float(options["atol"] or 0.0), "working": working}
    promise = promise or getattr(op, "assume_a", None)
    records: list[SolveRecord] = []
    if len(op.shape) > 2:
        together = batches.solved(op, b, M, method, own, dtype, promise, records)
        if together is not None:
            return together, records
    x = np.empty(shape, dtype)
    for part, side, start, at in elements:
        inverse = scipy_api.preconditioner(M[at] if several else M, part)
        side = np.ascontiguousarray(side, dtype)
        begin = scipy_api.first(start, side.shape, dtype, inverse, side)
        if not side.size:
            continue
        problem = _Problem(part, inverse, side, begin, own)
        with explain.noted(problem, records):
            records.append(_solved(problem, method, promise))
        if at is None:
            x[...] = np.moveaxis(problem.x.reshape(shape[-2], *shape[:-2], shape[-1]), 0, -2)
        else:
            x[at] = problem.x
    return x, records


_OPTIONS = ("rtol", "atol", "maxiter", "M", "x0", "callback", "progress")


def _options(given: dict[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(given) - set(_OPTIONS))
    if unknown:
        raise TypeError(
            f"solve() got an unexpected keyword argument {unknown[0]!r}; there are assume_a, "
            f"method, {', '.join(_OPTIONS)}"
        )
    return {name: given.get(name) for name in _OPTIONS}


def solve(A: Any, b: Any, assume_a: str | None, method: Any = "auto", **how: Any) -> Any:
    """``pl.solve`` with keywords."""
    from .._api import solve_det_norm
    from .._base import scipy_bridge
    from .._lazy import array

    options = _options(how)
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"no method {method!r}; there are {', '.join(METHODS)}")
    if method in ("auto", "direct"):
        _refuse(method, options)
        return (solve_det_norm.solve if method == "auto" else solve_det_norm.direct)(A, b, assume_a)
    lazy = solve_det_norm._is_lazy(A) or solve_det_norm._is_lazy(b)
    op = scipy_api.operator_of(A)
    if assume_a is not None:
        _core.Dense(np.empty((0, 0)), assume_a)  # is it one of the words?
        if not isinstance(A, _core.Operator):
            op = solve_det_norm.promised(A, op, assume_a)
        options["assume_a"] = assume_a
    if isinstance(b, _core.Operator):
        raise TypeError(f"method={method!r} takes an array b, got {type(b).__name__} {b.shape}")
    x, _ = iterate(
        op, sparse_arrays.as_dense(b) if scipy_bridge.issparse(b) else b, method, options
    )
    return array.lazy(x) if lazy else x


def instead(A: Any, b: Any, error: MemoryError, assume_a: str | None = None) -> Any:
    """What ``auto`` does where the dense form is too large: x to working accuracy, or the error."""
    nothing = {**_options({}), "assume_a": assume_a}
    op = scipy_api.operator_of(A)
    if isinstance(b, _core.Operator) or op.shape[-1] != op.shape[-2]:
        raise error
    try:
        return iterate(op, b, "iterative", nothing, working=True)[0]
    except errors.ConvergenceError as failed:
        text = f"{error}\nNor does an iterative method get there: {failed}"
        raise errors.MaterializationError(text) from failed
