"""First and second derivatives of what is read off products of Toeplitz matrices, inverses of such
and a diagonal matrix: beside dense forms and differences."""

import numpy as np
import pytest
import scipy.linalg as sl
from gradients.differences import check, check_second

import pylinop as pl

DTYPES = ("float64", "complex128")
SIZES = (1, 2, 7, 95, 96, 130)


def column(n, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    c = np.exp(-np.arange(n) / 3.0).astype(dtype)
    if c.dtype.kind == "c":
        c = c * np.exp(0.7j * np.arange(n))
    c[0] = 1.5
    return c * (1 + 0.01 * rng.standard_normal(n))


def drawn(shape, dtype="float64", seed=1):
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(shape)
    return (y + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else y).astype(dtype)


def divergence(c, s, L, m):
    """KL(N(m, diag(s) + L L^H) | N(0, T))."""
    T = pl.Toeplitz(c)
    S = pl.Diag(np.exp(s)) + pl.LowRank(L)
    trace = np.real(pl.trace(pl.inv(T) @ S))
    return trace + np.real(np.conj(m) @ pl.solve(T, m)) + np.real(pl.logdet(T) - pl.logdet(S))


def left_out(K, y):
    d = np.real(pl.diagonal(pl.inv(K)))
    return np.sum(np.abs(pl.solve(K, y) / d) ** 2) - np.sum(np.log(d))


def hessian_beside(f, dense, *args, rtol=1e-9):
    every = tuple(range(len(args)))
    rng = np.random.default_rng(4)
    way = tuple(rng.standard_normal(np.shape(a)) for a in args)
    found, wanted = (pl.hvp(one, every)(*args, way) for one in (f, dense))
    for got, by in zip(found, wanted, strict=True):
        assert np.linalg.norm(got - by) <= rtol * max(np.linalg.norm(w) for w in wanted)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_divergences(n, dtype):
    args = column(n, dtype), drawn(n) / 3, drawn((n, 2), dtype) / 2, drawn(n, dtype, 3)
    with pl.config(check_plans=True, verify=True):
        check(divergence, *args)
    check_second(divergence, *args)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_residuals_with_one_left_out(n, dtype):
    y = drawn(n, dtype)
    check_second(lambda c: left_out(pl.Toeplitz(c), y), column(n, dtype))


@pytest.mark.parametrize("n", [7, 97, 130])
def test_residuals_with_one_left_out_beside_low_rank(n):
    y = drawn(n)

    def f(c, U, s):
        return left_out(pl.Toeplitz(c) + pl.LowRank(U) + s * pl.Identity(n), y)

    check_second(f, column(n), drawn((n, 2), seed=5), np.array(0.3))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_of_those_that_are_not_hermitian(n, dtype):
    g, h = drawn(n, dtype, 2), drawn(n, dtype, 6)

    def f(c, r, s):
        T, S = pl.Toeplitz(c, r), pl.Toeplitz(s)
        both = pl.trace(pl.inv(T) @ pl.Diag(g) @ pl.inv(S) @ T @ pl.Diag(h))
        return np.real(both + np.sum(g * pl.diagonal(pl.inv(T) @ S @ pl.inv(T))))

    args = column(n, dtype), 0.5 * column(n, dtype, 3), column(n, dtype, 7)
    with pl.config(check_plans=True, verify=True):
        check(f, *args)
    check_second(f, *args)


@pytest.mark.parametrize("dtype", DTYPES)
def test_determinants_beside_factors(dtype):
    n = 120
    Y = drawn((n, 3), dtype)

    def f(c, U):
        S = pl.Toeplitz(c) + pl.LowRank(U)
        return np.real(np.sum(np.conj(Y) * pl.solve(S, Y))) + np.real(pl.logdet(S))

    check_second(f, column(n, dtype), drawn((n, 2), dtype, 5))


@pytest.mark.parametrize("n", [100, 300])
@pytest.mark.parametrize("nugget", [1.0, 1e-4, 1e-8])
def test_near_singular_ones_beside_dense_ones(n, nugget):
    y, lags = drawn(n), np.arange(n)
    lag = np.abs(lags[:, None] - lags)

    def made(th):
        return np.exp(th[0]) * np.exp(-((lags * np.exp(th[1])) ** 2)) + nugget * (lags == 0)

    rtol = {1.0: 1e-10, 1e-4: 1e-8, 1e-8: 1e-4}[nugget]
    hessian_beside(
        lambda th: left_out(pl.Toeplitz(made(th)), y),
        lambda th: left_out(made(th)[lag], y),
        np.array([0.1, -1.0]),
        rtol=rtol,
    )


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_of_fewer_digits(dtype):
    n = 200
    wide = "complex128" if dtype == "complex64" else "float64"
    args = column(n, dtype), drawn(n).astype("float32") / 3, drawn((n, 2), dtype) / 2
    m = drawn(n, dtype, 3)
    way = tuple(drawn(a.shape, a.dtype, 9) for a in args)
    every = (0, 1, 2)
    got = pl.hvp(lambda *a: divergence(*a, m), every)(*args, way)
    up = lambda all: tuple(a.astype("float64" if a.dtype == "float32" else wide) for a in all)
    by = pl.hvp(lambda *a: divergence(*a, m.astype(wide)), every)(*up(args), up(way))
    for g, w, a in zip(got, by, args, strict=True):
        assert g.dtype == a.dtype
        assert np.linalg.norm(g - w) <= 1e-4 * np.linalg.norm(w)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(6))
