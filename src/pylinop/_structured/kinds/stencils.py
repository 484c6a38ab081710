"""Functions of a `Laplacian`: sines, cosines and their eigenvalues along the axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ..._base.dtypes import inexact
from ..eigh import eigenbasis
from ..norms import sums
from ..questions import eigvalsh, svdvals
from ..singular_values import descending, vector_room
from ..unitary import hartley, sine

# -- singular values, norms, eigenvalues --


@svdvals.row("laplacian", how="moduli of its eigenvalues", cost="that of `eigvalsh`")
def _(op: Any) -> Any:
    return descending(np.abs(eigvalsh(op, "L")))


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


# -- norms --


@sums.row("laplacian")
def _(op: Any, axis: int) -> Any:
    if op._init is None:
        return NotImplemented
    vector_room(op)
    s = np.zeros(1)
    for n, bc in axes_of(op):
        one = np.full(n, 4.0 if n > 1 or bc == "dirichlet" else 0.0)
        less = {"dirichlet": 1.0, "neumann": 2.0 if n > 1 else 0.0, "periodic": 0.0}[bc]
        one[:1] -= less
        one[-1:] -= less
        s = np.add.outer(s, one).ravel()
    return s


# -- eigh --


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
