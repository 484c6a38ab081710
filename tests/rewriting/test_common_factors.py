"""Sums of products with a factor in common, multiples of sums within sums, and updates by Krons are
one product, one update and one Kron: what another spelling costs, and the values of both."""

import numpy as np
import pytest
from drawn import positive, values

import pylinop as pl

N, K = 120, 4


class Given:
    def __init__(self, dtype):
        r = np.random.default_rng(11)
        self.S, self.R = (pl.Dense(positive(r, N, dtype), "pos") for _ in range(2))
        self.A = pl.Dense(values(r, (N, N), dtype) + 3 * N * np.eye(N, dtype=dtype))
        self.U, self.V = (pl.Dense(values(r, (N, K), dtype) / 8) for _ in range(2))
        self.C, self.F = (pl.Dense(positive(r, K, dtype), "pos") for _ in range(2))
        self.h = pl.Dense(values(r, (6, 2), dtype))
        real = np.empty(0, dtype).real.dtype
        self.D = pl.Diag((2 + r.random(N)).astype(real))
        c = np.exp(-np.arange(N) / 5.0)
        self.Z = pl.Toeplitz(c.astype(dtype))
        self.I, self.Many = pl.Identity(N), pl.Identity(N // 6)


# One spelling, the cheapest one, and how many times that it may cost.
SPELLED = {
    "on the left": (lambda g: g.S @ g.A + g.R @ g.A, lambda g: (g.S + g.R) @ g.A, 1.3),
    "a middle sum": (
        lambda g: g.D + g.U @ g.C @ g.U.H + g.U @ g.F @ g.U.H,
        lambda g: g.D + g.U @ (g.C + g.F) @ g.U.H,
        1.3,
    ),
    "multiples": (
        lambda g: g.D + 2 * (g.U @ g.C) @ g.U.H - g.U @ (0.5 * g.F) @ g.U.H,
        lambda g: g.D + g.U @ (2 * g.C - 0.5 * g.F) @ g.U.H,
        1.3,
    ),
    "a square of a sum": (
        lambda g: g.U @ g.U.H + g.U @ g.V.H + g.V @ g.U.H + g.V @ g.V.H + g.D,
        lambda g: g.D + (lambda w: w @ w.H)(g.U + g.V),
        1.3,
    ),
    "a shift of a multiple": (
        lambda g: 0.5 * (g.I + 2 * (g.U @ g.U.H + g.Z)),
        lambda g: pl.LowRankUpdate(g.Z + 0.5 * g.I, g.U),
        1.3,
    ),
    "random effects": (
        lambda g: pl.LowRankUpdate(g.I, pl.Kron(g.Many, g.h)),
        lambda g: pl.Kron(g.Many, g.h @ g.h.H + pl.Identity(6)),
        1.3,
    ),
    "random effects as a product": (
        lambda g: (lambda z: z @ z.H + g.I)(pl.Kron(g.Many, g.h)),
        lambda g: pl.Kron(g.Many, g.h @ g.h.H + pl.Identity(6)),
        1.3,
    ),
}
ROOM = 20 * N


def of_inverse(A):
    return pl.inv(A).diagonal()


ASKS = {
    "solve": (lambda A: A.explain("solve", np.ones(N)), lambda A: pl.solve(A, np.ones(N))),
    "logdet": (lambda A: A.explain("logdet"), pl.logdet),
    "inverse": (lambda A: pl.inv(A).explain("diagonal"), of_inverse),
}


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("name", SPELLED)
def test_the_price(name, ask):
    one, two, most = SPELLED[name]
    given = Given("float64")
    price, _ = ASKS[ask]
    a, b = price(one(given)).flops, price(two(given)).flops
    assert a <= most * b + ROOM, (a, b)


@pytest.mark.parametrize("dtype", ["float64", "complex128", "complex64"])
@pytest.mark.parametrize("name", SPELLED)
def test_the_values(name, dtype):
    given, tol = Given(dtype), 1e-3 if dtype == "complex64" else 1e-10
    one, two, _ = SPELLED[name]
    dense = np.asarray(one(given).toarray(), np.complex128)
    want = np.linalg.inv(dense)
    for A in (one(given), two(given)):
        np.testing.assert_allclose(A.toarray(), dense, atol=tol * np.abs(dense).max())
        np.testing.assert_allclose(A @ np.ones(N), dense.sum(1), atol=tol * N * np.abs(dense).max())
        scale = np.abs(want).sum(1).max()
        np.testing.assert_allclose(pl.solve(A, np.ones(N)), want.sum(1), atol=tol * scale)
        np.testing.assert_allclose(of_inverse(A), np.diagonal(want), atol=tol * scale)
        got = pl.slogdet(A)[1]
        np.testing.assert_allclose(got, np.linalg.slogdet(dense)[1], rtol=tol, atol=tol)


def test_what_gets_wider_stays():
    """A u v' + A w z' is of rank two beside D; A (u v' + w z') would be n x n."""
    given = Given("float64")
    r = np.random.default_rng(2)
    u, v, w, z = (pl.Dense(r.standard_normal((N, 1)) / 9) for _ in range(4))
    A = given.D + given.A @ u @ v.T + given.A @ w @ z.T
    assert A.explain("solve", np.ones(N)).flops < 40 * N * N
    np.testing.assert_allclose(A.toarray() @ pl.solve(A, np.ones(N)), np.ones(N), atol=1e-9)


def test_hermitian_sums_stay_so():
    """A R + R A' + A A' begins alike in two terms, and is Hermitian as it is written only."""
    g = Given("float64")
    A = 0.1 * ((g.A @ g.R + g.R @ g.A.T) + (g.A @ g.A.T + g.S))
    names = [step["name"] for step in A.explain("solve", np.ones(N)).steps]
    assert (names.count("gemm"), names.count("syrk")) == (1, 1)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_one_product_of_what_cancels(dtype):
    """(A - B) X has an error of u |A - B| |X|, which the sum of products has not."""
    r = np.random.default_rng(3)
    a, x = values(r, (N, N), dtype), values(r, (N, N), dtype)
    b = a + 1e-9 * values(r, (N, N), dtype)
    A = pl.Dense(a) @ pl.Dense(x) - pl.Dense(b) @ pl.Dense(x)
    want = (a - b) @ x
    np.testing.assert_allclose(A.toarray(), want, atol=1e-13 * np.abs(want).max())


@pytest.mark.parametrize("beside", ["alone", "a Kron"])
def test_units_within_a_kron(beside):
    """(I I') (x) (h h') + c I is one Kron; a shift of two Krons is left to both."""
    g = Given("float64")
    z, P = pl.Kron(g.Many, g.h), pl.Dense(positive(np.random.default_rng(4), N // K, "float64"))
    A = z @ z.T + 3 * g.I
    fired = {rule["name"] for rule in A.explain("solve", np.ones(N)).rules}
    if beside == "alone":
        assert "solve-kron" in fired
    else:
        A = pl.Kron(P, g.F) + A
        assert "solve-update" in {rule["name"] for rule in A.explain("solve", np.ones(N)).rules}
    np.testing.assert_allclose(A.toarray() @ pl.solve(A, np.ones(N)), np.ones(N), atol=1e-9)
