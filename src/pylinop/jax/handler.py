"""The handler in C that XLA calls (src/c/py/module/py_xla.c), and which program a call means.

A compiled function may be kept by JAX on disk and run by another process: it names its program by a
digest of what it computes. Programs of functions and objects have a part of the process in theirs,
so that no other process takes them for its own."""

from __future__ import annotations

import functools
import hashlib
import secrets
from typing import Any

import jax
import numpy as np

from .. import _core
from .._programs.entry import called
from .._programs.formulas import Held, Number, Parts, Ref, Several, Slot
from .._programs.freezing import Freezable, consider

__all__ = ["NAME", "digest", "of_text", "registered", "there"]

NAME = "pylinop_run"
_OF_PROCESS = secrets.token_hex(16)
_programs: dict[tuple[int, int], functools.partial[Any]] = {}
_numbered: dict[int, Any] = {}  # objects that are what they are: alive for good, so is their id


def _text(x: Any) -> str:
    """What a part of a program is, in full."""
    if isinstance(x, (Ref, Slot)):
        return f"{type(x).__name__}{x.at}"
    if isinstance(x, Number):
        return f"{x.type.__name__}:{x.shown!r}"
    if isinstance(x, Several):
        return f"{x.type.__name__}({_text(x.parts)})"
    if isinstance(x, Parts):
        return f"Parts({_text(x.code)},{_text(x.asked)},{x.arrays})"
    if isinstance(x, tuple):
        return f"[{','.join(map(_text, x))}]"
    if isinstance(x, (bool, int, str)):
        return repr(x)
    if hasattr(x, "parts"):
        return f"{type(x).__name__}({_text(x.parts)})"
    thing = x.held if isinstance(x, Held) else x
    _numbered[id(thing)] = thing
    return f"{_OF_PROCESS}:{id(thing)}"


def digest(*parts: Any) -> tuple[int, int]:
    """Two numbers for what a program computes."""
    found = hashlib.sha256(_text((_core.__name__, *parts)).encode()).digest()
    return int.from_bytes(found[:8], "little", signed=True), int.from_bytes(
        found[8:16], "little", signed=True
    )


def registered(key: tuple[int, int], run: functools.partial[Any]) -> tuple[Any, Any]:
    """Holds what runs a program, for as long as the process; gives its numbers as attributes."""
    _programs.setdefault(key, run)
    return np.int64(key[0]), np.int64(key[1])


def of_text(text: str) -> tuple[Any, Any]:
    """Likewise of a program that is text (`_programs.entry`), the same in any process."""
    return registered(digest("text", text), functools.partial(called, text))


def _call(a: int, b: int, arguments: Any, results: Any, key: bytes | None) -> None:
    run = _programs.get((a, b))
    if run is None:
        raise RuntimeError(
            "a compiled function from another process calls a program of pylinop that this one "
            "has not traced: jax.clear_caches(), or compile it again"
        )
    if run.func is called:
        run(arguments, results, key)
        return
    run(arguments, results)
    if key is not None:
        consider(key, lambda: _freezable(run), arguments, results)


def _freezable(run: Any) -> Freezable | None:
    """The program itself, where it is not run for each element of a batch."""
    program, sizes, _ = run.args
    return None if sizes else Freezable(program, False, open=True)


@functools.cache
def there() -> bool:
    """Registers the handler; False where JAX has no such interface."""
    ffi = getattr(jax, "ffi", None)
    if ffi is None:
        return False
    ffi.register_ffi_target(NAME, _core._xla_target(_call), platform="cpu")
    return True
