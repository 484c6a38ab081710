"""Functions of Hermitian operators whose eigenvectors are known by their structure: A = Q diag(w)
Q^H gives pseudo-inverses, frames, roots and condition numbers as well, in the cost of `eigh`.

Of a sum this is A + c I with an A of such a kind: Kron(K, L) + s I has Kron(Q_K, Q_L)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._base.dtypes import real_of
from . import least_squares
from .eigenvalues_hermitian import shift_of
from .eigh import eigenbasis, has_basis
from .least_squares import frames
from .norms import cond_of_values
from .pinv import _reciprocals, _relative
from .properties import known
from .questions import cond, norm, norm_of_values, pinv, svdvals
from .square_roots import by_basis, power
from .svd import of_basis

least_squares.CONDITIONS["sum"] = has_basis


def _eigh_asks(op: Any, *args: Any) -> Any:
    """What the rows ask of `eigh`; None where they refuse."""
    found = shift_of(op) if op._head == "sum" else (op, 0)
    if found is None or np.imag(found[1]) or found[0]._head not in eigenbasis.rows:
        return None
    return None if known(found[0], "hermitian") is False else [("eigh", op, "L")]


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
    asks=_eigh_asks,
)
def _(op: Any, p: Any) -> Any:
    return by_basis(op, p) if has_basis(op) else NotImplemented


# -- pseudo-inverses --


@pinv.row(
    *("kronsum", "laplacian", "sum"),
    called="hermitian",
    how="an Eigen by `eigh`, Hermitian ones; of A + c I by A's",
    cost="that of eigh",
    asks=_eigh_asks,
)
def _(op: Any, how: Any) -> Any:
    if not has_basis(op):
        return NotImplemented
    w, q = _basis(op)
    cut = np.asarray(_relative(how, op) * np.abs(w).max(axis=-1))[..., None]
    return _core.Eigen(q, _reciprocals(w, cut))


# -- least squares, null spaces, ranges --


@frames.row(
    *("kronsum", "laplacian", "sum"),
    called="hermitian",
    how="by `eigh`, Hermitian ones; of A + c I by A's",
    cost="that of eigh",
    asks=_eigh_asks,
)
def _(op: Any, want: str) -> Any:
    if not has_basis(op):
        return NotImplemented
    found = of_basis(*_basis(op))
    return found.u, found.s, found.v


# -- norms and condition by singular values that a structure has --


def _values_asks(op: Any, order: Any) -> Any:
    known = order in (2, -2, "nuc") and (op._head != "sum" or _eigh_asks(op) is not None)
    return [("svdvals", op)] if known else None


@norm.row(
    *("sum", "lowrankupdate", "congruence", "power"),
    called="by-svdvals",
    how="2, -2 and nuc from `svdvals`, of A + c I too; the others as of a dense form",
    cost="`svdvals`",
    asks=_values_asks,
)
def _(op: Any, order: Any) -> Any:
    if order not in (2, -2, "nuc") or (op._head == "sum" and not has_basis(op)):
        return NotImplemented
    return norm_of_values(svdvals(op), order)


@cond.row(
    *("sum", "lowrankupdate", "congruence", "power", "toeplitz", "hankel"),
    called="by-svdvals",
    how="2 and -2 from `svdvals`, of A + c I too; the others as of a dense form",
    cost="`svdvals`",
    asks=_values_asks,
)
def _(op: Any, p: Any) -> Any:
    if p not in (2, -2) or (op._head == "sum" and not has_basis(op)):
        return NotImplemented
    return cond_of_values(svdvals(op), p)
