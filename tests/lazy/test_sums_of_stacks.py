"""Sums and multiples of matrices and stacks of them, of other batch dimensions, stay formulas."""

import itertools

import numpy as np
import pytest

import pylinop as pl

N = 6
BATCHES = [(), (1,), (3,), (2, 3), (2, 1), (0,)]


def forms(rng, batch):
    """name -> (LazyArray, its value)."""
    d, u = 3 + rng.random((*batch, N)), rng.standard_normal((*batch, N, 2))
    a = rng.standard_normal((*batch, N, N))
    eye = np.eye(N)
    return {
        "kind": (pl.Diag(pl.lazy(d)), d[..., None] * eye),
        "product": (pl.lazy(u) @ pl.lazy(u).mT, u @ np.swapaxes(u, -1, -2)),
        "array": (pl.lazy(a), a),
        "call": (np.exp(pl.lazy(a)), np.exp(a)),
        "view": (pl.lazy(a).mT, np.swapaxes(a, -1, -2)),
        "operator": (pl.lazy(pl.LowRank(u)), u @ np.swapaxes(u, -1, -2)),
    }


def same(got, want):
    assert isinstance(got, pl.LazyArray) and got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("left", BATCHES)
@pytest.mark.parametrize("right", BATCHES)
def test_sums(left, right, rng):
    try:
        np.broadcast_shapes(left, right)
    except ValueError:
        with pytest.raises(ValueError, match="broadcast"):
            forms(rng, left)["kind"][0] + forms(rng, right)["kind"][0]
        return
    pairs = itertools.product(forms(rng, left).values(), forms(rng, right).values())
    for (x, a), (y, b) in pairs:
        same(x + y, a + b)
        same(x - y, a - b)
        same(x + b, a + b)
        same(a - y, a - b)


@pytest.mark.parametrize("left", BATCHES)
@pytest.mark.parametrize("right", [(1, 1, 1), (3, 1, 1), (2, 3, 1, 1), (2, 1, 1, 1), (1, 1), (1,)])
def test_a_number_for_each(left, right, rng):
    try:
        np.broadcast_shapes(left, right[:-2])
    except ValueError:
        pytest.skip("do not fit")
    c = rng.standard_normal(right)
    for x, a in forms(rng, left).values():
        same(x * c, a * c)
        same(pl.lazy(c) * x, c * a)


def test_other_shapes_are_element_wise(rng):
    d = 3 + rng.random((3, N))
    K, dense = pl.Diag(pl.lazy(d)), d[..., None] * np.eye(N)
    for other in (
        rng.random(N),
        rng.random((N, 1)),
        rng.random((3, 1, N)),
        rng.random((2, 1, N, N)),
    ):
        same(K + other, dense + other)
        same(K * other, dense * other)
    with pytest.raises(ValueError, match="broadcast"):
        K + rng.random((2, N, N))
    ints = rng.integers(0, 200, (N, N)).astype(np.uint8)
    same(K - ints, dense - ints)
    same(pl.lazy(ints) - pl.lazy(np.stack([ints] * 2)), ints - np.stack([ints] * 2))


def names(a):
    """Of the steps that ran."""
    with pl.explaining() as said:
        np.asarray(a)
    return {s["name"] for s in said.steps if not s["conditional"]}


def test_structure_is_kept(rng):
    n, batch = 60, 20
    d, u, s = 1 + rng.random((batch, n)), rng.standard_normal((n, 2)), 1 + rng.random(batch)
    K = pl.Diag(pl.lazy(d)) + s[:, None, None] * pl.LowRank(pl.lazy(u))
    dense = d[..., None] * np.eye(n) + s[:, None, None] * (u @ u.T)
    b = rng.standard_normal((n, 1))
    np.testing.assert_allclose(pl.solve(K, b), np.linalg.solve(dense, b), rtol=1e-10)
    L = pl.Diag(pl.lazy(d)) + pl.LowRank(pl.lazy(u))
    assert "getrf" not in names(pl.solve(L, b)) and "weighted-gram" in names(pl.logdet(L))
