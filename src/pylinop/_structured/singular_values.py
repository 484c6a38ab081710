"""What singular values and eigenvalues are read from: spectra of circulants, closed forms of
transforms, thin factors, bands."""

from __future__ import annotations

import functools
import math
from collections.abc import Generator
from typing import Any

import numpy as np

from .. import _core
from .._base import config, memory
from .._base.dtypes import inexact, real_of
from .._base.kind_flags import heads
from .._fallback.dense_forms import named_diagonals
from .._operators.convert import as_operator
from . import determinants
from .dispatch import dense, mirrored
from .operands import _as_precise, factors_of
from .questions import hermitian, outer, svdvals
from .rows import GUARDS, guard_of

_ROOM = 1 << 20  # bytes up to which only a limit that is set matters

# -- values --


def floats(a: Any) -> Any:
    a = np.asarray(a)
    return a.astype(inexact(a.dtype), copy=False)


def vector_room(op: Any) -> None:
    """Checks the memory of all eigenvalues at once: a vector, which the memory rule covers too."""
    nbytes = op.shape[-1] * real_of(op.dtype).itemsize
    if nbytes > _ROOM or config.get("memory_limit") is not None or memory.warns(nbytes):
        memory.materialising(op, nbytes, False)


def descending(s: Any) -> Any:
    return np.sort(s, axis=-1)[..., ::-1]


def padded_to(s: Any, n: int) -> Any:
    """A copy, with zeros to n values."""
    rest = np.zeros((*s.shape[:-1], n - s.shape[-1]), s.dtype)
    return np.concatenate([s, rest], axis=-1)


def _padded(s: Any, op: Any) -> Any:
    """Pads with zeros to min(m, n) values, over the whole batch."""
    return padded_to(np.broadcast_to(s, (*op.shape[:-2], s.shape[-1])), min(op.shape[-2:]))


def determinant(op: Any) -> Any:
    return np.asarray(determinants.det(op))


def check_permutation(op: Any) -> None:
    op.diagonal()  # reads the indices: each once, within bounds


# -- circulants --


def _levels_of(op: Any) -> Any:
    """The sizes of a circulant's levels, also of one that sums or products closed to."""
    while op._init is None:
        op = next(f for f in op._operands if getattr(f, "_head", None) == "circulant")
    c, levels = op._given("c", "levels")
    return c.shape[c.ndim - (levels or 1) :]


def spectrum_of(op: Any) -> Any:
    """The eigenvalues of a circulant in the order of its frequencies, level by level."""
    sizes = _levels_of(op)
    if op._init is not None:
        c = floats(op._given("c"))
    else:
        first = np.zeros(op.shape[-1], inexact(op.dtype))
        first[0] = 1
        c = op @ first
    c = c.reshape(*op.shape[:-2], *sizes)
    return np.fft.fftn(c, axes=tuple(range(-len(sizes), 0)))


def eigenvalues_of(op: Any) -> Any:
    w = spectrum_of(op)
    return w.reshape(*op.shape[:-2], op.shape[-1])


def circulant_of(spectrum: Any, op: Any) -> Any:
    """The circulant with those eigenvalues, real where ``op`` is."""
    axes = tuple(range(len(op.shape) - 2 - spectrum.ndim, 0))
    c = np.fft.ifftn(spectrum, axes=axes)
    c = c if op.dtype.kind == "c" else np.ascontiguousarray(c.real)
    return _core.Circulant(c.astype(inexact(op.dtype), copy=False), len(axes))


# -- transforms --


def _level_values(head: str, n: int, type_: Any, norm: Any) -> Any:
    """Singular values of one level of a transform; None where they are not known."""
    if head == "dct":
        ends = {2: 2.0, 3: 0.5, 4: 1.0}.get(
            type_, 1.0
        )  # squared, that of one vector by the others'
        if type_ == 1 and norm != "ortho":
            return None
        size = 2 * (n - 1) if type_ == 1 else 2 * n
    else:
        ends, size = 1.0, n
    if norm == "ortho":
        return np.ones(n)
    s = np.full(n, math.sqrt(size) if norm in (None, "backward") else 1 / math.sqrt(size))
    s[0] *= math.sqrt(ends)
    return s


TRANSFORMS = sorted(heads("transform"))


def undoes_transform(op: Any) -> Any:
    return op._by == "inverse" and op._operands[0]._head in TRANSFORMS


