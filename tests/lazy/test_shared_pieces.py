"""Large values that are pieces of another value lie in its memory; nobody can write to either."""

import gc

import numpy as np
import pytest

import pylinop as pl

N = 200  # rows of 1600 bytes


@pytest.fixture
def whole():
    a = np.random.default_rng(0).standard_normal((N, N))
    x = pl.lazy(a)
    return x @ x, a @ a


def test_pieces_share_and_nobody_writes(whole):
    x, due = whole
    held, tail, flat = pl.evaluate(x, x[50:], x.reshape(-1))
    assert np.shares_memory(held, tail) and np.shares_memory(held, flat)
    for value in (held, tail, flat):
        with pytest.raises(ValueError, match="read-only"):
            value[0] = 0
    for value in (tail, flat):
        with pytest.raises(ValueError, match="WRITEABLE"):
            value.flags.writeable = True
    own = x[50:].toarray()
    own[:] = 0  # a copy
    assert not np.shares_memory(own, held)
    np.testing.assert_array_equal(tail, held[50:])
    np.testing.assert_allclose(held, due, atol=1e-12)


def test_a_piece_outlives_the_whole(whole):
    x, due = whole
    np.asarray(x)
    y = x[50:]
    tail = np.asarray(y)
    del x, whole, y
    gc.collect()
    for _ in range(4):  # what would take its memory if it were free
        held = np.asarray(pl.lazy(due) @ due)
    assert held is not None
    np.testing.assert_allclose(tail, due[50:], atol=1e-12)


@pytest.mark.parametrize(
    "piece",
    [
        lambda x: x[::-1],
        lambda x: x[:, :150],
        lambda x: x[::2],
        lambda x: x[:, ::-1],
        lambda x: x[:30],
        lambda x: x[:4],
    ],
)
def test_others_are_copies_in_c_order(whole, piece):
    """Whose strides would be others from a size on, negative ones too, which torch refuses, or that
    would hold much more than their own."""
    x, _ = whole
    held = np.asarray(x)
    y = piece(x)
    value = np.asarray(y)
    assert value.flags.c_contiguous and not np.shares_memory(value, held)
    np.testing.assert_array_equal(value, piece(held))


def test_results_of_programs_and_gradients_are_apart(whole):
    f = pl.program(lambda x: (y := x @ x, y[50:], y.reshape(-1)))
    a = np.random.default_rng(1).standard_normal((N, N))
    for _ in range(4):
        found = f(a)
        for i, value in enumerate(found):
            assert not any(np.shares_memory(value, other) for other in found[:i])
            np.testing.assert_allclose(value, [a @ a, (a @ a)[50:], (a @ a).ravel()][i], atol=1e-12)
        for value in found:
            value[:] = np.nan
