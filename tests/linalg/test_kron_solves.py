"""Solves and determinants of sums of Krons by the factors' eigenvectors and Schur forms, against
the dense form; the backward error is that of a direct solve, the route is told by explain()."""

import mpmath
import numpy as np
import pytest

import pylinop as pl

M, N = 7, 8
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def values(rng, shape, dtype):
    a = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal(shape)
    return a.astype(dtype)


def adjoint(a):
    return a.conj().swapaxes(-1, -2)


def hermitian(rng, n, dtype, batch=()):
    a = values(rng, (*batch, n, n), dtype)
    return a + adjoint(a)


def positive(rng, n, dtype, batch=()):
    a = values(rng, (*batch, n, 2 * n), dtype)
    a = (a @ adjoint(a) / (2 * n)).astype(dtype)
    return (a + adjoint(a)) / 2 + np.eye(n, dtype=dtype) / 4


def eye():
    return pl.Identity(M * N)


def diag(rng, n, dtype):
    return pl.Diag((0.5 + rng.random(n)).astype(dtype))


SUMS = {
    "shifted": lambda g, t: pl.Kron(hermitian(g, M, t), hermitian(g, N, t)) + 0.5 * eye(),
    "multiple": lambda g, t: 2 * (pl.Kron(positive(g, M, t), positive(g, N, t)) - 0.3 * eye()),
    "assumed": lambda g, t: (
        eye() + pl.Kron(pl.Dense(positive(g, M, t), assume_a="pos"), hermitian(g, N, t))
    ),
    "three": lambda g, t: (
        pl.Kron(hermitian(g, M, t), hermitian(g, 2, t), positive(g, 4, t)) - eye()
    ),
    "diagonal": lambda g, t: pl.Kron(hermitian(g, M, t), diag(g, N, t)) + 0.3 * eye(),
    "identity": lambda g, t: pl.Kron(hermitian(g, M, t), pl.Identity(N)) + 0.3 * eye(),
    "two": lambda g, t: (
        pl.Kron(hermitian(g, M, t), hermitian(g, N, t))
        + pl.Kron(positive(g, M, t), positive(g, N, t))
    ),
    "two, other first": lambda g, t: (
        pl.Kron(positive(g, M, t), positive(g, N, t))
        - 0.5 * pl.Kron(hermitian(g, M, t), hermitian(g, N, t))
    ),
    "diagonals": lambda g, t: (
        pl.Kron(hermitian(g, M, t), hermitian(g, N, t)) + pl.Kron(diag(g, M, t), diag(g, N, t))
    ),
    "kronsum": lambda g, t: pl.KronSum(hermitian(g, M, t), hermitian(g, N, t)),
    "kronsum of three": lambda g, t: (
        pl.KronSum(hermitian(g, M, t), hermitian(g, 2, t), hermitian(g, 4, t)) + 0.7 * eye()
    ),
    "assumed kronsum": lambda g, t: pl.KronSum(
        pl.Dense(positive(g, M, t), assume_a="pos"), pl.Dense(hermitian(g, N, t), assume_a="her")
    ),
    "schur": lambda g, t: pl.KronSum(values(g, (M, M), t), values(g, (N, N), t)),
    "schur, shifted": lambda g, t: (
        3 * (pl.KronSum(values(g, (M, M), t), 0.5 * pl.Dense(values(g, (N, N), t))) - 0.7 * eye())
    ),
    "schur, turned": lambda g, t: pl.KronSum(
        pl.Dense(values(g, (M, M), t)).T, pl.Dense(values(g, (N, N), t)).H
    ),
    "schur by krons": lambda g, t: (
        3 * pl.Kron(values(g, (M, M), t), pl.Identity(N))
        + pl.Kron(pl.Identity(M), hermitian(g, N, t))
    ),
    "not Hermitian": lambda g, t: pl.Kron(values(g, (M, M), t), hermitian(g, N, t)) + eye(),
}


def eta(S, x, b):
    """The normwise backward error, the worst of the columns."""
    S, x, b = (np.asarray(a, "complex128") for a in (S, x, b))
    r = np.linalg.norm(b - S @ x, axis=-2)
    size = np.linalg.norm(S, 2, axis=(-2, -1))[..., None]
    return np.max(r / (size * np.linalg.norm(x, axis=-2) + np.linalg.norm(b, axis=-2)))


def precision(dtype):
    return np.finfo(dtype).eps / 2


