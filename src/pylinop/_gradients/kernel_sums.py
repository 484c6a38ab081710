"""Second derivatives by the points and numbers of a `Kernel`, off blocks of rows: its tangent, the
cotangents of that, and its derivative along two directions. No m x n array of derivatives is made
but the tangent where that is what is asked for.

K = v f(q, e), q = sum_c p(x_c, y_c, e) w_c, w_c = 1 / l_c^2: dots are products along `a`, the
direction; e is alpha, period or offset. A direction holds one number for each of x, y, v, l and e
(what the points of both sides share moves in both). Where q is 0 the derivatives of Matern 1/2 and
3/2 by q, which have no limit, are 0; times the differences that they meet with, the latter is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

_BLOCK = 1 << 14  # numbers of a block, of which some ten are in use at a time: in a core's cache


class Said(NamedTuple):
    """What of a Kernel is no array."""

    function: str
    degree: int
    one_set: bool  # y is x
    given: tuple[str, ...]  # the arrays that are given, in order, without y where it is x
    points: bool = True  # of cotangents: are those of points asked for? else they are zeros


class Values(NamedTuple):
    """A kernel's arrays, and a direction: x, y, v, l (one each coordinate), e."""

    x: Any
    y: Any
    v: Any
    length: Any
    e: Any


class Along(NamedTuple):
    """Of a block, along a direction: q, what each coordinate's p grows by, w, v and e."""

    q: Any
    p: list[Any]
    w: Any
    v: float
    e: float


def sizes(x: Any, y: Any, length: Any) -> tuple[int, int, int]:
    """How many numbers a direction has for x, for y, and for v, l, e together."""
    lengths = 1 if length is None or np.ndim(length) == 0 else length.shape[-1]
    return math.prod(x.shape[-2:]), math.prod(y.shape[-2:]), 2 + lengths


def _split(x: Any, y: Any, direction: Any, lengths: int) -> Values:
    """A direction's parts."""
    a = np.asarray(direction, np.float64)
    at = x.size + y.size
    length = np.broadcast_to(a[at + 1 : at + 1 + lengths], x.shape[1])
    return Values(
        a[: x.size].reshape(x.shape), a[x.size : at].reshape(y.shape), a[at], length, a[-1]
    )


def _function(said: Said, q: Any, e: float) -> tuple[Any, ...]:
    """f and its derivatives q, qq, e, qe, ee; the last three None where e is not in f."""
    name = said.function
    if name == "rbf":
        f = np.exp(q * -0.5)
        return f, f * -0.5, f * 0.25, None, None, None
    if name == "periodic":
        f = np.exp(-2 * q)
        return f, -2 * f, 4 * f, None, None, None
    if name == "rational_quadratic":
        t = q / (2 * e)
        part, log = t / (1 + t), np.log1p(t)
        f = np.exp(-e * log)
        fq, u = f / (-2 * (1 + t)), part - log
        fqq = f * ((1 + 1 / e) / 4) / (1 + t) ** 2
        return f, fq, fqq, f * u, fq * ((1 + 1 / e) * part - log), f * (u * u + part * part / e)
    if name in ("polynomial", "linear"):
        k = said.degree
        first = k * q ** (k - 1) if k else np.zeros_like(q)
        second = k * (k - 1) * q ** (k - 2) if k > 1 else np.zeros_like(q)
        return q**k, first, second, None, None, None
    a = np.sqrt({"matern12": 1, "matern32": 3, "matern52": 5}[name] * q)
    f = np.exp(-a)
    if name == "matern52":
        return f * (1 + a + a * a / 3), f * (1 + a) * (-5 / 6), f * (25 / 12), None, None, None
    near = a > 1e-100
    over = np.divide(1, a, out=np.zeros_like(a), where=near)
    if name == "matern32":
        return f * (1 + a), f * (-3 / 2), f * over * (9 / 4), None, None, None
    return f, f * over / -2, f * (1 + a) * over * over * over / 4, None, None, None


def _is_dot(said: Said) -> bool:
    return said.function in ("polynomial", "linear")


