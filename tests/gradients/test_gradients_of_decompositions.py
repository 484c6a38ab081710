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
    """Values, and vectors of other values, have a derivative, what is made of their vectors none:
    not even of Q f(w) Q^H, a function of the matrix, can it be told from cotangents of w and Q."""
    a = np.diag([1.0, 1.0, 2.0])
    g = pl.grad(lambda a: np.sum(np.linalg.eigvalsh((a + a.T) / 2)))(a)
    assert np.allclose(g, np.eye(3))

    v = RNG.standard_normal(3)
    check(lambda a: np.abs(v @ np.linalg.eigh((a + a.T) / 2)[1][:, 2]), a)
    w = RNG.standard_normal((3, 3))
    for function in (np.exp, lambda values: 0 * values + 1):
        for scale in (1.0, 1e-30):

            def f(a, function=function, scale=scale):
                values, Q = np.linalg.eigh((a + a.T) / 2)
                return scale * np.sum(w * ((Q * function(values)) @ Q.T))

            with pytest.raises(np.linalg.LinAlgError, match="repeated eigenvalues"):
                pl.grad(f)(a)
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
