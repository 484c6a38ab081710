"""Functions of sums, products, inverses, powers and slices; of a sum, A + c I has a row."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from ..._operators.convert import as_operator, inverse
from ..._operators.parameters import written
from ..cholesky import cholesky, is_hermitian
from ..dispatch import mirrored
from ..eig import _pair, _split, pairs_row
from ..eigenvalues_hermitian import reciprocal, shift_of
from ..eigh import eigenbasis
from ..matrix_functions import _by_basis, functions_row, named
from ..norms import cond_of_values
from ..operands import _as_precise
from ..questions import cond, eigvalsh, hermitian, norm, norm_of_values, svdvals
from ..rows import GUARDS, guard_of
from ..square_roots import _beside, by_basis, power, root
from ..svd import Matched, singular
from ..unitary import is_unitary

# -- singular values, norms, eigenvalues --


@hermitian.row("inverse", "power")
def _(op: Any) -> Generator[Any, Any, Any]:
    if op._operands[0].shape[-1] != op._operands[0].shape[-2]:
        return NotImplemented
    return (yield (op._operands[0],)) or NotImplemented


@hermitian.row("sum")
def _(op: Any) -> Generator[Any, Any, Any]:
    found = shift_of(op)
    if found is None or complex(found[1]).imag:
        return NotImplemented
    return (yield (found[0],))


@eigvalsh.row("sum", how="of A + c I: those of A, + c", cost="those of A", guard="real_shift")
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    found = shift_of(op)
    if found is None:
        return NotImplemented
    return (yield found[0], uplo) + complex(found[1]).real


# -- norms and condition numbers --


_VALUES = "from `svdvals`: 2, -2 and nuc; the others as of a dense form"


def _values_asks(op: Any, order: Any) -> Any:
    return [("svdvals", op)] if order in (2, -2, "nuc") else None


@norm.row("sum", how=_VALUES, cost="`svdvals`", asks=_values_asks, guard="known_basis")
def _(op: Any, order: Any) -> Any:
    return norm_of_values(svdvals(op), order) if order in (2, -2, "nuc") else NotImplemented


@cond.row("sum", how=_VALUES, cost="`svdvals`", asks=_values_asks, guard="known_basis")
def _(op: Any, p: Any) -> Any:
    return cond_of_values(svdvals(op), p) if p in (2, -2) else NotImplemented


# -- eigh --


@eigenbasis.row(
    "sum", how="of A + c I: A's Q, c added to its values", cost="that of A", guard="real_shift"
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    found = shift_of(op)
    if found is None:
        return NotImplemented
    w, q = yield found[0], uplo
    return w + complex(found[1]).real, q


@eigenbasis.row(
    "inverse", how="of a Hermitian A: its Q, 1 / w", cost="that of A", guard="hermitian_operand"
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    w, q = yield op._operands[0], uplo
    return reciprocal(w, op._operands[0]), q


@eigenbasis.row(
    "power", how="of a Hermitian A: its Q, w^p", cost="that of A", guard="hermitian_operand"
)
def _(op: Any, uplo: str) -> Generator[Any, Any, Any]:
    w, q = yield op._operands[0], uplo
    return w ** op._operands[1], q


# -- eig --

GUARDS["inexact_operand"] = guard_of(
    "of no integers, which wrap", lambda op: op._operands[0].dtype.kind not in "biu"
)


@pairs_row("sum", how="of A + c I: A's V, c added to its values", cost="that of A")
def _(op: Any, vectors: bool) -> Generator[Any, Any, Any]:
    found = shift_of(op)
    if found is None:
        return NotImplemented
    w, v = _split((yield (found[0],)), vectors)
    return _pair(w + found[1], lambda: v, vectors)


@pairs_row("inverse", how="A's V, 1 / w", cost="that of A")
def _(op: Any, vectors: bool) -> Generator[Any, Any, Any]:
    if op._init is not None or op._by != "inverse":
        return NotImplemented
    w, v = _split((yield (op._operands[0],)), vectors)
    return _pair(reciprocal(w, op._operands[0]), lambda: v, vectors)


@pairs_row("power", how="A's V, w^p", cost="that of A", guard="inexact_operand")
def _(op: Any, vectors: bool) -> Generator[Any, Any, Any]:
    w, v = _split((yield (op._operands[0],)), vectors)
    return _pair(w ** op._operands[1], lambda: v, vectors)


# -- svd --


@singular.row("inverse", how="A's, 1 / s, U and V exchanged", cost="that of A")
def _(op: Any, full: bool) -> Generator[Any, Any, Any]:
    if op._init is not None or op._by != "inverse":
        return NotImplemented
    u, s, v, rows, cols = yield op._operands[0], full
    if s.shape[-1] < op.shape[-1]:
        raise np.linalg.LinAlgError("Singular matrix")
    return Matched(v, reciprocal(s, op._operands[0]), u, cols, rows)


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


# -- exp, log, powers --


def _shifted_asks(op: Any, f: Any) -> Any:
    found = shift_of(op)
    return None if found is None else [(named(f), found[0], f.shifted(found[1]))]


@functions_row(
    "sum", how="of A + c I: of A, the shift within the function", cost="that of A",
    asks=_shifted_asks,
)  # fmt: skip
def _(op: Any, f: Any) -> Generator[Any, Any, Any]:
    found = shift_of(op)
    if found is None:
        return NotImplemented
    return (yield found[0], f.shifted(found[1]))


@functions_row(
    "inverse", "power", how="of a Hermitian A: by its eigenvectors", cost="that of eigh",
    guard="hermitian_operand",
)  # fmt: skip
def _(op: Any, f: Any) -> Any:
    return _by_basis(op, f)


# -- square roots, samples --


def _is_gram(op: Any) -> bool:
    """Is it U U^H with fewer columns than rows?"""
    if not written(op, "prod") or len(op._operands) != 2 or op.shape[-1] != op.shape[-2]:
        return False
    u, vh = op._operands
    return bool(u.shape[-1] < u.shape[-2]) and mirrored(u, vh.H)


GUARDS["gram"] = guard_of("U U^H, U of fewer columns than rows", _is_gram)


def _terms(op: Any) -> list[Any] | None:
    """The terms of a sum, if there are at most 16, all of kinds with a root of their own; else
    None."""
    found: list[Any] = []
    stack = [op]
    while stack:
        o = stack.pop()
        if written(o, "sum") and len(found) + len(stack) < 16:
            stack += o._operands[::-1]
            continue
        inner = o
        while written(inner, "view", "scaled"):
            inner = inner._operands[0]
        if o._head == "sum" or inner._head not in root.rows:
            return None
        if inner._head == "prod" and not _is_gram(inner):
            return None
        found.append(o)
    return found


def _term_asks(op: Any) -> Any:
    terms = _terms(op)
    return None if terms is None else [("sample", as_operator(t)) for t in terms]


@root.row(
    "sum",
    how="roots beside each other, of semidefinite terms in this table",
    cost="theirs",
    asks=_term_asks,
    doubt=lambda op: ("where a term is not semidefinite", [*_term_asks(op), None]),
)
def _(op: Any) -> Any:
    terms = _terms(op)
    return NotImplemented if terms is None else _beside(terms)


@root.row("prod", how="of U U^H: U", cost="O(n k)", guard="gram")
def _(op: Any) -> Any:
    return op._operands[0] if _is_gram(op) else NotImplemented


@root.row(
    "inverse",
    how="the inverse of L^H of A's Cholesky",
    cost="A's",
    asks=lambda op: [("cholesky", op._operands[0], "L")] if op._operands else None,
)
def _(op: Any) -> Any:
    if op._init is not None or op._by != "inverse":
        return NotImplemented
    inner = op._operands[0]
    if not is_hermitian(inner):
        return NotImplemented
    return inverse(cholesky(inner, "L").H)


# -- by known eigenvectors --


@power.row(
    "inverse",
    how="of a Hermitian A: by its eigenvectors, none of its eigenvalues 0",
    cost="that of eigh",
    guard="hermitian_operand",
)
def _(op: Any, p: Any) -> Any:
    return by_basis(op, p)
