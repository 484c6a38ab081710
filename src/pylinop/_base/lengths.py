"""Lengths of vectors whose squares may be out of range."""

from __future__ import annotations

from typing import Any

import numpy as np


def length(v: Any) -> Any:
    """The 2-norm along the last axis, which neither over- nor underflows."""
    top = np.abs(v).max(axis=-1, keepdims=True, initial=0)
    scale = np.where((top > 0) & np.isfinite(top), top, 1)
    return scale[..., 0] * np.linalg.norm(v / scale, axis=-1)
