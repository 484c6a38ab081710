"""D + c 1 1^T, written with Full, is an update of rank one, and multiples of sums are multiplied
out where that is one."""

import mpmath
import numpy as np
import pytest
from drawn import figures, values

import pylinop as pl

inv = pl.inv
N = 150


def given(dtype):
    r = np.random.default_rng(31)
    e = (r.random(N - 1) / 3).astype(np.empty(0, dtype).real.dtype)
    D = pl.Diag((1 + r.random(N)).astype(e.dtype))
    T = pl.Tridiagonal(e, (2 + r.random(N)).astype(e.dtype), e)
    return r, D, T, pl.Identity(N), pl.Dense(values(r, (N, 3), dtype) / 8)


SUMS = {
    "D + F": lambda D, T, I, U, F: D + F(0.5),
    "F + D": lambda D, T, I, U, F: F(0.5) + D,
    "s I + F": lambda D, T, I, U, F: 0.25 * I + F(0.5),
    "T + F": lambda D, T, I, U, F: T + F(0.5),
    "2 F": lambda D, T, I, U, F: D + 2 * F(0.5),
    "minus": lambda D, T, I, U, F: D - F(0.5),
    "complex": lambda D, T, I, U, F: D + F(0.5 - 0.25j),
    "and a product": lambda D, T, I, U, F: D + U @ U.H + F(0.5),
    "multiples": lambda D, T, I, U, F: 0.5 * (I + 2 * (U @ U.H + D)),
    "of a negative": lambda D, T, I, U, F: -0.5 * (I + 2 * (T + U @ U.H)),
    "multiples within": lambda D, T, I, U, F: I + 3 * (T - 0.5 * (D + U @ U.H)),
    "all": lambda D, T, I, U, F: 2 * (D + 0.5 * (F(0.5) + U @ U.H)) + T,
}


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("written", SUMS)
def test_they_are_updates(written, dtype):
    r, *rest = given(dtype)
    A = SUMS[written](*rest, lambda c: pl.Full((N, N), c))
    a = A.toarray()
    wide = a.astype("complex128")
    b = values(r, N, dtype)
    eps = np.finfo(dtype).eps * 100 * N * np.linalg.cond(wide)
    for ask, want in (
        (lambda A: pl.solve(A, b), np.linalg.solve(wide, b)),
        (lambda A: inv(A) @ b, np.linalg.solve(wide, b)),
        (lambda A: inv(A).diagonal(), np.diagonal(np.linalg.inv(wide))),
        (lambda A: inv(A).trace(), np.trace(np.linalg.inv(wide))),
    ):
        x, fx = figures(ask, A)
        np.testing.assert_allclose(x, want, rtol=0, atol=eps * np.abs(want).max())
        assert fx <= 600 * N, fx / N
        assert np.asarray(x).dtype in (np.dtype(dtype), a.dtype)
    (sign, det), fx = figures(pl.slogdet, A)
    s, d = np.linalg.slogdet(wide)
    np.testing.assert_allclose([sign, det], [s, d], rtol=0, atol=eps * max(1, abs(d)))
    assert fx <= 600 * N, fx / N


@pytest.mark.filterwarnings("ignore::pylinop.IllConditionedWarning")
@pytest.mark.parametrize("power", [1, 6, 10, 14])
@pytest.mark.parametrize("c", [1e8, 1.0, -1.0])
def test_near_singular_ones(power, c):
    """d + c 1 1^T with 1 + c 1^T d^-1 1 of 10^-power, or a graded d: in 60 digits."""
    n = 24
    r = np.random.default_rng(32)
    d = 10.0 ** -np.linspace(0, power / 2, n) * (1 + r.random(n))
    if c < 0:
        c = -(1 - 10.0**-power) / (1 / d).sum()
    b = r.standard_normal(n)
    A = pl.Diag(d) + pl.Full((n, n), c)
    with mpmath.workdps(60):
        a = mpmath.diag(d.tolist()) + mpmath.mpf(c) * mpmath.ones(n, n)
        size = float(mpmath.mnorm(a, "f")) / np.sqrt(n)
        for x in (pl.solve(A, b), inv(A) @ b):
            rest = mpmath.matrix(b.tolist()) - a * mpmath.matrix(x.tolist())
            most = 10 * n * np.finfo(float).eps * (size * np.linalg.norm(x) + np.linalg.norm(b))
            assert float(mpmath.norm(rest)) <= 5 * most
        det = mpmath.det(a)
        off = abs(pl.slogdet(A)[1] - float(mpmath.log(abs(det))))
        cond = float(mpmath.mnorm(a, "f") * mpmath.mnorm(a**-1, "f"))
    assert off <= 10 * n * np.finfo(float).eps * max(cond, 10)


def test_a_singular_one_is_none():
    """The centering matrix has no inverse."""
    n = 64
    A = pl.Identity(n) - pl.Full((n, n), 1 / n)
    with pytest.warns(pl.IllConditionedWarning, match="singular"):
        pl.solve(A, np.ones(n))
    assert pl.slogdet(A)[1] < -30 or pl.slogdet(A)[0] == 0


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_small_ones(n):
    r = np.random.default_rng(33)
    D, b = pl.Diag(1 + r.random(n)), r.standard_normal(n)
    for A in (D + pl.Full((n, n), 0.5), 0.5 * (D + 2 * (pl.Identity(n) + pl.Full((n, n), 1.0)))):
        np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(A.toarray(), b), rtol=1e-13)
        np.testing.assert_allclose(pl.slogdet(A), np.linalg.slogdet(A.toarray()), atol=1e-13)


def test_batches_and_integers_stay_as_written():
    r = np.random.default_rng(34)
    d = 1 + r.random((2, 6))
    A = pl.Diag(d) + pl.Full((2, 6, 6), 0.5)
    b = r.standard_normal((2, 6, 1))
    np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(A.toarray(), b), rtol=1e-12)
    B = pl.Diag(np.arange(1, 7)) + pl.Full((6, 6), 2)
    np.testing.assert_allclose(
        pl.solve(B, np.ones(6)), np.linalg.solve(B.toarray(), np.ones(6)), rtol=1e-12
    )
