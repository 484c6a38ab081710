"""Kinds whose parameters are LazyArrays: themselves LazyArrays, whose form is made of the values of
the parameters when it is needed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .. import _core
from .._base.checks import is_lazy
from .._base.dlpack import as_array
from .build import is_each_times, scaled, value_of
from .leaves import lazy

VALUE, FORM, COLUMN = 0, 1, 2  # what a function takes of an argument: PY_TAKES_* of py_lazy.h


class Hole:
    """The place of a LazyArray among the arguments of a constructor."""

    def __init__(self, at: int) -> None:
        self.at = at


class Kind:
    """A constructor with all arguments but the LazyArrays, which it is called with.

    `holes` says of each of them to which parameter it belongs: its number in the table of the kind,
    and its number in a list of operators."""

    def __init__(
        self, cls: Any, args: Any, kwargs: Any, holes: tuple[tuple[int, int], ...]
    ) -> None:
        self.cls, self.args, self.kwargs, self.holes = cls, args, kwargs, holes
        self.__name__ = cls.__name__
        given = [*args, *kwargs.values()]
        in_order = [x.at if type(x) is Hole else -1 for x in given] == [*range(len(given))]
        self._names = tuple(kwargs) if in_order else None  # where there are but LazyArrays

    def __call__(self, *values: Any) -> Any:
        if self._names is not None:
            if not self._names:
                return self.cls(*values)
            n = len(self.args)
            return self.cls(*values[:n], **dict(zip(self._names, values[n:], strict=True)))
        args, kwargs = filled((self.args, self.kwargs), values)
        return self.cls(*args, **kwargs)

    def __reduce__(self) -> Any:
        return Kind, (self.cls, self.args, self.kwargs, self.holes)


class Handed:
    """Makes an operator of the values of LazyArrays; `pl.evaluate` hands it out as an operator."""

    def __init__(self, build: Callable[[Any], Any], name: str) -> None:
        self.build, self.__name__ = build, name

    def __call__(self, *values: Any) -> Any:
        return self.build(values)

    def __reduce__(self) -> Any:
        return Handed, (self.build, self.__name__)


def handed(build: Callable[[Any], Any], arrays: list[Any], name: str) -> Any:
    """A LazyArray that `pl.evaluate` makes an operator of."""
    hollow = build([_hollow(x, VALUE) for x in arrays])
    takes = bytes((VALUE,)) * len(arrays)
    return lazily(Handed(build, name), tuple(arrays), takes, hollow.shape, hollow.dtype)


def filled(x: Any, values: Any) -> Any:
    """Arguments with the LazyArrays' places taken by `values`."""
    if type(x) is Hole:
        return values[x.at]
    if type(x) in (list, tuple):
        return type(x)(filled(y, values) for y in x)
    if type(x) is dict:
        return {k: filled(v, values) for k, v in x.items()}
    return x


@functools.lru_cache(maxsize=256)
def parameters(cls: Any) -> tuple[tuple[str, str], ...]:
    """(name, role) of each parameter of a class of the table; () of a class that is not in it."""
    rows = {row["name"]: row for row in _core.kinds()}
    row = next((rows[c.__name__] for c in cls.__mro__ if c.__name__ in rows), None)
    return tuple((p["name"], p["role"]) for p in row["params"]) if row else ()


class _Reader:
    """Takes the LazyArrays out of the arguments of a constructor, and the matrices beside them,
    which are leaves of the formula as they are."""

    def __init__(self, cls: Any) -> None:
        self.rows = parameters(cls)
        self.deferred = False  # was a LazyArray taken out?
        self.found: list[Any] = []
        self.takes: list[int] = []
        self.holes: list[tuple[int, int]] = []

    def read(self, x: Any, number: int, place: int) -> Any:
        deferred = is_lazy(x)
        if deferred or _is_matrix(x):
            role = self.rows[number][1] if 0 <= number < len(self.rows) else ""
            operand = role in ("operator", "operators", "blocks")
            if not operand and (role != "array" or not deferred):
                return x._computed() if deferred else x
            self.deferred |= deferred
            x = x if deferred else lazy(x)
            self.found.append(x)
            self.takes.append(FORM if operand and x.ndim >= 2 else VALUE)
            self.holes.append((number, place))
            return Hole(len(self.found) - 1)
        if type(x) not in (list, tuple):
            return x
        held = []
        for y in x:  # rows of blocks are counted through
            held.append(self.read(y, number, place))
            place += len(y) if type(y) in (list, tuple) else 1
        return type(x)(held)


def _is_matrix(x: Any) -> bool:
    """Is x a matrix that `lazy` takes as it is?"""
    if type(x) is np.ndarray:
        return x.ndim >= 2 and x.dtype.char in "fdFD" and x.dtype.isnative
    return issubclass(type(x), _core.Operator) and not x._opaque


def _hollow(x: Any, takes: int) -> Any:
    """Something of the shape and dtype of x, without memory."""
    if takes == FORM and x._head == "operator":
        return x._args[0]
    if takes == FORM and _is_kind(x):
        made, inner = x._more  # a kind that takes another takes no other
        return made(*(_hollow(y, t) for y, t in zip(x._args, inner, strict=True)))
    array = np.broadcast_to(np.ones((), x.dtype), x.shape)
    return _core.Dense(array) if takes == FORM else array


def _holds_lazy(x: Any) -> bool:
    if type(x) in (list, tuple):
        return any(map(_holds_lazy, x))
    return is_lazy(x)


def _is_coordinates(x: Any) -> bool:
    """SciPy's (data, (rows, columns))."""
    return type(x) is tuple and len(x) == 2 and type(x[1]) is tuple


