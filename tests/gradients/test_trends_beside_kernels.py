"""Second derivatives of generalised least squares over kernels, and of residuals with one left out
over bands: read off few columns and bands, not off arrays of all rows and columns."""

import numpy as np
import pytest
from gradients.differences import check, check_second

import pylinop as pl


def drawn(shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape)


def trend(family, n):
    t, y, e = np.sort(drawn(n, 2)), drawn(n), 0.3 + drawn(n, 3) ** 2
    X = np.stack([np.ones(n), t], axis=1)

    def f(th):
        K = np.exp(th[0]) * pl.Kernel(family, t[:, None], length_scale=np.exp(th[1]))
        S = K + pl.Diag(np.exp(th[2]) * e)
        Z = pl.solve(S, X)
        M = X.T @ Z
        res = y - X @ pl.solve(pl.Dense(M), Z.T @ y)
        return res @ pl.solve(S, res) + pl.logdet(S) + pl.logdet(pl.Dense(M))

    return f, np.array([0.0, 0.3, -0.5])


@pytest.mark.parametrize("family", ["matern12", "matern32", "rbf"])
@pytest.mark.parametrize("n", [3, 40, 90])
def test_generalised_least_squares(family, n):
    f, th = trend(family, n)
    with pl.config(check_plans=True, verify=True):
        check(f, th)
    check_second(f, th)


@pytest.mark.parametrize("order", ["scaled inside", "turned", "product"])
def test_multiples_within_cotangents(order):
    n = 40
    x, u, v = drawn((n, 1)), drawn((n, 2), 5), drawn((n, 2), 6)
    pair = {
        "scaled inside": lambda: pl.Dense(u) @ (3.0 * (pl.Dense(v).T @ (-2.0 * pl.Identity(n)))),
        "turned": lambda: (-6.0 * (pl.Dense(v) @ pl.Dense(u).T)).T,
        "product": lambda: pl.Dense(-2.0 * u) @ pl.Dense(3.0 * v).T,
    }[order]

    def f(length, x):
        return pl.trace(pair().T @ pl.Kernel("matern32", x, length_scale=length))

    check(f, np.array(0.7), x)
    check_second(f, np.array(0.7), x)


@pytest.mark.no_verify  # whose own plans would be counted
def test_no_sums_over_arrays_of_all_pairs():
    n = 300
    f, th = trend("matern12", n)
    with pl.explaining() as seen:
        pl.hvp(f)(th, np.ones_like(th))
    sums = [s for s in seen.steps if s["name"] == "kernel-number-sums" and s["took"] is not None]
    assert not [s for s in sums if f"({n}, {n})" in str(s["reads"])]


def left_out(K, y):
    d = np.real(pl.diagonal(pl.inv(K)))
    return np.sum(np.abs(pl.solve(K, y) / d) ** 2) - np.sum(np.log(np.abs(d)))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("n", [2, 5, 40, 200, 500])
def test_left_out_of_bands(n, dtype):
    y, turn = drawn(n), np.exp(0.3j) if dtype == "complex128" else 1

    def f(a):
        c = np.exp(a / 4)
        low = -c[1:-1] * turn
        return left_out(pl.Tridiagonal(low, c[:-1] + c[1:] + 0.1, -c[1:-1] * np.conj(turn)), y)

    check_second(f, drawn(n + 1))


@pytest.mark.parametrize("n", [40, 300])
def test_left_out_of_bands_that_are_not_symmetric(n):
    g, h = drawn(n, 7), drawn(n, 8)

    def f(low, d, up):
        T = pl.Tridiagonal(low, d, up)
        a = pl.diagonal(pl.inv(T))
        return np.sum(g * a * a) + np.sum((pl.solve(T, h) / a) ** 2)

    args = 0.4 * drawn(n - 1, 3), 3.0 + drawn(n, 4) / 3, 0.4 * drawn(n - 1, 5)
    check_second(f, *args)


@pytest.mark.no_verify
def test_no_array_of_all_rows_of_a_band():
    n = 1500
    y = drawn(n)
    f = lambda d: left_out(pl.Tridiagonal(0.3 * d[1:], 2 + d * d, 0.3 * d[1:]), y)
    with pl.explaining() as seen:
        pl.hvp(f)(drawn(n, 2), drawn(n, 4))
    ran = [s["writes"] for s in seen.steps if s["took"] is not None]
    assert ran
    assert not [w for w in ran if f"({n}, {n})" in str(w)]
