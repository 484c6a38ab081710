"""What stands as a term, a slice, a view or a convolution is the kind that it is: solves,
determinants and diagonals of inverses take a part of the dense factor, over spellings that were
solved with as dense matrices before."""

import numpy as np
import pytest
from composites import CASES, Make

import pylinop as pl
from pylinop import _core

# Case: the most that a solve, a determinant and the diagonal of the inverse may take of the flops
# of LU of the dense form.
MOST = {
    "many blocks + Diag": 0.1,
    "mixed model": 0.2,
    "two updates": 0.1,
    "Toeplitz + LowRankUpdate": 0.4,
    "Sliced update": 0.1,
    "S^T D S + LowRank": 0.1,
    "Convolution": 0.1,
    "K^H K + c I": 0.1,
}
# A Toeplitz that is not Hermitian has its determinant by LU here, by price.
SOLVES = {"Toeplitz o Toeplitz": 0.3, "Toeplitz + Toeplitz^T": 0.8}


def flops(ask):
    _core._clear_store()
    with pl.explaining() as e:
        value = ask()
    steps = [s for p in e.plans for s in p.steps if s["took"] is not None]
    return value, sum(s["flops"] for s in steps)


def near(got, want):
    assert np.abs(got - want).max() <= 1e-9 * max(np.abs(want).max(), 1)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("case", [*MOST, *SOLVES])
def test_terms_are_the_kinds_that_they_are(case, dtype):
    a = CASES[case](Make(dtype))
    full, n = a.toarray(), a.shape[0]
    most = MOST.get(case, SOLVES.get(case)) * 2 / 3 * n**3
    b = np.random.default_rng(3).standard_normal(n).astype(full.dtype)
    x, work = flops(lambda: pl.solve(a, b))
    near(x, np.linalg.solve(full, b))
    assert work <= most
    d, work = flops(lambda: pl.diagonal(pl.inv(a)))
    near(d, np.linalg.inv(full).diagonal())
    assert work <= 2 * most
    det, work = flops(lambda: pl.slogdet(a))
    near(det[1], np.linalg.slogdet(full)[1])
    assert work <= most or case in SOLVES


@pytest.mark.parametrize("mode", ["full", "same", "valid", "circular"])
@pytest.mark.parametrize("k", [1, 2, 5, 6, 9])
@pytest.mark.parametrize("n", [1, 2, 6, 12, 40])
def test_bands_of_convolutions(n, k, mode, rng):
    """Kernels shorter and longer than the input, odd and even; K itself and K^H K + c I."""
    g = 0.2 * rng.standard_normal(k)
    g[(k - 1) // 2] += 4
    K = pl.Convolution(g, n, mode)
    X, eye = K.toarray(), np.eye(n)
    for A, Y in ((K.H @ K + 0.5 * pl.Identity(n), X.T @ X + 0.5 * eye), (K.T, X.T), (K, X)):
        if Y.shape[0] == Y.shape[1] and np.linalg.cond(Y) < 1e6:
            b = rng.standard_normal(len(Y))
            near(pl.solve(A, b), np.linalg.solve(Y, b))
            near(pl.diagonal(pl.inv(A)), np.linalg.inv(Y).diagonal())
            near(pl.slogdet(A)[1], np.linalg.slogdet(Y)[1])


@pytest.mark.parametrize("shape", [(5, 4), (2, 9), (3, 3)])
@pytest.mark.parametrize("kernel", [(3, 2), (1, 4), (5, 5)])
def test_bands_of_convolutions_of_two_dimensions(kernel, shape, rng):
    g = 0.1 * rng.standard_normal(kernel)
    g[(kernel[0] - 1) // 2, (kernel[1] - 1) // 2] += 4
    K = pl.Convolution(g, shape, "same")
    X, b = K.toarray(), rng.standard_normal(shape[0] * shape[1])
    near(pl.solve(K, b), np.linalg.solve(X, b))
    near(pl.diagonal(pl.inv(K)), np.linalg.inv(X).diagonal())


@pytest.mark.parametrize("index", [slice(3, None), slice(None, None, 2), slice(4, 5), [0, 4, 2]])
@pytest.mark.parametrize("dtype", ["float64", "complex128", "int64"])
def test_slices_of_updates(index, dtype, rng):
    """Rows and columns of B + U C V^H, one and both, by equal and other indices."""

    def a(*shape):
        x = rng.integers(-4, 5, (2, *shape))
        return (x[0] + 1j * x[1] if dtype == "complex128" else x[0]).astype(dtype)

    U, V, C, d = a(12, 2), a(12, 3), a(2, 3), a(12)
    A = pl.LowRankUpdate(pl.Diag(d), U, V, C)
    full = np.diag(d) + U @ C @ V.conj().T
    np.testing.assert_array_equal(A[index, :].toarray(), full[index, :])
    np.testing.assert_array_equal(A[:, index].toarray(), full[:, index])
    both = A[index, :][:, index]
    np.testing.assert_array_equal(both.toarray(), full[index, :][:, index])
    np.testing.assert_array_equal(pl.diagonal(both), full[index, :][:, index].diagonal())
    x = a(len(range(12)[index]) if isinstance(index, slice) else 3)
    np.testing.assert_array_equal(both @ x, full[index, :][:, index] @ x)
    np.testing.assert_array_equal(A[2:, :][:, :7].toarray(), full[2:, :7])


@pytest.mark.parametrize("n", [3, 40])
def test_the_inverse_of_a_multiple_of_the_identity_beside_a_term(n, rng):
    """A solve with inv(c I) + D crashed."""
    d, b, U = rng.random(n) + 1, rng.standard_normal(n), rng.standard_normal((n, 1))
    inverse = pl.inv(2.0 * pl.Identity(n))
    for term, full in (
        (pl.Diag(d), np.diag(d)),
        (3.0 * pl.Diag(d), 3 * np.diag(d)),
        (pl.inv(pl.Diag(d)), np.diag(1 / d)),
        (pl.LowRank(U), U @ U.T),
        (pl.Tridiagonal(np.ones(n - 1), d + 4, np.ones(n - 1)), None),
    ):
        full = term.toarray() if full is None else full
        A, whole = inverse + term, 0.5 * np.eye(n) + full
        near(pl.solve(A, b), np.linalg.solve(whole, b))
        near(pl.solve(A, inverse @ b), np.linalg.solve(whole, 0.5 * b))
        near(pl.solve(A, term @ b), np.linalg.solve(whole, full @ b))
        near(pl.slogdet(A)[1], np.linalg.slogdet(whole)[1])
        near(pl.diagonal(pl.inv(A)), np.linalg.inv(whole).diagonal())
