"""Gradients by the numbers of Matern kernels of points on a line in order, of pairs: by two sweeps
over the points, as by all entries."""

import numpy as np
import pytest

import pylinop as pl

NAMES = ["matern12", "matern32", "matern52"]
# On both sides of where sweeps are worth it (m n against 16 (m + n)), and of 8 columns at a time.
SIZES = [(1, 1), (31, 33), (32, 32), (33, 33), (40, 200), (200, 16), (200, 18), (150, 150)]


def slopes(name, x, y, variance, length, G):
    order = NAMES.index(name)
    s = np.sqrt(2 * order + 1) * np.abs(x[:, None] - y[None]) / length
    h = [1, 1 + s, 1 + s + s * s / 3][order] * np.exp(-s)
    d = [s, s * s, s * s * (1 + s) / 3][order] * np.exp(-s) * variance / length
    terms = np.abs(G) * h, np.abs(G) * d
    return (np.sum(G * h), np.sum(G * d)), [t.sum() for t in terms]


def gradient(name, x, y, p, U, V):
    def f(p):
        more = {} if y is x else {"y": y[:, None]}
        K = pl.Kernel(name, x[:, None], variance=p["v"], length_scale=p["l"], **more)
        return np.sum(U * (K @ V))

    return pl.grad(f)(p)


@pytest.mark.no_verify  # kernels of 1e-304, which are 0 where the next number is not normal
@pytest.mark.parametrize("columns", [1, 2, 8, 9, 17])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_beside_all_entries(name, size, columns):
    m, n = size
    rng = np.random.default_rng([m, n, columns])
    x = np.sort(rng.uniform(0, 10, m))
    x[m // 2 :] = x[m // 2 :].round(1)  # several at one place
    x.sort()
    y = x if m == n else np.sort(np.r_[x[: n // 3], rng.uniform(-2, 12, n - len(x[: n // 3]))])
    U, V = rng.standard_normal((m, columns)), rng.standard_normal((n, columns))
    for variance, length in ((1.3, 0.7), (2.0, 1e-3), (0.4, 1e4)):
        g = gradient(name, x, y, {"v": np.array(variance), "l": np.array(length)}, U, V)
        expected, sizes = slopes(name, x, y, variance, length, U @ V.T)
        for found, e, size in zip((g["v"], g["l"]), expected, sizes, strict=True):
            assert abs(found - e) <= 2e-13 * size + 1e-300


@pytest.mark.parametrize("name", NAMES)
def test_the_order_changes_nothing(name):
    rng = np.random.default_rng(5)
    n = 120
    x = np.sort(rng.standard_normal(n))
    U, V = rng.standard_normal((2, n, 3))
    p = {"v": np.array(1.1), "l": np.array(0.8)}
    first = gradient(name, x, x, p, U, V)
    order = rng.permutation(n)
    for at in (order, slice(None, None, -1)):
        other = gradient(name, x[at], x[at], p, U[at], V[at])
        for k in p:
            np.testing.assert_allclose(other[k], first[k], rtol=1e-11)


def test_what_is_not_finite():
    rng = np.random.default_rng(7)
    n = 60
    x = np.sort(rng.standard_normal(n))
    U, V = rng.standard_normal((2, n, 2))
    p = {"v": np.array(1.1), "l": np.array(0.8)}
    for bad in (np.nan, np.inf):
        W = U.copy()
        W[4, 1] = bad
        assert not np.isfinite(gradient("matern32", x, x, p, W, V)["v"])
        t = x.copy()
        t[-1] = bad
        with np.errstate(all="ignore"):
            assert np.isnan(gradient("matern32", t, t, p, U, V)["l"])
