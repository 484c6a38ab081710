"""One matrix written in two ways costs the same: solves and determinants within 1.3 by explain's
own flops and memory."""

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl

N, K = 120, 4


class Given:
    def __init__(self):
        r = np.random.default_rng(6)
        self.U, self.V = r.standard_normal((2, N, K))
        self.d = 2 + r.random(N)
        self.c = np.exp(-np.arange(N) / 5.0)
        self.h = np.r_[self.c[0], 0.5 * self.c[1:]]
        self.C = np.eye(K) + 0.1 * r.standard_normal((K, K))
        x = r.standard_normal((N, N))
        self.S = x @ x.T + N * np.eye(N)
        self.G = x + 3 * N * np.eye(N)
        self.L = np.tril(x) + 3 * N * np.eye(N)
        self.P, self.Q = ((lambda y: y @ y.T + k * np.eye(k))(r.random((k, k))) for k in (12, 10))
        self.i = np.sort(r.permutation(N)[:100])
        self.p = r.permutation(N)
        self.X = r.standard_normal((2 * N, N))


g = Given()
D, E, LR = pl.Diag, pl.Dense, pl.LowRank
I_ = pl.Identity(N)
u, v, C = E(g.U), E(g.V), E(g.C)
kron = pl.Kron(E(g.P, "pos"), E(g.Q, "pos"))
T = pl.Toeplitz(g.c)
band = pl.Tridiagonal(g.d[1:], 9 + g.d, g.d[1:])
s = pl.Selection(g.i, N)

big = pl.Sparse(sp.random(480, 480, 0.008, random_state=1) + 4 * sp.eye(480))
few = pl.Selection(np.arange(0, 480, 7), 480)

