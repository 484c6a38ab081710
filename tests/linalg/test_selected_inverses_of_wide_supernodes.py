"""Entries of inverses whose factors end in dense blocks: many columns of one pattern at once, and
copies that are taken over from the next supernode up the tree."""

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl

N = 470


def matrix(rng, kind, dtype):
    """A chain or a random tree of small blocks in front of a dense one."""
    a = sp.lil_array((N, N))
    dense = {"narrow": 9, "one panel": 60, "several": 105}[kind]
    first = N - dense
    a[first:, first:] = rng.standard_normal((dense, dense))
    for i in range(first):
        for j in rng.integers(i + 1, N, 2):
            a[i, j], a[j, i] = rng.standard_normal(2)
    a = sp.csr_array(a)
    if np.dtype(dtype).kind == "c":
        a = a + sp.csr_array((1j * rng.standard_normal(a.nnz), a.indices, a.indptr), shape=a.shape)
    rows = np.asarray(abs(a).sum(axis=1)).ravel()
    return sp.csr_array(a + sp.diags_array(rows + 1)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("kind", ["narrow", "one panel", "several"])
def test_against_dense(rng, kind, dtype):
    a = matrix(rng, kind, dtype)
    A = pl.Sparse(a)
    want = np.linalg.inv(a.toarray().astype(np.complex128))
    tol = 1e-4 if np.dtype(dtype).itemsize <= 8 and dtype is not np.float64 else 1e-11
    inverse = pl.inv(A)
    assert "diagonal-inverse-sparse" in inverse.explain("diagonal").fired
    scale = np.abs(want).max()
    assert np.abs(pl.diagonal(inverse) - want.diagonal()).max() <= tol * scale
    S = pl.Sparse(sp.csr_array(a.T))
    terms = want * a.toarray()
    assert abs(pl.trace(inverse @ S) - terms.sum()) <= tol * np.abs(terms).sum()


def test_gradient_by_the_entries(rng):
    """Every entry of the inverse where the matrix has one, above and below the diagonal."""
    a = matrix(rng, "several", np.float64)
    A = pl.Sparse(a)
    g = pl.grad(lambda op: pl.slogdet(op)[1])(A)
    want = np.linalg.inv(a.toarray()).T
    row, col = a.nonzero()
    assert np.abs(g.toarray()[row, col] - want[row, col]).max() <= 1e-11 * np.abs(want).max()
