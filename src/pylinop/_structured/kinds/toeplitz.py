"""Functions of `Toeplitz`, with several levels too, and `Hankel` matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _core
from ..._base.dtypes import inexact
from ..._base.lengths import length
from .. import centrohermitian
from ..centrohermitian import values
from ..cholesky import cholesky, not_definite, real_diagonal, refuse_where_symmetric
from ..cholesky_toeplitz import _ROWS, ends_of, schur
from ..dispatch import dense
from ..eigh import eigenbasis
from ..norms import frobenius, sums
from ..operands import announce, keep_within
from ..properties import measured
from ..questions import eigvalsh, hermitian, read_hermitian, svdvals
from ..rows import GUARDS, Guard
from ..singular_values import descending, toeplitz_of
from ..square_roots import root
from ..unitary import unitary

# -- singular values, norms, eigenvalues --


@hermitian.row("toeplitz")
def _(op: Any) -> Any:
    found = toeplitz_of(op)
    if found is None:
        return NotImplemented
    c, r = found
    square = op.shape[-1] == op.shape[-2]
    return square and not np.imag(c[..., 0]).any() and np.array_equal(c[..., 1:].conj(), r[..., 1:])


def _may_be_halved(op: Any, ask: Any) -> Any:
    """Of several levels the dense form shows it."""
    return op.shape[-1] > 1 and (op._head != "toeplitz" or ask(op))


GUARDS["hermitian_levels"] = Guard(
    "Hermitian, of two rows or more; of several levels the dense form is",
    lambda op: _may_be_halved(op, hermitian),
    lambda op: _may_be_halved(op, read_hermitian),
)


def halves(op: Any, question: Any, found: Any, uplo: str) -> Any:
    """The answer of ``found`` for a Hermitian Toeplitz matrix, else the question's dense answer."""
    a = dense(op)
    good = np.isfinite(a).all() and measured(a, "centrohermitian")
    return found(a) if good else question.dense(a, uplo)


@eigvalsh.row(
    "toeplitz",
    "multitoeplitz",
    by="dense",
    how="Hermitian: two real problems of half the size, or one where complex",
    cost="n^3 / 3",
    kept=True,
    guard="hermitian_levels",
    holds="17 n^2 / 10",
)
def _(op: Any, uplo: str) -> Any:
    return halves(op, eigvalsh, values, uplo)


def _values_asks(op: Any) -> Any:
    known = read_hermitian(op) if op._head == "toeplitz" else False
    if known or (known is None and op.dtype.kind == "c"):
        return [("eigvalsh", op, "L")]
    return None if op.dtype.kind == "c" else []


def _values_doubt(op: Any) -> Any:
    if op._head != "toeplitz" or read_hermitian(op) is not None:
        return None
    if op.dtype.kind == "c":
        return "where it is not Hermitian", None
    return "where it is Hermitian", [("eigvalsh", op, "L")]


@svdvals.row(
    "toeplitz",
    "hankel",
    how="real square ones: moduli of the eigenvalues of a symmetric Hankel matrix, as of Hermitian",
    cost="4 n^3 / 3; n^3 / 3 Hermitian",
    kept=True,
    by="dense",
    guard="square",
    asks=_values_asks,
    doubt=_values_doubt,
    instead=lambda op: "O(n)" if _values_asks(op) else None,
)
def _(op: Any) -> Any:
    if op._head == "toeplitz" and hermitian(op):
        return descending(np.abs(eigvalsh(op, "L")))
    if op.dtype.kind == "c":
        return NotImplemented
    a = dense(op)
    if not np.isfinite(a).all():
        return NotImplemented
    return descending(np.abs(np.linalg.eigvalsh(a if op._head == "hankel" else a[..., ::-1, :])))


# -- norms --


