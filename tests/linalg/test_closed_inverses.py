"""Diagonals of inverses of what is closed under inverses, of multiples and views of it: right, and
without an n x n array."""

import numpy as np
import pytest
import scipy.sparse

import pylinop as pl


def closed(n, seed=4):
    """Kinds whose inverse is one by how it is written, and triangles of sparse matrices."""
    rng = np.random.default_rng(seed)
    low = np.tril(rng.standard_normal((n, n)) / n) + 3 * np.eye(n)
    return {
        "Permutation": pl.Permutation(rng.permutation(n)),
        "Householder": pl.Householder(rng.standard_normal(n)),
        "DCT": pl.DCT(n),
        "DFT": pl.DFT(n),
        "SparseTriangular": pl.SparseTriangular(scipy.sparse.csr_array(low)),
        "SparseTriangular, upper": pl.SparseTriangular(scipy.sparse.csc_array(low.T), lower=False),
    }


VIEWS = {
    "twice": lambda x: 2 * x,
    "negative": lambda x: -x,
    "complex multiple": lambda x: 0.5j * x,
    "transposed": lambda x: x.T,
    "adjoint of a multiple": lambda x: (3 * x).conj().T,
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 100])
@pytest.mark.parametrize("name", closed(1))
def test_multiples_and_views(name, n, view):
    A, view = closed(n)[name], VIEWS[view]
    expected = np.linalg.inv(view(A.toarray()))
    most = 1e-12 * np.abs(expected).sum(1).max()
    with pl.config(check_plans=True, verify=n < 20):
        for k in (0, 1, -2)[: 1 if n < 3 else 3]:
            got = pl.diagonal(pl.inv(view(A)), k)
            assert np.abs(got - np.diagonal(expected, k)).max() <= most, k
        assert abs(pl.trace(pl.inv(view(A))) - expected.trace()) <= n * most


@pytest.mark.parametrize("name", closed(1))
def test_no_square_array(name):
    n = 1200
    A = closed(n)[name]
    for op in (2 * A, -A, A):
        with pl.explaining() as e:
            pl.diagonal(pl.inv(op))
        assert e.explanation.memory < 8 * n * n / 4


def test_a_product_of_a_permutation_and_a_dense_matrix():
    rng = np.random.default_rng(5)
    A = pl.Permutation(rng.permutation(40)) @ pl.Dense(
        rng.standard_normal((40, 40)) + 9 * np.eye(40)
    )
    expected = np.diagonal(np.linalg.inv(A.toarray()))
    np.testing.assert_allclose(pl.diagonal(pl.inv(A)), expected, rtol=1e-10, atol=1e-13)


def test_a_sparse_triangle_with_a_zero_on_its_diagonal_is_singular():
    A = pl.SparseTriangular(scipy.sparse.csr_array([[1.0, 0.0], [2.0, 0.0]]))
    with pytest.raises(np.linalg.LinAlgError, match="element 1"):
        pl.diagonal(pl.inv(A))
