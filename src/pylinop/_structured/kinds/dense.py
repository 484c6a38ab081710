"""Functions of a `Dense`, where what is said of it by `assume_a` gives a way of its own."""

from __future__ import annotations

from typing import Any

from ... import _core
from ..eigh import eigenbasis
from ..matrix_functions import functions_row
from ..singular_values import floats

# -- exp, log, powers --


ASSUMED_HERMITIAN = ("her", "hermitian", "pos", "positive definite")


SYMMETRIC = ("sym", "symmetric")


def _is_assumed_hermitian(op: Any) -> bool:
    word = op._given("assume_a") if op._init is not None else None
    return word in ASSUMED_HERMITIAN or (word in SYMMETRIC and op.dtype.kind != "c")


@functions_row(
    "dense",
    how="assumed Hermitian: heevd of its upper triangle, an Eigen",
    cost="that of eigh",
    asks=lambda op, f: [("eigh", op, "U")] if _is_assumed_hermitian(op) else None,
)
def _(op: Any, f: Any) -> Any:
    if not _is_assumed_hermitian(op):
        return NotImplemented
    w, q = eigenbasis.of_dense(op, "U", array=floats(op._given("a")))
    return _core.Eigen(q, f.of_spectrum(w))
