"""log det of a LazyArray by stochastic Lanczos quadrature: the mean of its samples, deferred, so
that it has a derivative (`_gradients.estimates`). The probes are drawn when it is written: value
and derivative are of the same ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._base import errors
from .._base.lazy_import import Later
from . import estimators
from .sampling import Ask

_quadrature = Later("_stochastic.lanczos_quadrature")


class Samples:
    """z^H log(A) z of each of the probes z, the rows of an array."""

    def __init__(self, probes: Any, bounds: Any, steps: int | None, confidence: float) -> None:
        self.probes, self.bounds, self.steps = probes, bounds, steps
        self.confidence = confidence
        self.__name__ = "logdet(method='slq')"

    def __call__(self, form: Any) -> Any:
        rest = self.probes

        def draw(count: int) -> Any:
            nonlocal rest
            taken, rest = rest[:count], rest[count:]
            return taken

        if 0 in form.shape:
            return np.zeros(len(self.probes))
        bounds, f = estimators.bounds_of(form, self.bounds), _quadrature.function_of("log")
        return _quadrature.sampled(form, draw, len(self.probes), f, bounds, self.steps).mid

    def __reduce__(self) -> Any:
        return Samples, (self.probes, self.bounds, self.steps, self.confidence)


def logdet(A: Any, bounds: Any = None, steps: Any = None, **how: Any) -> Any:
    """The mean of the samples of a LazyArray."""
    n = A.shape[-1]
    if A.ndim != 2 or A.shape[0] != n:
        raise errors.LinAlgError(
            f"logdet(method='slq') of a LazyArray takes a square matrix, got shape {A.shape}"
            + errors.built(A)
        )
    wrong = [k for k in ("rtol", "atol", "max_samples", "callback", "progress") if how.get(k)]
    if wrong:
        raise TypeError(
            f"{', '.join(wrong)}: an estimate that is computed later takes num_samples= probes, "
            "which it cannot add to; give an operator, or use pl.estimate_logdet"
        )
    with Ask("estimate_logdet", _core.Identity(n), **how) as ask:
        probes = ask.probes(ask.number(30))
        samples = Samples(probes, bounds, steps, ask.confidence)
    made = _core._LazyArray("of form", (A,), (len(probes),), np.dtype(float), (samples, {}))
    return np.mean(made)
