"""Terms of a sum that close to one kind do so in any order and nesting, like terms are one, unit
factors and multiples by one go; what is exact stays as written."""

import numpy as np
import pytest

import pylinop as pl

N = 40


def parts(dtype):
    r = np.random.default_rng(3)
    z = (lambda *s: r.standard_normal(s)) if np.dtype(dtype).kind == "f" else None
    if z is None:

        def z(*s):
            return r.standard_normal(s) + 1j * r.standard_normal(s)

    d, u, c = z(N).astype(dtype), z(N, 3).astype(dtype), z(N).astype(dtype)
    c[0] += 9 * N
    x = z(N, N).astype(dtype) + 9 * N * np.eye(N, dtype=dtype)
    return {
        "D": pl.Diag(d + 9),
        "U": pl.LowRank(u),
        "T": pl.Toeplitz(c),
        "X": pl.Dense(x),
        "B": pl.Tridiagonal(z(N - 1).astype(dtype), 9 + z(N).astype(dtype), z(N - 1).astype(dtype)),
        "I": pl.Identity(N),
    }


SUMS = {
    "U + c I + D": lambda p: (p["U"] + 2.5 * p["I"]) + p["D"],
    "c I + (X + d I)": lambda p: 1.5 * p["I"] + (p["X"] + 2 * p["I"]),
    "T + X + c I": lambda p: (p["T"] + p["X"]) + 0.5 * p["I"],
    "X + T - 3 X": lambda p: p["X"] + (p["T"] - 3 * p["X"]),
    "T.T + U + T": lambda p: p["T"].T + (p["U"] + p["T"]),
    "I B + D": lambda p: (p["I"] @ p["B"]) + p["D"],
    "2 (I B / 2) + U": lambda p: 2 * (0.5 * (p["I"] @ p["B"])) + p["U"],
    "X I B I": lambda p: p["X"] @ p["I"] @ (p["B"] @ p["I"]),
    "D B X": lambda p: p["D"] @ p["B"] @ p["X"],
    "X B D": lambda p: p["X"] @ (p["B"] @ p["D"]),
    "B D B": lambda p: p["B"] @ p["D"] @ p["B"],
}


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32", "complex64"])
@pytest.mark.parametrize("name", SUMS)
def test_the_same_numbers(name, dtype):
    a = SUMS[name](parts(dtype))
    dense = a.toarray().astype(np.complex128 if np.dtype(dtype).kind == "c" else np.float64)
    tol = 1e-9 if dtype in ("float64", "complex128") else 2e-3
    b = np.random.default_rng(1).standard_normal((N, 2)).astype(dtype)
    scale = np.abs(dense).max()
    np.testing.assert_allclose(a @ b, dense @ b, atol=tol * scale * N)
    np.testing.assert_allclose(dense @ pl.solve(a, b), b, atol=tol * 100)
    np.testing.assert_allclose(pl.diagonal(a), np.diagonal(dense), atol=tol * scale)
    np.testing.assert_allclose(pl.diagonal(pl.inv(a)), np.diagonal(np.linalg.inv(dense)), atol=tol)
    np.testing.assert_allclose(pl.trace(a), np.trace(dense), atol=tol * scale * N)
    np.testing.assert_allclose(pl.slogdet(a)[1], np.linalg.slogdet(dense)[1], rtol=tol)


@pytest.mark.parametrize("k", [-3, -2, -1, 0, 1, 2, 3])
@pytest.mark.parametrize("n", [2, 3, 9, 10, 11, 60])
def test_diagonals_of_products_of_bands(n, k):
    """On both sides of the size from which they are read off the band; with inf in it."""
    r = np.random.default_rng(n)
    a, b = (pl.Tridiagonal(r.random(n - 1), r.random(n), r.random(n - 1)) for _ in range(2))
    dense = a.toarray() @ b.toarray()
    np.testing.assert_allclose(pl.diagonal(a @ b, k), np.diagonal(dense, k), rtol=1e-14, atol=0)
    np.testing.assert_allclose(pl.trace(a @ b), np.trace(dense), rtol=1e-14)


