"""Formulas that spell out an inverse, by Woodbury or as a parallel sum, and covariances by their
precision, cost what the inverse itself does, and are as accurate as what is written."""

import numpy as np
import pytest
from drawn import figures, positive, values

import pylinop as pl

N, K = 120, 6
inv = pl.inv


class Given:
    def __init__(self, dtype):
        r = np.random.default_rng(11)
        real = np.empty(0, dtype).real.dtype
        self.P, self.Q = (pl.Dense(positive(r, N, dtype), "pos") for _ in range(2))
        self.C = pl.Dense(positive(r, K, dtype), "pos")
        self.U, self.V = (pl.Dense(values(r, (N, K), dtype) / 8) for _ in range(2))
        self.H = pl.Dense(values(r, (K, N), dtype))
        self.D, self.R = (pl.Diag((1 + r.random(n)).astype(real)) for n in (N, K))
        e = r.random(N - 1).astype(real) / 3
        self.T = pl.Tridiagonal(e, (2 + r.random(N)).astype(real), e)
        self.I, self.J = pl.Identity(N), pl.Identity(K)


def by_solves(g):
    Z = inv(g.D) @ g.U
    return inv(g.D) - Z @ inv(g.J + g.U.H @ Z) @ Z.H


# The same twice: as one writes what is known, and spelled out.
PAIRS = {
    "Woodbury": lambda g: (
        inv(g.D + g.U @ g.U.H),
        inv(g.D) - inv(g.D) @ g.U @ inv(g.J + g.U.H @ inv(g.D) @ g.U) @ g.U.H @ inv(g.D),
    ),
    "of two": lambda g: (
        inv(g.D + g.U @ g.V.H),
        inv(g.D) - inv(g.D) @ g.U @ inv(g.J + g.V.H @ inv(g.D) @ g.U) @ g.V.H @ inv(g.D),
    ),
    "with a middle": lambda g: (
        inv(g.D + g.U @ g.C @ g.U.H),
        inv(g.D) - inv(g.D) @ g.U @ inv(inv(g.C) + g.U.H @ inv(g.D) @ g.U) @ g.U.H @ inv(g.D),
    ),
    "of c I": lambda g: (
        inv(0.5 * g.I + g.U @ g.U.H),
        2.0 * (g.I - g.U @ inv(0.5 * g.J + g.U.H @ g.U) @ g.U.H),
    ),
    "minus": lambda g: (
        inv(g.D - 0.25 * g.U @ g.U.H),
        inv(g.D) + inv(g.D) @ g.U @ inv(4.0 * g.J - g.U.H @ inv(g.D) @ g.U) @ g.U.H @ inv(g.D),
    ),
    "of a band": lambda g: (
        inv(g.T + g.U @ g.U.H),
        inv(g.T) - inv(g.T) @ g.U @ inv(g.J + g.U.H @ inv(g.T) @ g.U) @ g.U.H @ inv(g.T),
    ),
    "of a matrix": lambda g: (
        inv(g.P + g.U @ g.U.H),
        inv(g.P) - inv(g.P) @ g.U @ inv(g.J + g.U.H @ inv(g.P) @ g.U) @ g.U.H @ inv(g.P),
    ),
    "by solves": lambda g: (inv(g.D + g.U @ g.U.H), by_solves(g)),
    "parallel": lambda g: (g.P @ inv(g.P + g.Q) @ g.Q, inv(inv(g.P) + inv(g.Q))),
    "beside c I": lambda g: (g.P @ inv(g.I + 0.5 * g.P), inv(inv(g.P) + 0.5 * g.I)),
}
ASKS = {
    "solve": (pl.solve, {"parallel", "beside c I"}),
    "logdet": (pl.logdet, {"parallel"}),  # of each term: cond(P) is lost otherwise
    "diagonal of the inverse": (lambda A: pl.inv(A).diagonal(), {"parallel", "beside c I"}),
}


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("pair", PAIRS)
def test_what_is_spelled_out_costs_as_much(pair, dtype):
    g = Given(dtype)
    one, two = PAIRS[pair](g)
    b = values(np.random.default_rng(1), N, dtype)
    wide = one.astype("complex128").toarray()
    eps = np.finfo(dtype).eps * 100 * N * np.linalg.cond(wide)
    for name, (ask, apart) in ASKS.items():
        args = (b,) if ask is pl.solve else ()
        x, fx = figures(ask, one, *args)
        y, fy = figures(ask, two, *args)
        np.testing.assert_allclose(y, x, rtol=eps, atol=eps * np.abs(x).max())
        assert pair in apart or fy <= 1.3 * fx + 40 * N, (name, fx, fy)
        assert fy < 3.2 * N**3, (name, fy)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("noise", ["Diag", "Dense", "none"])
