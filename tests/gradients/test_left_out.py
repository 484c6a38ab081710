"""Residuals with one observation left out, `solve(K, y) / diagonal(inv(K))`, and other weighted
diagonals of inverses: gradients in the structure of K, beside dense forms and differences."""

import numpy as np
import pytest
from gradients.differences import check

import pylinop as pl

DTYPES = ("float64", "complex128")


def left_out(K, y):
    d = np.real(pl.diagonal(pl.inv(K)))
    return np.sum(np.abs(pl.solve(K, y) / d) ** 2) - np.sum(np.log(d))


def column(n, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    c = np.exp(-np.arange(n) / 3.0).astype(dtype)
    if c.dtype.kind == "c":
        c = c * np.exp(0.7j * np.arange(n))
    c[0] = 1.5
    return c * (1 + 0.01 * rng.standard_normal(n))


def drawn(n, dtype="float64", seed=1):
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(n)
    return (y + 1j * rng.standard_normal(n) if np.dtype(dtype).kind == "c" else y).astype(dtype)


def rows_of(f, *args):
    held = [pl.lazy(a) for a in args]
    return "".join(g.explain() for g in pl.gradients(f(*held), held))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 5, 39, 41, 96, 130])
def test_of_toeplitz_matrices(n, dtype):
    y = drawn(n, dtype)
    with pl.config(check_plans=True, verify=True):
        check(lambda c: left_out(pl.Toeplitz(c), y), column(n, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [2, 41, 97, 130])
def test_of_toeplitz_matrices_that_are_not_hermitian(n, dtype):
    g = drawn(n, dtype, 2)

    def f(c, r):
        return np.real(np.sum(g * pl.diagonal(pl.inv(pl.Toeplitz(c, r)))))

    with pl.config(check_plans=True, verify=True):
        check(f, column(n, dtype), 0.5 * column(n, dtype, 3))


@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64", "complex128"])
def test_of_toeplitz_matrices_beside_dense_ones(dtype):
    n = 150
    c, y = column(n, dtype), drawn(n, dtype)
    lag = np.arange(n)[:, None] - np.arange(n)

    def dense(c):
        full = np.concatenate([np.conj(c[:0:-1]), c])
        return left_out(full[lag + n - 1], y)

    value, got = pl.value_and_grad(lambda c: left_out(pl.Toeplitz(c), y))(c)
    wanted, by = pl.value_and_grad(dense)(c.astype("complex128" if c.dtype.kind == "c" else float))
    if c.dtype.kind == "c":  # the first is real by its place
        got, by = got[1:], by[1:]
    rtol = 2e-4 if c.dtype.itemsize < 8 + 8 * (c.dtype.kind == "c") else 1e-11
    assert abs(value - wanted) <= rtol * abs(wanted)
    assert np.linalg.norm(got - by) <= rtol * np.linalg.norm(by)


@pytest.mark.no_verify  # whose own plans would be counted
def test_no_square_of_a_toeplitz_matrix():
    n = 1000
    y = drawn(n)

    def f(c, s):
        return left_out(pl.Toeplitz(c) + s * pl.Identity(n), y)

    text = rows_of(f, column(n), np.array(0.3))
    assert "sums-between-toeplitz-weights" in text
    assert "(1000, 1000)" not in text


@pytest.mark.parametrize("first", [0.0, 1e-12, 1e-4])
def test_where_the_first_number_of_the_inverse_vanishes(first):
    """Gohberg and Semencul's formula fails there; the matrix does not."""
    n = 60
    c, r = np.zeros(n), np.zeros(n)
    c[:3], r[:3] = [first, 1.0, 0.3], [first, 1.0, -0.4]
    g = drawn(n)
    T = pl.Toeplitz(c, r)
    inverse = np.linalg.inv(T.toarray())
    between = inverse @ np.diag(g) @ inverse
    by = pl.grad(lambda c: np.sum(g * pl.diagonal(pl.inv(pl.Toeplitz(c, r)))))(c)
    wanted = np.array([-np.trace(between, k) for k in range(n)])
    assert np.linalg.norm(by - wanted) <= 1e-9 * np.linalg.norm(wanted)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [8, 33, 50, 120])
