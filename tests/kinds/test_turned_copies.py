"""Copies between C and Fortran order (k_turn.c): every bit, at sizes around its blocks."""

import numpy as np
import pytest

import pylinop as pl


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("m, n", [(9, 9), (8, 30), (15, 16), (16, 17), (100, 9), (12, 1030)])
def test_turned(rng, m, n, dtype):
    a = rng.standard_normal((m, n + 3)).astype(dtype)
    a[0, 0], a[-1, n - 1], a[1, 1] = np.nan, -0.0, np.inf
    for x in (a[:, :n], np.asfortranarray(a)[:, :n], a[:, :n].T):
        for order in "CF":
            out = np.full(x.shape, 7, dtype, order=order)
            got = np.matmul(pl.Identity(x.shape[0]), x, out=out)
            assert got is out
            np.testing.assert_array_equal(
                np.ascontiguousarray(out).view(np.uint8), np.ascontiguousarray(x).view(np.uint8)
            )
