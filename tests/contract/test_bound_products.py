"""Bound products (_core._Applied): the same numbers as `@`, many times, in every mode."""

import threading

import numpy as np
import pytest

import pylinop as pl
from pylinop import _core

N = 12
RNG = np.random.default_rng(5)


def _operators():
    d = RNG.random(N) + 1
    a = RNG.random((N, N)) + N * np.eye(N)
    return {
        "diag": pl.Diag(d),
        "kron": pl.Kron(RNG.random((3, 3)), RNG.random((4, 4))),
        "toeplitz": pl.Toeplitz(RNG.random(N)),
        "inverse": pl.inv(pl.Dense(a)) + pl.Diag(d),
        "product": pl.Dense(a) @ pl.inv(pl.Toeplitz(d + 20 * np.eye(N)[0])),
        "callable": pl.MatVec((N, N), lambda v: d * v, rmatvec=lambda v: d * v, dtype=float),
        "mixed": pl.MatVec((N, N), lambda v: d * v, rmatvec=lambda v: d * v, dtype=float)
        + 3 * pl.Identity(N),
        "identity": pl.Identity(N),
        "zeros": pl.Zeros((N, N)),
        "complex": pl.Dense(a + 1j * a.T),
        "integer": pl.Dense(RNG.integers(0, 9, (N, N))),
        "positive": pl.inv(pl.Dense(a @ a.T, "pos")),
    }


OPERATORS = _operators()


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("k", [None, 0, 1, 3])
def test_products_are_those_of_the_operator(name, mode, k):
    op = OPERATORS[name]
    seen = (op, op.T, op.conj(), op.H)[mode]
    bound = _core._Applied(op, np.float64, k, mode)
    for _ in range(3):
        x = RNG.random(N if k is None else (N, k))
        want = seen @ x
        got = bound(x)
        assert got.shape == want.shape and got.dtype == want.dtype == bound.dtype
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    assert bound.runs == 3
    out = np.empty_like(got)
    assert bound(x, out) is out
    np.testing.assert_array_equal(out, got)


def test_sizes_0_and_1():
    assert _core._Applied(pl.Dense(np.zeros((0, 0))), float)(np.zeros(0)).shape == (0,)
    assert _core._Applied(pl.Dense(np.zeros((3, 0))), float)(np.zeros(0)).tolist() == [0, 0, 0]
    assert _core._Applied(pl.Diag([2.0]), float)(np.ones(1)).tolist() == [2]


def test_leaves_are_read_when_bound_and_what_was_derived_is_kept():
    a = RNG.random((N, N)) + N * np.eye(N)
    op, x = pl.inv(pl.Dense(a)), np.ones(N)
    np.testing.assert_allclose(_core._Applied(op, float)(x), np.linalg.solve(a, x))
    a[0, 0] += 1
    np.testing.assert_allclose(_core._Applied(op, float)(x), np.linalg.solve(a, x))


def test_wrong_use():
    diag = OPERATORS["diag"]
    bound = _core._Applied(diag, float)
    for x in (np.ones(N + 1), np.ones((N, 1))):
        with pytest.raises(ValueError, match="bound for"):
            bound(x)
    x = np.ones(N)
    with pytest.raises(ValueError, match="overlap"):
        bound(x, x)
    for out in (np.ones(N, np.float32), np.ones(2 * N)[::2], [1.0] * N):
        with pytest.raises(ValueError, match="out must be"):
            bound(x, out)
    with pytest.raises(TypeError, match="not an operator"):
        _core._Applied(np.eye(2), float)
    with pytest.raises(TypeError, match="no products"):
        _core._Applied(diag, np.float16)
    with pytest.raises(ValueError, match="batch"):
        _core._Applied(pl.Dense(np.ones((2, 3, 3))), float)
    with pytest.raises(ValueError, match="mode 4"):
        _core._Applied(diag, float, 1, 4)
    bound.close()
    with pytest.raises(RuntimeError, match="closed"):
        bound(x)


def test_an_exception_of_a_callable_arrives_and_the_next_product_works():
    fails = [True]

    def product(v):
        if fails[0]:
            raise KeyError("mine")
        return v

    bound = _core._Applied(pl.MatVec((3, 3), product, dtype=float), float)
    with pytest.raises(KeyError, match="mine"):
        bound(np.ones(3))
    fails[0] = False
    assert bound(np.ones(3)).tolist() == [1, 1, 1]


def test_a_callable_of_another_dtype_is_refused_with_a_word():
    bound = _core._Applied(pl.MatVec((3, 3), lambda v: v * 1j, dtype=float), float)
    with pytest.raises(TypeError, match="complex128.*cannot be cast to.*float64"):
        bound(np.ones(3))


def test_a_callable_that_uses_its_own_bound_product():
    found = []

    def product(v):
        with pytest.raises(RuntimeError, match="running"):
            bound(v)
        with pytest.raises(RuntimeError, match="running"):
            bound.close()
        found.append(1)
        return v

    bound = _core._Applied(pl.MatVec((3, 3), product, dtype=float), float)
    bound(np.ones(3))
    assert found == [1]


def test_nothing_is_left_behind():
    before = _core.live()
    op = pl.Dense(RNG.random((N, N))) @ pl.Diag(RNG.random(N))
    bound = _core._Applied(op, float)
    bound(np.ones(N))
    del bound, op
    _core._clear_store()
    assert _core.live() <= before


def test_threads_bind_each_for_itself():
    op = pl.Dense(RNG.random((200, 200)))
    x = RNG.random((200, 8))
    want = op @ x
    wrong = []

    def work():
        bound = _core._Applied(op, float, 8)
        for _ in range(30):
            if not np.array_equal(bound(x), want):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
