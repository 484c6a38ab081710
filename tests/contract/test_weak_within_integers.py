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


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("c", [np.uint8(200), np.int8(-128), np.uint64(2**63), np.int16(3)])
def test_multiples_by_numbers_of_numpy(c, n):
    """Structure is looked for by products of the coefficients, which do not wrap within floats."""
    A = np.arange(n * n, dtype=float).reshape(n, n)
    A += A.T
    for times in (-1, 2, np.uint8(3)):
        for B, b in ((pl.Identity(n), np.eye(n)), (pl.Dense(A), A)):
            whole = pl.Dense(np.eye(n)) - times * (c * pl.aslinearoperator(B))
            want = np.eye(n) - float(times) * float(c) * b
            size = np.linalg.norm(want)
            np.testing.assert_allclose(whole.toarray(), want, rtol=0, atol=1e-13 * size)
            np.testing.assert_allclose(
                pl.eigvalsh(whole), np.linalg.eigvalsh(want), rtol=0, atol=1e-13 * size
            )
            np.testing.assert_allclose(
                pl.svdvals(whole), np.linalg.svd(want)[1], rtol=0, atol=1e-13 * size
            )


@pytest.mark.parametrize(
    "A",
    [pl.Hadamard(2), pl.Permutation([1, 0]) + 2 * pl.Identity(2), pl.Hadamard(4) @ pl.Hadamard(4)],
    ids=["Hadamard", "sum", "product"],
)
def test_inverses_of_inverses_of_weak_integers(A):
    """An inverse is of floats, so its inverse is too, though the matrix itself is not."""
    b = np.full((A.shape[0], 3), 200, np.uint8)
    B = pl.inv(pl.inv(A))
    want = A.toarray().astype(float) @ b
    for got in (B @ b, (b.T @ B.T).T, pl.solve(pl.inv(A), b)):
        assert got.dtype == np.float64
        np.testing.assert_allclose(got, want, rtol=1e-14)
