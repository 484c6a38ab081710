"""Solves with definite bands, eliminated from both ends: all sizes, bad pivots, scales."""

import warnings

import numpy as np
import pytest
import ref
from samples import values
from test_kinds_band import spd

import pylinop as pl

floats = pytest.mark.parametrize("dtype", ref.FLOATS)


def storage(h, w, below=False):
    """The band of h as Banded wants it; what is below the diagonal is nan, unless asked for."""
    n = len(h)
    ab = np.full((2 * w + 1, n), np.nan, h.dtype)
    for k in range(-min(w, n - 1) if below else 0, min(w, n - 1) + 1):
        ab[w - k, max(k, 0) : n + min(k, 0)] = np.diag(h, k)
    return ab


def forms(h, w):
    nans = np.full(len(h) - 1, np.nan, h.dtype)
    yield pl.Banded((w, w), storage(h, w), "pos")
    yield pl.Banded((w, w), np.asfortranarray(storage(h, w)), "pos")
    if w == 1:
        strided = np.zeros(2 * len(h), h.dtype)
        strided[::2] = np.diag(h)
        yield pl.Tridiagonal(nans, strided[::2], np.diag(h, 1), "pos")


def right_sides(rng, n, dtype):
    b = values(rng, (n, 3), dtype)
    wide = np.zeros((n, 7), dtype)
    wide[:, 1:7:2] = b
    return b, np.asfortranarray(b), wide[:, 1:7:2], b[:, 0], b[:, :0]


@floats
@pytest.mark.parametrize("w", range(8))
def test_every_size(w, dtype, rng):
    """Every remainder, the middle alone, several columns, strides that are not one, all views."""
    u = np.finfo(dtype).eps
    for n in (*range(1, 3 * w + 4), 40, 41):
        h = spd(rng, n, dtype, w)
        for A in forms(h, w):
            for a, M in ((h, A), (h.T, A.T), (h, A.H), (h.conj(), A.conj())):
                for b in right_sides(rng, n, dtype):
                    x = pl.solve(M, b)
                    left = np.linalg.norm(b - a @ x)
                    right = np.linalg.norm(a) * np.linalg.norm(x) + np.linalg.norm(b)
                    assert x.dtype == dtype and x.shape == b.shape
                    assert left <= 10 * n * u * right


def test_columns_are_the_same_bits(rng):
    for w in (1, 3, 9):
        h = spd(rng, 50, "float64", w)
        for A in forms(h, w):
            b = rng.standard_normal((50, 5))
            x = pl.solve(A, b)
            for j in range(5):
                assert np.array_equal(x[:, j], pl.solve(A, b[:, j]))


@pytest.mark.parametrize(("w", "n"), [(1, 301), (2, 301), (3, 60), (5, 20), (7, 16)])
def test_backward_stable(w, n, rng):
    """Differences of order w have a condition number of n^(2w); and elements of 300 decades."""
    d = np.eye(n)
    for _ in range(w):
        d = np.diff(d, axis=0, append=0)
    h = d.T @ d
    scale = 10.0 ** rng.integers(-70, 70, n) if w == 1 else np.ones(n)
    h = scale[:, None] * h * scale
    b = scale * rng.standard_normal(n)
    for A in forms(h, w):
        with warnings.catch_warnings():
            warnings.simplefilter("error", pl.FallbackWarning)
            x = pl.solve(A, b)
        left = np.abs(b - h @ x)
        # |L| |D| |L^H| is at most w + 1 times |A| here: elements grow no more in a definite matrix
        size = np.sqrt(np.diag(h))
        bound = size * (w + 1) * np.sum(size * np.abs(x)) + np.abs(b)
        assert np.all(left <= 20 * (w + 1) * np.finfo(float).eps * bound)


@pytest.mark.parametrize("n", [2, 3, 9, 10, 40])
@pytest.mark.parametrize("w", [1, 2, 6, 7])
def test_a_bad_pivot_is_found_wherever_it_is(w, n, rng):
    for at in range(n):
        h = spd(rng, n, "float64", w)
        h[at, at] -= 3 * np.abs(h).sum()
        b = rng.standard_normal(n)
        made = [pl.Banded((w, w), storage(h, w, below=True), "pos")]
        if w == 1:
            made.append(pl.Tridiagonal(np.diag(h, -1), np.diag(h), np.diag(h, 1), "pos"))
        for A in made:
            with pytest.warns(pl.FallbackWarning, match="assumed positive definite"):
                x = pl.solve(A, b)
            np.testing.assert_allclose(x, np.linalg.solve(h, b), rtol=1e-9, atol=1e-12)


def test_a_pivot_without_a_reciprocal(rng):
    """1 / d overflows: the general elimination does it, as it did."""
    tiny = np.full(5, 5e-324)
    T = pl.Tridiagonal(np.zeros(4), tiny, np.zeros(4), "pos")
    with pytest.warns(pl.FallbackWarning):
        assert np.array_equal(pl.solve(T, 3 * tiny), np.full(5, 3.0))
