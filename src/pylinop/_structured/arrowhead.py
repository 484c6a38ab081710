"""Eigenvalues and vectors of arrowheads [diag(d) z; z^H a], by the secular equation

    F(x) = x - a + sum |z_j|^2 / (d_j - x) = 0,

which grows between any two of the poles d_j, so that each interval holds one eigenvalue. All are
searched at once, each from the nearer pole, by fits with that pole's own weight (Li 1993, as in
LAPACK's laed4), bracketed: some ten passes over n^2 numbers. Vectors are those of the arrowhead of
which the values found are exact (Gu and Eisenstat 1995), and so orthogonal to rounding. Poles with
|z_j| of rounding, or next to one another, are split off before."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._base import config

_ENTRIES = 1 << 16  # of what is searched at once: it stays in the cache
_HELD = 8  # arrays of these at once
_TURNS = 80  # of the search: bisection alone ends by then
_EPS = float(np.finfo(np.float64).eps)


class Roots(NamedTuple):
    """Eigenvalues as ``poles[at] + moved``, which tells their distances from all poles."""

    at: Any
    moved: Any


class Split(NamedTuple):
    """What is left of an arrowhead: poles ``d`` ascending and apart, weights ``z``; the others are
    eigenvalues ``alone``. ``kept`` and ``single`` are their places among the sorted poles,
    ``turns`` the rotations (i, j, c, s) that split some off; ``order`` and ``phase`` come first."""

    d: Any
    z: Any
    alone: Any
    kept: Any
    single: Any
    turns: list[tuple[int, int, float, float]]
    order: Any
    phase: Any


def split(d: Any, z: Any, a: float) -> Split:
    """The arrowhead without the eigenvalues that are known to rounding."""
    order = np.argsort(d, kind="stable")
    d, z = d[order].astype(np.float64), z[order]
    size = np.abs(z)
    phase = np.where(size > 0, z / np.where(size > 0, size, 1), 1)
    size = size.astype(np.float64)
    least = 8 * _EPS * max(np.abs(d).max(initial=0.0), size.max(initial=0.0), abs(a))
    turns: list[tuple[int, int, float, float]] = []
    single = size <= least
    places = np.flatnonzero(~single)
    before, after = size[places[:-1]], size[places[1:]]
    gaps = (d[places[1:]] - d[places[:-1]]) * before * after
    if (gaps <= least * (before**2 + after**2)).any():
        _turn(d, size, single, places, least, turns)
    kept, alone = np.flatnonzero(~single), np.flatnonzero(single)
    return Split(d[kept], size[kept], d[alone], kept, alone, turns, order, phase)


def _turn(d: Any, z: Any, single: Any, places: Any, least: float, turns: list[Any]) -> None:
    """Rotates poles that are next to one another, so that one of two has no weight."""
    i = int(places[0])
    for j in map(int, places[1:]):
        r = float(np.hypot(z[i], z[j]))
        c, s = z[j] / r, z[i] / r
        if (d[j] - d[i]) * c * s > least:
            i = j
            continue
        one, two = d[i], d[j]
        d[i], d[j] = one * c * c + two * s * s, one * s * s + two * c * c
        z[i], z[j], single[i] = 0.0, r, True
        turns.append((i, j, float(c), float(s)))
        i = j


# -- values --


def roots(d: Any, z: Any, a: float) -> Roots:
    """All K + 1 eigenvalues, ascending, of poles that are apart and have weights."""
    count = len(d)
    if not count:
        return Roots(np.zeros(1, int), np.full(1, a))
    at, moved = np.empty(count + 1, int), np.empty(count + 1)
    limit = config.get("memory_limit")
    most = _ENTRIES if limit is None else min(_ENTRIES, int(limit) // (8 * _HELD))
    step = max(1, most // count)
    for i in range(0, count + 1, step):
        which = np.arange(i, min(i + step, count + 1))
        at[which], moved[which] = _searched(d, z * z, a, which)
    return Roots(at, moved)


def _starts(d: Any, w: Any, a: float, which: Any) -> tuple[Any, ...]:
    """(origin, other pole or infinity, lower end, upper end) of intervals, from the origin."""
    last, norm = len(d) - 1, float(np.sqrt(w.sum()))
    left, right = np.maximum(which - 1, 0), np.minimum(which, last)
    middle = 0.5 * (d[right] - d[left])
    apart = d[None] - d[left][:, None]
    with np.errstate(divide="ignore"):
        f = d[left] + middle - a + (w / (apart - middle[:, None])).sum(axis=1)
    at = np.where((f >= 0) | (which > last), left, right)
    at = np.where(which == 0, 0, at)
    q = np.where(at == left, d[right] - d[left], d[left] - d[right])
    half = 0.5 * q
    low, high = np.where(q > 0, 0.0, half), np.where(q > 0, half, 0.0)
    first, end = which == 0, which > last
    low[first], high[first] = min(a - d[0], 0.0) - norm - abs(a) * _EPS, 0.0
    low[end], high[end] = 0.0, max(a - d[last], 0.0) + norm + abs(a) * _EPS
    q[first | end] = np.inf
    return at, q, low, high


def _searched(d: Any, w: Any, a: float, which: Any) -> tuple[Any, Any]:
    at, q, low, high = _starts(d, w, a, which)
    apart, own, shift = d[None] - d[at][:, None], w[at], d[at] - a
    x = 0.5 * (low + high)
    active, last = np.arange(len(which)), np.full(len(which), np.inf)
    for _ in range(_TURNS):
        t = apart[active] - x[active, None]
        part = w / t
        f = shift[active] + x[active] + part.sum(axis=1)
        size = np.abs(shift[active]) + np.abs(x[active]) + np.abs(part).sum(axis=1)
        slope = 1 + (part / t).sum(axis=1)
        low[active] = np.where(f < 0, x[active], low[active])
        high[active] = np.where(f > 0, x[active], high[active])
        slow = np.abs(f) > 0.5 * last[active]
        last[active] = np.where(slow, np.inf, np.abs(f))
        new = _next(x[active], f, slope, own[active], q[active])
        inside = (new > low[active]) & (new < high[active]) & ~slow
        new = np.where(inside, new, 0.5 * (low[active] + high[active]))
        done = (np.abs(f) <= 4 * _EPS * size) | (new == x[active])
        x[active] = np.where(done, x[active], new)
        active = active[~done]
        if not len(active):
            break
    return at, x


def _next(x: Any, f: Any, slope: Any, own: Any, q: Any) -> Any:
    """The root of own / -x + c + t / (q - x), or with g x for the last term beyond all poles, which
    has the value and slope of F at x."""
    with np.errstate(all="ignore"):
        rest, bend = f + own / x, slope - own / (x * x)
        t = bend * (q - x) ** 2
        c = rest - bend * (q - x)
        b = c * q + own + t
        root = np.sqrt(np.maximum(b * b - 4 * c * own * q, 0))
        inner = np.where(b > 0, 2 * own * q / (b + root), (b - root) / (2 * c))
        level = rest - bend * x
        root = np.sqrt(level * level + 4 * bend * own)
        size = np.where(
            level * x > 0, 2 * own / (np.abs(level) + root), (np.abs(level) + root) / (2 * bend)
        )
        return np.where(np.isinf(q), np.copysign(size, x), inner)


# -- vectors --


def _distances(d: Any, found: Roots) -> Any:
    """lambda_k - d_j, (K + 1, K), each to rounding of its own."""
    return (d[found.at][:, None] - d[None]) + found.moved[:, None]


def vectors(d: Any, z: Any, found: Roots) -> Any:
    """The eigenvectors, columns, of unit length; the border's entry is the last row."""
    count = len(d)
    if not count:
        return np.ones((1, 1))
    apart = _distances(d, found)
    k = np.arange(count)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(k[:, None] < k, apart[:-1], apart[1:]) / (d[:, None] - d)
    ratio[k, k] = -apart[k, k] * apart[k + 1, k]
    z = np.sqrt(np.abs(ratio.prod(axis=0)))  # of the arrowhead that has these values
    made = np.empty((count + 1, count + 1))
    np.divide(z, apart, out=apart)
    made[:-1], made[-1] = apart.T, 1.0
    made /= np.sqrt((made * made).sum(axis=0))
    return made


