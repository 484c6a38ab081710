"""Bounds of unknowns: rows, products and divisibility to a fixpoint, then a search for the ends
that are really taken. All is counted: what is not decided within the counts stays an interval."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .expressions import Symbol
from .provenance import Equation
from .system import Infeasible, Product, Row, System, eliminated, substituted

ROUNDS = 60  # times that all rows are gone through; one that changes nothing is the last
AGAIN = 12  # eliminations, each with what the bounds before it had fixed
WORK = 60_000  # rows that a search may look at, some 3 us each
CASES = 6  # products that are 0, of which one factor after the other is tried as 0
LARGEST = 2**63 - 1  # of a size

Bounds = list[int | None]


class Interval(NamedTuple):
    """The least and the greatest size; None: without bound. Exact: both are really taken."""

    low: int | None
    high: int | None
    exact: bool


class Search:
    """Bounds of the unknowns of a system."""

    def __init__(
        self, equations: Iterable[Equation], asked: Iterable[Symbol] = (), work: int = WORK
    ) -> None:
        self.s = System(equations, asked)
        self.left = work
        self.rows: list[Row] = []
        self.low: Bounds = []
        self.high: Bounds = []

    def start(self) -> None:
        """Bounds to a fixpoint; then, is there a solution at all, as far as the count goes?"""
        self.low, self.high = self.fixpoint()
        self.solution(self.low, self.high)

    def fixpoint(self) -> tuple[Bounds, Bounds]:
        """Elimination and bounds by turns, until neither says more."""
        s = self.s
        own, fixed = list(s.rows), set[int]()
        for _ in range(AGAIN):
            known = eliminated(s)
            self.rows = own + [Row({x: -1, **by}, c, False) for x, (by, c) in known.items()]
            for row in own:
                if row.at_least:
                    for x, (by, c) in known.items():
                        row = substituted(row, x, by, c)
                    self.rows.append(row)
            low, high = [*s.low], [*s.high]
            for x in s.symbols:
                if x in known and not known[x][0]:
                    _raise(s, x, known[x][1], low, high)
                    _lower(s, x, known[x][1], low, high)
            self.sweep(low, high)
            now = {x for x in range(len(low)) if low[x] is not None and low[x] == high[x]}
            if now <= fixed:
                break
            for x in sorted(now - fixed):
                s.rows.append(Row({x: 1}, -int(low[x] or 0), False))
                for p in s.products:
                    for a, b in ((p.a, p.b), (p.b, p.a)):
                        if a == x and p.is_ not in now:
                            by = {b: -int(low[x] or 0)} if low[x] else {}
                            own.append(Row({p.is_: 1, **by}, 0, False))
                            s.rows.append(own[-1])
            fixed = now
        return low, high

    def sweep(self, low: Bounds, high: Bounds) -> None:
        """Tightens bounds until nothing changes, or the count is reached."""
        for _ in range(ROUNDS):
            changed = False
            self.left -= len(self.rows)
            for row in self.rows:
                changed |= _row(self.s, row.of, row.constant, low, high)
                if not row.at_least:
                    turned = {x: -c for x, c in row.of.items()}
                    changed |= _row(self.s, turned, -row.constant, low, high)
            for p in self.s.products:
                changed |= _product(self.s, p, low, high)
            if not changed:
                return

    def solution(self, low: Bounds, high: Bounds) -> dict[int, int] | None:
        """Sizes of the symbols within the bounds; None: there are none in what was searched.

        Raises `Infeasible` where there are none at all."""
        if self.left < 0:
            return None
        low, high = [*low], [*high]
        self.sweep(low, high)
        open_ = [x for x in self.s.symbols if low[x] != high[x]]
        if not open_:
            return {x: int(low[x] or 0) for x in self.s.symbols}
        width = {x: _width(low[x], high[x]) for x in open_}
        x = min(open_, key=lambda y: width[y])
        start, stop, certain = int(low[x] or 0), high[x], True
        value = start
        while stop is None or value <= stop:
            low[x] = high[x] = value
            try:
                found = self.solution(low, high)
            except Infeasible:
                found, decided = None, True
            else:
                decided = False
            if found is not None:
                return found
            certain &= decided
            if self.left < 0:
                return None
            value += 1
        if certain:
            raise Infeasible("")
        return None

    def end(self, x: int, upper: bool) -> bool:
        """Moves one end of an unknown inwards to a size that is taken; was that decided?"""
        while True:
            at = self.high[x] if upper else self.low[x]
            if at is None:
                at = self.high[x] = self.top(x, [*self.low], [*self.high], CASES)
            if at is None:  # sums alone are without bound where none is found
                return all(isinstance(key, Symbol) or key[0] == "free" for key in self.s.number)
            low, high = [*self.low], [*self.high]
            low[x] = high[x] = at
            try:
                return self.solution(low, high) is not None
            except Infeasible:
                if upper:
                    self.high[x] = at - 1
                else:
                    self.low[x] = at + 1
                if (self.high[x] is not None) and int(self.low[x] or 0) > int(self.high[x] or 0):
                    raise

    def top(self, x: int, low: Bounds, high: Bounds, cases: int) -> int | None:
        """The greatest size of an unknown that bounds alone leave open, by cases: of a product that
        is 0, which says what a smaller one of two sizes is, one factor is."""
        self.sweep(low, high)
        if self.by_products(low, high):
            self.sweep(low, high)
        if high[x] is not None or self.left < 0:
            return high[x]
        for p in self.s.products:
            if high[p.is_] != 0 or high[p.a] == 0 or high[p.b] == 0 or not cases:
                continue
            ends: list[int | None] = []
            for factor in (p.a, p.b):
                own = [*high]
                own[factor] = 0
                try:
                    ends.append(self.top(x, [*low], own, cases - 1))
                except Infeasible:
                    continue
            if not ends:
                raise Infeasible("")
            return None if None in ends else max(int(n or 0) for n in ends)
        return None

    def by_products(self, low: Bounds, high: Bounds) -> bool:
        """Rows with the least that a product can be in its place: of m = a b that is a times the
        least b."""
        changed = False
        for row in self.rows:
            for sign in (1,) if row.at_least else (1, -1):
                of, constant = {y: sign * c for y, c in row.of.items()}, sign * row.constant
                for p in self.s.products:
                    la, lb, c = low[p.a], low[p.b], of.get(p.is_, 0)
                    if c < 0 and la is not None and la >= 0 and lb is not None and lb > 0:
                        del of[p.is_]
                        of[p.a] = of.get(p.a, 0) + c * lb
                of = {y: c for y, c in of.items() if c}
                changed |= _row(self.s, of, constant, low, high)
        return changed

    def interval(self, symbol: Symbol) -> Interval:
        x = self.s.number[symbol]
        if self.low[x] == self.high[x]:
            return Interval(self.low[x], self.high[x], True)
        exact = self.end(x, False) and self.end(x, True)
        return Interval(self.low[x], self.high[x], exact)


class Work:
    """What may still be looked at, by several searches together."""

    def __init__(self, rows: int) -> None:
        self.left = rows

    def possible(self, equations: Iterable[Equation], most: int) -> bool:
        """Is there a solution, as far as the counts go? False is certain."""
        if self.left < 0:
            return True
        search = Search(equations, (), most)
        try:
            search.start()
        except Infeasible:
            return False
        finally:
            self.left -= most - search.left
        return True


def _width(low: int | None, high: int | None) -> float:
    return float("inf") if low is None or high is None else high - low


def _ends(c: int, x: int, low: Bounds, high: Bounds) -> int | None:
    """The greatest c x."""
    end = high[x] if c > 0 else low[x]
    return None if end is None else c * end


def _row(s: System, of: dict[int, int], constant: int, low: Bounds, high: Bounds) -> bool:
    """sum c x + constant >= 0: each c x is at least what the greatest of the others leave."""
    total, open_ = constant, []
    for x, c in of.items():
        end = _ends(c, x, low, high)
        if end is None:
            open_.append(x)
        else:
            total += end
    if not open_ and total < 0:
        raise Infeasible("")
    changed = False
    if len(open_) > 1:
        return False
    for x, c in of.items():
        if open_ and x != open_[0]:
            continue
        own = _ends(c, x, low, high)
        rest = total - (own or 0)  # c x >= -rest
        if c > 0:
            changed |= _raise(s, x, -(rest // c), low, high)
        else:
            changed |= _lower(s, x, rest // -c, low, high)
    return changed


def _raise(s: System, x: int, to: int, low: Bounds, high: Bounds) -> bool:
    at = low[x]
    if at is not None and at >= to or abs(to) > LARGEST:
        if to > LARGEST and x in s.symbols:
            raise Infeasible(f"{s.names[x]} would have to be beyond 2^63")
        return False
    end = high[x]
    if end is not None and to > end:
        raise Infeasible(_beyond(s, x, to, end))
    low[x] = to
    return True


def _lower(s: System, x: int, to: int, low: Bounds, high: Bounds) -> bool:
    at = high[x]
    if at is not None and at <= to or abs(to) > LARGEST:
        return False
    end = low[x]
    if end is not None and to < end:
        raise Infeasible(_beyond(s, x, to, end))
    high[x] = to
    return True


def _beyond(s: System, x: int, to: int, end: int) -> str:
    if x not in s.symbols:
        return ""
    side = "least" if to < end else "most"
    return f"{s.names[x]} would have to be {to}, and is at {side} {end}"


def _product(s: System, p: Product, low: Bounds, high: Bounds) -> bool:
    """m = a b, of factors that are not negative; of others only what two known ones give."""
    m, a, b = p
    la, ha, lb, hb = low[a], high[a], low[b], high[b]
    if la is None or lb is None or la < 0 or lb < 0:
        if la is not None and la == ha and lb is not None and lb == hb:
            return _raise(s, m, la * lb, low, high) | _lower(s, m, la * lb, low, high)
        return False
    changed = _raise(s, m, la * lb, low, high)
    if low[m] is not None and int(low[m] or 0) > 0:
        changed |= _raise(s, a, 1, low, high) | _raise(s, b, 1, low, high)
    if ha is not None and hb is not None:
        changed |= _lower(s, m, ha * hb, low, high)
    for x, y in ((a, b), (b, a)):
        most, least = high[m], low[m]
        ly, hy = low[y], high[y]
        if most is not None and ly is not None and ly > 0:
            changed |= _lower(s, x, most // ly, low, high)
        if least is not None and hy is not None and hy > 0:
            changed |= _raise(s, x, -(-least // hy), low, high)
        if least is not None and least > 0 and hy == 0:
            raise Infeasible("")
    return changed
