"""Equations between sizes as rows over unknowns, and their elimination in integers.

Unknowns are the symbols, and one for each quotient and each product in the equations:

    q = e // k      0 <= e - k q <= k - 1
    m = a b         a product, which `bounds.py` follows

A row says sum c x + constant = 0, or >= 0. An equation whose least coefficient is a > 1 is led back
to one of smaller coefficients by a new unknown t = x + sum (c // a) y (Euclid's algorithm, as in
Knuth 4.5.2 and Pugh's Omega test, 1991): so solvability in integers is decided exactly, and what is
left is in free unknowns."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from .._base.lazy_import import Standard
from .expressions import Atom, Least, Monomial, Size, Symbol, smallest
from .provenance import Equation

if TYPE_CHECKING:
    from fractions import Fraction

_fractions = Standard("fractions")

Coefficients = dict[int, int]


class Infeasible(Exception):
    """There are no such sizes; the text says why, where one unknown is enough to see it."""


class Row(NamedTuple):
    """sum of coefficients times unknowns + constant = 0, or >= 0."""

    of: Coefficients
    constant: int
    at_least: bool


class Product(NamedTuple):
    """An unknown that is the product of two."""

    is_: int
    a: int
    b: int


class System:
    """Rows over unknowns, made of equations."""

    def __init__(self, equations: Iterable[Equation], asked: Iterable[Symbol] = ()) -> None:
        self.names: list[str] = []
        self.low: list[int | None] = []
        self.high: list[int | None] = []
        self.rows: list[Row] = []
        self.products: list[Product] = []
        self.number: dict[Any, int] = {}
        self.symbols: list[int] = []
        self._seen: set[Any] = set()
        for symbol in asked:
            self.atom(symbol)
        for e in equations:
            of, constant = self.linear(e.left)
            other, d = self.linear(e.right)
            for x, c in other.items():
                of[x] = of.get(x, 0) - c
            self.row(of, constant - d, e.at_least)
            if not e.at_least:
                self.divisors(e.left - e.right)

    def divisors(self, zero: Any) -> None:
        """What is in all terms of a sum divides its constant: it is not above that."""
        if not isinstance(zero, Size) or not zero.constant:
            return
        terms = [m for m in zero.terms if m]
        most = abs(zero.constant)
        for a in dict.fromkeys(terms[0] if terms else ()):
            if any(a not in m for m in terms):
                continue
            x = self.atom(a)
            low, high = self.low[x], self.high[x]
            self.low[x] = -most if low is None else max(low, 1 if low >= 0 else -most)
            self.high[x] = most if high is None else min(high, most)

    def row(self, of: Coefficients, constant: int, at_least: bool) -> None:
        row = Row({x: c for x, c in of.items() if c}, constant, at_least)
        key = (frozenset(row.of.items()), constant, at_least)
        if key not in self._seen:  # many operations say the same
            self._seen.add(key)
            self.rows.append(row)

    def unknown(self, key: Any, name: str, low: int | None) -> int:
        self.names.append(name)
        self.low.append(low)
        self.high.append(None)
        self.number[key] = len(self.names) - 1
        return len(self.names) - 1

    def atom(self, a: Atom) -> int:
        found = self.number.get(a)
        if found is not None:
            return found
        if isinstance(a, Symbol):
            self.symbols.append(self.unknown(a, a.name, a.least))
            return self.symbols[-1]
        if isinstance(a, Least):
            return self.least(a)
        of, constant = self.linear(a.of)
        q = self.unknown(a, repr(a), None)
        self.row({**of, q: -a.by}, constant, True)
        self.row({**{x: -c for x, c in of.items()}, q: a.by}, a.by - 1 - constant, True)
        return q

    def least(self, a: Least) -> int:
        """q <= both, and the product of what these are above it is 0."""
        low = min(map(smallest, a.of))
        q = self.unknown(a, repr(a), None if low == -math.inf else int(low))
        above = []
        for k, side in enumerate(a.of):
            of, constant = self.linear(side)
            above.append(self.unknown((a, k), f"{side} - {a!r}", 0))
            self.row({**of, q: -1, above[k]: -1}, constant, False)
        both = self.unknown((a, "both"), f"0 of {a!r}", None)
        self.products.append(Product(both, *above))
        self.row({both: 1}, 0, False)
        return q

    def monomial(self, m: Monomial) -> int:
        x = self.atom(m[0])
        for k in range(1, len(m)):
            key = m[: k + 1]
            if key in self.number:
                x = self.number[key]
                continue
            b = self.atom(m[k])
            made = self.unknown(key, "*".join(map(repr, key)), None)
            self.products.append(Product(made, x, b))
            x = made
        return x

    def linear(self, a: Any) -> tuple[Coefficients, int]:
        """A size as coefficients of unknowns, and a constant."""
        if not isinstance(a, Size):
            return {}, int(a)
        of: Coefficients = {}
        for m, c in a.terms.items():
            if m:
                x = self.monomial(m)
                of[x] = of.get(x, 0) + c
        return of, a.constant

    def free(self) -> int:
        """A new unknown without bounds."""
        return self.unknown(("free", len(self.names)), f"t{len(self.names)}", None)


def substituted(row: Row, x: int, by: Coefficients, constant: int) -> Row:
    """The row with ``sum by + constant`` in place of x."""
    c = row.of.get(x)
    if c is None:
        return row
    of = {y: d for y, d in row.of.items() if y != x}
    for y, d in by.items():
        of[y] = of.get(y, 0) + c * d
    return Row({y: d for y, d in of.items() if d}, row.constant + c * constant, row.at_least)


def decimal(q: Fraction) -> str:
    return str(q.numerator) if q.denominator == 1 else f"{float(q):.6g}"


def _reduced(s: System, row: Row) -> Row | None:
    """An equation by the divisor of its coefficients; None for 0 = 0."""
    if not row.of:
        if row.constant:
            raise Infeasible("")
        return None
    g = math.gcd(*row.of.values())
    if row.constant % g:
        if len(row.of) == 1:
            ((x, c),) = row.of.items()
            raise Infeasible(
                f"{s.names[x]} would have to be {decimal(_fractions.Fraction(-row.constant, c))}"
            )
        raise Infeasible("")
    return Row({x: c // g for x, c in row.of.items()}, row.constant // g, False) if g > 1 else row


def eliminated(s: System) -> dict[int, tuple[Coefficients, int]]:
    """What each unknown is by those that stay free; ends, since each step makes the least
    coefficient smaller or an equation fewer."""
    known: dict[int, tuple[Coefficients, int]] = {}
    todo = [r for r in s.rows if not r.at_least]
    while todo:
        row: Row | None = _reduced(s, todo.pop())
        while row is not None:
            x, c = min(row.of.items(), key=lambda t: (abs(t[1]), -t[0]))
            sign, a = (1, c) if c > 0 else (-1, -c)
            by = {y: -((sign * d) // a) for y, d in row.of.items() if y != x}
            constant = -((sign * row.constant) // a)
            if a > 1:  # x = t - sum (d // a) y - constant // a
                t = s.free()
                by[t] = 1
            by = {y: d for y, d in by.items() if d}
            known = {
                y: substituted(Row(e, k, False), x, by, constant)[:2] for y, (e, k) in known.items()
            }
            known[x] = (by, constant)
            todo = [substituted(r, x, by, constant) for r in todo]
            row = _reduced(s, substituted(row, x, by, constant))
    return known
