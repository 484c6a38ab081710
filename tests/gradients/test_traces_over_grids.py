"""Traces and determinants of inverses of c L + s I, L the Laplacian of a grid, and what they grow
by: by the eigenvalues of the axes, with no array of the size of the matrix."""

import numpy as np
import pytest
from gradients.differences import check_second

import pylinop as pl

GRIDS = [(9, 7), (4, 5, 6), (33, 3), (2, 40)]
BOUNDARIES = ["dirichlet", "neumann", "periodic"]


def inverse(c, s, L):
    return pl.inv(c * L + s * pl.Identity(L.shape[0]))


LOSSES = {
    "determinant": lambda c, s, L: pl.logdet(s * pl.Identity(L.shape[0]) - c * L),
    "trace": lambda c, s, L: pl.trace(inverse(-c, s, L)),
    "trace of the square": lambda c, s, L: pl.trace(inverse(-c, s, L) @ inverse(-c, s, L)),
    "of three": lambda c, s, L: pl.trace(
        inverse(-c, s, L) @ L @ inverse(-c, s, L) @ (L + c * pl.Identity(L.shape[0]))
    ),
    "a ratio": lambda c, s, L: c * pl.trace(inverse(-c, s, L) @ L) / s,
    "indefinite": lambda c, s, L: pl.trace(inverse(c, s, L)),
}


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize("loss", LOSSES)
def test_beside_the_dense_form(grid, boundary, loss):
    L = pl.Laplacian(grid, boundary)
    dense = L.toarray().astype(float)
    f = lambda c, s: LOSSES[loss](c, s, L)  # noqa: E731
    g = lambda c, s: LOSSES[loss](c, s, pl.lazy(dense))  # noqa: E731
    at, along = (np.array(0.7), np.array(0.37)), (np.array(1.0), np.array(-0.4))
    got, due = pl.value_and_grad(f, (0, 1))(*at), pl.value_and_grad(g, (0, 1))(*at)
    np.testing.assert_allclose(got[0], due[0], rtol=1e-10)
    np.testing.assert_allclose(got[1], due[1], rtol=1e-10)
    got, due = (pl.hvp(h, (0, 1))(*at, along) for h in (f, g))
    np.testing.assert_allclose(got, due, rtol=1e-9)


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_complex_numbers(boundary):
    L = pl.Laplacian((8, 9), boundary)
    dense = L.toarray().astype(float)
    f = lambda c, s, L=L: np.real((1 - 2j) * pl.trace(inverse(c, s, L)))
    at = (np.array(0.7 + 0.2j), np.array(0.4 - 0.3j))
    got = pl.value_and_grad(f, (0, 1))(*at)
    due = pl.value_and_grad(lambda c, s: f(c, s, pl.lazy(dense)), (0, 1))(*at)
    np.testing.assert_allclose(got[0], due[0], rtol=1e-11)
    np.testing.assert_allclose(got[1], due[1], rtol=1e-11)


def test_in_single_precision_beside_double():
    L = pl.Laplacian((12, 11), dtype=np.float32)
    f = lambda c, s: pl.trace(inverse(c, s, L))
    got = pl.value_and_grad(f, (0, 1))(np.array(-0.7), np.array(0.3))
    S = 0.3 * np.eye(132) - 0.7 * L.toarray().astype(float)
    inv = np.linalg.inv(S)
    np.testing.assert_allclose(got[0], np.trace(inv), rtol=1e-12)
    due = (-np.trace(inv @ L.toarray() @ inv), -np.trace(inv @ inv))
    np.testing.assert_allclose(got[1], due, rtol=1e-11)
    one = pl.grad(lambda c, s: f(c, s), (0, 1))(np.float32(-0.7), np.float32(0.3))
    np.testing.assert_allclose(one, due, rtol=1e-3)


def test_singular_ones_raise():
    L = pl.Laplacian((8, 9), "periodic")
    for f in (LOSSES["trace"], LOSSES["trace of the square"], LOSSES["of three"]):
        with pytest.raises(np.linalg.LinAlgError):
            pl.grad(lambda c, s, f=f: f(c, s, L), (0, 1))(np.array(1.0), np.array(0.0))


def test_not_numbers():
    L = pl.Laplacian((8, 9))
    found = pl.trace(inverse(np.nan, 1.0, L))
    assert np.isnan(found)


def test_kronecker_sums(rng):
    """Of what stands in the same basis, and beside that."""
    a, b = (x @ x.T + np.eye(len(x)) for x in (rng.standard_normal((9, 9)), rng.random((8, 8))))
    A, B = pl.Dense(a, assume_a="pos"), pl.Dense(b, assume_a="pos")
    K, k = pl.KronSum(A, B), np.kron(a, np.eye(8)) + np.kron(np.eye(9), b)
    other = rng.standard_normal((72, 72))
    for X, x in (
        (K, k),
        (pl.Kron(A, B), np.kron(a, b)),
        (2 * pl.Kron(A, pl.Identity(8)) - pl.Identity(72), 2 * np.kron(a, np.eye(8)) - np.eye(72)),
        (pl.Kron(np.ones((9, 9)), B), np.kron(np.ones((9, 9)), b)),
        (pl.Dense(other), other),
    ):
        S, s = pl.inv(K + 0.5 * pl.Identity(72)), np.linalg.inv(k + 0.5 * np.eye(72))
        np.testing.assert_allclose((S @ X).trace(), np.trace(s @ x), rtol=1e-10)
        np.testing.assert_allclose((X @ S @ S).trace(), np.trace(x @ s @ s), rtol=1e-10)
        np.testing.assert_allclose((S @ X @ S @ X).trace(), np.trace(s @ x @ s @ x), rtol=1e-10)
        np.testing.assert_allclose(
            (S @ (X @ S + S)).trace(), np.trace(s @ x @ s + s @ s), rtol=1e-10
        )


def test_third_derivatives():
    L = pl.Laplacian((5, 8))
    f = lambda c, s: pl.grad(lambda c: pl.logdet(s * pl.Identity(40) - c * L))(c)
    check_second(f, np.array(0.8), np.array(0.3), rtol=1e-6)


@pytest.mark.no_verify  # whose own dense forms would be counted
@pytest.mark.parametrize("loss", [x for x in LOSSES if x != "indefinite"])
def test_no_step_of_the_size_of_the_matrix_runs(loss):
    """The dense form is in reserve, where eigenvalues are lost beside each other."""
    L, n = pl.Laplacian((20, 20)), 400
    f = lambda c, s: LOSSES[loss](c, s, L)
    at = (np.array(0.7), np.array(0.37))
    calls = [lambda: pl.value_and_grad(f, (0, 1))(*at)]
    if loss != "of three":
        calls.append(lambda: pl.hvp(f, (0, 1))(*at, (np.array(1.0), np.array(1.0))))
    for call in calls:
        with pl.explaining() as record:
            call()
        for p in record.plans:
            for step in p.steps:
                out = p.slots[step["arguments"][0]]
                assert step["took"] is None or np.prod(out["shape"]) < n * n // 2, step["name"]
