"""What a function reads besides its arguments: numbers, words and objects that it closes over, in
its module or its defaults, and what the functions read that it calls. A program holds for these.

Numbers are compared by value, also those within tuples, lists, dicts and attributes, two levels
down; all else by identity. What the function writes itself (a counter) does not count. What is
reached in other ways (deeper, by computed names) is not seen."""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Calls", "Surroundings", "fitting", "of"]

_LIBRARIES = frozenset(("pylinop", "numpy", "scipy", "torch", "jax", "jaxlib", "builtins"))
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


def _is_foreign(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in _LIBRARIES


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

        plain = type(f) is types.FunctionType and not _is_foreign(f.__module__)
        self.words = _globals(f.__code__) if plain else ()
        self.foreign = type(f) is types.FunctionType and not plain

    def reads_modules(self) -> bool:
        """Does it read nothing but modules? A quick look, which most functions pass."""
        f = self.f
        if self.foreign:
            return True
        if type(f) is not types.FunctionType or f.__closure__ or f.__defaults__ or f.__kwdefaults__:
            return False
        given = f.__globals__
        return all(type(given.get(w, types)) is types.ModuleType for w in self.words)

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


_MOST = 32  # of one nest of arguments; then the oldest go


def fitting(known: list[Any], f: Callable[..., Any], made: Callable[[Surroundings], Any]) -> Any:
    """The one of `known`, a list of `Calls`, for what f reads now; else a new one."""
    if known and known[-1].reads_modules():
        return known[-1]
    now = of(f)
    for one in reversed(known):
        if not one.read.changed(now):
            return one
    del known[: len(known) + 1 - _MOST]
    known.append(made(now))
    return known[-1]


class _Walk:
    def __init__(self) -> None:
        self.read: dict[str, Any] = {}
        self.held: list[Any] = []
        self.known: set[int] = set()

    def function(self, f: types.FunctionType, name: str) -> None:
        code = f.__code__
        if id(code) in self.known or _is_foreign(f.__module__):
            return
        self.known.add(id(code))
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
        if kind is types.ModuleType:
            return
        if kind in _PLAIN:
            self.note(name, repr(x))
        elif kind is types.FunctionType:
            self.function(x, name)
        elif isinstance(x, np.generic):
            self.note(name, repr(x))
        elif kind is types.MethodType:
            self.value(name, x.__self__, levels)
            self.value(name, x.__func__, levels)
        elif kind is functools.partial:
            self.value(name, x.func, levels)
            self.value(f"{name}.args", (*x.args, x.keywords), levels)
        elif kind in (tuple, list, dict):
            self.nest(name, x, levels)
        else:
            self.same(name, x)
            if levels and not _is_foreign(getattr(x, "__module__", None)):
                self.attributes(name, x, levels - 1)

    def nest(self, name: str, x: Any, levels: int) -> None:
        if not levels or len(x) > _ITEMS:
            self.same(name, x)
            return
        for k, y in list(x.items() if type(x) is dict else enumerate(x)):
            self.value(f"{name}[{k!r}]", y, levels - 1)

    def attributes(self, name: str, x: Any, levels: int) -> None:
        """Of an object those of its class too; no functions."""
        found = dict(getattr(x, "__dict__", {}))
        if not isinstance(x, type):
            found = {**vars(type(x)), **found}
        if len(found) > _ITEMS:
            return
        for k, y in found.items():
            if type(k) is str and not k.startswith("__") and not callable(y):
                if type(y) in _PLAIN or isinstance(y, (np.generic, tuple, list, dict)):
                    self.value(f"{name}.{k}", y, levels)


def of(f: Callable[..., Any]) -> Surroundings:
    """What a function reads now."""
    walk = _Walk()
    walk.value(getattr(f, "__name__", "function"), f, _LEVELS)
    call: Any = type(f).__call__
    if type(call) is types.FunctionType:
        walk.function(call, "__call__")
    return Surroundings(walk.read, walk.held)
