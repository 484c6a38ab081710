"""Bounds of unknowns: rows, products and divisibility to a fixpoint, then the rows of each unknown
without the others (`projected.py`), then a search for the ends that are really taken. All is
counted: what is not decided within the counts stays an interval."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .expressions import Symbol, value
from .projected import Bounds, Ends, connected, ends, of_product
from .provenance import Equation
from .system import Coefficients, Infeasible, Product, Row, System, eliminated, substituted

ROUNDS = 60  # times that all rows are gone through; one that changes nothing is the last
AGAIN = 12  # eliminations, each with what the bounds before it had fixed
WORK = 60_000  # rows that a search may look at, some 3 us each
CASES = 12  # sizes of factors that are tried, one after the other, for an end that rows leave open
NEAR = (3, 40)  # of sizes that are looked at first, above the least ones
LARGEST = 2**63 - 1  # of a size


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
        self.equations = [*equations]
        self.s = System(self.equations, asked)
        self.left = work
        self.rows: list[Row] = []
        self.known: dict[int, tuple[Coefficients, int]] = {}
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
            known = self.known = eliminated(s)
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
        if any(high[x] is None for x in s.symbols):
            self.project(low, high)
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

    def lines(self, low: Bounds, high: Bounds) -> list[tuple[Coefficients, int]]:
        """All that is known as sums that are not negative, of unknowns that are free."""
        rows = [(r.of, r.constant) for r in self.rows if r.at_least]
        for x in range(len(low)):
            a, b = low[x], high[x]
            if a is not None:
                rows.append(({x: 1}, -a))
            if b is not None:
                rows.append(({x: -1}, b))
        for p in self.s.products:
            rows += of_product(p, low, high)
        return [self.freed(of, constant) for of, constant in rows]

    def freed(self, of: Coefficients, constant: int) -> tuple[Coefficients, int]:
        """A sum with what eliminated unknowns are in their place."""
        free: Coefficients = {}
        for x, c in of.items():
            by, k = self.known.get(x, ({x: 1}, 0))
            constant += c * k
            for y, d in by.items():
                free[y] = free.get(y, 0) + c * d
        return {y: c for y, c in free.items() if c}, constant

    def ends_of(self, x: int, lines: list[tuple[Coefficients, int]]) -> Ends | None:
        """What rows leave of an unknown, whatever the others are; None: not found."""
        if x in self.known:
            by, k = self.known[x]
            own: list[tuple[Coefficients, int]] = [({x: -1, **by}, k)]
            own.append(({y: -c for y, c in own[0][0].items()}, -k))
        else:
            own = []
        found, looked = ends(connected(lines + own, x), x)
        self.left -= 2 * looked  # a row here takes twice as long as one in a sweep
        return found

    def project(self, low: Bounds, high: Bounds) -> None:
        """Bounds of symbols that single rows leave open, by all rows together."""
        for _ in range(AGAIN):
            lines, changed = self.lines(low, high), False
            for x in self.s.symbols:
                if high[x] is not None or self.left < 0:
                    continue
                found = self.ends_of(x, lines)
                if found is not None and found.low is not None:
                    changed |= _raise(self.s, x, found.low, low, high)
                if found is not None and found.high is not None:
                    changed |= _lower(self.s, x, found.high, low, high)
            if not changed:
                return
            self.sweep(low, high)

    def solution(self, low: Bounds, high: Bounds) -> dict[int, int] | None:
        """Sizes of the symbols within the bounds; None: there are none in what was searched.

        Raises `Infeasible` where there are none at all. What is near the least sizes is searched
        first, as a search that goes up along one symbol never comes to the others."""
        left = self.left
        for near in NEAR:
            close = [*high]
            for x in self.s.symbols:
                most = int(low[x] or 0) + near
                if close[x] is None or int(close[x] or 0) > most:
                    close[x] = most
            if close == high:
                break
            self.left = left // 4
            try:
                found = self.searched([*low], close)
            except Infeasible:
                found = None
            left -= left // 4 - self.left
            if found is not None:
                self.left = left
                return found
        self.left = left
        return self.searched([*low], [*high])

    def searched(self, low: Bounds, high: Bounds) -> dict[int, int] | None:
        """The search: a symbol is its least size, or more than that."""
        if self.left < 0:
            return None
        self.sweep(low, high)
        if any(high[x] is None for x in self.s.symbols):
            self.project(low, high)
        open_ = [x for x in self.s.symbols if low[x] != high[x]]
        if not open_:
            return self.checked({x: int(low[x] or 0) for x in self.s.symbols})
        x = min(open_, key=lambda y: _width(low[y], high[y]))
        certain = True
        while high[x] is None or int(low[x] or 0) <= int(high[x] or 0):
            own = [*high]
            own[x] = low[x]
            try:
                found = self.searched([*low], own)
                certain &= found is not None
            except Infeasible:
                found = None
            if found is not None:
                return found
            if self.left < 0:
                return None
            low[x] = int(low[x] or 0) + 1
            try:
                if high[x] is None or int(low[x] or 0) <= int(high[x] or 0):
                    self.sweep(low, high)
                    if high[x] is None:
                        self.project(low, high)
            except Infeasible:
                break
        if certain:
            raise Infeasible("")
        return None

    def checked(self, sizes: dict[int, int]) -> dict[int, int]:
        """Sizes that fulfil the equations: bounds leave open what is within a smaller size."""
        self.left -= len(self.equations)
        known = {a: sizes[x] for a, x in self.s.number.items() if isinstance(a, Symbol)}
        if not all(e.holds(value(e.left, known), value(e.right, known)) for e in self.equations):
            raise Infeasible("")
        return sizes

    def end(self, x: int, upper: bool) -> bool:
        """Moves one end of an unknown inwards to a size that is taken; was that decided?"""
        while True:
            at = self.high[x] if upper else self.low[x]
            if at is None:
                at, decided = self.top(x, [*self.low], [*self.high], CASES)
                if at is None:
                    return decided
                self.high[x] = at
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

    def top(self, x: int, low: Bounds, high: Bounds, cases: int) -> tuple[int | None, bool]:
        """A size that an unknown is at most, and was that decided? None, and decided: there is no
        greatest one. Rows say it where no product is open; else one factor is its least size, or
        more than that."""
        self.sweep(low, high)
        if high[x] is not None:
            return high[x], True
        lines = self.lines(low, high)
        found = self.ends_of(x, lines) if self.left >= 0 else None
        if found is None or found.high is not None:
            return (None, False) if found is None else (found.high, True)
        factors = self.open_factors(x, lines, low, high)
        if not factors:  # a solution, and all that a row goes on to from there
            return None, self.solution(low, high) is not None
        factors.discard(x)
        if not cases or not factors:
            return None, False
        y = min(factors, key=lambda z: (_width(low[z], high[z]), z))
        most: list[int] = []
        for first in (True, False):
            a, b = [*low], [*high]
            if first:
                b[y] = a[y]
            else:
                a[y] = int(a[y] or 0) + 1
            try:
                at, decided = self.top(x, a, b, cases - 1)
            except Infeasible:
                continue
            if at is None:
                return None, decided
            most.append(at)
        if not most:
            raise Infeasible("")
        return max(most), True

    def open_factors(
        self, x: int, lines: list[tuple[Coefficients, int]], low: Bounds, high: Bounds
    ) -> set[int]:
        """Factors that are open, of products that have to do with x."""
        links = [of for of, _ in lines] + [dict.fromkeys(p, 1) for p in self.s.products]
        links += [{y: 1, **by} for y, (by, _) in self.known.items()]
        near = {y for of, _ in connected([(of, 0) for of in links], x) for y in of}
        of_x = [p for p in self.s.products if p.is_ in near]
        return {
            y
            for p in of_x
            if low[p.a] != high[p.a] and low[p.b] != high[p.b]
            for y in (p.a, p.b)
            if low[y] is not None
        } | {x for p in of_x if None in (low[p.a], low[p.b])}

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
    if ha is not None and hb is not None or ha == 0 or hb == 0:
        changed |= _lower(s, m, (ha or 0) * (hb or 0), low, high)
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
