"""The dtypes of results, and the modes of views."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

# How a view shows an operator: as it stands, transposed, conjugated, both. They are bits.
N, T, C, H = 0, 1, 2, 3
TRANSPOSED, CONJUGATED = T, C


def inexact(dtype: Any) -> np.dtype[Any]:
    """The dtype that np.linalg computes in, in this byte order: integers become float64."""
    if dtype is None or dtype.kind in "biu":
        return np.dtype(np.float64)
    native: np.dtype[Any] = np.dtype(dtype).newbyteorder("=")
    return native


def real_of(dtype: Any) -> Any:
    """The real dtype of the same precision, which norms have."""
    dtype = inexact(dtype)
    return np.dtype(dtype.char.lower()) if dtype.kind == "c" else dtype


if not TYPE_CHECKING:  # they are asked for each factor of each call: without a frame of Python
    inexact = functools.lru_cache(256)(inexact)
    real_of = functools.lru_cache(256)(real_of)
