"""Functions of a `Circulant`, by its spectrum."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _core
from ..._base.dtypes import inexact, real_of
from ..._base.lengths import length
from ..cholesky import not_definite
from ..eig import _pair, asks_eigh, by_eigh, doubt_eigh, pairs_row
from ..eigh import eigenbasis
from ..least_squares import frames
from ..matrix_functions import functions_row
from ..norms import frobenius, sums
from ..pinv import _reciprocals, _relative
from ..questions import eigvalsh, hermitian, pinv, svdvals
from ..singular_values import (
    _levels_of,
    circulant_of,
    descending,
    eigenvalues_of,
    floats,
    spectrum_of,
)
from ..square_roots import _powers, nonnegative, power
from ..svd import _matched, phases, singular
from ..unitary import complex_of, fourier, hartley

# -- singular values, norms, eigenvalues --


@svdvals.row("circulant", how="moduli of the spectrum", cost="O(n log n)")
def _(op: Any) -> Any:
    return descending(np.abs(eigenvalues_of(op)))


@hermitian.row("circulant")
def _(op: Any) -> Any:
    if op._init is None:
        return NotImplemented
    sizes = _levels_of(op)
    c = floats(op._given("c"))
    axes = tuple(range(-len(sizes), 0))
    turned = np.roll(np.flip(c, axes), 1, axes)  # c[-k]
    return bool(np.array_equal(turned.conj(), c))


@eigvalsh.row("circulant", how="the spectrum, Hermitian", cost="O(n log n)", guard="hermitian")
def _(op: Any, uplo: str) -> Any:
    return np.sort(eigenvalues_of(op).real, axis=-1)


# -- norms --


@sums.row("circulant")
def _(op: Any, axis: int) -> Any:
    if op._init is None:
        return NotImplemented
    s = (
        np.abs(floats(op._given("c")))
        .reshape(*op.shape[:-2], op.shape[-1])
        .sum(axis=-1, keepdims=True)
    )
    return np.broadcast_to(s, (*op.shape[:-2], op.shape[-1]))


@frobenius.row("circulant")
def _(op: Any) -> Any:
    if op._init is None:
        return length(eigenvalues_of(op))  # it is normal
    c = floats(op._given("c")).reshape(*op.shape[:-2], op.shape[-1])
    return math.sqrt(op.shape[-1]) * length(c)


# -- pseudo-inverses --


@pinv.row("circulant", how="a Circulant, by the spectrum", cost="O(n log n)")
def _(op: Any, how: Any) -> Any:
    w = spectrum_of(op)
    top = np.abs(eigenvalues_of(op)).max(axis=-1)
    cut = np.asarray(_relative(how, op) * top)
    cut = cut.reshape(*cut.shape, *[1] * (w.ndim - cut.ndim))
    return circulant_of(_reciprocals(w, cut), op)


# -- eigh --


@eigenbasis.row(
    "circulant",
    how="one FFT; Q by the DFT, of a real matrix by the Hartley transform",
    cost="O(n log n)",
    guard="hermitian",
)
def _(op: Any, uplo: str) -> Any:
    basis = fourier if op.dtype.kind == "c" else hartley
    return eigenvalues_of(op).real, basis(_levels_of(op), inexact(op.dtype))


# -- eig --


@pairs_row(
    "circulant",
    how="one FFT; V by the DFT, of symmetric ones as eigh's",
    cost="O(n log n)",
    asks=asks_eigh,
    doubt=doubt_eigh,
)
def _(op: Any, vectors: bool) -> Any:
    if hermitian(op):
        return by_eigh(op, vectors)
    basis = lambda: fourier(_levels_of(op), inexact(op.dtype))
    return _pair(eigenvalues_of(op), basis, vectors)


# -- svd --


@singular.row(
    "circulant",
    how="one FFT; U the circulant of the phases times V, V by the DFT or Hartley",
    cost="O(n log n)",
    calls=4,
)
def _(op: Any, full: bool) -> Any:
    basis = fourier if op.dtype.kind == "c" else hartley
    v = basis(_levels_of(op), inexact(op.dtype))
    return _matched(circulant_of(phases(spectrum_of(op)), op) @ v, np.abs(eigenvalues_of(op)), v)


# -- least squares, null spaces, ranges --


def _frames_asks(op: Any, want: str) -> Any:
    fits = (op._given("levels") or 1) == 1 and (want == "solve" or op.dtype.kind == "c")
    return [] if fits else None


@frames.row(
    "circulant",
    how="a DFT and the spectrum, of one level; bases of real ones are dense",
    cost="O(n log n)",
    guard="given",
    asks=_frames_asks,
)
def _(op: Any, want: str) -> Any:
    if _frames_asks(op, want) is None:
        return NotImplemented
    values = eigenvalues_of(op)
    phase, size = phases(values), np.abs(values)
    f = _core.DFT(op.shape[-1], "ortho", phase.dtype)
    return f.H @ _core.Diag(phase), size, f.H


# -- exp, log, powers --


def _mirrored(w: Any, axes: Any) -> Any:
    """conj(w[-k])"""
    return np.roll(np.flip(w, axes), 1, axes).conj()


@functions_row("circulant", how="of the spectrum, a Circulant", cost="O(n log n)")
def _(op: Any, f: Any) -> Any:
    own, w = hermitian(op), spectrum_of(op)
    levels = w.ndim - (op.ndim - 2)
    axes = tuple(range(-levels, 0))
    if op.dtype.kind != "c":
        w = (w + _mirrored(w, axes)) / 2  # a spectrum that is its own mirror image is real
    flat = w.reshape(*op.shape[:-2], op.shape[-1])
    flat = flat.real if own else flat
    y = f.of_spectrum(flat, math.log2(op.shape[-1]) + 1)
    x = f.inner(flat)
    keeps = op.dtype.kind != "c" and not np.iscomplexobj(f.scale) and not np.iscomplexobj(f.shift)
    if keeps and own:
        keeps = not np.iscomplexobj(y)  # the spectrum is even, and so is f of it
    elif keeps and f.name in ("log", "power"):
        keeps = not ((x.imag == 0) & (x.real < 0)).any()
    elif keeps and f.name == "any":
        other = _mirrored(y.reshape(w.shape), axes).reshape(y.shape)
        keeps = np.allclose(y, other, rtol=1e3 * np.finfo(y.dtype).eps, atol=0)
    y = y.reshape(w.shape)
    if keeps:
        return circulant_of(y, op)
    c = np.fft.ifftn(y, axes=axes)
    return _core.Circulant(c.astype(complex_of(real_of(op.dtype)), copy=False), levels)


# -- square roots, samples --


@power.row("circulant", how="a Circulant, by the spectrum", cost="O(n log n)")
def _(op: Any, p: Any) -> Any:
    w = spectrum_of(op)
    axes = tuple(range(len(op.shape) - 2 - w.ndim, 0))
    size = 16 * math.log2(2 * op.shape[-1]) * np.finfo(w.dtype).eps * np.abs(w).max(axis=axes)
    bad = np.abs(w.imag).max(axis=axes) > size
    if bad.any():
        raise not_definite(bad, "is not Hermitian: its spectrum is not real")
    return circulant_of(_powers(nonnegative(w.real, p > 0, axes), p), op)
