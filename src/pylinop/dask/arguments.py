"""What the solvers have in common about their arguments."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from .blocks import Npy
from .operator import BlockOperator

__all__ = ["all_due", "damping", "first", "operator_of", "resumed", "right_side"]


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
    x = np.asarray(x.toarray() if hasattr(x, "tocsr") else x)
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


def first(x0: Any, A: BlockOperator) -> Any:
    """The first iterate, or None."""
    if x0 is None:
        return None
    x0 = _numbers(x0, "x0")
    if x0.shape != A.shape[1:]:
        raise ValueError(f"x0 has shape {x0.shape}, the operator {A.shape}")
    return x0


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


def all_due(watch: Any, engine: Any, itn: int) -> bool:
    """Is a checkpoint due? By rank 0's clock where there are several ranks."""
    comm = getattr(engine, "comm", None)
    if comm is None or isinstance(watch.every, int) or watch.path is None:
        return bool(watch.due(itn))
    return any(comm.allgather(watch.due(itn)))
