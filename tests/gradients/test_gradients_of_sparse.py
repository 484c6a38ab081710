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


def laplacian(k, rng):
    """Of a k x k grid, with random weights on its edges, positive definite."""
    i = np.arange(k * k).reshape(k, k)
    a = np.concatenate([i[:, :-1].ravel(), i[:-1].ravel()])
    b = np.concatenate([i[:, 1:].ravel(), i[1:].ravel()])
    w = rng.uniform(0.5, 1.5, len(a))
    W = sp.coo_array((np.r_[-w, -w], (np.r_[a, b], np.r_[b, a])), (k * k, k * k))
    degrees = np.bincount(np.r_[a, b], np.r_[w, w], k * k)
    return (W + sp.diags_array(degrees + 0.3)).tocsr()


@pytest.mark.no_verify  # whose own plans would be counted
@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_of_a_determinant_by_selected_inversion(format):
    rng = np.random.default_rng(8)
    A = laplacian(23, rng).asformat(format)
    with pl.explaining() as record:
        value, g = pl.value_and_grad(lambda x: pl.logdet(pl.Sparse(A, x)))(A.data)
    names = {s["name"] for plan in record.plans for s in plan.steps if not s["conditional"]}
    assert "selected-inverse" in names and not names & {"todense", "entry-sums", "getrf", "potrf"}
    inverse = np.linalg.inv(A.toarray())
    rows, cols = A.tocoo().row, A.tocoo().col
    np.testing.assert_allclose(value, np.linalg.slogdet(A.toarray())[1], rtol=1e-12)
    np.testing.assert_allclose(g, inverse.T[rows, cols], rtol=1e-9)


@pytest.mark.parametrize("n", [1, 5, 255, 256, 257, 399, 400, 401, 625])
@pytest.mark.parametrize("symmetric", [False, True])
def test_of_a_likelihood_at_sizes_of_every_road(n, symmetric):
    rng = np.random.default_rng(n)
    A = (sp.random_array((n, n), density=min(1, 3 / n), rng=rng) + 4 * sp.eye_array(n)).tocsr()
    A = ((A + A.T) / 2).tocsr() if symmetric else A
    b = rng.standard_normal(n)

    def f(x):
        S = pl.Sparse(A, x)
        return b @ pl.solve(S, b) + 2 * pl.logdet(S)

    g = pl.grad(f)(A.data)
    inverse = np.linalg.inv(A.toarray())
    wanted = 2 * inverse.T - np.outer(inverse.T @ b, inverse @ b)
    rows, cols = A.tocoo().row, A.tocoo().col
    np.testing.assert_allclose(g, wanted[rows, cols], rtol=1e-8, atol=1e-10)


def test_of_determinants_scaled_and_shifted():
    """The derivative of the shift is the trace of the inverse, of the scale an inner product."""
    rng = np.random.default_rng(9)
    A, c = laplacian(21, rng), 0.7

    def f(x, c):
        return pl.logdet(c * pl.Sparse(A, x) + c * c * pl.Identity(441))

    g, slope = pl.grad(f, (0, 1))(A.data, c)
    inverse = np.linalg.inv(c * A.toarray() + c * c * np.eye(441))
    rows, cols = A.tocoo().row, A.tocoo().col
    np.testing.assert_allclose(g, c * inverse.T[rows, cols], rtol=1e-9)
    np.testing.assert_allclose(slope, np.sum(inverse.T * (A.toarray() + 2 * c * np.eye(441))))


def test_duplicates_in_a_coo():
    """Places that are named twice each have their derivative."""
    rng = np.random.default_rng(10)
    A = laplacian(20, rng).tocoo()
    twice = sp.coo_array(
        (np.r_[A.data / 2, A.data / 2], (np.r_[A.row, A.row], np.r_[A.col, A.col])), A.shape
    )
    g = pl.grad(lambda x: pl.logdet(pl.Sparse(twice, x)))(twice.data)
    inverse = np.linalg.inv(A.toarray())
    np.testing.assert_allclose(g, inverse.T[twice.row, twice.col], rtol=1e-9)


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
@pytest.mark.parametrize("name", ["slogdet", "solve", "diagonals", "triangle"])
def test_second_derivatives_within_a_stack(format, name):
    rng, n = np.random.default_rng(7), 5
    matrix = "csr" if name == "triangle" and format == "coo" else format  # which takes no COO
    rows, cols = np.r_[np.arange(n), 0, 3, 4, 1, 0], np.r_[np.arange(n), 2, 1, 0, 1, 0]
    A = sp.coo_array((np.r_[np.full(n, 4.0), np.full(5, 0.7)], (rows, cols)), (n, n))
    A = A.asformat(matrix)  # (0, 0) twice in COO
    stack, b = 0.3 * rng.standard_normal((3, n, n)), rng.standard_normal((3, n, 2))
    x, along = np.array(A.data), (rng.standard_normal(A.nnz), rng.standard_normal(stack.shape))

    def f(x, stack):
        S = pl.Sparse(A, x)
        if name == "slogdet":
            return np.sum(pl.slogdet(S + pl.Dense(stack))[1])
        if name == "triangle":
            return np.sum(pl.solve(pl.SparseTriangular(S) + pl.Dense(stack), b) ** 2)
        return np.sum(
            pl.solve(S + (pl.Diag(stack[:, 0]) if name == "diagonals" else stack), b) ** 2
        )

    found = pl.hvp(f, (0, 1))(x, stack, along)
    grad = pl.grad(f, (0, 1))
    near = [grad(x + h * along[0], stack + h * along[1]) for h in (1e-4, -1e-4)]
    for k, h in enumerate(found):
        wanted = (near[0][k] - near[1][k]) / 2e-4
        assert np.abs(h - wanted).max() < 1e-6 * (1 + np.abs(wanted).max())