class _Block:
    """Rows of a kernel matrix: q, f's derivatives, and of each coordinate p and its derivatives."""

    def __init__(self, said: Said, at: Values, rows: slice) -> None:
        self.said, self.at, self.rows = said, at, rows
        self.w = 1 / at.length**2
        self.coordinates = [self._coordinate(c) for c in range(at.x.shape[1])]
        q = sum(w * c[0] for w, c in zip(self.w, self.coordinates, strict=True))
        if said.function == "polynomial":
            q = q + at.e
        self.q = q if np.ndim(q) else np.zeros((len(at.x[rows]), len(at.y)))
        self.f = _function(said, self.q, at.e)

    def _coordinate(self, c: int) -> tuple[Any, ...]:
        """p; its derivatives by the difference x - y, once and twice; by the period, once, with
        the difference, twice. Of a product p alone."""
        x, y, e = self.at.x[self.rows, c, None], self.at.y[None, :, c], self.at.e
        if _is_dot(self.said):
            return (x * y,)
        t = x - y
        if self.said.function != "periodic":
            return t * t, 2 * t, 2.0
        k = math.pi / e
        one, sin, cos = np.sin(k * t), np.sin(2 * k * t), np.cos(2 * k * t)
        by = -k * t / e * sin
        mixed = -k / e * (sin + 2 * k * t * cos)
        return (
            one * one,
            k * sin,
            2 * k * k * cos,
            by,
            mixed,
            -2 * by / e + 2 * (k * t / e) ** 2 * cos,
        )

    def _moved(self, a: Values, c: int) -> Any:
        """What coordinate c's p grows by."""
        dx, dy, p = a.x[self.rows, c, None], a.y[None, :, c], self.coordinates[c]
        if _is_dot(self.said):
            return dx * self.at.y[None, :, c] + self.at.x[self.rows, c, None] * dy
        moved = p[1] * (dx - dy) if np.any(a.x[:, c]) or np.any(a.y[:, c]) else 0.0
        return moved + p[3] * a.e if len(p) > 3 and a.e else moved

    def along(self, a: Values) -> Along:
        """Derivatives along a direction."""
        w = -2 * a.length / self.at.length**3
        moved = [self._moved(a, c) for c in range(len(self.w))]
        q: Any = np.zeros_like(self.q)
        for c, p in enumerate(moved):
            q = q + self.w[c] * p if np.ndim(p) or p else q
            q = q + w[c] * self.coordinates[c][0] if w[c] else q
        if self.said.function == "polynomial" and a.e:
            q = q + a.e
        return Along(q, moved, w, a.v, a.e)

    def tangent(self, a: Along) -> Any:
        f, fq, _, fe, _, _ = self.f
        made = a.v * f + self.at.v * fq * a.q
        return made + self.at.v * a.e * fe if fe is not None else made

    def twice(self, a: Along, b: Along, da: Values, db: Values) -> Any:
        """The derivative of the matrix along two directions."""
        f, fq, fqq, fe, fqe, fee = self.f
        v = self.at.v
        both = np.zeros_like(self.q)
        for c, p in enumerate(self.coordinates):
            w2 = 6 * da.length[c] * db.length[c] / self.at.length[c] ** 4
            both = both + a.p[c] * b.w[c] + b.p[c] * a.w[c] + p[0] * w2
            dx = [(d.x[self.rows, c, None], d.y[None, :, c]) for d in (da, db)]
            if _is_dot(self.said):
                both = both + self.w[c] * (dx[0][0] * dx[1][1] + dx[1][0] * dx[0][1])
                continue
            ta, tb = dx[0][0] - dx[0][1], dx[1][0] - dx[1][1]
            both = both + self.w[c] * p[2] * ta * tb
            if len(p) > 3:
                both = both + self.w[c] * (p[4] * (ta * db.e + tb * da.e) + p[5] * da.e * db.e)
        made = a.v * fq * b.q + b.v * fq * a.q + v * (fqq * a.q * b.q + fq * both)
        if fe is None:
            return made
        made = made + fe * (a.v * b.e + b.v * a.e)
        return made + v * (fqe * (a.q * b.e + b.q * a.e) + fee * a.e * b.e)

    def cotangents(self, a: Along, d: Values, g: Any, to: Values, lengths: int) -> float:
        """Adds those of the tangent's points, v and lengths to `to`; gives that of e."""
        f, fq, fqq, fe, fqe, fee = self.f
        v, e = self.at.v, 0.0
        slope = a.v * fq + v * fqq * a.q
        by_v = fq * a.q
        if fe is not None:
            slope = slope + v * a.e * fqe
            by_v = by_v + fe * a.e
            e += float(np.sum(g * (a.v * fe + v * fqe * a.q + v * fee * a.e)))
        to.v[...] += np.sum(g * by_v)
        Q, R = g * slope, g * (v * fq)
        if self.said.function == "polynomial":
            e += float(np.sum(Q))
        for c, p in enumerate(self.coordinates):
            w, dw, length = self.w[c], a.w[c], self.at.length[c]
            by_w, by_dw = np.sum(Q * p[0]) + np.sum(R * a.p[c]), np.sum(R * p[0])
            to.length[c if lengths > 1 else 0] += (
                -2 * by_w / length**3 + 6 * d.length[c] * by_dw / length**4
            )
            dx, dy = d.x[self.rows, c, None], d.y[None, :, c]
            if _is_dot(self.said):
                x, y = self.at.x[self.rows, c, None], self.at.y[None, :, c]
                both = w * Q + dw * R
                to.x[self.rows, c] += np.sum(both * y + w * R * dy, axis=1)
                to.y[:, c] += np.sum(both * x + w * R * dx, axis=0)
                continue
            t = p[1] * (w * Q + dw * R)
            moves = np.any(d.x[:, c]) or np.any(d.y[:, c])
            if moves:
                t = t + (w * p[2]) * R * (dx - dy)
            if len(p) > 3:
                e += float(np.sum(p[3] * (w * Q + dw * R)))
                e += float(np.sum(R * p[5]) * w * a.e)
                t = t + R * p[4] * (w * a.e)
                e += float(np.sum(R * p[4] * (dx - dy)) * w) if moves else 0.0
            to.x[self.rows, c] += np.sum(t, axis=1)
            to.y[:, c] -= np.sum(t, axis=0)
        return e


