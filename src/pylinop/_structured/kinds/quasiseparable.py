"""Functions of a `QuasiSeparable` matrix, in O(n)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ..._operators import quasiseparable
from ..cholesky import cholesky, not_definite
from ..lu import ldl
from ..square_roots import root

# -- cholesky --


@cholesky.row("quasiseparable", how="L D L^H in O(n), a QuasiSeparable", cost="O(n J^2)", kept=True)
def _(op: Any, uplo: str) -> Any:
    if quasiseparable.is_triangular(op):
        return NotImplemented
    factor, bad = quasiseparable.cholesky_of(op)
    if bad.any():
        raise not_definite(bad)
    return factor


# -- lu, ldl --


@ldl.row(
    "quasiseparable", how="of definite ones in O(n), L a QuasiSeparable, D a Diag",
    cost="O(n J^2)", doubt="where it is not definite",
    asks=lambda op, low, hermitian: [] if low and (hermitian or op.dtype.kind != "c") else None,
)  # fmt: skip
def _(op: Any, lower: bool, hermitian: bool) -> Any:
    if not lower or not (hermitian or op.dtype.kind != "c") or quasiseparable.is_triangular(op):
        return NotImplemented
    outer, d, bad = quasiseparable.ldl_of(op)
    if bad.any():
        return NotImplemented
    n = op.shape[-1]
    return outer, _core.Diag(d), np.broadcast_to(np.arange(n), (*op.shape[:-2], n)).copy()


# -- square roots, samples --


@root.row(
    "quasiseparable",
    how="Cholesky, a QuasiSeparable; where that fails as a dense one",
    cost="O(n J^2)",
    calls=3,
    doubt="where it is not definite",
)
def _(op: Any) -> Any:
    if quasiseparable.is_triangular(op):
        return NotImplemented
    factor, bad = quasiseparable.cholesky_of(op)
    return NotImplemented if bad.any() else factor
