"""Checks of the arguments that the solvers share."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from .._base.sparse_arrays import as_dense
from .blocks import Npy
from .held import Held
from .operator import BlockOperator

__all__ = ["damping", "first", "held_right_side", "operator_of", "resumed", "right_side", "started"]


def operator_of(A: Any, name: str, rows: bool = True) -> BlockOperator:
    """``A``, where it is a BlockOperator; with ``rows`` one of blocks of rows."""
    if not isinstance(A, BlockOperator):
        raise TypeError(
            f"{name} takes a BlockOperator, got {type(A).__name__}; from_array makes one of an "
            "array or a sparse matrix"
        )
    if rows and A.axis != 0:
        raise ValueError(f"{name} takes blocks of rows (axis=0), got axis={A.axis} of {A.shape}")
    return A


def _numbers(x: Any, name: str) -> Any:
    """An array, or a sparse vector's dense form, of numbers that fit into double precision."""
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} is masked: fill it first")
    x = as_dense(x)
    _dtype(x.dtype, name)
    return x.reshape(-1) if x.ndim == 2 and 1 in x.shape else x


def _dtype(dtype: Any, name: str) -> Any:
    if dtype.kind not in "biufc" or dtype.char in "gG":
        raise TypeError(f"{name} has dtype {dtype}: numbers of at most double precision are taken")
    return dtype


def right_side(b: Any, m: int) -> tuple[Any, Any]:
    """The values or the path, and the dtype."""
    if isinstance(b, str | os.PathLike):
        b = os.fspath(b)
        block = Npy(b)
        shape, dtype = block.shape, _dtype(block.dtype, b)
    else:
        b = _numbers(b, "b")
        shape, dtype = b.shape, b.dtype
    if shape != (m,):
        raise ValueError(f"b has shape {shape}, the operator {m} rows")
    return b, dtype


def held_right_side(b: Any, held: Held, dtype: Any) -> Any:
    """A copy of what is here of a right side, given as its values or its path."""
    return np.array(Npy(b, *held.piece).load() if isinstance(b, str) else b[held.at], dtype)


def first(x0: Any, A: BlockOperator, grain: int = 1) -> Any:
    """The first iterate as given, or None: the values, a path, or this rank's piece of it."""
    if x0 is None:
        return None
    x0 = _numbers(Npy(x0).load() if isinstance(x0, str | os.PathLike) else x0, "x0")
    if x0.shape != A.shape[1:] and not (A.engine.pieces and x0.shape == (A._held(1, grain).size,)):
        raise ValueError(f"x0 has shape {x0.shape}, the operator {A.shape}")
    return x0


def started(x0: Any, held: Held, dtype: Any) -> Any:
    """A copy of what is here of the first iterate, or None."""
    if x0 is None:
        return None
    return (x0 if len(x0) < held.n else x0[held.at]).astype(dtype)


def damping(damp: Any) -> float:
    """A finite number."""
    if not math.isfinite(float(damp)):
        raise ValueError(f"damp={damp!r} must be finite")
    return float(damp)


def resumed(resume: Any, checkpoint: Any) -> str | None:
    """The file to go on from, or None."""
    if resume is True:
        there = checkpoint is not None and os.path.exists(checkpoint)
        return os.fspath(checkpoint) if there else None
    return os.fspath(resume) if resume else None
