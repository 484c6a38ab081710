"""Products with Krons of factors that outgrow the nearer caches, on few columns."""

import numpy as np
import pytest

import pylinop as pl


def _by_hand(factors, x):
    k = x.shape[1]
    for a in factors:
        x = x.reshape(a.shape[1], -1).T @ a.T
    return x.reshape(k, -1).T


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize(
    ("shapes", "k"),
    [
        ([(4, 4), (400, 400)], 16),  # the last factor in place
        ([(5, 3), (400, 380)], 7),
        ([(1, 1), (400, 400)], 9),
        ([(2, 2), (400, 400), (3, 3)], 1),
        ([(400, 400), (3, 3)], 2),
        ([(3, 3), (400, 400)], 70),  # too many columns to gather
    ],
)
def test_products(shapes, k, dtype):
    rng = np.random.default_rng(0)

    def draw(shape):
        a = rng.standard_normal(shape)
        return (a + 1j * rng.standard_normal(shape) if dtype[0] == "c" else a).astype(dtype)

    factors = [draw(s) for s in shapes]
    K = pl.Kron(*factors)
    for op, same in ((K, factors), (K.H, [f.conj().T for f in factors])):
        x = draw((op.shape[1], k))
        want = _by_hand(same, x)
        tol = 50 * max(op.shape) * np.finfo(dtype).eps * np.abs(want).max() / 10
        for b in (x, np.asfortranarray(x)):
            np.testing.assert_allclose(op @ b, want, atol=tol)
        out = np.empty_like(want)
        op.matmat(x, out=out)
        np.testing.assert_array_equal(out, op @ x)
