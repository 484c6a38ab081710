"""A Hermitian matrix that only its factor needs is computed where the factor will lie."""

import numpy as np
import pytest

import pylinop as pl

N = 70  # above the size of factors made many at once


def numbers(shape, dtype, seed=0):
    x = np.random.default_rng(seed).standard_normal((2, *shape))
    return (x[0] + 1j * x[1] if dtype in "FD" else x[0]).astype(dtype)


def close(got, want, dtype):
    tol = 2e-3 if dtype in "fF" else 1e-9
    assert np.abs(got - want).max() <= tol * np.abs(want).max()


@pytest.mark.parametrize("dtype", list("fdFD"))
@pytest.mark.parametrize("shift", [1.0, -30.0])  # definite; indefinite: Cholesky fails, LU follows
def test_solve_of_a_hermitian_temporary(dtype, shift):
    a, b = numbers((N, N), dtype), numbers((N, 3), dtype, 1)
    A = pl.Dense(a)
    S = A @ A.H + shift * pl.Identity(N)
    dense = a.astype("D") @ a.conj().T + shift * np.eye(N)
    first = pl.solve(S, b)
    close(first, np.linalg.solve(dense, b), dtype)
    assert np.array_equal(pl.solve(S, b), first)  # by the kept factor, the same bits
    close(pl.slogdet(S)[1], np.linalg.slogdet(dense)[1], dtype)
    a[3, 5] += 1  # a new matrix: a new factor
    dense = a.astype("D") @ a.conj().T + shift * np.eye(N)
    close(pl.solve(S, b), np.linalg.solve(dense, b), dtype)


@pytest.mark.parametrize("dtype", list("fdFD"))
def test_kernel_sizes_and_a_matrix_that_is_needed_twice(dtype):
    a, b = numbers((N, N), dtype), numbers((N, 2), dtype, 1)
    x = pl.lazy(a)
    s = x @ x.H + pl.Identity(N)
    dense = a.astype("D") @ a.conj().T + np.eye(N)
    solved, product = pl.evaluate(pl.inv(s) @ b, s @ b)  # the sum may not be overwritten here
    close(solved, np.linalg.solve(dense, b), dtype)
    close(product, dense @ b, dtype)
    inverse = np.asarray(pl.inv(s))
    close(inverse, np.linalg.inv(dense), dtype)


def test_the_matrix_has_no_memory_of_its_own():
    a, b = numbers((N, N), "d"), numbers((N,), "d", 1)
    x = pl.lazy(a)
    told = pl.explain(pl.inv(x @ x.T + pl.Identity(N)) @ b)
    assert any("potrf" in step["name"] for step in told.steps)
    assert told.memory < 1.5 * N * N * 8


def test_two_factors_in_one_plan():
    a, c, b = numbers((N, N), "d"), numbers((N, N), "d", 2), numbers((N,), "d", 1)
    x, y = pl.lazy(a), pl.lazy(c)
    eye = pl.Identity(N)
    got = np.asarray(pl.inv(x @ x.T + eye) @ (pl.inv(y @ y.T + 2 * eye) @ b))
    want = np.linalg.solve(a @ a.T + np.eye(N), np.linalg.solve(c @ c.T + 2 * np.eye(N), b))
    np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10 * np.abs(want).max())