def test_a_posterior_by_its_precision(noise, dtype):
    """(P^-1 + H^H R^-1 H)^-1 beside P - P H^H (R + H P H^H)^-1 H P."""
    g = Given(dtype)
    R = {"Diag": g.R, "Dense": g.C, "none": g.J}[noise]
    one = inv(inv(g.P) + (g.H.H @ inv(R) @ g.H if noise != "none" else g.H.H @ g.H))
    two = g.P - g.P @ g.H.H @ inv(R + g.H @ g.P @ g.H.H) @ g.H @ g.P
    b = values(np.random.default_rng(1), N, dtype)
    for ask in (
        lambda A: A @ b,
        lambda A: A.diagonal(),
        lambda A: A.trace(),
        lambda A: A.toarray(),
    ):
        x, fx = figures(ask, one)
        y, fy = figures(ask, two)
        assert np.abs(np.asarray(x) - y).max() <= 1e-11 * np.abs(y).max()
        assert fx <= 2 * fy, (fx, fy)  # what checks cost, of 120 rows


@pytest.mark.filterwarnings("ignore::pylinop.IllConditionedWarning")
@pytest.mark.parametrize("power", [0, 4, 8, 12])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_graded_priors(rng, power, scale):
    """The backward error is one that the formula as written may have, or a direct one."""
    n, m = 80, 5
    q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    p = scale * q * 10.0 ** -np.linspace(0, power, n) @ q.T
    p, h, d = (p + p.T) / 2, rng.standard_normal((m, n)), 1 + rng.random(n)
    b = rng.standard_normal(n)
    P, H = pl.Dense(p, "pos"), pl.Dense(h)
    inverse = q / (scale * 10.0 ** -np.linspace(0, power, n)) @ q.T
    for A, a in (
        (inv(P) + H.T @ pl.Diag(np.full(m, 2.0)) @ H, inverse + 2 * h.T @ h),
        (inv(P) + pl.Diag(d), inverse + np.diag(d)),
        (inv(P) + 0.5 * pl.Identity(n), inverse + 0.5 * np.eye(n)),
    ):
        x = pl.solve(A, b)
        size = np.linalg.norm(a, 2) * np.linalg.norm(x) + np.linalg.norm(b)
        assert np.linalg.norm(b - a @ x) <= (10 * n + 10.0**power) * np.finfo(float).eps * size


@pytest.mark.parametrize("sign", [1, -1])
def test_diagonals_of_any_sign(rng, sign):
    """What the check needs to be positive is looked at when its numbers are there."""
    n, m = 60, 4
    P, H = pl.Dense(positive(rng, n, "float64"), "pos"), pl.Dense(rng.standard_normal((m, n)))
    d, r = 1 + rng.random(n), 0.1 * (1 + rng.random(m))
    d[3] *= sign
    r[1] *= sign
    b = rng.standard_normal(n)
    for A in (inv(P) + pl.Diag(d), inv(P) + H.T @ pl.Diag(r) @ H):
        a = np.linalg.inv(P.toarray()) + (A - inv(P)).toarray()
        with pl.config(check_plans=True, verify=True):
            x, det, diagonal, full = pl.solve(A, b), pl.slogdet(A), inv(A).diagonal(), inv(A)
            full = full.toarray()
        want = np.linalg.inv(a)
        most = 1e-12 * np.linalg.cond(a)
        assert np.abs(x - want @ b).max() <= most * np.abs(want).max() * np.abs(b).sum()
        np.testing.assert_allclose(det, np.linalg.slogdet(a), rtol=0, atol=1e3 * most)
        assert np.abs(diagonal - np.diagonal(want)).max() <= most * np.abs(want).max()
        assert np.abs(full - want).max() <= most * np.abs(want).max()


def test_what_only_looks_like_it(rng):
    """Another coefficient, another factor or another middle is no inverse: as written."""
    g = Given("float64")
    S, B = inv(g.J + g.U.T @ inv(g.D) @ g.U), inv(g.D)
    for A in (
        B - 0.5 * B @ g.U @ S @ g.U.T @ B,
        B + B @ g.U @ S @ g.U.T @ B,
        B - B @ g.V @ S @ g.V.T @ B,
        B - B @ g.U @ inv(g.J + g.U.T @ g.U) @ g.U.T @ B,
        B - g.U @ S @ g.U.T,
        2 * B - B @ g.U @ S @ g.U.T @ B,
    ):
        a, b = A.toarray(), rng.standard_normal(N)
        with pl.config(check_plans=True, verify=True):
            x, det = pl.solve(A, b), pl.slogdet(A)
        want = np.linalg.solve(a, b)
        np.testing.assert_allclose(x, want, rtol=0, atol=1e-10 * np.abs(want).max())
        np.testing.assert_allclose(det, np.linalg.slogdet(a), rtol=1e-10, atol=1e-10)


