"""Numbers near either end of the range: a result within it is found though a step is not."""

import numpy as np
import pytest

import pylinop as pl

RANGES = {"float64": (1e-310, 1e305), "complex128": (1e-310, 1e305)}
RANGES |= {"float32": (1e-40, 1e35), "complex64": (1e-40, 1e35)}


@pytest.mark.parametrize("dtype", list(RANGES))
@pytest.mark.parametrize("end", [0, 1])
@pytest.mark.parametrize("shape", [(7,), (64,), (4, 6)])
def test_circulant_solves(dtype, end, shape, rng):
    """Eigenvalues without reciprocals, or next to the largest number."""
    scale = RANGES[dtype][end]
    c = np.zeros(shape, dtype)
    c.flat[0] = 1
    c.flat[1:4] = 0.125, -0.25, 0.0625
    n = c.size
    A = pl.Circulant(c * np.dtype(dtype).type(scale), levels=len(shape))
    want = pl.Circulant(c, levels=len(shape)).toarray()
    small = 1e-3 if end == 0 else 1e-4 if np.finfo(dtype).eps > 1e-10 else 1e-9
    for k in (1, 5):
        x = rng.standard_normal((n, k)).astype(dtype)
        b = ((want @ x) * np.dtype(dtype).type(scale)).astype(dtype)
        for _ in range(2):
            np.testing.assert_allclose(pl.solve(A, b), x, rtol=0, atol=small * abs(x).max())
        np.testing.assert_allclose(pl.solve(A.H, A.H @ x), x, rtol=0, atol=small * abs(x).max())


@pytest.mark.parametrize("n", [4, 40])
@pytest.mark.parametrize("scale", [1e80, 1e100, 1e150])
def test_determinant_of_large_updates(n, scale):
    """The bound of |A| that the check compares with is not the square of it."""
    found = pl.slogdet(pl.LowRankUpdate(pl.Identity(n), scale * np.ones((n, 1))))
    assert found.sign == 1
    np.testing.assert_allclose(found.logabsdet, np.log(n) + 2 * np.log(scale), rtol=1e-14)


@pytest.mark.parametrize("scale", [1e-160, 1e-120, 1e120, 1e300])
def test_solves_with_updates_of_any_size(scale, rng):
    n = 40
    u = rng.standard_normal((n, 2))
    d = 1 + rng.random(n)
    A = pl.LowRankUpdate(pl.Diag(d * scale), u, C=scale * np.eye(2))
    want = np.diag(d) + u @ u.T
    x = pl.solve(A, scale * np.ones(n))
    np.testing.assert_allclose(x, np.linalg.solve(want, np.ones(n)), rtol=1e-9)
    found = pl.slogdet(A)
    np.testing.assert_allclose(
        found.logabsdet, np.linalg.slogdet(want)[1] + n * np.log(scale), rtol=1e-13
    )
