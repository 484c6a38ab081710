"""Normal equations: by Cholesky, and where X'X is numerically not definite by QR of X."""

import numpy as np
import pytest

import pylinop as pl

dtypes = pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])


def values(rng, shape, dtype):
    a = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal(shape)
    return a


def tall(rng, m, n, log, dtype):
    """m x n of condition 10^log."""
    u, v = (np.linalg.qr(values(rng, s, dtype))[0] for s in ((m, n), (n, n)))
    return (u * np.logspace(0, -log, n) @ v.conj().T).astype(dtype)


def error(x, want):
    return np.linalg.norm(x - want) / np.linalg.norm(want)


def unit(dtype):
    return np.finfo(dtype).eps / 2


@dtypes
@pytest.mark.parametrize(("m", "n"), [(20, 8), (300, 8), (60, 50), (400, 20)])
@pytest.mark.parametrize("log", [4, 9, 12])
def test_least_squares_as_by_qr(rng, m, n, log, dtype):
    log = log / 2 if np.dtype(dtype).char in "fF" else log
    x = tall(rng, m, n, log, dtype)
    want = values(rng, (n, 2), dtype).astype(dtype)
    y = x @ want
    X = pl.Dense(x)
    limit = 50 * n * 10**log * unit(dtype)
    if log <= 4 and np.dtype(dtype).char in "dD":
        limit *= 10**log
    if limit > 0.3:
        pytest.skip("no digit is left")
    for op in (pl.inv(X.H @ X) @ X.H, pl.inv(2 * X.H @ X) @ (2 * X.H)):
        assert error(op @ y, want) <= limit
    W = pl.Dense(np.ascontiguousarray(x.conj().T))
    assert error((pl.inv(W @ W.H) @ W) @ y, want) <= limit
    a = pl.lazy(x)
    got = np.asarray(pl.inv(a.conj().T @ a) @ a.conj().T @ y)
    assert error(got, want) <= limit
    assert got.dtype == dtype


def test_both_arms_are_shown(rng):
    X = pl.Dense(rng.standard_normal((80, 10)))
    e = (pl.inv(X.T @ X) @ X.T).explain("apply", rng.standard_normal(80))
    assert "solve-normal" in e.fired
    assert [s["name"] for s in e.steps][-2:] == ["potrs", "geqp3"]


def test_scales_of_columns_do_not_matter(rng):
    x = rng.standard_normal((60, 7)) * np.logspace(0, -100, 7)
    want = rng.standard_normal(7) * np.logspace(0, 100, 7)
    X = pl.Dense(x)
    op = pl.inv(X.T @ X) @ X.T
    np.testing.assert_allclose(op @ (x @ want), want, rtol=1e-12)
    x[:, 3] = x[:, 2] * 1e-16 + 1e-9 * x[:, 3]  # nearly parallel: only QR sees the difference
    y = x @ want
    r = y - x @ (op @ y)
    assert np.abs((x / np.linalg.norm(x, axis=0)).T @ r).max() <= 1e-13 * np.linalg.norm(y)


@dtypes
@pytest.mark.parametrize("m", [20, 900])
def test_a_missing_rank_is_an_error(rng, m, dtype):
    x = values(rng, (m, 8), dtype).astype(dtype)
    x[:, 5] = x[:, 0] - 3 * x[:, 1]
    X = pl.Dense(x)
    for rhs in (X.H @ np.ones(m, dtype), np.ones(8, dtype)):
        with pytest.raises(np.linalg.LinAlgError, match="rank 7 of 8"):
            pl.solve(X.H @ X, rhs)
    with pytest.raises(np.linalg.LinAlgError, match="rank 7 of 8"):
        (pl.inv(X.H @ X) @ X.H) @ np.ones(m, dtype)
    w = pl.Dense(x[:5])
    with pytest.raises(np.linalg.LinAlgError):
        (pl.inv(w.H @ w) @ w.H) @ np.ones(5, dtype)


@dtypes
def test_right_sides_of_any_kind(rng, dtype):
    log = 9 if np.dtype(dtype).char in "dD" else 4
    x = tall(rng, 90, 12, log, dtype)
    X, wide = pl.Dense(x), np.asarray(x, np.result_type(dtype, "f8"))
    S = wide.conj().T @ wide
    b = values(rng, 12, dtype).astype(dtype)
    z = pl.inv(X.H @ X) @ b
    r = np.linalg.norm(b - S @ z) / (np.linalg.norm(S, 2) * np.linalg.norm(z) + np.linalg.norm(b))
    assert r <= 120 * unit(dtype)
    hat = (X @ pl.inv(X.H @ X) @ X.H).todense()
    assert np.linalg.norm(hat @ hat - hat) <= 500 * 10**log * unit(dtype)


@dtypes
def test_stacks(rng, dtype):
    log = 8 if np.dtype(dtype).char in "dD" else 4
    n = 40  # small ones of a stack keep to LU
    x = np.stack([tall(rng, 90, n, k, dtype) for k in (0, log, 1)])
    want = values(rng, (3, n, 1), dtype).astype(dtype)
    X = pl.Dense(x)
    got = pl.inv(X.H @ X) @ X.H @ (x @ want)
    for g, w in zip(got, want, strict=True):
        assert error(g, w) <= 50 * n * 10**log * unit(dtype)


def test_nan_and_empty(rng):
    x = rng.standard_normal((30, 5))
    x[3, 2] = np.nan
    X = pl.Dense(x)
    assert np.isnan((pl.inv(X.T @ X) @ X.T) @ np.ones(30)).all()
    for m, n, k in ((0, 0, 2), (4, 0, 2), (4, 2, 0)):
        x = rng.standard_normal((m, n))
        X = pl.Dense(x)
        assert ((pl.inv(X.T @ X) @ X.T) @ np.ones((m, k))).shape == (n, k)


def test_cold_warm_and_written_over(rng):
    x = tall(rng, 200, 20, 9, "f8")
    y = rng.standard_normal(200)
    X = pl.Dense(x)
    op = pl.inv(X.T @ X) @ X.T
    first = op @ y
    np.testing.assert_array_equal(op @ y, first)
    Z = pl.Dense(x.copy())
    np.testing.assert_array_equal((pl.inv(Z.T @ Z) @ Z.T) @ y, first)
    x[:] = rng.standard_normal(x.shape)
    want = np.linalg.lstsq(x, y, rcond=None)[0]
    assert error(op @ y, want) <= 1e-12


def test_other_dtypes_beside(rng):
    x = tall(rng, 40, 6, 2, "f4")
    y = values(rng, 40, "c16")
    X = pl.Dense(x)
    got = (pl.inv(X.T @ X) @ X.T) @ y
    want = np.linalg.lstsq(x.astype("f8"), y, rcond=None)[0]
    assert got.dtype == np.complex128
    assert error(got, want) <= 1e-10
    k = rng.integers(-9, 9, (40, 6))
    K = pl.Dense(k)
    want = np.linalg.lstsq(k, y, rcond=None)[0]
    assert error((pl.inv(K.T @ K) @ K.T) @ y, want) <= 1e-12