def check(A, dtype, rng):
    """Solves with A, A.T and A.H, and the determinant, as the dense form has them."""
    D = A.toarray()
    n = D.shape[-1]
    X = values(rng, (n, 3), dtype)
    u = precision(np.result_type(D.dtype, dtype))
    for op, dense in ((A, D), (A.T, D.swapaxes(-1, -2)), (A.H, adjoint(D))):
        x = pl.solve(op, X)
        assert x.dtype == np.result_type(D.dtype, dtype)
        assert eta(dense, x, X) <= 10 * n * u
    if not A.shape[:-2]:
        np.testing.assert_array_equal(pl.solve(A, X[:, 0]), pl.solve(A, X[:, :1])[:, 0])
    sign, log = pl.slogdet(A)
    exact_sign, exact_log = np.linalg.slogdet(D.astype(np.result_type(D.dtype, np.float64)))
    worst = 20 * n * u * np.linalg.cond(D.astype(np.result_type(D.dtype, np.float64))).max()
    np.testing.assert_allclose(log, exact_log, rtol=0, atol=worst)
    np.testing.assert_allclose(sign, exact_sign, rtol=0, atol=worst)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SUMS)
def test_agrees_with_the_dense_form(name, dtype, rng):
    A = SUMS[name](rng, dtype)
    check(A, dtype, rng)
    fired = A.explain("solve", np.ones(A.shape[1], dtype)).fired
    one = {"solve-kron"} if name == "identity" else set()  # Kron(A + c I, I): one Kron again
    assert ({"solve-spectral-sum", "solve-kronsum"} | one) & set(fired)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_batches(dtype, rng):
    one, two = hermitian(rng, M, dtype, (3, 1)), hermitian(rng, N, dtype, (2,))
    for A in (
        pl.Kron(one, two) + 0.5 * pl.Identity(M * N),
        pl.KronSum(one, values(rng, (2, N, N), dtype)),
        pl.Kron(one, two) + pl.Kron(positive(rng, M, dtype), positive(rng, N, dtype, (2,))),
    ):
        check(A, dtype, rng)


def test_one_bad_element_of_a_batch(rng):
    a = hermitian(rng, M, float, (3,))
    a[1, 0, 1] += 1  # no Hermitian one
    check(pl.Kron(a, hermitian(rng, N, float)) + pl.Identity(M * N), float, rng)


def test_complex_coefficients_and_mixed_dtypes(rng):
    a, b = hermitian(rng, M, float), hermitian(rng, N, complex)
    for A in (
        (1 + 2j) * pl.Kron(a, b) + (0.3 - 1j) * eye(),
        (1 + 2j) * pl.KronSum(a, b) + (0.3 - 1j) * eye(),
        (1 + 2j) * pl.KronSum(values(rng, (M, M), float), values(rng, (N, N), complex))
        - 1j * eye(),
        pl.Kron(a, b) + pl.Kron(positive(rng, M, complex), positive(rng, N, float)),
    ):
        check(A, complex, rng)


def test_integers(rng):
    a = rng.integers(-3, 4, (M, M))
    b = rng.integers(-3, 4, (N, N))
    check(pl.Kron(a + a.T, b + b.T) + 5 * eye(), float, rng)
    check(pl.KronSum(a, b) + 0.25 * eye(), float, rng)


def test_layouts_and_sizes(rng):
    a, b = hermitian(rng, 2 * M, float), hermitian(rng, N, float)
    check(pl.Kron(a[::2, ::2], b[::-1, ::-1]) + eye(), float, rng)
    check(
        pl.Kron(np.asfortranarray(a), np.ones((1, 1)), b[:4, :4]) + pl.Identity(8 * M), float, rng
    )
    assert pl.solve(pl.KronSum(np.ones((0, 0)), b), np.ones((0, 2))).shape == (0, 2)
    assert pl.slogdet(pl.KronSum(np.ones((0, 0)), b)) == (1, 0)
    A = pl.Kron(a, b) + pl.Identity(16 * M)
    assert pl.solve(A, np.ones((16 * M, 0))).shape == (16 * M, 0)


def test_assumed_ones_are_read_as_assumed(rng):
    """The lower triangle holds anything: SciPy reads the upper one."""
    a, b = hermitian(rng, M, complex), positive(rng, N, complex)
    told = [pl.Dense(np.triu(a) + np.tri(M, k=-1), assume_a="her")]
    told += [pl.Dense(np.triu(b) + np.tri(N, k=-1), assume_a="pos")]
    x = values(rng, M * N, complex)
    for A, D in (
        (pl.Kron(*told) + 3 * eye(), np.kron(a, b) + 3 * np.eye(M * N)),
        (pl.KronSum(*told), np.kron(a, np.eye(N)) + np.kron(np.eye(M), b)),
    ):
        np.testing.assert_allclose(pl.solve(A, x), np.linalg.solve(D, x), rtol=1e-10)


