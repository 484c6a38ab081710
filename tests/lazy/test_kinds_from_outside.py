"""Shape and dtype of kinds of LazyArrays are known from like ones before: what decides them tells
them apart."""

import itertools

import numpy as np
import pytest

import pylinop as pl
from pylinop._lazy import kinds

MAKERS = [
    lambda d, U: pl.Diag(d),
    lambda d, U: pl.Diag(d, 1),
    lambda d, U: pl.Diag(d, True),
    lambda d, U: pl.Diag(d, -2),
    lambda d, U: pl.Diag(d, k=1),
    lambda d, U: pl.Diag(d, 0, (6, 9)),
    lambda d, U: pl.Toeplitz(d),
    lambda d, U: pl.Toeplitz(d, U[..., 0]),
    lambda d, U: pl.Toeplitz(U[..., 0], d),
    lambda d, U: pl.Hankel(d, U[..., 0]),
    lambda d, U: pl.LowRank(U),
    lambda d, U: pl.LowRank(U, U[:2]),
    lambda d, U: pl.LowRank(U, V=U[:2]),
    lambda d, U: pl.Circulant(d),
    lambda d, U: pl.Circulant(U),
    lambda d, U: pl.Circulant(U, 2),
    lambda d, U: pl.Circulant(U, levels=2),
    lambda d, U: pl.Convolution(d, 5),
    lambda d, U: pl.Convolution(d, 9, "same"),
    lambda d, U: pl.Convolution(d, 9, mode="valid"),
    lambda d, U: pl.Kernel("rbf", U, variance=d[0]),
    lambda d, U: pl.Kernel("rbf", U, U[:2], variance=d[0]),
    lambda d, U: pl.Kron(pl.Diag(d), U),
    lambda d, U: pl.Kron(U, pl.Diag(d)),
    lambda d, U: pl.KronSum(pl.Diag(d), pl.Diag(d)),
    lambda d, U: pl.BlockDiag(U, pl.Diag(d)),
    lambda d, U: pl.LowRankUpdate(pl.Diag(d), U),
    lambda d, U: pl.Reflections(U, 6),
    lambda d, U: pl.Reflections(U, 7),
    lambda d, U: pl.Householder(d),
]
ARRAYS = [(6, 3), (6, 2), (4, 4)]


@pytest.mark.parametrize("forget", [False, True])
def test_like_the_operator_that_is_made(forget):
    r = np.random.default_rng(3)
    seen = 0
    for _ in range(2):
        for (n, k), dtype, make in itertools.product(ARRAYS, ("f4", "f8", "c16"), MAKERS):
            d, U = r.standard_normal(n).astype(dtype), r.standard_normal((n, k)).astype(dtype)
            if forget:
                kinds._outers.clear()
            try:
                due = make(d, U)
            except (ValueError, TypeError) as error:
                with pytest.raises(type(error)):
                    make(pl.lazy(d), pl.lazy(U))
                continue
            found = make(pl.lazy(d), pl.lazy(U))
            assert (found.shape, found.dtype) == (due.shape, due.dtype)
            assert np.allclose(found.toarray(), due.toarray())
            seen += 1
    assert seen > 400


def test_a_class_of_somebody_is_asked_each_time():
    class Grown(pl.Diag):
        pass

    before = dict(kinds._outers)
    x = pl.lazy(np.ones(3))
    for _ in range(2):
        assert Grown(x).shape == (3, 3)
    assert kinds._outers == before


@pytest.mark.parametrize("turned", [False, True])
def test_kinds_of_the_same_shapes_hold_what_they_are_given(turned, rng, monkeypatch):
    """Kinds of nothing but LazyArrays are known by shapes: also those of one array given twice."""
    monkeypatch.setattr(kinds, "_seen", {})
    U, V = rng.standard_normal((2, 5, 2))
    c, r = rng.standard_normal((2, 4))
    r[0] = c[0]
    e, f = rng.standard_normal((2, 3))
    u, v, x, y = map(pl.lazy, (U, V, c, r))
    lower, upper = map(pl.lazy, (e, f))
    toeplitz = [[(c if i >= j else r)[abs(i - j)] for j in range(4)] for i in range(4)]
    rows = [
        (lambda: pl.LowRank(u, u), U @ U.T),
        (lambda: pl.LowRank(u, v), U @ V.T),
        (lambda: pl.LowRank(v), V @ V.T),
        (lambda: pl.LowRank(v, u), V @ U.T),
        (lambda: pl.LowRank(u, np.ascontiguousarray(V)), U @ V.T),
        (lambda: pl.Toeplitz(x, x), pl.Toeplitz(c).toarray()),
        (lambda: pl.Toeplitz(x, y), np.array(toeplitz)),
        (lambda: pl.Toeplitz(x), pl.Toeplitz(c).toarray()),
        (lambda: pl.Tridiagonal(lower, x, lower), np.diag(c) + np.diag(e, -1) + np.diag(e, 1)),
        (lambda: pl.Tridiagonal(lower, x, upper), np.diag(c) + np.diag(e, -1) + np.diag(f, 1)),
        (lambda: pl.Tridiagonal(upper, x, lower), np.diag(c) + np.diag(f, -1) + np.diag(e, 1)),
        (lambda: pl.Diag(x, 0), np.diag(c)),
        (lambda: pl.Diag(x), np.diag(c)),
        (lambda: pl.Diag(y), np.diag(r)),
    ]
    for _ in range(2):
        for make, due in rows[:: -1 if turned else 1]:
            np.testing.assert_allclose(make().toarray(), due, rtol=1e-13, atol=1e-13)
    assert kinds._seen
