"""What a function reads besides its arguments: numbers, words and objects that it closes over, in
its module or its defaults, and what the functions read that it calls. A program holds for these.

Numbers are compared by value, also those within tuples, lists, dicts, modules and attributes, two
levels down; all else by identity. Of an object or a module those attributes count that the code
names, as the methods do that it names. What the function writes itself (a counter) does not count.
What is reached in other ways (deeper, by computed names, within arrays) is not seen."""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Calls", "Surroundings", "fitting", "of"]

_LIBRARIES = frozenset(("pylinop", "numpy", "scipy", "torch", "jax", "jaxlib", "builtins"))
_LIBRARIES |= sys.stdlib_module_names - {"__main__"}
_PLAIN = frozenset((int, float, complex, bool, str, bytes, type(None)))
_ITEMS = 64  # of a larger list or dict none is looked at
_LEVELS = 2


@functools.lru_cache(maxsize=1024)
def _globals(code: types.CodeType) -> tuple[str, ...]:
    """The names of its module that a function reads, and those that are defined in it do."""
    names: dict[str, None] = {}
    stack = [code]
    while stack:
        one = stack.pop()
        found = dis.get_instructions(one)
        names |= dict.fromkeys(i.argval for i in found if i.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
        stack += [x for x in one.co_consts if isinstance(x, types.CodeType)]
    return tuple(names)


@functools.lru_cache(maxsize=1024)
def _named(code: types.CodeType) -> frozenset[str]:
    """What may be names of attributes in it."""
    names = set(code.co_names)
    for x in code.co_consts:
        if isinstance(x, types.CodeType):
            names |= _named(x)
        elif type(x) is str and x.isidentifier():
            names.add(x)
    return frozenset(names)


def _is_foreign(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in _LIBRARIES


def _is_library(x: Any) -> bool:
    return type(x) is types.ModuleType and _is_foreign(x.__name__)


class Surroundings:
    """What was read, by name, and the objects whose identity is in it, so that it stays theirs."""

    __slots__ = ("held", "read")

    def __init__(self, read: dict[str, Any], held: list[Any]) -> None:
        self.read, self.held = read, held

    def changed(self, now: Surroundings) -> str:
        """The first name whose value is another one now; "": there is none."""
        after = now.read
        return next((k for k, x in self.read.items() if after.get(k) != x), "")

    def settle(self, after: Surroundings) -> None:
        """Leaves out what the function has written itself."""
        for k in [k for k, x in self.read.items() if after.read.get(k) != x]:
            del self.read[k]


class Calls:
    """A function, for the numbers that it read when it was first called."""

    def __init__(self, f: Callable[..., Any], read: Surroundings) -> None:
        self.f, self.read = f, read
        self._nested: Any = None
        self._nests: dict[Any, Any] = {}  # by the shapes and dtypes of the leaves
        self._several = False
        plain = type(f) is types.FunctionType and not _is_foreign(f.__module__)
        self.words = _globals(f.__code__) if plain else ()
        self.foreign = type(f) is types.FunctionType and not plain

    def reads_libraries(self) -> bool:
        """Does it read nothing but libraries? A quick look, which most functions pass."""
        f = self.f
        if self.foreign:
            return True
        if type(f) is not types.FunctionType or f.__closure__ or f.__defaults__ or f.__kwdefaults__:
            return False
        given = f.__globals__
        return all(_is_library(given.get(w, types)) for w in self.words)

    def nests(self, leaves: Any, nested: Any) -> None:
        """Keeps how the results for such leaves are nested."""
        self._several |= self._nested is not None and bool(self._nested != nested)
        self._nests[_avals(leaves)] = nested
        self._nested = nested

    def nested(self, leaves: Any) -> Any:
        """How they are."""
        nested = self._nested
        return self._nests.get(_avals(leaves), nested) if self._several else nested

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Its result; an error where it would be that of other numbers."""
        before = of(self.f)
        name = self.read.changed(before)
        if name:
            raise RuntimeError(
                f"{name}, which a program's function reads, was {self.read.read[name]} when the "
                f"program was called and is {before.read.get(name, 'not there')} now, when the "
                "function runs again (for a derivative, or since values decide what it computes): "
                "give it as an argument"
            )
        found = self.f(*args, **kwargs)
        self.read.settle(of(self.f))
        return found


def _avals(leaves: Any) -> tuple[Any, ...]:
    return tuple([(tuple(x.shape), str(x.dtype).rpartition(".")[2]) for x in leaves])


_MOST = 32  # of one nest of arguments; then the oldest go


def fitting(known: list[Any], f: Callable[..., Any], made: Callable[[Surroundings], Any]) -> Any:
    """The one of `known`, a list of `Calls`, for what f reads now; else a new one."""
    if known and known[-1].reads_libraries():
        return known[-1]
    now = of(f)
    for one in reversed(known):
        if not one.read.changed(now):
            return one
    del known[: max(0, len(known) + 1 - _MOST)]
    known.append(made(now))
    return known[-1]


_SILENT = frozenset(("__init__", "__repr__", "__str__", "__hash__", "__eq__", "__reduce__"))
_NOWHERE: Any = object()


class _Walk:
    def __init__(self) -> None:
        self.read: dict[str, Any] = {}
        self.held: list[Any] = []
        self.known: set[int] = set()
        self.names: set[str] = set()
        self.owners: list[tuple[str, Any, int, set[str]]] = []  # and which attributes were read

    def function(self, f: types.FunctionType, name: str) -> None:
        if id(f) in self.known or _is_foreign(f.__module__):
            return
        self.known.add(id(f))
        code = f.__code__
        self.names |= _named(code)
        self.same(name + "()", code)
        given = f.__globals__
        for word in _globals(code):
            if word in given:
                self.value(word, given[word], _LEVELS)
        for word, cell in zip(code.co_freevars, f.__closure__ or (), strict=True):
            try:
                self.value(word, cell.cell_contents, _LEVELS)
            except ValueError:  # not filled yet
                continue
        for k, x in enumerate(f.__defaults__ or ()):
            self.value(f"{name}, default {k}", x, _LEVELS)
        for word, x in (f.__kwdefaults__ or {}).items():
            self.value(word, x, _LEVELS)

    def note(self, name: str, what: str) -> None:
        while name in self.read:  # of another function
            name += "'"
        self.read[name] = what

    def same(self, name: str, x: Any) -> None:
        self.note(name, f"the {type(x).__name__} at {id(x):#x}")
        self.held.append(x)

    def value(self, name: str, x: Any, levels: int) -> None:
        kind = type(x)
        if kind in _PLAIN or isinstance(x, np.generic):
            self.note(name, repr(x))
        elif kind is types.FunctionType:
            self.function(x, name)
        elif kind is types.MethodType:
            self.value(name, x.__self__, levels)
            self.value(name, x.__func__, levels)
        elif kind is functools.partial:
            self.value(name, x.func, levels)
            self.value(f"{name}.args", (*x.args, x.keywords), levels)
        elif kind in (tuple, list, dict):
            self.nest(name, x, levels)
        elif not _is_library(x):
            self.same(name, x)
            module = x.__module__ if isinstance(x, type) else kind.__module__
            if levels and (kind is types.ModuleType or not _is_foreign(module)):
                self.owner(name, x, levels - 1)

    def nest(self, name: str, x: Any, levels: int) -> None:
        if not levels or len(x) > _ITEMS:
            self.same(name, x)
            return
        self.note(f"the length of {name}", str(len(x)))
        for k, y in list(x.items() if type(x) is dict else enumerate(x)):
            self.value(f"{name}[{k!r}]", y, levels - 1)

    def owner(self, name: str, x: Any, levels: int) -> None:
        """An object or a class, whose attributes are read when all names are known."""
        if id(x) in self.known:
            return
        self.known.add(id(x))
        self.held.append(x)
        self.owners.append((name, x, levels, set()))
        if type(x) is types.ModuleType:
            return
        made = isinstance(x, type)
        for cls in (x if made else type(x)).__mro__:
            if _is_foreign(cls.__module__):
                continue
            for k, f in list(vars(cls).items()):
                if isinstance(f, types.FunctionType) and k[:2] == k[-2:] == "__":
                    if k not in _SILENT or (made and k == "__init__"):
                        self.function(f, f"{cls.__name__}.{k}")

    def attributes(self) -> None:
        """Those that are named, until no more names are found."""
        more = True
        while more:
            more = False
            for name, x, levels, done in list(self.owners):
                for word in sorted(self.names - done):
                    more = True
                    done.add(word)
                    for k, y in enumerate(_found(x, word)):
                        self.attribute(f"{name}.{word}" + "'" * k, y, levels)

    def attribute(self, name: str, y: Any, levels: int) -> None:
        if y is _NOWHERE:
            self.note(name, "not there")
            return
        if isinstance(y, property):
            y = y.fget
        elif isinstance(y, functools.cached_property):
            y = y.func
        elif isinstance(y, (staticmethod, classmethod)):
            y = y.__func__
        self.value(name, y, levels)


def _found(x: Any, word: str) -> list[Any]:
    """The attributes of this name, without a call of what x has for it: those of a module that has
    `__getattr__`, such as one of PyTorch's, are in dicts."""
    own = getattr(x, "__dict__", {})
    if word in own and not isinstance(x, type):
        return [own[word]]
    if type(x) is types.ModuleType:
        return [_NOWHERE]
    for cls in (x if isinstance(x, type) else type(x)).__mro__:
        if _is_foreign(cls.__module__):
            continue
        y = vars(cls).get(word, _NOWHERE)
        if isinstance(y, types.MemberDescriptorType):  # of __slots__
            return [getattr(x, word, _NOWHERE) if not isinstance(x, type) else y]
        if y is not _NOWHERE:
            return [y]
    if hasattr(type(x), "__getattr__") and not isinstance(x, type):
        some = [d[word] for d in list(own.values()) if type(d) is dict and word in d]
        return some or [_NOWHERE]
    return [_NOWHERE]


def of(f: Callable[..., Any]) -> Surroundings:
    """What a function reads now."""
    walk = _Walk()
    walk.value(getattr(f, "__name__", "function"), f, _LEVELS)
    call: Any = type(f).__call__
    if type(call) is types.FunctionType:
        walk.function(call, "__call__")
    walk.attributes()
    return Surroundings(walk.read, walk.held)
