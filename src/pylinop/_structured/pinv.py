"""Pseudo-inverses: what counts as zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

import numpy as np

from .._base.config import near
from .._base.dtypes import real_of
from .operands import tolerance_of


def _relative(how: Any, op: Any) -> Any:
    """The relative cut-off that NumPy takes."""
    r = how.get("rtol", how.get("rcond"))
    if r is None and "rtol" in how:
        return max(op.shape[-2:]) * np.finfo(real_of(op.dtype)).eps
    return 1e-15 if r is None else np.asarray(r)


def _reciprocals(d: Any, cut: Any) -> Any:
    return np.divide(1, d, where=np.abs(d) > cut, out=np.zeros_like(d))


# -- arguments --


class Rtol(TypedDict, total=False):
    """What NumPy 2 calls rcond."""

    rtol: Any


BOTH_TOLERANCES = "`rtol` and `rcond` can't be both set."  # in NumPy's words


def pinv_words(rcond: Any, hermitian: bool, rtol: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `pinv`, as numpy.linalg.pinv takes them."""
    if wrong := sorted(set(rtol) - {"rtol"}):
        raise TypeError(
            f"pinv() got an unexpected keyword argument {wrong[0]!r}"
            f"{near(wrong[0], ('rcond', 'hermitian', 'rtol'))}"
        )
    if rtol and rcond is not None:
        raise ValueError(BOTH_TOLERANCES)
    how = dict(rtol) if rtol else {} if rcond is None else {"rcond": rcond}
    for name, value in how.items():
        if value is not None:
            tolerance_of(name, value)
    if hermitian:
        how["hermitian"] = True
    return how
