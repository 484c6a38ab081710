"""Matrices of kernel functions of points, on arrays of a namespace, and the sums over them that
gradients are made of (k_kernel_gradient.h has the formulas).

    k(x, y) = variance f(s),  s = sum_c ((x_c - y_c) / l_c)^2

or of sines of the differences, or of inner products. Coordinate by coordinate: no array is larger
than the matrix."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

__all__ = ["matrix", "number_sums", "point_sums"]

_RBF, _EXPONENTIAL, _MATERN32, _MATERN52, _RATIONAL, _PERIODIC, _POLYNOMIAL, _LINEAR = range(8)
_INNER = (_POLYNOMIAL, _LINEAR)


class _Factor(NamedTuple):
    """A kernel: its word, points and numbers. A number that is not there is None."""

    word: int
    degree: int
    x: Any
    y: Any
    variance: Any
    length: Any
    shape: Any


def _factors(w: Any, row: Any) -> list[_Factor]:
    at, found = 0, []
    for f in range(row.i[2]):
        bits, degree = row.i[0] >> 7 * f & 127, row.i[1] >> 8 * f & 255
        x, y = (w.whole(row, at + k) for k in (0, 1))
        at += 2
        given: list[Any] = []
        for k in (1, 2, 4):
            there = bits >> 4 & k
            given.append(w.whole(row, at) if there else None)
            at += bool(there)
        found.append(_Factor(bits & 15, degree, x, y, *given))
    return found


def _each(number: Any) -> Any:
    """A number beside each pair of points."""
    return 1.0 if number is None else number[..., None, None]


def _scale(f: _Factor, c: int) -> Any:
    if f.length is None:
        return 1.0
    if not f.length.ndim:
        return f.length
    return f.length[..., c if f.length.shape[-1] > 1 else 0][..., None, None]


def _difference(f: _Factor, c: int) -> Any:
    return f.x[..., :, c][..., :, None] - f.y[..., :, c][..., None, :]


def _turn(f: _Factor, c: int) -> Any:
    """The angle between two points, of a period."""
    return _difference(f, c) * (math.pi / _each(f.shape))


def _total(ns: Any, f: _Factor) -> Any:
    """The sum over the coordinates that f is of."""
    total: Any = None
    for c in range(int(f.x.shape[-1])):
        one = _term(ns, f, c)
        total = one if total is None else total + one
    if total is None:
        total = ns.matmul(f.x, ns.mT(f.y))  # of no coordinates: zeros
    return total


def _term(ns: Any, f: _Factor, c: int) -> Any:
    """Of one coordinate. The points are scaled before they are many."""
    x, y = f.x[..., :, c][..., :, None], f.y[..., :, c][..., None, :]
    if f.word == _PERIODIC:
        root = ns.xp.sin(_turn(f, c)) / _scale(f, c)
        return root * root
    x, y = x / _scale(f, c), y / _scale(f, c)
    return x * y if f.word in _INNER else (x - y) * (x - y)


def _value(ns: Any, f: _Factor, s: Any) -> Any:
    """f(s), without the variance."""
    if f.word == _LINEAR:
        return s
    if f.word == _POLYNOMIAL:
        return (s + _each(f.shape)) ** f.degree
    if f.word == _PERIODIC:
        return ns.exp(-2 * s)
    if f.word == _RBF:
        return ns.exp(s * -0.5)
    if f.word == _RATIONAL:
        a = _each(f.shape)
        return (1 + s / (2 * a)) ** (-a)
    r = ns.sqrt(s)
    if f.word == _EXPONENTIAL:
        return ns.exp(-r)
    a = r * math.sqrt(3 if f.word == _MATERN32 else 5)
    return (1 + a + (a * a / 3 if f.word == _MATERN52 else 0)) * ns.exp(-a)


def _slope(ns: Any, f: _Factor, s: Any) -> Any:
    """f'(s)."""
    if f.word == _LINEAR:
        return s * 0 + 1
    if f.word == _POLYNOMIAL:
        return f.degree * (s + _each(f.shape)) ** max(f.degree - 1, 0)
    if f.word == _PERIODIC:
        return -2 * ns.exp(-2 * s)
    if f.word == _RBF:
        return ns.exp(s * -0.5) * -0.5
    if f.word == _RATIONAL:
        a = _each(f.shape)
        return -((1 + s / (2 * a)) ** (-a - 1)) / 2
    r = ns.sqrt(s)
    if f.word == _MATERN32:
        return -1.5 * ns.exp(-math.sqrt(3) * r)
    if f.word == _MATERN52:
        a = math.sqrt(5) * r
        return (1 + a) * ns.exp(-a) * (-5 / 6)
    safe = ns.where(r > 0, r, ns.ones((), ns.name_of(r)))  # where r is 0 so are the differences
    return ns.where(r > 0, -ns.exp(-r) / (2 * safe), ns.zeros((), ns.name_of(r)))


