"""Cholesky factors of sparse matrices stay sparse, and are NumPy's."""

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl
from pylinop import _core

N = 450


def definite(rng, dtype="f8", n=N):
    b = sp.random_array((n, n), density=0.004, rng=rng).astype(dtype)
    b = b * (1 + 0.5j) if dtype[0] == "c" else b
    return (b @ b.conj().T + 2 * sp.eye_array(n)).tocsr().astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_the_factor_is_that_of_numpy(dtype, form, rng):
    a = definite(rng, dtype)
    want = np.linalg.cholesky(a.toarray())
    near = {"rtol": 0, "atol": 50 * np.finfo(dtype).eps}
    A = pl.Sparse(a.asformat(form))
    L, U = pl.cholesky(A), pl.cholesky(A, upper=True)
    assert type(L).__name__ == "SparseTriangular" and L.dtype == np.dtype(dtype)
    np.testing.assert_allclose(L.toarray(), want, **near)
    np.testing.assert_allclose(U.toarray(), want.conj().T, **near)
    x = rng.normal(size=N).astype(dtype)
    np.testing.assert_allclose(L @ (L.H @ x), a @ x, rtol=0, atol=5000 * np.finfo(dtype).eps)
    np.testing.assert_allclose(pl.cholesky(A.T).toarray(), want.conj(), **near)
    np.testing.assert_allclose(pl.cholesky(4 * A).toarray(), 2 * want, rtol=0, atol=1e-4)


def test_one_triangle_is_read(rng):
    a = definite(rng, "c16")
    want = np.linalg.cholesky(a.toarray())
    low, up = pl.Sparse(sp.tril(a)), pl.Sparse(sp.triu(a))
    np.testing.assert_allclose(pl.cholesky(low).toarray(), want, atol=1e-13)
    np.testing.assert_allclose(pl.cholesky(up, upper=True).toarray(), want.conj().T, atol=1e-13)


def test_sums_and_multiples_of_sparse_matrices(rng):
    a = definite(rng)
    d = rng.uniform(1, 2, N)
    A = pl.Sparse(a)
    for B in (
        A + pl.Identity(N),
        A + pl.Diag(d),
        pl.Diag(d) + 2 * A,
        A + A.T,
        -pl.Laplacian(N, "dirichlet"),
    ):
        L = pl.cholesky(B)
        assert type(L).__name__ == "SparseTriangular"
        np.testing.assert_allclose(L.toarray(), np.linalg.cholesky(B.toarray()), atol=1e-12)
    dense = A + pl.Dense(np.eye(N))
    assert type(pl.cholesky(dense)).__name__ == "Triangular"
    small = pl.Sparse(definite(rng, n=40))
    assert type(pl.cholesky(small)).__name__ == "Triangular"


def test_it_is_kept_and_made_anew(rng):
    a = definite(rng)
    A = pl.Sparse(a)
    for B in (A, A + pl.Identity(N), -1 * (-1 * A)):
        L = pl.cholesky(B)
        made = _core._store()["misses"]
        assert type(L).__name__ == "Scaled" or pl.cholesky(B) is L
        assert pl.cholesky(B).toarray().tobytes() == L.toarray().tobytes()
        assert _core._store()["misses"] == made
    a.data[a.indices == np.repeat(np.arange(N), np.diff(a.indptr))] += 1.0
    np.testing.assert_allclose(
        pl.cholesky(A).toarray(), np.linalg.cholesky(a.toarray()), atol=1e-12
    )


@pytest.mark.parametrize("value", [-1.0, 0.0, np.nan, np.inf])
def test_what_is_not_definite_raises(value, rng):
    a = definite(rng).tolil()
    a[7, 7] = value
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        pl.cholesky(pl.Sparse(a.tocsr()))
    a = definite(rng).tolil()
    a[8, 7] = a[7, 8] = 50 if np.isfinite(value) else value
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        pl.cholesky(pl.Sparse(a.tocsr()))


def test_complex_symmetric_is_not_hermitian(rng):
    a = definite(rng).astype(complex)
    a.setdiag(a.diagonal() + 1j)
    with pytest.raises(np.linalg.LinAlgError, match="not real"):
        pl.cholesky(pl.Sparse(a))


def test_fill_beyond_the_memory_limit_raises():
    n = 2000  # the first row is full: so is the factor
    a = sp.eye_array(n).tolil()
    a[0, 1:] = a[1:, 0] = 1e-3
    A = pl.Sparse(a.tocsr())
    with (
        pl.config(memory_limit=1 << 20),
        pytest.raises(pl.MaterializationError, match="in the order of its rows"),
    ):
        pl.cholesky(A)
    turned = pl.Sparse(a.tocsr()[::-1][:, ::-1])  # the last row: none
    with pl.config(memory_limit=1 << 20):
        L = pl.cholesky(turned)
    x = np.ones(n)
    np.testing.assert_allclose(L @ (L.T @ x), turned @ x, rtol=1e-12)


def test_draws_are_those_of_the_dense_form(rng):
    a = definite(rng)
    A = pl.Sparse(a)
    got = pl.sample(A, 3, rng=0)
    np.testing.assert_allclose(got, pl.sample(pl.Dense(a.toarray()), 3, rng=0), atol=1e-12)
    singular = pl.Sparse(sp.diags_array(np.r_[np.ones(N - 1), 0.0]).tocsr())
    assert pl.sample(singular, rng=0)[-1] == 0  # by eigenvectors, dense
    a = a.tolil()
    a[3, 4] = 9.0
    with pytest.raises(np.linalg.LinAlgError, match="not Hermitian"):
        pl.sample(pl.Sparse(a.tocsr()), rng=0)


@pytest.mark.parametrize("k", [5, 20, 23])
def test_negative_multiples_of_laplacians(k, rng):
    """Sparse from 400 rows on, in both functions, and priced so."""
    A = -2 * pl.Laplacian((k, k), "dirichlet", np.float64)
    a = A.toarray()
    np.testing.assert_allclose(pl.cholesky(A).toarray(), np.linalg.cholesky(a), atol=1e-12)
    got, want = (pl.sample(x, 2, rng=1) for x in (A, pl.Dense(a)))
    if k * k >= 400:
        np.testing.assert_allclose(got, want, atol=1e-12)
        with pl.config(memory_limit=a.nbytes):  # SuperLU's memory, but no dense form and its factor
            np.testing.assert_allclose(pl.sample(A, 2, rng=1), want, atol=1e-12)
    else:
        assert got.shape == want.shape
    for name in ("cholesky", "sample"):
        e = A.explain(name)
        assert (f"{name}-scaled" in e.fired) == (k * k >= 400)


def test_negative_multiples_that_are_not_definite(rng):
    A = -1 * pl.Sparse(definite(rng))
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        pl.cholesky(A)
    with pytest.raises(np.linalg.LinAlgError, match="not positive semidefinite"):
        pl.sample(A)
