"""Woodbury's small matrix where the update is its own adjoint: half a product and Cholesky, LU
where that fails, of a real diagonal in one pass over the update; else a product and LU."""

import numpy as np
import pytest

import pylinop as pl

N = 200


def drawn(rng, dtype, *shape):
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype is complex else x).astype(dtype)


def names(ask):
    with pl.explaining() as e:
        value = ask()
    return value, {s["name"] for p in e.plans for s in p.steps if "only where" not in str(s)}


def forms(d, u):
    big = pl.Dense(u)
    return {
        "LowRank": pl.Diag(d) + pl.LowRank(u),
        "written out": pl.Diag(d) + big @ big.H,
        "multiple": pl.Diag(d) + 0.5 * (big @ big.H),
        "multiple of LowRank": pl.Diag(d) + 0.5 * pl.LowRank(u),
    }


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("k", [3, 15, 16, 40])
@pytest.mark.parametrize("form", list(forms(np.ones(2), np.ones((2, 1)))))
def test_the_small_matrix_goes_by_cholesky(rng, form, k, dtype):
    a = forms(1 + rng.random(N), drawn(rng, dtype, N, k))[form]
    b = drawn(rng, dtype, N, 2)
    x, used = names(lambda: pl.solve(a, b))
    assert "potrf" in used and "weighted-gram" in used
    np.testing.assert_allclose(x, np.linalg.solve(a.toarray(), b), rtol=1e-8, atol=1e-10)
    got, used = names(lambda: pl.slogdet(a))
    assert "potrf" in used
    np.testing.assert_allclose(got, np.linalg.slogdet(a.toarray()), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("k", [3, 15, 16, 40])
def test_half_a_product_beside_what_is_no_diagonal(rng, k, dtype):
    low, c = drawn(rng, dtype, N - 1), np.full(N, 5.0, dtype)
    base = pl.Banded((1, 1), np.stack([np.r_[0, low.conj()], c, np.r_[low, 0]]), assume_a="her")
    a = base + pl.LowRank(drawn(rng, dtype, N, k))
    b = drawn(rng, dtype, N, 2)
    x, used = names(lambda: pl.solve(a, b))
    assert "potrf" in used
    assert ("gemm-half" in used) == (k >= 16)
    np.testing.assert_allclose(x, np.linalg.solve(a.toarray(), b), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("k", [3, 40])
def test_what_is_indefinite_is_right_too(rng, k):
    d = np.where(np.arange(N) % 2, 1.0, -1.0) * (1 + rng.random(N))
    a = pl.Diag(d) + pl.LowRank(rng.standard_normal((N, k)))
    b = rng.standard_normal((N, 2))
    np.testing.assert_allclose(
        pl.solve(a, b), np.linalg.solve(a.toarray(), b), rtol=1e-7, atol=1e-9
    )
    np.testing.assert_allclose(pl.slogdet(a), np.linalg.slogdet(a.toarray()), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("k", [3, 40])
def test_what_is_not_its_own_adjoint_goes_by_lu(rng, k):
    u, d = rng.standard_normal((N, k)), 3 + rng.random(N)
    complex_diagonal = pl.Diag(d + 0.5j) + pl.LowRank(u)
    two_sides = pl.Diag(d) + pl.LowRank(u, 0.1 * rng.standard_normal((N, k)))
    middle = pl.Diag(d) + pl.LowRank(u, C=np.triu(rng.standard_normal((k, k))))
    b = rng.standard_normal((N, 2))
    for a in (complex_diagonal, two_sides, middle):
        x, used = names(lambda a=a: pl.solve(a, b))
        assert "getrf" in used and "gemm-half" not in used
        np.testing.assert_allclose(x, np.linalg.solve(a.toarray(), b), rtol=1e-7, atol=1e-9)
