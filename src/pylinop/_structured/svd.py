"""Singular values and vectors; kind by kind in `kinds`.

The question asks for matched columns: A is the sum over t of s_t U[:, rows_t] V[:, cols_t]^H, where
U and V have orthonormal columns and the s_t are nonnegative, in the kind's own order; unmatched
columns belong to the value 0. So Kronecker factors of any shapes, and diagonals off the main one,
need no completion, and `svd` sorts once, at the end."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._base.dtypes import inexact, real_of
from .dispatch import Question, one_call
from .eigh import eigenbasis, eye, in_order
from .operands import small_dense
from .unitary import unitary


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


# -- factors and blocks --


def _same_side(shapes: Any) -> bool:
    """Are all parts tall, or all wide? Then their thin forms are enough."""
    return all(m >= n for m, n in shapes) or all(m <= n for m, n in shapes)


# -- unitary kinds, transforms --


def _ones(op: Any, u: Any, size: float = 1.0) -> Any:
    s = np.full((*op.shape[:-2], op.shape[-1]), size, real_of(op.dtype))
    return _matched(u, s, eye(op))


# -- by eigenvectors --


def of_basis(w: Any, q: Any) -> Any:
    """The matched columns of A = Q diag(w) Q^H, for any w."""
    return _matched(_turned(q, phases(w)), np.abs(w), q)


@singular.row(
    "kronsum", "laplacian", "tridiagonal", "toeplitz", "householder", "sum", "power",
    called="hermitian", how="of Hermitian ones: eigh; of A + c I by A's", cost="that of eigh",
    guard="known_basis", calls=5,
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
