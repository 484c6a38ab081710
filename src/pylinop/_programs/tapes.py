"""Programs called from Python, run from C where they have left a tape (freezing.py)."""

from __future__ import annotations

import functools
import itertools
import math
import time
from typing import Any

import numpy as np

from .. import _core
from .._base import config
from .freezing import Freezable, consider
from .programs import Program, as_results

__all__ = ["mapped", "quick", "values"]

LONGEST = 3e-3  # seconds of a call, of which a tape saves a tenth of a millisecond
_numbers = itertools.count()


@functools.lru_cache(maxsize=2048)
def _text(program: Program) -> bytes:
    """What tells a program from all others of this process."""
    return b"program\n" + next(_numbers).to_bytes(8, "little")


def values(program: Program, arrays: list[Any], kinds: Any, longest: float = math.inf) -> list[Any]:
    """The values of a program of arrays of NumPy, new arrays of these shapes and dtypes. After a
    call of more than `longest` seconds no tape is made, which takes several calls."""
    outs = [np.empty(shape, dtype) for shape, dtype in kinds]
    key: Any = None
    if not config.recording():
        key = _core._tape_call(_text(program), tuple(arrays), tuple(outs))
        if key is True:
            return outs
    start = time.monotonic()
    found = as_results(program(arrays), kinds, np.dtype)
    if key is not None and time.monotonic() - start <= longest:
        consider(key, lambda: Freezable(program, False, open=program.open), arrays, found)
    return found


def quick(program: Program, arrays: tuple[Any, ...], kinds: Any) -> list[Any] | None:
    """The values, where the program has left a tape for such arrays."""
    if config.recording():
        return None
    outs = [np.empty(shape, dtype) for shape, dtype in kinds]
    done = _core._tape_call(_text(program), arrays, tuple(outs)) is True
    return outs if done else None


def mapped(
    program: Program, sizes: Any, flags: Any, arrays: list[Any], kinds: Any, outs: list[Any]
) -> None:
    """Writes the values for each element of a batch of these `sizes`; `flags` say of each array
    which of the batch dimensions it has, in front. `kinds` are those of one element."""
    for at in itertools.product(*map(range, sizes)):
        one = [
            a[(*(k for k, on in zip(at, f, strict=True) if on), ...)]
            for a, f in zip(arrays, flags, strict=True)
        ]
        for whole, value in zip(outs, values(program, one, kinds), strict=True):
            whole[at] = value
