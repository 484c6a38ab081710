"""A ** p: few products for large p, the same values as p products, on both sides of its bounds."""

import numpy as np
import pytest

import pylinop as pl

KINDS = {
    "Dense": lambda r, n: pl.Dense(r.standard_normal((n, n)) / (2 * n**0.5)),
    "Diag": lambda r, n: pl.Diag(r.uniform(0.5, 1.0, n)),
    "Toeplitz": lambda r, n: pl.Toeplitz(r.standard_normal(n) / (2 * n)),
    "Kron": lambda r, n: pl.Kron(pl.Diag([0.9, -0.8]), pl.Dense(r.standard_normal((n, n)) / n)),
    "BlockDiag": lambda r, n: pl.BlockDiag(
        pl.Dense(r.standard_normal((n, n)) / n), pl.Diag(r.uniform(0.5, 1.0, 3))
    ),
    "Identity": lambda r, n: pl.Identity(n),
    "Permutation": lambda r, n: pl.Permutation(r.permutation(n)),
    "LowRank": lambda r, n: pl.LowRank(r.standard_normal((n, 2)) / n**0.5),
    "Circulant": lambda r, n: pl.Circulant(r.standard_normal(n) / n),
    "sum": lambda r, n: 0.1 * pl.Dense(r.standard_normal((n, n)) / n) + pl.Diag(r.uniform(0, 1, n)),
    "complex": lambda r, n: pl.Dense((r.standard_normal((n, n)) + 1j) / (3 * n)),
    "view": lambda r, n: pl.Dense((r.standard_normal((n, n)) + 1j) / (3 * n)).H,
}


@pytest.mark.parametrize("p", [0, 1, 2, 7, 8, 9, 10, 17, 64, 1000])
@pytest.mark.parametrize("n", [1, 5, 17])
@pytest.mark.parametrize("kind", KINDS)
def test_against_numpy(rng, kind, n, p):
    A = KINDS[kind](rng, n)
    a = A.toarray()
    B, b = A**p, np.linalg.matrix_power(a, p)
    x = rng.standard_normal((a.shape[0], 3))
    bound = 1e-15 * max(p, 1) * max(n, 4) * np.linalg.matrix_power(abs(a), p)
    assert (abs(B.toarray() - b) <= bound + 1e-300).all()
    assert (abs(B @ x - b @ x) <= 4 * bound @ abs(x) + 1e-300).all()
    assert (abs(x.T @ B - x.T @ b) <= 4 * abs(x.T) @ bound + 1e-300).all()
    np.testing.assert_allclose(pl.trace(B), np.trace(b), atol=4 * np.trace(bound) + 1e-300)
    np.testing.assert_allclose(
        (pl.Identity(len(a)) + B) @ x, x + b @ x, atol=(4 * bound @ abs(x)).max() + 1e-14
    )


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "float32", "complex64"])
@pytest.mark.parametrize("p", [8, 9, 100])
def test_dtypes(rng, dtype, p):
    a = rng.integers(0, 3, (4, 4)).astype(dtype)
    got = (pl.Dense(a) ** p).toarray()
    if dtype in ("float32", "complex64"):
        a = a / 8
        got = (pl.Dense(a.astype(dtype)) ** p).toarray()
        np.testing.assert_allclose(got, np.linalg.matrix_power(a, p), rtol=p * 1e-6)
    elif dtype == "bool":
        want = np.eye(4, dtype=bool)
        for _ in range(p):
            want = want @ a
        np.testing.assert_array_equal(got, want)
    else:
        want = np.eye(4, dtype=dtype)
        for _ in range(p):
            want = want @ a
        np.testing.assert_array_equal(got, want)
    assert got.dtype == a.astype(dtype).dtype


def test_a_million_takes_few_products(rng):
    a = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    B = pl.Dense(a) ** 1_000_000
    assert len(B.explain("apply", np.ones(3)).steps) < 100
    np.testing.assert_allclose(
        B @ np.ones(3), np.linalg.matrix_power(a, 1_000_000) @ np.ones(3), atol=1e-9
    )
    D = pl.Diag(np.full(5000, 1 - 1e-6)) ** 1_000_000
    np.testing.assert_allclose(D @ np.ones(5000), np.exp(1_000_000 * np.log1p(-1e-6)), rtol=1e-9)
    big = np.array([3.0, 1.0, -1.0, 0.0])
    assert np.array_equal((pl.Diag(big) ** (10**12)).diagonal(), [np.inf, 1, 1, 0])


def test_powers_of_diagonals_do_not_overflow_on_the_way():
    D = pl.Diag([1e40, 1e-40, 1e40j]) ** 12
    np.testing.assert_allclose(D @ [1e-300, 1e300, 1e-300], [1e180, 1e-180, 1e180], rtol=1e-12)
    sign, value = pl.slogdet(pl.Diag([1e40, 1e-40]) ** 12)
    assert sign == 1 and abs(value) < 1e-10


def test_a_power_without_a_way_is_refused():
    T = pl.Toeplitz(np.r_[0.5, np.zeros(99_999)])
    with pytest.raises(pl.MaterializationError, match="lower power"):
        (T ** (10**6)) @ np.ones(100_000)


def test_batches(rng):
    a = rng.standard_normal((2, 4, 4)) / 4
    for p in (8, 9, 33):
        np.testing.assert_allclose(
            (pl.Dense(a) ** p).toarray(), np.linalg.matrix_power(a, p), atol=1e-15
        )
        d = rng.uniform(0.5, 1, (2, 4))
        np.testing.assert_allclose((pl.Diag(d) ** p) @ np.ones(4), d**p, rtol=1e-13)
