"""Solves that go by iteration because that is the cheaper way at the same accuracy.

    price of the factor's plan  >  3 x (products that are granted x price of one)
                                        |
         method on [b, a probe], bounded products --> true residual at working accuracy? --> x
                                        | no
                                  the plan as it is

A Hermitian sum with Kronecker products is preconditioned by one Kronecker product near it, where
making that and its products leave as much of what is granted.

Everything is decided by the planner's prices and by counts of products, so that the same call goes
the same way whatever ran before. The core asks where a plan makes a dense form that nobody asked
for (py/run/py_by_price.c). A try that fails has cost a third of the factor at most, and an eighth
of that where the first products show that all of them would not do.

Beside the right sides a vector of signs is solved with. Where A is singular, or so near to it that
a factor would warn, that solution does not come or is huge, and the factor's plan runs, which knows
what to say: a consistent right side alone would not show it. (The growth of such a vector is the
test of LINPACK's condition estimate: Cline, Moler, Stewart and Wilkinson, SIAM J. Numer. Anal. 16,
1979, section 2.)"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _core
from .._base import config
from .._operators.parameters import written
from .._precondition.structured import kronecker
from .._precondition.terms import terms
from .._structured.operands import factors_of
from . import record, solve
from .memory import memory_of
from .problem import Problem, norms, options_of, power_of_two

if TYPE_CHECKING:
    from collections.abc import Callable

_SHARE = 3  # a try costs one part in so many of the factor, at the most
_LOOK = 8  # and one part in so many of that before the first look at how it goes
_LEAST_DENSE, _LEAST_SECONDS = 1 << 20, 5e-3  # as in py_by_price.c
_LEAST = 24  # products that are worth a try
_COLUMNS = 64  # right sides at once, at the most
_PASSES = 6
_PROBE = 1e-5  # residual of the probe
_GROWN = 1e-5  # of 1 / eps: how far the probe may grow
_HOPE = 3  # how much better than its first products promise a method may do
_BASES = 40.0  # n^3 of gemm's flops that eigenvectors, or singular ones, of n rows take
_busy = threading.local()


class Offer(NamedTuple):
    """What iterating is granted: products, each at that price, and what the factor costs."""

    products: int
    each: float
    direct: float


def _vectors(k: int, p: Any, hermitian: bool) -> float:
    """Seconds that the vectors of an iteration take."""
    passes = 12 if hermitian else 80
    return float(passes * k * p.n * p.dtype.itemsize / _core._costs()["bandwidth"])


def _product(op: Any, wide: Any) -> float:
    """Seconds of one product; what is kept (spectra) is made once."""
    steps = op._explain(0, wide, 0, 0)["steps"]
    return float(sum(s["seconds"] for s in steps if not (s["kept"] or s["conditional"])))


def offer(op: Any, b: Any, direct: float) -> Offer:
    """How many products with [b, a probe] may be tried in place of a plan of that price."""
    wide = np.empty((b.shape[0], (1 if b.ndim == 1 else b.shape[1]) + 1), b.dtype)
    each = _product(op, wide) + _vectors(wide.shape[1], _Size(b), True)
    return Offer(int(direct / _SHARE / each), each, direct)


def offered(op: Any, b: Any, plan: Any) -> Offer | None:
    """The offer that a solve of that plan begins with; None where it does not."""
    if not config.get("iterate") or plan is None or not fits(op, b):
        return None
    if plan._data["unasked"] < _LEAST_DENSE or plan.seconds < _LEAST_SECONDS:
        return None
    found = offer(op, b.astype(np.result_type(op.dtype, b.dtype), copy=False), plan.seconds)
    return found if found.products >= _LEAST else None


class _Size:
    def __init__(self, b: Any) -> None:
        self.n, self.dtype = b.shape[0], b.dtype


def signs(n: int, dtype: Any) -> Any:
    """Signs in an order that no structure has."""
    bits = (np.arange(n, dtype=np.uint64) * np.uint64(2654435761) >> np.uint64(16)) & np.uint64(1)
    return (1.0 - 2.0 * bits).astype(dtype)


def fits(op: Any, b: Any) -> bool:
    """Could this solve go by iteration at all?"""
    kind = "" if op.dtype is None else op.dtype.kind
    if kind not in "fc" or b.dtype.kind not in "fc" or op._opaque or op.ndim != 2:
        return False
    columns = 1 if b.ndim == 1 else b.shape[1]
    return b.ndim in (1, 2) and 0 < columns <= _COLUMNS and op.shape[0] == b.shape[0]


def iterated(inverse: Any, x: Any, act: int, seconds: float) -> Any:
    """inverse @ x (or x @ inverse, and their views and multiples) by iteration; None: run the plan.
    A hook of the core's: `act` is the mode of the view, plus 4 from the right."""
    right = bool(act & 4)
    mode, times, outer = (act & 3) ^ (1 if right else 0), list[Any](), inverse.dtype
    while written(inverse, "view", "scaled"):
        if inverse._by == "view":
            inverse, mode = inverse._operands[0], mode ^ inverse._mode
        else:  # within views that conjugate: of the multiple, too
            inverse, c = inverse._operands
            times.append(c.conjugate() if mode & 2 else c)  # a weak number stays so
    if not written(inverse, "inverse") or outer is None or inverse.dtype is None:
        return None
    if times and np.result_type(outer, np.complex64) != np.result_type(inverse.dtype, np.complex64):
        return None  # a multiple that widens widens the solve, too
    if not config.get("iterate") or getattr(_busy, "on", False) or "_direct" in vars(inverse):
        return None
    op, b = inverse._operands[0], x
    if right and b.ndim == 2:
        b = b.T
    if not fits(op, b):
        return None
    _busy.on = True
    try:
        found = _tried(op, mode, b, seconds)
    finally:
        _busy.on = False
    if found is None:
        return None
    for c in reversed(times):
        found = found * c
    return np.ascontiguousarray(found.T) if right and x.ndim == 2 else found


