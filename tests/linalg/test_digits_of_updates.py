"""Digits of what goes by a low rank or by first and last columns, beside dense solves: at small
pivots, at scales whose squares leave the range."""

import numpy as np
import pytest

import pylinop as pl


def near_pivot(n, d0, dtype):
    r = np.random.default_rng(n)
    d = 1 + r.random(n)
    d[0] = d0
    U = r.standard_normal((n, 5)) / np.sqrt(n)
    U[0] = r.standard_normal(5)
    return d.astype(dtype), U.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d0", [1e-2, 1e-3])
@pytest.mark.parametrize("n", [33, 100, 300])
def test_determinants_at_a_small_pivot(n, d0, dtype):
    d, U = near_pivot(n, d0, dtype)
    A = pl.Diag(d) + pl.LowRank(U)
    dense = np.diag(d).astype(float) + U.astype(float) @ U.T.astype(float)
    eps = np.finfo(dtype).eps
    assert (
        abs(pl.slogdet(A)[1] - np.linalg.slogdet(dense)[1])
        <= (1e3 if eps < 1e-10 else 300) * n * eps
    )


@pytest.mark.parametrize("corner", ["Diag", "Tridiagonal"])
def test_blocks_at_a_small_pivot_in_single_precision(corner):
    n, m = 100, 5
    d, U = near_pivot(n, 3e-3, np.float32)
    e = np.full(n - 1, 0.01, np.float32)
    A = pl.Diag(d) if corner == "Diag" else pl.Tridiagonal(e, d, e)
    M = pl.Block([[A, pl.Dense(U)], [pl.Dense(U.T), -pl.Identity(m, dtype=np.float32)]])
    dense = M.toarray().astype(float)
    b = np.ones(n + m, np.float32)
    due = np.linalg.solve(dense, b)
    assert np.abs(pl.solve(M, b) - due).max() <= 3e-6 * np.linalg.cond(dense) * abs(due).max()
    assert abs(pl.slogdet(M)[1] - np.linalg.slogdet(dense)[1]) <= 3e-4


@pytest.mark.parametrize("scale", [1e-160, 1e-100, 1.0, 1e150, 1e154, 1e158, 1e200])
@pytest.mark.parametrize("made", ["Toeplitz", "Hankel"])
def test_inverses_at_any_scale(made, scale):
    n = 100
    r = np.random.default_rng(3)
    if made == "Toeplitz":
        c = np.zeros(n)
        c[0], c[1], c[5] = 3, 0.5, -0.4
        T, one = pl.Toeplitz(c * scale), pl.Toeplitz(c).toarray()
    else:
        h = r.standard_normal(2 * n - 1)
        h[n - 1] += 20
        T, one = (
            pl.Hankel(h[:n] * scale, h[n - 1 :] * scale),
            pl.Hankel(h[:n], h[n - 1 :]).toarray(),
        )
    due = np.linalg.inv(one)
    size = np.abs(due).max()
    found = pl.inv(T)
    assert np.abs(found.toarray() * scale - due).max() <= 1e-12 * size
    assert np.abs(pl.diagonal(found) * scale - due.diagonal()).max() <= 1e-12 * size
    assert np.abs(found[:5, :5].toarray() * scale - due[:5, :5]).max() <= 1e-12 * size
    assert abs(pl.trace(found) * scale - due.trace()) <= 1e-11 * size


def test_a_leading_minor_next_to_singular_at_a_scale_whose_squares_overflow():
    """The check of the first and last columns had no bound there, and believed anything."""
    for n in (100, 150):
        r = np.random.default_rng(n)
        c = r.standard_normal(n)
        row = r.standard_normal(n)
        row[0] = c[0]
        one = pl.Toeplitz(c, row).toarray()
        w = np.linalg.eigvals(one[:-1, :-1])  # moved so that the leading minor is nearly singular
        shift = w[np.argmin(np.abs(w.imag) * 1e3 + np.abs(w))].real
        c[0] = row[0] = c[0] - shift
        due = np.linalg.inv(pl.Toeplitz(c, row).toarray())
        for scale in (1.0, 1e154, 1e158):
            found = pl.inv(pl.Toeplitz(c * scale, row * scale)).toarray() * scale
            assert np.abs(found - due).max() <= 1e-9 * np.abs(due).max()
