"""f(A) b by Krylov spaces beside f of the dense form: its error is within the tolerance."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

import pylinop as pl


def normal(rng, *shape, dtype=np.float64):
    a = rng.standard_normal(shape)
    return (a + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else a).astype(dtype)


def spectral(a, f):
    w, q = np.linalg.eigh(a)
    return (q * f(w)) @ q.conj().T


def sparse(rng, n, dtype=np.float64):
    a = sp.random_array((n, n), density=min(1.0, 4 / n), rng=rng, format="csr").astype(dtype)
    if np.dtype(dtype).kind == "c":
        a = a * (1 + 0.5j)
    return (a + a.conj().T + 6 * sp.eye_array(n)).tocsr()


FUNCTIONS = {
    "sqrt": np.sqrt,
    "log": np.log,
    "exp": np.exp,
    "cos": np.cos,
    "root": lambda w: 1 / np.sqrt(w),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 100, 400])
def test_hermitian(n, dtype, name, rng):
    f = FUNCTIONS[name]
    S = sparse(rng, n, dtype)
    a = S.toarray()
    F = spectral(a, f)
    for b in (normal(rng, n, dtype=dtype), normal(rng, n, 2)):
        want = F @ b
        for A, how in ((pl.Sparse(S), {}), (pl.Dense(a), {"hermitian": True}), (S, {})):
            got = pl.funm_multiply(A, f, b, **how)
            assert got.shape == b.shape and got.dtype == want.dtype
            assert np.linalg.norm(got - want) <= 1e-9 * np.linalg.norm(want)


@pytest.mark.parametrize("n", [2, 17, 60])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_others(n, dtype, rng):
    a = normal(rng, n, n, dtype=dtype) / (2 * n**0.5) + 3 * np.eye(n)
    b = normal(rng, n, dtype=dtype)
    for f, want in (
        (np.exp, scipy.linalg.expm(a)),
        (np.sqrt, scipy.linalg.sqrtm(a)),
        (np.log, scipy.linalg.logm(a)),
    ):
        got = pl.funm_multiply(pl.Dense(a), f, b)
        np.testing.assert_allclose(got, want @ b, rtol=0, atol=1e-9 * np.abs(want @ b).max())
        assert got.dtype == a.dtype


def test_by_structure(rng):
    """Where f(A) is at hand there are no products, and no tolerance."""
    r = normal(rng, 40)
    ring = pl.Circulant(r + np.roll(r[::-1], 1) + 30 * (np.arange(40) == 0))
    for A in (pl.Diag(rng.uniform(1, 2, 40)), ring, pl.Laplacian((5, 8)) - 30.0 * pl.Identity(40)):
        b = normal(rng, 40)
        want = spectral(A.toarray(), np.cos) @ b
        np.testing.assert_allclose(pl.funm_multiply(A, np.cos, b, maxiter=1), want, atol=1e-11)


def test_no_dense_form(rng):
    n = 20_000
    A = pl.Tridiagonal(np.ones(n - 1), np.full(n, 4.0), np.ones(n - 1))
    b = normal(rng, n)
    with pl.config(memory_limit=80_000_000):
        x = pl.funm_multiply(A, np.sqrt, pl.funm_multiply(A, np.sqrt, b))
        with pytest.raises(pl.MaterializationError, match="a basis of 5000 vectors"):
            pl.funm_multiply(A, np.sqrt, b, maxiter=5000)
    np.testing.assert_allclose(x, A @ b, atol=1e-8 * np.abs(b).max())


def test_callables_and_single_precision(rng):
    a = sparse(rng, 50).toarray()
    b = normal(rng, 50)
    A = pl.MatVec(a.shape, lambda x: a @ x, dtype=float)
    want = spectral(a, np.sqrt) @ b
    np.testing.assert_allclose(pl.funm_multiply(A, np.sqrt, b, hermitian=True), want, atol=1e-8)
    single = pl.funm_multiply(a.astype(np.float32), np.sqrt, b.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, want, rtol=0, atol=1e-4 * np.abs(want).max())
    np.testing.assert_array_equal(
        pl.funm_multiply(a, np.sqrt, np.zeros((50, 2))), np.zeros((50, 2))
    )
    assert pl.funm_multiply(np.zeros((0, 0)), np.sqrt, np.zeros(0)).shape == (0,)


def test_what_does_not_converge(rng):
    """The best of what there is comes with the error, whose estimate is of the error's size."""
    n = 300
    w = np.geomspace(1e-6, 1, n)
    q, _ = np.linalg.qr(normal(rng, n, n))
    a = (q * w) @ q.T
    a = (a + a.T) / 2
    b = normal(rng, n)
    with pytest.raises(pl.ConvergenceError, match="after 20 products, rtol is 1e-10") as caught:
        pl.funm_multiply(pl.Dense(a), np.sqrt, b, hermitian=True, maxiter=20)
    want = spectral(a, np.sqrt) @ b
    error = np.linalg.norm(caught.value.best - want) / np.linalg.norm(want)
    assert caught.value.iterations == 20
    assert error / 30 < caught.value.residual < 30 * error


