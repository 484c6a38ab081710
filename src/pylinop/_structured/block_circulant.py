"""Block circulants: a `Block` of p x p blocks, the same arrays or operators along its diagonals.

C_(i - j mod p) at (i, j) is (F^H (x) I) diag(B_0, ..., B_(p-1)) (F (x) I) with the unitary DFT F of
p points and B_f = sum of C_k exp(-2 pi i f k / p): p problems of m rows in place of one of p m.
Which blocks are the same is seen by the objects, no entry is compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base import config, memory
from .dispatch import dense
from .operands import blocks_of

_HELD = 5 * 16  # bytes an entry of a block: the blocks, their DFT, what LAPACK copies


def _same(a: Any, b: Any) -> bool:
    """Are two blocks one object, or made of one array in one way?"""
    if a is b:
        return True
    if a._head != b._head or a.shape != b.shape:
        return False
    if a._head == "zeros":
        return True
    if a._head != "dense" or a._init is None or b._init is None:
        return False
    (one, as_one), (two, as_two) = a._given("a", "assume_a"), b._given("a", "assume_a")
    return one is two and as_one == as_two


def first_column(op: Any) -> list[Any] | None:
    """The blocks C_0, ..., C_(p-1) of a block circulant with square blocks; else None."""
    if op._init is None or op.ndim != 2 or op.dtype.kind not in "fc":
        return None
    rows = blocks_of(op)
    p, m = len(rows), rows[0][0].shape[0]
    if p < 2 or any(len(row) != p for row in rows):
        return None
    for i, row in enumerate(rows):
        for j, block in enumerate(row):
            if block.shape != (m, m) or not _same(block, rows[(i - j) % p][0]):
                return None
    return [row[0] for row in rows]


def asks(op: Any, *args: Any) -> Any:
    """What its rows ask: nothing, or None where they refuse."""
    return None if first_column(op) is None else []


def spectrum(op: Any) -> tuple[Any, bool] | None:
    """(B, is it Hermitian?) with B (p, m, m); None where the operator is no block circulant, or has
    entries that are not finite."""
    column = first_column(op)
    if column is None:
        return None
    limit, needed = config.get("memory_limit"), _HELD * len(column) * column[0].size
    if limit is not None and needed > limit:
        raise memory.beyond(op, needed, "for the DFT of its blocks")
    c = np.stack([dense(block) for block in column]).astype(op.dtype, copy=False)
    if not np.isfinite(c).all():
        return None
    mirrored = np.roll(c[::-1], 1, axis=0).swapaxes(-1, -2).conj()
    return np.fft.fft(c, axis=0), bool((c == mirrored).all())