PAIRS = {
    "an update of a sparse matrix": lambda: (big + few.T @ few, pl.LowRankUpdate(big, few.T)),
    "terms of an update": lambda: (D(g.d) + LR(g.U, g.V), LR(g.U, g.V) + D(g.d)),
    "LowRankUpdate": lambda: (D(g.d) + LR(g.U), pl.LowRankUpdate(D(g.d), g.U)),
    "a root": lambda: (D(g.d) + LR(g.U), D(g.d) + pl.Root(g.U)),
    "a root first": lambda: (D(g.d) + LR(g.U), pl.Root(g.U) + D(g.d)),
    "a multiple of a root": lambda: (0.5 * I_ + 2 * LR(g.U), 2 * pl.Root(g.U) + 0.5 * I_),
    "U U^T written out": lambda: (D(g.d) + LR(g.U), D(g.d) + u @ u.T),
    "U V^T written out": lambda: (D(g.d) + LR(g.U, g.V), D(g.d) + u @ v.T),
    "V^T as its own array": lambda: (D(g.d) + u @ v.T, D(g.d) + u @ E(np.ascontiguousarray(g.V.T))),
    "U C V^T": lambda: (D(g.d) + LR(g.U, g.V, g.C), D(g.d) + u @ C @ v.T),
    "V given as U": lambda: (D(g.d) + LR(g.U), D(g.d) + LR(g.U, g.U)),
    "a transposed update": lambda: (D(g.d) + LR(g.U, g.V), D(g.d) + LR(g.V, g.U).T),
    "an update of views": lambda: (D(g.d) + LR(g.U, g.V), (D(g.d) + LR(g.V, g.U)).T),
    "twice transposed": lambda: (D(g.d) + LR(g.U, g.V), (D(g.d).T + (u @ v.T).T).T),
    "two updates": lambda: (D(g.d) + LR(g.U) + LR(g.V), D(g.d) + (LR(g.U) + LR(g.V))),
    "U side by side": lambda: (D(g.d) + LR(g.U) + LR(g.V), D(g.d) + LR(np.hstack([g.U, g.V]))),
    "minus": lambda: (D(g.d) - 0.01 * LR(g.U, g.V), D(g.d) + LR(-0.01 * g.U, g.V)),
    "a multiple outside": lambda: (
        2.0 * D(g.d) + 2.0 * LR(g.U, g.V),
        2.0 * (D(g.d) + LR(g.U, g.V)),
    ),
    "a multiple of U V": lambda: (2.0 * (D(g.d) + u @ v.T), 2.0 * D(g.d) + 2.0 * (u @ v.T)),
    "c I as Diag": lambda: (0.5 * I_ + LR(g.U), D(np.full(N, 0.5)) + LR(g.U)),
    "I on the other side": lambda: (0.5 * I_ + LR(g.U, g.V), LR(g.U, g.V) + 0.5 * I_),
    "c I and U V": lambda: (0.5 * I_ + u @ v.T, u @ v.T + 0.5 * I_),
    "T of one vector": lambda: (pl.Toeplitz(g.c), pl.Toeplitz(g.c, g.c)),
    "T transposed": lambda: (T, T.T),
    "T of two, turned": lambda: (pl.Toeplitz(g.c, g.h), pl.Toeplitz(g.h, g.c).T),
    "T + c I": lambda: (T + 0.5 * I_, 0.5 * I_ + T),
    "S T S.T": lambda: (
        s @ T @ s.T + 0.5 * pl.Identity(100),
        T[np.ix_(g.i, g.i)] + 0.5 * pl.Identity(100),
    ),
    "(T + c I)[i, i]": lambda: (
        (T + 0.5 * I_)[np.ix_(g.i, g.i)],
        T[np.ix_(g.i, g.i)] + 0.5 * pl.Identity(100),
    ),
    "S T(c, c) S.T": lambda: (
        s @ T @ s.T + 0.5 * pl.Identity(100),
        s @ pl.Toeplitz(g.c, g.c) @ s.T + 0.5 * pl.Identity(100),
    ),
    "Kron + c I": lambda: (kron + 0.5 * I_, 0.5 * I_ + kron),
    "Kron with I": lambda: (
        kron + 0.5 * I_,
        kron + 0.5 * pl.Kron(pl.Identity(12), pl.Identity(10)),
    ),
    "Kron transposed": lambda: (kron + 0.5 * I_, (kron + 0.5 * I_).T),
    "a multiple of Kron": lambda: (2.0 * kron + I_, 2.0 * (kron + 0.5 * I_)),
    "KronSum by Krons": lambda: (
        pl.KronSum(E(g.P, "pos"), E(g.Q, "pos")),
        pl.Kron(E(g.P, "pos"), pl.Identity(10)) + pl.Kron(pl.Identity(12), E(g.Q, "pos")),
    ),
    "Kron of T": lambda: (
        pl.Kron(pl.Toeplitz(g.c[:12]), pl.Toeplitz(g.c[:10])) + I_,
        I_ + pl.Kron(pl.Toeplitz(g.c[:12], g.c[:12]), pl.Toeplitz(g.c[:10]).T),
    ),
    "inverse of a Kron": lambda: (
        pl.Kron(pl.inv(E(g.P, "pos")), pl.inv(E(g.Q, "pos"))),
        pl.inv(kron),
    ),
    "a tridiagonal plus c I": lambda: (band + I_, pl.Tridiagonal(g.d[1:], 10 + g.d, g.d[1:])),
    "D on both sides of bands": lambda: (D(g.d) @ band, D(g.d) @ (band.T).T),
    "a transposed band": lambda: (
        pl.Tridiagonal(g.d[1:], 9 + g.d, g.c[1:]),
        pl.Tridiagonal(g.c[1:], 9 + g.d, g.d[1:]).T,
    ),
    "bands in another order": lambda: (band + D(g.d) + I_, I_ + (D(g.d) + band)),
    "L L^T": lambda: (
        pl.Triangular(g.L) @ pl.Triangular(g.L).T,
        E(g.L, "lower triangular") @ E(g.L, "lower triangular").T,
    ),
    "Root": lambda: (pl.Root(pl.Triangular(g.L)), (lambda t: t @ t.T)(pl.Triangular(g.L))),
    "LowRank of a triangle": lambda: (pl.Root(pl.Triangular(g.L)), LR(pl.Triangular(g.L))),
    "an upper triangle": lambda: (
        pl.Triangular(g.L).T,
        pl.Triangular(np.ascontiguousarray(g.L.T), lower=False),
    ),
    "declared lower": lambda: (pl.Triangular(g.L), E(g.L, "lower triangular")),
    "declared upper": lambda: (pl.Triangular(g.L.T, lower=False), E(g.L.T, "upper triangular")),
    "normal equations": lambda: (
        (lambda x: x.T @ x + I_)(E(g.X)),
        (lambda x: I_ + x.T @ x)(E(g.X)),
    ),
    "the Gram as H": lambda: ((lambda x: x.T @ x + I_)(E(g.X)), (lambda x: x.H @ x + I_)(E(g.X))),
    "X of its transpose": lambda: (
        (lambda x: x.T @ x + I_)(E(g.X)),
        (lambda x: x @ x.T + I_)(E(g.X.T)),
    ),
    "products nested": lambda: (D(g.d) @ (E(g.G) @ band), (D(g.d) @ E(g.G)) @ band),
    "a product transposed": lambda: (band.T @ D(g.d) @ E(g.G).T, (E(g.G) @ D(g.d) @ band).T),
    "a product of inverses": lambda: (pl.inv(band) @ pl.inv(E(g.G)), pl.inv(E(g.G) @ band)),
    "inverse of a transpose": lambda: (
        pl.inv(D(g.d) + LR(g.U, g.V)).T,
        pl.inv((D(g.d) + LR(g.U, g.V)).T),
    ),
    "symmetric, transposed": lambda: (E(g.S, "pos") + D(g.d), (E(g.S, "pos") + D(g.d)).T),
    "declared sym": lambda: (E(g.S, "sym"), E(g.S, "sym").T),
    "A + A.T": lambda: ((lambda a: a + a.T)(E(g.G)), (lambda a: a.T + a)(E(g.G))),
    "blocks": lambda: (pl.BlockDiag(E(g.P, "pos"), band), pl.BlockDiag(E(g.P, "pos").T, band.T)),
    "blocks with Zeros": lambda: (
        pl.BlockDiag(band, E(g.P)),
        pl.Block([[band, pl.Zeros((N, 12))], [pl.Zeros((12, N)), E(g.P)]]),
    ),
    "a permuted Diag": lambda: (
        pl.Permutation(g.p) @ D(g.d) @ pl.Permutation(g.p).T,
        pl.Permutation(g.p) @ D(g.d) @ pl.inv(pl.Permutation(g.p)),
    ),
    "a power": lambda: (band @ band, band**2),
    "Sparse, turned": lambda: (
        pl.Sparse(sp.csr_array(g.S * (g.S > 40) + N * np.eye(N))),
        pl.Sparse(sp.csc_array((g.S * (g.S > 40) + N * np.eye(N)).T)).T,
    ),
    "congruence": lambda: (pl.Congruence(E(g.G), band), E(g.G) @ band @ E(g.G).T),
    "Circulant, turned": lambda: (
        pl.Circulant(g.c + np.eye(N)[0] * 9),
        pl.Circulant((g.c + np.eye(N)[0] * 9)[-np.arange(N)]).T,
    ),
    "an inverse twice": lambda: (pl.inv(pl.inv(band) @ D(g.d)), D(1 / g.d) @ band),
    "D (D + U V) D": lambda: (
        D(g.d) @ (D(g.d) + LR(g.U, g.V)) @ D(g.d),
        (D(g.d) @ (D(g.d) + LR(g.V, g.U)) @ D(g.d)).T,
    ),
}