def _exponent(d: Any, z: Any, a: float) -> int:
    """Of the largest number, by parts: the modulus of a complex one may be out of range."""
    parts = (d, z.real, z.imag, np.abs(a))
    return int(np.frexp(max(np.abs(x).max(initial=0.0) for x in parts))[1])


def _scaled(x: Any, exponent: int) -> Any:
    """x 2^exponent, each part for itself: the power alone may be out of range."""
    if np.iscomplexobj(x):
        made = np.empty_like(x)
        made.real, made.imag = np.ldexp(x.real, exponent), np.ldexp(x.imag, exponent)
        return made
    return np.ldexp(x, exponent)


def pairs(d: Any, z: Any, a: float, with_vectors: bool) -> tuple[Any, Any]:
    """(eigenvalues, eigenvectors or None), in no order; d (n,) real, z (n,), all finite. They are
    scaled to a largest number of about one, so that no square is out of range."""
    exponent = _exponent(d, z, a)
    d, z, a = _scaled(d, -exponent), _scaled(z, -exponent), float(_scaled(a, -exponent))
    w, q = _pairs(d, z, a, with_vectors)
    return _scaled(w, exponent), q


def _pairs(d: Any, z: Any, a: float, with_vectors: bool) -> tuple[Any, Any]:
    left = split(d, z, a)
    found = roots(left.d, left.z, a)
    values = left.d[found.at] + found.moved if len(left.d) else found.moved
    w = np.concatenate([values, left.alone])
    if not with_vectors:
        return w, None
    n, own = len(d), len(left.d)
    inner = vectors(left.d, left.z, found)
    q = np.zeros((n + 1, n + 1), left.phase.dtype)
    q[left.order[left.kept], : own + 1], q[n, : own + 1] = inner[:-1], inner[-1]
    q[left.order[left.single], np.arange(own + 1, n + 1)] = 1.0
    for i, j, c, s in reversed(left.turns):
        i, j = left.order[i], left.order[j]
        q[i], q[j] = c * q[i] + s * q[j], c * q[j] - s * q[i]
    turned = left.order[left.phase != 1]
    q[turned] *= left.phase[left.phase != 1, None]
    return w, q
