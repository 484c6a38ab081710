"""The band of an array that was said to have one: ``solve(a, b, assume_a="banded")``, as in SciPy,
where the word says that there is a band and the numbers say how wide it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base.dtypes import inexact

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["as_band", "widths"]

AT_ONCE = 1 << 16  # elements looked at together
LEAST = 16  # rows: below, a factor of all of it takes no longer


def widths(a: NDArray[Any]) -> tuple[int, int] | None:
    """How many diagonals below and above the main one are not all zero, NaN counted as not zero.

    None: too many for a factor within the band to pay. One pass, which ends where that is seen.
    """
    n = a.shape[-1]
    below = above = 0
    step = max(1, AT_ONCE // n)
    for at in range(0, n, step):
        some = a[at : at + step] != 0
        rows = np.flatnonzero(some.any(axis=1))
        if len(rows) == 0:
            continue
        first = some.argmax(axis=1)[rows]
        last = n - 1 - some[:, ::-1].argmax(axis=1)[rows]
        below = max(below, int((rows + at - first).max()))
        above = max(above, int((last - rows - at).max()))
        if 2 * below + above + 1 > n // 2:
            return None
    return below, above


def as_band(op: Any) -> Any:
    """A Dense of one matrix as the Banded that its numbers are now; itself where it is none."""
    a = np.asarray(op.args[0])
    if a.ndim != 2 or a.shape[0] != a.shape[1] or a.shape[0] < LEAST or a.dtype.kind not in "biufc":
        return op
    dtype = inexact(a.dtype).newbyteorder("=")
    found = widths(a) if dtype.char in "fdFD" else None
    if found is None:
        return op
    below, above = found
    ab = np.zeros((below + above + 1, a.shape[0]), dtype)
    for k in range(-below, above + 1):
        line = np.diagonal(a, k)
        ab[above - k, max(k, 0) : max(k, 0) + len(line)] = line
    return _core.Banded((below, above), ab)