def test_refusals(rng):
    a = normal(rng, 30, 30)
    b = normal(rng, 30)
    with pytest.raises(np.linalg.LinAlgError, match="is not Hermitian"):
        pl.funm_multiply(pl.Dense(a), np.cos, b, hermitian=True)
    with pytest.raises(np.linalg.LinAlgError, match="one square matrix"):
        pl.funm_multiply(np.ones((2, 3)), np.cos, b)
    with pytest.raises(ValueError, match=r"b must be \(30,\)"):
        pl.funm_multiply(a, np.cos, np.ones(4))
    with pytest.raises(ValueError, match="rtol must be"):
        pl.funm_multiply(a, np.cos, b, rtol=0)
    with pytest.raises(ValueError, match="maxiter must be"):
        pl.funm_multiply(a, np.cos, b, maxiter=0)
    with np.errstate(all="ignore"), pytest.raises(np.linalg.LinAlgError, match="not finite"):
        pl.funm_multiply(a + a.T, lambda w: 1 / (w - w), b, hermitian=True)


def test_bases_are_as_before(rng):
    a = normal(rng, 20, 20)
    V, H = pl.arnoldi(a, normal(rng, 20), 6)
    np.testing.assert_allclose(a @ V[:, :6], V @ H, atol=1e-12)
    V, alpha, beta = pl.lanczos(a + a.T, normal(rng, 20), 20)
    assert len(alpha) == 20 and beta[-1] == 0


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_the_default_error_is_within_the_precision(dtype, rng):
    n = 400
    A = pl.Tridiagonal(np.ones(n - 1, dtype), np.full(n, 4, dtype), np.ones(n - 1, dtype))
    b = normal(rng, n).astype(dtype)
    twice = pl.funm_multiply(A, np.sqrt, pl.funm_multiply(A, np.sqrt, b))
    assert twice.dtype == dtype
    np.testing.assert_allclose(twice, A @ b, rtol=0, atol=1e-4)


def test_a_function_that_is_not_met_yet_has_not_converged():
    """Zero at the values of two small bases is no result."""
    n = 2000
    T = pl.Tridiagonal(np.ones(n - 1), np.full(n, 4.0), np.ones(n - 1))
    with pytest.raises(pl.ConvergenceError, match="inf"):
        pl.funm_multiply(T, lambda w: (w > 5.99999) * 1.0, np.eye(n, 1)[:, 0])
    small = pl.Tridiagonal(np.ones(19), np.full(20, 4.0), np.ones(19))  # the whole space
    assert not pl.funm_multiply(small, lambda w: 0 * w, np.ones(20)).any()


@pytest.mark.parametrize(
    ("error", "words", "given"),
    [
        (TypeError, "must be numbers", {"b": np.array([None] * 9)}),
        (TypeError, "must be numbers", {"b": ["a"] * 9}),
        (TypeError, "func must be a function", {"func": "sqrt"}),
        (TypeError, "integer", {"maxiter": 1.5}),
        (ValueError, "rtol must be", {"rtol": 2.0}),
        (ValueError, "rtol must be", {"rtol": np.nan}),
    ],
)
def test_what_is_not_taken(error, words, given):
    A = pl.Tridiagonal(np.ones(8), np.full(9, 4.0), np.ones(8))
    how = {"func": np.sqrt, "b": np.ones(9), **given}
    with pytest.raises(error, match=words):
        pl.funm_multiply(A, how.pop("func"), how.pop("b"), **how)


@pytest.mark.parametrize("A", [pl.Diag([0.0, 1.0]), pl.Laplacian((5, 6), "neumann")])
def test_values_that_are_not_finite_by_structure(A):
    with np.errstate(all="ignore"), pytest.raises(np.linalg.LinAlgError, match="not finite"):
        pl.funm_multiply(A, lambda w: 1 / np.abs(np.round(w, 9)), np.ones(A.shape[0]))
