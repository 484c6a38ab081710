"""Generators of the covariances of `quasiseparable` as formulas of parameters that are LazyArrays:
what k_quasi_covariance.c computes from numbers, for derivatives by the parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _core


def markov_rows(x: Any, order: int, moves: bool, derivative: int) -> Any:
    """The generators p of a Matern function of smoothness order + 1/2, or its transitions, from the
    products x of a step and the rate, differentiated by x so many times: an array of numbers."""
    x = np.ascontiguousarray(x, np.float64)
    out = np.empty((*x.shape, (order + 1) ** (1 + moves)))
    _core._quasi_matern(order, moves, derivative, x, None, out)
    return out


def markov_sums(x: Any, g: Any, order: int, moves: bool, derivative: int) -> Any:
    """Of each row the inner product of those with g."""
    x, g = (np.ascontiguousarray(v, np.float64) for v in (x, g))
    out = np.empty(x.shape)
    _core._quasi_matern(order, moves, derivative, x, g, out)
    return out


def rows_of(x: Any, order: int, moves: bool, derivative: int = 0) -> Any:
    """`markov_rows` of numbers, deferred of a LazyArray."""
    if not isinstance(x, _core.Lazy):
        return markov_rows(x, order, moves, derivative)
    said = {"order": order, "moves": moves, "derivative": derivative}
    shape = (*x.shape, (order + 1) ** (1 + moves))
    return _core._LazyArray("call", (x,), shape, np.dtype(float), (markov_rows, said))


def matern(kernel: str, h: Any, variance: Any, length_scale: Any) -> tuple[Any, ...]:
    """exp(-x) times a polynomial of degree `order` in x = r |t - s|: one Jordan block."""
    order = {"1": 0, "3": 1, "5": 2}[kernel[-2]]
    x = h * (math.sqrt(2 * order + 1) / length_scale)
    d = np.broadcast_to(variance, h.shape)
    q = np.broadcast_to(variance, (*h.shape[:-1], h.shape[-1] * (order + 1)))  # its sum is of a row
    if order == 2:
        q = q * np.tile([1.0, 1.0, 2 / 3], h.shape[-1])
    q = np.reshape(q, (*h.shape, order + 1))
    return d, rows_of(x, order, False), q, rows_of(x, order, True)


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
        found = matern(kernel, h, **values)
    return tuple(g if g.dtype == dtype else g.astype(dtype) for g in found)
