"""Systems with Laplacians of grids that have axes of one point: the band is as wide as the next
axis makes it."""

import numpy as np
import pytest

import pylinop as pl


@pytest.mark.parametrize("kind", ["neumann", "dirichlet", "periodic"])
@pytest.mark.parametrize(
    "grid", [(11,), (1, 11), (1, 1, 11), (1, 4, 3), (1, 2, 5), (2, 1, 7), (3, 1, 4), (1, 1), (2, 6)]
)
def test_shifted_laplacian_solves(kind, grid):
    laplacian = pl.Laplacian(grid, kind)
    n = laplacian.shape[0]
    dense = np.zeros((n, n))
    for at in np.ndindex(*grid):  # by the definition, a neighbour at a time
        row = np.ravel_multi_index(at, grid)
        for axis, size in enumerate(grid):
            for step in (-1, 1):
                to = list(at)
                to[axis] += step
                if kind == "periodic":
                    to[axis] %= size
                elif not 0 <= to[axis] < size:
                    dense[row, row] -= kind == "dirichlet"
                    continue
                dense[row, row] -= 1
                dense[row, np.ravel_multi_index(to, grid)] += 1
    b = np.arange(1.0, n + 1)
    shifted = laplacian + 18 * pl.Identity(n)
    np.testing.assert_allclose(shifted.toarray(), dense + 18 * np.eye(n), rtol=0, atol=0)
    x = pl.solve(shifted, b)
    want = np.linalg.solve(dense + 18 * np.eye(n), b)
    np.testing.assert_allclose(x, want, rtol=1e-13 * n, atol=0)
    sign, log = pl.slogdet(shifted)
    assert sign == 1
    np.testing.assert_allclose(log, np.linalg.slogdet(dense + 18 * np.eye(n))[1], rtol=1e-13)
