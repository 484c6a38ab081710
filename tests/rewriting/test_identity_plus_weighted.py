"""Determinants of c I + a K D, solves with it and its inverse, K semidefinite and D a diagonal: by
Cholesky of a K + c / D where D is positive, else by LU of what is written."""

import numpy as np
import pytest

import pylinop as pl

N = 60


def matrix(rng, dtype):
    x = rng.standard_normal((N, N)) + 1j * rng.standard_normal((N, N))
    x = (x if np.dtype(dtype).kind == "c" else x.real).astype(dtype)
    return (x @ x.conj().T / N).astype(dtype)


def diagonals(rng, real):
    low = np.log10(np.finfo(real).eps) - 2
    return {
        "even": rng.random(N) + 0.5,
        "graded": 10.0 ** np.linspace(low, 2, N),
        "of both signs": rng.standard_normal(N),
        "one zero": np.where(np.arange(N) == 3, 0.0, 1.0),
        "reciprocals overflow": np.where(np.arange(N) == 3, np.finfo(real).tiny / 8, 1.0),
        "small": np.full(N, 1e-20),
        "large": np.full(N, 1e12),
    }


def backward_error(a, x, b):
    a, x = np.asarray(a, np.complex128), np.asarray(x, np.complex128)
    size = np.linalg.norm(a, 2) * np.linalg.norm(x, axis=0) + np.linalg.norm(b, axis=0)
    return np.max(np.linalg.norm(b - a @ x, axis=0) / size)


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("dtype", ["f8", "c16", "f4", "c8"])
def test_values(dtype, left):
    rng = np.random.default_rng(11)
    real = np.finfo(dtype).dtype
    eps = np.finfo(dtype).eps
    own = matrix(rng, dtype)
    k = pl.Dense(own, assume_a="pos")
    b = matrix(rng, dtype)[:, :2]
    for d in diagonals(rng, real).values():
        d = d.astype(real)
        for c, a in ((1.0, 1.0), (0.5, 2.0)):
            product = pl.Diag(d) @ k if left else k @ pl.Diag(d)
            m = c * pl.Identity(N, dtype=dtype) + a * product
            wide = own.astype("c16")
            dense = c * np.eye(N) + a * (d[:, None] * wide if left else wide * d)
            sign, value = np.linalg.slogdet(dense)
            found = m.slogdet()
            assert abs(found[0] - sign) < 1e3 * eps
            assert abs(found[1] - value) <= 50 * N * eps * max(1, abs(value))
            assert backward_error(dense, m.solve(b), b) <= 10 * N * eps
            assert backward_error(dense.T, m.T.solve(b), b) <= 10 * N * eps


def test_price_and_one_factor():
    rng = np.random.default_rng(12)
    n, y = 300, rng.standard_normal(300)
    x = rng.standard_normal((n, n))
    k, d = pl.lazy(x @ x.T / n + np.eye(n), assume_a="pos"), pl.Diag(rng.random(n) + 0.5)
    half = 1.05 * n**3 / 3

    def flops(*asked):
        with pl.explaining() as e:
            pl.evaluate(*asked)
        return sum(p.flops for p in e.plans)

    for m in (pl.Identity(n) + k @ d, pl.Identity(n) + d @ k, 3.0 * pl.Identity(n) + 2.0 * (d @ k)):
        assert flops(pl.logdet(m)) < half
        both = flops(pl.logdet(m), pl.solve(m, y))
        assert both < half + 20 * n * n
        assert flops(pl.diagonal(pl.inv(m))) < 3 * half + 10 * n * n
        assert flops(pl.trace(pl.inv(m))) < 3 * half + 10 * n * n
        assert flops(pl.inv(m)) < 3 * half + 10 * n * n
        assert flops(pl.logdet(m), pl.trace(pl.inv(m)), pl.solve(m, y)) < 3 * half + 30 * n * n
    plain = pl.Identity(n) + pl.Dense(x @ x.T) @ d  # nothing is known of it
    assert plain.explain("logdet").flops > 1.9 * n**3 / 3


