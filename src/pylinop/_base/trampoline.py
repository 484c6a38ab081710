"""Recursion without Python's stack: expressions may be deeper than it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any


def run(steps: Callable[..., Generator[Any, Any, Any]], *request: Any) -> Any:
    """Runs generators ``steps(*request)`` that yield requests until the first is answered."""
    __tracebackhide__ = True
    stack, value = [steps(*request)], None
    while stack:
        try:
            asked = stack[-1].send(value)
        except StopIteration as done:
            stack.pop()
            value = done.value
        else:
            stack.append(steps(*asked))
            value = None
    return value
