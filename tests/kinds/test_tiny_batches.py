"""Products of two batches of small matrices: one call for all of them up to a bound, both sides of
which are tried; broadcasting, views, odd strides and sums that they are part of."""

import numpy as np
import pytest

import pylinop as pl


def draw(g, shape, dtype):
    """Normal numbers, of complex dtypes with imaginary parts."""
    a = g.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * g.standard_normal(shape)
    return a.astype(dtype)


def near(got, want, scale, k):
    """Within the promise on products, componentwise."""
    return np.all(abs(got - want) <= 4 * k * np.finfo(got.dtype).eps * scale)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 7, 8, 9])
def test_views_and_strides(k, dtype):
    """A, its transpose, conjugate and adjoint times a batch, and times vectors."""
    g = np.random.default_rng(k)
    a, b = draw(g, (2, 11, k, k), dtype), draw(g, (2, 11, 2 * k, k), dtype)[..., ::2, :]
    for A, m in (
        (pl.Dense(a), a),
        (pl.Dense(a).T, a.swapaxes(-1, -2)),
        (pl.Dense(a).conj(), a.conj()),
        (pl.Dense(a).H, a.conj().swapaxes(-1, -2)),
    ):
        for x in (b, b[..., :1], b[:1], b[:, :1]):
            scale = abs(m) @ abs(x)
            assert near(A @ x, m @ x, scale, k)
            assert near(
                A @ pl.Dense(x) @ np.ones(x.shape[-1], dtype), (m @ x).sum(-1), scale.sum(-1), 3 * k
            )


def test_one_operand_stays():
    """A batch that broadcasts along the last dimension is not moved along it."""
    g = np.random.default_rng(3)
    a, b = draw(g, (4, 1, 3, 3), "f8"), draw(g, (4, 9, 3, 3), "f8")
    assert near(pl.Dense(a) @ b, a @ b, abs(a) @ abs(b), 3)
    assert near(pl.Dense(b) @ a, b @ a, abs(b) @ abs(a), 3)


def test_integers_are_exact():
    """Integer batches run by the exact loops, each element with its own operands."""
    g = np.random.default_rng(4)
    a, b = g.integers(-9, 9, (12, 3, 3)), g.integers(-9, 9, (12, 3, 3))
    assert np.array_equal(pl.Dense(a) @ b, a @ b)


def test_not_a_number_stays_in_its_product():
    """A NaN reaches the row of its own product alone."""
    a, b = np.ones((20, 3, 3)), np.ones((20, 3, 3))
    a[7, 1, 2] = np.nan
    got = np.isnan(pl.Dense(a) @ b)
    assert got.sum() == 3 and got[7, 1].all()


def test_a_sum_of_products():
    """A product that is added to another accumulates element by element."""
    g = np.random.default_rng(5)
    a, b, x = (draw(g, (13, 4, 4), "f8") for _ in range(3))
    want = a @ x + b @ x
    assert near((pl.Dense(a) + pl.Dense(b)) @ x, want, (abs(a) + abs(b)) @ abs(x), 8)
