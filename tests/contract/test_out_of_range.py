"""Numbers near either end of the range: a result within it is found though a step is not."""

import numpy as np
import pytest

import pylinop as pl

RANGES = {"float64": (1e-310, 1e305), "complex128": (1e-310, 1e305)}
RANGES |= {"float32": (1e-40, 1e35), "complex64": (1e-40, 1e35)}


@pytest.mark.parametrize("dtype", list(RANGES))
@pytest.mark.parametrize("end", [0, 1])
@pytest.mark.parametrize("shape", [(7,), (64,), (4, 6)])
def test_circulant_solves(dtype, end, shape, rng):
    """Eigenvalues without reciprocals, or next to the largest number."""
    scale = RANGES[dtype][end]
    c = np.zeros(shape, dtype)
    c.flat[0] = 1
    c.flat[1:4] = 0.125, -0.25, 0.0625
    n = c.size
    A = pl.Circulant(c * np.dtype(dtype).type(scale), levels=len(shape))
    want = pl.Circulant(c, levels=len(shape)).toarray()
    small = 1e-3 if end == 0 else 1e-4 if np.finfo(dtype).eps > 1e-10 else 1e-9
    for k in (1, 5):
        x = rng.standard_normal((n, k)).astype(dtype)
        b = ((want @ x) * np.dtype(dtype).type(scale)).astype(dtype)
        for _ in range(2):
            np.testing.assert_allclose(pl.solve(A, b), x, rtol=0, atol=small * abs(x).max())
        np.testing.assert_allclose(pl.solve(A.H, A.H @ x), x, rtol=0, atol=small * abs(x).max())


@pytest.mark.parametrize("n", [1, 2, 3, 4, 15, 40])
@pytest.mark.parametrize("scale", [1e8, 1e80, 1e100, 1e150])
def test_determinant_of_large_updates(n, scale):
    """The bound of |A| that the check compares with is not the square of it; of one column nothing
    cancels, however the probe lies to it."""
    found = pl.slogdet(pl.LowRankUpdate(pl.Identity(n), scale * np.ones((n, 1))))
    assert found.sign == 1
    np.testing.assert_allclose(found.logabsdet, np.log(n) + 2 * np.log(scale), rtol=1e-14)


@pytest.mark.parametrize("scale", [1e-160, 1e-120, 1e120, 1e300])
def test_solves_with_updates_of_any_size(scale, rng):
    n = 40
    u = rng.standard_normal((n, 2))
    d = 1 + rng.random(n)
    A = pl.LowRankUpdate(pl.Diag(d * scale), u, C=scale * np.eye(2))
    want = np.diag(d) + u @ u.T
    x = pl.solve(A, scale * np.ones(n))
    np.testing.assert_allclose(x, np.linalg.solve(want, np.ones(n)), rtol=1e-9)
    found = pl.slogdet(A)
    np.testing.assert_allclose(
        found.logabsdet, np.linalg.slogdet(want)[1] + n * np.log(scale), rtol=1e-13
    )


SMALL = {"float64": -1040, "complex128": -1040, "float32": -140, "complex64": -140}


@pytest.mark.no_verify("the steps as written leave the range, where these do not")
@pytest.mark.parametrize("dtype", list(SMALL))
@pytest.mark.parametrize("n", [5, 40, 150])
def test_lu_of_subnormal_matrices(dtype, n, rng):
    """Pivots without reciprocals: LAPACK's own LU is off by a tenth there, or gives NaN."""
    small = np.dtype(dtype).type(2.0 ** SMALL[dtype])
    a = rng.integers(-8, 9, (n, n)) + 40 * n * np.eye(n)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.integers(-8, 9, (n, n))
    a = a.astype(dtype)
    A = pl.Dense(a * small)
    cases = [(A, a), (A.T, a.T), (A.H, a.conj().T), (A.conj(), a.conj())]
    if n < 100:
        cases.append((pl.Kron(a * small, np.eye(2, dtype=dtype)), np.kron(a, np.eye(2))))
    for B, b in cases:
        for k in (1, 2, 7):
            x = rng.integers(-3, 4, (len(b), k)).astype(dtype)
            got = pl.solve(B, (b @ x).astype(dtype) * small)
            # right sides have some 30 bits of double, 10 of single precision
            np.testing.assert_allclose(got, x, rtol=0, atol=1e-7 if SMALL[dtype] < -500 else 0.03)
    found = pl.slogdet(A)
    want = np.linalg.slogdet(a.astype(complex))[1] + n * SMALL[dtype] * np.log(2)
    np.testing.assert_allclose(found.logabsdet, want, rtol=1e-5)


