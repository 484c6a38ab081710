"""Kinds of LazyArrays are built as like ones were before (py_lazy_recipes.c): what decides shape,
dtype and the places of the arguments tells them apart."""

import itertools

import numpy as np
import pytest

import pylinop as pl

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


def test_like_the_operator_that_is_made():
    r = np.random.default_rng(3)
    seen = 0
    for _ in range(2):
        for (n, k), dtype, make in itertools.product(ARRAYS, ("f4", "f8", "c16"), MAKERS):
            d, U = r.standard_normal(n).astype(dtype), r.standard_normal((n, k)).astype(dtype)
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
    asked = []

    class Grown(pl.Diag):
        def __init__(self, *args, **kwargs):
            asked.append(args)

    x = pl.lazy(np.ones(3))
    for k in range(1, 4):
        made = Grown(x)
        assert made.shape == (3, 3)
        assert len(asked) == k


def test_which_arguments_are_one():
    r = np.random.default_rng(5)
    u, v = r.standard_normal((2, 5, 2))
    U, V = pl.lazy(u), pl.lazy(v)
    for _ in range(2):
        for (a, x), (b, y) in itertools.product([(U, u), (V, v)], repeat=2):
            assert np.allclose(pl.LowRank(a, b).toarray(), x @ y.T)
            assert np.allclose(pl.LowRank(a, V=b).toarray(), x @ y.T)
            assert np.allclose(pl.Kron(a, b, a).toarray(), np.kron(x, np.kron(y, x)))
        assert np.allclose(pl.LowRank(U).toarray(), u @ u.T)


def test_kinds_of_kinds_and_lists():
    r = np.random.default_rng(6)
    for _ in range(3):
        a, b = r.standard_normal((2, 4, 4))
        d, u = r.standard_normal(4), r.standard_normal((4, 2))
        A, B, D, U = map(pl.lazy, (a, b, d, u))
        low = np.diag(d) + u @ u.T
        for _ in range(2):
            assert np.allclose(pl.LowRankUpdate(pl.Diag(D), U).toarray(), low)
            assert np.allclose(pl.Kron(pl.Diag(D), A).toarray(), np.kron(np.diag(d), a))
            assert np.allclose(pl.Kron(pl.Toeplitz(D), A).shape, (16, 16))
            assert np.allclose(pl.Block([[A, B], [B, A]]).toarray(), np.block([[a, b], [b, a]]))
            assert np.allclose(pl.Block([[A, B], [A, B]]).toarray(), np.block([[a, b], [a, b]]))
            assert pl.BlockDiag([A, B]).shape == pl.BlockDiag(A, B).shape == (8, 8)
            assert np.allclose(pl.LowRank(D).toarray(), np.outer(d, d))  # a column
            assert np.allclose(pl.Diag([D[0], 2.0]).toarray(), np.diag([d[0], 2.0]))
            shifted = pl.LowRankUpdate(pl.Diag(D) + pl.Identity(4), U).toarray()
            assert np.allclose(shifted, low + np.eye(4))


def test_more_than_are_kept():
    for n in [*range(1, 700), *range(1, 700, 50)]:
        d = pl.lazy(np.full(n, 2.0))
        assert pl.Diag(d).shape == (n, n)
        assert float(pl.trace(pl.Diag(d, 0))) == 2.0 * n


@pytest.mark.parametrize("turned", [False, True])
def test_kinds_of_the_same_shapes_hold_what_they_are_given(turned, rng):
    """Kinds of nothing but LazyArrays are known by shapes: also those of one array given twice."""
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
