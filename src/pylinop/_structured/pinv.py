"""Pseudo-inverses of the kinds."""

from __future__ import annotations

import functools
from collections.abc import Generator, Mapping
from typing import Any, TypedDict

import numpy as np

from .. import _core
from .._base.config import near
from .._base.dtypes import inexact, real_of
from .._operators.convert import inverse
from .dispatch import factors_of, tolerance_of
from .questions import norm, pinv
from .singular_values import (
    check_permutation,
    circulant_of,
    core_of,
    eigenvalues_of,
    floats,
    reflection_of,
    spectrum_of,
)

# -- pseudo-inverses --


def _relative(how: Any, op: Any) -> Any:
    """The relative cut-off that NumPy takes."""
    r = how.get("rtol", how.get("rcond"))
    if r is None and "rtol" in how:
        return max(op.shape[-2:]) * np.finfo(real_of(op.dtype)).eps
    return 1e-15 if r is None else np.asarray(r)


def _reciprocals(d: Any, cut: Any) -> Any:
    return np.divide(1, d, where=np.abs(d) > cut, out=np.zeros_like(d))


@pinv.row("permutation", how="the transpose", cost="O(n); its indices are read")
def _(op: Any, how: Any) -> Any:
    check_permutation(op)
    return op.T


@pinv.row("reflections", how="the adjoint", cost="O(1)")
def _(op: Any, how: Any) -> Any:
    return op.H


@pinv.row("dft", "dct", "hadamard", called="transforms", how="the inverse", cost="O(1)")
def _(op: Any, how: Any) -> Any:
    return inverse(op)


@pinv.row("householder", how="itself, with its own tau", cost="O(n)")
def _(op: Any, how: Any) -> Any:
    if op._init is None or op._given("tau") is not None or np.isnan(reflection_of(op)).any():
        return NotImplemented
    return op


@pinv.row("circulant", how="a Circulant, by the spectrum", cost="O(n log n)")
def _(op: Any, how: Any) -> Any:
    w = spectrum_of(op)
    top = np.abs(eigenvalues_of(op)).max(axis=-1)
    cut = np.asarray(_relative(how, op) * top)
    cut = cut.reshape(*cut.shape, *[1] * (w.ndim - cut.ndim))
    return circulant_of(_reciprocals(w, cut), op)


@pinv.row("blockdiag", how="a BlockDiag of the blocks'", cost="sum of the blocks'")
def _(op: Any, how: Any) -> Generator[Any, Any, Any]:
    blocks = factors_of(op)
    if any(f.shape[:-2] != op.shape[:-2] for f in blocks):  # each batch element has its own cut-off
        return NotImplemented
    tops = [np.zeros(()) if 0 in f.shape[-2:] else norm(f, 2) for f in blocks]
    cut = _relative(how, op) * functools.reduce(np.maximum, tops)
    parts = []
    for f, top in zip(blocks, tops, strict=True):
        if 0 in f.shape[-2:]:
            parts.append(_core.Zeros((*f.shape[:-2], f.shape[-1], f.shape[-2]), inexact(f.dtype)))
            continue
        own = np.divide(cut, top, where=np.asarray(top) > 0, out=np.ones(np.shape(cut + top)))
        hermitian_too = {"hermitian": True} if how.get("hermitian") else {}
        parts.append((yield f, {"rcond": own} | hermitian_too))
    return _core.BlockDiag(*parts)


@pinv.row("full", how="a Full", cost="O(1)", guard="given")
def _(op: Any, how: Any) -> Any:
    c, (m, n) = op._given("c"), op.shape[-2:]
    shape = (*op.shape[:-2], n, m)
    return _core.Full(shape, 1 / c / m / n) if c else _core.Zeros(shape, inexact(op.dtype))


@pinv.row("lowrank", how="a LowRank, by QR of U and V", cost="O((m + n) k^2)")
def _(op: Any, how: Any) -> Any:
    found = core_of(op)
    if found is None:
        return NotImplemented
    q, middle, p = found
    return _core.LowRank(p, q, np.linalg.pinv(middle, rcond=_relative(how, op)))


@pinv.row(
    "eigen", how="an Eigen where Q is known to be unitary", cost="O(n)", guard="given unitary_q"
)
def _(op: Any, how: Any) -> Any:
    d = floats(op._given("d"))
    cut = _relative(how, op) * np.abs(d).max(axis=-1)
    return _core.Eigen(op._given("Q"), _reciprocals(d, np.asarray(cut)[..., None]))


# -- arguments --


class Rtol(TypedDict, total=False):
    """What NumPy 2 calls rcond."""

    rtol: Any


def pinv_words(rcond: Any, hermitian: bool, rtol: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `pinv`, as numpy.linalg.pinv takes them."""
    if wrong := sorted(set(rtol) - {"rtol"}):
        raise TypeError(
            f"pinv() got an unexpected keyword argument {wrong[0]!r}"
            f"{near(wrong[0], ('rcond', 'hermitian', 'rtol'))}"
        )
    if rtol and rcond is not None:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    how = dict(rtol) if rtol else {} if rcond is None else {"rcond": rcond}
    for name, value in how.items():
        if value is not None:
            tolerance_of(name, value)
    if hermitian:
        how["hermitian"] = True
    return how
