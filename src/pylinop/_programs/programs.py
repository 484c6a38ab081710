"""Programs: what one call computes, from arrays to arrays, as a recipe of LazyArrays.

    Formula       the flat form of operators and functions of them
    Written       a function of LazyArrays that somebody wrote (`program`)
    Met           what a function has built (structure.py)
    WithGradients values that are real numbers, and the gradient of each by some of the arrays
    Pushforward   the tangents of the values, linear in the tangents of some of the arrays
    Pullback      the cotangents of some of the arrays, linear in those of the values
    Joined        the values and their pullback

The last four are made of another program, of any of the seven: so there are derivatives of any
order, and all of them are pylinop's. Pushforward and Pullback are each other's transpose. They
speak JAX's convention, in which <ct, t> is Re sum(ct t): conjugate to pylinop's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._base.dlpack import fixed
from .._gradients.dense_way import simplified
from .._gradients.pieces import call, one
from .._gradients.rules import Differentiated
from .._gradients.sweep import sweep_of_derivative
from .._gradients.watched import watched
from .._lazy import program as together
from .._lazy.leaves import lazy
from . import formulas
from .replay import Recipe, recorded, replayed
from .structure import Structure

__all__ = [
    "Cotangents",
    "Formula",
    "Joined",
    "Met",
    "Program",
    "Pullback",
    "Pushforward",
    "WithGradients",
    "Written",
]


class Program:
    """A formula to compute; two programs of the same parts are equal."""

    arrays: int  # how many it takes
    open = True  # may it hold arrays that others write to?

    def __init__(self, *parts: Any) -> None:
        self.parts = parts
        self._hash = hash((type(self), parts))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Program)
            and type(other) is type(self)
            and other._hash == self._hash
            and other.parts == self.parts
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return type(self).__name__

    def linear(self) -> frozenset[int]:
        """The arrays in which the program is linear, together."""
        return frozenset()

    def watched(self) -> frozenset[int]:
        """The arrays by which something is differentiated: their values must not be asked for
        while the formula is built."""
        return frozenset()

    def build(self, leaves: Any) -> list[Any]:
        """The values, as LazyArrays of LazyArrays."""
        raise NotImplementedError

    def _kinds(self, avals: Any) -> list[tuple[tuple[int, ...], Any]]:
        leaves = [hollow(a, k in self.watched()) for k, a in enumerate(avals)]
        return [(tuple(x.shape), np.dtype(x.dtype)) for x in map(lazy, self.build(leaves))]

    def kinds(self, avals: tuple[Any, ...]) -> list[tuple[tuple[int, ...], Any]]:
        """(shape, dtype) of the values, of those of the arrays; nothing is computed."""
        found: list[tuple[tuple[int, ...], Any]] = _kinds(self, avals)
        return found

    def _built(self, arrays: Any) -> list[Any]:
        """The formula of arrays whose values are looked at, but for those by which something is
        differentiated."""
        guarded = self.watched()
        leaves = [watched(a) if k in guarded else lazy(a) for k, a in enumerate(arrays)]
        found = [lazy(x) for x in self.build(leaves)]
        for k in guarded:
            leaves[k]._value = arrays[k]
        return found

    def __call__(self, arrays: Any) -> list[Any]:
        """The values of arrays of NumPy."""
        recipe = _recipe(self, tuple((a.shape, a.dtype) for a in arrays))
        found = self._built(arrays) if recipe is None else replayed(recipe, arrays)
        together.evaluate(*{id(x): x for x in found}.values())
        return [x._computed() for x in found]


@functools.lru_cache(maxsize=512)
def _recipe(program: Program, avals: Any) -> Recipe | None:
    """How the formula is made of any arrays of these shapes; None where values are looked at."""
    leaves = [hollow(a, True) for a in avals]
    try:
        return recorded([lazy(x) for x in program.build(leaves)], leaves)
    except TypeError:  # a value was asked for
        return None


def by_shapes(program: Program, arrays: Any) -> bool:
    """Is the formula the same for all arrays of these shapes, so that no value decides?"""
    return _recipe(program, tuple((a.shape, a.dtype) for a in arrays)) is not None


@functools.lru_cache(maxsize=2048)
def _kinds(program: Program, avals: Any) -> Any:
    return program._kinds(avals)


def hollow(aval: Any, guarded: bool) -> Any:
    """A LazyArray of a shape and dtype, without memory."""
    shape, dtype = aval
    array = np.broadcast_to(np.zeros((), dtype), shape)
    return watched(array) if guarded else lazy(array)


class Formula(Program):
    """A program of nodes in their flat form."""

    def __init__(self, parts: formulas.Parts) -> None:
        super().__init__(parts)
        self.flat, self.arrays = parts, parts.arrays

    def linear(self) -> frozenset[int]:
        return formulas.operand(self.flat)

    def build(self, leaves: Any) -> list[Any]:
        return formulas.run(self.flat, leaves)

    def __repr__(self) -> str:
        return ", ".join(name for name, *_ in self.flat.code)


class Written(Program):
    """A function of `arrays` LazyArrays to a list of LazyArrays. `structure` tells functions apart
    that are made of the same one."""

    def __init__(self, function: Callable[..., Any], structure: Any, arrays: int) -> None:
        super().__init__(function, structure)
        self.function, self.arrays = function, arrays

    def build(self, leaves: Any) -> list[Any]:
        found: list[Any] = self.function(leaves)
        return found

    def __repr__(self) -> str:
        return getattr(self.parts[1], "__name__", "function")


class Met(Program):
    """A formula that a function has built, of all arrays in it."""

    open = False

    def __init__(self, structure: Structure) -> None:
        super().__init__(structure.key)
        self.arrays, self.values = len(structure.arrays), structure.values
        leaves = [hollow((a.shape, a.dtype), True) for a in structure.arrays]
        made = _core._lazy_replay(structure.rows, leaves)[self.arrays :]
        self.rows = tuple((a, places) for a, (_, places) in zip(made, structure.rows, strict=True))

    def build(self, leaves: Any) -> list[Any]:
        made = _core._lazy_replay(self.rows, list(leaves))
        return [made[k] for k in self.values]

    def __repr__(self) -> str:
        return "formula"


class Derived(Program):
    """A program derived from another one, with respect to the arrays in `by`."""

    def __init__(self, base: Program, by: tuple[int, ...]) -> None:
        super().__init__(base, by)
        self.base, self.by, self.open = base, by, base.open

    def watched(self) -> frozenset[int]:
        return self.base.watched() | frozenset(self.by)

    def wanted(self, leaves: Any) -> dict[int, Any]:
        return {id(leaves[k]): leaves[k] for k in self.by}


class WithGradients(Derived):
    """The values and, after them, of each value the gradient by each array in `by`. Values that
    are not single real numbers have none."""

    def __init__(self, base: Program, by: tuple[int, ...]) -> None:
        super().__init__(base, by)
        self.arrays = base.arrays

    def _kinds(self, avals: Any) -> Any:
        own = self.base.kinds(avals)
        super()._kinds(avals)
        return own + [avals[k] for _ in own for k in self.by]

    def build(self, leaves: Any) -> list[Any]:
        wanted = self.wanted(leaves)
        values = [simplified(lazy(x), wanted) for x in self.base.build(leaves)]
        made = list(values)
        for value in values:
            found = sweep_of_derivative(value, wanted, one(value.dtype))
            made += [gradient_by(found, leaves[k]) for k in self.by]
        return made


class Pullback(Derived):
    """Takes the arrays, and a cotangent of each value."""

    def __init__(self, base: Program, by: tuple[int, ...], values: int) -> None:
        super().__init__(base, by)
        self.arrays = base.arrays + values

    def linear(self) -> frozenset[int]:
        return frozenset(range(self.base.arrays, self.arrays))

    def _kinds(self, avals: Any) -> Any:
        super()._kinds(avals)
        return [avals[k] for k in self.by]

    def build(self, leaves: Any) -> list[Any]:
        own, given = leaves[: self.base.arrays], leaves[self.base.arrays :]
        return self.pulled([lazy(x) for x in self.base.build(own)], own, given)

    def pulled(self, values: list[Any], own: Any, given: Any) -> list[Any]:
        """The cotangents of the arrays, of those of the values."""
        found = pulled(values, [_conj(g) for g in given], self.wanted(own))
        return [_conj(gradient_by(found, own[k])) for k in self.by]


class Cotangents(Pullback):
    """Likewise in pylinop's own convention, without conjugates."""

    def build(self, leaves: Any) -> list[Any]:
        own, given = leaves[: self.base.arrays], leaves[self.base.arrays :]
        found = pulled(list(map(lazy, self.base.build(own))), list(given), self.wanted(own))
        return [gradient_by(found, own[k]) for k in self.by]


