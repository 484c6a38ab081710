"""Kinds of one array that are made of the same array are known to hold the same numbers."""

import numpy as np
import pytest

import pylinop as pl

N = 40


def definite(rng):
    x = rng.standard_normal((N, N))
    return x @ x.T / N + np.eye(N)


def method(A):
    head = str(A.explain("logdet")).split("total")[0]
    return "Cholesky" if "Cholesky" in head else "LU" if "LU" in head else head


def test_diagonals_on_both_sides(rng):
    k, d, b = definite(rng), rng.random(N) + 0.5, rng.standard_normal(N)
    K, I = pl.Dense(k, "pos"), pl.Identity(N)
    for make in (pl.Diag, lambda x: pl.Diag(x, 0), lambda x: pl.Diag(d=x)):
        A = I + make(d) @ K @ make(d)
        assert method(A) == "Cholesky"
        m = np.eye(N) + d[:, None] * k * d
        np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(m, b), rtol=1e-10)
    assert method(I + pl.Diag(d) @ K @ pl.Diag(d.copy())) == "LU"
    assert method(I + pl.Diag(d, copy=True) @ K @ pl.Diag(d, copy=True)) == "LU"
    s = pl.lazy(d)
    for A in (
        I + np.diag(s) @ pl.lazy(k, "pos") @ np.diag(s),
        I + s[:, None] * pl.lazy(k, "pos") * s,
        I + d[:, None] * pl.lazy(k, "pos") * d,
    ):
        m = np.eye(N) + d[:, None] * k * d
        assert "getrf" not in str(pl.explain(pl.logdet(A))).split("--- if a step fails")[0]
        np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(m, b), rtol=1e-10)
    for A in (I + pl.lazy(k, "pos") / s[:, None] / s, I + pl.lazy(k, "pos") / d[:, None] / d):
        m = np.eye(N) + k / np.outer(d, d)
        assert "getrf" not in str(pl.explain(pl.logdet(A))).split("--- if a step fails")[0]
        np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(m, b), rtol=1e-10)
    A = I + s[:, None] * pl.lazy(k, "pos") / s  # not symmetric
    m = np.eye(N) + d[:, None] * k / d
    np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(m, b), rtol=1e-10)


def test_the_array_is_read_at_each_call(rng):
    k, d = definite(rng), rng.random(N) + 0.5
    A = pl.Identity(N) + pl.Diag(d) @ pl.Dense(k, "pos") @ pl.Diag(d)
    for _ in range(2):
        m = np.eye(N) + d[:, None] * k * d
        np.testing.assert_allclose(A.slogdet()[1], np.linalg.slogdet(m)[1], rtol=1e-10)
        d *= 2


def test_arrays_that_are_gone(rng):
    x = rng.standard_normal(N)
    for i in range(2000):  # another array may lie where one was
        d = np.full(N, float(i))
        E = pl.Diag(d)
        del d
        assert (E @ x)[0] == i * x[0]


@pytest.mark.parametrize("kind", ["Diag", "Circulant", "Selection", "Permutation", "Banded"])
def test_two_of_a_kind(kind, rng):
    made = {
        "Diag": lambda a: pl.Diag(a),
        "Circulant": lambda a: pl.Circulant(a),
        "Selection": lambda a: pl.Selection(a, N),
        "Permutation": lambda a: pl.Permutation(a),
        "Banded": lambda a: pl.Banded((0, 0), a),
    }[kind]
    a = {
        "Selection": np.array([3, 1, 4]),
        "Permutation": rng.permutation(N),
        "Banded": rng.standard_normal((1, N)),
    }.get(kind, rng.standard_normal(N))
    A, B = made(a), made(a)
    x = rng.standard_normal(N)
    for op in (A.T @ B, A @ B.T):
        m = op.toarray()
        np.testing.assert_allclose(op @ x[: m.shape[1]], m @ x[: m.shape[1]], atol=1e-12)
    dense = A.toarray()
    np.testing.assert_allclose((A.T @ B).toarray(), dense.T @ dense, atol=1e-12)


def test_gradients_are_by_operator(rng):
    d = rng.random(5) + 0.5
    D, E = pl.Diag(d), pl.Diag(d)
    (found,) = pl.gradients(pl.trace(pl.lazy(D) @ pl.lazy(E)), [D])
    np.testing.assert_allclose(np.asarray(found), np.diag(d))