def _stacked(x: Any, lists: int = 0) -> Any:
    """A nested list of numbers and LazyArrays as one LazyArray, which it is a parameter as; the
    outermost `lists` levels are lists of operators."""
    if type(x) not in (list, tuple) or _is_coordinates(x) or not _holds_lazy(x):
        return x
    if lists:
        held = [_stacked(y, lists - 1) for y in x]
        return x if _same(held, x) else type(x)(held)
    parts = [_stacked(y) for y in x]
    return np.stack([y if is_lazy(y) else lazy(as_array(y)) for y in parts])


def _same(a: Iterable[Any], b: Iterable[Any]) -> bool:
    return all(x is y for x, y in zip(a, b, strict=True))


def _column(name: str, x: Any) -> Any:
    thin = name in ("U", "V", "L")  # factors, whose vectors are columns
    return np.reshape(x, (-1, 1)) if thin and is_lazy(x) and x.ndim == 1 else x


def _is_array(x: Any, ndim: int) -> bool:
    """Is x a LazyArray whose value is an array of so many dimensions, as it is of arrays alone?"""
    stack, seen = [x], set()
    if not is_lazy(x) or x.ndim != ndim or not x.shape[0]:
        return False
    while stack:
        y = stack.pop()
        if isinstance(y, _core.Operator) or (is_lazy(y) and _is_kind(y)):
            return False
        if is_lazy(y) and id(y) not in seen and y._head in _LINEAR:
            seen.add(id(y))
            stack += y._args[is_each_times(y) :]
    return True


_LINEAR = frozenset(("add", "matmul", "scale", "view", "over", "operator"))


def _is_kind(x: Any) -> bool:
    return x._head == "made" and isinstance(x._more[0], Kind)


def _as_parameters(cls: Any, rows: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments, of which nested lists are arrays, and vectors of thin factors columns."""
    if len(rows) == 1 and rows[0][1] == "operators":
        if len(args) == 1 and issubclass(cls, _core.BlockDiag) and _is_array(args[0], 3):
            args = ([args[0][k] for k in range(args[0].shape[0])],)
        return tuple(_stacked(x, len(args) == 1) for x in args), kwargs
    lists = {name: 2 for name, role in rows if role == "blocks"}
    names = [name for name, _ in rows] + [""] * len(args)
    given = [*zip(names, args, strict=False), *kwargs.items()]
    made = [_column(k, _stacked(x, lists.get(k, 0))) for k, x in given]
    return tuple(made[: len(args)]), dict(zip(kwargs, made[len(args) :], strict=True))


_TWICE = {("U", "V"), ("c", "r")}


def _both(cls: Any, rows: Any, args: Any, kwargs: Any) -> Any:
    """The V of a low rank is its U where none is given, the row of a real Toeplitz matrix its
    column: the same LazyArray twice."""
    names = [name for name, _ in rows]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    for one, other in _TWICE:
        x: Any = given.get(one)
        if other in names and given.get(other) is None and is_lazy(x):
            if one == "c" and (x.dtype.kind == "c" or not issubclass(cls, _core.Toeplitz)):
                continue
            if len(args) <= names.index(other):
                return {**kwargs, other: x}
    return kwargs


def _full(cls: Any, shape: Any, c: Any) -> Any:
    """A matrix of one number is a multiple of ones."""
    if not is_lazy(c) or c.ndim:
        return cls(shape, value_of(c))
    return scaled(lazy(cls(shape, c.dtype.type(1))), c)


def kind(cls: Any, args: Any, kwargs: Any) -> Any:
    """A kind of LazyArrays, deferred; NotImplemented where it is made of their values. A hook: the
    core builds by itself what was built here of others like these (py_lazy_recipes.c)."""
    if issubclass(cls, _core.Full):
        return _full(cls, *args, **kwargs)
    reader = _Reader(cls)
    rows = reader.rows
    listed = len(rows) == 1 and rows[0][1] == "operators"
    given, named = _as_parameters(cls, rows, args, kwargs)
    if not (_same(given, args) and _same(named.values(), kwargs.values())):
        return cls(*given, **named)  # of these it may have been built before
    if len(rows) > 1:
        kwargs = _both(cls, rows, args, kwargs)
    held = tuple(reader.read(x, 0 if listed else k, k if listed else 0) for k, x in enumerate(args))
    names = [name for name, _ in rows]
    more = {k: reader.read(x, names.index(k) if k in names else -1, 0) for k, x in kwargs.items()}
    if not reader.deferred:
        held, more = filled((held, more), [x._args[0] for x in reader.found])
        return cls(*held, **more)
    if (
        names[0] == "a"
        and len(names) == 2
        and not any(held[1:])
        and not more.get("assume_a")
        and reader.found[0].ndim >= 2
    ):
        return reader.found[0]  # a Dense with no assumption is the LazyArray itself
    made = Kind(cls, held, more, tuple(reader.holes))
    found = _from_outside(made, reader.found, reader.takes)
    if found is None:
        return made(*(x._args[0] if x._head == "operator" else value_of(x) for x in reader.found))
    return lazily(made, tuple(reader.found), bytes(reader.takes), *found)


def _from_outside(
    made: Kind, found: list[Any], takes: list[int]
) -> tuple[tuple[int, ...], Any] | None:
    """Shape and dtype of what a kind makes of LazyArrays; None where it has no operator form."""
    hollow = made(*(_hollow(x, t) for x, t in zip(found, takes, strict=True)))
    if hollow._opaque or hollow.dtype is None or hollow.ndim > 8:
        return None
    return tuple(hollow.shape), np.dtype(hollow.dtype)


def lazily(function: Any, args: tuple[Any, ...], takes: bytes, shape: Any, dtype: Any) -> Any:
    """The operator that a function makes of its arguments, deferred."""
    return _core._LazyArray("made", args, tuple(shape), np.dtype(dtype), (function, takes))
