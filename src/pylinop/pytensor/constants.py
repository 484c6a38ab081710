"""Structure of constant arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from .patterns import packed

__all__ = ["is_regular", "lags", "what"]


MOST = 9  # diagonals of a band, and entries in a row of a sparse matrix
SPARSE = 512  # rows from which sparse factors pay
THIN = 4  # a root has at most one column for so many rows

# Of a matrix with about ones on the diagonal: the pivots of a root fall from above the one to below
# the other, which what computed it rounded, and its entries are right to so many units.
_LEAST, _END, _CLOSE = 1e-8, 1e-11, 64


def what(a: Any) -> tuple[str, Any]:
    """("identity", c), ("diagonal", d), ("constant", c), ("band", {k: diagonal k}), ("sparse", its
    pattern and its entries), ("root", W) or ("dense", a) of a square matrix."""
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
        if len(a) >= SPARSE and (a == a.T).all():
            return "sparse", (packed(i, j, len(a)), a[i, j])
    W = _root(a)
    return ("dense", a) if W is None else ("root", W)


def _root(a: Any) -> Any:
    """The W of few columns with W W' = a, as a product of it that was computed before: entry (i, j)
    to _CLOSE units in the last place of sqrt(a_ii a_jj), or exactly of numbers of fewer than 64
    bits, where these units hide what is added to a diagonal. None: there is none for sure."""
    if a.dtype.char not in "fd":
        return None
    with np.errstate(all="ignore"):
        diagonal = np.diagonal(a).astype(float)
        zero = diagonal == 0
        if not (diagonal >= 0).all() or a[zero].any() or a[:, zero].any():
            return None
        diagonal[zero] = 1.0
        by = 2.0 ** -np.round(np.log2(diagonal) / 2)  # a power of 2 rounds nothing
        if _is_full(a, by):
            return None
        exactly = a.dtype.char == "f"
        W = _by_pivots(a, by, exactly)
        if W is None or not _gives(W, a, by, 0.0 if exactly else np.sqrt(diagonal) * by):
            return None
    return (W / by[:, None]).astype(a.dtype)


def _is_full(a: Any, by: Any) -> bool:
    """Has it too many columns for sure? So many rows and one more of it have a factor then."""
    at = np.linspace(0, len(a) - 1, len(a) // THIN + 1).astype(int)
    part = a[np.ix_(at, at)] * by[at, None] * by[at]
    if not np.abs(part - part.T).max() <= _END:
        return True
    try:
        return bool((np.diagonal(np.linalg.cholesky(part)) ** 2 > _LEAST).all())
    except np.linalg.LinAlgError:
        return False


def _by_pivots(a: Any, by: Any, exactly: bool) -> Any:
    """By Cholesky with pivots of the matrix scaled to about ones on the diagonal. None: the pivots
    do not fall from _LEAST to rounding at once, as those of smooth kernels, or are negative; or W
    has numbers that float32 has not, where it is to be exact."""
    n = len(a)
    left, W = np.diagonal(a) * by * by, np.zeros((n, n // THIN), order="F")
    for k in range(n // THIN + 1):
        at = int(np.argmax(left))
        if left[at] <= _END:
            return np.ascontiguousarray(W[:, :k])
        if k == W.shape[1] or not left[at] > _LEAST or left.min() < -_END:
            return None
        W[:, k] = (a[at] * by * by[at] - W[:, :k] @ W[at, :k]) / np.sqrt(left[at])
        if exactly and (W[:, k].astype(np.float32) != W[:, k]).any():
            return None
        left = left - W[:, k] ** 2
    return None


def _gives(W: Any, a: Any, by: Any, size: Any, rows: int = 128) -> bool:
    """Is W W' the scaled matrix, to _CLOSE units in the last place of the products of two sizes,
    which are the roots of its diagonal or 0 everywhere? By panels that stay in the cache."""
    size = np.broadcast_to(size, len(a))
    units = _CLOSE * np.finfo(float).eps * size[:, None]
    for i in range(0, len(a), rows):
        at = slice(i, i + rows)
        off = np.abs(W[at] @ W.T - a[at] * by[at, None] * by)
        if not (off <= units[at] * size).all():
            return False
    return True


def _same(a: Any, b: Any, size: float, dtype: Any = None) -> bool:
    """To 16 units in the last place of the largest entry, as differences of rounded points are;
    whole numbers exactly."""
    if a.dtype.kind != "f":
        return bool((a == b).all())
    return bool((np.abs(a - b) <= 16 * np.finfo(dtype or a.dtype).eps * size).all())


def lags(a: Any) -> tuple[Any, bool] | None:
    """(the first column, False) of a symmetric Toeplitz matrix, (it, True) of one whose entries
    have the other sign above the diagonal; None for other ones."""
    if a.ndim != 2 or a.shape[0] != a.shape[1] or not a.size or a.dtype.kind not in "fiub":
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
