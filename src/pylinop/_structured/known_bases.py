"""Functions of Hermitian operators whose eigenvectors are known by their structure: A = Q diag(w)
Q^H gives pseudo-inverses, frames, roots and condition numbers as well, in the cost of `eigh`.

Of a sum this is A + c I with an A of such a kind: Kron(K, L) + s I has Kron(Q_K, Q_L)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._base.dtypes import real_of
from .eigh import eigenbasis
from .least_squares import frames
from .pinv import _reciprocals, _relative
from .questions import pinv
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
