"""Coefficients of index equations that sizes= says, as numbers and as symbols."""

import numpy as np
import pytest

import pylinop as pl


@pytest.mark.parametrize("s", [1, 2, 3, -2])
def test_a_dilation_by_name(s):
    rng = np.random.default_rng(7)
    x, w = rng.normal(size=11), rng.normal(size=3)
    start = max(0, -2 * s)
    want = [sum(x[start + o + s * k] * w[k] for k in range(3)) for o in range(11 - 2 * abs(s))]
    text = f"(o + s*w + {start}), w -> o"
    sizes = {"s": s, "o": len(want)}
    for a in (x, x, pl.lazy(x)):
        assert abs(np.asarray(pl.einsum(text, a, w, sizes=sizes)) - want).max() < 1e-14
    v = pl.view(x, f"(o + s*w + {start}) -> o w", sizes={**sizes, "w": 3})
    assert v.strides == (8, 8 * s)
    C = pl.Contraction(f"(o + s*w + {start})", x, rows="o", cols="w", sizes={**sizes, "w": 3})
    assert abs(C @ w - want).max() < 1e-14


def test_a_coefficient_in_symbols():
    s, n, k = pl.symbols("s n k")
    X, W = pl.placeholder(n), pl.placeholder(k)
    Y = pl.einsum("(o + s*w), w -> o", X, W, sizes={"s": s})
    sizes = pl.unify((X, 11), (W, 3), (Y, 7))
    assert sizes.interval(s) == (2, 2)
    f = pl.function((X, W), Y)
    rng = np.random.default_rng(8)
    x, w = rng.normal(size=11), rng.normal(size=3)
    for step in (1, 2, 5, 2, 2):
        want = [sum(x[o + step * j] * w[j] for j in range(3)) for o in range(11 - 2 * step)]
        assert abs(f.bind(s=step)(x, w).toarray() - want).max() < 1e-14
    with pytest.raises(ValueError, match="no sizes fit"):
        f.bind(s=6)(x, w)


def test_mistakes():
    x, w = np.ones(11), np.ones(3)
    with pytest.raises(ValueError, match="the coefficient 's' is no number"):
        pl.einsum("(o + s*w), w -> o", x, w)
    with pytest.raises(ValueError, match="is not linear, 'w' is an axis"):
        pl.einsum("(o + w*k), w -> o", x, w, sizes={"w": 3})
    with pytest.raises(ValueError, match="not linear"):
        pl.einsum("(o + s*t*w), w -> o", x, w, sizes={"s": 3, "t": 1})
    with pytest.raises(TypeError, match="s = 1.5 is no integer"):
        pl.einsum("(o + s*w), w -> o", x, w, sizes={"s": 1.5})
    s, n = pl.symbols("s n")
    with pytest.raises(NotImplementedError, match="which a symbol multiplies"):
        pl.einsum("(s*o + w), w -> o", pl.placeholder(n), w, sizes={"s": s})


def test_a_coefficient_of_nothing():
    """The label's size is 1, in symbols as in numbers; it was a ZeroDivisionError."""
    x, v, n = np.ones(5), np.ones(3), pl.symbols("n")
    assert pl.einsum("(o + s*w), o -> w", x, v, sizes={"s": 0}).shape == (1,)
    there = pl.placeholder(n), pl.placeholder(3)
    assert pl.einsum("(o + s*w), o -> w", *there, sizes={"s": 0}).shape == (1,)


def test_groups_of_placeholders_in_any_order():
    """As of arrays: what one group says is what the one before it needs."""
    n = pl.symbols("n")
    A, B = pl.placeholder((6, n)), pl.placeholder((3, 9))
    assert pl.einsum("(a e) n, c (a c) -> e n", A, B).shape == (2, n)


def test_sizes_that_have_no_hash():
    x, w = np.arange(8.0), np.ones(3)
    for _ in range(2):
        got = pl.einsum("(o + w), w -> o", x, w, sizes={"o": np.array(3)})
        np.testing.assert_array_equal(got, [3.0, 6.0, 9.0])
