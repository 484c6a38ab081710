"""Eigenvalues and eigenvectors of Hermitian operators, kind by kind.

The question asks for a basis, A = Q diag(w) Q^H with a unitary Q, in the kind's own order: then
joining factors or blocks needs no permutation, and functions of A need none at all. `eigh` sorts
once, at the end."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import numpy as np

from .. import _core
from .._base import memory
from .._base.dtypes import CONJUGATED, TRANSPOSED, inexact, real_of
from .._operators.convert import as_operator
from . import centrohermitian
from .dispatch import (
    GUARDS,
    Guard,
    Question,
    diagonal_of,
    factors_of,
    one_call,
    small_dense,
    within,
)
from .eigenvalues_hermitian import halves, reciprocal, shift_of, shifted_thin
from .questions import hermitian, read_hermitian, refuse_two_of_nan
from .singular_values import (
    _levels_of,
    axes_of,
    bands_of,
    core_of,
    eigenvalues_of,
    floats,
    joined,
    reflection_of,
    vector_room,
)
from .unitary import completed, fourier, hartley, reflector, sine, unitary


def _dense_basis(a: Any, uplo: Any) -> tuple[Any, Any]:
    refuse_two_of_nan(a)
    w, q = np.linalg.eigh(a, uplo)
    return w, unitary(q)


eigenbasis = Question(
    _dense_basis,
    name="eigh",
    how="heevd (NumPy)",
    cost="9 n^3",
    kept="eigh",
    arrays=4.6,
    defaults=("L",),
)


def eye(op: Any) -> Any:
    """The identity of op's size; weak where op is."""
    return _core.Identity(op.shape, None if op._weak else inexact(op.dtype))


# -- diagonals, multiples, views, factors --


@eigenbasis.row("diag", "identity", how="the diagonal; Q is the identity", cost="O(n)", calls=5)
def _(op: Any, uplo: str) -> tuple[Any, Any]:
    return diagonal_of(op).real, eye(op)


@eigenbasis.row("zeros", how="zeros; Q is the identity", cost="O(n)")
def _(op: Any, uplo: str) -> Any:
    return np.zeros(op.shape[:-1], real_of(op.dtype)), eye(op)


@eigenbasis.row("scaled", how="A's Q, c times its values, c real", cost="that of A")
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    c = complex(op._operands[1])
    if c.imag:
        return NotImplemented
    w, q = yield within(op), uplo
    return c.real * w, q


@eigenbasis.row("view", how="A's Q, conjugated where one of .T, .conj() stands", cost="that of A")
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    mode = op._mode
    if mode & TRANSPOSED:
        uplo = {"L": "U", "U": "L"}[uplo]
    w, q = yield op._operands[0], uplo
    return w, q if mode in (0, TRANSPOSED | CONJUGATED) else q.conj()


@eigenbasis.row("sum", how="of A + c I: A's Q, c added to its values", cost="that of A")
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    found = shift_of(op)
    if found is None or complex(found[1]).imag:
        return NotImplemented
    w, q = yield found[0], uplo
    return w + complex(found[1]).real, q


@eigenbasis.row("inverse", how="of a Hermitian A: its Q, 1 / w", cost="that of A")
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    if op._init is not None or op._by != "inverse" or not hermitian(op._operands[0]):
        return NotImplemented
    w, q = yield op._operands[0], uplo
    return reciprocal(w, op._operands[0]), q


@eigenbasis.row("power", how="of a Hermitian A: its Q, w^p", cost="that of A")
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    if op._operands[0].dtype.kind in "biu" or not hermitian(op._operands[0]):
        return NotImplemented
    w, q = yield op._operands[0], uplo
    return w ** op._operands[1], q