def _windows(line: Any, width: Any, count: int) -> Any:
    """Sums of ``width`` neighbours, ``count`` of them, by sums from both sides of each multiple of
    the width: nothing is subtracted."""
    blocks = -(-(count + width - 1) // width)
    padded = np.zeros((*line.shape[:-1], blocks * width), line.dtype)
    padded[..., : line.shape[-1]] = line
    cells = padded.reshape(*line.shape[:-1], blocks, width)
    before = np.cumsum(cells, axis=-1).reshape(padded.shape)
    after = np.cumsum(cells[..., ::-1], axis=-1)[..., ::-1].reshape(padded.shape)
    start = np.arange(count)
    return after[..., start] + np.where(start % width, before[..., start + width - 1], 0)


@sums.row("toeplitz")
def _(op: Any, axis: int) -> Any:
    found = toeplitz_of(op)
    if found is None:
        return NotImplemented
    c, r = np.abs(found[0]), np.abs(found[1])
    batch = np.broadcast_shapes(c.shape[:-1], r.shape[:-1])
    c, r = np.broadcast_to(c, (*batch, c.shape[-1])), np.broadcast_to(r, (*batch, r.shape[-1]))
    line = np.concatenate([c[..., ::-1], r[..., 1:]], axis=-1)  # a column moves along it
    if axis == -2:
        return _windows(line, c.shape[-1], r.shape[-1])
    return _windows(line, r.shape[-1], c.shape[-1])[..., ::-1]


@frobenius.row("toeplitz")
def _(op: Any) -> Any:
    found = toeplitz_of(op)
    if found is None:
        return NotImplemented
    (c, r), (m, n) = found, op.shape[-2:]
    down = np.minimum(m - np.arange(m), n)  # how often each occurs
    across = np.minimum(n - np.arange(1, n), m)
    return np.hypot(length(c * np.sqrt(down)), length(r[..., 1:] * np.sqrt(across)))


# -- eigh --


@eigenbasis.row(
    *("toeplitz", "multitoeplitz"),
    how="Hermitian: heevd of halves",
    cost="9 n^3 / 4",
    holds="7 n^2 / 2",
    kept=True,
    by="dense",
    guard="hermitian_levels",
)
def _(op: Any, uplo: str) -> Any:
    def found(a: Any) -> tuple[Any, Any]:
        w, q = centrohermitian.basis(a)
        return w, unitary(q)

    return halves(op, eigenbasis, found, uplo)


# -- cholesky --


@cholesky.row(
    "toeplitz",
    how="of 700 rows or more: Schur's algorithm, backward stable; a Triangular",
    cost="20 n^2",
    kept=True,
    asks=lambda op, uplo: [] if op.shape[-1] >= _ROWS else None,
)
def _(op: Any, uplo: str) -> Any:
    ends = ends_of(op) if op.shape[-1] >= _ROWS else None
    if ends is None:
        return NotImplemented
    announce(op)
    keep_within(op, 1)
    c, r = (np.broadcast_to(x, (*op.shape[:-2], op.shape[-1])).copy() for x in ends)
    r[..., 0] = c[..., 0]  # what a Toeplitz was given there does not count
    real_diagonal(c[..., :1])
    if c.dtype.kind == "c":
        size = 16 * c.shape[-1] * np.finfo(c.dtype).eps * np.abs(c).max(axis=-1)
        refuse_where_symmetric(np.abs(c - r).max(axis=-1), np.abs(c.imag).max(axis=-1), size)
    dtype = inexact(op.dtype)
    c = (c if uplo == "L" else r.conj()).astype(np.result_type(dtype, np.float64))
    c[..., 0] = c[..., 0].real
    factor, bad = schur(c)
    if bad.any():
        raise not_definite(bad)
    return _core.Triangular(np.swapaxes(factor, -1, -2).conj().astype(dtype, copy=False))


# -- square roots, samples --


def _embedding(c: Any) -> Any:
    """The spectrum of the smallest circulant around a Hermitian Toeplitz matrix with first column
    c: of size 2 n - 2, or 2 n - 1 if c is complex."""
    last = -1 if np.iscomplexobj(c) else -2
    ring = np.concatenate([c, c[..., last:0:-1].conj()], axis=-1)
    return np.fft.fft(ring, axis=-1).real


@root.row(
    "toeplitz",
    how="n rows of the root of the Circulant around it (size 2 n - 2) where that is semidefinite",
    cost="O(n log n)",
    calls=3,
    guard="hermitian",
    asks=lambda op: [] if op.shape[-1] > 2 else None,
    doubt="where that Circulant is not semidefinite",
)
def _(op: Any) -> Any:
    found = toeplitz_of(op)
    n = op.shape[-1]
    if found is None or n < 3:
        return NotImplemented
    c = np.broadcast_to(found[0], (*op.shape[:-2], n))
    w = _embedding(c)
    least, top = w.min(axis=-1), w.max(axis=-1)
    if not (least >= -4 * math.log2(2 * n) * np.finfo(w.dtype).eps * top).all():
        return NotImplemented
    half: Any = np.fft.ifft(np.sqrt(np.maximum(w, 0)), axis=-1)
    half = half if np.iscomplexobj(c) else half.real
    rows = _core.Selection(np.arange(n), w.shape[-1], inexact(op.dtype))
    return rows @ _core.Circulant(np.ascontiguousarray(half.astype(c.dtype, copy=False)))


@root.row(
    "multitoeplitz",
    how="rows of the root of the Circulant of as many levels around it (sizes 2 n - 1) where that "
    "is semidefinite",
    cost="O(n log n)",
    guard="given single",
    doubt="where that Circulant is not semidefinite",
)
def _(op: Any) -> Any:
    t = np.asarray(op._given("t"))
    sizes = tuple((m + 1) // 2 for m in t.shape)
    odd = t.shape == tuple(2 * n - 1 for n in sizes)
    if not odd or op.shape[-1] != math.prod(sizes) or op.shape[-1] == 0:
        return NotImplemented
    t = t.astype(inexact(op.dtype), copy=False)
    if not np.array_equal(t, np.flip(t).conj()):
        return NotImplemented
    w = np.fft.fftn(np.roll(t, [1 - n for n in sizes], range(t.ndim))).real
    if not w.min() >= -4 * math.log2(2 * w.size) * np.finfo(w.dtype).eps * w.max():
        return NotImplemented
    half: Any = np.fft.ifftn(np.sqrt(np.maximum(w, 0)))
    half = half if np.iscomplexobj(t) else half.real
    inside = np.ravel_multi_index(np.indices(sizes).reshape(t.ndim, -1), t.shape)
    rows = _core.Selection(inside, w.size, t.dtype)
    return rows @ _core.Circulant(np.ascontiguousarray(half.astype(t.dtype)), levels=t.ndim)
