"""The results of a program, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

DENSE, DIAGONAL, TRACE, ELEMENT, DET = 8, 9, 10, 11, 12


def apart(op: Any, column: Any) -> Iterator[tuple[Any, int, int, int, Any]]:
    """Of a column of bytes: operator, action and its two integers, result."""
    asked = []
    while True:
        act, i, j, _ = op._attrs
        last, *before = op._operands
        asked.append((last, DENSE + act, i, j))
        if not before:
            break
        op = before[0]
    at = 0
    for part, act, i, j in asked[::-1]:
        shape, dtype = _shape(part, act, i), part.dtype
        if act == DET:
            dtype = np.result_type(dtype, np.float64)
        made: Any = np.ndarray(shape, dtype, column, at)
        at += made.nbytes
        yield part, act, i, j, made


def _shape(op: Any, act: int, offset: int) -> tuple[int, ...]:
    m, n = op.shape[-2:]
    own: dict[int, tuple[int, ...]] = {
        DENSE: (m, n),
        DIAGONAL: (max(0, min(m + min(offset, 0), n - max(offset, 0))),),
        DET: (2,),
    }
    return (*op.shape[:-2], *own.get(act, ()))
