"""The halves of a program that was cut.

    arrays --rows of the program--> LazyArrays --evaluated--> the values       the first half
    what is known of them then      --kept-->
    cotangents --rows behind them--> LazyArrays of both --evaluated--> those of the arguments
                                                                               the second half

What the first half found, values of LazyArrays and operators made of them, is kept and stands in
the second half at its place; what was derived of these operators, such as factors, the core holds
for it (`dlpack.Owner`). Of one real number the second half is its gradient times the cotangent: the
solves in that, vectors and thin matrices, wait for nothing and are made in the first half, with the
values. Each run of the second half begins with what the first one left, so that it
gives the same bits as any other."""

from __future__ import annotations

import functools
import weakref
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._base.checks import is_lazy
from .._base.dlpack import Owner, immutable_copy
from .._base.kind_flags import names
from .._gradients.pieces import column_form, one
from .._lazy import program as together
from .._lazy.leaves import lazy
from .programs import Met, gradient_by, hollow, pulled
from .replay import Recipe, recorded

__all__ = ["Kept"]

_MOST = 512
_BY_PARTS = names("by_parts")
_THIN = 16  # columns of solutions that the first half keeps
# Estimated seconds of what the first half derives: of less each half makes it for itself, from C.
# Holding costs 20 to 100 us in Python (EPYC, busy, 2026-11-27: definite, 20 to 200 rows).
_WORTH = 1e-4
_derive: dict[Any, bool] = {}  # does the first half of a program derive what is worth being held?


class Solution(NamedTuple):
    """Where a solution stands, and where it is found: there, or in the first half, upright. `late`:
    behind the values, of which functions take it or what it is of."""

    at: int
    found: int
    late: bool


class _Back(NamedTuple):
    """What takes all LazyArrays of the first half, and the cotangents, to those of the arguments.
    `one`: of a single real number, of which there is no cotangent: it is 1. `solved`: the solutions
    in it, which then wait for nothing. `again`: determinants of the first half that are asked for
    once more: a Toeplitz matrix of which a plan takes determinant and solves has another factor
    than one of which it takes solves alone."""

    recipe: Recipe
    one: bool
    solved: tuple[Solution, ...]
    again: tuple[int, ...]


@functools.lru_cache(maxsize=256)
def _back(program: Met, avals: Any, count: int) -> _Back | None:
    """Of the first `count` arrays; None where values are looked at."""
    leaves = [hollow(a, True) for a in avals]
    made = _core._lazy_replay(program.rows, leaves)
    values = [made[k] for k in program.values]
    single = len(values) == 1 and values[0].shape == () and values[0].dtype.kind == "f"
    given = [one(v.dtype) if single else hollow((v.shape, v.dtype), True) for v in values]
    try:
        found = pulled(values, given, {id(x): x for x in leaves[:count]})
        by = [lazy(gradient_by(found, x)) for x in leaves[:count]]
        recipe = recorded(by, made if single else [*made, *given])
    except TypeError:  # a value was asked for
        return None
    if not single:
        return _Back(recipe, False, (), ())
    again = tuple(k for k, (x, _) in enumerate(program.rows, len(avals)) if _by_parts(x))
    return _Back(recipe, True, _solutions(program, recipe, len(avals)), again)


def _solutions(program: Met, recipe: Recipe, count: int) -> tuple[Solution, ...]:
    rows = [*program.rows, *recipe.rows]
    begin = count + len(program.rows)
    there, called = {}, set()
    # Is a solution in it? Of what is in a function?
    solves, late = [False] * count, [False] * count
    for k, (x, places) in enumerate(rows, count):
        below = [p for p in places if p >= 0]
        is_call = x._head == "call"
        solves.append(_is_solution(x) or any(solves[p] for p in below))
        late.append(any(late[p] or (solves[p] and is_call) for p in below))
        if k < begin and is_call:
            called.update(below)
        if k < begin and x.ndim == 1 and _is_solution(x):
            there[places] = k

    def shown(k: int) -> int:  # below transposes and columns
        while k >= count:
            x, places = rows[k - count]
            if not (_is_transpose(x) or (x._head == "made" and x._more[0] is column_form)):
                break
            (k,) = places
        return k

    found = []
    for k, (x, places) in enumerate(rows[begin - count :], begin):
        if not _is_solution(x):
            continue
        same = k
        if x.ndim == 2 and x.shape[0] == 1 and x.dtype.kind == "f":  # y^T A^-T
            turned = all(p >= count and _is_transpose(rows[p - count][0]) for p in places)
            same = there.get((shown(places[1]), shown(places[0])), k) if turned else k
        found.append(Solution(k, same, late[k] or same in called))
    return tuple(found)


def _is_transpose(x: Any) -> bool:
    return bool(x._head == "view" and x._more == 1)