def test_singular_is_an_error():
    k = pl.Dense(np.ones((6, 6)) + np.eye(6), assume_a="pos")
    m = pl.Identity(6) + k @ pl.Diag(np.zeros(6))
    assert m.slogdet() == (1.0, 0.0)
    d = np.array([-0.5, 0, 0, 0, 0, 0])  # the first row is zero
    m = pl.Identity(6) + pl.Diag(d) @ pl.Dense(2 * np.eye(6), assume_a="pos")
    with pytest.raises(np.linalg.LinAlgError):
        m.solve(np.ones(6))
    assert m.slogdet()[0] == 0


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("dtype", ["f8", "c16", "f4", "c8"])
def test_inverses(dtype, left):
    """As right as LU of what is written: some n u cond(M) |M^-1|, also where D is graded."""
    rng = np.random.default_rng(13)
    eps = np.finfo(dtype).eps
    own = matrix(rng, dtype)
    k = pl.Dense(own, assume_a="pos")
    for name, d in diagonals(rng, np.finfo(dtype).dtype).items():
        if name in ("one zero", "reciprocals overflow") and np.dtype(dtype).kind == "c":
            continue
        d = d.astype(np.finfo(dtype).dtype)
        for c, a in ((1.0, 1.0), (0.5, 2.0)):
            product = pl.Diag(d) @ k if left else k @ pl.Diag(d)
            m = c * pl.Identity(N, dtype=dtype) + a * product
            wide = own.astype("c16")
            dense = c * np.eye(N) + a * (d[:, None] * wide if left else wide * d)
            want = np.linalg.inv(dense)
            size = 10 * N * eps * np.linalg.cond(dense) * np.linalg.norm(want, 2)
            assert np.max(np.abs(pl.inv(m).diagonal() - np.diagonal(want))) <= size, name
            assert abs(pl.inv(m).trace() - np.trace(want)) <= N * size, name
            assert np.max(np.abs(pl.inv(m).toarray() - want)) <= size, name
            assert np.max(np.abs(pl.inv(m.T).toarray() - want.T)) <= size, name


def test_kernels():
    """Of a covariance, which is semidefinite but for rounding; not of a polynomial, which need not
    be so."""
    rng = np.random.default_rng(14)
    n = 300
    x, d, b = rng.standard_normal((n, 2)), rng.random(n) + 0.5, rng.standard_normal(n)
    for name in ("rbf", "matern32", "rational_quadratic", "periodic"):
        k = pl.Kernel(name, x)
        m = pl.Identity(n) + k @ pl.Diag(d)
        dense = np.eye(n) + k.toarray() * d
        assert "getrf" not in str(m.explain("logdet")).split("otherwise")[0]
        assert abs(m.logdet() - np.linalg.slogdet(dense)[1]) < 1e-11 * n
        assert np.allclose(m.solve(b), np.linalg.solve(dense, b), rtol=1e-9, atol=1e-11)
        want = np.diagonal(np.linalg.inv(dense))
        assert np.allclose(pl.inv(m).diagonal(), want, rtol=1e-9, atol=1e-11)
    k = pl.Kernel("polynomial", x, degree=2, offset=-3.0)
    m = pl.Identity(n) + k @ pl.Diag(d)
    dense = np.eye(n) + k.toarray() * d
    assert "getrf" in str(m.explain("logdet"))
    assert abs(m.slogdet()[1] - np.linalg.slogdet(dense)[1]) < 1e-11 * n


def test_a_graded_diagonal_keeps_small_entries():
    """Off the diagonal the factor of a K + c / D would lose the root of what D spans."""
    n = 60
    rng = np.random.default_rng(15)
    own = np.eye(n) + 1e-3 * matrix(rng, "f8")
    d = 10.0 ** np.linspace(-8, 8, n)
    m = pl.Identity(n) + pl.Dense(own, assume_a="pos") @ pl.Diag(d)
    dense = np.eye(n) + own * d
    with pl.explaining() as e:
        found = pl.inv(m).toarray()
    assert "getrf" in str(e)
    off = np.abs(found - np.linalg.inv(dense))
    assert np.max(off) <= 1e-13 * np.max(np.abs(np.linalg.inv(dense))) * n


def test_inverse_of_what_is_singular():
    d = np.array([-0.5, 0, 0, 0, 0, 0])
    m = pl.Identity(6) + pl.Diag(d) @ pl.Dense(2 * np.eye(6), assume_a="pos")
    for value in (lambda: pl.inv(m).diagonal(), lambda: pl.inv(m).toarray()):
        with pytest.raises(np.linalg.LinAlgError):
            value()
    d = np.array([1, np.nan, 1, 1, 1, 1])
    m = pl.Identity(6) + pl.Diag(d) @ pl.Dense(2 * np.eye(6), assume_a="pos")
    assert np.isnan(pl.inv(m).diagonal()).any()
    d = np.array([1, np.inf, 1, 1, 1, 1])
    m = pl.Identity(6) + pl.Diag(d) @ pl.Dense(2 * np.eye(6) + 1, assume_a="pos")
    assert not np.isfinite(pl.inv(m).diagonal()).all()
