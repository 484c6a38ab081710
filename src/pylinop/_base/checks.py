"""Checks of arguments that many functions share."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from . import errors


def row_hint(shape: tuple[int, ...]) -> str:
    """What is said of a matrix of one row where a square one is due: it was a vector."""
    return "; a vector counts as one row, and a matrix goes here" if shape[:-1] == (1,) else ""


def square(op: Any, action: str = "compute") -> Any:
    """Returns the operator, which must be square; ``action`` is what the error says failed."""
    if op.shape[-1] != op.shape[-2]:
        raise errors.make_error(
            "LinAlgError",
            f"Last 2 dimensions of the array must be square: {op.shape}" + row_hint(op.shape),
            op,
            action,
            -1,
        )
    return op


def triangle(UPLO: Any) -> str:
    """Returns "L" or "U" from NumPy's keyword, in either case."""
    uplo = str(UPLO).upper()
    if uplo not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return uplo


def is_lazy(x: Any) -> bool:
    """Is x a LazyArray? (isinstance asks operators for their __class__: slower than a solve.)"""
    return issubclass(type(x), _core.Lazy)


def is_symbolic(x: Any) -> bool:
    """Is x a placeholder, or a formula of some (`_symbols/placeholder.py`, a layer above)?"""
    return hasattr(type(x), "_symbolic")


def is_kept(keepdims: Any) -> bool:
    """What NumPy's keyword says, where it may be left out."""
    return keepdims is not np._NoValue and bool(keepdims)


def number(x: Any) -> Any:
    """Returns a scalar in place of an array without dimensions."""
    return x[()] if isinstance(x, np.ndarray) else x
