"""What a number makes negative stays so beside unsigned integers, where the whole is computed in
floats: a weak multiple of the identity has no integer dtype of its own."""

import numpy as np
import pytest

import pylinop as pl


def tridiagonal(n):
    one = np.ones(max(n - 1, 0), np.uint8)
    return pl.Tridiagonal(one, np.full(n, 4, np.uint8), one)


KINDS = {
    "Diag": lambda n: pl.Diag(np.arange(n, dtype=np.uint8)),
    "Dense": lambda n: pl.Dense(np.arange(n * n, dtype=np.uint8).reshape(n, n) % 7),
    "Toeplitz": lambda n: pl.Toeplitz(np.arange(n, dtype=np.uint8)),
    "Circulant": lambda n: pl.Circulant(np.arange(n, dtype=np.uint8)),
    "Tridiagonal": tridiagonal,
    "Kron": lambda n: pl.Kron(pl.Diag(np.arange(n, dtype=np.uint8)), pl.Identity(1)),
}


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17])
@pytest.mark.parametrize("c", [-1, -2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_weak_multiples_of_the_identity(kind, c, n):
    A = KINDS[kind](n)
    want = A.toarray().astype(float) + c * np.eye(n)
    x = np.arange(1.0, n + 1)
    for op in (A + c * pl.Identity(n), c * pl.Identity(n) + A, (A.T + c * pl.Identity(n)).T):
        np.testing.assert_array_equal(op @ x, want @ x)
        np.testing.assert_array_equal(op.T @ x, want.T @ x)
        np.testing.assert_array_equal(x @ op, x @ want)


def test_an_imaginary_part_of_weak_floats_is_of_floats():
    zeros = np.imag(pl.Identity(2) / 2)
    assert (zeros - pl.Dense(np.eye(2, dtype=np.int8))).dtype == np.float64
    assert (np.imag(pl.Identity(2)) - pl.Dense(np.eye(2, dtype=np.int8))).dtype == np.int8
