"""Large results begin where a cache line does, in memory that is theirs as any other array's."""

import sys
import threading
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


keeps = pytest.mark.skipif(sys.platform != "linux", reason="freed blocks are kept on Linux")


def _at(a):
    return a.__array_interface__["data"][0]


@pytest.fixture
def op():
    pl._core._clear_store()
    return pl.Diag(np.arange(40_000.0))


@keeps
@pytest.mark.no_asan  # its own keeping
def test_a_freed_result_s_memory_is_the_next_one_s(op, capsys):
    x = np.ones(40_000)
    first, held = op @ x, op @ x
    assert not np.shares_memory(first, held)
    place, view = _at(first), held[::2]
    del first
    assert pl._core._store()["spare"] >= 320_000
    second = op @ (2 * x)
    assert _at(second) == place and pl._core._store()["spare"] == 0
    place = _at(held)
    del held  # a view has it yet
    assert _at(op @ x) != place
    np.testing.assert_array_equal(view, np.arange(40_000.0)[::2])
    np.testing.assert_array_equal(second, 2 * np.arange(40_000.0))
    del second
    assert "spare " in (pl.show_config() or capsys.readouterr().out)


@keeps
@pytest.mark.no_asan
def test_the_bound_of_what_is_kept_holds_for_freed_blocks_too(op):
    limit = pl._core._store()["limit"]
    x = np.ones(40_000)
    try:
        for most, kept in ((0, 0), (100_000, 0), (700_000, 1), (1_400_000, 2)):
            pl.config(cache_limit=most)
            results = [op @ x for _ in range(5)]
            del results
            assert 320_000 * kept <= pl._core._store()["spare"] <= most
        op.clear_cache()
        assert pl._core._store()["spare"] == 0
    finally:
        pl.config(cache_limit=limit)


def test_threads_share_no_freed_block(op):
    """Results of one thread are never those of another."""
    wrong = []

    def work(k):
        for i in range(60):
            x = np.full(40_000, float(k * 100 + i))
            a, b = op @ x, op @ -x
            if not np.array_equal(a, -b) or a[1] != x[0]:
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