def test_a_write_is_seen(rng):
    a, b = hermitian(rng, M, float), hermitian(rng, N, float)
    x = values(rng, M * N, float)
    sums = [pl.Kron(a, b) + 0.5 * eye(), pl.KronSum(a, b), pl.Kron(a, b) + pl.Kron(a @ a, b @ b)]
    for change in (lambda: None, lambda: a.__imul__(2), lambda: b.__setitem__((0, 1), 9.0)):
        change()  # the last one leaves b without symmetry
        for A in sums:
            np.testing.assert_allclose(pl.solve(A, x), np.linalg.solve(A.toarray(), x), rtol=1e-8)
            assert pl.slogdet(A)[1] == pytest.approx(np.linalg.slogdet(A.toarray())[1], rel=1e-9)


@pytest.mark.parametrize("name", ["shifted", "two", "kronsum", "schur", "assumed kronsum"])
def test_same_bits_cold_and_warm(name):
    def once(before):
        g = np.random.default_rng(5)
        A = SUMS[name](g, float)
        x = values(g, M * N, float)
        if before:
            pl.slogdet(A), pl.solve(A.T, x), pl.solve(A, np.ones((M * N, 2)))
        return [pl.solve(A, x), pl.solve(A, x), *pl.slogdet(A)]

    cold, warm = once(False), once(True)
    assert all(np.array_equal(c, w) for c, w in zip(cold, warm, strict=True))
    assert np.array_equal(cold[0], cold[1])


def test_large_ones_are_not_formed(rng):
    """Dense they would take 12.8 GB."""
    n = 200
    a, b = positive(rng, n, float), positive(rng, n, float)
    x = values(rng, (n * n,), float)
    lap = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    skew = lap + np.eye(n, k=1) / 2
    for A in (
        pl.Kron(a, b) + 0.1 * pl.Identity(n * n),
        pl.Kron(a, b) + pl.Kron(pl.Diag(1 + rng.random(n)), lap + np.eye(n)),
        pl.KronSum(lap, lap),
        pl.KronSum(skew, a),
    ):
        y = pl.solve(A, x)
        size = np.linalg.norm(A @ np.ones(n * n)) / n
        assert np.linalg.norm(x - A @ y) <= 1e-11 * (size * np.linalg.norm(y) + np.linalg.norm(x))
    values_a, values_b = np.linalg.eigvalsh(a), np.linalg.eigvalsh(b)
    scale = 1e200
    sign, log = pl.slogdet(pl.Kron(scale * a, b) + 0.1 * scale * pl.Identity(n * n))
    exact = np.log(np.multiply.outer(values_a, values_b) + 0.1).sum() + n * n * np.log(scale)
    assert sign == 1 and log == pytest.approx(exact, rel=1e-12)
    assert pl.logdet(pl.Kron(a, b) + 0.1 * pl.Identity(n * n)) == pytest.approx(
        exact - n * n * np.log(scale), rel=1e-11
    )


def hilbert(n):
    return 1.0 / (np.arange(n)[:, None] + np.arange(n) + 1)


def exactly(D, b):
    """Solution and log-determinant in 60 digits."""
    with mpmath.workdps(60):
        m = mpmath.matrix(D.tolist())
        x = mpmath.lu_solve(m, mpmath.matrix(b.tolist()))
        return np.array([float(v) for v in x]), float(mpmath.log(abs(mpmath.det(m))))


@pytest.mark.parametrize("c", [1e-3, 1e-9, 1e-13])
def test_hilbert_matrices_and_a_small_shift(c, rng):
    a, b = hilbert(7), hilbert(6)
    D = np.kron(a, b) + c * np.eye(42)
    x = rng.standard_normal(42)
    want, log = exactly(D, x)
    u, cond = precision(float), np.linalg.cond(D)
    A = pl.Kron(a, b) + c * pl.Identity(42)
    got = pl.solve(A, x)
    assert eta(D, got[:, None], x[:, None]) <= 10 * 42 * u
    assert np.linalg.norm(got - want) <= 100 * u * cond * np.linalg.norm(want)
    assert abs(pl.logdet(A) - log) <= 42 * 10 * u * cond