def _is_solution(x: Any) -> bool:
    """Is it a product of an inverse, and no larger than a thin matrix?"""
    if x._head != "matmul" or (x.ndim > 1 and min(x.shape[-2:]) > _THIN):
        return False
    return any(_is_inverse(a) for a in x._args)


def _by_parts(x: Any) -> bool:
    """Is it a number of a Toeplitz matrix, or of one plus c I?"""
    if x._head != "of form" or x.shape != ():
        return False
    todo = list(x._args)
    while todo:
        a = todo.pop()
        if not is_lazy(a):
            continue
        if a._head == "made" and getattr(a._more[0], "cls", type(None)).__name__ in _BY_PARTS:
            return True
        if a._head == "add":
            todo += a._args
    return False


def _is_inverse(a: Any) -> bool:
    while is_lazy(a) and a._head == "view":
        a = a._args[0]
    return is_lazy(a) and a._head == "inverse"


class Kept:
    """What is kept between the halves: the arguments, copied, what the first half knows, and all
    that is derived from here on. It goes with the object."""

    def __init__(self, program: Met, arguments: list[Any], held: list[Any]) -> None:
        self._owner = Owner()
        weakref.finalize(self, self._owner.release).atexit = False
        self.program = program
        self._held = held
        self.arrays = [immutable_copy(a, self._owner) for a in arguments]
        self._avals = tuple([(a.shape, a.dtype) for a in [*self.arrays, *held]])
        self._derives = False
        self._known: list[tuple[int, Any, Any]] = []
        self._solved: list[tuple[int, Any]] = []
        self.values: list[Any] | None = None  # of the first half, when it has run
        self.gradients: list[Any] | None = None  # of a value that takes as long as they do

    @functools.cached_property
    def _leaves(self) -> list[Any]:
        return [lazy(a) for a in [*self.arrays, *self._held]]

    def shares(self) -> bool:
        """Does the first half derive what is worth more than holding it for the second costs? Else
        both run from C alone."""
        found = _derive.get((self.program, self._avals))
        if found is None:
            self.first()
            if len(_derive) >= _MOST:
                _derive.clear()
            found = _derive[self.program, self._avals] = self._derives
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
        arrays += [*(v for _, v in self._solved), *(self.gradients or ())]
        total: int = sum(a.nbytes for a in arrays)
        return total + self._derived()

    def _find(self, asked: list[Any]) -> None:
        """Computes those that are not known, and holds what is derived for them."""
        unknown = {id(x): x for x in asked if x._value is None}
        if unknown:
            self._owner.holding(together.evaluate, *unknown.values())
            self._derives = self._derives or _core._met() > _WORTH

    def first(self) -> list[Any]:
        """The values, of one run of the first half."""
        if self.values is not None:
            return self.values
        made = _core._lazy_replay(self.program.rows, self._leaves)
        values = [made[k] for k in self.program.values]
        solved = self._solutions(made)
        try:
            self._find(values + [x for s, x in solved if not s.late])
            self._find([x for _, x in solved])
        except np.linalg.LinAlgError:  # for the second half to say, where the values are there
            solved = []
            self._find(values)
        self._solved = [(s.at, x._computed()) for s, x in solved]
        n = len(self._leaves)
        found = [(k, made[k]._value, made[k]._form) for k in range(n, len(made))]
        self._known = [x for x in found if x[1] is not None or x[2] is not None]
        self.values = [x._computed() for x in values]
        return self.values

    def _formula(self) -> _Back | None:
        return _back(self.program, self._avals, len(self.arrays))

    def _solutions(self, made: list[Any]) -> list[tuple[Solution, Any]]:
        """Those in the second half that wait for no cotangent."""
        try:
            back = self._formula()
        except NotImplementedError:  # no derivative, for the second half to say
            return []
        if back is None or not back.solved:
            return []
        found = _core._lazy_replay(back.recipe.rows, made)
        return [(s, found[s.found]) for s in back.solved]

    def second(self, cotangents: list[Any]) -> list[Any] | None:
        """Those of the arguments; None where there is no formula of them without their values."""
        back = self._formula()
        if back is None:
            return None
        self.first()
        made = _core._lazy_replay(self.program.rows, self._leaves)
        for k, value, form in self._known:
            made[k]._value, made[k]._form = None if k in back.again else value, form
        given = map(lazy, cotangents)
        made = _core._lazy_replay(back.recipe.rows, made if back.one else [*made, *given])
        for k, value in self._solved:
            made[k]._value = value.reshape(made[k].shape)
        found = [made[x] if type(x) is int else x for x in back.recipe.values]
        asked = found + [made[k] for k in back.again]
        self._owner.holding(together.evaluate, *{id(x): x for x in asked}.values())
        arrays = [x._computed() for x in found]
        if not back.one or cotangents[0] == 1:
            return arrays
        return [np.multiply(a, cotangents[0], dtype=a.dtype) for a in arrays]
