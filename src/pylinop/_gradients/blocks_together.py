"""Cotangents of blocks of one size along the diagonal, found together: the entries of the
operator's own cotangent in these places, as one stack. Apart each would be a plan of its own."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .. import _core
from .._base.checks import is_lazy
from .._lazy.kinds import FORM, lazily
from .._lazy.leaves import lazy
from .._lazy.numpy_functions import diagonal
from .matrices import Cotangent, together

MANY, LARGE = 4, 64  # from so many blocks on, of at most so many rows
DENSE = 1 << 20  # or of other shapes, out of the dense form of at most so many numbers


@functools.lru_cache(maxsize=16)
def _places(count: int, rows: int, dtype: Any) -> Any:
    """What has such blocks on its diagonal as an array of its own, the second of three."""
    zero = np.zeros((), dtype)
    off, on = (np.broadcast_to(zero, (k, rows, rows)) for k in (count - 1, count))
    return _core.BlockTridiagonal(off, on, off)


class Blocks(Cotangent):
    """The cotangents of so many square blocks of so many rows, raveled; of blocks of this dtype."""

    def __init__(self, count: int, rows: int, dtype: Any) -> None:
        super().__init__(1, (1, 0))
        self.sizes, self.dtype = (count, rows), np.dtype(dtype)

    def __call__(self, op: Any, g: Any) -> Any:
        return super().__call__(_places(*self.sizes, self.dtype), g)

    def tangent_of(self, y: Any, h: Any) -> tuple[Any, Any]:
        part = diagonal(h)
        count, rows = self.sizes
        stack = part.reshape((count, rows, rows))
        return part, lazy(_core.BlockDiag([stack[k] for k in range(count)]))

    def __reduce__(self) -> Any:
        return Blocks, (*self.sizes, self.dtype)


def _is_array(g: Any) -> bool:
    """Is it an array, of which all blocks are taken at once, not a formula of matrices?"""
    return bool(g._head == "call" or (g._head == "add" and all(map(_is_call, g._args))))


def _is_call(x: Any) -> bool:
    return bool(is_lazy(x) and x._head == "call")


def of_block(a: Any, g: Any, place: int) -> Any:
    """The cotangent of an operand of a kind of LazyArrays; None where it is no block that is to be
    found with the others."""
    made, count, shape = a._more[0], len(a._args), tuple(a._args[0].shape)
    if not issubclass(made.cls, _core.BlockDiag):
        return None
    whole = together.get((id(a), id(g)))
    if whole is not None:
        return whole[place]
    blocks = made.args[0] if type(made.args[0]) in (list, tuple) else made.args
    alike = (
        len(blocks) == count
        and (a.ndim, g.ndim) == (2, 2)
        and len(shape) == 2
        and all(tuple(x.shape) == shape for x in a._args)
    )
    if not alike:
        return None
    square, size = shape[0] == shape[1] <= LARGE, count * shape[0] * shape[1]
    few = count < MANY
    by_array = (count > 1 and _is_array(g)) or not (few or square or count * size > DENSE)
    if not by_array and (few or not square):
        return None
    if by_array:
        at = np.arange(count)
        parts = np.reshape(g, (count, shape[0], count, shape[1]))
        whole = together[id(a), id(g)] = parts[at, :, at, :]
    else:
        dtype = np.result_type(g.dtype, a.dtype)
        all_of_them = Blocks(count, shape[0], a.dtype)
        found = lazily(all_of_them, (a, g), bytes((FORM, FORM)), (size, size), dtype)
        whole = together[id(a), id(g)] = diagonal(found).reshape((count, *shape))
    return whole[place]
