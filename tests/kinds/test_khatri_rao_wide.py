"""Products with Khatri-Rao operators on both sides of where the dense form is the smaller one."""

import numpy as np
import pytest

import pylinop as pl


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("k", [1, 3, 4, 5, 7, 8, 9, 11, 12, 13, 40])
def test_short_factors_times_wide_matrices(rng, m, k, dtype):
    a, b, x = (rng.standard_normal(s).astype(dtype) for s in ((m, 6), (5, 6), (6, k)))
    if dtype == "c16":
        a = a + 1j * b[:m]
    K = pl.KhatriRao(a, b)
    dense = np.einsum("ij,kj->ikj", a, b).reshape(-1, 6)
    tol = 1e-5 if dtype == "f4" else 1e-13
    np.testing.assert_allclose(K @ x, dense @ x, atol=tol)
    w = rng.standard_normal((len(dense), k)).astype(dtype)
    np.testing.assert_allclose(K.T @ w, dense.T @ w, atol=tol)
    np.testing.assert_allclose(K.H @ w, dense.conj().T @ w, atol=tol)
    np.testing.assert_allclose(K.conj() @ x, dense.conj() @ x, atol=tol)


def test_memory_is_that_of_the_dense_form():
    K = pl.KhatriRao(np.ones((2, 400)), np.ones((400, 400)))
    plan = K.explain("apply", np.ones((400, 400)))
    assert plan.memory < 4 * 8 * 2 * 400 * 400
