"""What is singular by how it is written is told so, not solved with rounding errors."""

import numpy as np
import pytest

import pylinop as pl

rng = np.random.default_rng(0)
U, V = rng.standard_normal((6, 2)), rng.standard_normal((6, 2))
D, E = pl.Dense(U), pl.Dense(V)
DEFICIENT = {
    "thin product": (D @ D.T, 2),
    "sum of two": (D @ D.T + 3 * (E @ D.T), 4),
    "low rank": (pl.LowRank(U), 2),
    "transposed sum": ((D @ E.T + E @ E.T).T, 4),
    "blocks": (pl.BlockDiag(D @ D.T, np.eye(2)), 4),
    "oblong blocks": (pl.BlockDiag(U, V.T), 4),
    "Kronecker": (pl.Kron(D @ D.T, np.eye(2)), 4),
    "oblong Kronecker": (pl.Kron(U, V.T), 4),
    "ones": (pl.Full((4, 4), 2.0), 1),
    "zeros": (pl.Zeros((3, 3)), 0),
    "inner": (pl.Identity(6) @ (2 * (D @ E.T)) @ pl.Diag(np.arange(1.0, 7)), 2),
}


@pytest.mark.parametrize("name", DEFICIENT)
def test_it_is_singular(name):
    A, rank = DEFICIENT[name]
    n = A.shape[0]
    for f in (lambda: pl.solve(A, np.ones(n)), lambda: pl.inv(A) @ np.ones((n, 2))):
        with pytest.raises(np.linalg.LinAlgError, match=r"rank at most \d+, of \d+ rows"):
            f()
    assert pl.det(A) == 0 and pl.logdet(A) == -np.inf
    assert pl.matrix_rank(A) <= rank


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_by_lazy_arrays_and_batches(dtype):
    u = rng.integers(-3, 4, (5, 6, 2)).astype(dtype)
    x = pl.Dense(u)
    with pytest.raises(np.linalg.LinAlgError, match="rank at most 2, of 6 rows"):
        pl.solve(x @ x.mT if hasattr(x, "mT") else x @ x.H, np.ones((6, 1)))
    y = pl.lazy(u[0])
    with pytest.raises(np.linalg.LinAlgError, match="rank at most 2, of 6 rows"):
        np.asarray(pl.inv(y @ y.T) @ np.ones(6))


def test_what_may_be_regular_is_solved():
    for A in (D @ D.T + pl.Identity(6), D.T @ D, D @ D.T + E @ E.T + pl.LowRank(U + V**2)):
        n = A.shape[0]
        want = np.linalg.solve(A.toarray(), np.ones(n))
        np.testing.assert_allclose(pl.solve(A, np.ones(n)), want, rtol=1e-6)
