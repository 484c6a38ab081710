"""Diagonals and traces of products of what is sparse by how it is written: no n x n array."""

import numpy as np
import pytest
import scipy.sparse as sp
from gradients.differences import check

import pylinop as pl


def drawn(rng, n, dtype, per_row=3):
    k = per_row * n
    a = rng.standard_normal(k)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal(k)
    places = rng.integers(0, n, k), rng.integers(0, n, k)
    return sp.csr_array(sp.coo_array((a, places), shape=(n, n)).astype(dtype))


def spelled(rng, n, dtype):
    """Pairs of an operator and its dense form."""
    w, v = (drawn(rng, n, dtype) for _ in range(2))
    d = rng.standard_normal(n).astype(dtype)
    W, V, D, Eye = pl.Sparse(w), pl.Sparse(v), pl.Diag(d), pl.Identity(n)
    w, v, d, eye = w.toarray(), v.toarray(), np.diag(d), np.eye(n, dtype=dtype)
    r = np.dtype(dtype).type(0.3)
    A, a = Eye - r * W, eye - r * w
    yield A.T @ A, a.T @ a
    yield A.H @ A, a.conj().T @ a
    yield A @ (V.H @ A), a @ (v.conj().T @ a)
    yield (D + V) @ (2 * W @ V), (d + v) @ (2 * w @ v)
    yield (A @ (V + D)).H, (a @ (v + d)).conj().T
    yield W.H @ A, w.conj().T @ a


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("n", [5, 399, 400, 700])
def test_beside_dense(n, dtype):
    rng = np.random.default_rng(n)
    eps = np.finfo(dtype).eps
    with pl.config(verify=True, check_plans=True):
        for B, b in spelled(rng, n, dtype):
            wide = b.astype("c16" if b.dtype.kind == "c" else "f8")
            size = np.abs(wide).max()
            np.testing.assert_allclose(
                B.diagonal(), np.diagonal(wide), atol=40 * eps * size, rtol=0
            )
            atol = 40 * eps * size * n
            np.testing.assert_allclose(B.trace(), np.trace(wide), atol=atol, rtol=0)
            assert B.diagonal().dtype == B.dtype


def test_small_numbers_are_not_lost():
    """(1 - r w)^2, not 1 - 2 r w + (r w)^2."""
    n = 600
    w = sp.csr_array(sp.eye_array(n) + 1e-9 * drawn(np.random.default_rng(1), n, "f8", 1))
    A = pl.Identity(n) - 1.0 * pl.Sparse(w)
    a = np.eye(n) - w.toarray()
    np.testing.assert_allclose((A.T @ A).diagonal(), (a * a).sum(axis=0), rtol=1e-13)


def test_nothing_of_n_rows_is_made_and_what_is_not_finite_stays():
    n = 5000
    rng = np.random.default_rng(2)
    w = drawn(rng, n, "f8")
    with pl.config(memory_limit=n * n):
        A = pl.Identity(n) - 0.5 * pl.Sparse(w)
        a = sp.csr_array(sp.eye_array(n) - 0.5 * w)
        np.testing.assert_allclose((A.T @ A).diagonal(), (a * a).sum(axis=0), rtol=1e-13)
        np.testing.assert_allclose((A.T @ A).trace(), (a * a).sum(), rtol=1e-13)
    w.data[7] = np.nan
    A = pl.Identity(n) - 0.5 * pl.Sparse(w)
    assert np.isnan((A.T @ A).diagonal()).sum() == 1


def test_gradients_of_autoregressions():
    """logdet and quadratic form of s inv(A.T A) + t I, A = I - r W."""
    rng = np.random.default_rng(3)
    n = 420
    w = abs(drawn(rng, n, "f8"))
    W = pl.Sparse(sp.csr_array(sp.diags_array(1 / (0.1 + w.sum(axis=1))) @ w))
    y = rng.standard_normal(n)

    def f(r, s, t):
        A = pl.Identity(n) - r * pl.lazy(W)
        C = s * pl.inv(A.T @ A) + t * pl.Identity(n)
        return pl.logdet(C) + y @ pl.solve(C, y)

    at = [np.array(x) for x in (0.6, 1.2, 0.4)]
    with pl.config(check_plans=True):
        check(f, *at, rtol=1e-9)
        found = pl.grad(f, (0, 1, 2))(*at)
    w = W.toarray()
    a = np.eye(n) - 0.6 * w
    inner = np.linalg.inv(a.T @ a)
    c = 1.2 * inner + 0.4 * np.eye(n)
    x = np.linalg.solve(c, y)
    G = np.linalg.inv(c) - np.outer(x, x)
    by_r = np.trace(G @ (1.2 * inner @ (w.T @ a + a.T @ w) @ inner))
    np.testing.assert_allclose(found, [by_r, np.trace(G @ inner), np.trace(G)], rtol=1e-9)


def test_singular_autoregression():
    """What is singular is told, also where its inverse is only looked at."""
    n = 450
    ring = sp.csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    A = pl.Identity(n) - 1.0 * pl.Sparse(ring)
    with pytest.raises(np.linalg.LinAlgError):
        pl.inv(pl.inv(A.T @ A) + 0.5 * pl.Identity(n)).diagonal()
