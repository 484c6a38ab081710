"""The contents of the arrays that an expression holds, looked at again before its derivative is
made in a second step: a change in between would give the derivative of something else."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._base import errors
from .._base.checks import is_lazy
from .._base.dlpack import is_immutable
from .._lazy.kinds import Kind
from .watched import Watch


def inside(x: Any) -> list[Any]:
    """The parts that an operator, a LazyArray or a list holds."""
    if type(x) in (list, tuple):
        return list(x)
    if isinstance(x, _core.Operator):
        return list(x._operands) if x._init is None else list(x._init)
    if not is_lazy(x):
        return []
    more = x._more
    if x._head == "made" and isinstance(more[0], Kind):
        return [*x._args, *more[0].args, *more[0].kwargs.values()]
    if x._head == "call" and isinstance(more[0], Watch):
        return []  # a parameter: its value is a copy
    return list(x._args)


def printed(a: Any) -> bytes:
    """What tells the content of an array from others."""
    return _core._printed(np.ascontiguousarray(a).view(np.uint8))


class Contents:
    """The arrays of an expression, and what they held when it was computed."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.held: list[tuple[Any, bytes]] = []
        stack, seen = [value], set()
        while stack:
            x = stack.pop()
            if id(x) in seen:
                continue
            seen.add(id(x))
            if isinstance(x, np.ndarray):
                if x.size and x.dtype.hasobject is False and not is_immutable(x):
                    self.held.append((x, printed(x)))
            else:
                stack += inside(x)

    def check(self) -> None:
        """Raises RuntimeError where one has changed."""
        for a, before in self.held:
            if printed(a) != before:
                raise RuntimeError(
                    f"an array of shape {a.shape} that the formula holds has been written to since "
                    "its value was computed: the derivative would be that of something else. Call "
                    "pl.vjp again, or give it a copy" + errors.built(self.value)
                )