def _transform_asks(op: Any) -> Any:
    if op._init is not None:
        return []
    return [("svdvals", op._operands[0])] if undoes_transform(op) else None


@svdvals.row(
    "inverse",
    *TRANSFORMS,
    called="transforms",
    how="closed forms; the inverse's reciprocals",
    cost="O(n log n)",
    asks=_transform_asks,
)
def _(op: Any) -> Generator[Any, Any, Any]:
    if op._init is None:
        if not undoes_transform(op):
            return NotImplemented
        return (1 / (yield (op._operands[0],)))[..., ::-1]
    if op._head == "hadamard":
        return np.full(op.shape[-1], math.sqrt(op.shape[-1]))
    sizes, norm = op._given("n", "norm")
    sizes = tuple(sizes) if np.iterable(sizes) else (int(sizes),)
    type_ = op._given("type") if op._head == "dct" else 0
    parts = [_level_values(op._head, n, 2 if type_ is None else type_, norm) for n in sizes]
    if any(p is None for p in parts):
        return NotImplemented
    vector_room(op)
    return descending(functools.reduce(outer, parts))


# -- low rank: U C V^H by QR of U and V --


def low_rank_parts(op: Any) -> tuple[Any, Any, Any] | None:
    """U, C, V as arrays in the dtype of the whole, V is U where it is that; None for one that
    products closed to."""
    if op._init is None or op._head != "lowrank":
        return None
    u, v, c = op._given("U", "V", "C")
    same, dtype = mirrored(u, v), inexact(op.dtype)

    def part(x: Any) -> Any:
        return dense(_as_precise(as_operator(x), op)).astype(dtype, copy=False)

    u = part(u)
    return u, None if c is None else part(c), u if same else part(v)


def adjoint(a: Any) -> Any:
    return np.swapaxes(a, -1, -2).conj()


def _is_thin(op: Any) -> bool:
    given = op._init is not None and op._head == "lowrank"
    return given and as_operator(op._given("U")).shape[-1] < min(op.shape[-2:])


GUARDS["thin"] = guard_of("of fewer columns than rows and columns, as it was given", _is_thin)


def core_of(op: Any) -> Any:
    """(Q, M, P) with U C V^H = Q M P^H, where Q and P have orthonormal columns; None where that is
    not smaller."""
    parts = low_rank_parts(op) if _is_thin(op) else None
    if parts is None:
        return None
    u, c, v = parts
    q, r = np.linalg.qr(u)
    p, s = (q, r) if v is u else np.linalg.qr(v)
    return q, (r if c is None else r @ c) @ adjoint(s), p


# -- parameters --


def bands_of(op: Any) -> list[Any] | None:
    """(offset, diagonal) of a band, as floats; None where they are not available."""
    if op._head == "tridiagonal":
        if op._init is None and op.dtype.kind in "biu":
            return None  # may wrap
        return [(k, floats(op.diagonal(k))) for k in (-1, 0, 1)]
    if op._head == "blocktridiagonal":
        if op._init is None and op.dtype.kind in "biu":
            return None
        w = min(2 * op._attrs[0], op.shape[-1]) - 1
        return [(k, floats(op.diagonal(k))) for k in range(-w, w + 1)]
    if op._init is None:
        return None
    return [(k, floats(d)) for k, d in named_diagonals(op)]


def toeplitz_of(op: Any) -> tuple[Any, Any] | None:
    """The first column and first row, as floats; of what sums and multiples closed to, read off it.
    None where they are not available, and of sums of integers: entries wrap, dense forms do not."""
    if op._head != "toeplitz" or 0 in op.shape:
        return None
    if op._init is None:
        if op.dtype.kind in "biu":
            return None
        return floats(op[..., :, 0]), floats(op[..., 0, :])
    c, r = op._given("c", "r")
    c = floats(c)
    return c, c.conj() if r is None else floats(r)


# -- eigenvalues of Hermitian operators --


@hermitian.row("hadamard", "laplacian")
def _(op: Any) -> bool:
    return True


@hermitian.row("blockdiag", "kronsum")
def _(op: Any) -> Generator[Any, Any, Any]:
    if op._head == "kronsum" and op._init is None:
        return NotImplemented
    for f in factors_of(op):
        if f.shape[-1] != f.shape[-2] or (f.shape[-1] and not (yield (f,))):
            return False
    return True