def test_what_has_no_inverse(rng):
    """Noise that is 0 somewhere: the posterior has none, and its determinant is none of 1 / 0."""
    D, H = pl.Diag(1 + rng.random(40)), pl.Dense(rng.standard_normal((3, 40)))
    R = pl.Diag(np.array([0.5, 0.0, 1.0]))
    A = D - D @ H.T @ inv(R + H @ D @ H.T) @ H @ D
    with pytest.raises(np.linalg.LinAlgError):
        pl.solve(A, np.ones(40))
    assert pl.slogdet(A)[1] < -25 or pl.slogdet(A)[0] == 0


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_sums_within_thin_products(dtype):
    """D + U (C + I) V^H is an update of rank K, as D + U C V^H is."""
    g = Given(dtype)
    b = values(np.random.default_rng(1), N, dtype)
    for A, like in (
        (g.D + g.U @ (g.C + g.J) @ g.U.H, g.D + g.U @ g.C @ g.U.H),
        (g.D + (g.U + g.V) @ (g.U + g.V).H, g.D + g.U @ g.U.H),
        (g.D - 0.5 * (g.U @ (g.C - g.J) @ g.V.H), g.D + g.U @ g.C @ g.V.H),
    ):
        a = A.toarray()
        for ask, args in ((pl.solve, (b,)), (pl.slogdet, ()), (lambda X: inv(X).diagonal(), ())):
            x, fx = figures(ask, A, *args)
            assert fx <= 4 * figures(ask, like, *args)[1] + 40 * N
            want = {pl.solve: np.linalg.solve, pl.slogdet: np.linalg.slogdet}.get(
                ask, lambda a: np.diagonal(np.linalg.inv(a))
            )(a, *args)
            for got, w in zip(np.atleast_1d(x), np.atleast_1d(want), strict=True):
                np.testing.assert_allclose(got, w, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("p", [1, -1, np.inf, -np.inf, "fro", 2])
@pytest.mark.parametrize("dtype", ["int16", "int64", "float64"])
def test_norms_of_inverses_of_inverses(p, dtype):
    """Of integers they stay as written: 1-norms were n over those of the inverse."""
    a = np.array([[5, 2], [4, 0]], dtype)
    got = pl.matrix_norm(inv(inv(pl.Dense(a))), p)
    np.testing.assert_allclose(got, np.linalg.norm(a.astype(float), p), rtol=1e-13)
    F = pl.DFT(5)
    np.testing.assert_allclose(pl.matrix_norm(inv(F), 1), 1.0, rtol=1e-14)


# P is only solved with as these are written, so that one triangle of it is read.
ONE_TRIANGLE = {
    "beside a small D": lambda P, g: pl.solve(inv(P) + 1e-30 * g.D, g.b),
    "a product by one": lambda P, g: pl.solve(inv(P) + g.u @ g.u.H, g.b),
    "by one, logdet": lambda P, g: pl.logdet(inv(P) + g.u @ g.u.H),
    "by one, dense": lambda P, g: inv(inv(P) + pl.LowRank(g.u)).toarray(),
    "by one, diagonal": lambda P, g: inv(inv(P) + pl.LowRank(g.u)).diagonal(),
    "shifted": lambda P, g: pl.solve(inv(P + g.I) + g.u @ g.u.H, g.b),
    "parallel": lambda P, g: inv(inv(P) + 2.0 * inv(g.Q)).toarray(),
    "parallel, diagonal": lambda P, g: inv(inv(P) + inv(g.Q)).diagonal(),
    "parallel, logdet": lambda P, g: pl.logdet(inv(P) + inv(g.Q)),
    "beside I": lambda P, g: inv(inv(P) + g.I).toarray(),
    "spelled out": lambda P, g: pl.solve(
        inv(P) - inv(P) @ g.U @ inv(g.J + g.U.H @ inv(P) @ g.U) @ g.U.H @ inv(P), g.b
    ),
}


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("ask", ONE_TRIANGLE.values(), ids=list(ONE_TRIANGLE))
def test_the_named_triangle_alone_is_read(ask, dtype):
    g = Given(dtype)
    r = np.random.default_rng(12)
    g.b, g.u = values(r, N, dtype), pl.Dense(values(r, (N, 1), dtype))
    whole = g.P.toarray()
    half = np.where(np.tri(N, k=-1, dtype=bool), 7, whole)
    want = ask(pl.Dense(whole, "pos"), g)
    got = ask(pl.Dense(half, "pos"), g)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-9 * np.abs(want).max())


def test_of_a_covariance_that_has_no_inverse(rng):
    G = pl.Dense(rng.standard_normal((N, 5)))
    A = inv(G @ G.T) + pl.LowRank(rng.standard_normal((N, 2)))
    for ask in (lambda: inv(A).toarray(), lambda: inv(A).diagonal(), lambda: A.solve(np.ones(N))):
        with pytest.raises(np.linalg.LinAlgError, match="rank at most"):
            ask()