@pytest.mark.no_verify("the steps as written leave the range, where these do not")
@pytest.mark.parametrize("dtype", list(SMALL))
@pytest.mark.parametrize("assume_a", ["sym", "her"])
@pytest.mark.parametrize("zeros", [False, True], ids=["full", "saddle"])
@pytest.mark.parametrize("n", [1, 2, 5, 40, 150])
def test_symmetric_matrices_of_subnormal_numbers(n, zeros, assume_a, dtype, rng):
    """By L D L^H: pivots of order one and two, without reciprocals of them."""
    small = np.dtype(dtype).type(2.0 ** SMALL[dtype])
    a = rng.integers(-8, 9, (n, n)).astype(complex)
    if np.dtype(dtype).kind == "c":
        a += 1j * rng.integers(-8, 9, (n, n))
    a = a + (a.conj().T if assume_a == "her" else a.T) + 40 * n * np.diag((-1.0) ** np.arange(n))
    if zeros and n > 1:
        k = n // 2
        a = np.zeros((n, n), complex)
        a[:k, n - k :] = 40 * n * np.eye(k) + rng.integers(-8, 9, (k, k))
        a += a.conj().T if assume_a == "her" else a.T
        a[k : n - k, k : n - k] = 100
    a = (a if np.dtype(dtype).kind == "c" else a.real).astype(dtype)
    A = pl.Dense(a * small, assume_a=assume_a)
    for shape in ((n,), (n, 1), (n, 5)):
        x = rng.integers(-3, 4, shape).astype(dtype)
        got = pl.solve(A, (a @ x).astype(dtype) * small)
        np.testing.assert_allclose(got, x, rtol=0, atol=1e-7 if SMALL[dtype] < -500 else 0.03)
    want = np.linalg.slogdet(a.astype(complex))
    found = pl.slogdet(A)
    np.testing.assert_allclose(found.logabsdet, want[1] + n * SMALL[dtype] * np.log(2), rtol=1e-5)
    np.testing.assert_allclose(found.sign, want[0], atol=1e-3)


@pytest.mark.no_verify("the steps as written leave the range, where these do not")
@pytest.mark.parametrize("dtype", list(SMALL))
@pytest.mark.parametrize("n", [1, 3, 40])
@pytest.mark.parametrize("lower, upper", [(0, 0), (1, 1), (2, 3), (1, 0)])
def test_bands_of_subnormal_numbers(dtype, n, lower, upper, rng):
    """What lies outside the matrix may be anything; solves, views and determinants."""
    small = np.dtype(dtype).type(2.0 ** SMALL[dtype])
    ab = rng.integers(-8, 9, (lower + upper + 1, n)).astype(dtype)
    if ab.dtype.kind == "c":
        ab += 1j * rng.integers(-8, 9, ab.shape)
    ab[upper] += 100
    a = pl.Banded((lower, upper), ab).toarray()
    with np.errstate(over="ignore"):
        ab *= small
    for k in range(1, upper + 1):
        ab[upper - k, :k] = np.nan
    A = pl.Banded((lower, upper), ab)
    for B, b in ((A, a), (A.T, a.T), (A.H, a.conj().T), (A.conj(), a.conj())):
        for shape in ((n,), (n, 4)):
            x = rng.integers(-3, 4, shape).astype(dtype)
            got = pl.solve(B, (b @ x).astype(dtype) * small)
            np.testing.assert_allclose(got, x, rtol=0, atol=1e-7 if SMALL[dtype] < -500 else 0.03)
    want = np.linalg.slogdet(a.astype(complex))[1] + n * SMALL[dtype] * np.log(2)
    np.testing.assert_allclose(pl.slogdet(A).logabsdet, want, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("power", [0.7, -0.7])
def test_frobenius_norms_of_numbers_whose_squares_leave_the_range(dtype, power):
    far = float(np.finfo(dtype).max) ** power
    a = np.arange(6.0).reshape(2, 3)
    A = pl.Dense((a * far).astype(dtype))
    want = np.linalg.norm(a)
    for op in (A, A.T, A @ pl.Identity(3), pl.Dense(np.stack([A.toarray()] * 2))):
        np.testing.assert_allclose(pl.matrix_norm(op) / far, want, rtol=1e-6)
    assert pl.matrix_norm(pl.Dense(np.zeros((2, 3), dtype))) == 0
    assert np.isinf(pl.matrix_norm(pl.Dense(np.full((2, 3), np.inf, dtype))))
    assert np.isnan(pl.matrix_norm(pl.Dense(np.full((2, 3), np.nan, dtype))))
