"""Equations that are products with a Toeplitz matrix: one operand is a vector that is read at
i - j, j - i, i + j or their like, and the other is summed over one of the two.

    y[i, ...] = sum_j x[c + a i + b j] z[j, ...],    a, b = 1 or -1

With b = a the columns are turned round. The matrix goes by its own kernel, short loops or FFT by
price, where windows of the vector would be read at each product."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .grammar import Axis, Equation, Index
from .sizes import Sized

# Below, a view and a product are as fast (AMD EPYC, one thread, 2026-11-25, shared; ms by Toeplitz
# and by the view: of rows x columns 2e5 x 8 0.21, 0.35; 8 x 2e5 0.68, 0.29; 16 x 2e5 0.57, 0.58;
# 2000 x 16 0.024, 0.029; times 32 columns 2000 x 16 0.15, 0.08, 1800 x 200 0.37, 0.99).
TALL, WIDE = 8, 16
LEAST, LEAST_COLUMNS = 1 << 14, 1 << 18


class Found(NamedTuple):
    """Which operand is the vector, and its axis; the labels of rows and columns."""

    vector: int
    axis: Index
    row: str
    col: str


def found(s: Sized) -> Found | None:
    """Is an equation such a product, of a size at which that pays?"""
    if len(s.operands) != 2:
        return None
    for k in (0, 1):
        x, other = s.operands[k], s.operands[1 - k]
        if len(x) != 1 or not isinstance(x[0], Index) or len(x[0].terms) != 2:
            continue
        if any(abs(c) != 1 for _, c in x[0].terms) or not _plain(other) or not _plain(s.result):
            continue
        names = [label for label, _ in x[0].terms]
        for row, col in (names, names[::-1]):
            free = col not in s.result and row in s.result and row not in other
            if free and col in other and set(s.result) == {row, *other} - {col}:
                m, n = s.sizes[row], s.sizes[col]
                least = LEAST if len(other) == 1 else LEAST_COLUMNS
                pays = min(m, n) >= (TALL if m >= n else WIDE) and m * n >= least
                return Found(k, x[0], row, col) if pays else None
    return None


def _plain(axes: tuple[Axis, ...]) -> bool:
    return all(isinstance(axis, str) for axis in axes) and len(set(axes)) == len(axes)


def _taken(x: Any, start: int, step: int, count: int, outside: Any) -> Any:
    """What the vector has from a place on, forwards or backwards; None beyond its ends."""
    last = start + step * (count - 1)
    if 0 <= min(start, last) and max(start, last) < len(x):
        end = last + step
        return x[start : end if end >= 0 else None : step]
    places = start + step * np.arange(count)
    if outside is None:
        return None  # said by the view, with the range
    if outside == "wrap":
        return x[places % len(x)]
    inside = (places >= 0) & (places < len(x))
    return np.where(inside, x[np.where(inside, places, 0)], x.dtype.type(0))


def product(s: Sized, arrays: Sequence[Any], dtype: Any, outside: Any, f: Found) -> Any:
    """The contraction, or None where the vector is read beyond its ends or sizes broadcast."""
    x, z = (arrays[k].astype(dtype, copy=False) for k in (f.vector, 1 - f.vector))
    labels = list(s.operands[1 - f.vector])
    m, n = s.sizes[f.row], s.sizes[f.col]
    if any(k != s.sizes[label] for label, k in zip(labels, z.shape)) or len(x) == 0:  # type: ignore[index]
        return None
    signs = dict(f.axis.terms)
    a, b, at = signs[f.row], signs[f.col], f.axis.constant
    columns = np.moveaxis(z, labels.index(f.col), 0)
    if a == b:
        at, b, columns = at + b * (n - 1), -b, columns[::-1]
    first, across = _taken(x, at, a, m, outside), _taken(x, at, b, n, outside)
    if first is None or across is None:
        return None
    rest = columns.shape[1:]
    made = _core.Toeplitz(first, across) @ columns.reshape(n, math.prod(rest))
    labels.remove(f.col)
    order = [f.row, *labels]
    return made.reshape(m, *rest).transpose([order.index(label) for label in s.result])


def operator(
    e: Equation,
    s: Sized,
    arrays: Sequence[Any],
    rows: tuple[str, ...],
    cols: tuple[str, ...],
    outside: Any,
) -> Any:
    """The operator of a vector that is read at a sum or difference of a row and a column; None of
    other equations, and of a vector that is read beyond its ends."""
    axis = e.operands[0][0] if len(e.operands) == 1 and len(e.operands[0]) == 1 else None
    if not isinstance(axis, Index) or len(axis.terms) != 2 or len(rows) != 1 or len(cols) != 1:
        return None
    signs, x = dict(axis.terms), arrays[0]
    if set(signs) != {*rows, *cols} or any(abs(c) != 1 for c in signs.values()) or len(x) == 0:
        return None
    if x.dtype.char not in "fdFD":
        return None
    (row,), (col,) = rows, cols
    m, n, a, b, at = s.sizes[row], s.sizes[col], signs[row], signs[col], axis.constant
    if min(m, n) == 0:
        return None
    first = _taken(x, at, a, m, outside)
    if first is None:
        return None
    if a != b and outside == "wrap" and m == n == len(x):
        return _core.Circulant(first)
    start = at + a * (m - 1) if a == b else at
    across = _taken(x, start, b, n, outside)
    if across is None:
        return None
    return (_core.Hankel if a == b else _core.Toeplitz)(first, across)
