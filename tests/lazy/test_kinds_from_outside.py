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
