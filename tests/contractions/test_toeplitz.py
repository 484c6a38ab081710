"""Equations that are products with Toeplitz matrices: against the loop, on both sides of the sizes
at which they are recognised."""

import numpy as np
import pytest

import pylinop as pl
from pylinop._contractions import toeplitz

EQUATIONS = [
    "({i} + {j}{c}), j -> i",
    "({i} - {j}{c}), j -> i",
    "({j} - {i}{c}), j -> i",
    "({c} - {j} - {i}), j -> i",
    "a j b, ({j} + {i}{c}) -> b i a",
    "({i} - {j}{c}), b j -> i b",
]


def looped(x, places, z, outside):
    """sum_j x[places[i, j]] z[j, ...]"""
    n = len(x)
    inside = (places >= 0) & (places < n)
    matrix = x[places % n] if outside == "wrap" else np.where(inside, x[places.clip(0, n - 1)], 0)
    return np.tensordot(matrix, z, 1)


@pytest.mark.parametrize("outside", [None, 0, "wrap"])
@pytest.mark.parametrize("form", EQUATIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("m, n", [(30, 9), (700, 400), (1100, 20), (24, 900)])
def test_against_the_matrix(outside, form, m, n, dtype, rng):
    i, j = np.arange(m)[:, None], np.arange(n)
    constant = int(rng.integers(0, 5))
    if "{c} -" in form:
        text, places = form.format(i="i", j="j", c=m + n + constant), m + n + constant - i - j
    else:
        sign_i = -1 if "- {i}" in form else 1
        sign_j = -1 if "- {j}" in form else 1
        shift = constant + (m if sign_i < 0 else 0) + (n if sign_j < 0 else 0)
        text, places = form.format(i="i", j="j", c=f" + {shift}"), shift + sign_i * i + sign_j * j
    length = int(places.max()) + 1 if outside is None else max(3, (m + n) // 2)
    x = rng.normal(size=length).astype(dtype)
    z = rng.normal(size=n)
    sizes = {"i": m, "j": n}
    if "a j b" in text:
        z = rng.normal(size=(2, n, 3))
    elif "b j" in text:
        z = rng.normal(size=(4, n))
    z = z.astype(dtype)
    operands = (z, x) if "a j b" in text else (x, z)
    front = np.moveaxis(z, 1, 0) if z.ndim > 1 else z
    want = looped(x.astype(np.complex128), places, front, outside)
    if "a j b" in text:
        want = np.transpose(want, (2, 0, 1))
    got = pl.einsum(text, *operands, sizes=sizes, outside=outside)
    assert got.dtype == dtype
    scale = np.abs(x).sum() * np.abs(z).max()
    tolerance = 1e-6 if dtype is np.float32 else 1e-13
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * scale)


def test_it_is_seen_in_the_plan_and_only_where_it_pays(rng):
    x, w = rng.normal(size=5000), rng.normal(size=100)
    assert "Toeplitz matrix, 4901 x 100" in pl.einsum_path("(o + w), w -> o", x, w)[1]
    assert "Toeplitz" not in pl.einsum_path("(2*o + w), w -> o", x, w)[1]
    assert "Toeplitz" not in pl.einsum_path("(o + w), w -> o", x[:50], w[:5])[1]
    assert "Toeplitz" not in pl.einsum_path("(o + w), w -> o w", x, w)[1]
    assert "Toeplitz" not in pl.einsum_path("(o + w), o w -> o", x, rng.normal(size=(4901, 100)))[1]
    assert toeplitz.LEAST_COLUMNS > toeplitz.LEAST
    with pytest.raises(ValueError, match="runs from 0 to 5099"):
        pl.einsum("(o + w), w -> o", x, w, sizes={"o": 5001})
    got = pl.einsum("(o + w), w -> o", x, w[:1], sizes={"w": 100, "o": 4901})  # w broadcasts
    window = np.lib.stride_tricks.sliding_window_view(x, 100)
    np.testing.assert_allclose(got, window.sum(1) * w[0], rtol=1e-9, atol=1e-9)


def test_gradients_and_formulas_go_through(rng):
    x, w = rng.normal(size=900), rng.normal(size=64)
    made = np.square(pl.einsum("(o + w), w -> o", pl.lazy(x), w)).sum()
    np.testing.assert_allclose(made, (np.correlate(x, w) ** 2).sum(), rtol=1e-10)

    def value(x, w):
        return np.sum(np.square(pl.einsum("(o + w), w -> o", x, w)))

    y = np.correlate(x, w)
    np.testing.assert_allclose(
        pl.grad(value, argnums=1)(x, w), 2 * np.correlate(x, y), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(pl.grad(value)(x, w), 2 * np.convolve(y, w), rtol=1e-9, atol=1e-9)
