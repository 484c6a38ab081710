"""Kinds over arrays whose dtype the core does not know: they say which it is, and keep it."""

import numpy as np
import pytest
import scipy.sparse.linalg as sla

import pylinop as pl

OUTSIDE = [np.longdouble, np.clongdouble, np.float16]


def kinds(dtype):
    M = (np.eye(3) + np.arange(9).reshape(3, 3) / 8).astype(dtype)
    v = M[0]
    yield from (pl.Dense(M), pl.Dense(M[None]), pl.Diag(v), pl.Diag(v, k=1), pl.Toeplitz(v))
    yield from (pl.Toeplitz(v, v), pl.Circulant(v), pl.Hankel(v), pl.Triangular(M), pl.Dense(M)[1:])
    yield from (pl.Identity(3, dtype), pl.Zeros((3, 2), dtype), pl.Full((3, 2), dtype(2)))
    yield from (pl.Permutation([2, 0, 1], dtype), pl.Selection([2, 0], 3, dtype))
    yield from (pl.Banded((1, 1), M), pl.Tridiagonal(v[:2], v, v[:2]), pl.Householder(v))
    yield from (pl.Laplacian((3,), dtype=dtype), pl.FiniteDifference(3, dtype=dtype))
    yield from (pl.LowRank(M), pl.Kron(M, M), pl.BlockDiag(M, np.eye(2)), pl.Dense(M).real)


@pytest.mark.parametrize("dtype", OUTSIDE)
def test_dtype_is_the_dense_forms(dtype):
    for A in kinds(dtype):
        for B in (A, A.T, 2 * A):
            assert B.dtype is not None and B.dtype == B.toarray().dtype, B
        assert (A @ np.ones(A.shape[-1], dtype)).dtype == A.dtype, A


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("dtype", OUTSIDE)
def test_dense_forms_keep_nan_where_it_is(dtype, value, rng):
    """Sums, multiples and views are no products with the identity, in which 0 times NaN is NaN."""
    x, y = rng.integers(-3, 4, (2, 4, 4)).astype(float)
    x[0, 1] = value if dtype != np.clongdouble else np.nan  # -1 inf is NaN of complex numbers
    e, d = np.eye(4, dtype=dtype), np.arange(1, 5).astype(dtype)
    cases = [
        (pl.lazy(x) + e, x + e),
        (e - pl.lazy(x), e - x),
        (pl.lazy(x) + y.astype(dtype), x + y.astype(dtype)),
        (pl.Dense(x) + pl.Diag(d), x + np.diag(d)),
        (pl.Dense(x.astype(dtype)).T, x.astype(dtype).T),
        (2 * pl.Dense(x) + pl.Diag(d), 2 * x + np.diag(d)),
        ((pl.Dense(x) - pl.Toeplitz(d)).H, (x - pl.Toeplitz(d.real.astype(float)).toarray()).T),
        (pl.Dense(np.stack([x, y])) + pl.Dense(e), np.stack([x, y]) + e),
    ]
    for A, want in cases:
        np.testing.assert_array_equal(A.toarray(), want)
    A = pl.Dense(y.astype(dtype)) + pl.MatVec((4, 4), lambda v: y @ v, dtype=float)
    np.testing.assert_array_equal(A.toarray(), 2 * y)


@pytest.mark.parametrize("c", [np.float16(3), np.longdouble(-0.1), np.clongdouble(2 - 1j)])
def test_dense_forms_of_multiples_by_numbers_outside(c, rng):
    """Such a multiple is a product with a diagonal matrix."""
    x = rng.standard_normal((3, 5)).astype("f4")
    x[0, 1] = np.nan
    A = pl.Dense(x)
    for found, want in (
        (c * A, c * x),
        (A / c, x / c),
        ((c * A).T, (c * x).T),
        (c * A.conj(), c * x),
        ((A * c).H, np.conj(c * x).T),
    ):
        assert found.toarray().dtype == want.dtype
        np.testing.assert_allclose(found.toarray(), want, rtol=4 * np.finfo(want.dtype).eps)


def test_dense_forms_of_long_chains():
    A = pl.Dense(np.ones((2, 2), np.longdouble))
    for _ in range(5000):
        A = A + pl.Diag(np.ones(2, np.longdouble))
    np.testing.assert_array_equal(A.toarray(), [[5001, 1], [1, 5001]])


@pytest.mark.parametrize(
    "kind", [pl.Dense, lambda a: pl.Diag(np.diagonal(a))], ids=["Dense", "Diag"]
)
def test_expm_multiply_keeps_the_imaginary_part(kind, rng):
    """SciPy's takes an operator without a dtype for a real one."""
    a = np.diag(rng.standard_normal(5) + 1j * rng.standard_normal(5))
    x = rng.standard_normal(5)
    found = sla.expm_multiply(kind(a.astype(np.clongdouble)), x, traceA=np.trace(a))
    np.testing.assert_allclose(found.astype(complex), np.exp(np.diagonal(a)) * x, rtol=1e-13)


def test_callables_may_still_have_none():
    class Some(pl.LinearOperator):
        def __init__(self):
            self.shape, self.dtype = (3, 3), None

        def _matvec(self, x):
            return 1j * x

    assert Some().dtype is None


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble])
def test_complex_multiples_of_kinds_beside_other_dtypes(dtype):
    """A multiple that closes to its kind still makes the whole complex."""
    a, b = pl.Diag(np.ones(3, dtype)), pl.Tridiagonal(np.ones(2), np.ones(3), np.ones(2))
    for A in (a + 1j * b, a - b / 1j, a @ (1j * b), (1j * b).T + a):
        assert A.dtype == A.toarray().dtype
        np.testing.assert_array_equal(np.asarray(pl.lazy(A).imag), A.toarray().imag)
