"""Factorisations and what stands on them: arguments that are none, integers and bools."""

import numpy as np
import pytest

import pylinop as pl

S = np.array([[4.0, 1.0], [1.0, 3.0]])
A = pl.Dense(S)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: pl.cholesky(A, jitter="a"), "jitter must be a positive number or None, got 'a'"),
        (lambda: pl.cholesky(A, jitter=True), "jitter must be a positive number"),
        (lambda: pl.cholesky(A, jitter=[1.0]), "jitter must be a positive number"),
        (lambda: pl.lstsq(A, np.ones(2), rcond="x"), "rcond must be a number"),
        (lambda: pl.lstsq(pl.Kron(A, A), np.ones(4), rcond="x"), "rcond must be a number"),
        (lambda: pl.null_space(A, rcond="a"), "rcond must be a number"),
        (lambda: pl.orth(A, rcond=1j), "rcond must be a number"),
        (lambda: pl.pinv(A, rcond="a"), "rcond must be a number"),
        (lambda: pl.pinv(A, rtol="a"), "rtol must be a number"),
        (lambda: pl.matrix_rank(A, tol="a"), "tol must be a number"),
        (lambda: pl.matrix_rank(A, rtol="a"), "rtol must be a number"),
        (lambda: pl.log_pdet(A, rtol="a"), "rtol must be a number"),
        (lambda: pl.sample(A, "a"), "size must be an integer or a tuple of integers, got 'a'"),
        (lambda: pl.sample(A, 1.5), "size must be an integer"),
        (lambda: pl.sample(A, [[1, 2]]), "size must be an integer"),
        (lambda: pl.fractional_matrix_power(A, "a"), "the exponent is a real number, not 'a'"),
        (lambda: pl.fractional_matrix_power(A, 1j), "the exponent is a real number"),
        (lambda: pl.funm(A, 3), "must be callable, got 3"),
    ],
)
def test_arguments_of_another_sort(call, words):
    with pytest.raises(TypeError, match=words):
        call()


def test_sizes_of_draws():
    for size, shape in [(None, (2,)), (3, (3, 2)), ((2, 1), (2, 1, 2)), ([2], (2, 2))]:
        assert pl.sample(A, size, rng=0).shape == shape
    assert pl.sample(A, np.array([2, 3]), rng=0).shape == (2, 3, 2)
    assert pl.sample(A, (), rng=0).shape == (2,)


def test_the_element_of_a_batch_is_named():
    stack = pl.Dense(np.stack([S, 0 * S, S]))
    for f in (pl.logm, pl.cholesky, lambda B: pl.sqrt_inv_matmul(B, np.ones((2, 1)))):
        with pytest.raises(np.linalg.LinAlgError, match="batch element 1"):
            f(stack)
    with pytest.raises(np.linalg.LinAlgError, match="batch element 1"):
        pl.sample(pl.Dense(np.stack([S, -S])))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64"])
def test_integers_are_float64(dtype):
    a = np.eye(3).astype(dtype)
    if dtype != "bool":
        a[0, 0] = 100 if dtype == "int8" else 200
    want, b = a.astype(float), np.ones(3)
    B = pl.Dense(a)
    np.testing.assert_allclose(pl.cholesky(B).toarray(), np.sqrt(want))
    np.testing.assert_allclose(pl.sqrt_inv_matmul(B, b), 1 / np.sqrt(np.diag(want)))
    assert pl.sample(B, 4, rng=0).shape == (4, 3)
    for f in ("svdvals", "eigvalsh", "matrix_norm", "cond", "det"):
        np.testing.assert_allclose(getattr(pl, f)(B), getattr(np.linalg, f)(want))
    for f in (pl.sqrtm, pl.pinv, pl.expm, pl.orth, pl.null_space):
        assert f(B).dtype == np.float64
    with pytest.raises(np.linalg.LinAlgError, match="not Hermitian"):
        pl.sample(pl.Dense(np.array([[0, 128], [0, 0]]).astype(dtype) + np.eye(2, dtype=dtype)))


def test_what_jitter_does_not_mend_says_so():
    with pytest.raises(np.linalg.LinAlgError, match=r"not positive definite, nor with 0.0001, "):
        pl.cholesky(-np.eye(3), jitter=1e-6)
