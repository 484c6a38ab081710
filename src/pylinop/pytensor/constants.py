"""Structure of constant arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["toeplitz_column", "what"]


MOST = 9  # diagonals of a band


def what(a: Any) -> tuple[str, Any]:
    """("identity", c), ("diagonal", d), ("constant", c), ("band", {k: diagonal k}) or ("dense", a)
    of a square matrix."""
    d = np.diagonal(a)
    if np.count_nonzero(a) == np.count_nonzero(d):
        if d.size and (d == d[0]).all():
            return "identity", d[0]
        return "diagonal", d.copy()
    if (a == a.flat[0]).all():
        return "constant", a.flat[0]
    i, j = np.nonzero(a)
    offsets = np.unique(j - i)
    if len(offsets) <= MOST and np.abs(offsets).max() <= MOST:
        return "band", {int(k): np.diagonal(a, k).copy() for k in offsets}
    return "dense", a


def toeplitz_column(a: Any) -> Any:
    """The first column of a symmetric Toeplitz matrix; None for other ones."""
    if a.ndim != 2 or a.shape[0] != a.shape[1] or not a.size:
        return None
    if (a[1:, 1:] == a[:-1, :-1]).all() and (a[0] == a[:, 0]).all():
        return a[:, 0].copy()
    return None
