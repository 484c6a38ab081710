"""Elements in memory, as tapes have them (freezing.py)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["Unfit", "View", "c_strides", "in_c_order", "of_views", "view_of"]


class Unfit(Exception):
    """The program makes no tape, because of this."""


class View(NamedTuple):
    """Elements in memory: strides in elements."""

    at: int
    letter: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def reach(self) -> tuple[int, int]:
        """The bytes from its lowest element to behind its highest, as addresses."""
        size = np.dtype(self.letter).itemsize
        if not all(self.shape):
            return self.at, self.at
        steps = [(n - 1) * s * size for n, s in zip(self.shape, self.strides, strict=True)]
        low = self.at + sum(s for s in steps if s < 0)
        return low, self.at + sum(s for s in steps if s > 0) + size


def view_of(a: Any) -> View:
    """That of an array."""
    strides = tuple(s // a.itemsize for s in a.strides)
    return View(a.__array_interface__["data"][0], a.dtype.char, a.shape, strides)


def of_views(key: Any) -> Any:
    """An index that gives a view of single elements too, where NumPy gives a number."""
    if Ellipsis in (key if type(key) is tuple else (key,)):
        return key
    return (*key, ...) if type(key) is tuple else (key, ...)


def c_strides(shape: Any) -> tuple[int, ...]:
    strides, size = [], 1
    for n in reversed(shape):
        strides.append(size)
        size *= n
    return tuple(reversed(strides))


def in_c_order(shape: Any, strides: Any) -> bool:
    own = c_strides(shape)
    return all(n == 1 or s == t for n, s, t in zip(shape, strides, own, strict=True))