def test_hilbert_matrices_against_a_definite_sum(rng):
    a, b = hilbert(7), hilbert(6)
    d, e = 1 + np.arange(7.0), 1 + np.arange(6.0) / 6
    D = np.kron(a, b) + 1e-6 * np.kron(np.diag(d), np.diag(e))
    x = rng.standard_normal(42)
    want, log = exactly(D, x)
    A = pl.Kron(a, b) + 1e-6 * pl.Kron(pl.Diag(d), pl.Diag(e))
    u, cond = precision(float), np.linalg.cond(D)
    assert np.linalg.norm(pl.solve(A, x) - want) <= 100 * u * cond * np.linalg.norm(want)
    assert abs(pl.logdet(A) - log) <= 42 * 10 * u * cond


def test_what_cancels_goes_by_the_dense_form(rng):
    """A (x) A is all but the identity that is taken from it."""
    a = np.eye(M) + 1e-11 * hermitian(rng, M, float)
    b = np.eye(N) + 1e-11 * hermitian(rng, N, float)
    A = pl.Kron(a, b) - pl.Identity(M * N)
    x = values(rng, (M * N, 2), float)
    assert eta(A.toarray(), pl.solve(A, x), x) <= 10 * M * N * precision(float)
    A = pl.KronSum(a, -b)
    assert eta(A.toarray(), pl.solve(A, x), x) <= 10 * M * N * precision(float)


def test_a_metric_that_is_all_but_singular(rng):
    c, d = hilbert(M) + 1e-13 * np.eye(M), hilbert(N) + 1e-13 * np.eye(N)
    A = pl.Kron(hermitian(rng, M, float), hermitian(rng, N, float)) + pl.Kron(c, d)
    x = values(rng, (M * N, 2), float)
    assert eta(A.toarray(), pl.solve(A, x), x) <= 10 * M * N * precision(float)


def test_neither_is_definite(rng):
    A = pl.Kron(hermitian(rng, M, float), hermitian(rng, N, float)) + pl.Kron(
        hermitian(rng, M, float), hermitian(rng, N, float)
    )
    check(A, float, rng)


def test_singular_ones_raise():
    a = np.kron(np.eye(4), [[0.0, 1], [1, 0]])  # eigenvalues 1 and -1
    b = np.kron(np.eye(4), [[0.0, 1], [0, 0]])
    for A in (pl.KronSum(a, a), pl.Kron(a, a) - pl.Identity(64), pl.KronSum(b, b)):
        with pytest.raises(np.linalg.LinAlgError):
            np.linalg.solve(A.toarray(), np.ones(64))
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            pl.solve(A, np.ones(64))
        assert pl.slogdet(A) == (0, -np.inf)
        assert pl.det(A) == 0


def test_nan_and_inf_pass_through(rng):
    a, b = hermitian(rng, M, float), hermitian(rng, N, float)
    a[2, 2] = np.nan
    for A in (pl.Kron(a, b) + eye(), pl.KronSum(a, b)):
        assert np.isnan(pl.solve(A, np.ones(M * N))).any()
        assert np.isnan(pl.slogdet(A)[1])
    good = pl.Kron(b, b) + pl.Identity(N * N)
    assert np.isnan(pl.solve(good, np.full(N * N, np.nan))).all()


def test_the_inverse_as_an_operator(rng):
    A = pl.Kron(hermitian(rng, M, float), hermitian(rng, N, float)) + 0.5 * eye()
    x = values(rng, (M * N, 4), float)
    np.testing.assert_allclose(pl.inv(A).T @ x, np.linalg.solve(A.toarray().T, x), rtol=1e-9)
    np.testing.assert_allclose((pl.inv(A) @ A).toarray(), np.eye(M * N), atol=1e-10)


def test_one_large_factor_goes_by_the_dense_form(rng):
    """Eigenvectors of 60 rows cost more than Cholesky of 120."""
    small, big = hermitian(rng, 2, float), hermitian(rng, 60, float)
    for A in (pl.Kron(small, big) + pl.Identity(120), pl.Kron(small, big) + pl.Kron(small, big)):
        assert "solve-spectral-sum" not in A.explain("solve", np.ones(120)).fired
    A = pl.Kron(hermitian(rng, 4, float), big) + pl.Identity(240)
    assert "solve-spectral-sum" in A.explain("solve", np.ones(240)).fired