def test_an_infinite_entry_stays_where_it_is():
    d = np.ones(30)
    d[4] = np.inf
    b = pl.Tridiagonal(np.ones(29), np.ones(30), np.ones(29))
    got = pl.diagonal(b @ pl.Diag(d) @ b)
    assert np.isfinite(np.delete(got, [3, 4, 5])).all()
    assert np.isinf(got[3:6]).all()


def test_bands_are_not_made_dense_for_their_diagonal():
    n = 3000
    b = pl.Tridiagonal(np.ones(n - 1), np.full(n, 4.0), np.ones(n - 1))
    for ask in ("diagonal", "trace"):
        e = (b @ pl.Diag(np.ones(n)) @ b).explain(ask)
        assert e.memory < 8 * n * 40


def test_like_terms_that_leave_nothing():
    """A sum that cancels is singular however it is nested; the numbers of what stays are right."""
    p = parts("float64")
    a = (p["X"] + p["D"]) - p["X"]
    b = np.ones(N)
    np.testing.assert_allclose(pl.solve(a, b), 1 / p["D"].diagonal(), rtol=1e-9)
    assert pl.logdet(p["X"] - p["X"]) == -np.inf


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool"])
def test_integers_wrap_where_they_stand(dtype):
    a = np.arange(9).reshape(3, 3).astype(dtype)
    big = (np.arange(9).reshape(3, 3) * 29).astype(dtype)
    one = pl.Identity(3)
    op = (pl.Dense(big) + pl.Dense(a)) + (pl.Dense(big) + one)
    want = (big + a) + (big + np.eye(3, dtype=dtype))
    np.testing.assert_array_equal(op.toarray(), want)
    np.testing.assert_array_equal((one @ pl.Dense(big) @ one) @ a, big @ a)


def test_a_coefficient_is_one_of_its_class_after_all():
    """(c - 1) I + I is planned once for all c; 2 (A / 2) is A."""
    p = parts("float64")
    b = np.ones(N)
    for c in (2.0, 3.5, 1.25):
        a = (c - 1) * p["I"] + p["X"] + p["I"]
        want = np.linalg.solve(p["X"].toarray() + c * np.eye(N), b)
        np.testing.assert_allclose(pl.solve(a, b), want, rtol=1e-9)
    t = 2 * (0.5 * p["T"])
    assert t.explain("logdet").flops == p["T"].explain("logdet").flops


def cancelled(T):
    """T, written with what cancels and with zeros."""
    n = len(T)
    D, X = pl.DCT((n,)), pl.Dense(np.ones((n, n)))
    yield from (T - (D - D), (T - D) + D, T - 2 * (X - X), (X - X) + T, T + (D.T - D.T) - (X - X))
    yield from (T + pl.Zeros((n, n)), pl.Zeros((n, n)) + T)


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 100])
def test_what_cancels_leaves_the_kind_of_the_rest(n):
    """Random triangles are ill-conditioned: LU loses what the diagonal has."""
    t = np.tril(np.random.default_rng(n).standard_normal((n, n)))
    T = pl.Dense(t, "lower triangular")
    log = np.log(np.abs(np.diagonal(t))).sum()
    for A in cancelled(T):
        with pl.explaining() as e:
            found, x = pl.slogdet(A), pl.solve(A, t[:, 0])
        assert "getrf" not in str(e)
        assert abs(found.logabsdet - log) <= 1e-13 * n
        np.testing.assert_allclose(x, np.eye(n)[0], atol=1e-9)


def test_all_that_cancels_is_zero():
    X = pl.Dense(np.ones((4, 3)))
    A = pl.Diag(np.ones(4)) @ X - X + (X - X)
    np.testing.assert_array_equal((X - X - (X - X)).toarray(), np.zeros((4, 3)))
    np.testing.assert_array_equal(A.toarray(), np.zeros((4, 3)))
