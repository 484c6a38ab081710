"""Programs that compiled code calls, by their text (src/c/py/module/py_capi.h): its first line says
whose it is."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from .freezing import consider

__all__ = ["called", "ran", "road", "shapes"]

OWNERS = {"numpy": "pylinop._programs.called", "pytensor": "pylinop.pytensor.running"}
MOST = 256
_seen: dict[Any, Any] = {}
_roads: dict[str, str | None] = {}  # of programs: why they run in Python; None: they do not


@functools.lru_cache(maxsize=1024)
def _owner(text: str) -> tuple[Any, str]:
    name, _, program = text.partition("\n")
    if name not in OWNERS:
        raise ValueError(f"a program of {name!r}: known are {', '.join(OWNERS)}")
    return importlib.import_module(OWNERS[name]), program


def _known(a: Any) -> Any:
    """The array that was made of the same memory by a call before: a program and its pullback get
    the same ones, so that what was derived of one is there for the other (as long as its content
    is the same). Between calls their memory may be gone: nothing reads it then."""
    key = (a.__array_interface__["data"][0], a.shape, a.strides, a.dtype)
    found = _seen.get(key)
    if found is None:
        if len(_seen) >= MOST:
            _seen.clear()
        found = _seen[key] = a
    return found


def called(text: str, arrays: Any, outs: Any, key: bytes | None) -> None:
    """Runs a program on arrays of NumPy, and writes its values into `outs`. `key`: of the tape that
    calls after this one may run."""
    owner, program = _owner(text)
    owner.written_into(program, [_known(a) for a in arrays], outs)
    freezable = getattr(owner, "freezable", None)
    if key is not None and freezable is not None:
        ran(text, consider(key, lambda: freezable(program, arrays), arrays, outs))


def ran(text: str, why: str | None) -> None:
    """Notes why a program ran in Python; None: it runs from C the next time."""
    if len(_roads) >= MOST:
        _roads.clear()
    _roads[text] = why


def shapes(text: str, given: tuple[tuple[int, ...], ...]) -> list[tuple[int, ...]]:
    """The shapes of a program's values, of those of its arrays."""
    owner, program = _owner(text)
    found: list[tuple[int, ...]] = owner.shapes(program, given)
    return found


def road(text: str) -> str:
    """How a program of this text ran when it was last called from compiled code."""
    if text not in _roads:
        return "not called yet"
    why = _roads[text]
    return "from C" if why is None else f"in Python: {why}"
