"""Gradients that are pairs of vectors one of which has another dtype than the planner's."""

import numpy as np
import pytest

import pylinop as pl

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", [">f8", ">c16", "int64", "float16", "longdouble"])
def test_pairs_with_given_vectors(dtype):
    """Such a vector is a leaf that no expression of columns takes by itself: the walk looked for
    its column for ever."""
    A, x = RNG.standard_normal((4, 4)), RNG.standard_normal(4)
    y = (4 * RNG.standard_normal(4)).astype(dtype)
    M, v = pl.lazy(A), pl.lazy(x)
    g, h = pl.gradients(np.real(pl.lazy(y) @ M @ v), [M, v])
    wide = y.astype(complex if y.dtype.kind == "c" else float)
    got = pl.evaluate(g, h)
    assert np.allclose(got[0], np.outer(wide, x).real)
    assert np.allclose(got[1], (wide @ A).real)
    g, h = pl.gradients(np.real(pl.lazy(y) @ M @ v), [M, v])
    assert np.allclose(g.toarray(), np.outer(wide, x).real)
    assert np.allclose(h.toarray(), (wide @ A).real)
