"""Generators of the covariances of `quasiseparable` as formulas of parameters that are LazyArrays:
what k_quasi_covariance.c computes from numbers, for derivatives by the parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_FAR = 2000.0  # exp of minus that is 0, also times what would be infinite


def _matern(kernel: str, h: Any, variance: Any, length_scale: Any) -> tuple[Any, ...]:
    """exp(-x) times a polynomial of degree `order` in x = r |t - s|: one Jordan block."""
    order = {"1": 0, "3": 1, "5": 2}[kernel[-2]]
    x = np.minimum(h * (math.sqrt(2 * order + 1) / length_scale), _FAR)
    e = np.exp(-x)
    none, d = np.zeros(h.shape), np.ones(h.shape) * variance
    p: tuple[Any, ...]
    q: tuple[Any, ...]
    a: tuple[Any, ...]
    if order == 0:
        p, q, a = (e,), (d,), (e,)
    elif order == 1:
        p, q, a = (e, e * x), (d, d), (e, e * x, none, e)
    else:
        f = e * x
        g = f * (x / 2.0)
        p, q = (e, f, g), (d, d, d * (2.0 / 3.0))
        a = (e, f, g, none, e, f, none, none, e)
    return (d, *(np.stack(columns, axis=-1) for columns in (p, q, a)))


def _rotating(t: Any, h: Any, a: Any, b: Any, c: Any, d: Any) -> tuple[Any, ...]:
    """exp(-c r) (a cos(d r) + b sin(d r)), the rotations in p and q."""
    angle, e = (t - t[..., :1]) * d, np.exp(h * (-1.0 * c))
    u, v = np.cos(angle), np.sin(angle)
    p = np.stack([(u * a + v * b) * e, (v * a - u * b) * e], axis=-1)
    return np.ones(h.shape) * a, p, np.stack([u, v], axis=-1), np.stack([e, e], axis=-1)


def _series(s: Any, odd: int) -> Any:
    """cosh(z), or sinh(z) / z, by s = z^2 where |s| is small, or what it stands beside is 0."""
    total: Any = 0.0
    for k in range(6, 0, -1):
        total = (total + 1.0 / math.factorial(2 * k + odd)) * s
    return total + 1.0


def _oscillator(h: Any, variance: Any, frequency: Any, quality: Any) -> tuple[Any, ...]:
    """The damped oscillator, on whichever side of critical damping it is."""
    f = 2.0 * quality
    gap = (1.0 - f) * (1.0 + f)
    near = abs(gap) < 1e-4  # differences over the root would cancel: series stand there
    root = np.sqrt(np.where(near, 1.0, abs(gap)))
    x = h * (frequency / f)
    e, turn = np.exp(-x), root * x
    slow = np.exp(-x * (f * f / (1.0 + root)))  # the slower decay is 1 - root, not cancelled
    late = slow * np.expm1(-2.0 * turn) / (-2.0 * root)
    s = x * x * gap
    odd = np.where(near, e * x * _series(s, 1), np.where(gap < 0, e * np.sin(turn) / root, late))
    even = np.where(
        near, e * _series(s, 0), np.where(gap < 0, e * np.cos(turn), slow - root * late)
    )
    d, none = np.ones(h.shape) * variance, np.zeros(h.shape)
    row = (even + odd, odd * f)
    q = np.stack([d, none], axis=-1)
    return d, np.stack(row, axis=-1), q, np.stack([*row, odd * (-1.0 * f), even - odd], axis=-1)


def generators(kernel: str, t: Any, values: dict[str, Any], dtype: Any) -> tuple[Any, ...]:
    """d, p, q, a at the sorted times t, in that dtype."""
    h = np.diff(t, prepend=t[..., :1])
    if kernel == "celerite":
        found = _rotating(t, h, **values)
    elif kernel == "oscillator":
        found = _oscillator(h, **values)
    else:
        found = _matern(kernel, h, **values)
    return tuple(g if g.dtype == dtype else g.astype(dtype) for g in found)
