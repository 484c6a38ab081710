"""Singular values of bands within the band: gbbrd to a bidiagonal matrix, then bdsqr."""

from typing import Any

import numpy as np

from .. import _core
from .._base.dtypes import inexact, real_of


def values(op: Any, bands: Any) -> Any:
    """The singular values, descending, of a square operator with these finite (offset,
    diagonal)."""
    batch, n = op.shape[:-2], op.shape[-1]
    dtype = inexact(op.dtype)
    low = max(0, -min(k for k, _ in bands))
    up = max(0, max(k for k, _ in bands))
    by_column = np.zeros((*batch, n, low + up + 1), dtype)  # destroyed
    for k, d in bands:
        by_column[..., max(k, 0) : n + min(k, 0), up - k] = d
    s = np.empty((*batch, n), real_of(op.dtype))
    for i in np.ndindex(*batch):
        if _core._band_svd(dtype.char, low, up, n, by_column[i], s[i]):
            raise np.linalg.LinAlgError("SVD did not converge")
    return s
