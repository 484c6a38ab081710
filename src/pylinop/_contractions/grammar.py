"""Equations over axes, as text: NumPy's letters, or names between blanks.

    "bij,bjk->bik"                         letters
    "b head q d, b head k d -> b q head k"  names
    "b (h w) c -> b h w c"                  groups: one axis that is several, row by row
    "b ... c -> b (...) c"                  of a result also all that an ellipsis stands for
    "n (2*o + w), w -> n o"                 index equations: an axis read at 2 o + w
    "n (o + s*w), w -> n o"                 the same with a coefficient that sizes= says
    "b (h 2) -> b h", "b h -> b h 3"        a number: an axis without a name, of that size

Letters it is where no operand and no result has two axes between blanks, a parenthesis, a digit or
an underscore; then blanks mean nothing, as in NumPy."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

_TOKEN = re.compile(r"\s*(?:(\.\.\.)|([A-Za-z_]\w*)|(\d+)|([-+*()]))")
_NAMED = re.compile(r"[(_\d]|\w\s+\w|\.\s+\w|\w\s+\.")


class Coefficient(NamedTuple):
    """`number` times what sizes= says of `name`; `read` puts it in."""

    number: int
    name: str


class Index(NamedTuple):
    """An axis that is read at `constant` + the sum of coefficient times label."""

    terms: tuple[tuple[str, Any], ...]
    constant: int
    text: str


class Group(NamedTuple):
    """An axis that is several ones, the last one fastest; of a result, "..." among them."""

    labels: tuple[str, ...]


class Ellipsis_(NamedTuple):
    """All axes that have no label of their own."""


Axis = str | int | Index | Group | Ellipsis_  # a label; a size of 1


class Equation(NamedTuple):
    operands: tuple[tuple[Axis, ...], ...]
    result: tuple[Axis, ...] | None  # None: NumPy's rule, labels that are there once
    letters: bool
    text: str
    fixed: tuple[tuple[str, int], ...] = ()  # axes without a name, and their sizes
    sums_dots: bool = False  # an ellipsis that the result has not is summed
    coefficients: tuple[str, ...] = ()  # names that sizes= has to say


_MOST = 1 << 20  # letters of an equation: 65,536 operands and their labels
_LONG = 400  # of them, what an error shows
_DIGITS = 18  # of a number
DOTS = "..."


def fail(text: str, what: str) -> ValueError:
    if len(text) > _LONG:
        text = f"{text[: _LONG // 2]} ... ({len(text)} letters)"
    return ValueError(f"einsum {text!r}: {what}")


def _letters(text: str, part: str) -> tuple[Axis, ...]:
    axes: list[Axis] = []
    i = 0
    part = "".join(part.split())
    while i < len(part):
        if part.startswith("...", i):
            axes.append(Ellipsis_())
            i += 3
            continue
        if not part[i].isalpha():
            raise fail(text, f"{part[i]!r} is no label; labels are letters, or names with blanks")
        axes.append(part[i])
        i += 1
    return tuple(axes)


class _Names:
    """The axes of one operand, token by token."""

    def __init__(self, text: str, part: str, fixed: dict[str, int], names: set[str]) -> None:
        self.text, self.part, self.at = text, part, 0
        self.fixed, self.coefficients = fixed, names
        self.tokens: list[str] = []
        end = len(part.rstrip())
        at = 0
        while at < end:
            found = _TOKEN.match(part, at)
            if found is None:
                raise fail(text, f"{part[at:].strip()[:12]!r} is no axis")
            at = found.end()
            if found.group(3) and part[at : at + 1].isidentifier():
                raise fail(text, f"{found.group(3)!r} is no axis, before a letter")
            self.tokens.append(found.group().strip())

    def next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1] if self.at <= len(self.tokens) else ""

    def axes(self) -> tuple[Axis, ...]:
        found: list[Axis] = []
        while self.at < len(self.tokens):
            token = self.next()
            if token == "...":
                found.append(Ellipsis_())
            elif token == "(":
                found.append(self.parenthesis())
            elif token == "1":
                found.append(1)
            elif token.isidentifier():
                found.append(token)
            elif token.isdigit():
                found.append(self.nameless(token))
            else:
                raise fail(self.text, f"{token!r} is no axis; a sum is written in parentheses")
        return tuple(found)

    def nameless(self, number: str) -> str:
        """The label of an axis of which only the size is written."""
        if len(number) > _DIGITS:
            raise fail(self.text, f"a number of {len(number)} digits: sizes are of 64 bits")
        label = f"{int(number)}#{len(self.fixed)}"
        self.fixed[label] = int(number)
        return label

    def parenthesis(self) -> Axis:
        inside: list[str] = []
        while (token := self.next()) != ")":
            if token in ("", "("):
                raise fail(self.text, "a parenthesis is open" if not token else f"{token!r} in ()")
            if len(token) > _DIGITS and token.isdigit():
                raise fail(self.text, f"a number of {len(token)} digits: indices are of 64 bits")
            inside.append(token)
        if all(t.isidentifier() or t == DOTS or (len(inside) > 1 and t.isdigit()) for t in inside):
            named = (self.nameless(t) if t.isdigit() else t for t in inside if t != "1")
            return Group(tuple(named))
        return self.index(inside)

    def index(self, tokens: list[str]) -> Index:
        """coefficient * label and numbers, with + and -."""
        terms: dict[str, Any] = {}
        constant, sign, i = 0, 1, 0
        shown = " ".join(tokens)
        if tokens[0] in "+-":
            sign, i = (-1 if tokens[0] == "-" else 1), 1
        while True:
            factors: list[str] = []
            while i < len(tokens) and tokens[i] not in "+-":
                factors.append(tokens[i])
                i += 1
            names = [t for t in factors[::2] if t.isidentifier()]
            if len(factors) % 2 == 0 or any(t != "*" for t in factors[1::2]) or len(names) > 2:
                raise fail(self.text, f"({shown}) is not linear in its names: 2*o + w - 1 is")
            number = sign
            for t in factors[::2]:
                number *= 1 if t.isidentifier() else int(t)
            if len(names) == 2:
                if names[1] in terms or names[0] == names[1]:
                    raise fail(self.text, f"({shown}) has {names[1]!r} twice")
                self.coefficients.add(names[0])
                terms[names[1]] = Coefficient(number, names[0])
            elif names:
                if isinstance(terms.get(names[0]), Coefficient):
                    raise fail(self.text, f"({shown}) has {names[0]!r} twice")
                terms[names[0]] = terms.get(names[0], 0) + number
            else:
                constant += number
            if i == len(tokens):
                return Index(tuple((n, c) for n, c in terms.items()), constant, shown)
            sign = -1 if tokens[i] == "-" else 1
            i += 1


@functools.lru_cache(maxsize=1024)
def _parsed(text: str) -> Equation:
    if len(text) > _MOST:
        raise fail(text, f"equations have at most {_MOST:,} letters")
    left, arrow, right = text.partition("->")
    if "->" in right:
        raise fail(text, "there are two arrows")
    letters = not _NAMED.search(text)
    if "," in right:
        raise fail(text, "there is a comma behind the arrow")
    fixed: dict[str, int] = {}
    names: set[str] = set()

    def read(part: str) -> tuple[Axis, ...]:
        return _letters(text, part) if letters else _Names(text, part, fixed, names).axes()

    operands = tuple(read(part) for part in left.split(","))
    read_without_name = len(fixed)
    result = read(right) if arrow else None
    if read_without_name and len(fixed) > read_without_name:
        raise fail(text, "numbers on both sides of the arrow: an axis that stays has a name")
    _check(text, operands, result)
    axes = [axis for t in (*operands, result or ()) for axis in t]
    for name in sorted(names):
        if any(name in labels_of(axis) for axis in axes):
            raise fail(text, f"what {name!r} multiplies is not linear, {name!r} is an axis")
    return Equation(
        operands, result, letters, text, tuple(fixed.items()), not letters, tuple(sorted(names))
    )


def _check(text: str, operands: tuple[tuple[Axis, ...], ...], result: Any) -> None:
    for axes in (*operands, *([result] if result is not None else [])):
        if sum(isinstance(a, Ellipsis_) or DOTS in labels_of(a) for a in axes) > 1:
            raise fail(text, "an ellipsis is there twice")
    for axis in (axis for axes in operands for axis in axes):
        if isinstance(axis, Group) and DOTS in axis.labels:
            raise fail(text, "(...) is for a result; the parts of an operand's axis have names")
    for axis in result or ():
        if isinstance(axis, Index):
            raise fail(text, f"({axis.text}) is computed, not read: no axis of a result")


def parse(text: str) -> Equation:
    """The equation of a text; ValueError says where it cannot be read."""
    return read(text, None)[0]


def read(text: str, sizes: Any) -> tuple[Equation, Any]:
    """The equation, with the coefficients that sizes= says put in, and the other sizes."""
    e = _parsed(text)
    if not e.coefficients:
        return e, sizes
    if not isinstance(sizes, Mapping) or not set(e.coefficients) <= set(sizes):
        said = sizes if isinstance(sizes, Mapping) else ()
        name = next(name for name in e.coefficients if name not in said)
        raise fail(text, f"the coefficient {name!r} is no number: say it by sizes=")

    def put(axis: Axis) -> Axis:
        if not isinstance(axis, Index):
            return axis
        return axis._replace(terms=tuple((x, _number(c, sizes)) for x, c in axis.terms))

    operands = tuple(tuple(map(put, axes)) for axes in e.operands)
    rest = {x: n for x, n in sizes.items() if x not in e.coefficients}
    return e._replace(operands=operands, coefficients=()), rest


def _number(c: Any, sizes: Mapping[str, Any]) -> Any:
    if not isinstance(c, Coefficient):
        return c
    n = sizes[c.name]
    if not hasattr(n, "terms"):  # no size in symbols
        try:
            n = operator.index(n)
        except TypeError:
            raise TypeError(f"sizes: {c.name} = {n!r} is no integer") from None
    return c.number * n


def labels_of(axis: Axis) -> tuple[str, ...]:
    if isinstance(axis, str):
        return (axis,)
    if isinstance(axis, Group):
        return axis.labels
    if isinstance(axis, Index):
        return tuple(name for name, _ in axis.terms)
    return ()
