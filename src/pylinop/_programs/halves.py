"""The halves of a program that was cut.

    arrays --rows of the program--> LazyArrays --evaluated--> the values       the first half
    what is known of them then      --kept-->
    cotangents --rows behind them--> LazyArrays of both --evaluated--> those of the arguments
                                                                               the second half

What the first half found, values of LazyArrays and operators made of them, is kept and stands in
the second half at its place; what was derived of these operators, such as factors, the core holds
for it (`dlpack.Owner`). Each run of the second half begins with what the first one left, so that it
gives the same bits as any other."""

from __future__ import annotations

import functools
import weakref
from typing import Any

from .. import _core
from .._base.dlpack import Owner, immutable_copy
from .._lazy import program as together
from .._lazy.leaves import lazy
from .programs import Met, gradient_by, hollow, pulled
from .replay import Recipe, recorded

__all__ = ["Kept"]

_MOST = 512
# Estimated seconds of what the first half derives: of less each half makes it for itself, from C.
# Holding costs 20 to 100 us in Python (EPYC, busy, 2026-11-27: definite, 20 to 200 rows).
_WORTH = 1e-4
_derive: dict[Any, bool] = {}  # does the first half of a program derive what is worth being held?


@functools.lru_cache(maxsize=256)
def _back(program: Met, avals: Any, count: int) -> Recipe | None:
    """What takes all LazyArrays of the first half, and the cotangents, to those of the first
    `count` arrays; None where values are looked at."""
    leaves = [hollow(a, True) for a in avals]
    made = _core._lazy_replay(program.rows, leaves)
    values = [made[k] for k in program.values]
    given = [hollow((v.shape, v.dtype), True) for v in values]
    try:
        found = pulled(values, given, {id(x): x for x in leaves[:count]})
        return recorded([lazy(gradient_by(found, x)) for x in leaves[:count]], [*made, *given])
    except TypeError:  # a value was asked for
        return None


class Kept:
    """What is kept between the halves: the arguments, copied, what the first half knows, and all
    that is derived from here on. It goes with the object."""

    def __init__(self, program: Met, arguments: list[Any], held: list[Any]) -> None:
        self._owner = Owner()
        weakref.finalize(self, self._owner.release).atexit = False
        self.program = program
        self._held = held
        self.arrays = [immutable_copy(a, self._owner) for a in arguments]
        self._leaves = [lazy(a) for a in [*self.arrays, *held]]
        self._derives = False
        self._known: list[tuple[int, Any, Any]] = []
        self.values: list[Any] | None = None  # of the first half, when it has run

    def shares(self) -> bool:
        """Does the first half derive what is worth more than holding it for the second costs? Else
        both run from C alone."""
        avals = tuple([(x.shape, x.dtype) for x in self._leaves])
        found = _derive.get((self.program, avals))
        if found is None:
            self.first()
            if len(_derive) >= _MOST:
                _derive.clear()
            found = _derive[self.program, avals] = self._derives
        return found

    def __reduce__(self) -> Any:
        """A copy derives anew, for an owner of its own."""
        return Kept, (self.program, self.arrays, self._held)

    def _derived(self) -> int:
        return int(_core._owned(self._owner.number))

    @property
    def nbytes(self) -> int:
        """Bytes of the arguments, of the values that are kept, and of what is derived of them."""
        arrays = self.arrays + [v for _, v, _ in self._known if v is not None]
        total: int = sum(a.nbytes for a in arrays)
        return total + self._derived()

    def first(self) -> list[Any]:
        """The values, of one run of the first half."""
        if self.values is not None:
            return self.values
        made = _core._lazy_replay(self.program.rows, self._leaves)
        values = [made[k] for k in self.program.values]
        self._owner.holding(together.evaluate, *{id(x): x for x in values}.values())
        self._derives = _core._met() > _WORTH
        n = len(self._leaves)
        found = [(k, made[k]._value, made[k]._form) for k in range(n, len(made))]
        self._known = [x for x in found if x[1] is not None or x[2] is not None]
        self.values = [x._computed() for x in values]
        return self.values

    def second(self, cotangents: list[Any]) -> list[Any] | None:
        """Those of the arguments; None where there is no formula of them without their values."""
        avals = tuple([(x.shape, x.dtype) for x in self._leaves])
        recipe = _back(self.program, avals, len(self.arrays))
        if recipe is None:
            return None
        self.first()
        made = _core._lazy_replay(self.program.rows, self._leaves)
        for k, value, form in self._known:
            made[k]._value, made[k]._form = value, form
        made = _core._lazy_replay(recipe.rows, [*made, *map(lazy, cotangents)])
        found = [made[x] if type(x) is int else x for x in recipe.values]
        self._owner.holding(together.evaluate, *{id(x): x for x in found}.values())
        return [x._computed() for x in found]
