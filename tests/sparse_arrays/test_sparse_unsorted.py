"""Sparse matrices whose rows are not sorted, or have places twice, as SciPy's own products give
them: the same answers as of the sorted ones on every road, and nobody's arrays are sorted."""

import numpy as np
import pytest
import scipy.sparse as sp
import test_sparse_overwritten as roads

import pylinop as pl


def shuffled(S, twice, rng):
    """The same matrix, each row in any order; ``twice``: some entries in three parts."""
    C = sp.coo_array(S)
    row, col, data = C.coords[0], C.coords[1], C.data
    if twice and C.nnz:
        more = rng.integers(0, C.nnz, C.nnz // 3 + 1)
        part = rng.integers(-3, 4, more.size).astype(data.dtype)
        row, col = (np.concatenate([v, v[more], v[more]]) for v in (row, col))
        data = np.concatenate([data, part, -part])
    order = rng.permutation(row.size)
    order = order[np.argsort(row[order], kind="stable")]
    ptr = np.searchsorted(row[order], np.arange(S.shape[0] + 1))
    return sp.csr_array((data[order], col[order], ptr), shape=S.shape)


def _parts(S):
    return [np.array(a) for a in ([S.data, *S.coords] if S.format == "coo" else _compressed(S))]


def _compressed(S):
    return S.data, S.indices, S.indptr


@pytest.mark.parametrize("twice", [False, True], ids=["unsorted", "twice"])
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_every_road(form, twice, rng):
    sure = roads.matrix()
    S = shuffled(sure, twice, rng)
    if form == "csc":  # of the transpose, which is the same matrix
        S = sp.csc_array((S.data, S.indices, S.indptr), shape=S.shape)
    elif form == "coo":
        S = S.tocoo()
    before = _parts(S)
    ways = [(name, run, pl.Sparse) for name, run in roads.roads().items()]
    ways += [(name, run, lambda S: S) for name, run in roads.raw_roads().items()]
    for name, run, given in ways:
        if form == "coo" and name.startswith("triangle"):
            continue  # those are of CSR and CSC
        found, want = (roads._number(run(given(M))) for M in (S, sure))
        np.testing.assert_allclose(found, want, atol=1e-6, err_msg=name)
        for a, b in zip(_parts(S), before, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=name)


@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.complex128])
@pytest.mark.parametrize("twice", [False, True], ids=["unsorted", "twice"])
@pytest.mark.parametrize("m, n", [(3, 5), (40, 5), (60, 3), (200, 20), (9, 70)])
def test_grams(m, n, twice, dtype, rng):
    """X^T X and X^H X, where one triangle is computed (8 n^2 products and more) and where not."""
    for density in (0.05, 0.4, 1.0):
        X = np.round(4 * rng.standard_normal((m, n))) * (rng.random((m, n)) < density)
        X = (X * (1 + 2j) if dtype is np.complex128 else X).astype(dtype)
        C = shuffled(sp.csr_array(X), twice, rng)
        for left, want in ((C.T, X.T @ X), (C.conj().T, X.conj().T @ X)):
            for L in (left.tocsr(), left.tocsc()):
                for right in (C, C.tocsc(), C.tocoo()):
                    G = pl.sparse_matmul(L, right)
                    np.testing.assert_array_equal(G.toarray(), want)
                    assert G.has_sorted_indices
                G = pl.sparse_matmul(L, C, topk=n)
                np.testing.assert_array_equal(G.toarray(), want)
        A = pl.Sparse(C)
        np.testing.assert_array_equal((A.H @ A).tosparse().toarray(), X.conj().T @ X)
        np.testing.assert_array_equal((A.T @ A).tosparse().toarray(), X.T @ X)


def test_a_read_only_mask(rng):
    C = shuffled(roads.matrix(), True, rng)
    for a in _compressed(C):
        a.flags.writeable = False
    found = pl.sparse_matmul(C, C, mask=C).toarray()
    want = C.toarray() @ C.toarray() * (C.toarray() != 0)
    np.testing.assert_allclose(found, want, atol=1e-9)
