"""Singular values, and eigenvalues of Hermitian operators, for the kinds that know theirs.

Kinds without an immediate answer (NotImplemented) go by the dense form."""

from __future__ import annotations

import functools
import math
from collections.abc import Generator
from typing import Any

import numpy as np

from .. import _core
from .._base import memory, scipy_bridge, sparse_arrays
from .._base.dtypes import inexact, real_of
from .._operators.convert import as_operator
from . import determinants
from .dispatch import _as_precise, dense, factors_of, modulus
from .questions import eigvalsh, hermitian, outer, svdvals

# -- values --


def floats(a: Any) -> Any:
    a = np.asarray(a)
    return a.astype(inexact(a.dtype), copy=False)


def vector_room(op: Any) -> None:
    """Checks the memory of all eigenvalues at once: a vector, which the memory rule covers too."""
    memory.materialising(op, op.shape[-1] * real_of(op.dtype).itemsize, False)


def descending(s: Any) -> Any:
    return np.sort(s, axis=-1)[..., ::-1]


def _padded(s: Any, op: Any) -> Any:
    """Pads with zeros to min(m, n) values."""
    rest = min(op.shape[-2:]) - s.shape[-1]
    s = np.broadcast_to(s, (*op.shape[:-2], s.shape[-1]))
    return np.concatenate([s, np.zeros((*s.shape[:-1], rest), s.dtype)], axis=-1)


def joined(op: Any, parts: Any) -> Any:
    """Joins the vectors of the blocks, over the whole batch."""
    batch = op.shape[:-2]
    return np.concatenate([np.broadcast_to(p, (*batch, p.shape[-1])) for p in parts], axis=-1)


def determinant(op: Any) -> Any:
    return np.asarray(determinants.det(op))


def reflection_of(op: Any) -> Any:
    """The only eigenvalue of a Householder that is not 1, which is its determinant."""
    return determinant(op)[..., None]


def _with_ones(value: Any, op: Any) -> Any:
    return np.concatenate([value, np.ones((*value.shape[:-1], op.shape[-1] - 1))], axis=-1)


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


TRANSFORMS = ("dft", "dct", "hadamard")


def undoes_transform(op: Any) -> Any:
    return op._by == "inverse" and op._operands[0]._head in TRANSFORMS


