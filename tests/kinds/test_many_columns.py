"""Sizes at which checks of many columns, sums of squares and large workspaces go another way."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pylinop as pl


@pytest.mark.parametrize("columns", [1, 3, 4, 63, 64, 65, 130])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("order", ["C", "F"])
def test_solves_of_many_columns(columns, dtype, order):
    """One among them tiny, one huge, whose squares are out of range, and one of zeros."""
    rng = np.random.default_rng(columns)
    n = 60
    d, U = rng.uniform(1, 2, n), rng.standard_normal((n, 4))
    b = rng.standard_normal((n, columns))
    if dtype is not np.float32:
        b = b * 10.0 ** rng.choice([0, 0, -200, 200], columns)
    b[:, rng.integers(columns)] = 0
    d, U, b = (np.asarray(x, np.float32 if dtype is np.float32 else None) for x in (d, U, b))
    b = np.asarray(b, dtype, order)
    A = np.diag(d.astype(float)) + U.astype(float) @ U.T
    tol = 1e-12 if dtype is not np.float32 else 1e-5
    found = pl.solve(pl.Diag(d) + pl.LowRank(U), b)
    size = np.abs(b).max(axis=0)
    due = np.linalg.solve(A, b / np.where(size == 0, 1, size)) * size
    for j in range(columns):
        np.testing.assert_allclose(found[:, j], due[:, j], rtol=0, atol=tol * size[j])


def test_a_column_that_is_no_number_is_seen():
    """Where it stands behind the first block, and in the last one."""
    n = 30
    for j in (0, 63, 64, 69):
        b = np.ones((n, 70))
        b[3, j] = np.nan
        x = pl.solve(pl.Diag(np.arange(1.0, n + 1)) + pl.LowRank(np.ones((n, 2))), b)
        assert np.isnan(x[:, j]).any()
        assert np.isfinite(np.delete(x, j, axis=1)).all()


@pytest.mark.parametrize("n", [2047, 2048, 2049, 4100])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_diagonals_of_inverses_go_in_blocks(n, dtype):
    rng = np.random.default_rng(n)
    d, U = rng.uniform(1, 2, n).astype(dtype), rng.standard_normal((n, 3)).astype(dtype)
    W = U.astype(float) / d[:, None]
    S = np.linalg.inv(np.eye(3) + U.T.astype(float) @ W)
    due = 1 / d.astype(float) - np.sum((W @ S) * W, axis=1)
    found = pl.diagonal(pl.inv(pl.Diag(d) + pl.LowRank(U)))
    np.testing.assert_allclose(found, due, rtol=1e-12 if dtype is np.float64 else 1e-5)


def test_memory_that_was_used_before_says_nothing():
    """Workspaces of four megabytes and more, again and again, of several threads."""
    rng = np.random.default_rng(0)
    cases = []
    for n, k in ((60_000, 9), (90_000, 8), (120_000, 11)):
        d, U = rng.uniform(1, 2, n), rng.standard_normal((n, k))
        W = U / d[:, None]
        S = np.linalg.inv(np.eye(k) + U.T @ W)
        cases.append((d, U, W @ S))

    def one(i):
        d, U, due = cases[i % 3]
        found = pl.solve(pl.Diag(d) + pl.LowRank(U), U)
        np.testing.assert_allclose(found, due, rtol=0, atol=1e-12)

    for i in range(6):
        one(i)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(12)))
