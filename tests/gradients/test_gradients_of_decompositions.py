"""Gradients through Cholesky factors, eigenvalues and eigenvectors, singular values,
pseudo-inverses."""

import numpy as np
import pytest
from gradients.differences import check, check_second

import pylinop as pl

RNG = np.random.default_rng(4)
N = 5


def matrix(dtype, m=N, n=N):
    a = RNG.standard_normal((m, n))
    return a + 1j * RNG.standard_normal((m, n)) if dtype == "c" else a


def definite(a):
    return a @ a.H + 3 * pl.Identity(N)


@pytest.mark.parametrize("dtype", ["f", "c"])
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky(dtype, upper):
    a, w = matrix(dtype), matrix(dtype)
    check(lambda a: np.sum(np.real(w * np.linalg.cholesky(definite(a), upper=upper))), a)


@pytest.mark.parametrize("dtype", ["f", "c"])
def test_eigenvalues(dtype):
    a, w = matrix(dtype), RNG.standard_normal(N)
    check(lambda a: np.sum(w * np.linalg.eigvalsh(definite(a))), a)
    check(lambda a: np.sum(w * np.linalg.eigh(definite(a))[0]), a)


@pytest.mark.parametrize("dtype", ["f", "c"])
def test_eigenvectors_up_to_their_phase(dtype):
    a, w = matrix(dtype), matrix(dtype)

    def f(a):
        values, Q = np.linalg.eigh(definite(a))
        return np.sum(np.abs(w @ Q) ** 2 * values)

    check(f, a)


def test_repeated_eigenvalues():
    """What depends on their space has a derivative, what depends on the basis has none."""
    a = np.diag([1.0, 1.0, 2.0])
    g = pl.grad(lambda a: np.sum(np.linalg.eigvalsh((a + a.T) / 2)))(a)
    assert np.allclose(g, np.eye(3))

    def f(a):
        w, Q = np.linalg.eigh((a + a.T) / 2)
        return np.sum((Q * np.exp(w)) @ Q.T)

    g = pl.grad(f)(a)
    assert np.isfinite(g).all()
    w = RNG.standard_normal((3, 3))
    with pytest.raises(np.linalg.LinAlgError, match="repeated eigenvalues"):
        pl.grad(lambda a: np.sum(w * np.linalg.eigh((a + a.T) / 2)[1]))(a)


@pytest.mark.parametrize("dtype", ["f", "c"])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)])
def test_singular_values_and_pseudo_inverse(dtype, shape):
    a = matrix(dtype, *shape)
    w, x = RNG.standard_normal(min(shape)), matrix(dtype, *shape[::-1])
    check(lambda a: np.sum(w * np.linalg.svdvals(a)), a)
    check(lambda a: np.sum(w * np.linalg.svd(a, full_matrices=False)[1]), a)
    check(lambda a: np.sum(np.real(x * np.linalg.pinv(a))), a)


def test_second_derivatives():
    a, w = matrix("f"), RNG.standard_normal(N)
    check_second(lambda a: np.sum(w * np.linalg.cholesky(definite(a)) @ w), a)
    check_second(lambda a: np.sum(w * np.linalg.eigvalsh(definite(a))), a, rtol=1e-6)


@pytest.mark.parametrize(
    "f",
    [
        lambda a: np.sum(np.linalg.qr(np.reshape(a, (1, N, N)))[0]),
        lambda a: np.sum(np.linalg.svd(np.reshape(a, (1, N, N)))[0]),
    ],
)
def test_others_say_that_they_have_none(f):
    with pytest.raises(NotImplementedError, match="has no derivative here"):
        pl.grad(f)(matrix("f"))
