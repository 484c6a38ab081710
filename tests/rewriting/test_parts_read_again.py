"""A value that is written straight into a larger one, as a corner of a Block is, and that something
else reads which counts on C order: a product by a Kron."""

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl


def drawn(rng, dtype, *shape):
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def beside(rng, dtype, n):
    """n rows, by kinds whose products have loops of their own; views of them too."""
    half = n // 2
    dense = [drawn(rng, dtype, 2, 2), drawn(rng, dtype, half, half)]
    kron = pl.Kron(*dense)
    tri = pl.BlockTridiagonal(*(drawn(rng, dtype, k, half, half) for k in (1, 2, 1)))
    few = np.where(rng.random((n, n)) < 0.4, drawn(rng, dtype, n, n), dtype(0))
    sparse = pl.Sparse(sp.csr_array(few))
    for one in (kron, tri, sparse):
        yield from (one, one.T, one.H, one.conj())


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.complex64])
@pytest.mark.parametrize("n", [2, 4, 8, 16])
def test_identities_in_corners(n, dtype):
    rng = np.random.default_rng(n)

    def dense(a, b):
        return pl.Dense(drawn(rng, dtype, a, b) / dtype(2 * n))

    m = n + 1
    last = pl.Dense(drawn(rng, dtype, m, m) + 3 * m * np.eye(m, dtype=dtype))
    tri = pl.Triangular(np.tril(drawn(rng, dtype, n, n)) + 3 * np.eye(n, dtype=dtype), lower=True)
    for one in beside(rng, dtype, n):
        for corner in (pl.Identity(n), tri, pl.inv(tri)):
            block = pl.Block([[corner, dense(n, m)], [dense(m, n), last]])
            other = pl.BlockDiag(one, dense(m, m))
            for A in (
                block + other,
                pl.inv(block) - other,
                pl.inv(block) + 2 * other.T,
                block @ other,
                pl.inv(block) + other @ block,
                pl.Block([[pl.Identity(n), one], [dense(m, n), dense(m, n)]]),
            ):
                w = A @ np.eye(A.shape[1], dtype=dtype)
                tol = 1e3 * np.finfo(dtype).eps * max(1, np.abs(w).max())
                np.testing.assert_allclose(A.toarray(), w, rtol=0, atol=tol)
                if A.shape[0] == A.shape[1]:
                    np.testing.assert_allclose(A.diagonal(), np.diag(w), rtol=0, atol=tol)
                    np.testing.assert_allclose(pl.trace(A), np.trace(w), rtol=0, atol=10 * tol)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_second_derivatives_beside_a_kron(dtype):
    rng = np.random.default_rng(5)
    shapes = ((4,), (4, 4), (4,), (4, 1), (4, 2), (4, 2))
    p, v = ([drawn(rng, dtype, *s) for s in shapes] for _ in range(2))

    def loss(d, C, s, W, U, V):
        X = pl.Diag(d) + pl.Kron(C, np.ones((1, 1)))
        t = pl.trace(X @ pl.inv(pl.Diag(s) + pl.LowRank(W)) @ pl.LowRank(U, V))
        return np.abs(t) ** 2

    every, h = tuple(range(6)), 1e-4
    got = pl.hvp(loss, every)(*p, tuple(v))
    at = {
        k: pl.grad(loss, every)(*(x + k * h * y for x, y in zip(p, v, strict=True)))
        for k in (-2, -1, 1, 2)
    }
    for i in every:
        due = (8 * (at[1][i] - at[-1][i]) - (at[2][i] - at[-2][i])) / (12 * h)
        np.testing.assert_allclose(got[i], due, rtol=0, atol=1e-7 * np.abs(due).max())
