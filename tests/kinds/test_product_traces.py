"""Traces and diagonals of products: both factors are read where they lie, in one pass, whatever
their views; sizes on both sides of the rows, lines and blocks that the kernel takes at a time."""

import numpy as np
import pytest

import pylinop as pl

VIEWS = {
    "plain": (lambda A: A, lambda a: a),
    "T": (lambda A: A.T, lambda a: a.T),
    "conj": (lambda A: A.conj(), lambda a: a.conj()),
    "H": (lambda A: A.H, lambda a: a.conj().T),
}


def draw(g, shape, dtype, order="C"):
    """Numbers of about one; integers small enough that no sum overflows."""
    if np.dtype(dtype).kind in "iu":
        return np.asarray(g.integers(0, 3, shape), dtype=dtype, order=order)
    a = g.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * g.standard_normal(shape)
    return np.asarray(a, dtype=dtype, order=order)


@pytest.mark.parametrize("left", VIEWS)
@pytest.mark.parametrize("right", VIEWS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "i8"])
def test_views_of_both_factors(left, right, dtype):
    """Each of the sixteen pairs of views, in both orders of memory, against NumPy."""
    g = np.random.default_rng(5)
    sizes = ((15, 16), (33, 257), (40, 515), (31, 31), (32, 32), (33, 33), (150, 150))
    for (n, k), order in ((size, order) for size in sizes for order in "CF"):
        (lop, larr), (rop, rarr) = VIEWS[left], VIEWS[right]
        a = draw(g, (k, n) if left in "TH" else (n, k), dtype, order)
        b = draw(g, (n, k) if right in "TH" else (k, n), dtype, order)
        want = np.einsum("ij,ji->i", larr(a), rarr(b), optimize=False)
        scale = np.einsum("ij,ji->i", abs(larr(a)), abs(rarr(b)))
        P = lop(pl.Dense(a)) @ rop(pl.Dense(b))
        u = np.finfo(dtype).eps if np.dtype(dtype).kind in "fc" else 0
        assert np.all(abs(pl.diagonal(P) - want) <= 4 * k * u * scale)
        assert abs(pl.trace(P) - want.sum()) <= 4 * (k + n) * u * scale.sum()
        short = pl.diagonal(P, 2)
        assert np.all(abs(short - np.diag(larr(a) @ rarr(b), 2)) <= 4 * k * u * scale.max() * 9)


@pytest.mark.parametrize("view", ["conj", "H"])
def test_no_copy_of_a_view(view):
    """A conjugated factor is read where it lies: no step copies it, no memory is taken for it."""
    g = np.random.default_rng(6)
    a, b = draw(g, (300, 300), "c16"), draw(g, (300, 300), "c16")
    report = (VIEWS[view][0](pl.Dense(a)) @ pl.Dense(b)).explain("trace")
    assert [s["name"] for s in report.steps] == ["product_diagonal", "sumall"]


def test_not_a_number_stays_in_its_place():
    """A NaN in one row of a factor reaches that entry of the diagonal alone."""
    a, b = np.ones((40, 300)), np.ones((300, 40))
    a[17, 299] = np.nan
    got = pl.diagonal(pl.Dense(a) @ pl.Dense(b))
    assert np.flatnonzero(np.isnan(got)).tolist() == [17]
    assert np.all(np.delete(got, 17) == 300)