def test_of_toeplitz_beside_low_rank(n, dtype):
    y, U = drawn(n, dtype), np.stack([drawn(n, dtype, 5), drawn(n, dtype, 6)], axis=1)

    def f(c, U, s):
        return left_out(pl.Toeplitz(c) + pl.LowRank(U) + s * pl.Identity(n), y)

    with pl.config(check_plans=True, verify=True):
        check(f, column(n, dtype), U, np.array(0.3))


@pytest.mark.no_verify  # whose own plans would be counted
def test_no_array_of_all_rows_beside_low_rank():
    n = 1000
    y, U = drawn(n), drawn(3 * n).reshape(n, 3)

    def f(c, s):
        return left_out(pl.Toeplitz(c) + s * pl.Identity(n) + pl.LowRank(U), y)

    text = rows_of(f, column(n), np.array(0.3))
    assert "(1000, 1000)" not in text


# -- Kron + c I


def factor(m, seed, dtype="float64"):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((m, m)) + (1j * rng.standard_normal((m, m)) if "c" in dtype else 0)
    return (a @ a.conj().T / m + np.eye(m)).astype(dtype)


@pytest.mark.parametrize("sizes", [(2, 3), (7, 6), (6, 9), (1, 50), (50, 1), (4, 4, 4)])
def test_of_krons_with_noise(sizes):
    n = int(np.prod(sizes))
    y, w = drawn(n), 0.3 + np.abs(drawn(n, seed=4))

    def f(s, *factors):
        K = pl.Kron(*(pl.Dense(F @ F.T, "pos") for F in factors)) + s * pl.Identity(n)
        return left_out(K, y) + np.sum(w * pl.diagonal(pl.inv(K)))

    with pl.config(check_plans=True, verify=True):
        check(f, np.array(0.4), *(factor(m, i) for i, m in enumerate(sizes)))


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_of_krons_beside_dense_forms(dtype):
    A, B = factor(8, 0, dtype), factor(7, 1, dtype)
    y = drawn(56, dtype)

    def f(A, B, kind):
        a, b = pl.Dense(A, "pos"), pl.Dense(B, "pos")
        K = pl.Kron(a, b) + pl.Identity(56) if kind else np.kron(A, B) + np.eye(56)
        return left_out(K, y)

    got = pl.grad(lambda A, B: f(A, B, True), (0, 1))(A, B)
    wide = "complex128" if "c" in dtype else "float64"
    wanted = pl.grad(lambda A, B: f(A, B, False), (0, 1))(A.astype(wide), B.astype(wide))
    for g, w in zip(got, wanted, strict=True):
        w = (w + w.conj().T) / 2
        assert np.linalg.norm(g - w) <= (1e-4 if dtype == "float32" else 1e-11) * np.linalg.norm(w)


def test_of_krons_with_repeated_eigenvalues():
    y = drawn(48)

    def f(a, s):
        K = pl.Kron(
            pl.Dense(np.exp(a) * np.eye(8)), pl.Dense(np.ones((6, 6)) + np.exp(a) * np.eye(6))
        )
        return left_out(K + s * pl.Identity(48), y)

    with pl.config(check_plans=True, verify=True):
        check(f, np.array(0.3), np.array(0.4))


@pytest.mark.no_verify  # whose own plans would be counted
def test_no_array_of_all_rows_of_a_kron():
    n = 1200
    y = drawn(n)

    def f(A, B, s):
        return left_out(pl.Kron(pl.Dense(A, "pos"), pl.Dense(B, "pos")) + s * pl.Identity(n), y)

    assert "(1200, 1200)" not in rows_of(f, factor(30, 0), factor(40, 1), np.array(0.3))