def part_iterated(part: Any, element: int, i: int, j: int) -> Any:
    """Entry i, j, or the dense form of a slice, of an inverse (its views and multiples) as a
    product with unit vectors, which may go by iteration; None: run the plan. A hook of the
    core's."""
    if not config.get("iterate") or getattr(_busy, "on", False):
        return None
    inverse, steps = part._operands if written(part, "sliced") else (part, ())
    if any(step[0] > 1 for step in steps) or inverse._head == "sliced":
        return None
    taken = {step[0]: step[1] if len(step) == 2 else _range(step) for step in steps}
    rows, columns = (taken.get(axis, np.arange(inverse.shape[axis])) for axis in (0, 1))
    if element:
        return np.asarray((inverse @ _units(columns[j : j + 1], inverse))[rows[i], 0])
    if not 0 < min(len(rows), len(columns)) <= _COLUMNS:
        return None
    if len(columns) <= len(rows):
        return np.ascontiguousarray((inverse @ _units(columns, inverse))[rows])
    return np.ascontiguousarray((_units(rows, inverse).T @ inverse)[:, columns])


def product_iterated(op: Any, x: Any, act: int, seconds: float) -> Any:
    """A product with inverses times x (None: its dense form, where it has few columns or rows),
    factor by factor, where one of its solves may go by iteration; None: run the plan. A hook of
    the core's."""
    if not config.get("iterate") or getattr(_busy, "on", False) or act not in (0, 8):
        return None
    terms = _parts(op, "sum")
    if len(terms) > 1:
        return None if x is None else _sum_iterated(op, terms, x, seconds)
    factors = _parts(op, "prod")
    right = x is None and factors[-1].shape[1] > _COLUMNS
    if x is None:
        x = factors.pop(0 if right else -1)
    columns = (x.shape[0] if right else x.shape[1]) if x.ndim == 2 else 1
    if x.dtype is None or op.dtype is None:
        return None
    dtype = np.result_type(op.dtype, x.dtype)
    if dtype.kind == "c" and x.dtype.kind == "f":
        dtype = np.empty(0, dtype).real.dtype
    if not 0 < columns <= _COLUMNS or dtype.kind not in "fc":
        return None
    if not any(_is_offered(f, columns, dtype, seconds) for f in factors):
        return None
    y = np.asarray(x.toarray() if isinstance(x, _core.Operator) else x).astype(dtype, copy=False)
    for f in factors if right else reversed(factors):
        y = y @ f if right else f @ y
    return np.ascontiguousarray(y)


def _sum_iterated(op: Any, terms: list[Any], x: Any, seconds: float) -> Any:
    """Term by term, where a solve in one of them may go by iteration; None: run the plan."""
    columns = x.shape[1] if x.ndim == 2 else 1
    if op.dtype is None:
        return None
    dtype = np.result_type(op.dtype, x.dtype)
    if not 0 < columns <= _COLUMNS or x.dtype.kind not in "fc" or dtype.kind not in "fc":
        return None
    factors = [f for term in terms for f in _parts(term, "prod")]
    if not any(_is_offered(f, columns, dtype, seconds) for f in factors):
        return None
    parts = [np.asarray(term @ x) for term in terms]
    return np.ascontiguousarray(sum(parts[1:], start=parts[0]).astype(dtype, copy=False))


