"""Modules that are imported when they are first used, so that heavy ones do not slow the import."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MethodType, ModuleType
from typing import Any


class Standard:
    """Stands for a module of the standard library, which is imported when a name of it is read."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        if self._module is None:
            self._module = importlib.import_module(self._name)
        return getattr(self._module, name)


class Later(Standard):
    """Stands for a module of this package likewise."""

    def __init__(self, name: str) -> None:
        super().__init__(f"pylinop.{name}")


def names_by_module(modules: Mapping[str, str]) -> dict[str, str]:
    """The module of each name, from the names of each module in one text."""
    return {name: module for module, names in modules.items() for name in names.split()}


def read_later(of: dict[str, Any], name: str, module: str) -> Any:
    """Reads a name from the module of ours in which it is, for the ``__getattr__`` of a module with
    the names ``of``, which has it from then on."""
    found = importlib.import_module(f"pylinop.{module}" if module else f"pylinop.{name}")
    of[name] = found if not module else getattr(found, name)
    return of[name]


class Method:
    """A function of a module above, as a method: the class has the function itself, with signature
    and docstring, from the first time that somebody looks."""

    def __init__(self, module: Later, name: str) -> None:
        self._module, self._name = module, name

    def __get__(self, x: Any, owner: type) -> Any:
        function = getattr(self._module, self._name)
        for cls in owner.__mro__:
            if vars(cls).get(self._name) is self:
                setattr(cls, self._name, function)
        return function if x is None else MethodType(function, x)
