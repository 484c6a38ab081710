"""``solve(a, b, assume_a="banded")``: the band is found in the numbers, and factored as one."""

import numpy as np
import pytest

import pylinop as pl
from pylinop._structured.found_band import widths


def banded(n, l, u, rng, dtype="d"):
    a = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if dtype in "FD" else 0)
    a = np.triu(np.tril(a, u), -l).astype(dtype)
    return a + (3 * (l + u + 1) * np.eye(n)).astype(dtype)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 100, 300])
@pytest.mark.parametrize("l, u", [(0, 0), (1, 0), (0, 2), (2, 3), (7, 1), (40, 40)])
def test_against_dense(n, l, u, dtype):
    rng = np.random.default_rng()
    a = banded(n, l, u, rng, dtype)
    b = rng.standard_normal((n, 3)).astype(dtype)
    want = np.linalg.solve(a.astype("D"), b)
    near = 1e-3 if dtype in "fF" else 1e-9
    for layout in (a, np.asfortranarray(a), a[::-1, ::-1], a.astype(a.dtype.newbyteorder(">"))):
        x = np.linalg.solve(layout.astype("D"), b) if layout is not a else want
        got = pl.solve(layout, b, assume_a="banded")
        assert got.dtype == a.dtype
        np.testing.assert_allclose(got, x, rtol=near, atol=near * abs(want).max())


def test_its_factor_is_one_of_the_band():
    rng = np.random.default_rng()
    for n, l, u, narrow in ((100, 2, 3, True), (100, 20, 9, True), (100, 20, 10, False)):
        with pl.explaining() as told:
            pl.solve(banded(n, l, u, rng), np.ones(n), assume_a="banded")
        names = {step["name"] for step in told.steps}
        assert ("gbtrf" in names or "gbsv" in names) == narrow, names
        assert ("getrf" in names) != narrow or "gesv" in names


@pytest.mark.parametrize("n", [16, 257, 1000])
def test_the_widths(n):
    rng = np.random.default_rng()
    for _ in range(20):
        l, u = rng.integers(0, n // 8, 2)
        a = np.zeros((n, n))
        i = rng.integers(l, n)
        j = rng.integers(0, n - u)
        a[i, i - l] = a[j, j + u] = np.nan if rng.random() < 0.3 else 1.0
        assert widths(a) == (l, u)
    a[n - 1, 0] = 1
    assert widths(a) is None
    assert widths(np.zeros((n, n))) == (0, 0)


def test_integers_writes_and_errors():
    n = 40
    a = np.diag(np.full(n, 5)) + np.diag(np.full(n - 1, 2), 1)
    b = np.arange(n)
    np.testing.assert_allclose(pl.solve(a, b, assume_a="banded"), np.linalg.solve(a, b))
    a[3, 0] = 1  # wider than it was
    np.testing.assert_allclose(pl.solve(a, b, assume_a="banded"), np.linalg.solve(a, b))
    with pytest.raises(np.linalg.LinAlgError):
        pl.solve(np.zeros((n, n)), b, assume_a="banded")
    with pytest.raises(ValueError, match="assume_a says something of an array"):
        pl.solve(pl.Diag(np.ones(n)), b, assume_a="banded")
    with pytest.raises(ValueError, match="square"):
        pl.solve(np.ones((20, 30)), b, assume_a="banded")
    stack = np.stack([a, 2 * a]).astype(float)
    np.testing.assert_allclose(
        pl.solve(stack, np.ones((n, 1)), assume_a="banded"), np.linalg.solve(stack, np.ones((n, 1)))
    )
    x = pl.solve(np.where(np.eye(n), np.nan, 0), np.ones(n), assume_a="banded")
    assert np.isnan(x).all()
