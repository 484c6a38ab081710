"""Functions of Hermitian operators whose eigenvectors are known by their structure: A = Q diag(w)
Q^H gives pseudo-inverses, frames, roots and condition numbers as well, in the cost of `eigh`.

Of a sum this is A + c I with an A of such a kind: Kron(K, L) + s I has Kron(Q_K, Q_L)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._base.dtypes import real_of
from .dispatch import Question
from .eigh import eigenbasis
from .least_squares import frames
from .norms import cond_of_values
from .pinv import _reciprocals, _relative
from .questions import cond, norm, norm_of_values, pinv, svdvals
from .square_roots import by_basis, power
from .svd import of_basis


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
