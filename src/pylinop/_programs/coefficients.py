"""Where the coefficients of plans come from: of which numbers of a program, by two runs of it.

    numbers in memory --the same in both runs, times or by a factor--> one that it may be
                      --several: are they one by what they were made of?--> the source, or none

A coefficient is a constant only where it is the same in both runs and no number that depends on the
arguments is it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._base.checks import is_lazy
from .._base.dlpack import is_fixed
from .._gradients.pieces import stop
from .views import Unfit, View, of_views, view_of

__all__ = ["Read", "Sources", "reads"]

_FACTORS = (1.0, -1.0, 2.0, -2.0, 0.5, -0.5)
_SIMPLE = (str, bytes, int, float, complex, type(None), type(Ellipsis), np.dtype)


class Read(NamedTuple):
    """A single number: where it lies, and the LazyArray or array that it is."""

    view: View
    value: float
    of: Any


def reads(events: Any, arrays: Any) -> list[Read]:
    """The single numbers of a run."""
    found = [Read(view_of(a), float(a), a) for a in arrays if a.ndim == 0 and a.dtype.char in "fd"]
    for e in events:
        if not isinstance(e, tuple) and e._value.ndim == 0 and e._value.dtype.char in "fd":
            found.append(Read(view_of(e._value), float(e._value), e))
    return found


def known_of(x: Any) -> Any:
    """The array of a LazyArray; None: it has none, or a part of one is the matrix."""
    if x._head == "leaf":
        return x._args[0] if x._more is None else None
    return x._value


def _power(x: Any) -> float | None:
    """A number that is a power of two or minus one, as which products by it are exact."""
    if is_lazy(x) and x._head == "leaf":
        x = x._args[0]
    if isinstance(x, np.ndarray):
        if x.ndim or not is_fixed(x):
            return None
        x = x[()]
    if not isinstance(x, (int, float, np.floating)):
        return None
    number = float(x)
    if not 2**-60 < abs(number) < 2**60:
        return None
    return number if abs(math.frexp(number)[0]) == 0.5 else None


class Sources:
    """What numbers are made of, in one of two runs, and which ones coefficients are."""

    def __init__(
        self, one: list[Read], two: list[Read], arrays: Any, pinned: tuple[int, ...]
    ) -> None:
        if len(one) != len(two):
            raise Unfit("what is computed depends on the numbers")
        self._pairs = list(zip(one, two, strict=True))
        self._free = [view_of(a).reach() for k, a in enumerate(arrays) if k not in pinned]
        self._fixed = [view_of(a).reach() for k, a in enumerate(arrays) if k in pinned]
        self._ids: dict[Any, int] = {}
        self._made: dict[int, tuple[int, float]] = {}
        self._on: dict[int, bool] = {}
        self._kept: list[Any] = []  # as ids are of objects that live
        for a, b in self._pairs:
            if a.value == b.value and self._varies(a.of):  # a plan may be for 1 alone, as 1 + 1e-20
                raise Unfit("a number that stays as it is for arguments nearby")

    # -- what a number is made of

    def _id(self, key: Any) -> int:
        return self._ids.setdefault(key, len(self._ids))

    def _identity(self, x: Any) -> tuple[int, float]:
        """Numbers of one identity are alike for any arguments: (what it is a multiple of, by a
        power of two)."""
        found = self._made.get(id(x))
        if found is None:
            self._kept.append(x)
            found = self._made[id(x)] = self._identified(x)
        return found

    def _identified(self, x: Any) -> tuple[int, float]:
        if isinstance(x, np.ndarray):
            return self._id(("array", *view_of(x))), 1.0
        if not is_lazy(x):
            return self._id(self._itself(x)), 1.0
        if x._head == "leaf" and x._more is None:
            return self._identity(x._args[0])
        head, args = x._head, x._args
        if head == "index" and known_of(args[0]) is not None and x._value is not None:
            at = known_of(args[0])[of_views(x._more)]
            if np.may_share_memory(at, known_of(args[0])):
                return self._id(("array", *view_of(at))), 1.0
        function = x._more[0] if head == "call" else None
        if function is stop:
            return self._identity(args[0])
        if function is np.negative:
            base, by = self._identity(args[0])
            return base, -by
        if not args:
            return self._id(self._itself(x)), 1.0
        exact = self._multiple(x, head, function)
        return exact or (self._id((head, self._rest(x), *map(self._identity, args))), 1.0)

    def _itself(self, x: Any) -> Any:
        """A key of a constant by its value, of any other object by what it is."""
        self._kept.append(x)
        return type(x), repr(x) if isinstance(x, _SIMPLE) else id(x)

    def _multiple(self, x: Any, head: str, function: Any) -> tuple[int, float] | None:
        """Of a multiple by a power of two."""
        over = head == "over" or function is np.true_divide
        if len(x._args) != 2 or not (over or head == "scale" or function is np.multiply):
            return None
        a, b = x._args
        for y, c in ((a, b),) if over else ((a, b), (b, a)):
            power = _power(c)
            if power is not None and getattr(y, "dtype", None) == x.dtype:
                base, by = self._identity(y)
                return base, by / power if over else by * power
        return None

    def _rest(self, x: Any) -> Any:
        """What a node is given besides its arguments; by itself where that is not known."""
        key: list[Any] = []
        stack = [x._more]
        while stack:
            y = stack.pop()
            if isinstance(y, (tuple, list)):
                key.append((type(y), len(y)))
                stack += y
            elif isinstance(y, dict):
                key.append((dict, tuple(map(repr, y))))
                stack += y.values()
            elif isinstance(y, slice):
                stack += (y.start, y.stop, y.step)
                key.append(slice)
            else:
                key.append(self._itself(y))
        return tuple(key)

    def _varies(self, x: Any) -> bool:
        """May it depend on arguments that are not pinned?"""
        found = self._on.get(id(x))
        if found is None:
            self._kept.append(x)
            found = self._on[id(x)] = self._depends(x)
        return found

    def _depends(self, x: Any) -> bool:
        if isinstance(x, np.ndarray):
            low, high = view_of(x).reach()
            if not x.size or any(start <= low and high <= end for start, end in self._fixed):
                return False
            inside = any(start < high and low < end for start, end in self._free)
            return inside or not is_fixed(x)
        if not is_lazy(x):
            return not isinstance(x, (*_SIMPLE, slice, np.generic))
        return not x._args or any(map(self._varies, x._args))

    # -- coefficients

    def of(self, first: Any, second: Any) -> list[Any]:
        """What each coefficient of a plan is, by both runs: (place among the reads, factor, over)
        or None for a constant."""
        return [self._source(x, y) for x, y in zip(first, second, strict=True)]

    def _source(self, x: Any, y: Any) -> Any:
        if isinstance(x, complex) or isinstance(y, complex):
            raise Unfit("a complex coefficient")
        fits = [
            (k, f, over)
            for k, (one, two) in enumerate(self._pairs)
            for f in _FACTORS
            for over in (False, True)
            if _fits(f, over, one.value, x) and _fits(f, over, two.value, y)
        ]
        fits = [fit for fit in fits if self._varies(self._pairs[fit[0]][0].of)]
        if x == y:
            if fits:
                raise Unfit("a constant that may be a number of the arguments'")
            return None
        if not fits:
            raise Unfit("a coefficient of unknown origin")
        if len({self._whole(*fit) for fit in fits}) > 1:
            raise Unfit("a coefficient that several numbers may be")
        return fits[0]

    def _whole(self, k: int, factor: float, over: bool) -> Any:
        base, by = self._identity(self._pairs[k][0].of)
        return base, factor / by if over else factor * by, over


def _fits(factor: float, over: bool, number: float, x: float) -> bool:
    return number != 0 and (factor / number if over else factor * number) == x
