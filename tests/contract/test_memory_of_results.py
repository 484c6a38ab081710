"""Large results begin where a cache line does, in memory that is theirs as any other array's."""

import tracemalloc

import numpy as np
import pytest

import pylinop as pl

LINE = 64


def _place(a):
    return a.__array_interface__["data"][0] % LINE


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_large_results_begin_with_a_line(rng, dtype):
    a, b = rng.normal(size=(300, 24)).astype(dtype), rng.normal(size=(24, 260)).astype(dtype)
    want = a @ b
    op = pl.Dense(a)
    results = [
        pl.einsum("ij,jk->ik", a, b),
        pl.einsum("ij,jk->ki", a, b).T,
        op @ b,
        (pl.lazy(a) @ b).toarray(),
    ]
    for made in results:
        np.testing.assert_allclose(made, want, rtol=0, atol=1e-4 * np.abs(want).max())
    for made in results[:3]:
        assert _place(made) == 0
    assert results[0].flags.owndata and results[0].base is None


@pytest.mark.parametrize("rows", [1, 200, 2000])
def test_they_can_be_resized(rng, rows):
    a = rng.normal(size=(300, 24))
    made = pl.einsum("ij,kj->ik", a, a)
    want = made.copy()
    made.resize((rows, 300), refcheck=False)
    np.testing.assert_array_equal(made[:300], want[:rows])
    assert not made[300:].any()


def test_other_arrays_are_numpys(rng):
    name = pytest.importorskip("numpy._core.multiarray").get_handler_name
    usual = name(np.empty(3))
    large = pl.einsum("ij,kj->ik", np.ones((300, 4)), np.ones((300, 4)))
    assert name(large) == "pylinop"
    assert name(pl.einsum("ij,kj->ik", np.ones((3, 4)), np.ones((3, 4)))) == usual
    assert name(np.empty((300, 300))) == usual
    assert name(large.copy()) == usual


def test_their_memory_is_counted_and_given_back():
    a = np.ones((600, 4))
    pl.einsum("ij,kj->ik", a, a)
    tracemalloc.start()
    try:
        made = pl.einsum("ij,kj->ik", a, a)
        assert tracemalloc.get_traced_memory()[0] >= made.nbytes
        del made
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()
