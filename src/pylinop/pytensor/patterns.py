"""Where the entries of a sparse matrix stand, as a word in a program's text."""

from __future__ import annotations

import base64
import functools
import zlib
from typing import Any

import numpy as np

__all__ = ["packed", "unpacked"]


def packed(i: Any, j: Any, n: int) -> str:
    """The word of entries (i, j), row by row, of n rows."""
    starts = np.searchsorted(i, np.arange(n + 1))
    text = zlib.compress(np.concatenate([starts, j]).astype("<i4").tobytes())
    return f"{n}:{base64.b64encode(text).decode()}"


@functools.lru_cache(maxsize=64)
def unpacked(word: str) -> Any:
    """A matrix of ones with that pattern: the same one each time."""
    from scipy.sparse import csr_array

    size, _, text = word.partition(":")
    n = int(size)
    both = np.frombuffer(zlib.decompress(base64.b64decode(text)), "<i4").astype(np.int32)
    return csr_array((np.ones(len(both) - n - 1), both[n + 1 :], both[: n + 1]), shape=(n, n))
