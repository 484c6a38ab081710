"""Gradients of products and solves with matrices of no columns: zeros, of every kind."""

import numpy as np
import pytest

import pylinop as pl

KINDS = {
    "Kron": (pl.Kron, ((2, 2), (3, 3))),
    "Kron of three": (pl.Kron, ((2, 2), (3, 3), (1, 1))),
    "KronSum": (pl.KronSum, ((2, 2), (3, 3))),
    "Toeplitz": (pl.Toeplitz, ((6,),)),
    "Circulant": (pl.Circulant, ((6,),)),
    "Hankel": (pl.Hankel, ((6,), (6,))),
    "Diag": (pl.Diag, ((6,),)),
    "Tridiagonal": (pl.Tridiagonal, ((5,), (6,), (5,))),
    "Banded": (lambda ab: pl.Banded((1, 1), ab), ((3, 6),)),
    "Triangular": (pl.Triangular, ((6, 6),)),
    "Dense": (pl.Dense, ((6, 6),)),
    "LowRankUpdate": (lambda u: pl.LowRankUpdate(pl.Identity(6), u), ((6, 2),)),
    "BlockDiag": (pl.BlockDiag, ((3, 3), (3, 3))),
    "KhatriRao": (pl.KhatriRao, ((2, 6), (3, 6))),
    "Power": (lambda a: pl.Dense(a) ** 3, ((6, 6),)),
}


@pytest.mark.parametrize("name", KINDS)
def test_no_columns(name, rng):
    make, shapes = KINDS[name]
    arrays = [rng.normal(size=s) for s in shapes]
    x = np.zeros((6, 0))
    every = tuple(range(len(arrays)))

    def product(*p):
        return np.sum(make(*p) @ x)

    def solution(*p):
        return np.sum(pl.solve(make(*p), x))

    for f in (product, solution):
        got = pl.grad(f, argnums=every)(*arrays)
        for g, a in zip(got, arrays, strict=True):
            np.testing.assert_array_equal(np.asarray(g), np.zeros(a.shape))
