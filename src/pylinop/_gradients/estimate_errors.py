"""The statistical errors of a value and its gradient where estimates are in them: half the width of
the interval that holds what infinitely many probes would give, each number by itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.checks import is_lazy
from .._lazy.leaves import lazy
from .._lazy.program import evaluate
from .._stochastic.estimate import quantile, spread
from . import estimates
from .pieces import pair, times
from .sweep import sweep
from .trace import Trace


def _samples(value: Any) -> list[Any]:
    """The nodes with samples that a value is made of."""
    found, seen, stack = [], set(), [value]
    while stack:
        x = stack.pop()
        if not is_lazy(x) or id(x) in seen:
            continue
        seen.add(id(x))
        if estimates.is_samples(x):
            found.append(x)
        stack += x._args
    return found


def _half_widths(of_each: Any, confidence: float) -> Any:
    """Of the sum of contributions of probes, along the last axis."""
    n = of_each.shape[-1]
    return quantile(confidence, n - 1) * n * spread(of_each)[1]


def errors(trace: Trace, value: Any) -> tuple[float, Any]:
    """The error of the value, and of the gradient, nested as the arguments. Estimates are taken for
    independent of each other, and what the value is of them for linear within their errors."""
    one = lazy(np.ones((), value.dtype))
    square, squares = 0.0, [np.zeros(()) for g in trace.gathered({}) for _ in g]
    for y in _samples(value):
        f, A = y._more[0], y._args[0]
        slope = sweep(value, {id(y): y}, one).get(id(y))
        if slope is None:
            continue
        c, s = evaluate(slope, y)
        square += float(_half_widths(c * s, f.confidence) ** 2)
        X, parts = estimates.solutions(y), []
        for k, z in enumerate(f.probes):
            G = times(pair(X[:, k], lazy(z)), float(c[k]))
            groups = trace.gathered(sweep(A, trace.wanted(), G))
            flat = [g for group in groups for g in group]
            parts.append([np.asarray(g) for g in (evaluate(*flat, one)[:-1])])
        for i, each in enumerate(zip(*parts, strict=True)):
            squares[i] = squares[i] + _half_widths(np.stack(each, -1), f.confidence) ** 2
    made, rest = [], [np.sqrt(x) for x in squares]
    for p, group in zip(trace.parameters, trace.gathered({}), strict=True):
        own, rest = rest[: len(group)], rest[len(group) :]
        wide = [np.broadcast_to(e, g.shape) for e, g in zip(own, group, strict=True)]
        made.append(p.finished(wide))
    return float(np.sqrt(square)), trace.shaped(made)