@svdvals.row(
    "inverse",
    *TRANSFORMS,
    called="transforms",
    how="closed forms; the inverse's reciprocals",
    cost="O(n log n)",
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


# -- singular values --


@svdvals.row("permutation", how="ones; its indices are read", cost="O(n)")
def _(op: Any) -> Any:
    check_permutation(op)
    return np.ones((*op.shape[:-2], op.shape[-1]))


@svdvals.row("reflections", how="ones", cost="O(n)")
def _(op: Any) -> Any:
    return np.ones((*op.shape[:-2], op.shape[-1]), real_of(op.dtype))


@svdvals.row("householder", how="1 and its determinant", cost="O(n)")
def _(op: Any) -> Any:
    w = np.abs(reflection_of(op))
    return NotImplemented if np.isnan(w).any() else descending(_with_ones(w, op))


@svdvals.row("circulant", how="moduli of the spectrum", cost="O(n log n)")
def _(op: Any) -> Any:
    return descending(np.abs(eigenvalues_of(op)))


@svdvals.row("blockdiag", how="the blocks', joined", cost="sum of the blocks'")
def _(op: Any) -> Generator[Any, Any, Any]:
    parts = []
    for block in factors_of(op):
        if 0 not in block.shape[-2:]:
            parts.append((yield (block,)))
    if not parts:
        return np.zeros((*op.shape[:-2], min(op.shape[-2:])))
    return _padded(descending(joined(op, parts)), op)


@svdvals.row("offdiag", how="moduli, sorted", cost="O(n log n)", guard="given")
def _(op: Any) -> Any:
    return _padded(descending(np.abs(floats(op._given("d")))), op)


@svdvals.row("full", how="one", cost="O(n)", guard="given")
def _(op: Any) -> Any:
    one = np.full((*op.shape[:-2], 1), modulus(op._given("c")))
    return _padded(one * math.sqrt(op.shape[-1]) * math.sqrt(op.shape[-2]), op)


@svdvals.row(
    "eigen",
    how="moduli of d where Q is known to be unitary",
    cost="O(n log n)",
    guard="given unitary_q",
)
def _(op: Any) -> Any:
    return _padded(descending(np.abs(floats(op._given("d")))), op)


@svdvals.row("root", how="squares of L's", cost="L's", guard="given")
def _(op: Any) -> Generator[Any, Any, Any]:
    return _padded((yield (op._given("L"),)) ** 2, op)


@svdvals.row(
    "kronsum",
    how="moduli of its eigenvalues, Hermitian",
    cost="that of `eigvalsh`, n log n",
    guard="hermitian",
)
def _(op: Any) -> Any:
    return descending(np.abs(eigvalsh(op, "L")))


@svdvals.row("laplacian", how="moduli of its eigenvalues", cost="that of `eigvalsh`")
def _(op: Any) -> Any:
    return descending(np.abs(eigvalsh(op, "L")))


@svdvals.row("lowrank", how="QR of U and V, SVD of what is between", cost="O((m + n) k^2)")
def _(op: Any) -> Any:
    found = core_of(op)
    if found is None:
        return NotImplemented
    return _padded(np.linalg.svdvals(found[1]), op)


# -- low rank: U C V^H by QR of U and V --


def low_rank_parts(op: Any) -> tuple[Any, Any, Any] | None:
    """U, C, V as arrays in the dtype of the whole, V is U where it is that; None for one that
    products closed to."""
    if op._init is None or op._head != "lowrank":
        return None
    u, v, c = op._given("U", "V", "C")
    same, dtype = v is None or v is u, inexact(op.dtype)

    def part(x: Any) -> Any:
        return dense(_as_precise(as_operator(x), op)).astype(dtype, copy=False)

    u = part(u)
    return u, None if c is None else part(c), u if same else part(v)


def adjoint(a: Any) -> Any:
    return np.swapaxes(a, -1, -2).conj()


def core_of(op: Any) -> Any:
    """(Q, M, P) with U C V^H = Q M P^H, where Q and P have orthonormal columns; None where that is
    not smaller."""
    if op._init is None or as_operator(op._given("U")).shape[-1] >= min(op.shape[-2:]):
        return None
    parts = low_rank_parts(op)
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
    (lower, upper), ab = op._given("l_and_u", "ab")
    n = ab.shape[-1]
    return [
        (k, floats(ab[..., upper - k, max(k, 0) : n + min(k, 0)]))
        for k in range(-min(lower, n - 1), min(upper, n - 1) + 1)
    ]


def toeplitz_of(op: Any) -> tuple[Any, Any] | None:
    """The first column and first row, as floats; None where they are not available."""
    if op._init is None:
        return None
    c, r = op._given("c", "r")
    c = floats(c)
    return c, c.conj() if r is None else floats(r)


# -- eigenvalues of Hermitian operators --


@hermitian.row("permutation")
def _(op: Any) -> bool:
    at = np.arange(op.shape[-1], dtype=float)[:, None]
    return bool((op @ (op @ at) == at).all())


@hermitian.row("householder")
def _(op: Any) -> Any:
    if op._init is None:
        return NotImplemented
    return op._given("tau") is None or not np.imag(op._given("tau")).any()


@hermitian.row("hadamard", "laplacian")
def _(op: Any) -> bool:
    return True


@hermitian.row("circulant")
def _(op: Any) -> Any:
    if op._init is None:
        return NotImplemented
    sizes = _levels_of(op)
    c = floats(op._given("c"))
    axes = tuple(range(-len(sizes), 0))
    turned = np.roll(np.flip(c, axes), 1, axes)  # c[-k]
    return bool(np.array_equal(turned.conj(), c))


@hermitian.row("blockdiag", "kronsum")
def _(op: Any) -> Generator[Any, Any, Any]:
    if op._head == "kronsum" and op._init is None:
        return NotImplemented
    for f in factors_of(op):
        if f.shape[-1] != f.shape[-2] or (f.shape[-1] and not (yield (f,))):
            return False
    return True


@hermitian.row("tridiagonal", "banded", "blocktridiagonal")
def _(op: Any) -> Any:
    bands = bands_of(op)
    if bands is None:
        return NotImplemented
    d = dict(bands)
    return all(np.array_equal(d.get(-k, np.zeros_like(v)), v.conj()) for k, v in d.items())


@hermitian.row("toeplitz")
def _(op: Any) -> Any:
    found = toeplitz_of(op)
    if found is None:
        return NotImplemented
    c, r = found
    square = op.shape[-1] == op.shape[-2]
    return square and not np.imag(c[..., 0]).any() and np.array_equal(c[..., 1:].conj(), r[..., 1:])


@hermitian.row("sparse")
def _(op: Any) -> Any:
    if op._init is None or not scipy_bridge.issparse(op._given("A")) or op.dtype.kind in "bui":
        return NotImplemented
    if op.shape[-1] != op.shape[-2]:
        return False
    a = sparse_arrays.matrix_of(op).tocsr()
    return (a != a.conj().T).nnz == 0


@hermitian.row("eigen")
def _(op: Any) -> Any:
    if op._init is None:
        return NotImplemented
    return not np.imag(op._given("d")).any() or NotImplemented


@hermitian.row("root")
def _(op: Any) -> bool:
    return True


@eigvalsh.row(
    "permutation", how="-1 and 1, where it is its own inverse", cost="O(n)", guard="hermitian"
)
def _(op: Any, uplo: str) -> Any:
    n = op.shape[-1]
    minus = np.round((n - np.asarray(op.trace().real, float)) / 2)
    return np.where(np.arange(n) < minus[..., None], -1.0, 1.0)


@eigvalsh.row("householder", how="1 and its determinant", cost="O(n)", guard="given hermitian")
def _(op: Any, uplo: str) -> Any:
    w = reflection_of(op).real
    return NotImplemented if np.isnan(w).any() else np.sort(_with_ones(w, op), axis=-1)


@eigvalsh.row("hadamard", how="half of them sqrt(n), half -sqrt(n)", cost="O(n)", guard="given")
def _(op: Any, uplo: str) -> Any:
    n = op.shape[-1]
    return np.where(np.arange(n) < n // 2, -1.0, 1.0) * math.sqrt(n)


@eigvalsh.row("circulant", how="the spectrum, Hermitian", cost="O(n log n)")
def _(op: Any, uplo: str) -> Any:
    return np.sort(eigenvalues_of(op).real, axis=-1) if hermitian(op) else NotImplemented


@eigvalsh.row("blockdiag", how="the blocks', joined", cost="sum of the blocks'")
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    parts = []
    for block in factors_of(op):
        if block.shape[-1] != block.shape[-2]:
            return NotImplemented
        if block.shape[-1]:
            parts.append((yield block, uplo))
    return np.sort(joined(op, parts), axis=-1)


@eigvalsh.row(
    "kronsum", how="all sums of the factors'", cost="the factors', n log n", guard="given"
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    vector_room(op)
    w = np.zeros(1)
    for f in factors_of(op):
        one = yield f, uplo
        both = w[..., :, None] + one[..., None, :]
        w = both.reshape(*both.shape[:-2], w.shape[-1] * one.shape[-1])
    return np.sort(w, axis=-1)


def axes_of(op: Any) -> list[Any]:
    """(size, boundary condition) of each axis of a Laplacian."""
    grid, bc = op._given("grid_shape", "boundary_conditions")
    sizes = tuple(grid) if np.iterable(grid) else (int(grid),)
    return [(n, "neumann" if bc is None else bc) for n in sizes]


def _axis_values(n: int, bc: Any) -> Any:
    """Eigenvalues of second differences on an axis, as in scipy.sparse.linalg.LaplacianNd."""
    k = np.arange(n)
    if bc == "dirichlet":
        angle = np.pi * (k + 1) / (2 * (n + 1))
    elif bc == "neumann":
        angle = np.pi * k / (2 * n)
    else:
        angle = np.pi * ((k + 1) // 2) / n
    return -4 * np.sin(angle) ** 2


@eigvalsh.row("laplacian", how="sums over the axes", cost="O(n log n)", guard="given")
def _(op: Any, uplo: str) -> Any:
    vector_room(op)
    w = np.zeros(1)
    for n, bc in axes_of(op):
        w = np.add.outer(w, _axis_values(n, bc)).ravel()
    return np.sort(w)


@eigvalsh.row("tridiagonal", how="LAPACK's sterf", cost="20 n^2", by="band")
def _(op: Any, uplo: str) -> Any:
    bands = bands_of(op)
    if bands is None or not all(np.isfinite(d).all() for _, d in bands):
        return NotImplemented
    lower, main, upper = (d for _, d in bands)
    batch, n = op.shape[:-2], op.shape[-1]
    d = np.broadcast_to(main.real, (*batch, n)).astype(np.float64)
    e = np.abs(lower if uplo == "L" else upper)  # a diagonal unitary makes them real
    e = np.broadcast_to(e, (*batch, n - 1)).astype(np.float64)
    for i in np.ndindex(*batch):
        if not _core._sterf(d[i], e[i]):
            raise np.linalg.LinAlgError("Eigenvalues did not converge")
    return d


@eigvalsh.row(
    "eigen",
    how="d, sorted, where Q is known to be unitary",
    cost="O(n log n)",
    guard="given unitary_q hermitian",
)
def _(op: Any, uplo: str) -> Any:
    w = np.sort(floats(op._given("d")).real, axis=-1)
    return np.broadcast_to(w, (*op.shape[:-2], op.shape[-1]))


@eigvalsh.row("root", how="squares of L's singular values", cost="svdvals of L")
def _(op: Any, uplo: str) -> Any:
    return NotImplemented if op._init is None else svdvals(op)[..., ::-1]


@eigvalsh.row("full", how="n c and zeros", cost="O(n)", guard="given real_constant")
def _(op: Any, uplo: str) -> Any:
    c = complex(op._given("c")).real
    w = np.zeros((*op.shape[:-2], op.shape[-1]))
    w[..., 0 if c < 0 else -1] = c * op.shape[-1]
    return w


@eigvalsh.row("lowrank", how="QR of U, of what is between; V left out", cost="O(n k^2)")
def _(op: Any, uplo: str) -> Any:
    found = None
    if op._init is not None and op._given("V") is None:
        found = core_of(op)
    if found is None or not np.array_equal(found[1], found[1]):
        return NotImplemented
    inner = op._given("C")
    if inner is not None and not hermitian(as_operator(inner)):
        return NotImplemented
    w = np.linalg.eigvalsh((found[1] + adjoint(found[1])) / 2)
    return np.sort(_padded(w, op), axis=-1)
