"""Derivatives of functions within a function that is differentiated, of LazyArrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._base.checks import is_lazy
from .._base.dlpack import as_array
from .._lazy.leaves import lazy
from .inverses import held
from .pieces import call
from .watched import Watch


def is_watched(x: Any) -> bool:
    """Does a LazyArray depend on an argument whose value nobody may ask for now?"""
    stack, seen = [x], set()
    while stack:
        a = stack.pop()
        if not is_lazy(a) or id(a) in seen or a._value is not None:
            continue
        seen.add(id(a))
        if a._head == "call" and isinstance(a._more[0], Watch):
            return True
        stack += a._args
    return False


class OfLazy:
    """A LazyArray that is a parameter. The function gets it as a node of its own: what it holds
    beside it of the same LazyArray is a constant."""

    def __init__(self, x: Any) -> None:
        self.lazy = call(held, (x,), x.shape, x.dtype)

    def release(self) -> None:
        pass

    def wanted(self) -> list[Any]:
        return [self.lazy]

    def tangents(self, t: Any) -> list[Any]:
        if isinstance(t, _core.Operator):
            raise TypeError(f"a tangent of an array is an array, not a {type(t).__name__}")
        made = t if is_lazy(t) else as_array(t)
        if tuple(made.shape) != self.lazy.shape:
            raise ValueError(
                f"a tangent of shape {tuple(made.shape)} for an array of {self.lazy.shape}"
            )
        if made.dtype.kind == "c" and self.lazy.dtype.kind != "c":
            raise TypeError(f"a tangent of dtype {made.dtype} for an array of {self.lazy.dtype}")
        return [made]

    def gradient(self, found: dict[int, Any]) -> list[Any]:
        g = found.get(id(self.lazy))
        return [lazy(np.zeros(self.lazy.shape, self.lazy.dtype)) if g is None else g]

    def finished(self, values: list[Any]) -> Any:
        return values[0]
