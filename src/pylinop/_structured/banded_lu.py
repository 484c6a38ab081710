"""LU and L D L^H of bands that stay bands.

SciPy's gbtrf exchanges rows within the band: U gains as many diagonals as lie below the main one,
and the columns of L keep their few entries, in rows that later exchanges move. If no exchange was
needed, L is a band too. L D L^H comes from Cholesky, for definite bands."""

from typing import Any

import numpy as np

from .. import _core
from .._base.dtypes import inexact


def _storage(bands: Any, n: int, low: int, up: int, dtype: Any) -> Any:
    """The storage of gbtrf: element (i, j) at [low + up + i - j, j]."""
    ab = np.zeros((2 * low + up + 1, n), dtype, order="F")
    for k, d in bands:
        ab[low + up - k, max(k, 0) : n + min(k, 0)] = d
    return ab


def _places(pivots: Any, low: int) -> tuple[Any, Any]:
    """(n,): the order of the rows; (n, low): the row in which the multiplier of row j + 1 + t,
    column j, ends up."""
    n = pivots.size
    order, rows = np.arange(n), np.empty((n, low), np.int64)
    pivots = np.ascontiguousarray(pivots, np.int32)
    _core._band_places(n, low, pivots, order, np.arange(n + low), rows)
    return order, rows


def lu(op: Any, bands: Any) -> Any:
    """(order of the rows, L, U) of one matrix; None where SciPy is not installed."""
    try:
        from scipy.linalg import get_lapack_funcs  # type: ignore[import-untyped, unused-ignore]
        from scipy.sparse import csc_array  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return None
    n, dtype = op.shape[-1], inexact(op.dtype)
    low = max(0, -min(k for k, _ in bands))
    up = max(0, max(k for k, _ in bands))
    ab = _storage(bands, n, low, up, dtype)
    (gbtrf,) = get_lapack_funcs(("gbtrf",), (ab,))
    factor, pivots, info = gbtrf(ab, low, up, overwrite_ab=1)
    if info < 0:
        raise ValueError(f"gbtrf refused its argument {-info}")
    if (pivots == np.arange(n)).all():
        below = np.concatenate([np.ones((1, n), dtype), factor[low + up + 1 :]])
        above = np.ascontiguousarray(factor[low : low + up + 1])
        return np.arange(n), _core.Banded((low, 0), below), _core.Banded((0, up), above)
    order, rows = _places(pivots, low)
    columns = np.arange(n)[:, None]
    inside = columns + 1 + np.arange(low) < n
    data = factor[low + up + 1 :].T[inside]
    at = rows[inside], np.broadcast_to(columns, inside.shape)[inside]
    some = csc_array((data, at), shape=(n, n))
    above = np.ascontiguousarray(factor[: low + up + 1])
    return order, _core.SparseTriangular(some, True, True), _core.Banded((0, low + up), above)


def ldl(factor: Any) -> tuple[Any, Any]:
    """(L, D) of a Cholesky factor that is a Banded."""
    (low, _), ab = factor._given("l_and_u", "ab")
    d = ab[..., :1, :].real
    unit = ab / d
    unit[..., 0, :] = 1  # complex division rounds
    return _core.Banded((low, 0), unit), _core.Diag((d[..., 0, :] ** 2).astype(ab.dtype))
