"""Diagonals and traces of inverses of what is singular by how it is written: an error, by whatever
way they would go."""

import numpy as np
import pytest

import pylinop as pl

MADE = {
    "a grid without edges": lambda: pl.Laplacian((6, 5), "neumann", dtype="f8"),
    "a larger one": lambda: pl.Laplacian((11, 8), "neumann", dtype="f8"),
    "periodic": lambda: pl.Laplacian((9, 12), "periodic", dtype="f8"),
    "one axis": lambda: pl.Laplacian((40,), "neumann", dtype="f8"),
    "large": lambda: pl.Laplacian((30, 30), "neumann", dtype="f8"),
    "a multiple": lambda: -2.0 * pl.Laplacian((11, 8), "neumann", dtype="f8"),
    "low rank": lambda: pl.LowRank(np.random.default_rng(0).standard_normal((30, 2))),
    "full": lambda: pl.Full((20, 20), 2.0),
}


@pytest.mark.parametrize("name", MADE)
def test_values_raise(name):
    A = MADE[name]()
    n = A.shape[0]
    D = pl.Diag(np.arange(1.0, n + 1))
    for of in (
        pl.inv(A),
        pl.inv(A) @ A,
        A @ pl.inv(A),
        pl.inv(A) @ pl.inv(A),
        pl.inv(A) @ D @ pl.inv(A),
        D @ pl.inv(A),
    ):
        for f in (pl.trace, pl.diagonal):
            with pytest.raises(np.linalg.LinAlgError):
                f(of)


def test_what_has_edges_does_not():
    for A in (
        -pl.Laplacian((11, 8), "dirichlet", dtype="f8"),
        pl.Identity(88) - pl.Laplacian((11, 8), "neumann", dtype="f8"),
    ):
        expected = np.linalg.inv(A.toarray())
        np.testing.assert_allclose(pl.trace(pl.inv(A)), np.trace(expected), rtol=1e-11)
        np.testing.assert_allclose(pl.diagonal(pl.inv(A)), np.diag(expected), rtol=1e-11)


@pytest.mark.parametrize("n", [2, 3, 8, 33, 64, 65])
def test_what_is_infinite_in_small_systems(n):
    """As LAPACK has it, at every size."""
    rng = np.random.default_rng(n)
    for row in (0, n // 2, n - 1):
        a, b = rng.standard_normal((n, n)), rng.standard_normal(n)
        a[row, 0] = np.inf
        with np.errstate(all="ignore"):
            expected = np.linalg.solve(a, b)
            found = pl.solve(pl.Dense(a), b)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)