def _parts(op: Any, how: str) -> list[Any]:
    """The factors of a product ("prod") or the terms of a sum as they are written, with the views
    of what is within them."""
    found, stack = [], [(op, 0)]
    while stack:
        f, mode = stack.pop()
        inner, seen = f, mode
        while written(inner, "view"):
            inner, seen = inner._operands[0], seen ^ inner._mode
        if written(inner, how):
            parts = [(g, seen) for g in inner._operands]
            stack += parts[::-1] if how == "prod" and seen & 1 else parts
        else:
            found.append((f, f.T, f.conj(), f.H)[mode] if mode else f)
    return found[::-1]


def is_offered_of(inverses: list[Any], unasked: int, seconds: float) -> bool:
    """Would solves with one of these be tried in place of a plan that makes so much dense?"""
    if not config.get("iterate") or getattr(_busy, "on", False):
        return False
    if unasked < _LEAST_DENSE or seconds < _LEAST_SECONDS:
        return False
    return any(_is_offered(f, 1, f.dtype, seconds) for f in inverses)


def _is_offered(op: Any, columns: int, dtype: Any, seconds: float) -> bool:
    """Is this an inverse whose solves with so many columns would be tried?"""
    while written(op, "view", "scaled"):
        op = op._operands[0]
    if not written(op, "inverse") or "_direct" in vars(op):
        return False
    b = np.empty((op.shape[0], columns), np.result_type(op.dtype, dtype))
    of = op._operands[0]
    return fits(of, b) and offer(of, b, seconds).products >= _LEAST


def _range(step: tuple[int, int, int, int]) -> Any:
    _, start, by, count = step
    return start + by * np.arange(count)


def _units(places: Any, op: Any) -> Any:
    """A column for each place of a square op, with a one there."""
    made = np.zeros((op.shape[0], len(places)), op.dtype)
    made[places, np.arange(len(places))] = 1
    return made


def _tried(of: Any, mode: int, b: Any, seconds: float) -> Any:
    op = (of, of.T, of.conj(), of.H)[mode]
    dtype = np.result_type(op.dtype, b.dtype)
    given = offer(op, b.astype(dtype, copy=False), seconds)
    if given.products < _LEAST:
        return None
    sides = b[:, None] if b.ndim == 1 else b
    B = np.empty((sides.shape[0], sides.shape[1] + 1), dtype)
    B[:, :-1] = sides
    B[:, -1] = signs(len(B), dtype)
    p = Problem(op, None, B, np.zeros_like(B), {**options_of({}), "working": True})
    p.said = (op, b)
    if not np.isfinite(p.bnorm).all():
        return None
    done = solve.SolveRecord("cg", 0.0, p.working)
    records: list[Any] = []
    with record.noted(p, records):
        begin = time.perf_counter()
        x = _solved(p, done, given, lambda most: _near(of, mode, most))
        done.matvecs, done.time = p.products, time.perf_counter() - begin
        records.append(done)
    if x is None:
        return None
    return np.ascontiguousarray(x[:, 0] if b.ndim == 1 else x[:, :-1])


def _solved(p: Any, done: Any, given: Offer, near: Callable[[float], tuple[Any, float]]) -> Any:
    """The solution; None where the methods, within what is granted, do not reach it."""
    hermitian = solve._looks_hermitian(p)
    what = "" if hermitian else "not "
    done.why = (
        f"{given.products:,} products at {given.each:.2g} s are less than the factor's "
        f"{given.direct:.2g} s; A is {what}Hermitian, by two pairs of vectors"
    )
    if not hermitian:  # its vectors take longer
        each = given.each + _vectors(p.b.shape[1], p, False)
        given = given._replace(products=int(given.direct / _SHARE / each), each=each)
        if given.products < _LEAST:
            done.tried.append(("gmres", "its vectors cost too much"))
            return None
    else:
        given = _preconditioned(p, near, given)
    limit = config.get("memory_limit")
    for name in ("cg", "minres") if hermitian else ("gmres",):
        done.method = name
        done.memory = memory_of(name, p)
        if limit is not None and done.memory > limit:
            return None
        why = _one(name, p, done, given)
        done.tried.append((name, why))
        if not why:
            done.criterion = "backward error"
            return p.x
        if why in (_TOO_NEAR, _TOO_SLOW):
            break
    return None


_TOO_NEAR = "A is near to singular"
_TOO_SLOW = "the first products promise too little"


def _preconditioned(p: Any, near: Callable[[float], tuple[Any, float]], given: Offer) -> Offer:
    """Gives p a preconditioner where there is one, and what it leaves of the offer: all where there
    is none, or where too few products would be left."""
    M, making = near(given.direct / _SHARE - _LEAST * given.each)
    if M is None:
        return given
    each = given.each + _product(M, p.b)
    found = given._replace(products=int((given.direct / _SHARE - making) / each), each=each)
    if found.products < _LEAST:
        return given
    p.M = M
    return found


