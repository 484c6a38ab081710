"""Functions of Hermitian operators whose eigenvectors are known by their structure: A = Q diag(w)
Q^H gives pseudo-inverses, frames, roots and condition numbers as well, in the cost of `eigh`.

Of a sum this is A + c I with an A of such a kind: Kron(K, L) + s I has Kron(Q_K, Q_L)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from .. import _core
from .._base.dtypes import inexact, real_of
from .._operators.convert import as_operator
from .dispatch import Question, _as_precise
from .eigh import eigenbasis, thin_hermitian
from .least_squares import frames
from .norms import cond_of_values
from .pinv import _reciprocals, _relative
from .questions import cond, hermitian, norm, norm_of_values, pinv, svdvals
from .singular_values import floats
from .square_roots import _powers, by_basis, nonnegative, power
from .svd import of_basis
from .unitary import is_unitary


def _basis(op: Any) -> tuple[Any, Any]:
    """Eigenvalues in the precision of op, and eigenvectors."""
    w, q = eigenbasis(op, "L")
    return w.astype(real_of(op.dtype), copy=False), q


# -- A^1/2, A^-1/2 --


@power.row(
    *("laplacian", "tridiagonal", "toeplitz", "sum"),
    called="hermitian",
    how="Q f(w) Q^H by `eigh`, Hermitian ones; of A + c I by A's",
    cost="that of eigh",
    guard="known_basis",
)
def _(op: Any, p: Any) -> Any:
    return by_basis(op, p)


@power.row("inverse", how="of a Hermitian A: A's with the other sign", cost="A's")
def _(op: Any, p: Any) -> Generator[Any, Any, Any]:
    if op._init is not None or op._by != "inverse" or not hermitian(op._operands[0]):
        return NotImplemented
    return (yield op._operands[0], -p)


@power.row(
    "congruence", how="A f(B) A^H where A is known to be unitary", cost="that of B",
    guard="given unitary_a",
)  # fmt: skip
def _(op: Any, p: Any) -> Generator[Any, Any, Any]:
    inner = yield _as_precise(as_operator(op._given("B")), op), p
    return _core.Congruence(op._given("A").copy(), inner)


@power.row("lowrank", how="of A^1/2: QR of U, eigh of k x k; A^-1/2 has none", cost="O(n k^2)")
def _(op: Any, p: Any) -> Any:
    found = thin_hermitian(op)
    if found is None or p < 0:
        return NotImplemented
    q, m = found
    w, v = np.linalg.eigh(m)
    return _core.LowRank(q @ v, None, _core.Diag(_powers(nonnegative(w), p)))


# -- pseudo-inverses --


@pinv.row(
    *("kronsum", "laplacian", "sum"),
    called="hermitian",
    how="an Eigen by `eigh`, Hermitian ones; of A + c I by A's",
    cost="that of eigh",
    guard="known_basis",
)
def _(op: Any, how: Any) -> Any:
    w, q = _basis(op)
    cut = np.asarray(_relative(how, op) * np.abs(w).max(axis=-1))[..., None]
    return _core.Eigen(q, _reciprocals(w, cut))


@pinv.row(
    "congruence", how="A pinv(B) A^H where A is known to be unitary", cost="that of B",
    guard="given unitary_a",
)  # fmt: skip
def _(op: Any, how: Any) -> Generator[Any, Any, Any]:
    inner = yield _as_precise(as_operator(op._given("B")), op), how
    return _core.Congruence(op._given("A").copy(), inner)


@pinv.row(
    "offdiag", how="reciprocals on the other side of the diagonal", cost="O(n)", guard="given"
)
def _(op: Any, how: Any) -> Any:
    d, k = op._given("d", "k")
    d = floats(d)
    cut = _relative(how, op) * np.abs(d).max(axis=-1, initial=0)
    shape = (op.shape[-1], op.shape[-2])
    return _core.Diag(_reciprocals(d, np.asarray(cut)[..., None]), -int(k), shape)


# -- least squares, null spaces, ranges --


@frames.row(
    *("kronsum", "laplacian", "sum"),
    called="hermitian",
    how="by `eigh`, Hermitian ones; of A + c I by A's",
    cost="that of eigh",
    guard="known_basis",
)
def _(op: Any, want: str) -> Any:
    found = of_basis(*_basis(op))
    return found.u, found.s, found.v


@frames.row("hadamard", how="itself over sqrt(n)", cost="a product", guard="given")
def _(op: Any, want: str) -> Any:
    n = op.shape[-1]
    s = np.full(op.shape[:-1], n**0.5, real_of(op.dtype))
    return n**-0.5 * op, s, _core.Identity(n, inexact(op.dtype))


@frames.row("congruence", how="A times B's where A is known to be unitary", cost="that of B")
def _(op: Any, want: str) -> Generator[Any, Any, Any]:
    if op._init is None or not is_unitary(op._given("A")):
        return NotImplemented
    u, s, v = yield _as_precise(as_operator(op._given("B")), op), want
    outer = op._given("A")
    return None if u is None else outer @ u, s, outer @ v


# -- norms and condition by singular values that a structure has --


def _values_asks(op: Any, order: Any) -> Any:
    return [("svdvals", op)] if order in (2, -2, "nuc") else None


def _norm(op: Any, order: Any) -> Any:
    return norm_of_values(svdvals(op), order) if order in (2, -2, "nuc") else NotImplemented


def _cond(op: Any, p: Any) -> Any:
    return cond_of_values(svdvals(op), p) if p in (2, -2) else NotImplemented


def _by_values(question: Question, *heads: str, guard: str = "", called: str = "") -> Any:
    how = "from `svdvals`: 2, -2 and nuc; the others as of a dense form"
    return question.row(
        *heads, how=how, cost="`svdvals`", asks=_values_asks, guard=guard, called=called
    )


_by_values(norm, "sum", guard="known_basis")(_norm)
_by_values(cond, "sum", guard="known_basis")(_cond)
_by_values(norm, "lowrankupdate", "congruence", "power", called="by-svdvals")(_norm)
_by_values(
    cond, *("lowrankupdate", "congruence", "power", "toeplitz", "hankel"), called="by-svdvals"
)(_cond)
