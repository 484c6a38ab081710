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


UNSIGNED = {
    **KINDS,
    "upper": lambda n: pl.Triangular(np.triu(np.full((n, n), 3, np.uint8)), lower=False),
    "lower": lambda n: pl.Triangular(np.tril(np.full((n, n), 3, np.uint8))),
    "lower, transposed": lambda n: pl.Triangular(np.tril(np.full((n, n), 3, np.uint8))).T,
    "multiple": lambda n: np.uint8(3) * pl.Identity(n),
}


@pytest.mark.parametrize("n", [1, 2, 17])
@pytest.mark.parametrize("kind", UNSIGNED)
def test_negatives_of_unsigned_integers(kind, n):
    """As arrays they wrap, as NumPy's; applied to what is wider, and in floats, they do not."""
    A = UNSIGNED[kind](n)
    a, wide = A.toarray(), A.toarray().astype(np.int64)
    x, k = np.linspace(-1, 1, n), np.arange(n, dtype=np.int32) - 5
    for op, want, whole in (
        (-A, -a, -wide),
        (A - 3 * A, a - 3 * a, -2 * wide),
        (A @ -A, a @ -a, wide @ -wide),
    ):
        assert op.dtype == np.uint8
        np.testing.assert_array_equal(op.toarray(), want)
        assert op.toarray().dtype == op.diagonal().dtype == np.uint8
        np.testing.assert_array_equal(op.diagonal(), want.diagonal())
        assert pl.trace(op) == want.trace()
        np.testing.assert_array_equal(op @ a[:, :1], want @ a[:, :1])
        np.testing.assert_allclose(op @ x, whole @ x, rtol=1e-12, atol=1e-9)
        np.testing.assert_array_equal(op @ k, whole @ k)
        np.testing.assert_allclose(
            pl.svdvals(op), np.linalg.svd(whole)[1], rtol=1e-10, atol=1e-8 * np.abs(whole).max()
        )
        np.testing.assert_allclose(pl.det(op), np.linalg.det(whole), rtol=1e-8, atol=1e-6)
    of = pl.lazy(a)
    np.testing.assert_array_equal((-of @ pl.lazy(x)).toarray(), -a @ x)  # as NumPy's steps
    np.testing.assert_array_equal((of @ -of).toarray(), a @ -a)


@pytest.mark.parametrize("n", [1, 2, 17])
@pytest.mark.parametrize("kind", UNSIGNED)
def test_factors_of_unsigned_integers_are_of_floats(kind, n):
    for A in (UNSIGNED[kind](n), -UNSIGNED[kind](n)):
        want = A.astype(float).toarray()
        q, r = pl.qr(A)
        p, low, up = pl.lu(A)
        for factor in (q, r, pl.qr(A, mode="r"), low, up, *pl.svd(A)):
            assert factor.dtype == np.float64
            assert np.asarray(factor).dtype == np.float64
        np.testing.assert_allclose((q @ r).toarray(), want, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose((p @ low @ up).toarray(), want, rtol=1e-9, atol=1e-9)
