"""Samples and eigenvalues of what is of a structure by how it is written: low rank whose factors
are given twice, thin products, sums that close to a Toeplitz."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl
from pylinop._structured import dispatch, square_roots

N, K = 60, 4


def operands(rng, dtype):
    U = rng.standard_normal((N, K)).astype(dtype)
    if np.dtype(dtype).kind == "c":
        U = U + 1j * rng.standard_normal((N, K))
    T = pl.Toeplitz(0.9 ** np.arange(N))
    D = pl.Diag(rng.uniform(1, 2, N))
    return U, D, T


WRITTEN = {
    "U given twice": lambda U, D, T: D + pl.LowRank(U, U),
    "U and a copy": lambda U, D, T: D + pl.LowRank(U, U.copy()),
    "an update": lambda U, D, T: pl.LowRankUpdate(D, U, U),
    "a product": lambda U, D, T: D + pl.Dense(U) @ pl.Dense(U).H,
    "a product alone": lambda U, D, T: pl.Dense(U) @ pl.Dense(U).H,
    "low rank alone": lambda U, D, T: pl.LowRank(U, U),
    "a Toeplitz and a shift": lambda U, D, T: T + pl.Identity(N),
    "two of them": lambda U, D, T: T + 2 * T,
    "a Toeplitz and a product": lambda U, D, T: T + pl.LowRank(U, U),
}


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("name", WRITTEN)
def test_draws_need_no_dense_form(name, dtype, rng):
    A = WRITTEN[name](*operands(rng, dtype))
    M = np.asarray(A)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pl.explaining() as e:
            draws = pl.sample(A, 3, rng=3)
    run = {s["name"] for p in e.plans for s in p.steps if s["took"] is not None}
    assert not {"potrf", "sample-dense", "cholesky-dense", "todense"} & run
    assert draws.shape == (3, N)
    R = square_roots.root(A).toarray()
    np.testing.assert_allclose(R @ R.conj().T, M, rtol=0, atol=1e-12 * np.abs(M).max())


def test_others_are_no_squares(rng):
    """U V^H of another V, and products of three, have no such root."""
    U, D, _ = operands(rng, float)
    V = U + 1
    for A in (pl.LowRank(U, V), pl.Dense(U) @ pl.Dense(V).T, D + pl.LowRank(U, V)):
        with pytest.raises(np.linalg.LinAlgError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pl.sample(A, rng=0)


def test_sparse_factors_are_compared_as_they_are(rng):
    """Neither U nor V is made dense to see that they hold the same numbers."""
    u = sp.random_array((N, K), density=0.5, rng=7, format="csr")
    A = pl.LowRank(pl.Sparse(u), pl.Sparse(u.copy()))
    other = pl.LowRank(pl.Sparse(u), pl.Sparse(2 * u))
    with pl.explaining() as e:
        assert dispatch.mirrored(*A._given("U", "V"))
        assert not dispatch.mirrored(*other._given("U", "V"))
    assert not e.plans
    assert dispatch.mirrored(pl.Sparse(u), pl.Dense(u.toarray()))
    R = square_roots.root(A).toarray()
    np.testing.assert_allclose(R @ R.T, A.toarray(), rtol=0, atol=1e-13)
    with pytest.raises(np.linalg.LinAlgError):
        pl.cholesky(other)


@pytest.mark.parametrize("n", [1, 2, 3, 17])
def test_eigenvalues_of_closed_sums(n, rng):
    t = rng.standard_normal(n)
    for A in (
        pl.Toeplitz(t) + pl.Identity(n),
        pl.Toeplitz(t) + 2 * pl.Toeplitz(t[::-1].copy()),
        (pl.Toeplitz(t) + pl.Identity(n)).T,
    ):
        got = pl.eigvalsh(A)
        np.testing.assert_allclose(got, np.linalg.eigvalsh(np.asarray(A)), rtol=0, atol=1e-12)
    U = rng.standard_normal((n, 1))
    np.testing.assert_allclose(
        pl.eigvalsh(pl.LowRank(U, U)), np.linalg.eigvalsh(U @ U.T), rtol=0, atol=1e-12
    )
