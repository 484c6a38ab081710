"""Cotangents of Cholesky factors of dense matrices block by block, on both sides of the sizes at
which that begins and of a block's."""

import numpy as np
import pytest
from gradients.differences import check, check_second

import pylinop as pl


def definite(rng, n, dtype):
    a = rng.standard_normal((n, n))
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal((n, n))
    return (a @ a.conj().T / n + np.eye(n)).astype(dtype)


def by_triangles(L, g):
    back = np.linalg.inv(L)
    phi = np.tril(np.ones(L.shape)) - 0.5 * np.eye(len(L))
    x = back.conj().T @ ((L.conj().T @ g) * phi) @ back
    return (x + x.conj().T) / 2


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("n", [127, 128, 129, 192, 193, 300])
@pytest.mark.parametrize("function", [pl.cholesky, np.linalg.cholesky])
def test_beside_the_formula(function, n, dtype, upper):
    rng = np.random.default_rng(n)
    a, w = definite(rng, n, dtype), rng.standard_normal((n, n)).astype(dtype)
    found = pl.grad(lambda A: np.sum(np.real(function(A, upper=upper) * w)))(a)
    wide = "c16" if a.dtype.kind == "c" else "f8"
    L = np.linalg.cholesky(a.astype(wide))
    g = np.conj(w.astype(wide))
    wanted = by_triangles(L, g.conj().T if upper else g)
    wanted = wanted if a.dtype.kind == "c" else wanted.real
    rtol = 1e-4 if dtype in ("f4", "c8") else 1e-11
    assert found.dtype == a.dtype
    assert np.abs(found - wanted).max() <= rtol * np.abs(wanted).max()


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_beside_differences(dtype):
    rng = np.random.default_rng(3)
    n = 150
    a, z = definite(rng, n, dtype), rng.standard_normal((n, 2))
    d, U = rng.random(n), rng.standard_normal((n, 3))

    def f(s, d, U):
        A = s * pl.lazy(a) + pl.Diag(d) + pl.LowRank(U)
        L = pl.cholesky(A)
        x = L @ z
        return np.sum(np.abs(x) ** 2) + np.sum(np.log(np.real(np.diagonal(L)))) + np.real(L[9, 3])

    check(f, np.array(0.9), d, U)
    check_second(f, np.array(0.9), d, U, rtol=1e-6)


def test_of_a_kernel_matrix():
    rng = np.random.default_rng(4)
    points, z = rng.random((140, 2)), rng.standard_normal(140)

    def f(length, noise):
        K = pl.Kernel("rbf", points, length_scale=length) + noise * pl.Identity(140)
        return np.sum(np.tanh(pl.cholesky(K) @ z))

    check(f, np.array(0.3), np.array(0.1))
    check_second(f, np.array(0.3), np.array(0.1), rtol=1e-6)


def test_not_definite():
    a = np.diag(np.r_[np.ones(149), -1.0])
    f = lambda A: np.sum(pl.cholesky(A))
    with pytest.raises(np.linalg.LinAlgError):
        pl.grad(f)(a)


def test_near_a_singular_matrix():
    """As good as the formula in long double."""
    rng = np.random.default_rng(5)
    n = 160
    q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    a = (q * np.geomspace(1e-9, 1, n)) @ q.T
    a = (a + a.T) / 2
    w = rng.standard_normal((n, n))
    found = pl.grad(lambda A: np.sum(pl.cholesky(A) * w))(a)
    wanted = by_triangles(np.linalg.cholesky(a), w)
    assert np.abs(found - wanted).max() <= 1e-6 * np.abs(wanted).max()
