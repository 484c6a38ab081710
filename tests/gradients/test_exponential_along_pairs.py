"""The derivative of exp along a pair of few columns, by products, beside SciPy's of dense forms."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from gradients.differences import check, check_second

import pylinop as pl
from pylinop._eigen import exponential_action, exponential_derivative


def drawn(rng, dtype, *shape):
    a = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal(shape)
    return a.astype(dtype)


def operators(n, dtype, rng):
    d, e = drawn(rng, dtype, n), drawn(rng, dtype, n - 1)
    S = scipy.sparse.random_array((n, n), density=3 / n, rng=rng, format="csr").astype(dtype)
    return {
        "line": pl.Tridiagonal(e, d, drawn(rng, dtype, n - 1)),
        "hermitian line": pl.Tridiagonal(e, d.real.astype(dtype), e.conj()),
        "scattered": pl.Sparse(S) + pl.Diag(d),
        "symmetric": pl.Sparse(scipy.sparse.csr_array(S + S.conj().T)),
    }


@pytest.mark.parametrize("dtype", [np.float64, complex, np.float32])
@pytest.mark.parametrize("n, k", [(100, 1), (100, 3), (160, 2), (300, 1)])
def test_against_dense_forms(n, k, dtype, rng, monkeypatch):
    """Whatever it costs."""
    monkeypatch.setattr(exponential_action, "_WORTH", 0.0)
    monkeypatch.setattr(exponential_action, "_GAIN", 1e9)
    found = 0
    for name, A in operators(n, dtype, rng).items():
        u, v = drawn(rng, dtype, n, k), drawn(rng, dtype, n, k)
        for scale in (1e-3, 0.3, 2.0):
            B = scale * A
            got = exponential_derivative.along_pair(B, u, v, pl.expm, "expm")
            wide = np.result_type(dtype, np.float64)
            dense = B.toarray().astype(wide).conj().T
            pair = u.astype(wide) @ v.astype(wide).conj().T
            wanted = scipy.linalg.expm_frechet(dense, pair, compute_expm=False)
            if isinstance(got, pl.LowRank):
                found += 1
                got = got.toarray()
            bound = 4e-6 if dtype == np.float32 else 1e-12
            assert np.abs(got - wanted).max() <= bound * np.abs(wanted).max(), (name, scale)
    assert found > 3


def test_what_is_not_finite_goes_by_the_dense_form(rng):
    A = pl.Tridiagonal(*(drawn(rng, float, n) for n in (299, 300, 299)))
    u = drawn(rng, float, 300, 1)
    u[3] = np.nan
    with np.errstate(invalid="ignore"):
        got = exponential_derivative.along_pair(A, u, u, pl.expm, "expm")
    assert isinstance(got, np.ndarray) and np.isnan(got).all()


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("n", [99, 100, 101, 230])
def test_gradients_by_all_parameters(n, dtype, rng, monkeypatch):
    monkeypatch.setattr(exponential_action, "_WORTH", 0.0)
    x, y = drawn(rng, dtype, n), drawn(rng, dtype, n)

    def loss(e, d, x):
        L = pl.Tridiagonal(e, d, 0.5 * e)
        return np.sum(np.abs(pl.expm(0.3 * L) @ x - y) ** 2)

    args = 0.3 * drawn(rng, dtype, n - 1), 0.3 * drawn(rng, dtype, n), x
    check(loss, *args, rtol=1e-7)
    check_second(loss, *args, rtol=1e-5)


def test_numbers_of_single_precision_beside_double(rng):
    n = 200
    e, d = (drawn(rng, np.float32, k) for k in (n - 1, n))
    x = drawn(rng, float, n)
    f = lambda e, d: np.sum((pl.expm(pl.Tridiagonal(e, d, e)) @ x) ** 2)
    got, wide = pl.grad(f, (0, 1))(e, d), pl.grad(f, (0, 1))(e.astype(float), d.astype(float))
    for g, w in zip(got, wide, strict=True):
        assert g.dtype == np.float32
        np.testing.assert_allclose(g, w, rtol=3e-5, atol=3e-6 * np.abs(w).max())
