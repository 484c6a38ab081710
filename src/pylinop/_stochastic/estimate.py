"""An estimate has a value, a statistical error, a bound of its bias, and the interval of both.

Independent, identically distributed samples x_1, ..., x_N have the mean m and the standard error s
/ N^(1/2). At the stated confidence the expected value lies within t s / N^(1/2) of m, where t is
Student's quantile with N - 1 degrees of freedom. The bias is the error that more samples do not
remove: the brackets of a quadrature, and rounding."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from .._base import errors

LEAST = 10  # probes: with fewer the quantile means little


def _student_cdf(t: float, df: int) -> float:
    """P(|T| <= t), the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    angle = math.atan2(t, math.sqrt(df))
    c2, s = math.cos(angle) ** 2, math.sin(angle)
    term, total = 1.0, 1.0
    if df % 2 == 0:
        for i in range(1, df // 2):
            term *= c2 * (2 * i - 1) / (2 * i)
            total += term
        return s * total
    for i in range(1, (df - 1) // 2):
        term *= c2 * (2 * i) / (2 * i + 1)
        total += term
    rest = s * math.cos(angle) * total if df > 1 else 0.0
    return 2 / math.pi * (angle + rest)


def quantile(confidence: float, df: int) -> float:
    """The t with P(|T| <= t) = confidence, of Student's distribution.

    By its expansion in 1 / df (Abramowitz and Stegun, 26.7.5), then Newton's steps."""
    from statistics import NormalDist  # which takes a while to import

    z = NormalDist().inv_cdf((1 + confidence) / 2)
    t = z + (z**3 + z) / (4 * df) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)
    t += (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * df**3)
    if df > 2000:  # the terms left out are below 1e-12 there
        return t
    log = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - math.log(df * math.pi) / 2
    for _ in range(8):
        density = math.exp(log - (df + 1) / 2 * math.log1p(t * t / df))
        step = (_student_cdf(t, df) - confidence) / (2 * density)
        t -= step
        if abs(step) <= 1e-12 * t:
            break
    return t


def spread(samples: Any) -> tuple[Any, Any]:
    """Mean and standard error of samples along the last axis; for complex ones the larger of the
    errors of the two parts."""
    n = samples.shape[-1]
    mean = samples.mean(axis=-1)
    off = samples - mean[..., None]
    if np.iscomplexobj(off):
        s2 = np.maximum((off.real**2).sum(axis=-1), (off.imag**2).sum(axis=-1))
    else:
        s2 = (off**2).sum(axis=-1)
    return mean, np.sqrt(s2 / (max(n - 1, 1) * n))


def _is_number(x: Any) -> bool:
    """A number, or an array of them?"""
    return isinstance(x, (int, float, complex, np.number)) or (
        isinstance(x, np.ndarray) and x.dtype.kind in "biufc"
    )


def _figures(x: Any, digits: int) -> str:
    if isinstance(x, complex):
        return f"{x.real:.{digits}g}{x.imag:+.{digits}g}j"
    return f"{x:.{digits}g}"


class Estimate:
    """A number (or array of numbers) estimated from random probes, with its accuracy.

    `pylinop.estimate_trace` and similar functions return it. ``float(e)`` is the value. Sums with
    numbers and multiples are estimates, with the error that follows; so are sums of two, whose
    errors are added, at the confidence that both hold.

    Attributes
    ----------
    value : number or ndarray
        The estimate.
    error : float or ndarray
        The statistical error: the half-width of the interval that holds the mean of infinitely many
        probes at the stated confidence. For complex values, that of either part.
    confidence : float
        The confidence of each number by itself, where there are several.
    error_kind : {'t', 'heuristic', 'exact'}
        Student's quantile of independent samples; a rule of thumb for samples that are not
        independent (XTrace); nothing was random.
    bias : float, ndarray or None
        A bound of the error that more probes would not remove; None: unknown.
    interval : tuple
        (low, high), from value, error and bias together. It is infinite on a side where nothing is
        known of the bias. For complex values these are two corners of a rectangle.
    samples, matvecs : int
        The numbers of random probes, and of products with one vector.
    steps : int
        Steps of Lanczos a probe, at most; 0 where there are none.
    bounds : tuple or None
        The (low, high) bounds of the spectrum that were used; None for one that is not known.
    method : str
    met : bool or None
        Whether the tolerance was met; None where none was given.
    points : ndarray or None
        Where the values belong, if they are those of a function (`spectral_density`).
    info : dict
        More about the estimate: why a method was chosen, and the alternatives.
    """

    def __init__(
        self,
        value: Any,
        error: Any,
        *,
        confidence: float = 0.95,
        error_kind: str = "t",
        bias: Any = None,
        samples: int = 0,
        matvecs: int = 0,
        steps: int = 0,
        bounds: Any = None,
        method: str = "",
        met: bool | None = None,
        points: Any = None,
        info: dict[str, Any] | None = None,
        sides: tuple[Any, Any] | None = None,
    ) -> None:
        self.value, self.error = value, error
        self.confidence, self.error_kind, self.bias = confidence, error_kind, bias
        self.samples, self.matvecs, self.steps = samples, matvecs, steps
        self.bounds, self.method, self.met, self.points = bounds, method, met, points
        self.info: dict[str, Any] = info or {}
        self.interval: tuple[Any, Any] = self._interval() if sides is None else sides

    def _interval(self) -> tuple[Any, Any]:
        off = self.error + (np.inf if self.bias is None else self.bias)
        if np.iscomplexobj(self.value):
            off = off + 1j * off
        return self.value - off, self.value + off

    def __float__(self) -> float:
        return float(self.value)

    def __complex__(self) -> complex:
        return complex(self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.value, dtype=dtype)

    # -- arithmetic: value, error, bias and interval go along

    def _of(self, value: Any, error: Any, bias: Any, sides: Any, other: Any = None) -> Estimate:
        """An estimate of what is made of this one, and of another."""
        both = [self] if other is None else [self, other]
        kinds = {e.error_kind for e in both} - {"exact"}
        kind = kinds.pop() if len(kinds) == 1 else "heuristic" if kinds else "exact"
        return Estimate(
            value, error, bias=bias, sides=sides,
            confidence=max(0.0, 1 - sum(1 - e.confidence for e in both)),
            error_kind=kind,
            samples=sum(e.samples for e in both), matvecs=sum(e.matvecs for e in both),
            steps=max(e.steps for e in both), bounds=self.bounds if other is None else None,
            method=" + ".join(dict.fromkeys(e.method for e in both)),
            points=self.points, info=dict(self.info),
        )  # fmt: skip

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Estimate):
            none = self.bias is None or other.bias is None
            low, high = (x + y for x, y in zip(self.interval, other.interval, strict=True))
            return self._of(
                self.value + other.value,
                self.error + other.error,
                None if none else self.bias + other.bias,
                (low, high),
                other,
            )
        if not _is_number(other):
            return NotImplemented
        low, high = (x + other for x in self.interval)
        return self._of(self.value + other, self.error, self.bias, (low, high))

    __radd__ = __add__

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Any:
        return self

    def __sub__(self, other: Any) -> Any:
        known = isinstance(other, Estimate) or _is_number(other)
        return self + -other if known else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other if _is_number(other) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Estimate):
            raise TypeError(
                "the product of two estimates has no known error: float(e) is the value of one"
            )
        if not _is_number(other):
            return NotImplemented
        size = abs(other)
        bias = None if self.bias is None else self.bias * size
        sides = None
        if not (np.iscomplexobj(other) or np.iscomplexobj(self.value)) and np.all(size):
            ends = [x * other for x in self.interval]
            sides = (np.minimum(*ends), np.maximum(*ends))
        return self._of(self.value * other, self.error * size, bias, sides)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Estimate):
            return self * other  # which says why not
        return self * (1 / np.asarray(other)[()]) if _is_number(other) else NotImplemented

    __array_priority__ = 20.0  # arrays and NumPy's numbers leave arithmetic to this class

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    def __repr__(self) -> str:
        if np.ndim(self.value):
            shape = np.shape(self.value)
            text = f"Estimate(array of shape {shape} ± up to {np.max(self.error, initial=0):.2g}"
        else:
            digits = 6
            size, error = abs(self.value), float(self.error)
            if 0 < error < size < math.inf:
                digits = min(16, max(3, int(math.log10(size / error)) + 3))
            text = f"Estimate({_figures(self.value, digits)} ± {error:.2g}"
        if self.error_kind == "exact":
            text += " (nothing random)"
        elif self.error_kind == "heuristic":
            text += f" (heuristic, {self.samples} probes)"
        else:
            text += f" (at {100 * self.confidence:g} %, {self.samples} probes)"
        bias = None if self.bias is None else np.max(self.bias, initial=0)
        text += ", bias unknown" if bias is None else f", bias at most {bias:.2g}"
        if self.met is not None:
            text += ", tolerance met" if self.met else ", TOLERANCE NOT MET"
        return f"{text}; {self.method}, {self.matvecs} products)"


def say_unmet(e: Estimate, wanted: Any) -> None:
    """Warns where a tolerance was given and not met."""
    if e.met is not False:
        return
    why = "the bias is not known" if e.bias is None else f"bias at most {np.max(e.bias):.2g}"
    warnings.warn(
        f"{e.method}: the tolerance {np.min(wanted):.3g} was not met with {e.samples} probes: "
        f"statistical error {np.max(e.error):.3g}, {why}",
        RuntimeWarning,
        stacklevel=errors.outside(),
    )