def matrix(w: Any, row: Any) -> Any:
    """The dense form: a product of factors, entry by entry."""
    total = None
    for f in _factors(w, row):
        one = _value(w.ns, f, _total(w.ns, f))
        one = one if f.variance is None else _each(f.variance) * one
        total = one if total is None else total * one
    return total


def _parts(w: Any, row: Any) -> Any:
    """The factor, the sum it is of, and the cotangent, which is the last child."""
    bits = row.i[0]
    row = row._replace(i=(bits, row.i[1], 1, 0))
    (f,) = _factors(w, row)
    return f, _total(w.ns, f), w.whole(row, len(row.children) - 1)


def _sum(ns: Any, a: Any) -> Any:
    return ns.sum(a, (-2, -1))


def number_sums(w: Any, row: Any) -> Any:
    """The derivatives of sum_ij G_ij k(x_i, y_j) by the variance, the lengths and the shape."""
    ns = w.ns
    f, s, g = _parts(w, row)
    nothing = ns.zeros((), row.dtype)  # for what is not there nobody asks
    found = [nothing if f.variance is None else _sum(ns, g * _value(ns, f, s))]
    g = g if f.variance is None else g * _each(f.variance)
    slopes = g * _slope(ns, f, s)
    lengths = row.shape[-1] - 2
    if lengths == 1:  # s has it as a factor, to the power of -2
        length = 1.0 if f.length is None else f.length[..., 0] if f.length.ndim else f.length
        found.append(_sum(ns, slopes * s) * (-2 / length))
    else:
        every = range(int(f.x.shape[-1]))
        found += [_sum(ns, slopes * _term(ns, f, c)) * (-2 / f.length[..., c]) for c in every]
    found.append(nothing if f.shape is None else _sum(ns, _by_shape(ns, f, s, g, slopes)))
    return ns.stack([ns.expand(x, row.shape[:-1]) for x in found], -1)


def _by_shape(ns: Any, f: _Factor, s: Any, g: Any, slopes: Any) -> Any:
    """Of all by alpha, the period, or the offset; `slopes` are those by s."""
    if f.word == _POLYNOMIAL:
        return slopes
    if f.word == _RATIONAL:
        a = _each(f.shape)
        q = s / (2 * a)
        return g * (1 + q) ** (-a) * (q / (1 + q) - ns.log(1 + q))
    if f.word != _PERIODIC:
        return slopes * 0
    total = s * 0
    for c in range(int(f.x.shape[-1])):
        turn, scale = _turn(f, c), _scale(f, c)
        total = total - 2 * ns.xp.sin(turn) * ns.xp.cos(turn) * turn / (scale * scale)
    return slopes * total / _each(f.shape)


def point_sums(w: Any, row: Any) -> Any:
    """Likewise by the points x, or y."""
    ns, of_y = w.ns, bool(row.i[3])
    f, s, g = _parts(w, row)
    g = g if f.variance is None else g * _each(f.variance)
    slopes = g * _slope(ns, f, s)
    found = []
    for c in range(int(f.x.shape[-1])):
        scale = _scale(f, c)
        if f.word in _INNER:
            other = f.x[..., :, c][..., :, None] if of_y else f.y[..., :, c][..., None, :]
            one = other / (scale * scale)
        elif f.word == _PERIODIC:
            turn = _turn(f, c)
            one = 2 * ns.xp.sin(turn) * ns.xp.cos(turn) * (math.pi / _each(f.shape))
            one = one / (scale * scale)
        else:
            one = 2 * _difference(f, c) / (scale * scale)
        sign = -1 if of_y and f.word not in _INNER else 1
        found.append(sign * ns.sum(slopes * one, -2 if of_y else -1))
    if not found:
        return ns.zeros(row.shape, row.dtype)
    return ns.stack(found, -1)
