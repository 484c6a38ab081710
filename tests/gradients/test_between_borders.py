"""Derivatives of traces and diagonals of inverses of a sparse matrix beside thin columns, singular
without them or not: by the bordered matrix, whose entries are selected, beside dense arrays."""

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl


def graph(g, dtype):
    at = np.arange(g * g).reshape(g, g)
    right = np.c_[at[:, :-1].ravel(), at[:, 1:].ravel()]
    pairs = np.r_[right, np.c_[at[:-1].ravel(), at[1:].ravel()]]
    m = len(pairs)
    ends = np.tile(np.array([1.0, -1.0], dtype), m)
    return sp.csr_array((ends, (np.repeat(np.arange(m), 2), pairs.ravel())), shape=(m, g * g))


def loss(B, low, c, y, v, as_dense):
    n = B.shape[1]

    def f(w, u):
        weights = np.exp(w)
        rest = c * np.eye(n) + low(u) if as_dense else None
        if as_dense:
            D = pl.Dense(B.toarray())
            A = pl.Dense(D.H @ (weights[:, None] * B.toarray()) + rest)
        else:
            S = pl.Sparse(B)
            A = S.H @ pl.Diag(weights) @ S
            A = (A + c * pl.Identity(n) if c else A) + low(u)
        inverse = pl.inv(A)
        kept = pl.trace(inverse).real + np.sum(v * pl.diagonal(inverse).real)
        return kept + (np.conj(y) @ pl.solve(A, y)).real + 0.3 * pl.logdet(A).real

    return f


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("g", [5, 19, 20, 21])  # from 400 rows on a sparse factor is made
@pytest.mark.parametrize("c, columns", [(0.0, 1), (0.3, 1), (0.3, 3)])
def test_weights_of_edges(g, c, columns, dtype):
    r = np.random.default_rng([g, columns])
    B = graph(g, dtype)
    if np.dtype(dtype).kind == "c":
        B.data *= np.exp(1j * np.repeat(r.random(B.shape[0]), 2))
    n, m = B.shape[1], B.shape[0]
    y, v, w = r.standard_normal(n).astype(dtype), r.random(n), r.standard_normal(m) / 3
    u = (np.ones((n, columns)) + r.standard_normal((n, columns)) / 4).astype(dtype) / n**0.5
    thin = loss(B, lambda u: pl.LowRank(u), c, y, v, False)
    full = loss(B, lambda u: u @ np.conj(np.swapaxes(u, 0, 1)), c, y, v, True)
    found, due = (pl.value_and_grad(f, argnums=(0, 1))(w, u) for f in (thin, full))
    assert abs(found[0] - due[0]) <= 1e-10 * abs(due[0])
    for a, b in zip(found[1], due[1], strict=True):
        assert np.abs(a - b).max() <= 1e-9 * np.abs(b).max()
    p = r.standard_normal(m)
    h = 1e-3
    at = [pl.grad(thin)(w + t * h * p, u) for t in (-3, -2, -1, 1, 2, 3)]
    slope = (45 * (at[3] - at[2]) - 9 * (at[4] - at[1]) + at[5] - at[0]) / (60 * h)
    got = pl.hvp(lambda w: thin(w, u))(w, p)
    assert np.abs(got - slope).max() <= 1e-7 * np.abs(slope).max()