class Joined(Pullback):
    """The values and, after them, what their pullback gives: what is factored for one of them is
    there for the other."""

    def linear(self) -> frozenset[int]:
        return frozenset()

    def _kinds(self, avals: Any) -> Any:
        return self.base.kinds(avals[: self.base.arrays]) + super()._kinds(avals)

    def build(self, leaves: Any) -> list[Any]:
        own, given = leaves[: self.base.arrays], leaves[self.base.arrays :]
        values = [lazy(x) for x in self.base.build(own)]
        return values + self.pulled(values, own, given)


class Pushforward(Derived):
    """Takes the arrays, and a tangent of each array in `by`."""

    def __init__(self, base: Program, by: tuple[int, ...]) -> None:
        super().__init__(base, by)
        self.arrays = base.arrays + len(by)

    def linear(self) -> frozenset[int]:
        return frozenset(range(self.base.arrays, self.arrays))

    def _kinds(self, avals: Any) -> Any:
        return self.base.kinds(avals[: self.base.arrays])

    def build(self, leaves: Any) -> list[Any]:
        own, tangents = leaves[: self.base.arrays], leaves[self.base.arrays :]
        values = [lazy(x) for x in self.base.build(own)]
        units = [lazy(fixed(np.zeros(v.shape, v.dtype))) for v in values]
        found = pulled(values, units, self.wanted(own))
        total = None
        for k, t in zip(self.by, tangents, strict=True):
            g = found.get(id(own[k]))
            if g is None:
                continue
            term = _real_inner(g, t)
            total = term if total is None else total + term
        if total is None:
            return units
        back = sweep_of_derivative(total, {id(u): u for u in units}, one(total.dtype))
        return [back.get(id(u), u) for u in units]