def _is_plain(said: Said, d: Values, lengths: int) -> bool:
    """Is q a multiple of one sum over coordinates, the same one along the direction?"""
    moves = np.any(d.x) or np.any(d.y)
    return said.function != "periodic" and lengths == 1 and not moves


class _Plain:
    """Rows of a kernel matrix of one length, along a direction of its numbers alone."""

    def __init__(self, said: Said, at: Values, d: Values, rows: slice) -> None:
        self.said, self.at, self.d = said, at, d
        self.s = self._sums(at.x[rows], at.y)
        length = at.length[0] if at.length.size else 1.0
        change = d.length[0] if d.length.size else 0.0
        self.by_w, self.by_dw = -2 / length**3, 6 * change / length**4
        self.q, self.dq = self.s * (1 / length**2), self.s * (self.by_w * change)
        if said.function == "polynomial":
            self.q, self.dq = self.q + at.e, self.dq + d.e
        self.f = _function(said, self.q, at.e)

    def _sums(self, x: Any, y: Any) -> Any:
        if _is_dot(self.said):
            return x @ y.T
        total = np.zeros((len(x), len(y)))
        for c in range(x.shape[1]):
            t = x[:, c, None] - y[None, :, c]
            t *= t
            total += t
        return total

    def tangent(self) -> Any:
        f, fq, _, fe, _, _ = self.f
        made = np.multiply(fq, self.dq, out=self.dq)
        made *= self.at.v
        if self.d.v:
            made += self.d.v * f
        return made + self.at.v * self.d.e * fe if fe is not None else made

    def cotangents(self, g: Any, to: Values) -> float:
        """Adds those of v and the length to `to`; gives that of e."""
        f, fq, fqq, fe, fqe, fee = self.f
        v, d, e = self.at.v, self.d, 0.0
        slope, by_v = d.v * fq + v * (fqq * self.dq), fq * self.dq
        if fe is not None:
            slope, by_v = slope + v * d.e * fqe, by_v + fe * d.e
            e += float(np.vdot(g, d.v * fe + v * fqe * self.dq + v * d.e * fee))
        to.v[...] += np.vdot(g, by_v)
        slope *= g
        if self.said.function == "polynomial":
            e += float(np.sum(slope))
        by_dw = v * np.vdot(g, fq * self.s)
        to.length[0] += self.by_w * np.vdot(slope, self.s) + self.by_dw * by_dw
        return e


