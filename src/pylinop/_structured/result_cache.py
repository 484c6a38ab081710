"""Answers that are cached between calls: factors, spectra, functions of matrices.

They lie in the cache of derived values, beside those of plans (py_result_cache.c). An answer is
found by the question and the operator, and is used again only if the bytes of all its arrays are
unchanged; the least recently used is dropped first."""

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._operators.convert import arrays_of

_WRITABLE = (str, int, float, complex, tuple, type(None), np.generic)


def word_of(name: str, args: tuple[Any, ...]) -> str | None:
    """The question as text; None if an argument cannot be written as text."""
    parts = [name]
    for arg in args:
        if isinstance(arg, dict):
            if not all(isinstance(v, _WRITABLE) for v in arg.values()):
                return None
            parts.append(repr(sorted(arg.items())))
        elif isinstance(arg, _WRITABLE):
            parts.append(repr(arg))
        elif word := getattr(arg, "word", None):
            parts.append(word)
        else:
            return None
    return " ".join(parts)


def _arrays(value: Any, found: list[Any]) -> list[Any]:
    kind = type(value)  # isinstance would ask operators for their __class__
    if issubclass(kind, np.ndarray):
        found.append(value)
    elif issubclass(kind, _core.Operator):
        found += arrays_of(value)
    elif issubclass(kind, (tuple, list)):
        for part in value:
            _arrays(part, found)
    return found


def _handed(value: Any) -> Any:
    """The answer for the caller: copies of arrays, but the cached operators themselves."""
    kind = type(value)
    if issubclass(kind, np.ndarray):
        return value.copy()
    if issubclass(kind, tuple):
        parts = map(_handed, value)
        return kind(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def content(op: Any) -> bytes | None:
    """How ``op`` is built and what its arrays hold now, a reading pass; None of a callable, whose
    numbers nobody sees."""
    found = _core._kept(op, "content")
    if found is not None:
        return found[0]
    if op._opaque:
        return None
    whole = hashlib.blake2b(
        digest_size=16
    )  # of very many arrays, and of those that C does not read
    for a in arrays_of(op):
        whole.update(a.tobytes())
    return whole.digest()


def answer(word: str, op: Any, make: Callable[[], Any], announce: Callable[[], None]) -> Any:
    """``make()``, or its cached result for ``op`` with the same numbers; in that case
    ``announce()`` repeats the warnings that making it would have given."""
    found = _core._kept(op, word)
    if found is None:
        return make()
    token, value = found
    if value is not None:
        announce()
        return _handed(value)
    value = make()
    if value is NotImplemented:
        return value
    arrays = _arrays(value, [])
    own = arrays_of(op)
    if any(np.may_share_memory(a, b) for a in arrays for b in own):
        return value  # the answer would change with the operand
    for a in arrays:
        a.setflags(write=False)
    _core._keep(token, value, sum(a.nbytes for a in arrays))
    return _handed(value)