def _conj(x: Any) -> Any:
    return np.conjugate(x) if x.dtype.kind == "c" else x


def _real_inner(g: Any, t: Any) -> Any:
    """sum(conj(g) t), of which the real part counts."""
    if g.dtype.kind == "c":
        return np.sum(np.conjugate(g) * t)
    return np.sum(g * (np.real(t) if t.dtype.kind == "c" else t))


def gradient_by(found: dict[int, Any], like: Any) -> Any:
    """The gradient by a leaf, of its shape."""
    g = found.get(id(like))
    return lazy(fixed(np.zeros(like.shape, like.dtype))) if g is None else g


def _never(*values: Any) -> Any:
    raise AssertionError("a root of several values has none of its own")


def pulled(values: list[Any], cotangents: list[Any], wanted: dict[int, Any]) -> dict[int, Any]:
    """The cotangents of what is wanted, by its id: one sweep back from several values."""
    pairs = [(v, g) for v, g in zip(values, cotangents, strict=True) if v.dtype.kind in "fc"]
    if not pairs:
        return {}
    if len(pairs) == 1:
        return sweep_of_derivative(pairs[0][0], wanted, pairs[0][1])
    heads, back = zip(*pairs, strict=True)
    joint = Differentiated(_never, lambda y, args, g: tuple(back))
    root = call(joint, tuple(heads), (), np.dtype(np.float64))
    return sweep_of_derivative(root, wanted, one(np.dtype(float)))


def as_results(values: list[Any], kinds: Any, out_dtype: Callable[[Any], Any]) -> list[Any]:
    """The values in the dtypes that were promised; `out_dtype` is the library's for one of ours."""
    made = []
    for value, (shape, dtype) in zip(values, kinds, strict=True):
        a = np.asarray(value)
        due = out_dtype(dtype)
        if a.dtype.kind == "c" and due.kind != "c":
            a = a.real
        made.append(np.ascontiguousarray(a, due).reshape(shape))
    return made
