"""Cholesky factors of, and draws with, sparse precisions that are written as formulas."""

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl

SIDE = 21
N = SIDE * SIDE  # 441 rows: above the size from which sparse factors are taken


def precisions(rng):
    line = sp.diags_array([-1.0, 2.1, -1.0], offsets=[-1, 0, 1], shape=(SIDE, SIDE))
    eye = sp.eye_array(SIDE)
    Q = pl.Sparse(sp.csr_array(sp.kron(line, eye) + sp.kron(eye, line)))
    H = pl.Selection(rng.choice(N, 90, replace=False), N)
    F, E = pl.FiniteDifference(N), pl.Diag(1 + rng.random(90))
    yield Q + H.T @ H
    yield Q + H.T @ E @ H
    yield F.T @ F + Q
    yield Q + pl.Kron(pl.Identity(SIDE), pl.FiniteDifference(SIDE)).T @ pl.Kron(
        pl.Identity(SIDE), pl.FiniteDifference(SIDE)
    )
    yield 0.1 * pl.Identity(N) - pl.Laplacian((SIDE, SIDE), "dirichlet") + H.T @ H
    yield pl.BlockDiag(pl.Sparse(sp.eye_array(41)), pl.Identity(400)) + Q


@pytest.mark.parametrize("which", range(6))
def test_the_factor_stays_sparse(which, rng):
    P = list(precisions(rng))[which]
    L = pl.cholesky(P)
    assert isinstance(L, pl.SparseTriangular)
    np.testing.assert_allclose((L @ L.T).toarray(), P.toarray(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("which", range(6))
def test_draws_are_those_of_the_matrix_itself(which, rng):
    P = list(precisions(rng))[which]
    x = pl.sample(pl.inv(P), size=3, rng=np.random.default_rng(1))
    y = pl.sample(pl.inv(pl.Sparse(P.tosparse())), size=3, rng=np.random.default_rng(1))
    np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12)


def test_what_fills_takes_the_dense_form(rng):
    A = pl.Dense(rng.standard_normal((N, 3)))
    P = pl.Identity(N) + A @ A.T
    assert not isinstance(pl.cholesky(P), pl.SparseTriangular)
    S = pl.Sparse(sp.random_array((N, N), density=0.2, rng=rng))
    assert not isinstance(pl.cholesky(pl.Identity(N) + S.T @ S), pl.SparseTriangular)
