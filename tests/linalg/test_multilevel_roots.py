"""Draws of stationary fields on a grid: the root of a MultilevelToeplitz by a circulant."""

import numpy as np
import pytest

import pylinop as pl
from pylinop._structured import square_roots


def lags(sizes, scale=0.5, dtype=float):
    """exp(-|lag| / scale), in each direction of another length; complex: with a phase."""
    axes = np.meshgrid(*(np.arange(1 - n, n) for n in sizes), indexing="ij")
    t = np.exp(-sum(abs(a) / (scale + 0.1 * i) for i, a in enumerate(axes)))
    if np.dtype(dtype).kind == "c":
        t = t * np.exp(0.3j * sum(axes))
    return t.astype(dtype)


@pytest.mark.parametrize("sizes", [(1,), (7,), (4, 5), (1, 6), (6, 1), (3, 4, 2), (2, 2, 2, 3)])
@pytest.mark.parametrize("dtype", "fdFD")
def test_the_root_of_a_field(sizes, dtype):
    A = pl.MultilevelToeplitz(lags(sizes, dtype=dtype))
    R = square_roots.root(A)
    assert R.dtype == A.dtype and type(R).__name__ == "Product"
    R = R.toarray()
    near = 1e-5 if dtype in "fF" else 1e-13
    np.testing.assert_allclose(R @ R.conj().T, A.toarray(), atol=near)
    one, more = pl.sample(A, rng=3), pl.sample(A, 4, rng=3)
    assert one.shape == (A.shape[0],) and one.dtype == A.dtype
    np.testing.assert_allclose(more[0], one, atol=near)


def test_large_fields_take_no_matrix():
    A = pl.MultilevelToeplitz(lags((300, 200)))
    with pl.config(memory_limit=2**28):
        x = pl.sample(A, 3, rng=0)
    assert x.shape == (3, 60_000)
    assert abs(x.var() - 1) < 0.05
    field = x.reshape(3, 300, 200)
    for axis, scale in ((1, 0.5), (2, 0.6)):
        near = np.take(field, range(field.shape[axis] - 1), axis)
        far = np.take(field, range(1, field.shape[axis]), axis)
        assert abs((near * far).mean() - np.exp(-1 / scale)) < 0.03


def test_points_of_a_kernel_on_a_grid():
    x = np.stack(np.meshgrid(np.arange(30.0), np.arange(20.0), indexing="ij"), -1).reshape(-1, 2)
    A = pl.kernel_structure(pl.Kernel("matern12", x, length_scale=1.5))
    assert type(A).__name__ == "MultilevelToeplitz"
    R = square_roots.root(A).toarray()
    np.testing.assert_allclose(R @ R.T, A.toarray(), atol=1e-12)


def test_what_no_circulant_is_around():
    r = np.random.default_rng()
    wide = pl.MultilevelToeplitz(lags((5, 6), scale=40.0))  # definite; the circulant is not
    t = lags((5, 6))
    t[0, 0] += 0.1
    for A in (wide, wide + 0.1 * pl.Identity(30)):
        R = square_roots.root(A).toarray()
        np.testing.assert_allclose(R @ R.T, A.toarray(), atol=1e-12)
    with pytest.raises((ValueError, np.linalg.LinAlgError)):
        pl.sample(pl.MultilevelToeplitz(t), rng=r)  # not symmetric
    with pytest.raises((ValueError, np.linalg.LinAlgError)):
        pl.sample(pl.MultilevelToeplitz(-lags((5, 6))), rng=r)
