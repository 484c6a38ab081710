"""The text of an operator: one line, as in SciPy."""

from __future__ import annotations

from typing import Any


def _size(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def text(op: Any) -> str:
    """<MxN Kind with dtype=...>; never computes."""
    try:
        dtype = op.dtype
        shape = op.shape
    except AttributeError:
        return f"<{type(op).__name__} without shape>"
    words = "unspecified dtype" if dtype is None else f"dtype={dtype}"
    return f"<{_size(shape)} {type(op).__name__} with {words}>"
