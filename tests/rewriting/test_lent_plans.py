"""Plans of solves with operators of too many operands for a signature stay with the operator: the
inverse that `solve` builds is another one at each call."""

import gc
import weakref

import numpy as np
import pytest

import pylinop as pl


def blocks(g, k, rng, kind="d"):
    a = rng.standard_normal((g, k, k)).astype(kind)
    return a @ np.swapaxes(a, 1, 2) / k + np.eye(k, dtype=kind)


def fired():
    """How often rules have been used so far: a plan that is found uses none."""
    return sum(rule["fired"] for rule in pl.rules())


@pytest.mark.parametrize("g", [2, 55, 56, 57, 200])
@pytest.mark.parametrize("kind", "fd")
def test_many_blocks_and_a_thin_term(g, kind):
    rng = np.random.default_rng()
    a, u = blocks(g, 5, rng, kind), rng.standard_normal((5 * g, 2)).astype(kind)
    A = pl.BlockDiag(a) + pl.LowRank(pl.Dense(u))
    near = 1e-3 if kind == "f" else 1e-9
    for cols in (None, 1, 3, None, 3):  # other right sides in between, each with its own plan
        b = rng.standard_normal(5 * g if cols is None else (5 * g, cols)).astype(kind)
        for _ in range(2):
            want = np.linalg.solve(A.toarray().astype("d"), b)
            np.testing.assert_allclose(pl.solve(A, b), want, rtol=near, atol=near)
            np.testing.assert_allclose(pl.inv(A) @ b, want, rtol=near, atol=near)
            np.testing.assert_allclose(A @ want.astype(kind), b, rtol=near, atol=1e2 * near)
        a[0] += np.eye(5, dtype=kind)  # the values of operands may change at any time
    with pl.config(fft=False):  # plans are for options
        np.testing.assert_allclose(pl.solve(A, b), pl.solve(A, b))


def test_many_kinds_of_right_sides():
    """More than an operator keeps."""
    rng = np.random.default_rng()
    A = pl.BlockDiag(*blocks(80, 3, rng))
    D = A.toarray()
    for _ in range(2):
        for k in range(1, 10):
            b = rng.standard_normal((240, k))
            np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(D, b), rtol=1e-9)
            np.testing.assert_allclose(A @ b, D @ b, rtol=1e-9, atol=1e-12)


def test_a_plan_is_made_once():
    rng = np.random.default_rng()
    A = pl.BlockDiag(blocks(300, 4, rng)) + pl.LowRank(pl.Dense(rng.standard_normal((1200, 2))))
    b = rng.standard_normal(1200)
    with pl.config(verify=False):
        start = fired()
        pl.solve(A, b)
        first = fired() - start
        pl.solve(A, b)
        pl.inv(A) @ b
        assert first > 20 and fired() == start + first
        pl.solve(A, rng.standard_normal((1200, 2)))
        assert fired() > start + first


def test_nothing_is_held_by_what_was_lent():
    rng = np.random.default_rng()
    gc.collect()
    gc.disable()
    try:
        a = blocks(80, 3, rng)
        A = pl.BlockDiag(a)
        pl.solve(A, np.ones(240))
        gone = weakref.ref(A)
        del A
        assert gone() is None  # no cycle of an operator and its inverse
    finally:
        gc.enable()
