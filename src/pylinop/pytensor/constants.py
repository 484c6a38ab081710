"""Structure of constant arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["is_regular", "lags", "what"]


MOST = 9  # diagonals of a band
THIN = 4  # a root has at most one column for so many rows


def what(a: Any) -> tuple[str, Any]:
    """("identity", c), ("diagonal", d), ("constant", c), ("band", {k: diagonal k}), ("root", W) or
    ("dense", a) of a square matrix."""
    d = np.diagonal(a)
    if np.count_nonzero(a) == np.count_nonzero(d):
        if d.size and (d == d[0]).all():
            return "identity", d[0]
        return "diagonal", d.copy()
    if (a == a.flat[0]).all():
        return "constant", a.flat[0]
    if np.count_nonzero(a) <= MOST * len(a):
        i, j = np.nonzero(a)
        offsets = np.unique(j - i)
        if len(offsets) <= MOST and np.abs(offsets).max() <= MOST:
            return "band", {int(k): np.diagonal(a, k).copy() for k in offsets}
    W = _root(a)
    return ("dense", a) if W is None else ("root", W)


def _root(a: Any) -> Any:
    """The W of few columns with W W' = a, to 16 units in the last place of the largest entry, as a
    product of it that was computed before: by Cholesky with pivots. None: there is none."""
    n = len(a)
    if a.dtype.kind != "f" or not np.isfinite(a).all():
        return None
    size = float(np.abs(a).max())
    left, W, k = np.diagonal(a).astype(float), np.zeros((n, n // THIN), order="F"), 0
    while k < W.shape[1]:
        at = int(np.argmax(left))
        if left[at] <= 4 * np.finfo(a.dtype).eps * size:
            break
        W[:, k] = (a[:, at] - W[:, :k] @ W[at, :k]) / np.sqrt(left[at])
        left, k = left - W[:, k] ** 2, k + 1
    W = np.ascontiguousarray(W[:, :k])
    fits = k and _same(W @ W.T, np.asarray(a, float), size, a.dtype)
    return W.astype(a.dtype) if fits else None


def _same(a: Any, b: Any, size: float, dtype: Any = None) -> bool:
    """To 16 units in the last place of the largest entry, as differences of rounded points are;
    whole numbers exactly."""
    if a.dtype.kind != "f":
        return bool((a == b).all())
    return bool((np.abs(a - b) <= 16 * np.finfo(dtype or a.dtype).eps * size).all())


def lags(a: Any) -> tuple[Any, bool] | None:
    """(the first column, False) of a symmetric Toeplitz matrix, (it, True) of one whose entries
    have the other sign above the diagonal; None for other ones."""
    if a.ndim != 2 or a.shape[0] != a.shape[1] or not a.size or a.dtype.kind not in "fiu":
        return None
    size = float(np.abs(a).max())
    if not np.isfinite(size) or not _same(a[1:, 1:], a[:-1, :-1], size):
        return None
    column = a[:, 0].copy()
    if not all(_same(np.diagonal(a, -k), column[k], size) for k in range(len(a))):
        return None
    if _same(a[0], column, size):
        return column, False
    return (column, True) if a.dtype.kind == "f" and _same(a[0], -column, size) else None


def is_regular(x: Any) -> bool:
    """Are these points at equal distances, to 4 units in the last place of the largest?"""
    if x.dtype.kind not in "fiu" or len(x) < 2:
        return False
    eps = np.finfo(x.dtype if x.dtype.kind == "f" else float).eps
    x = np.asarray(x, float)
    due = x[0] + (x[-1] - x[0]) / (len(x) - 1) * np.arange(len(x))
    size = np.abs(x).max()
    return bool(np.isfinite(size) and (np.abs(x - due) <= 4 * eps * size).all())
