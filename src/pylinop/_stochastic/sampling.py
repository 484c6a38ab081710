"""What the estimates share: checking arguments, sampling until there are enough, reporting
progress."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypedDict

import numpy as np

from .._base.checks import square
from .._base.config import near
from .._base.lazy_import import Later
from .._base.progress import Meter
from .._operators.convert import as_operator
from . import estimate
from .estimate import Estimate

_lanczos = Later("_stochastic.lanczos_batch")
_MOST = 10_000  # probes that a tolerance may ask for, unless said


class Sampling(TypedDict, total=False):
    """The arguments that all estimates from random probes take."""

    num_samples: int | None
    rtol: float | None
    atol: float | None
    rng: np.random.Generator | int | None
    confidence: float
    max_samples: int | None
    callback: Callable[[Estimate], Any] | None
    progress: bool | Callable[[int, float], Any] | None


def operand(A: Any, what: str) -> Any:
    """The argument as a square operator, of numbers that C computes with."""
    op = square(as_operator(A))
    if op.dtype is None or op.dtype.kind not in "biufc":
        raise TypeError(
            f"{what} takes operators of integers, float32, float64, complex64 and complex128; "
            f"this {type(op).__name__} {op.shape} has another dtype"
        )
    return op


class Ask(Meter):
    """The arguments that all estimates share, checked. Use it in a ``with``, which closes the
    bar."""

    def __init__(
        self,
        name: str,
        A: Any,
        *,
        num_samples: Any = None,
        rtol: float | None = None,
        atol: float | None = None,
        rng: Any = None,
        confidence: float = 0.95,
        max_samples: Any = None,
        callback: Any = None,
        progress: Any = None,
        **wrong: Any,
    ) -> None:
        if wrong:
            word = next(iter(wrong))
            text = f"{name}() got an unexpected keyword argument {word!r}"
            raise TypeError(text + near(word, Sampling.__annotations__))
        self.op = operand(A, name)
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}")
        for word, tol in (("rtol", rtol), ("atol", atol)):
            if tol is not None and not tol >= 0:
                raise ValueError(f"{word} must be >= 0, got {tol!r}")
        self.samples, self.confidence = num_samples, confidence
        self.rtol, self.atol = rtol, atol
        self.most = _MOST if max_samples is None else count_of("max_samples", max_samples, 1)
        self.rng = np.random.default_rng(rng)
        super().__init__(name, "error", callback, progress)

    def tell(self, products: int, value: Any, error: Any, bias: Any, **more: Any) -> None:
        """Reports how far the estimate is, to the user's callback and to the progress bar."""
        self.count(products, float(np.max(error + (0.0 if bias is None else bias), initial=0)))
        if self.callback is not None:
            value, error, bias = (scalar(x) for x in (value, error, bias))
            self.callback(
                Estimate(
                    value, error, bias=bias, confidence=self.confidence, matvecs=products, **more
                )
            )

    def tell_samples(self, products: int, mid: Any, half: Any, **more: Any) -> None:
        """Reports the samples so far; ``known`` is added to their mean."""
        if not self.watched:
            return
        n = mid.shape[-1]
        mean, se = estimate.spread(mid)
        se = se + _root_mean(half) / math.sqrt(n)
        error = np.full(se.shape, np.inf)
        if n > 1:
            error = estimate.quantile(self.confidence, n - 1) * se
        bias = half.mean(axis=-1) if more.pop("bracketed", True) else None
        self.tell(products, more.pop("known", 0.0) + mean, error, bias, samples=n, **more)

    @property
    def tolerant(self) -> bool:
        return self.rtol is not None or self.atol is not None

    def goal(self, value: Any) -> Any:
        """The error that is allowed for each number."""
        return np.maximum(self.atol or 0.0, (self.rtol or 0.0) * np.abs(value))

    def probes(self, count: int) -> Any:
        """Random signs, as rows; the same however many are drawn at once."""
        n = self.op.shape[-1]
        words = self.rng.integers(0, 2**64, (count, -(-n // 64)), np.uint64)
        return np.unpackbits(words.view(np.uint8), axis=-1, count=n) * 2.0 - 1.0

    def number(self, count: int, least: int = estimate.LEAST) -> int:
        return count if self.samples is None else count_of("num_samples", self.samples, least)


def count_of(name: str, value: Any, least: int) -> int:
    n = int(value.__index__()) if hasattr(value, "__index__") else None
    if n is None or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if n < least:
        raise ValueError(f"{name} must be at least {least}, got {n}")
    return n


def scalar(x: Any) -> Any:
    """A Python number in place of an array without dimensions."""
    return x.item() if isinstance(x, np.generic | np.ndarray) and x.ndim == 0 else x


def exactly(ask: Ask, value: Any, method: str, matvecs: int, bias: Any = 0.0) -> Estimate:
    zero = np.zeros(np.shape(value))
    return Estimate(
        scalar(np.asarray(value)), scalar(zero), bias=scalar(zero + bias), error_kind="exact",
        confidence=ask.confidence, matvecs=matvecs, method=method,
        met=bool(np.all(bias <= ask.goal(value))) if ask.tolerant else None,
    )  # fmt: skip


# -- sampling until there are enough --


def enough(ask: Ask, taken: int, mean: Any, error: Any, bias: Any) -> int:
    """How many samples in all bring the error below the goal (Stein's second stage)."""
    left = ask.goal(np.maximum(np.abs(mean) - error, 0)) - bias
    with np.errstate(divide="ignore", invalid="ignore"):
        need = np.where(error > 0, taken * (error / np.maximum(left, 0)) ** 2 * 1.05, 0)
    worst = float(np.max(need, initial=0))
    return ask.most if not worst < ask.most else max(taken, math.ceil(worst))


def in_two_stages(ask: Ask, count: int, take: Callable[[int, Any], Any]) -> Any:
    """(samples (..., N), half-widths of their brackets, error) of `count` samples and as many more
    as the tolerance needs. The spread of the first ones, with their quantile, decides how many, so
    that the interval keeps its confidence (Stein, 1945). ``take(k, goal)`` returns k more."""
    mid, half = take(count, None)
    t = estimate.quantile(ask.confidence, count - 1)
    mean, se = estimate.spread(mid)
    more = 0
    if ask.tolerant:
        bias = half.mean(axis=-1)
        more = min(enough(ask, count, mean, t * se, bias), ask.most) - count
    if more <= 0:
        return mid, half, t * (se + _root_mean(half) / math.sqrt(count))
    rest = take(more, ask.goal(mean))
    mid, half = (np.concatenate(pair, -1) for pair in zip((mid, half), rest, strict=True))
    n = count + more
    first = se * math.sqrt(count) + _root_mean(half)
    return mid, half, t * first / math.sqrt(n)


def _root_mean(half: Any) -> Any:
    """An upper bound on std(true samples) - std(bracket midpoints)."""
    n = half.shape[-1]
    return np.sqrt((half**2).sum(axis=-1) / max(n - 1, 1))


def rounding(ask: Ask, size: Any) -> Any:
    """An allowance for rounding in sums whose moduli add up to `size`."""
    return 2 * math.sqrt(max(ask.op.shape[-1], 1)) * _lanczos.EPS * size


def judged(ask: Ask, value: Any, error: Any, bias: Any, **more: Any) -> Estimate:
    met = None
    if ask.tolerant:
        met = bias is not None and bool(np.all(error + bias <= ask.goal(value)))
    value, error, bias = (scalar(x) for x in (value, error, bias))
    e = Estimate(value, error, bias=bias, confidence=ask.confidence, met=met, **more)
    estimate.say_unmet(e, ask.goal(value))
    return e