def test_readings_of_drawn_products(dtype, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(96, 140))
    drawn_one = lambda: column(n, dtype, rng.integers(99))
    arrays, kinds = [], []
    for _ in range(int(rng.integers(2, 5))):
        c, r = drawn_one(), drawn_one() / 2
        one, A = pl.Toeplitz(c, r), sl.toeplitz(c, r)
        if rng.random() < 0.6 or not kinds:
            one, A = pl.inv(one), np.linalg.inv(A)
        if rng.random() < 0.4:
            one, A = one.T, A.T
        kinds.append(one)
        arrays.append(A)
    d, u, v = drawn(n, dtype, seed), drawn((n, 2), dtype, 3), drawn((n, 2), dtype, 4)
    at = int(rng.integers(1, len(kinds)))
    kinds.insert(at, pl.Diag(d) + (pl.LowRank(u, v) if seed % 2 else pl.Toeplitz(d, d)))
    arrays.insert(at, np.diag(d) + (u @ np.conj(v.T) if seed % 2 else sl.toeplitz(d, d)))
    P, A = kinds[0], arrays[0]
    for one, B in zip(kinds[1:], arrays[1:], strict=True):
        P, A = P @ one, A @ B
    C = pl.lazy(column(n, dtype))
    got = pl.evaluate(pl.gradients(np.real(pl.trace(P @ pl.Toeplitz(C, C))), [C])[0])
    sums = np.array([np.trace(A, k) for k in range(1 - n, n)])[::-1]  # over i - j
    wanted = np.conj(sums[n - 1 :: -1] + np.r_[0, sums[n:]])
    assert np.linalg.norm(got - wanted) <= 1e-11 * np.linalg.norm(wanted)
    assert abs(pl.evaluate(pl.trace(P)) - np.trace(A)) <= 1e-11 * np.abs(np.diag(A)).sum()


@pytest.mark.no_verify  # whose own plans would be counted
def test_no_array_of_all_rows():
    n = 1000
    L, m, y = drawn((n, 4)), drawn(n), drawn(n, seed=8)
    for f in (lambda c, s: divergence(c, s, L, m), lambda c, s: left_out(pl.Toeplitz(c), y + s)):
        args = column(n), drawn(n) / 3
        with pl.explaining() as seen:
            pl.hvp(f, (0, 1))(*args, args)
        ran = [step["writes"] for step in seen.steps if step["took"] is not None]
        assert ran
        assert not [w for w in ran if f"({n}, {n})" in str(w)]
