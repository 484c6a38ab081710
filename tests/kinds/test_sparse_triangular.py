"""SparseTriangular: products, solves, determinants, dense forms, against NumPy."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl

FLOATS = "float32 float64 complex64 complex128".split()


def sparse(rng, n, dtype, form, density=0.3):
    a = np.where(rng.random((n, n)) < density, rng.standard_normal((n, n)), 0)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * np.where(a != 0, rng.standard_normal((n, n)), 0)
    a[np.arange(n), np.arange(n)] = 3 + rng.random(n)
    a = a.astype(dtype)
    S = sp.csr_array(a).asformat(form)
    for line in range(n):  # solves may not count on an order within a line
        at = slice(S.indptr[line], S.indptr[line + 1])
        p = rng.permutation(at.stop - at.start)
        S.indices[at], S.data[at] = S.indices[at][p], S.data[at][p]
    S.has_sorted_indices = False
    return a, S


def triangle(a, lower, unit):
    t = (np.tril if lower else np.triu)(a)
    return t - np.diag(np.diag(t)) + np.eye(len(a), dtype=a.dtype) if unit else t


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_products_and_solves(dtype, form, lower, unit):
    rng = np.random.default_rng(5)
    tol = 200 * np.finfo(dtype).eps
    for n in (0, 1, 17):
        a, S = sparse(rng, n, dtype, form, 0.3 if unit else 0.4)
        if unit:
            a /= 8
            S.data /= 8
        t = triangle(a, lower, unit)
        T = pl.SparseTriangular(S, lower, unit)
        assert T.dtype == dtype and T.shape == (n, n)
        for op, want in ((T, t), (T.T, t.T), (T.H, t.conj().T), (T.conj(), t.conj())):
            for shape in ((n,), (n, 3), (2, n, 1)):
                x = rng.standard_normal(shape).astype(dtype)
                for y in (x, np.asfortranarray(x), np.repeat(x, 2, -1)[..., ::2]):
                    np.testing.assert_allclose(op @ y, want @ y, rtol=tol, atol=tol * 10)
                    got = pl.inv(op) @ y
                    exact = np.linalg.solve(want, y)
                    assert got.dtype == dtype
                    np.testing.assert_allclose(got, exact, rtol=tol, atol=tol * 10)
        np.testing.assert_array_equal(T.toarray(), t)
        for k in (-3, -1, 0, 1, 5):
            np.testing.assert_array_equal(T.diagonal(k), np.diagonal(t, k) if abs(k) <= n else [])
        np.testing.assert_allclose(pl.det(T), np.linalg.det(t), rtol=tol * 10)
        np.testing.assert_array_equal(T.tosparse().toarray(), t)


def test_integers_are_exact_and_solved_in_float64():
    S = sp.csr_array(np.array([[2, 9], [3, 4]], np.int8))
    T = pl.SparseTriangular(S)
    y = T @ np.array([1, 2], np.int8)
    assert y.dtype == np.int8 and y.tolist() == [2, 11]
    x = pl.inv(T) @ np.array([2, 11])
    assert x.dtype == np.float64 and x.tolist() == [1.0, 2.0]


def test_duplicates_add():
    S = sp.csr_array((np.array([1.0, 2.0, 1.0, 3.0]), np.array([0, 0, 0, 1]), np.array([0, 2, 4])))
    T = pl.SparseTriangular(S)
    np.testing.assert_array_equal(T.toarray(), [[3, 0], [1, 3]])
    np.testing.assert_allclose(pl.inv(T) @ np.array([3.0, 7.0]), [1, 2])


def test_a_zero_or_missing_pivot_is_singular():
    for a in (np.array([[1.0, 0], [5, 0]]), np.diag([1.0, 0.0])):
        T = pl.SparseTriangular(sp.csr_array(a))
        for op in (T, T.H):
            with pytest.raises(pl.LinAlgError, match="element 1 of the diagonal is exactly zero"):
                pl.inv(op) @ np.ones(2)
        assert pl.SparseTriangular(sp.csr_array(a), unit_diagonal=True).toarray()[1, 1] == 1


def test_writes_are_followed_and_indices_checked():
    S = sp.csr_array(np.array([[2.0, 0], [1, 4]]))
    T = pl.SparseTriangular(S)
    inverse = pl.inv(T)
    assert (inverse @ np.array([2.0, 9])).tolist() == [1, 2]
    S.data *= 2
    assert (inverse @ np.array([4.0, 18])).tolist() == [1, 2]
    S.indices[1] = 7
    for f in (lambda: T @ np.ones(2), lambda: inverse @ np.ones(2), T.toarray, T.diagonal):
        with pytest.raises(IndexError, match="out of bounds for the 2 x 2 matrix"):
            f()


def test_copies():
    rng = np.random.default_rng(1)
    _, S = sparse(rng, 6, "float64", "csc")
    T = pl.SparseTriangular(S, lower=False)
    for U in (pickle.loads(pickle.dumps(T)), copy.deepcopy(T), pl.SparseTriangular(S, False)):
        assert type(U) is pl.SparseTriangular
        np.testing.assert_array_equal(U.toarray(), T.toarray())
    C = pl.SparseTriangular(S, copy=True)
    want = C.toarray()
    S.data[:] = 0
    np.testing.assert_array_equal(C.toarray(), want)


def test_what_it_does_not_take():
    S = sp.csr_array(np.eye(3))
    for bad in (np.eye(3), S.tocoo(), pl.Sparse(S).T, pl.Diag(np.ones(3))):
        with pytest.raises(ValueError, match="takes a Sparse in CSR or CSC"):
            pl.SparseTriangular(bad)
    with pytest.raises(ValueError, match="a triangular matrix is square"):
        pl.SparseTriangular(S[:2])
