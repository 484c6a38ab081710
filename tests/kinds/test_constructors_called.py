"""Diag(d) and Dense(a) of one plain array are read without tuples; all else as before."""

import pickle

import numpy as np
import pytest

import pylinop as pl


class Mine(pl.Diag):
    pass


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "complex64", "complex128", "int64", "bool"]
)
@pytest.mark.parametrize("shape", [(4,), (0,), (3, 4), (2, 3, 4)])
def test_one_array_and_by_keyword_are_the_same(dtype, shape):
    d = np.ones(shape, dtype)
    for A, B in ((pl.Diag(d), pl.Diag(d=d)), (pl.Diag(d), pl.Diag(d, 0, None))):
        assert type(A) is type(B) is pl.Diag
        assert A._given("d", "k", "shape") == B._given("d", "k", "shape")
        assert A.d is d and (A.shape, A.dtype, A.args) == (B.shape, B.dtype, B.args)
        assert repr(A) == repr(B)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(A)).toarray(), B.toarray())
    if len(shape) > 1:
        A, B = pl.Dense(d), pl.Dense(a=d)
        assert (A.shape, A.dtype, repr(A)) == (B.shape, B.dtype, repr(B)) and A.args[0] is d


def test_what_is_no_plain_array_goes_the_long_way():
    d = np.ones(3)
    assert type(Mine(d)) is Mine and (Mine(d) @ d == d).all()
    assert pl.Diag([1.0, 2.0]).shape == (2, 2)
    assert pl.Diag(d, 1).shape == (4, 4) and pl.Diag(d, copy=True).d is not d
    assert pl.Dense(np.eye(2), "pos").shape == (2, 2)
    assert isinstance(pl.Diag(pl.lazy(d)), pl.LazyArray)
    assert pl.Diag(np.ones(3, "float16")).dtype == np.float16
    for wrong in (
        lambda: pl.Diag(),
        lambda: pl.Diag(d, e=1),
        lambda: pl.Diag(d, 0, None, 1),
        lambda: pl.Diag(np.ones(3, object)),
        lambda: pl.Diag(np.float64(3)),
        lambda: pl.Dense(d),
        lambda: pl.Diag(d, d=d),
    ):
        with pytest.raises((TypeError, ValueError)):
            wrong()


def test_offsets_of_diagonals():
    A = pl.Dense(np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(A.diagonal(), [0, 4])
    np.testing.assert_array_equal(A.diagonal(1), [1, 5])
    np.testing.assert_array_equal(A.diagonal(offset=np.int64(-1)), [3])
    for wrong in (lambda: A.diagonal(1, 2), lambda: A.diagonal(k=1), lambda: A.diagonal(1.0)):
        with pytest.raises(TypeError):
            wrong()