def _near(op: Any, mode: int, most: float) -> tuple[Any, float]:
    """The inverse of a Kronecker product near a view of a sum that has one, or of a multiple of it,
    positive definite, and what making it costs; None where there is none, or where that is more
    than `most` seconds.

    Of -op where that is the definite one, which minres can use."""
    times: Any = 1.0
    while written(op, "view", "scaled"):
        if op._by == "view":
            op, mode = op._operands[0], mode ^ op._mode
        elif np.imag(op._operands[1]):  # of what is Hermitian it is not
            return None, 0.0
        else:
            op, times = op._operands[0], times * np.real(op._operands[1])
    if times != 1.0:
        op = float(times) * op
    sizes = next(
        ([f.shape[-1] for f in factors_of(a)] for _, a in terms(op) if a._head == "kron"), []
    )
    making = _BASES * sum(n**3 for n in sizes) / _core._costs()["gemm_rate"]
    if not sizes or making > most:
        return None, 0.0
    turned = mode in (1, 2) and op.dtype.kind == "c"  # M is Hermitian: its transpose, conjugated
    for signed in (op, -op):
        quiet = np.errstate(all="ignore")  # factors that are singular end as a LinAlgError
        with contextlib.suppress(np.linalg.LinAlgError, MemoryError), quiet:
            M: Any = kronecker(signed)
            if M.proposal.positive:
                seen = M.conj() if turned else M
                vars(seen)["proposal"] = M.proposal
                return seen, making
    return None, 0.0


def _one(name: str, p: Any, done: Any, given: Offer) -> str:
    """Brings p.x to working accuracy by one method; '' where it is, otherwise what ended it."""
    norm = p.norm()
    aim = np.full(p.b.shape[1], 2 * p.eps)
    accept = np.full(p.b.shape[1], min(p.working, np.sqrt(p.n) * p.eps))
    x = p.x = np.zeros_like(p.b)
    r, size = p.b.copy(), p.bnorm
    first = True
    for _ in range(_PASSES):
        goal = aim * (norm * norms(x) + p.bnorm)
        goal[-1] = _PROBE * p.bnorm[-1]
        on = np.flatnonzero(~(size <= goal))
        left = given.products - p.products
        if not on.size or left <= 0:
            break
        most = max(int(left / _LOOK), _LEAST) if first else left
        scale = power_of_two(float(size[on].max()))
        goals = scale * np.maximum(0.5 * goal, 2 * p.eps * size)[on]
        part = np.ascontiguousarray(r[:, on]) * p.dtype.type(scale)
        d, answer = solve._pass(name, p, part, goals, min(most, left), None)
        p.products += answer[2]
        done.iterations += answer[1]
        done.passes += 1
        done.residuals = np.concatenate([done.residuals, answer[4] / scale])
        y = x.copy()
        y[:, on] += d / p.dtype.type(scale)
        new_r = p.residual(y)
        new = norms(new_r)
        better = new < size
        gained = new <= 0.5 * size
        x, r = np.where(better, y, x), np.where(better, new_r, r)
        before, size = size, np.where(better, new, size)
        if answer[5] and not gained[on].any():
            break  # it broke down: p^H A p was not positive
        left = given.products - p.products
        if first and _hopeless(before[on], size[on], goal[on], answer[1], left):
            return _TOO_SLOW
        if not gained[on].any():
            break
        first = False
    below = norm * norms(x) + p.bnorm
    with np.errstate(divide="ignore", invalid="ignore"):
        eta = np.where(size == 0, 0.0, size / below)
    done.backward_error = float(eta[:-1].max(initial=0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        done.residual = float(np.where(size == 0, 0.0, size / p.bnorm)[:-1].max(initial=0.0))
    if not (size[-1] <= _PROBE * p.bnorm[-1]):
        return "the vector of signs is not solved with"
    if not norms(x)[-1] * norm <= _GROWN / p.eps * p.bnorm[-1]:
        return _TOO_NEAR
    if not (eta[:-1] <= accept[:-1]).all():
        return f"the backward error is {done.backward_error:.2g}"
    p.x = x
    return ""


def _hopeless(before: Any, after: Any, goal: Any, taken: int, left: int) -> bool:
    """Will the columns not be there in what is left, at three times the pace so far?"""
    with np.errstate(divide="ignore", invalid="ignore"):
        pace = np.log(before / after) / max(taken, 1)
        needed = np.where(after <= goal, 0.0, np.log(after / goal) / pace)
    return not (needed <= _HOPE * left).all()
