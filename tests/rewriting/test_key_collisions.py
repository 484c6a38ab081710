"""Derived values of two plans are one only where they are the same: a factor kept for a matrix is
not taken for its transpose, or for other places of its blocks."""

import numpy as np
import pytest

import pylinop as pl


def _check(M, A, b):
    for op, want in ((A.H, M.conj().T), (A, M), (A.T, M.T), (A, M)):
        x = pl.solve(op, b)
        assert np.abs(want @ x - b).max() <= 1e-10 * np.abs(b).max(), op
        np.testing.assert_allclose(pl.inv(op).toarray() @ want, np.eye(len(M)), atol=1e-10)


@pytest.mark.parametrize("n", [15, 16, 17, 40])
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("base", ["Laplacian", "Dense", "Tridiagonal", "Diag"])
def test_sums_with_a_product_beside_their_transposes(n, dtype, base):
    """The product is added where the sum lies, from 16 rows on, also seen transposed."""
    rng = np.random.default_rng(n)

    def draw():
        a = rng.standard_normal((n, n)) / n
        return (a + 1j * rng.standard_normal((n, n)) / n).astype(dtype) if dtype is complex else a

    bases = {
        "Laplacian": pl.Laplacian((n,)),
        "Dense": pl.Dense(np.eye(n) + draw()),
        "Tridiagonal": pl.Tridiagonal(np.ones(n - 1), np.full(n, 4.0), np.ones(n - 1)),
        "Diag": pl.Diag(np.arange(1.0, n + 1)),
    }
    B, C, D = draw(), draw(), draw() + 3 * np.eye(n)
    b = rng.standard_normal((n, 2))
    E = draw() + 2 * np.eye(n)
    first = bases[base]
    for right in (pl.HadamardProduct(C, D), pl.Dense(C).T, pl.Dense(D)):
        for sign in (1, -1):
            A = first + sign * (pl.Dense(B) @ right)
            M = first.toarray() + sign * B @ right.toarray()
            _check(M @ E, A @ pl.Dense(E), b)
            _check(M, A, b)
            A = first + sign * (right @ pl.Dense(B))
            _check(first.toarray() + sign * right.toarray() @ B, A, b)


@pytest.mark.parametrize("n", [6, 20])
def test_blocks_in_other_places(n):
    rng = np.random.default_rng(n)
    parts = [rng.standard_normal((n, n)) + (i == 0) * 9 * np.eye(n) for i in range(3)]
    a, c, d = map(pl.Dense, parts)
    e = pl.Dense(parts[0] + 5 * np.eye(n))
    b = rng.standard_normal(2 * n)
    for A in (pl.Block([[a, c], [d, e]]), pl.Block([[a, d], [c, e]]), pl.Block([[e, c], [d, a]])):
        M = A.toarray()
        for op, want in ((A, M), (A.T, M.T)):
            np.testing.assert_allclose(want @ pl.solve(op, b), b, atol=1e-10 * np.abs(b).max() * n)


@pytest.mark.parametrize("batch", [1, 2, 3, 4, 5, 8, 9, 17])
@pytest.mark.parametrize(("n", "k"), [(7, 2), (6, 1), (9, 3), (20, 4), (30, 6)])
def test_factors_of_a_stack_and_of_each_matrix(batch, n, k):
    """Small matrices of a stack are factored side by side; where another plan wants each factor by
    itself, that is another value, of as many bytes in a stack of three."""
    rng = np.random.default_rng(batch)
    d, U = 3 + rng.random(n), rng.standard_normal((batch, n, k))
    b = rng.standard_normal((batch, n, 1))
    dense = np.diag(d) + U @ np.swapaxes(U, 1, 2)
    asked = {
        "solve": (lambda K: pl.solve(K, b), np.linalg.solve(dense, b)),
        "slogdet": (lambda K: pl.slogdet(K)[1], np.linalg.slogdet(dense)[1]),
        "diagonal": (
            lambda K: pl.diagonal(pl.inv(K)),
            np.linalg.diagonal(np.linalg.inv(dense)),
        ),
    }
    for order in (list(asked), list(asked)[::-1], ["slogdet", "solve", "diagonal"]):
        K = pl.Diag(d.copy()) + pl.LowRank(U.copy())
        for name in order:
            ask, wanted = asked[name]
            np.testing.assert_allclose(ask(K), wanted, rtol=1e-10, atol=1e-12)
