"""Diagonals, traces and dense forms of inverses of what is regular though the part that the fast
way starts from is next to singular: the condition of that part must not be left in them."""

import numpy as np
import pytest

import pylinop as pl

pytestmark = pytest.mark.filterwarnings("ignore:.*onditioned")


def line(n, shift, dtype):
    d = np.full(n, 2.0)
    d[0] = d[-1] = 1
    return -np.ones(n - 1, dtype), (d + shift).astype(dtype)


def bordered(rng, n, shift, dtype):
    o, d = line(n, shift, dtype)
    B = rng.standard_normal((n, 2)).astype(dtype)
    E = (rng.standard_normal((2, 2)) + 3 * np.eye(2)).astype(dtype)
    return pl.Block([[pl.Tridiagonal(o, d, o), B], [B.T.copy(), E]])


def updated(rng, n, shift, dtype):
    o, d = line(n, shift, dtype)
    return pl.Tridiagonal(o, d, o) + pl.LowRank(rng.standard_normal((n, 2)).astype(dtype))


def toeplitz(rng, n, shift, dtype):
    c = np.zeros(n)
    c[:2] = 2 * np.cos(np.pi / (n + 1)) + shift, -1
    return pl.Toeplitz(c.astype(dtype)) + pl.LowRank(rng.standard_normal((n, 2)).astype(dtype))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shift", [1e-2, 1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("n", [33, 100])
@pytest.mark.parametrize("make", [bordered, updated, toeplitz])
def test_beside_dense(make, n, shift, dtype):
    A = make(np.random.default_rng(5), n, shift, dtype)
    a = A.toarray().astype(np.float64)
    want, eps = np.linalg.inv(a), np.finfo(dtype).eps
    size = np.abs(want).max()
    near = 60 * eps * np.linalg.cond(a) * size
    if not near < 0.5 * size:
        return  # no digit is left
    inverse = pl.inv(A)
    assert np.abs(inverse.diagonal() - want.diagonal()).max() <= near
    assert np.abs(inverse.toarray() - want).max() <= near
    assert abs(inverse.trace() - want.trace()) <= near * n
