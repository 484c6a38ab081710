"""Gradients by the entries of a sparse matrix: only at its pattern, without its dense form."""

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl

RNG = np.random.default_rng(31)


def matrix(n, format="csr"):
    A = sp.random_array((n, n), density=3 / n, rng=RNG) + 4 * sp.eye_array(n)
    return A.asformat(format)


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_an_operator_gives_one_of_its_pattern(format, index):
    A, b, w = matrix(9, format), RNG.standard_normal(9), RNG.standard_normal(9)
    if format != "coo":
        A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
    g = pl.grad(lambda S: w @ pl.solve(S, b))(pl.Sparse(A))
    assert type(g) is pl.Sparse
    x, z = np.linalg.solve(A.toarray(), b), np.linalg.solve(A.toarray().T, w)
    assert np.allclose(g.toarray(), -np.outer(z, x) * (A.toarray() != 0), atol=1e-12)
    assert g.tosparse(format).nnz == A.nnz


def test_numbers_in_place_of_a_matrix_s_own():
    A = matrix(8)
    x = RNG.standard_normal(A.nnz)
    S = pl.Sparse(A, x)
    wanted = A.copy()
    wanted.data = x
    assert np.array_equal(S.toarray(), wanted.toarray())
    assert np.array_equal(S.tosparse().toarray(), wanted.toarray())
    x[:] = 2.0  # seen: the array is borrowed
    assert set(np.unique(S.toarray())) == {0.0, 2.0}
    kept = pl.Sparse(A, x, copy=True)
    x[:] = 3.0
    assert set(np.unique(kept.toarray())) == {0.0, 2.0}
    assert np.array_equal(pl.Sparse(A, list(x)).toarray(), S.toarray())
    assert np.array_equal(S.astype(np.float32).toarray(), S.toarray())


def test_numbers_that_do_not_fit():
    A = matrix(8)
    with pytest.raises(ValueError, match=r"\(3,\) numbers for \(\d+,\) entries"):
        pl.Sparse(A, np.ones(3))
    with pytest.raises(ValueError, match="tocsr"):
        pl.Sparse(A.todia(), np.ones(3))


@pytest.mark.no_verify  # whose own plans would be counted
@pytest.mark.parametrize("make", ["product", "trace", "triangle"])
def test_no_dense_form(make):
    n = 3000
    A = matrix(n)
    X, W = RNG.standard_normal((n, 2)), RNG.standard_normal((n, 2))

    def f(x):
        S = pl.Sparse(A, x)
        if make == "product":
            return np.sum((S @ X) * W)
        if make == "trace":
            return pl.trace(S)
        return np.sum(pl.solve(pl.SparseTriangular(S), X) * W)

    with pl.explaining() as record:
        g = pl.grad(f)(A.data)
    names = {s["name"] for plan in record.plans for s in plan.steps if not s["conditional"]}
    assert "entry-sums" not in names
    assert "entry-sums-pair" in names or "entry-sums-band" in names
    rows, cols = A.tocoo().row, A.tocoo().col
    if make == "product":
        assert np.allclose(g, np.sum(W[rows] * X[cols], axis=1))
    elif make == "trace":
        assert np.array_equal(g, rows == cols)
    else:
        assert not g[cols > rows].any() and g[cols < rows].any()
