"""Modules that are imported when they are first used, so that heavy ones do not slow the import."""

from __future__ import annotations

import importlib
from typing import Any


class Later:
    """Stands for a module of this package."""

    def __init__(self, name: str) -> None:
        self._name = f"pylinop.{name}"

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)
