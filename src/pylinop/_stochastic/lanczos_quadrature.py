"""x^H f(A) x by Lanczos quadrature, bracketed where the signs of f's derivatives and an end of the
spectrum are known; for many x at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._base.errors import LinAlgError
from . import lanczos_batch

_CHECKED = 5  # steps between two looks at the brackets
_LONG = 10_000  # rows from which there are 2 steps


class Function(NamedTuple):
    """A function of the eigenvalues.

    ``gauss`` is 1 where the Gauss rule is below the integral, -1 where it is above, 0 where nothing
    is known; the Radau rule at ``end`` (0 the low end, 1 the high one) is on the other side.
    ``positive`` says which eigenvalues the function needs: > 0 (1), >= 0 (0), or any (None)."""

    name: str
    call: Callable[[Any], Any]
    gauss: int = 0
    end: int = 0
    positive: int | None = None


def _entropy(w: Any) -> Any:
    return w * np.log(np.where(w > 0, w, 1))


# The signs of the 2 k-th derivative, and of the odd ones from the third.
FUNCTIONS = {
    "log": Function("log", np.log, -1, 0, 1),
    "inv": Function("inv", lambda w: 1 / w, 1, 0, 1),
    "sqrt": Function("sqrt", np.sqrt, -1, 0, 0),
    "entropy": Function("entropy", _entropy, 1, 0, 0),
    "exp": Function("exp", np.exp, 1, 1, None),
}


def function_of(f: Any) -> Function:
    """The Function with a name, or of any callable."""
    if isinstance(f, str):
        if f not in FUNCTIONS:
            raise ValueError(f"no function {f!r}; there are {', '.join(FUNCTIONS)}, and callables")
        return FUNCTIONS[f]
    if not callable(f):
        raise TypeError(f"function must be a name or callable, got {type(f).__name__}")
    return Function(getattr(f, "__name__", "function"), f)


class Sampled(NamedTuple):
    """The samples: ``low`` and ``high`` (..., k) around each x^H f(A) x. Where the bracket is not
    known they are equal, and ``sided`` is 1 (a lower bound), -1 (an upper bound) or 0."""

    low: Any
    high: Any
    bracketed: bool
    sided: int
    steps: int
    kept: bool
    products: int

    @property
    def mid(self) -> Any:
        return (self.low + self.high) / 2

    @property
    def half(self) -> Any:
        return (self.high - self.low) / 2


def slack(n: int, span: float) -> float:
    """How far rounding may move Ritz values of a spectrum as wide as span."""
    return 4 * lanczos_batch.EPS * max(16.0, float(np.sqrt(n))) * span


def _node(end: float, nodes: Any, n: int, f: Function) -> float:
    """The place of the Radau node: a little beyond the end, and beyond the Ritz values."""
    shift = max(1e-10 * abs(end), slack(n, float(np.abs(nodes).max(initial=0))))
    if f.end == 1:
        return max(end, float(nodes.max())) + shift
    low = float(nodes.min())
    node = min(end, low) - shift
    if f.positive is None or node > 0:
        return node
    return min(end, low) / 2 if f.positive == 1 else min(low, 0.0)


def _usable(f: Function, bounds: tuple[float | None, float | None]) -> float | None:
    end = bounds[f.end]
    if not f.gauss or end is None or not np.isfinite(end):
        return None
    if f.positive is not None and (end < 0 or (f.positive == 1 and end == 0)):
        return None
    return end


def _checked_nodes(w: Any, real: Any, f: Function, bounds: Any, op: Any) -> None:
    """Raises where Ritz values lie beyond the bounds, or outside the function's range."""
    least, largest = float(w[real].min(initial=np.inf)), float(w[real].max(initial=-np.inf))
    off = slack(op.shape[-1], max(abs(least), abs(largest))) if np.isfinite(least) else 0.0
    low, high = bounds
    for at, end, beyond, word in (
        (least, low, low is not None and least < low - off, "least"),
        (largest, high, high is not None and largest > high + off, "largest"),
    ):
        if beyond:
            raise ValueError(
                f"a Ritz value of {type(op).__name__} {op.shape} is {at:.6g}, beyond the bound "
                f"{end:.6g} of its {word} eigenvalue (or the operator is not Hermitian)"
            )
    if f.positive is not None and (least <= 0 if f.positive else least < -off):
        raise LinAlgError(
            f"{f.name} of an operator that is not positive "
            f"{'definite' if f.positive else 'semidefinite'}: {type(op).__name__} {op.shape} has a "
            f"Ritz value {least:.6g}"
        )


def _integral(rule: tuple[Any, Any], f: Function) -> Any:
    w, weight = rule
    real = weight > 0
    if f.positive is not None:
        w = np.where(real, np.maximum(w, 0), 1.0)
    value = np.asarray(f.call(w))
    if value.shape != w.shape:
        raise ValueError(f"function gave shape {value.shape} for {w.shape} eigenvalues")
    return np.where(real, value * weight, 0).sum(axis=-1)


