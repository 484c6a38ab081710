"""Eigenvalues and eigenvectors of Hermitian operators; kind by kind in `kinds`.

The question asks for a basis, A = Q diag(w) Q^H with a unitary Q, in the kind's own order: then
joining factors or blocks needs no permutation, and functions of A need none at all. `eigh` sorts
once, at the end."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._base.dtypes import inexact, real_of
from .dispatch import Question, one_call
from .eigenvalues_hermitian import shift_of
from .operands import small_dense
from .questions import hermitian, read_hermitian, refuse_two_of_nan
from .rows import GUARDS, Guard
from .singular_values import (
    core_of,
)
from .unitary import unitary


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


# -- known bases --


def _of_known_basis(op: Any, ask: Any) -> Any:
    """Whether it is Hermitian by ``ask``; of a sum, A + c I with a real c, whether A is."""
    if op._head != "sum":
        return ask(op)
    found = shift_of(op)
    if found is None or np.imag(found[1]) or found[0]._head not in eigenbasis.rows:
        return False
    return ask(found[0])


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
    if batch or order.ndim > 1:
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
    if not batch and w.shape == (n,) and q.ndim == 2:
        order = w.argsort(kind="stable")
        w = w[order].astype(real_of(op.dtype), copy=False)
        q = in_order(q, order, op.shape)
    elif w.shape == (*batch, n) and q.shape[:-2] == batch and (w[..., 1:] >= w[..., :-1]).all():
        w = np.array(w, real_of(op.dtype))  # in order already, as LAPACK's are
    else:
        w = np.broadcast_to(w, (*batch, n))
        order = np.argsort(w, axis=-1, kind="stable")
        w = np.take_along_axis(w, order, axis=-1).astype(real_of(op.dtype), copy=False)
        q = in_order(q, order, op.shape)
    return w, q if q.dtype == inexact(op.dtype) else q.astype(inexact(op.dtype))
