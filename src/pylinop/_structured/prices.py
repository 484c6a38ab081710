"""What a row costs, read from the text that the printed tables show.

A cost is a list: ``"sum of the factors', O(n log n)"``. An entry is a formula in the sizes of the
operator (m, n; k, a rank; w, l, u, of a band; J, the order of a QuasiSeparable), or names what is
asked of a part, whose own price is added by the tree. What stands behind a semicolon is said and
not priced. So no figure can be printed that the tables do not have."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

from .. import _core
from .._base.dtypes import inexact
from .._operators.convert import as_operator
from .._operators.parameters import written

_LINEAR, _CUBIC = 5.0, 10.0  # flops behind an O() of up to two sizes, and of three
_PASSES, _ARRAYS = 4, 3  # over the entries that an O() touches; how many such arrays it holds
_SLOW = 1.7  # by how much LAPACK's flops are slower than gemm's, where a question says nothing
# Seconds of a row's Python, and of one that has thin factors decomposed, in several calls; of this
# thread, measured 2026-11-26 with benchmarks/system.py.
ROW, THIN = 20e-6, 115e-6
FAR = 1e-7  # of an entry that is read from a page of its own, likewise


class Price(NamedTuple):
    """An estimate; ``by`` is "structure", "band", "dense" or "iterative"."""

    by: str
    flops: float
    seconds: float
    bytes: float
    memory: int

    def plus(self, *others: Price) -> Price:
        """The price of all together, by the first one's way."""
        flops, seconds, moved, memory = (sum(x) for x in zip(*(p[1:] for p in (self, *others))))
        return Price(self.by, flops, seconds, moved, int(memory))


NOTHING = Price("structure", 0.0, 0.0, 0.0, 0)


def rated(by: str, flops: float, nbytes: float, memory: float) -> Price:
    """A price whose time follows from flops and bytes, at the rates of the cost table."""
    costs = _core._costs()
    seconds = max(flops / costs["flop_rate"], nbytes / costs["bandwidth"])
    return Price(by, flops, seconds, nbytes, int(memory))


# -- sizes --


def _rank(op: Any) -> int:
    if op._head == "block" and op._init is not None:  # of the border, where there is one
        return int(op._given("blocks")[-1][-1].shape[-1])
    names = {"lowrank": "U", "lowrankupdate": "U", "root": "L", "reflections": "V"}
    if op._init is None or op._head not in names:
        return int(min(op.shape[-2:]))
    return int(as_operator(op._given(names[op._head])).shape[-1])


def _order(op: Any) -> int:
    own = op._head == "quasiseparable" and op._init is not None
    return int(op._given("p").shape[-1]) if own else 2


def _band(op: Any) -> tuple[float, float]:
    """How many diagonals there are below and above the main one; of contiguous rows and columns
    of a band those of the whole, moved."""
    below, above = op._known("band")
    if not written(op, "sliced"):
        return below, above
    whole, steps = op._operands
    if any(len(step) != 3 or step[1] != 1 for _, *step in steps):
        return below, above  # indices, or every other row
    first = {axis: step[0] for axis, *step in steps}
    moved = first.get(0, 0) - first.get(1, 0)
    low, up = _band(whole)
    return min(below, max(0, low - moved)), min(above, max(0, up + moved))


class _Sizes(dict[str, float]):
    """The sizes of an operator by the letters of the tables, found when a formula asks."""

    def __init__(self, op: Any) -> None:
        super().__init__(m=float(op.shape[-2]), n=float(op.shape[-1]))
        self._op = op

    def __missing__(self, name: str) -> float:
        below, above = _band(self._op) if name in "luw" else (0, 0)
        found = {"l": below, "u": above, "w": max(below, above, 1)}.get(name)
        if found is None:
            found = {"k": _rank, "J": _order}[name](self._op)
        self[name] = float(found)
        return float(found)


# -- formulas --

_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?)|([A-Za-z]+)|([-+*/^(),]))")
_CALLS = {"log": lambda x: math.log2(x + 2), "min": min, "max": max}
_LETTERS = frozenset("mnkwluJ")


def _translated(text: str) -> str:
    """A formula as Python writes it: "4 m n^2" is 4*m*n**2, "log n" is log(n)."""
    made: list[str] = []
    at, ends, calls = 0, False, False
    while at < len(text.rstrip()):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"{text!r} is no formula: {text[at:]!r}")
        at = found.end()
        number, name, sign = found.groups()
        if name and name not in _CALLS and name not in _LETTERS:
            raise ValueError(f"{text!r} is no formula: there is no size {name!r}")
        if ends and (number or name or sign == "("):
            made.append("*")
        if calls and sign != "(":
            made.append(f"({number or name})")
            calls, ends = False, True
            continue
        made.append("**" if sign == "^" else number or name or sign)
        calls = name in _CALLS
        ends = bool(number or (name and not calls) or sign == ")")
    if calls or not ends:
        raise ValueError(f"{text!r} is no formula: something is missing at its end")
    return "".join(made)


