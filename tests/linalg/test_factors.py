"""Kept factors: the same bits with caches cold or warm, the new answer after every write."""

import warnings

import numpy as np
import pytest

import pylinop as pl
from pylinop import _core

DTYPES = ["f4", "f8", "c8", "c16"]


def spd(rng, shape, dtype):
    a = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype[0] == "c" else 0)
    return (a @ a.conj().swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def tolerance(dtype):
    return 2e-4 if np.finfo(dtype).eps > 1e-10 else 1e-11


@pytest.fixture
def rng():
    return np.random.default_rng(20261121)


@pytest.mark.parametrize("word", ["pos", None])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_factor_is_kept_and_the_bits_stay(word, dtype, rng):
    a, b = spd(rng, (40, 40), dtype), rng.normal(size=(40, 3)).astype(dtype)
    _core._clear_store()
    B = pl.inv(pl.Dense(a, assume_a=word))
    cold = B @ b
    entries = _core._store()["entries"]
    assert entries == 1
    warm = B @ b
    assert _core._store()["entries"] == entries and cold.tobytes() == warm.tobytes()
    _core._clear_store()
    assert (B @ b).tobytes() == cold.tobytes()
    assert (pl.inv(pl.Dense(a.copy(), assume_a=word)) @ b).tobytes() == cold.tobytes()
    np.testing.assert_allclose(a @ cold, b, rtol=tolerance(dtype), atol=tolerance(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_writes_are_seen(dtype, rng):
    a, b = spd(rng, (12, 12), dtype), np.ones(12, dtype)
    B = pl.inv(pl.Dense(a, assume_a="pos"))
    for step in range(4):
        x = B @ b
        np.testing.assert_allclose(a @ x, b, rtol=tolerance(dtype), atol=tolerance(dtype))
        a[step, step] += 3
    a[0, 1] = a[1, 0] = -a[0, 1].real  # off the diagonal too
    x = B @ b
    np.testing.assert_allclose(a @ x, b, rtol=tolerance(dtype), atol=tolerance(dtype))


def test_an_assumption_broken_later_and_kept_again(rng):
    """The flag of the fallback is part of what is kept: warned at each call, warm or cold."""
    a, b = spd(rng, (6, 6), "f8"), np.ones(6)
    good = a.copy()
    B = pl.inv(pl.Dense(a, assume_a="pos"))
    first = B @ b
    a[2, 2] = -1.0
    for _ in range(3):
        with pytest.warns(pl.FallbackWarning):
            x = B @ b
        np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-10)
        assert x.tobytes() == (pl.inv(pl.Dense(a.copy())) @ b).tobytes()
    a[...] = good
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (B @ b).tobytes() == first.tobytes()
    a[...] = 0
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError, match="pivot 1 of 6"):
            B @ b


@pytest.mark.parametrize("dtype", DTYPES)
def test_each_batch_element_branches_alone(dtype, rng):
    a = spd(rng, (2, 3, 5, 5), dtype)
    a = np.triu(a) + np.conj(np.swapaxes(np.triu(a, 1), -1, -2))  # to the last bit
    a[0, 1] -= 40 * np.eye(5)
    a[1, 2] -= 40 * np.eye(5)
    b = rng.normal(size=(3, 5, 2)).astype(dtype)
    B = pl.inv(pl.Dense(a, assume_a="pos"))
    results = []
    for _ in range(2):
        with pytest.warns(pl.FallbackWarning, match="in 2 solves"):
            results.append(B @ b)
    assert results[0].tobytes() == results[1].tobytes()
    want = np.linalg.solve(a, b)
    np.testing.assert_allclose(
        results[0], want, rtol=50 * tolerance(dtype), atol=50 * tolerance(dtype)
    )
    for at in np.ndindex(2, 3):
        one = pl.Dense(a[at].copy(), assume_a=None if at in ((0, 1), (1, 2)) else "pos")
        assert (pl.inv(one) @ b[at[1]]).tobytes() == results[0][at].tobytes()
    a[0, 0] = np.nan
    with pytest.warns(pl.FallbackWarning):
        assert np.isnan(B @ b)[0, 0].any()


def test_only_the_upper_triangle_is_read(rng):
    a, b = spd(rng, (8, 8), "c16"), np.ones(8)
    whole = pl.inv(pl.Dense(a, assume_a="pos")) @ b
    upper = np.triu(a) + np.tril(np.full((8, 8), np.nan), -1)
    B = pl.inv(pl.Dense(upper, assume_a="pos"))
    for _ in range(2):
        assert (B @ b).tobytes() == whole.tobytes()


@pytest.mark.parametrize("n", [0, 1])
def test_small_sizes(n):
    B = pl.inv(pl.Dense(4 * np.eye(n), assume_a="pos"))
    for _ in range(2):
        np.testing.assert_array_equal(B @ np.ones((n, 2)), np.full((n, 2), 0.25))
    A = pl.inv(pl.Dense(np.zeros((0, 3, 3)), assume_a="pos"))
    assert (A @ np.ones((3, 2))).shape == (0, 3, 2)


def test_the_bound_of_the_store_holds(rng):
    a = spd(rng, (30, 30), "f8")
    B = pl.inv(pl.Dense(a, assume_a="pos"))
    want = B @ np.ones(30)
    limit = _core._store()["limit"]
    try:
        pl.config(cache_limit=0)
        _core._clear_store()
        assert (B @ np.ones(30)).tobytes() == want.tobytes()
        assert _core._store()["entries"] == 0
    finally:
        pl.config(cache_limit=limit)


def test_what_only_a_kept_factor_needs_is_not_computed_again(rng):
    x, b = rng.standard_normal((400, 40)), rng.standard_normal(40)
    X = pl.Dense(x)
    A = pl.inv(X.T @ X)
    want = np.linalg.solve(x.T @ x, b)
    np.testing.assert_allclose(A @ b, want, rtol=1e-9)
    first = A @ b
    for _ in range(3):
        assert (A @ b).tobytes() == first.tobytes()
    for i, j in ((0, 0), (399, 39), (200, 7)):
        x[i, j] += 1.0
        np.testing.assert_allclose(A @ b, np.linalg.solve(x.T @ x, b), rtol=1e-9)


def test_exchanged_contents_are_seen(rng):
    x, y, b = rng.standard_normal((60, 8)), rng.standard_normal((60, 8)), rng.standard_normal(8)
    X, Y = pl.Dense(x), pl.Dense(y)
    for A in (pl.inv(X.T @ X + 2.0 * (Y.T @ Y)), pl.inv(2.0 * (Y.T @ Y) + X.T @ X)):
        for _ in range(3):
            want = np.linalg.solve(x.T @ x + 2 * y.T @ y, b)
            np.testing.assert_allclose(A @ b, want, rtol=1e-10)
            x[:], y[:] = y.copy(), x.copy()


def test_kept_factors_do_not_outlive_a_change_of_threads(rng):
    x, b = rng.standard_normal((600, 300)), rng.standard_normal(300)
    kept = pl.Dense(x)
    A = pl.inv(kept.T @ kept)
    before = _core._blas()["threads"]
    try:
        pl.config(threads=1)
        one = A @ b
        pl.config(threads=2)
        two = A @ b
        fresh = pl.Dense(x)
        cold = pl.inv(fresh.T @ fresh)
        assert (cold @ b).tobytes() == two.tobytes()
        pl.config(threads=1)
        assert (A @ b).tobytes() == one.tobytes()
    finally:
        pl.config(threads=before)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("n", [112, 113, 145, 300, 768, 769])
def test_factors_in_blocks_on_two_threads(n, dtype, rng):
    """From a size on LAPACK's own way is taken again; all else is alike."""
    a = rng.standard_normal((n, n)).astype(dtype)
    if np.dtype(dtype).kind == "c":
        a = (a + 1j * rng.standard_normal((n, n))).astype(dtype)
    s = (a @ a.conj().T / n + np.eye(n)).astype(dtype)
    b, eps = a[:, :2].copy(), np.finfo(dtype).eps
    before = _core._blas()["threads"]
    try:
        pl.config(threads=2)
        for m, word in ((a, None), (s, "pos")):
            x = pl.solve(pl.Dense(m, word), b)
            scale = np.linalg.norm(m) * np.linalg.norm(x) + np.linalg.norm(b)
            assert np.linalg.norm(m @ x - b) <= 10 * n * eps * scale
            want = np.linalg.slogdet(m.astype("complex128" if dtype[0] == "c" else "float64"))
            found = pl.slogdet(pl.Dense(m, word))
            assert abs(found.logabsdet - want[1]) <= 1e3 * n * eps * max(1, abs(want[1]))
            assert abs(found.sign - want[0]) <= 1e3 * n * eps
        a[:, n // 2] = 0
        with pytest.raises(np.linalg.LinAlgError):
            pl.solve(pl.Dense(a), b)
        s[n - 1, n - 1] = -1
        with pytest.raises(np.linalg.LinAlgError):
            pl.cholesky(pl.Dense(s, "pos"))
    finally:
        pl.config(threads=before)


def test_a_false_assumption_below_a_kept_factor_is_told_at_each_call(rng):
    k = np.diag(np.r_[-1.0, np.ones(299)])
    X, K = pl.Dense(rng.standard_normal((300, 120))), pl.Dense(k, assume_a="pos")
    A, b = pl.inv(X.T @ pl.inv(K) @ X), rng.standard_normal(120)
    want = np.linalg.solve(X.toarray().T @ k @ X.toarray(), b)
    for _ in range(3):
        with pytest.warns(pl.FallbackWarning):
            got = A @ b
        np.testing.assert_allclose(got, want, rtol=1e-8)
