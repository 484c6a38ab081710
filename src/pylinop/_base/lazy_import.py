"""Modules that are imported when they are first used, so that heavy ones do not slow the import."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any


class Later:
    """Stands for a module of this package, which is imported when a name of it is first read."""

    def __init__(self, name: str) -> None:
        self._name = f"pylinop.{name}"
        self._module: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        if self._module is None:
            self._module = importlib.import_module(self._name)
        return getattr(self._module, name)


def standard(name: str) -> Any:
    """Stands for a module of the standard library likewise."""
    later = Later("")
    later._name = name
    return later