def _wobble(rule: tuple[Any, Any], f: Function, low: float | None, n: int) -> tuple[Any, bool]:
    """How far rounding of the Ritz values may move the sums; False where that has no bound."""
    w, weight = rule
    real = weight > 0
    off = slack(n, float(np.abs(w[real]).max(initial=0)))
    down, known = w - off, True
    if f.positive is not None:
        least = 0.0 if f.positive == 0 else max(low or 0.0, 0.0)
        known = f.positive == 0 or least > 0 or bool((down[real] > 0).all())
        down = np.maximum(down, least if least > 0 or f.positive == 0 else w / 2)
        down, w = np.where(real, down, 1.0), np.where(real, w, 1.0)
    size = np.abs(np.asarray(f.call(w + off)) - np.asarray(f.call(down)))
    return np.where(real, size * weight, 0).sum(axis=-1), known


def _bracket(run: Any, f: Function, bounds: Any, end: float | None) -> tuple[Any, Any, bool]:
    """Bounds of each sum, and whether rounding leaves them valid."""
    if not np.isfinite(run.scale).all():
        nothing = np.full(run.scale.shape, np.nan)
        return nothing, nothing, True
    rule = run.gauss()
    real = rule[1] > 0
    _checked_nodes(rule[0], real, f, bounds, run.op)
    gauss = _integral(rule, f)
    off, known = _wobble(rule, f, bounds[0], run.op.shape[-1])
    if end is None or not real.any():
        return gauss - off, gauss + off, known
    at = _node(end, rule[0][real], run.op.shape[-1], f)
    radau = np.where(run.beta[-1] == 0, gauss, _integral(run.radau(at), f))
    mid, half = (gauss + radau) / 2, np.abs(gauss - radau) / 2
    return mid - half - off, mid + half + off, known


def check_hermitian(run: Any) -> None:
    """Raises where A is not Hermitian, by V^H A V, whose products are at hand."""
    c = run.gram
    if not np.isfinite(c).all():
        return
    off = np.abs(c - np.swapaxes(c, -1, -2).conj()).max(initial=0)
    if off > 1e-5 * run.image:
        raise LinAlgError(
            f"{type(run.op).__name__} {run.op.shape} is not Hermitian: unit vectors x, y give "
            f"x^H A y and (y^H A x)^* that differ by {off:.3g}"
        )


def sampled(
    op: Any, draw: Any, count: int, f: Function, bounds: Any, steps: int | None, goal: Any = None,
    watch: Callable[[Sampled], None] | None = None,
) -> Sampled:  # fmt: skip
    """x^H f(A) x of `count` probes, where ``draw(k)`` returns the next k as rows; ``watch`` is
    called with what is known so far.

    If ``steps`` is None, it goes on until the brackets (or, where there are none, the changes) are
    small beside the statistical error and a quarter of the goal, for `KEPT` steps at most."""
    end, n = _usable(f, bounds), op.shape[-1]
    most = min(n, lanczos_batch.KEPT if steps is None else steps)
    width = lanczos_batch.together(op, count, most + 6)
    keep = most <= lanczos_batch.KEPT and width > 0
    if not keep:
        width = max(lanczos_batch.together(op, count, 8), 1)
    done: list[Sampled] = []
    taken, run = 0, None
    while taken < count:
        run = lanczos_batch.Run(op, draw(min(width, count - taken)), keep, run)
        last: Any = None
        while True:
            # looking costs as much as a step with some thousand rows
            ahead = _CHECKED if n < _LONG or last is None else 2
            ahead = most if steps is not None and watch is None else len(run.alpha) + ahead
            run.steps(min(most, ahead))
            if last is None:
                check_hermitian(run)
            low, high, known = _bracket(run, f, bounds, end)
            whole = keep and bool((run.beta[-1] == 0).all())
            known = known and (end is not None or whole)
            made = len(run.alpha)
            now = Sampled(low, high, known, f.gauss, made, keep, low.shape[-1] * made)
            if watch is not None:
                watch(_joined([*done, now]))
            if now.steps >= most or (steps is None and _settled(low, high, last, end, goal)):
                break
            last = high
        done.append(now)
        taken += low.shape[-1]
    return _joined(done)


def _joined(parts: list[Sampled]) -> Sampled:
    low, high = (np.concatenate([getattr(p, x) for p in parts], -1) for x in ("low", "high"))
    return Sampled(
        low, high, all(p.bracketed for p in parts), parts[0].sided, max(p.steps for p in parts),
        parts[0].kept, sum(p.products for p in parts),
    )  # fmt: skip


def _settled(low: Any, high: Any, last: Any, end: float | None, goal: Any) -> bool:
    """Is the error of the quadrature small enough beside the statistical error?"""
    if end is not None:
        width = (high - low).mean(axis=-1) / 2
    elif last is None:
        return False
    else:
        width = np.abs((high - last).mean(axis=-1))
    mid = (low + high) / 2
    small = mid.std(axis=-1) / np.sqrt(mid.shape[-1]) / 10
    if goal is not None:
        small = np.minimum(small, goal / 4)
    return bool(np.all(~(width > np.maximum(small, 1e-12 * np.abs(mid.mean(axis=-1))))))
