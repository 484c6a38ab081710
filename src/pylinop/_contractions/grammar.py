"""Equations over axes, as text: NumPy's letters, or names between blanks.

    "bij,bjk->bik"                         letters
    "b head q d, b head k d -> b q head k"  names
    "b (h w) c -> b h w c"                  groups: one axis that is several, row by row
    "b ... c -> b (...) c"                  of a result also all that an ellipsis stands for
    "n (2*o + w), w -> n o"                 index equations: an axis read at 2 o + w

Letters it is where no operand and no result has two axes between blanks, a parenthesis, a digit or
an underscore; then blanks mean nothing, as in NumPy."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

_TOKEN = re.compile(r"\s*(?:(\.\.\.)|([A-Za-z_]\w*)|(\d+)|([-+*()]))")
_NAMED = re.compile(r"[(_\d]|\w\s+\w|\.\s+\w|\w\s+\.")


class Index(NamedTuple):
    """An axis that is read at `constant` + the sum of coefficient times label."""

    terms: tuple[tuple[str, int], ...]
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

    def __init__(self, text: str, part: str) -> None:
        self.text, self.part, self.at = text, part, 0
        self.tokens: list[str] = []
        end = len(part.rstrip())
        at = 0
        while at < end:
            found = _TOKEN.match(part, at)
            if found is None:
                raise fail(text, f"{part[at:].strip()[:12]!r} is no axis")
            self.tokens.append(found.group().strip())
            at = found.end()

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
            else:
                raise fail(self.text, f"{token!r} is no axis; a sum is written in parentheses")
        return tuple(found)

    def parenthesis(self) -> Axis:
        inside: list[str] = []
        while (token := self.next()) != ")":
            if token in ("", "("):
                raise fail(self.text, "a parenthesis is open" if not token else f"{token!r} in ()")
            if len(token) > _DIGITS and token.isdigit():
                raise fail(self.text, f"a number of {len(token)} digits: indices are of 64 bits")
            inside.append(token)
        if all(t.isidentifier() or t == DOTS for t in inside):
            return Group(tuple(inside))
        return self.index(inside)

    def index(self, tokens: list[str]) -> Index:
        """coefficient * label and numbers, with + and -."""
        terms: dict[str, int] = {}
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
            if len(factors) % 2 == 0 or any(t != "*" for t in factors[1::2]) or len(names) > 1:
                raise fail(self.text, f"({shown}) is not linear in its names: 2*o + w - 1 is")
            number = sign
            for t in factors[::2]:
                number *= 1 if t.isidentifier() else int(t)
            if names:
                terms[names[0]] = terms.get(names[0], 0) + number
            else:
                constant += number
            if i == len(tokens):
                return Index(tuple((n, c) for n, c in terms.items()), constant, shown)
            sign = -1 if tokens[i] == "-" else 1
            i += 1


@functools.lru_cache(maxsize=1024)
def parse(text: str) -> Equation:
    """The equation of a text; ValueError says where it cannot be read."""
    if len(text) > _MOST:
        raise fail(text, f"equations have at most {_MOST:,} letters")
    left, arrow, right = text.partition("->")
    if "->" in right:
        raise fail(text, "there are two arrows")
    letters = not _NAMED.search(text)
    if "," in right:
        raise fail(text, "there is a comma behind the arrow")
    read = _letters if letters else lambda t, part: _Names(t, part).axes()
    operands = tuple(read(text, part) for part in left.split(","))
    result = read(text, right) if arrow else None
    for axes in (*operands, *([result] if result is not None else [])):
        if sum(isinstance(a, Ellipsis_) or DOTS in labels_of(a) for a in axes) > 1:
            raise fail(text, "an ellipsis is there twice")
    for axis in (axis for axes in operands for axis in axes):
        if isinstance(axis, Group) and DOTS in axis.labels:
            raise fail(text, "(...) is for a result; the parts of an operand's axis have names")
    for axis in result or ():
        if isinstance(axis, Index):
            raise fail(text, f"({axis.text}) is computed, not read: no axis of a result")
    return Equation(operands, result, letters, text)


def labels_of(axis: Axis) -> tuple[str, ...]:
    if isinstance(axis, str):
        return (axis,)
    if isinstance(axis, Group):
        return axis.labels
    if isinstance(axis, Index):
        return tuple(name for name, _ in axis.terms)
    return ()
