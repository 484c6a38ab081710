"""LazyArrays of integers beside kinds without a dtype: floats, as NumPy makes of dense forms."""

import numpy as np
import pytest

import pylinop as pl

DTYPES = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "bool")
KINDS = {
    "differences": lambda n: pl.FiniteDifference(n, kind="central", boundary="periodic"),
    "identity": pl.Identity,
    "negative": lambda n: -pl.Identity(n),
    "permuted": lambda n: -2 * pl.Permutation(np.roll(np.arange(n), 1)),
    "zeros": lambda n: 3 * pl.Identity(n) - pl.Zeros((n, n)),
}
FORMULAS = {
    "F @ x": lambda F, X, x: F @ x,
    "-F @ x": lambda F, X, x: -F @ x,
    "x @ F": lambda F, X, x: x @ F,
    "F @ F @ x": lambda F, X, x: F @ (F @ x),
    "F @ X": lambda F, X, x: F @ X,
    "X @ -F.T": lambda F, X, x: X @ (-F.T),
    "F + X": lambda F, X, x: F + X,
    "X - F": lambda F, X, x: X - F,
    "2 * F @ X - F": lambda F, X, x: 2 * F @ X - F,
    "(F + X) @ x": lambda F, X, x: (F + X) @ x,
    "F @ X.T @ F": lambda F, X, x: F @ X.T @ F,
    "trace": lambda F, X, x: np.trace(F @ X),
    "part": lambda F, X, x: (F @ X)[:, :1],
}


@pytest.mark.parametrize("n", [3, 15, 17, 40])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_nothing_wraps(dtype, kind, n, rng):
    """-F @ X of uint16 was 65533 where NumPy has -3."""
    most = 2 if dtype == "bool" else np.iinfo(dtype).max if dtype in ("int8", "uint8") else 1000
    X = rng.integers(0, most, (n, n)).astype(dtype)
    x = rng.integers(0, most, n).astype(dtype)
    F = KINDS[kind](n)
    with pl.config(check_plans=True):
        for name, f in FORMULAS.items():
            want = f(F.toarray(), X, x)
            for of in (pl.lazy(F), F):
                made = f(of, pl.lazy(X), pl.lazy(x))
                got = np.asarray(made)
                assert made.dtype == got.dtype == want.dtype, name
                np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-10, err_msg=name)


def test_several_at_once_and_templates(rng):
    n = 20
    X = rng.integers(0, 9, (n, n)).astype(np.uint16)
    x = rng.integers(0, 9, n).astype(np.uint16)
    F = -pl.Identity(n)
    got = pl.evaluate(pl.lazy(F) @ pl.lazy(X), pl.lazy(F) @ pl.lazy(x))
    np.testing.assert_array_equal(got[0], -X.astype(float))
    np.testing.assert_array_equal(got[1], -x.astype(float))
    (N,) = (pl.symbols("N"),)
    A, b = pl.placeholder((N, N), dtype="uint16"), pl.placeholder(N, dtype="uint16")
    g = pl.function((A, b), (pl.lazy(F) @ A) @ (pl.lazy(F) @ b))
    for _ in range(4):  # recorded, replayed
        X += np.uint16(1)
        np.testing.assert_array_equal(g(X, x), X.astype(float) @ x)