def figures(ask):
    with pl.explaining() as e:
        value = ask()
    return value, e.explanation.flops, e.explanation.memory


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("ask", [pl.solve, pl.slogdet])
def test_two_spellings_cost_the_same(pair, ask):
    one, two = PAIRS[pair]()
    n = one.shape[0]
    np.testing.assert_allclose(one.toarray(), two.toarray(), rtol=1e-9, atol=1e-9)
    b = (np.random.default_rng(1).standard_normal((n, 3)),) if ask is pl.solve else ()
    (x, fx, mx), (y, fy, my) = figures(lambda: ask(one, *b)), figures(lambda: ask(two, *b))
    np.testing.assert_allclose(x, y, rtol=1e-7, atol=1e-9)
    room = 12 * n  # a few passes over vectors
    told = f"{fx:.3g} and {fy:.3g} flops, {mx} and {my} bytes"
    assert max(fx, fy) <= 1.3 * min(fx, fy) + room, told
    assert max(mx, my) <= 1.3 * min(mx, my) + 8 * room, told


@pytest.mark.parametrize("n", [15, 17, 100, 400])
@pytest.mark.parametrize("p", [2, 3, 5])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_diagonals_of_powers_of_bands(p, n, dtype):
    """As of the product that the power is: they took the dense form of one half."""
    r = np.random.default_rng(n)
    a = pl.Tridiagonal(*(r.standard_normal((n - abs(k),)).astype(dtype) for k in (-1, 0, 1)))
    product = a
    for _ in range(p - 1):
        product = product @ a
    dense = np.linalg.matrix_power(a.toarray(), p)
    with pl.config(check_plans=True, verify=True):
        for ask in (pl.diagonal, pl.trace, lambda A: pl.diagonal(A, 1)):
            (x, fx, _), (y, fy, _) = figures(lambda: ask(a**p)), figures(lambda: ask(product))
            np.testing.assert_allclose(x, ask(dense), rtol=1e-10, atol=1e-9)
            np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-9)
            assert fx <= 1.3 * fy + 12 * n
            assert n < 400 or fx < n * n


@pytest.mark.parametrize("n", [17, 60, 200])
def test_a_covariance_by_its_precision_multiplies_with_what_is_given(n):
    """(P^-1 + H^T H)^-1: P H^T is a product with H, not with its dense form, and values hold."""
    r = np.random.default_rng(n)
    x = r.standard_normal((n, n))
    P, H = pl.Dense(x @ x.T + np.eye(n), "pos"), pl.Selection(np.arange(0, n, 4), n)
    A = pl.inv(pl.inv(P) + H.T @ H)
    y = r.standard_normal(n)
    with pl.config(check_plans=True, verify=True):
        got, flops, _ = figures(lambda: A @ y)
    want = np.linalg.inv(np.linalg.inv(P.toarray()) + H.T.toarray() @ H.toarray()) @ y
    np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-7 * abs(want).max())
    assert n < 200 or flops < n**3 / 3 + 60 * n * n