class _Term:
    """One formula: flops, and how many entries are touched."""

    def __init__(self, text: str) -> None:
        inner = re.fullmatch(r"O\((.*)\)", text)
        source = _translated(inner[1] if inner else text)
        try:
            self._code = compile(source, text, "eval")
        except SyntaxError:
            raise ValueError(f"{text!r} is no formula") from None
        bare = re.sub(r"log\(\w+\)", "1", source)
        bare = re.sub(r"/\d+", "", re.sub(r"(^|[+(])[\d.]+\*(?!\*)", r"\1", bare))
        self._plain = compile(bare, text, "eval")  # entries, without the factors of flops
        self._letters = sorted(_LETTERS & set(re.findall(r"\w+", source)))
        self.thin = "k" in self._letters
        small = {x: 1.0 if x in "wluJ" else 2e3 for x in self._letters}
        large = {x: v if v == 1 else 2 * v for x, v in small.items()}
        growth = self._value(large, self._plain) / self._value(small, self._plain)
        self.cubic = growth > 5.7  # of a degree above two and a half: LAPACK's blocked loops
        self._factor = (_CUBIC if self.cubic else _LINEAR) if inner else 1.0
        self._passes = _PASSES if inner or self.cubic else 1

    @staticmethod
    def _value(sizes: dict[str, float], code: Any) -> float:
        return float(eval(code, {"__builtins__": {}, **_CALLS}, sizes))

    def value(self, sizes: dict[str, float]) -> float:
        """The formula itself."""
        return self._value(sizes, self._code)

    def price(self, op: Any, by: str, slow: float) -> Price:
        sizes = _Sizes(op)
        count, dtype = math.prod(op.shape[:-2]), inexact(op.dtype)
        flops = count * self._factor * self._value(sizes, self._code)
        entries = count * self._value(sizes, self._plain)
        if self.cubic:
            flops *= 4 if dtype.kind == "c" else 1
            entries /= max(1.0, min(sizes[x] for x in self._letters))
        moved, held = self._passes * entries * dtype.itemsize, _ARRAYS * entries * dtype.itemsize
        if not self.cubic:
            return rated(by, flops, moved, held)
        return Price(by, flops, flops / _core._costs()["gemm_rate"] * slow, moved, int(held))


# -- costs --

# What is asked, by the words of the tables: (which question, "" for the same; of which part).
_ASKED = {
    "eigh's": ("eigh", "itself"),
    "svd's": ("svd", "itself"),
    "that of eigh": ("eigh", "itself"),
    "that of `eigvalsh`": ("eigvalsh", "itself"),
    "`svdvals`": ("svdvals", "itself"),
    "that of `cholesky`": ("cholesky", "itself"),
    "a product": ("apply", "itself"),
    "a sparse solve": ("solve", "itself"),
    "svd of L": ("svd", "L"),
    "svdvals of L": ("svdvals", "L"),
    "qr of L^H": ("qr", "L"),
    "both roots'": ("", "terms"),
    "theirs": ("", "terms"),
    "that of U C V^H": ("", "itself"),
}
_PARTS = re.compile(
    r"(?:sum of )?the (?:factors|blocks|operands)'|(?:that|those) of (?P<of>[ABL])|(?P<by>[ABL])'s"
)


class Cost:
    """A cost as the tables print it: ``asks`` is what is asked, ``price`` the row's own share."""

    def __init__(self, text: str) -> None:
        self.asks: list[tuple[str, str]] = []
        self._terms: list[_Term] = []
        for part in re.split(r", (?![^()]*\))", text.partition(";")[0]):
            parts = _PARTS.fullmatch(part)
            if part in _ASKED:
                self.asks.append(_ASKED[part])
            elif parts:
                self.asks.append(("", parts["of"] or parts["by"] or "parts"))
            else:
                self._terms.append(_Term(part))

    def price(self, op: Any, by: str = "structure", slow: float | None = None) -> Price:
        """The row's own share of the price, without what it asks."""
        slow = _SLOW if slow is None else slow
        thin = any(term.thin for term in self._terms)
        own = Price(by, 0.0, THIN if thin else ROW, 0.0, 0)
        return own.plus(*(term.price(op, by, slow) for term in self._terms))


def entries(text: str, op: Any) -> float:
    """What a formula in the sizes of the operator comes to, over its batch."""
    return float(math.prod(op.shape[:-2])) * _Term(text).value(_Sizes(op))


_read: dict[str, Cost] = {}


def read(text: str) -> Cost:
    """The cost that a text says; each is read once."""
    found = _read.get(text)
    if found is None:
        found = _read[text] = Cost(text)
    return found
