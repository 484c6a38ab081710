"""Products of large matrices with some columns, which BLAS is asked for as columns and turned
(op_dense.c), and those of declared symmetric ones by its symm (k_symm.c): sizes on both sides."""

import numpy as np
import pytest

import pylinop as pl


def near(got, a, x):
    """Componentwise, as a product is: m eps |A| |X|."""
    got = np.asarray(got)
    wide = a.astype("f8") if a.dtype == "f4" else a
    eps = np.finfo(got.dtype).eps
    bound = 4 * a.shape[1] * eps * (np.abs(a) @ np.abs(x))
    assert got.flags.c_contiguous
    assert np.all(np.abs(got - wide @ x) <= bound)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "m, k, n", [(499, 500, 60), (500, 499, 60), (500, 500, 47), (500, 500, 48), (520, 501, 130)]
)
def test_products(m, k, n, dtype):
    rng = np.random.default_rng(m + k + n)
    a, x = (rng.standard_normal(s).astype(dtype) for s in ((m, k), (k, n)))
    near(pl.Dense(a) @ x, a, x)
    near(pl.Dense(np.ascontiguousarray(a.T)).T @ x, a, x)
    near(pl.Dense(a) @ np.asfortranarray(x), a, x)
    near(pl.Dense(a) @ np.repeat(x, 2, axis=1)[:, ::2], a, x)
    near(pl.lazy(a) @ pl.lazy(x), a, x)
    y = rng.standard_normal((m, n)).astype(dtype)
    eps = np.finfo(dtype).eps
    got = np.asarray(pl.lazy(y) - 2 * (pl.lazy(a) @ pl.lazy(x)))
    assert np.all(
        np.abs(got - (y - 2 * (a @ x))) <= 20 * k * eps * (np.abs(a) @ np.abs(x) + abs(y))
    )


def test_nan_stays_in_its_row_and_column():
    a, x = np.ones((600, 600)), np.ones((600, 64))
    a[17, 5] = np.nan
    x[:, 9] = np.inf
    got = pl.Dense(a) @ x
    assert np.isnan(got[17]).all()
    rest = np.delete(got, 17, axis=0)
    assert np.isinf(rest[:, 9]).all() and np.isfinite(np.delete(rest, 9, axis=1)).all()


@pytest.mark.parametrize("word", ["sym", "pos", "her"])
@pytest.mark.parametrize(
    "n, k, dtype",
    [(499, 96, "f8"), (500, 95, "f8"), (500, 96, "f8"), (500, 96, "f4"), (501, 250, "f8")]
    + [(640, 97, "f4"), (500, 96, "c16")],
)
def test_by_the_upper_triangle(n, k, dtype, word):
    rng = np.random.default_rng(n + k)
    a, x = (rng.standard_normal(s).astype(dtype) for s in ((n, n), (n, k)))
    upper = np.triu(a)
    if dtype == "c16":
        a = a + 1j * rng.standard_normal((n, n))
        upper = np.triu(a)
    other = np.triu(a, 1).T if word == "sym" else np.triu(a, 1).conj().T
    whole = upper + other
    if word != "sym" and dtype == "c16":
        np.fill_diagonal(whole, whole.diagonal().real)
    a[np.tril_indices(n, -1)] = np.nan  # is not read
    for given in (a, np.asfortranarray(a)):
        D = pl.Dense(given, assume_a=word)
        near(D @ x, whole, x)
        near(D.T @ np.asfortranarray(x), whole.T, x)
        near(D.H @ x, whole.conj().T, x)
        near(pl.lazy(given, assume_a=word) @ pl.lazy(x), whole, x)


def test_values_change_in_place():
    rng = np.random.default_rng(1)
    a, x = rng.standard_normal((600, 600)), rng.standard_normal((600, 100))
    D, S = pl.Dense(a), pl.Dense(a, assume_a="sym")
    for _ in range(2):
        near(D @ x, a, x)
        near(S @ x, np.triu(a) + np.triu(a, 1).T, x)
        a[3, 4] += 1
        a[4, 3] -= 1