@eigenbasis.row(
    "kron",
    how="factor by factor, where each is Hermitian; Q is a Kron",
    cost="sum of the factors'",
    guard="hermitian",
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    vector_room(op)
    w, vectors = np.ones(1), []
    for f in factors_of(op):
        one, q = yield f, uplo
        w = (w[..., :, None] * one[..., None, :]).reshape(
            *np.broadcast_shapes(w.shape[:-1], one.shape[:-1]), w.shape[-1] * one.shape[-1]
        )
        vectors.append(q)
    return w, _core.Kron(*vectors)


@eigenbasis.row(
    "kronsum", how="operand by operand; Q is a Kron", cost="sum of the operands'", guard="given"
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    vector_room(op)
    w, vectors = np.zeros(1), []
    for f in factors_of(op):
        one, q = yield f, uplo
        both = w[..., :, None] + one[..., None, :]
        w = both.reshape(*both.shape[:-2], w.shape[-1] * one.shape[-1])
        vectors.append(q)
    return w, _core.Kron(*vectors)


@eigenbasis.row("blockdiag", how="block by block; Q is a BlockDiag", cost="sum of the blocks'")
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    parts, vectors = [], []
    for block in factors_of(op):
        if block.shape[-1] != block.shape[-2]:
            return NotImplemented
        one, q = yield block, uplo
        parts.append(one)
        vectors.append(q)
    return joined(op, parts), _core.BlockDiag(*vectors)


# -- transforms --


@eigenbasis.row(
    "circulant",
    how="one FFT; Q by the DFT, of a real matrix by the Hartley transform",
    cost="O(n log n)",
    guard="hermitian",
)
def _(op: Any, uplo: str) -> Any:
    basis = fourier if op.dtype.kind == "c" else hartley
    return eigenvalues_of(op).real, basis(_levels_of(op), inexact(op.dtype))


def _axis_basis(n: int, bc: Any, dtype: Any) -> Any:
    """Eigenvalues and eigenvectors of second differences on an axis, in the basis's order."""
    k = np.arange(n)
    if bc == "neumann":
        return -4 * np.sin(np.pi * k / (2 * n)) ** 2, _core.DCT(n, 2, "ortho", dtype).T
    if bc == "periodic":
        return -4 * np.sin(np.pi * k / n) ** 2, hartley((n,), dtype)
    return -4 * np.sin(np.pi * (k + 1) / (2 * n + 2)) ** 2, sine(n, dtype)


@eigenbasis.row(
    "laplacian",
    how="sums over the axes; Q is a Kron of sine, cosine or Hartley",
    cost="O(n)",
    guard="given",
)
def _(op: Any, uplo: str) -> Any:
    vector_room(op)
    w, vectors = np.zeros(1), []
    for n, bc in axes_of(op):
        one, q = _axis_basis(n, bc, inexact(op.dtype))
        w = np.add.outer(w, one).ravel()
        vectors.append(q)
    return w, vectors[0] if len(vectors) == 1 else _core.Kron(*vectors)


@eigenbasis.row("hadamard", how="Kron of 2 x 2 rotations", cost="O(n)")
def _(op: Any, uplo: str) -> Any:
    n = op.shape[-1]
    if op._init is None or n == 1:
        return NotImplemented
    c, s = math.cos(math.pi / 8), math.sin(math.pi / 8)
    turn = np.array([[c, -s], [s, c]], inexact(op.dtype).char.lower())
    w, root = np.ones(1), math.sqrt(2.0)
    levels = n.bit_length() - 1
    for _ in range(levels):
        w = np.concatenate([root * w, -root * w])
    one = unitary(turn)
    return w, one if levels == 1 else _core.Kron(*[one] * levels)


# -- rows exchanged, reflections --


def cycles_of(op: Any) -> Any:
    """(order, lengths, counts) of a Permutation: its rows in that order fall into cycles,
    ``counts`` of them of each length; None for batches."""
    if op.ndim != 2:
        return None
    p = np.rint((op @ np.arange(op.shape[-1], dtype=np.float64)).real).astype(np.int64)
    seen = np.zeros(p.size, bool)
    cycles: dict[int, list[int]] = {}
    for start in range(p.size):
        cycle, at = [], start
        while not seen[at]:
            seen[at] = True
            cycle.append(at)
            at = p[at]
        if cycle:
            cycles.setdefault(len(cycle), []).extend(cycle)
    lengths = sorted(cycles)
    order = np.concatenate([np.array(cycles[k], np.int64) for k in lengths])
    return order, lengths, [len(cycles[k]) // k for k in lengths]


def by_cycles(op: Any, one: Any) -> Any:
    """S^T diag(I (x) one(length)) S, the cycles of each length together."""
    order, lengths, counts = cycles_of(op)
    blocks = [_core.Kron(_core.Identity(m), one(k)) for k, m in zip(lengths, counts, strict=True)]
    return _core.Congruence(_core.Permutation(order).T, _core.BlockDiag(*blocks))


def cycle_vectors(op: Any, one: Any) -> Any:
    """S^T diag(I (x) one(length)): vectors of the cycles."""
    order, lengths, counts = cycles_of(op)
    blocks = [_core.Kron(_core.Identity(m), one(k)) for k, m in zip(lengths, counts, strict=True)]
    return _core.Permutation(order).T @ _core.BlockDiag(*blocks)


def cycle_values(op: Any) -> Any:
    """The eigenvalues in the order of `cycle_vectors`: roots of unity."""
    _, lengths, counts = cycles_of(op)
    return np.concatenate(
        [np.tile(np.exp(2j * np.pi * np.arange(k) / k), m) for k, m in zip(lengths, counts)]
    )


@eigenbasis.row(
    "permutation", how="of exchanges: 2 x 2 blocks", cost="O(n)", guard="single hermitian"
)
def _(op: Any, uplo: str) -> Any:
    q = cycle_vectors(op, lambda k: hartley((k,), inexact(op.dtype)))
    return np.rint(cycle_values(op).real), q


def _first(value: Any, n: int) -> Any:
    """The eigenvalue of the first column, then those of the others."""
    return np.concatenate([value, np.ones((*value.shape[:-1], n - 1))], axis=-1)


def reflection_parts(op: Any) -> tuple[Any, Any] | None:
    """(the vector, the one eigenvalue that is not 1) of a Householder; None where there is no such
    vector."""
    if op._init is None:
        return None
    v, value = floats(op._given("v")), reflection_of(op)
    top = np.abs(v).max(axis=-1)
    good = np.isfinite(top) & (top > 0) & np.isfinite(value[..., 0])
    return (v, value) if np.all(good) else None


@eigenbasis.row("householder", how="a Householder", cost="O(n)")
def _(op: Any, uplo: str) -> Any:
    found = reflection_parts(op)
    if found is None or not hermitian(op):
        return NotImplemented
    v, value = found
    return _first(value.real, op.shape[-1]), reflector(v)


@eigenbasis.row("full", how="one value; Q is a Householder", cost="O(n)")
def _(op: Any, uplo: str) -> Any:
    if op._init is None or complex(op._given("c")).imag or op.shape[-1] != op.shape[-2]:
        return NotImplemented
    w = np.zeros(op.shape[:-1])
    w[..., 0] = complex(op._given("c")).real * op.shape[-1]
    return w, reflector(np.ones(op.shape[-1], inexact(op.dtype)))


# -- bands --


def _phases(e: Any) -> Any:
    """A diagonal unitary that makes the subdiagonal e (..., n - 1) positive."""
    size = np.abs(e)
    turn = np.where(size > 0, e, 1) / np.where(size > 0, size, 1)
    ones = np.ones((*e.shape[:-1], 1), e.dtype)
    return np.concatenate([ones, np.cumprod(turn, axis=-1)], axis=-1)


@eigenbasis.row(
    "tridiagonal",
    "banded",
    called="bands",
    how="of three diagonals: stemr (SciPy, else dense); some vectors (`k=`) of wider ones: inverse "
    "iteration",
    cost="120 n^2; O(n^2 w + n k w^2)",
    kept=True,
    by="band",
)
def _(op: Any, uplo: str) -> Any:
    bands = bands_of(op)
    if bands is None or op.shape[-1] < 2 or not all(np.isfinite(d).all() for _, d in bands):
        return NotImplemented
    if any(abs(k) > 1 for k, _ in bands):
        return NotImplemented  # sbevd turns vectors no faster than heevd does (docs/decisions.md)
    try:
        from scipy.linalg import eigh_tridiagonal  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return NotImplemented
    memory.materialising(op, op.size * inexact(op.dtype).itemsize, False)
    batch, n = op.shape[:-2], op.shape[-1]
    none, at = np.zeros(n - 1, inexact(op.dtype)), dict(bands)
    lower, main, upper = at.get(-1, none), at.get(0, np.zeros(n)), at.get(1, none)
    e = lower if uplo == "L" else upper.conj()
    real, turned = np.abs(e).astype(np.float64), _phases(e)
    d = np.broadcast_to(main.real, (*batch, n)).astype(np.float64)
    real = np.broadcast_to(real, (*batch, n - 1))
    w, q = np.empty((*batch, n)), np.empty((*batch, n, n))
    for i in np.ndindex(*batch):
        w[i], q[i] = eigh_tridiagonal(d[i], real[i])
    return w, unitary((turned[..., :, None] * q).astype(inexact(op.dtype), copy=False))


@eigenbasis.row(
    *("toeplitz", "multitoeplitz"),
    how="Hermitian: heevd of halves",
    cost="9 n^3 / 4",
    kept=True,
    by="dense",
)
def _(op: Any, uplo: str) -> Any:
    def found(a: Any) -> tuple[Any, Any]:
        w, q = centrohermitian.basis(a)
        return w, unitary(q)

    return halves(op, eigenbasis, found, uplo)


# -- low rank --


def thin_hermitian(op: Any) -> tuple[Any, Any] | None:
    """(q, m) with op = q m q^H, where q has r orthonormal columns and m is Hermitian; else None."""
    if op._head != "lowrank" or not hermitian(op):
        return None
    found = core_of(op)
    if found is None or not np.isfinite(found[1]).all():
        return None
    q, m, _ = found
    return q, (m + np.swapaxes(m, -1, -2).conj()) / 2


@eigenbasis.row(
    "lowrank", how="QR of U, eigh of k x k; Q by k reflections", cost="O(n k^2); Q in n k numbers"
)
def _(op: Any, uplo: str) -> Any:
    found = thin_hermitian(op)
    if found is None:
        return NotImplemented
    q, m = found
    values, vectors = np.linalg.eigh(m)
    whole, r = completed(q)
    k, n = m.shape[-1], op.shape[-1]
    turn = np.sign(np.diagonal(r, 0, -2, -1).real)[..., :, None]  # q has whole's columns, rotated
    w = np.zeros((*values.shape[:-1], n), values.dtype)
    w[..., :k] = values
    return w, whole @ _core.BlockDiag(unitary(turn * vectors), _core.Identity(n - k))


@eigenbasis.row(
    "lowrankupdate",
    how="of c I + U C U^H: as U C U^H, c added",
    cost="O(n k^2)",
    guard="thin_shift",
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    found = shifted_thin(op)
    if found is None:
        return NotImplemented
    w, q = yield found[0], uplo
    return w + complex(found[1]).real, q


# -- known bases --


@eigenbasis.row(
    "eigen",
    how="its own, where Q is known to be unitary",
    cost="O(1)",
    guard="given unitary_q hermitian",
)
def _(op: Any, uplo: str) -> Any:
    return floats(op._given("d")).real, op._given("Q").copy()


@eigenbasis.row(
    "congruence",
    how="A Q of B's, where A is known to be unitary",
    cost="that of B",
    guard="given unitary_a",
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    if not hermitian(as_operator(op._given("B"))):
        return NotImplemented
    w, q = yield as_operator(op._given("B")), uplo
    return w, op._given("A").copy() @ q


def _of_known_basis(op: Any, ask: Any) -> Any:
    """Whether it is Hermitian by ``ask``; of a sum, A + c I with a real c, whether A is."""
    if op._head != "sum":
        return ask(op)
    found = shift_of(op)
    return False if found is None or np.imag(found[1]) else ask(found[0])


def has_basis(op: Any) -> bool:
    """Are the eigenvectors of an operator known by its kind? Of a sum, A + c I, those of A."""
    return bool(_of_known_basis(op, hermitian))


GUARDS["known_basis"] = Guard(
    "Hermitian, of a sum a Hermitian A + c I with a real c",
    has_basis,
    lambda op: _of_known_basis(op, read_hermitian),
)


# -- in ascending order --


def in_order(q: Any, order: Any, shape: tuple[int, ...], adjoint: bool = False) -> Any:
    """The columns of q in an order (..., k), or their adjoint: q itself times a Permutation or a
    Selection."""
    batch, size = shape[:-2], q.shape[-1]
    k = order.shape[-1]
    if k == size and q.shape[:-2] == batch and (order == np.arange(k)).all():
        return q.H if adjoint else q
    order = np.ascontiguousarray(np.broadcast_to(order, (*batch, k)))
    dtype = None if q._weak else q.dtype
    pick: Any = _core.Permutation(order) if k == size else _core.Selection(order, size)
    if q._head == "identity" and not q._operands:
        pick = pick if dtype is None else pick.astype(dtype)
        return pick if adjoint else pick.T
    return pick @ q.H if adjoint else q @ pick.T


@one_call("eigh")
def ascending(op: Any, uplo: str) -> Any:
    """The result of eigh: values in ascending order with their vectors."""
    a = small_dense(op)
    if a is not None:
        return _dense_basis(a, uplo)
    w, q = eigenbasis(op, uplo)
    batch, n = op.shape[:-2], op.shape[-1]
    if w.shape == (*batch, n) and q.shape[:-2] == batch and (w[..., 1:] >= w[..., :-1]).all():
        w = np.array(w, real_of(op.dtype))  # in order already, as LAPACK's are
    else:
        w = np.broadcast_to(w, (*batch, n))
        order = np.argsort(w, axis=-1, kind="stable")
        w = np.take_along_axis(w, order, axis=-1).astype(real_of(op.dtype), copy=False)
        q = in_order(q, order, op.shape)
    return w, q if q.dtype == inexact(op.dtype) else q.astype(inexact(op.dtype))
