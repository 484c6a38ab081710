"""Singular values and vectors, kind by kind.

The question asks for matched columns: A is the sum over t of s_t U[:, rows_t] V[:, cols_t]^H, where
U and V have orthonormal columns and the s_t are nonnegative, in the kind's own order; unmatched
columns belong to the value 0. So Kronecker factors of any shapes, and diagonals off the main one,
need no completion, and `svd` sorts once, at the end."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._base.dtypes import CONJUGATED, TRANSPOSED, inexact, real_of
from .._operators.convert import as_operator
from .dispatch import (
    Question,
    _as_precise,
    diagonal_of,
    factors_of,
    modulus,
    one_call,
    small_dense,
    within,
)
from .eigenvalues_hermitian import reciprocal
from .eigh import eigenbasis, eye, in_order
from .questions import outer
from .singular_values import (
    _level_values,
    _levels_of,
    check_permutation,
    circulant_of,
    core_of,
    eigenvalues_of,
    floats,
    joined,
    spectrum_of,
    vector_room,
)
from .unitary import completed, fourier, hartley, is_unitary, reflector, unitary


class Matched(NamedTuple):
    """U, s, V, and which columns belong together."""

    u: Any
    s: Any
    v: Any
    rows: Any
    cols: Any


def _matched(u: Any, s: Any, v: Any) -> Any:
    at = np.arange(s.shape[-1])
    return Matched(u, s, v, at, at)


def _adjoint(a: Any) -> Any:
    return np.ascontiguousarray(np.swapaxes(a, -1, -2).conj())


def _dense_svd(a: Any, full: bool) -> Any:
    u, s, vh = np.linalg.svd(a, full_matrices=full)
    m, n = a.shape[-2:]
    v = _adjoint(vh)
    return _matched(
        unitary(u) if full or m <= n else _core.Dense(u),
        s,
        unitary(v) if full or n <= m else _core.Dense(v),
    )


singular = Question(
    _dense_svd,
    name="svd",
    how="gesdd (NumPy)",
    cost="O(m n min(m, n))",
    defaults=(False,),
    kept="svd",
    arrays=lambda m, n, full: 8 + full * 2 * max(m, n) / min(m, n),
)


def phases(d: Any) -> Any:
    """d / |d|, one where d is zero."""
    size = np.abs(d)
    turned = np.where(size > 0, d, 1) / np.where(size > 0, size, 1)
    return turned.astype(d.dtype, copy=False)


def _turned(q: Any, d: Any) -> Any:
    """The columns of q times numbers d of modulus one."""
    if (d == 1).all():
        return q
    turn = _core.Diag(d)
    return turn if q._head == "identity" and not q._operands else q @ turn


# -- diagonals, multiples, views --


@singular.row("diag", "identity", how="moduli; U takes the signs", cost="O(n)", calls=10)
def _(op: Any, full: bool) -> Any:
    d = diagonal_of(op)
    return _matched(_turned(eye(op), phases(d)), np.abs(d), eye(op))


@singular.row("offdiag", how="moduli; U takes the signs", cost="O(n)", guard="given")
def _(op: Any, full: bool) -> Any:
    d, k = op._given("d", "k")
    d, k = floats(d), int(k)
    m, n = op.shape[-2:]
    at, dtype = np.arange(d.shape[-1]), inexact(op.dtype)
    signs = np.ones((*d.shape[:-1], m), dtype)
    signs[..., at + max(-k, 0)] = phases(d)
    u, v = _core.Identity(m, dtype), _core.Identity(n, dtype)
    return Matched(_turned(u, signs), np.abs(d), v, at + max(-k, 0), at + max(k, 0))


@singular.row("zeros", how="identities", cost="O(1)")
def _(op: Any, full: bool) -> Any:
    m, n = op.shape[-2:]
    dtype = None if op._weak else inexact(op.dtype)
    none = np.zeros(0, np.int64)
    s = np.zeros((*op.shape[:-2], 0), real_of(op.dtype))
    return Matched(_core.Identity(m, dtype), s, _core.Identity(n, dtype), none, none)


@singular.row("scaled", how="A's, |c| times; U takes c / |c|", cost="that of A")
def _(op: Any, full: bool) -> Generator[Any, Any, Any]:
    c, size = op._operands[1], modulus(op._operands[1])
    found = yield within(op), full
    if size in (0, complex(c)):
        return found._replace(s=size * found.s)
    turn = complex(c) / size
    return found._replace(s=size * found.s, u=(turn if turn.imag else turn.real) * found.u)


@singular.row("view", how="A's, U and V exchanged or conjugated", cost="that of A")
def _(op: Any, full: bool) -> Generator[Any, Any, Any]:
    found, mode = (yield op._operands[0], full), op._mode
    u, v, rows, cols = found.u, found.v, found.rows, found.cols
    if mode & TRANSPOSED:
        u, v, rows, cols = v, u, cols, rows
    if mode in (TRANSPOSED, CONJUGATED):
        u, v = u.conj(), v.conj()
    return Matched(u, found.s, v, rows, cols)


@singular.row("inverse", how="A's, 1 / s, U and V exchanged", cost="that of A")
def _(op: Any, full: bool) -> Generator[Any, Any, Any]:
    if op._init is not None or op._by != "inverse":
        return NotImplemented
    u, s, v, rows, cols = yield op._operands[0], full
    if s.shape[-1] < op.shape[-1]:
        raise np.linalg.LinAlgError("Singular matrix")
    return Matched(v, reciprocal(s, op._operands[0]), u, cols, rows)


# -- factors and blocks --


def _same_side(shapes: Any) -> bool:
    """Are all parts tall, or all wide? Then their thin forms are enough."""
    return all(m >= n for m, n in shapes) or all(m <= n for m, n in shapes)


@singular.row("kron", how="factor by factor; U and V are Krons", cost="sum of the factors'")
def _(op: Any, full: bool) -> Generator[Any, Any, Any]:
    factors = factors_of(op)
    full = full or not _same_side([f.shape[-2:] for f in factors])
    vector_room(op)
    us, vs = [], []
    s, rows, cols = np.ones(1), np.zeros(1, np.int64), np.zeros(1, np.int64)
    for f in factors:
        one = yield f, full
        s = outer(s, one.s)
        rows = np.add.outer(rows * one.u.shape[-1], one.rows).ravel()
        cols = np.add.outer(cols * one.v.shape[-1], one.cols).ravel()
        us.append(one.u)
        vs.append(one.v)
    return Matched(_core.Kron(*us), s, _core.Kron(*vs), rows, cols)


@singular.row("blockdiag", how="block by block; U and V are BlockDiags", cost="sum of the blocks'")
def _(op: Any, full: bool) -> Generator[Any, Any, Any]:
    blocks = factors_of(op)
    full = full or not _same_side([f.shape[-2:] for f in blocks])
    us, vs, parts, rows, cols = [], [], [], [], []
    at = beside = 0
    for block in blocks:
        one = yield block, full
        us.append(one.u)
        vs.append(one.v)
        parts.append(one.s)
        rows.append(one.rows + at)
        cols.append(one.cols + beside)
        at, beside = at + one.u.shape[-1], beside + one.v.shape[-1]
    s = joined(op, parts)
    u, v = _core.BlockDiag(*us), _core.BlockDiag(*vs)
    return Matched(u, s, v, np.concatenate(rows), np.concatenate(cols))


def _beside_unitary(op: Any, full: bool) -> Any:
    """What is asked of a product: A of U A or A V."""
    if op._by != "prod" or op.dtype.kind in "biu":
        return None
    a, b = op._operands
    return [("svd", b if is_unitary(a) else a, full)] if is_unitary(a) or is_unitary(b) else None


@singular.row(
    "prod",
    how="of U A or A V with a U or V known to be unitary: A's",
    cost="that of A",
    asks=_beside_unitary,
)
def _(op: Any, full: bool) -> Generator[Any, Any, Any]:
    if op._by != "prod" or op.dtype.kind in "biu":
        return NotImplemented
    a, b = (_as_precise(f, op) for f in op._operands)
    if b._head == "identity" and a._by == "prod" and a._operands[0] is op._operands[0]:
        return NotImplemented  # op equals its left factor after astype: it would be asked again
    if is_unitary(a):
        found = yield b, full
        return found._replace(u=a.copy() @ found.u)
    if is_unitary(b):
        found = yield a, full
        return found._replace(v=b.copy().H @ found.v)
    return NotImplemented


# -- unitary kinds, transforms --


def _ones(op: Any, u: Any, size: float = 1.0) -> Any:
    s = np.full((*op.shape[:-2], op.shape[-1]), size, real_of(op.dtype))
    return _matched(u, s, eye(op))


@singular.row("permutation", how="itself; ones", cost="O(n)")
def _(op: Any, full: bool) -> Any:
    check_permutation(op)
    return _ones(op, op.copy())


@singular.row("reflections", how="itself; ones", cost="O(n)")
def _(op: Any, full: bool) -> Any:
    return _ones(op, op.copy())


@singular.row(
    "dft",
    "hadamard",
    called="transforms",
    how="itself, scaled to be unitary; all one value",
    cost="O(n)",
    guard="given",
)
def _(op: Any, full: bool) -> Any:
    vector_room(op)
    n = op.shape[-1]
    if op._head == "hadamard":
        return _ones(op, n**-0.5 * op, n**0.5)
    size, norm = op._given("n", "norm")
    unit = _core.DFT(size, "ortho", None if op._weak else op.dtype)
    return _ones(op, unit, {"ortho": 1.0, "forward": n**-0.5}.get(norm, n**0.5))


@singular.row(
    "dct", how="the orthogonal DCT of its type; two values a level", cost="O(n)", guard="given"
)
def _(op: Any, full: bool) -> Any:
    sizes, type_, norm = op._given("n", "type", "norm")
    type_ = type_ or 2
    sizes = tuple(sizes) if np.iterable(sizes) else (int(sizes),)
    s = np.ones(1)
    vector_room(op)
    for n in sizes:
        values = _level_values("dct", n, type_, norm)
        if values is None:
            return NotImplemented
        s = outer(s, values)
    unit = _core.DCT(sizes, type_, "ortho", None if op._weak else op.dtype)
    return _matched(eye(op), s, unit.T) if type_ == 2 else _matched(unit, s, eye(op))


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


# -- low rank --


@singular.row("lowrank", how="QR of U and V, svd of k x k; reflections", cost="O((m + n) k^2)")
def _(op: Any, full: bool) -> Any:
    found = core_of(op)
    if found is None or not np.isfinite(found[1]).all():
        return NotImplemented
    q, middle, p = found
    x, s, yh = np.linalg.svd(middle)
    return _matched(_whole(q, x), s, _whole(p, _adjoint(yh)))


def _whole(q: Any, x: Any) -> Any:
    """A unitary operator whose first columns are q x; it holds n x k numbers."""
    whole, r = completed(q)
    turn = np.sign(np.diagonal(r, 0, -2, -1).real)[..., :, None]
    n, k = q.shape[-2:]
    return whole @ _core.BlockDiag(unitary(turn * x), _core.Identity(n - k))


@singular.row("full", how="one value; Householder reflections", cost="O(m + n)", guard="given")
def _(op: Any, full: bool) -> Any:
    m, n = op.shape[-2:]
    dtype = inexact(op.dtype)
    c = np.asarray(op._given("c")).astype(dtype)
    u, v = (reflector(np.ones(k, dtype)) for k in (m, n))
    sign = phases(c)  # both first columns are -1, scaled
    s = np.full((*op.shape[:-2], 1), np.abs(c) * float(m) ** 0.5 * float(n) ** 0.5)
    at = np.zeros(1, np.int64)
    return Matched(u if sign == 1 else sign * u, s, v, at, at)


# -- by eigenvectors --


def of_basis(w: Any, q: Any) -> Any:
    """The matched columns of A = Q diag(w) Q^H, for any w."""
    return _matched(_turned(q, phases(w)), np.abs(w), q)


@singular.row(
    "eigen", how="moduli of d, where Q is known to be unitary", cost="O(n)", guard="given unitary_q"
)
def _(op: Any, full: bool) -> Any:
    return of_basis(floats(op._given("d")), op._given("Q").copy())


@singular.row("root", how="squares of L's; U is L's", cost="that of L", guard="given")
def _(op: Any, full: bool) -> Generator[Any, Any, Any]:
    found = yield _as_precise(as_operator(op._given("L")), op), True
    return Matched(found.u, found.s**2, found.u, found.rows, found.rows)


@singular.row(
    "kronsum", "laplacian", "tridiagonal", "toeplitz", "householder", "sum", "power",
    called="hermitian", how="of Hermitian ones: eigh; of A + c I by A's", cost="that of eigh",
    guard="known_basis",
)  # fmt: skip
def _(op: Any, full: bool) -> Any:
    return of_basis(*eigenbasis(op, "L"))


@singular.row(
    "congruence", how="of Hermitian ones: eigh, where A is known to be unitary",
    cost="that of eigh", guard="given unitary_a hermitian",
)  # fmt: skip
def _(op: Any, full: bool) -> Any:
    return of_basis(*eigenbasis(op, "L"))


# -- in descending order --


def _small(a: Any, full: bool) -> Any:
    """The svd of an array."""
    u: Any
    u, s, vh = np.linalg.svd(a, full_matrices=full)
    m, n = a.shape[-2:]
    u = unitary(u) if full or m <= n else _core.Dense(u)
    return u, s, unitary(vh) if full or n <= m else _core.Dense(vh)


def _rest(size: int, taken: Any) -> Any:
    free = np.ones(size, bool)
    free[taken] = False
    return np.flatnonzero(free)


def _in_order(op: Any, found: Any, full: bool) -> Any:
    """Are columns and values in svd's order, as LAPACK's are?"""
    s, k, batch, dtype = found.s, min(op.shape[-2:]), op.shape[:-2], inexact(op.dtype)
    return (
        all(
            q.shape == (*batch, size, size if full else k) and q.dtype == dtype
            for q, size in ((found.u, op.shape[-2]), (found.v, op.shape[-1]))
        )
        and (s[..., 1:] <= s[..., :-1]).all()
        and all((at == np.arange(k)).all() for at in (found.rows, found.cols))
    )


@one_call("svd")
def descending(op: Any, full_matrices: bool, hermitian: bool) -> Any:
    """The result of svd: U, values in descending order, V^H."""
    m, n = op.shape[-2:]
    k = min(m, n)
    a = None if hermitian else small_dense(op)
    if a is not None:
        return _small(a, full_matrices)
    found = of_basis(*eigenbasis(op, "L")) if hermitian else singular(op, full_matrices)
    if not full_matrices and min(found.u.shape[-1], found.v.shape[-1]) < k:
        found = singular(op, True)  # thin factors of both shapes leave too few columns
    batch = op.shape[:-2]
    s = np.broadcast_to(found.s, (*batch, found.s.shape[-1]))
    zeros = k - s.shape[-1]
    if zeros == 0 and _in_order(op, found, full_matrices):
        return found.u, np.array(s, real_of(op.dtype)), found.v.H
    s = np.concatenate([s, np.zeros((*batch, zeros), s.dtype)], axis=-1)
    order = np.argsort(-s, axis=-1, kind="stable")
    s = np.take_along_axis(s, order, axis=-1).astype(real_of(op.dtype), copy=False)
    sides = []
    for q, at, adjoint in ((found.u, found.rows, False), (found.v, found.cols, True)):
        rest = _rest(q.shape[-1], at)
        every = np.concatenate([at, rest[:zeros]])[order]
        if full_matrices:
            more = np.broadcast_to(rest[zeros:], (*batch, rest.size - zeros))
            every = np.concatenate([every, more], axis=-1)
        q = in_order(q, every, op.shape, adjoint)
        sides.append(q if q.dtype == inexact(op.dtype) else q.astype(inexact(op.dtype)))
    return sides[0], s, sides[1]


# -- eigenvalues by singular values --


@eigenbasis.row("root", how="by the svd of L, all of its U", cost="svd of L", guard="given")
def _(op: Any, uplo: str) -> Any:
    found = singular(op._given("L"), True)
    w = np.zeros((*found.s.shape[:-1], op.shape[-1]), found.s.dtype)
    w[..., found.rows] = found.s**2
    return w, found.u
