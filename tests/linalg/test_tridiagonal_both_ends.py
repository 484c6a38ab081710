"""Tridiagonal solves from both ends (k_band_solve_per_dtype.h), and where a row wants to change
places with its neighbour: against dense matrices, by backward errors."""

import numpy as np
import pytest

import pylinop as pl

DTYPES = ["f4", "f8", "c8", "c16"]


def numbers(rng, n, dtype):
    x = rng.uniform(-1, 1, n)
    return (x + 1j * rng.uniform(-1, 1, n) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def dense(dl, d, du):
    return np.diag(d) + np.diag(dl, -1) + np.diag(du, 1)


def check(dl, d, du, b):
    x = pl.solve(pl.Tridiagonal(dl, d, du), b)
    wide = np.complex128 if np.iscomplexobj(x) else np.float64
    a = dense(dl, d, du).astype(wide)
    x64 = x.astype(wide)
    # in units in which nothing is out of range
    scale = np.abs(a).max()
    off = np.abs((a / scale) @ x64 - b / scale)
    size = (np.abs(a) / scale) @ np.abs(x64) + np.abs(b) / scale
    eps = np.finfo(x.dtype).eps
    assert np.all(off <= 30 * eps * size.max()), (off.max() / size.max(), eps)
    return x


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 20, 33])
@pytest.mark.parametrize("heavy", [0.0, 0.7, 4.0])
def test_solves(n, dtype, heavy):
    """heavy: how far the diagonal outweighs: never, at times, always."""
    rng = np.random.default_rng(n)
    for k in (None, 1, 3):
        for _ in range(4):
            dl, du = numbers(rng, n - 1, dtype), numbers(rng, n - 1, dtype)
            d = numbers(rng, n, dtype) + np.dtype(dtype).type(heavy)
            b = numbers(rng, n * (k or 1), dtype).reshape((n,) if k is None else (n, k))
            a = dense(dl, d, du)
            if np.linalg.cond(a) < 1e3:
                check(dl, d, du, b)
                got, want = pl.slogdet(pl.Tridiagonal(dl, d, du)), np.linalg.slogdet(a)
                eps = np.finfo(dtype).eps
                assert abs(got[0] - want[0]) < 1e4 * eps
                assert abs(got[1] - want[1]) < 1e4 * eps * (1 + n)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("place", [0, 1, 4, 5, 6, 8, 9])
@pytest.mark.parametrize("n", [10, 11])
def test_one_row_that_changes_places(n, place, dtype):
    """A small or zero pivot anywhere, the middle and the ends included."""
    rng = np.random.default_rng(place)
    dl, d, du = numbers(rng, n - 1, dtype), 4 + numbers(rng, n, dtype), numbers(rng, n - 1, dtype)
    for value in (0, 1e-12, 1e-170, 1e-310):
        d[place] = value
        check(dl, d, du, numbers(rng, n, dtype))


@pytest.mark.filterwarnings("ignore:Ill-conditioned")
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-140, 1e140, 1e160, 1e290])
@pytest.mark.parametrize("n", [7, 8])
def test_numbers_that_lie_far_out(n, scale):
    """Products and reciprocals of these are no numbers, or have few digits."""
    rng = np.random.default_rng(1)
    dl, d, du = (scale * v for v in (numbers(rng, n - 1, "f8"), np.full(n, 3.0), np.ones(n - 1)))
    b = numbers(rng, n, "f8")
    got = pl.solve(pl.Tridiagonal(dl, d, du), b * scale)
    want = np.linalg.solve(dense(dl, d, du) / scale, b)
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-15)
    mixed = d.copy()
    mixed[n // 2] = 3.0
    check(dl, mixed, du, b * min(scale, 1.0))


def test_float32_far_out():
    rng = np.random.default_rng(2)
    for scale in (1e-30, 1e-19, 1e-15, 1e15, 1e19, 1e30):
        dl, d, du = (
            (scale * v).astype("f4") for v in (numbers(rng, 8, "f8"), np.full(9, 3.0), np.ones(8))
        )
        b = (scale * numbers(rng, 9, "f8")).astype("f4")
        got = pl.solve(pl.Tridiagonal(dl, d, du), b)
        want = np.linalg.solve(dense(dl, d, du).astype(float), b.astype(float))
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [2, 3, 8, 9])
def test_singular(n):
    """Row sums that are zero: the middle pivot is, though none before it."""
    d = np.full(n, 2.0)
    d[0] = d[-1] = 1.0
    e = -np.ones(n - 1)
    with pytest.raises(np.linalg.LinAlgError, match=f"pivot {n} of {n} is exactly zero"):
        pl.solve(pl.Tridiagonal(e, d, e), np.ones(n))
    assert pl.slogdet(pl.Tridiagonal(e, d, e)) == (0.0, -np.inf)


def test_nan_and_strides():
    d = np.full(21, 3.0)
    d[7] = np.nan
    e = np.ones(20)
    assert np.isnan(pl.solve(pl.Tridiagonal(e, d, e), np.ones(21))).all()
    rng = np.random.default_rng(3)
    dl, d, du = numbers(rng, 80, "f8")[::2], 3 + numbers(rng, 123, "f8")[::3], np.ones(40)[::-1]
    check(dl, d, du, numbers(rng, 246, "f8").reshape(41, 6)[:, ::2])
    check(dl, d, du, np.asfortranarray(numbers(rng, 123, "f8").reshape(41, 3)))


def test_values_change_in_place():
    rng = np.random.default_rng(4)
    dl, d, du = numbers(rng, 29, "f8"), 4 + numbers(rng, 30, "f8"), numbers(rng, 29, "f8")
    T, b = pl.Tridiagonal(dl, d, du), numbers(rng, 30, "f8")
    for value in (5.0, 0.0, 1e-3, 5.0):
        d[11] = value
        np.testing.assert_allclose(pl.solve(T, b), np.linalg.solve(dense(dl, d, du), b), rtol=1e-11)
