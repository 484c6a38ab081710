"""Second derivatives by the numbers in c K + s I, K a Kron or a KronSum: by the eigenvalues of K,
whatever the solves, determinants and functions of the matrix; beside dense ones."""

import numpy as np
import pytest

import pylinop as pl


def symmetric(rng, n, dtype):
    x = rng.standard_normal((n, n))
    x = x + 1j * rng.standard_normal((n, n)) if np.dtype(dtype).kind == "c" else x
    return (x @ x.conj().T / n + np.eye(n)).astype(dtype)


def line(m):
    return pl.Tridiagonal(-np.ones(m - 1), 2.5 * np.ones(m), -np.ones(m - 1))


KINDS = {
    "KronSum of bands": lambda rng, dtype: pl.KronSum(line(5), line(4)),
    "KronSum": lambda rng, dtype: pl.KronSum(symmetric(rng, 5, dtype), symmetric(rng, 4, dtype)),
    "KronSum, not symmetric": lambda rng, dtype: pl.KronSum(
        symmetric(rng, 5, dtype) + np.triu(rng.standard_normal((5, 5)), 1) / 9, line(4)
    ),
    "Kron": lambda rng, dtype: pl.Kron(symmetric(rng, 5, dtype), symmetric(rng, 4, dtype)),
    "Kron, not symmetric": lambda rng, dtype: pl.Kron(
        symmetric(rng, 5, dtype) + np.triu(rng.standard_normal((5, 5)), 1) / 9, line(4)
    ),
}


def real(x):
    return np.real(x * (0.8 - 0.6j)) if x.dtype.kind == "c" else x


LOSSES = {
    "determinant": lambda A, y: real(pl.slogdet(A)[1]),
    "likelihood": lambda A, y: real(np.conj(y) @ pl.solve(A, y)) + real(pl.slogdet(A)[1]),
    "misfit": lambda A, y: np.sum(np.abs(pl.solve(A, y) - y) ** 2) + real(pl.slogdet(A)[1]),
    "trace": lambda A, y: real(pl.trace(pl.inv(A) @ pl.inv(A))),
    "views": lambda A, y: real(pl.trace(pl.inv(A).T @ A)) + real(y @ pl.solve(A.T, y)),
    "diagonal": lambda A, y: np.sum(np.abs(pl.diagonal(pl.inv(A)) - y) ** 2),
    "exponential": lambda A, y: np.sum(np.abs(pl.expm(-0.3 * A) @ y - y) ** 2),
    "exponential, twice": lambda A, y: (
        np.sum(np.abs(pl.expm(-0.3 * A) @ y - pl.expm(-0.1 * A) @ y) ** 2) + real(pl.slogdet(A)[1])
    ),
}


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_beside_dense(kind, loss, dtype):
    rng = np.random.default_rng([len(kind), len(loss)])
    K = KINDS[kind](rng, dtype)
    n = K.shape[0]
    y = rng.standard_normal(n).astype(dtype)
    p, d = np.array([0.2, -0.4]), rng.standard_normal(2)

    def f(K, one):
        return lambda t: LOSSES[loss](np.exp(t[0]) * K + np.exp(t[1]) * one, y)

    dense = f(pl.lazy(np.ascontiguousarray(K.todense())), pl.lazy(np.eye(n)))
    value, grad = pl.value_and_grad(f(K, pl.Identity(n)))(p)
    due, slope = pl.value_and_grad(dense)(p)
    assert value == pytest.approx(due, rel=1e-11)
    np.testing.assert_allclose(grad, slope, rtol=0, atol=1e-10 * np.abs(slope).max())
    got, twice = pl.hvp(f(K, pl.Identity(n)))(p, d), pl.hvp(dense)(p, d)
    np.testing.assert_allclose(got, twice, rtol=0, atol=1e-9 * np.abs(twice).max())


@pytest.mark.no_verify  # whose own dense forms would be counted
@pytest.mark.parametrize("loss", ["determinant", "likelihood", "misfit", "exponential"])
@pytest.mark.parametrize("kind", ["KronSum of bands", "KronSum", "Kron"])
def test_nothing_of_the_size_of_the_whole(kind, loss):
    rng = np.random.default_rng(1)
    m = 20
    K = {
        "KronSum of bands": lambda: pl.KronSum(line(m), line(m)),
        "KronSum": lambda: pl.KronSum(symmetric(rng, m, float), symmetric(rng, m, float)),
        "Kron": lambda: pl.Kron(symmetric(rng, m, float), symmetric(rng, m, float)),
    }[kind]()
    n = m * m
    y = rng.standard_normal(n)
    with pl.explaining() as record:
        pl.hvp(lambda t: LOSSES[loss](np.exp(t[0]) * K + np.exp(t[1]) * pl.Identity(n), y))(
            np.zeros(2), np.ones(2)
        )
    ran = [s for p in record.plans for s in p.steps if s["took"] is not None]
    assert not [s["name"] for s in ran if f"({n}, {n})" in s["writes"]]
