"""Modules that are imported when they are first used, so that heavy ones do not slow the import."""

from __future__ import annotations

import importlib
from types import ModuleType
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
