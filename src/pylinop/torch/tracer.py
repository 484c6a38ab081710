"""What PyTorch's tracer is told of us once it is there: a package of its own (torch._dynamo), whose
import takes longer than that of PyTorch and ours together; `torch.compile` imports it.

    @constant                       # of constants to a constant, called while a graph is traced
    def f(...): ...
    when_traced(f)                  # f() is called when the tracer has been imported"""

from __future__ import annotations

import importlib.util
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["constant", "when_traced"]

_NAME = "torch._dynamo"
_constants: weakref.WeakSet[Any] = weakref.WeakSet()
_waiting: list[Callable[[], None]] = []
_lock = threading.RLock()


class _Finder:
    """Finds no module, but sees that of the tracer being loaded."""

    def __init__(self) -> None:
        self.found = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != _NAME or self.found:
            return None
        self.found = True  # not by the search that follows
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.found = False
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def loaded(module: Any) -> None:
            load(module)
            _arrived()

        spec.loader.exec_module = loaded  # type: ignore[method-assign]
        return spec


_finder = _Finder()
_told = False  # does the tracer know?


def _is_here() -> bool:
    """Also where it came while our finder was not asked: others set `sys.meta_path` too."""
    if not _told and _NAME in sys.modules and hasattr(sys.modules[_NAME], "assume_constant_result"):
        _arrived()
    return _told


def _arrived() -> None:
    global _told
    with _lock:
        if _told:
            return
        _told = True
        if _finder in sys.meta_path:
            sys.meta_path.remove(_finder)
        for f in list(_constants):
            torch.compiler.assume_constant_result(f)
        for f in _waiting:
            f()


if not _is_here():
    sys.meta_path.insert(0, _finder)


def constant(f: Any) -> Any:
    """The same function, of which the tracer takes the result for a constant."""
    with _lock:
        if _is_here():
            return torch.compiler.assume_constant_result(f)
        _constants.add(f)
    return f


def when_traced(f: Callable[[], None]) -> Callable[[], None]:
    """Calls f as soon as the tracer is there."""
    with _lock:
        if _is_here():
            f()
        else:
            _waiting.append(f)
    return f
