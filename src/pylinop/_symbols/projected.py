"""Ends of one unknown within rows: the others are eliminated, one after the other.

Two rows  a v + p >= 0  and  -b v + q >= 0,  a, b > 0,  leave  b p + a q >= 0  of v (Fourier and
Motzkin; Schrijver, Theory of linear and integer programming, 12.2). Coefficients are divided by
their divisor and constants rounded down, as all unknowns are integers. What is left in the one
unknown are its ends among real numbers or closer ones: without a row on one side, that side has no
end as far as rows see, which is exact where there is an integer solution at all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .system import Coefficients, Infeasible, Product

MOST = 160  # rows at a time; elimination may square their number

Held = dict[tuple[tuple[int, int], ...], int]  # the least constant of each left side
Bounds = list[int | None]


class Ends(NamedTuple):
    """The ends of an unknown; None: without."""

    low: int | None
    high: int | None


def connected(rows: Iterable[tuple[Coefficients, int]], x: int) -> list[tuple[Coefficients, int]]:
    """The rows that say something of x, at once or by way of others."""
    rest, near = list(rows), {x}
    taken: list[tuple[Coefficients, int]] = []
    while True:
        new = [r for r in rest if not near.isdisjoint(r[0])]
        if not new:
            return taken
        taken += new
        rest = [r for r in rest if near.isdisjoint(r[0])]
        near.update(v for r in new for v in r[0])


def _hold(held: Held, of: Coefficients, constant: int) -> None:
    if not of:
        if constant < 0:
            raise Infeasible("")
        return
    g = math.gcd(*of.values())
    key = tuple(sorted((v, c // g) for v, c in of.items()))
    constant //= g
    if key not in held or constant < held[key]:
        held[key] = constant


def _of_both(
    p: tuple[Coefficients, int], q: tuple[Coefficients, int], v: int
) -> tuple[Coefficients, int]:
    """What two rows, of which the first has v with a positive sign, say without v."""
    a, b = p[0][v], -q[0][v]
    of = {y: b * c for y, c in p[0].items()}
    for y, c in q[0].items():
        of[y] = of.get(y, 0) + a * c
    return {y: c for y, c in of.items() if c}, b * p[1] + a * q[1]


def ends(rows: Sequence[tuple[Coefficients, int]], x: int) -> tuple[Ends | None, int]:
    """The ends of x, and how many rows were looked at; None where they became too many."""
    held: Held = {}
    for of, constant in rows:
        _hold(held, of, constant)
    looked = len(held)
    while True:
        signs: dict[int, list[int]] = {}
        for key in held:
            for v, c in key:
                signs.setdefault(v, [0, 0])[c > 0] += 1
        signs.pop(x, None)
        if not signs:
            break
        v = min(signs, key=lambda y: (signs[y][0] * signs[y][1], y))
        own = [(dict(key), c) for key, c in held.items() if any(y == v for y, _ in key)]
        looked += len(held) + signs[v][0] * signs[v][1]
        if len(held) + signs[v][0] * signs[v][1] > MOST:
            return None, looked
        held = {key: c for key, c in held.items() if all(y != v for y, _ in key)}
        for p in own:
            for q in own if p[0][v] > 0 else ():
                if q[0][v] < 0:
                    _hold(held, *_of_both(p, q, v))
    low = [-c for ((_, a),), c in held.items() if a > 0]  # a is 1 or -1: of one unknown
    high = [c for ((_, a),), c in held.items() if a < 0]
    found = Ends(max(low, default=None), min(high, default=None))
    if found.low is not None and found.high is not None and found.low > found.high:
        raise Infeasible("")
    return found, looked


def of_product(p: Product, low: Bounds, high: Bounds) -> list[tuple[Coefficients, int]]:
    """Rows that m = a b fulfils: exactly that where a factor is known; products of what a and b
    have above and below them (McCormick, Math. Prog. 10, 1976); of a square, that no integer lies
    between two that follow each other."""
    rows: list[tuple[Coefficients, int]] = []
    m, a, b = p
    for x, y in ((a, b), (b, a)):
        c = low[y]
        if c is not None and c == high[y]:
            of = {m: 1, x: -c} if c else {m: 1}
            return [(of, 0), ({z: -d for z, d in of.items()}, 0)]
    for t in (low[a], _before(high[a])) if a == b else ():
        if t is not None:
            rows.append(({m: 1, a: -(2 * t + 1)}, t * (t + 1)))  # (a - t)(a - t - 1) >= 0
    for sign, first, second in ((1, low, low), (1, high, high), (-1, low, high), (-1, high, low)):
        v, w = first[a], second[b]
        if v is None or w is None:
            continue
        of = {m: sign, a: 0, b: 0}  # a and b may be one
        of[a] -= sign * w
        of[b] -= sign * v
        rows.append(({y: c for y, c in of.items() if c}, sign * v * w))
    return rows


def _before(n: int | None) -> int | None:
    return None if n is None else n - 1