def _values(said: Said, arrays: tuple[Any, ...], at: tuple[int, ...]) -> tuple[Values, int]:
    """The arrays of one matrix of a stack, in double precision; how many lengths there are."""
    held: dict[str, Any] = {}
    for name, a in zip(said.given, arrays, strict=True):
        own = 2 if name in ("x", "y") else min(np.ndim(a), 1) if name == "length_scale" else 0
        batch = np.shape(a)[: np.ndim(a) - own]
        key = tuple(
            0 if n == 1 else i for n, i in zip(batch, at[len(at) - len(batch) :], strict=True)
        )
        held[name] = np.asarray(a, np.float64)[key]
    x = held["x"]
    length = held.get("length_scale", np.float64(1))
    lengths = 1 if np.ndim(length) == 0 else len(length)
    more = [held[k] for k in ("alpha", "period", "offset") if k in held]
    return Values(
        x,
        held.get("y", x),
        float(held.get("variance", 1.0)),
        np.broadcast_to(length, x.shape[1]),
        float(more[0]) if more else 1.0,
    ), lengths


def _rows(at: Values) -> Iterator[slice]:
    high = max(1, _BLOCK // max(1, len(at.y)))
    for start in range(0, len(at.x), high):
        yield slice(start, start + high)


def _blocks(said: Said, at: Values) -> Iterator[_Block]:
    for rows in _rows(at):
        yield _Block(said, at, rows)


def _stack(one: Any, said: Said, arrays: Any, batch: Any, shape: Any, dtype: Any, rest: Any) -> Any:
    """Of each matrix of a stack, which `one` writes."""
    made = np.empty((*batch, *shape), dtype)
    for at in np.ndindex(*batch):
        values, lengths = _values(said, arrays, at)
        parts = [np.broadcast_to(r, (*batch, *np.shape(r)[k:]))[at] for r, k in rest]
        one(made[at], values, lengths, *parts)
    return made


def _lead(a: Any, own: int) -> tuple[Any, int]:
    return a, np.ndim(a) - own


def tangent(*args: Any, said: Said, batch: Any, dtype: Any) -> Any:
    """The derivative of the matrix along a direction, the last argument."""
    arrays, a = args[:-1], args[-1]

    def one(out: Any, at: Values, lengths: int, a: Any) -> None:
        d = _split(at.x, at.y, a, lengths)
        if _is_plain(said, d, lengths):
            for rows in _rows(at):
                out[rows] = _Plain(said, at, d, rows).tangent()
            return
        for b in _blocks(said, at):
            out[b.rows] = b.tangent(b.along(d))

    m, n = args[0].shape[-2], args[0 if said.one_set else 1].shape[-2]
    return _stack(one, said, arrays, batch, (m, n), dtype, [_lead(a, 1)])


def twice(*args: Any, said: Said, batch: Any, dtype: Any) -> Any:
    """The derivative of the matrix along two directions, the last arguments."""
    arrays, a, b = args[:-2], args[-2], args[-1]

    def one(out: Any, at: Values, lengths: int, a: Any, b: Any) -> None:
        da, db = (_split(at.x, at.y, d, lengths) for d in (a, b))
        for k in _blocks(said, at):
            out[k.rows] = k.twice(k.along(da), k.along(db), da, db)

    m, n = args[0].shape[-2], args[0 if said.one_set else 1].shape[-2]
    return _stack(one, said, arrays, batch, (m, n), dtype, [_lead(a, 1), _lead(b, 1)])


def cotangents(*args: Any, said: Said, batch: Any, dtype: Any) -> Any:
    """Those of a kernel's arrays, one after the other as in a direction, of its tangent along a
    direction: the last arguments are that, and the tangent's cotangent."""
    arrays, a, g = args[:-2], args[-2], args[-1]

    def one(out: Any, at: Values, lengths: int, a: Any, g: Any) -> None:
        d, e = _split(at.x, at.y, a, lengths), 0.0
        to = Values(np.zeros(at.x.shape), np.zeros(at.y.shape), np.zeros(()), np.zeros(lengths), 0)
        if not said.points and _is_plain(said, d, lengths):
            for rows in _rows(at):
                block = np.ascontiguousarray(np.real(g[rows]), np.float64)
                e += _Plain(said, at, d, rows).cotangents(block, to)
        else:
            for b in _blocks(said, at):
                e += b.cotangents(b.along(d), d, np.real(g[b.rows]), to, lengths)
        out[...] = np.concatenate([to.x.ravel(), to.y.ravel(), [to.v], to.length, [e]])

    return _stack(one, said, arrays, batch, a.shape[-1:], dtype, [_lead(a, 1), _lead(g, 2)])
