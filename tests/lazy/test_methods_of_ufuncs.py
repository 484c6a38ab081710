"""Methods of ufuncs on LazyArrays, running products, norms of arrays as vectors."""

import numpy as np
import pytest

import pylinop as pl

A0 = np.random.default_rng(3).standard_normal((3, 4))


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.minimum, np.hypot])
@pytest.mark.parametrize(
    "how",
    [{}, {"axis": None}, {"axis": 1}, {"axis": (0, 1)}, {"axis": 1, "keepdims": True},
     {"axis": None, "keepdims": True}, {"initial": 2.0}, {"axis": None, "dtype": "f4"}],
)  # fmt: skip
def test_reduce_is_numpy_s(ufunc, how):
    if ufunc is np.hypot and not isinstance(how.get("axis", 0), int):
        how = {}  # NumPy reduces it along one axis
    got, want = ufunc.reduce(pl.lazy(A0), **how), ufunc.reduce(A0, **how)
    assert got.shape == np.shape(want) and got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-6 if "dtype" in how else 1e-14)


def test_the_axis_of_a_reduction_may_be_none_by_position():
    assert np.add.reduce(pl.lazy(A0), None).shape == ()
    np.testing.assert_allclose(np.maximum.reduce(pl.lazy(A0), None), A0.max())


def test_what_is_accumulated_and_outer():
    A, x = pl.lazy(A0), np.array([1.0, 2.0])
    for f in (
        lambda a: np.add.accumulate(a, 1),
        lambda a: np.multiply.accumulate(a),
        lambda a: np.maximum.accumulate(a, axis=1),
        lambda a: np.subtract.outer(a, x),
        lambda a: np.subtract.outer(x, a),
        lambda a: np.multiply.outer(a, 2.0),
        lambda a: np.cumprod(a),
        lambda a: np.cumprod(a, axis=-1),
        lambda a: a.cumprod(0),
    ):
        np.testing.assert_array_equal(np.asarray(f(A)), f(A0))
    if hasattr(np, "cumulative_sum"):
        np.testing.assert_array_equal(np.cumulative_sum(A, axis=1), np.cumsum(A0, axis=1))
        np.testing.assert_array_equal(np.cumulative_prod(A, axis=0), np.cumprod(A0, axis=0))
        with pytest.raises(ValueError, match="axis"):
            np.cumulative_sum(A)


@pytest.mark.parametrize("ord", [1, 2, 3, np.inf])
@pytest.mark.parametrize("how", [{}, {"axis": 0}, {"axis": (1, 0)}, {"keepdims": True}])
def test_vector_norms(ord, how):
    got = np.linalg.vector_norm(pl.lazy(A0), ord=ord, **how)
    assert isinstance(got, pl.LazyArray)
    np.testing.assert_array_equal(np.asarray(got), np.linalg.vector_norm(A0, ord=ord, **how))


@pytest.mark.parametrize("axis", [None, 1, (0, 1), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("shape", [(0, 3, 2), (2, 0, 3), (1, 1, 1)])
def test_vector_norms_of_nothing(shape, axis):
    x = np.ones(shape)
    found = np.asarray(np.linalg.vector_norm(pl.lazy(x), axis=axis))
    np.testing.assert_array_equal(found, np.linalg.vector_norm(x, axis=axis))
