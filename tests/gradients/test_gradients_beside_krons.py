"""Cotangents times a Kron, for a factor of another one: deblurring, covariances K K^H + s I."""

import numpy as np
import pytest
from gradients.differences import check, check_second

import pylinop as pl

M, N = 5, 4


def drawn(rng, *shape, dtype="f8"):
    a = rng.standard_normal(shape)
    return a + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else a


def dense(rng, dtype):
    return (drawn(rng, M, M, dtype=dtype), drawn(rng, N, N, dtype=dtype)), lambda a, b: pl.Kron(
        pl.lazy(a), pl.lazy(b)
    )


def circulants(rng, dtype):
    made = drawn(rng, M, dtype=dtype), drawn(rng, N, dtype=dtype)
    return made, lambda a, b: pl.Kron(pl.Circulant(a), pl.Circulant(b))


def mixed(rng, dtype):
    made = drawn(rng, M, dtype=dtype), drawn(rng, N, N, dtype=dtype)
    return made, lambda a, b: pl.Kron(pl.Toeplitz(a), pl.lazy(b))


def three(rng, dtype):
    made = drawn(rng, 3, dtype=dtype), drawn(rng, 2, 2, dtype=dtype)
    return made, lambda a, b: pl.Kron(pl.Circulant(a), pl.lazy(b), pl.Diag(a))


def rectangular(rng, dtype):
    made = drawn(rng, M, N, dtype=dtype), drawn(rng, 3, N, dtype=dtype)
    return made, lambda a, b: pl.Kron(pl.lazy(a), pl.lazy(b))


KRONS = [dense, circulants, mixed, three, rectangular]


def covariance(K, y, x):
    C = K @ K.H + 0.7 * pl.Identity(K.shape[0])
    return np.real(pl.logdet(C)) + np.real(np.conj(y) @ pl.solve(C, y))


def deblurred(K, y, x):
    z = pl.solve(K.H @ K + 0.7 * pl.Identity(K.shape[1]), K.H @ y)
    return np.sum(np.abs(K @ z - y) ** 2) + 0.3 * np.sum(np.abs(z) ** 2)


def weighted(K, y, x):
    w = np.linspace(1, 2, K.shape[0])
    return np.real(np.conj(y) @ (pl.Diag(w) @ (K @ (K.H @ (K @ x))))) + np.real(
        pl.trace(K.H @ pl.inv(K @ K.H + pl.Diag(w)) @ K)
    )


@pytest.mark.parametrize("what", [covariance, deblurred, weighted])
@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("kron", KRONS)
def test_beside_differences(kron, dtype, what):
    rng = np.random.default_rng(KRONS.index(kron))
    arrays, made = kron(rng, dtype)
    m, n = pl.evaluate(made(*map(pl.lazy, arrays))).shape
    y, x = drawn(rng, m, dtype=dtype), drawn(rng, n, dtype=dtype)
    with pl.config(check_plans=True):
        check(lambda *a: what(made(*a), y, x), *arrays, rtol=1e-7)
        check_second(lambda *a: what(made(*a), y, x), *arrays, rtol=1e-5)


def test_a_large_covariance_makes_no_dense_form():
    m = 64
    x = np.arange(m)
    d = np.minimum(x, m - x)
    y = np.random.default_rng(0).standard_normal(m * m)

    def f(t):
        c = pl.Circulant(np.exp(-(d**2) / (2 * t[0] ** 2)))
        A = pl.Kron(c, c)
        C = A @ A.T + t[1] * pl.Identity(m * m)
        return y @ pl.solve(C, y) + pl.logdet(C)

    with pl.config(memory_limit=m**4):  # an eighth of it
        check(f, np.array([1.3, 0.4]), rtol=1e-7)
