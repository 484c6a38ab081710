"""Sums of a Toeplitz and a Circulant of one level are a Toeplitz; of more levels they are not."""

import numpy as np
import pytest

import pylinop as pl


def arrays(rng, n, dtype, batch=()):
    def one():
        a = rng.integers(-5, 6, (*batch, n)).astype(dtype)
        return a + 1j * rng.integers(-5, 6, (*batch, n)) if np.dtype(dtype).kind == "c" else a

    c, r, k = one(), one(), one()
    r[..., 0] = c[..., 0]
    return c, r, k


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("n", [1, 2, 3, 16, 33])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_the_sum_is_a_toeplitz(n, dtype, batch, rng):
    c, r, k = arrays(rng, n, dtype, batch)
    T, C = pl.Toeplitz(c, r), pl.Circulant(k)
    D = np.asarray(T) + np.asarray(C)
    for A, M in (
        (T + C, D),
        (C + T, D),
        (T - 2 * C, np.asarray(T) - 2 * np.asarray(C)),
        ((T + C).T, np.swapaxes(D, -1, -2)),
        ((T + C).H, np.swapaxes(D, -1, -2).conj()),
    ):
        assert A._head in ("toeplitz", "view") and A.dtype == M.dtype
        np.testing.assert_array_equal(np.asarray(A), M)
        x = np.arange(n, dtype=M.dtype)
        np.testing.assert_allclose(
            A @ x, M @ x, rtol=0, atol=1e-4 if dtype == np.float32 else 1e-10
        )


def test_solves_and_determinants(rng):
    for n in (15, 17, 200):
        c, r, k = arrays(rng, n, float)
        c[0] = r[0] = 40 * n
        A = pl.Toeplitz(c, r) + pl.Circulant(k)
        M, b = np.asarray(A), rng.standard_normal(n)
        np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(M, b), rtol=0, atol=1e-12)
        assert pl.logdet(A) == pytest.approx(np.linalg.slogdet(M)[1], rel=1e-12)


def test_of_two_levels_it_is_not(rng):
    c = rng.standard_normal((3, 4))
    C, T = pl.Circulant(c, levels=2), pl.Toeplitz(rng.standard_normal(12))
    A = T + C
    assert A._head == "sum"
    np.testing.assert_allclose(np.asarray(A), np.asarray(T) + np.asarray(C), rtol=0, atol=1e-14)
