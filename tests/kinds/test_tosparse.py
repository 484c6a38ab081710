"""`tosparse` of everything that is sparse by structure, without a dense form on the way."""

import numpy as np
import pytest
import scipy.sparse as sp
from samples import values

import pylinop as pl

FLOATS = "float32 float64 complex64 complex128".split()
DTYPES = [*FLOATS, "int8", "uint8", "bool"]


def expressions(rng, dtype):
    a, b = values(rng, (3, 4), dtype), values(rng, (4, 3), dtype)
    S = sp.csr_array(values(rng, (6, 6), dtype) * (rng.random((6, 6)) < 0.4).astype(dtype))
    s, d = pl.Sparse(S), pl.Diag(values(rng, 6, dtype))
    yield "view", s.T, S.toarray().T
    yield "adjoint", s.H @ s, S.toarray().conj().T @ S.toarray()
    yield "sum", s + s.T, S.toarray() + S.toarray().T
    yield "power", s**3, S.toarray() @ S.toarray() @ S.toarray()
    yield "no power", s**0, np.eye(6, dtype=dtype)
    yield "scaled", d @ (3 * s), None
    yield "sliced", s[1:5:2, ::-1], S.toarray()[1:5:2, ::-1]
    yield "taken", s[[5, 0, 0]], S.toarray()[[5, 0, 0]]
    yield "kron of a product", pl.Kron(a, a) @ pl.Kron(b, b), None
    yield "kron transposed", pl.Kron(a, s).H, None
    yield "blocks", pl.BlockDiag(a, s, np.zeros((0, 2), dtype)), None
    yield "block", pl.Block([[a, a], [a, np.zeros((3, 4), dtype)]]), None
    yield "kron sum", pl.KronSum(a @ b, s, d), None
    yield "congruence", pl.Congruence(a, pl.Diag(values(rng, 4, dtype))), None
    yield "root", pl.Root(a), None
    yield "real part", s.real, S.toarray().real
    yield "imaginary part", s.imag, S.toarray().imag


@pytest.mark.parametrize("dtype", DTYPES)
def test_expressions(dtype, rng):
    with np.errstate(all="ignore"):
        for name, A, a in expressions(rng, dtype):
            S, dense = A.tosparse(), A.toarray()
            assert S.format == "csr" and S.shape == A.shape and S.dtype == A.dtype, name
            exact = np.dtype(A.dtype).kind in "iub"
            tol = 0 if exact else 50 * np.finfo(A.dtype).eps * max(1, np.abs(dense).max())
            np.testing.assert_allclose(S.toarray(), dense, rtol=0, atol=tol, err_msg=name)
            if a is not None:
                np.testing.assert_allclose(S.toarray(), a, rtol=0, atol=tol, err_msg=name)


def test_is_computed_in_the_dtype_of_the_whole():
    s = pl.Sparse(sp.csr_array(np.array([[100, 0], [0, 2]], np.int8)))
    A = s @ s + pl.Diag([0.5, 0.5])
    np.testing.assert_array_equal(A.tosparse().toarray(), [[10000.5, 0], [0, 4.5]])
    np.testing.assert_array_equal((s @ s).tosparse().toarray(), np.diag(np.int8([16, 4])))


@pytest.mark.parametrize("boundary", ["valid", "zero", "periodic"])
@pytest.mark.parametrize("order", [0, 1, 2, 5])
@pytest.mark.parametrize("kind", ["forward", "backward", "central"])
def test_differences(kind, order, boundary):
    for n in (6, 7, 12):
        D = pl.FiniteDifference(n, order, kind, boundary)
        for A in (D, D.T, 2.0 * D.H @ D):
            np.testing.assert_array_equal(A.tosparse().toarray(), A.toarray())


@pytest.mark.parametrize("boundary", ["dirichlet", "neumann", "periodic"])
@pytest.mark.parametrize("grid", [(1,), (2,), 5, (2, 3), (1, 4), (3, 2, 4)])
def test_laplacians(grid, boundary):
    L = pl.Laplacian(grid, boundary)
    for A in (L, L.T, L.astype(float), 0.5 * L):
        np.testing.assert_array_equal(A.tosparse().toarray(), A.toarray())
        assert A.tosparse().dtype == A.dtype


def test_sizes_0_and_1():
    for A in (
        pl.Sparse(sp.csr_array((0, 3))).T,
        pl.Kron(np.ones((1, 0)), np.ones((2, 2))),
        pl.BlockDiag(np.ones((0, 1)), np.ones((1, 0))),
        pl.Block([[np.ones((0, 1)), np.ones((0, 2))], [np.ones((1, 1)), np.ones((1, 2))]]),
        pl.FiniteDifference(1),
        pl.FiniteDifference(2),
        pl.Diag([1.0], k=2),
        pl.Kron(np.ones((1, 1)), [[2.0]]),
    ):
        S = A.tosparse("coo")
        assert S.format == "coo" and S.shape == A.shape
        np.testing.assert_array_equal(S.toarray(), A.toarray())


def test_no_dense_form_on_the_way():
    """All of these would need gigabytes."""
    n = 100_000
    s = pl.Sparse(sp.eye_array(n, k=1, format="csr"))
    shift = pl.Kron(pl.Diag(np.ones(n - 1), k=1), np.eye(2))
    with pl.config(memory_limit=10**8):
        for A, nnz in (
            (s.T @ s, n - 1),
            (shift.T @ shift, 2 * (n - 1)),
            (pl.BlockDiag(s, s.T), 2 * (n - 1)),
            (pl.Block([[s, s], [pl.Zeros((n, n)), s.T]]), 3 * (n - 1)),
            (s[: n // 2], n // 2),
            ((s + pl.Identity(n)) ** 2, None),
            (pl.Laplacian((n // 10, 10)), None),
            (pl.FiniteDifference(n).H @ pl.FiniteDifference(n), None),
        ):
            S = A.tosparse()
            x = np.arange(A.shape[1]) % 7.0
            np.testing.assert_array_equal(S @ x, A @ x)
            assert nnz is None or S.nnz == nnz
        with pytest.raises(pl.MaterializationError):
            pl.Toeplitz(np.ones(n)).tosparse()


def test_depth_is_no_limit():
    s = A = pl.Sparse(sp.csr_array([[1.0, 0.0], [0.0, 2.0]]))
    for _ in range(3000):
        A = A + s
    np.testing.assert_array_equal(A.tosparse().toarray(), np.diag([3001.0, 6002.0]))


def test_batches_are_refused():
    with pytest.raises(ValueError, match="no batches"):
        pl.Diag(np.ones((2, 3))).tosparse()


def test_memory_is_shared_by_nothing_but_a_sparse_itself():
    M = sp.csr_array(np.triu(np.arange(1.0, 10).reshape(3, 3)))
    s = pl.Sparse(M)
    assert np.shares_memory(s.tosparse().data, M.data)
    for A in (s.T, s.conj(), s.T.T.T, s[:], s[0:3], 1 * s, s**1, pl.Kron(s), pl.KronSum(s)):
        for format in ("csr", "csc", "coo"):
            S = A.tosparse(format)
            assert A is s or not np.shares_memory(S.data, M.data), (A, format)
