"""Type variables of signatures: imported for mypy alone, not when the package runs."""

from collections.abc import Callable
from typing import Any, TypeVar

# What a decorator that registers a function gives back: the function itself.
Registered = TypeVar("Registered", bound=Callable[..., Any])
