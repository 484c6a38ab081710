"""Equations between sizes, with the lines of the user's code that made them."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, NamedTuple

from .._base.errors import outside
from .expressions import Size

__all__ = ["Equation", "Known", "Line", "here", "name_of"]


class Line(NamedTuple):
    """A line of code."""

    file: str
    number: int

    def __str__(self) -> str:
        return f"line {self.number}"


def frame() -> FrameType:
    """The first frame outside of this package."""
    return sys._getframe(outside() - 1)


def here() -> Line:
    """The line of the user's code that is being run."""
    f = frame()
    return Line(f.f_code.co_filename, f.f_lineno)


def name_of(x: Any) -> str:
    """The name of a variable of the user that holds x; "" where there is none."""
    f = frame()
    for variables in (f.f_locals, f.f_globals):
        for name, held in list(variables.items()):
            if held is x and not name.startswith("_"):
                return str(name)
    return ""


class Known(int):
    """A size that is a number, and whose it is: a text, or what knows its name (`_named`)."""

    label: str
    of: Any
    line: Line | None

    @classmethod
    def made(cls, n: Any, of: Any, line: Line | None, label: str = "") -> Any:
        if isinstance(n, Size):
            return n
        k = cls(n)
        k.of, k.line, k.label = of, line, label
        return k

    def labelled(self, label: str) -> Known:
        return Known.made(int(self), self.of, self.line, label)  # type: ignore[no-any-return]

    def __reduce__(self) -> Any:
        return int, (int(self),)


class Equation(NamedTuple):
    """left = right, or left >= right, and why."""

    left: Any
    right: Any
    at_least: bool
    why: str
    line: Line | None

    def holds(self, left: int, right: int) -> bool:
        return left >= right if self.at_least else left == right

    def __str__(self) -> str:
        shown = f"{_side(self.left)} {'>=' if self.at_least else '='} {self.right}"
        shown += f": {self.why}" if self.why else ""
        shown += f", {self.line}" if self.line is not None else ""
        numbers = not any(isinstance(side, Size) for side in (self.left, self.right))
        for side in (self.right, self.left):
            owner = _owner(side)
            if owner and owner not in self.why and (numbers or side.label):
                mark = f", {side.line}" if side.line is not None else ""
                shown = f"{_side(side)} = {int(side)}: {owner}{mark}; {shown}"
        return shown


def _owner(x: Any) -> str:
    if not isinstance(x, Known):
        return ""
    return str(x.of if isinstance(x.of, str) else x.of._named())


def _side(x: Any) -> str:
    return x.label if isinstance(x, Known) and x.label else str(x)


def equal(left: Any, right: Any, why: str, line: Line | None) -> Equation:
    return Equation(left, right, False, why, line)


def at_least(left: Any, right: Any, why: str, line: Line | None) -> Equation:
    return Equation(left, right, True, why, line)
