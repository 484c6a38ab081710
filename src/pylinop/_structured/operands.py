"""What rows read of an operator: its parts, its diagonal, its size; and whether memory allows its
dense form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _core
from .._base import config, memory
from .._base.dtypes import inexact, real_of
from .._base.kind_flags import OF_PARTS
from .._operators import parameters

_LITTLE = 1 << 14  # entries up to which an answer joined from those of factors is cached too
_FEW = 4  # parts up to which all of them are
_SMALL = 144  # entries up to which LAPACK's spectra are as quick as a look into the cache


def tolerance_of(name: str, value: Any) -> Any:
    """A user's tolerance, which must be numbers, as an array."""
    a = np.asarray(value)
    if a.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be a number or an array of such, got {value!r}")
    return a


def keep_within(op: Any, arrays: Any, *args: Any) -> None:
    """Raises where the dense form and so many arrays of op's size, as LAPACK needs them, would pass
    the memory limit, if one is set; NumPy computes in double precision. ``arrays`` may be a
    function of (m, n, *args)."""
    limit = config.get("memory_limit")
    if limit is None or 0 in op.shape:
        return
    if callable(arrays):
        arrays = arrays(*op.shape[-2:], *args)
    dtype = inexact(op.dtype)
    own = op.size * dtype.itemsize
    wide = np.result_type(dtype, np.float64).itemsize
    if wide > dtype.itemsize:
        arrays += 1  # the cast
    if op._head == "dense" and op._init is not None and dtype == op.dtype:
        own = 0
    needed = own + int(arrays * op.size * wide)
    if needed > limit:
        raise memory.beyond(op, needed, f"{own:,} of them for the dense form")


def small_dense(op: Any) -> Any:
    """The array of a Dense so small that its spectra are computed at once, without a look into the
    cache; None for all others."""
    if op._head != "dense" or config.recording():  # the question's own road is the one that is seen
        return None
    return small_array(op)


def small_array(op: Any) -> Any:
    """Likewise, of a Dense."""
    if op._init is None:
        return None
    a, assumed = op._given("a", "assume_a")
    if assumed is not None or type(a) is not np.ndarray or not 0 < a.size <= _SMALL:
        return None
    return a if a.dtype.char in "fdFD" else None


def has_small_parts(op: Any) -> bool:
    """Is it a Kron or BlockDiag of a few arrays, each so small, and counts no limit what is made of
    it?"""
    if op._head not in OF_PARTS or op._init is None or len(op._init) > _FEW:
        return False
    for f in op._init:
        if type(f) is not _core.Dense or small_array(f) is None:
            return False
    return config.get("memory_limit") is None


def _is_put_together(op: Any) -> Any:
    """Are answers about it cached as a whole? They are for a Kron or BlockDiag so small that making
    the answer says nothing about dense forms, which an answer from the cache would not repeat."""
    size = math.prod(op.shape)
    if op._head not in OF_PARTS or op.dtype is None or size > _LITTLE:
        return False
    bytes_ = size * inexact(op.dtype).itemsize
    return config.get("memory_limit") is None and bytes_ <= config.get("warn_limit")


def announce(op: Any) -> None:
    """Warns that the dense form is needed, where it is large."""
    if op._head != "dense" or op._init is None:
        memory.materialising(op, op.size * inexact(op.dtype).itemsize, False)


def diagonal_of(op: Any) -> Any:
    """The main diagonal of a Diag or Identity, inexact."""
    if op.dtype.kind not in "biu":
        return op.diagonal()
    if op._init is None and op._head == "diag":
        op = op @ _core.Diag(np.ones(op.shape[-1]))
    return op.diagonal().astype(np.float64)


def within(op: Any) -> Any:
    """The operand of a multiple or a view, in the precision of the whole operator."""
    return _as_precise(op._operands[0], op)


def _as_precise(f: Any, op: Any) -> Any:
    real = real_of(op.dtype)
    if f.dtype is None or real_of(f.dtype).itemsize >= real.itemsize:
        return f
    dtype = np.result_type(f.dtype, real)
    if f._init is None and f._head == "diag":
        return f @ _core.Diag(np.ones(f.shape[-1], dtype))
    return f.astype(dtype)


def modulus(c: Any) -> float:
    return abs(complex(c))


def _view(op: Any, mode: int) -> Any:
    return _core._build("view", op, None, mode)


def factors_of(op: Any) -> list[Any]:
    """The factors of a Kron or the blocks of a BlockDiag, also of one that products, views,
    inverses or slices closed to."""
    dtype = op.dtype
    if op._init is not None:
        for f in op._init:
            if type(f) is not _core.Dense or f.dtype is not dtype:
                break
        else:
            return list(op._init)
    return [f if f.dtype is dtype else _as_precise(f, op) for f in parameters.factors(op)]


def blocks_of(op: Any, columns: int | None = None) -> list[list[Any]]:
    """The rows of a Block, likewise; of the first so many columns."""
    return [[_as_precise(block, op) for block in row[:columns]] for row in op._given("blocks")]
