"""Sums that are solved by structure only together: circulants and multiples of the identity, and a
thin term beside Kron + c I, KronSum + c I, circulants, Matern kernels on a line and diagonals."""

import numpy as np
import pytest

import pylinop as pl


class Parts:
    def __init__(self, p, q, kind, r):
        n = self.n = p * q
        self.r = r
        self.z = kind in "FD"

        def numbers(*shape):
            x = r.standard_normal(shape)
            return (x + 1j * r.standard_normal(shape) if self.z else x).astype(kind)

        def definite(k):
            x = numbers(k, k)
            return x @ x.conj().T / k + np.eye(k, dtype=kind)

        self.U, self.V = 0.3 * numbers(n, 3), 0.3 * numbers(n, 3)
        self.c = numbers(n) / n
        self.c[0] += 3
        self.P, self.Q = definite(p), definite(q)
        self.d = (1 + r.random(n)).astype(kind if not self.z else kind.lower())
        self.x = np.asarray(0.3 * n * r.random((n, 1)))
        self.b = numbers(n, 2)
        self.I = pl.Identity(n)
        self.C = pl.Circulant(self.c)
        self.K = pl.Kron(self.P, self.Q)
        self.S = pl.KronSum(self.P, self.Q)
        self.M = pl.Kernel("matern32", self.x.astype(self.d.dtype))
        self.A, self.W = pl.Dense(self.U), numbers(3, 3)
        self.Z = pl.Kron(pl.Identity(self.n // 4), 0.3 * numbers(1, 4))
        self.L, self.G = pl.LowRank(self.U), pl.LowRank(0.1 * self.U, self.V)


SUMS = {
    "C + I": lambda a: a.C + a.I,
    "c I + C": lambda a: 0.5 * a.I + a.C,
    "C + C + c I": lambda a: (a.C + 0.5 * a.I) + (a.C + a.I),
    "C^H C + c I": lambda a: a.C.H @ a.C + 0.1 * a.I,
    "its view": lambda a: (a.C + 0.5 * a.I).T,
    "a multiple": lambda a: 2 * (a.C + 0.5 * a.I),
    "C + c I + U": lambda a: a.C + 0.5 * a.I + a.G,
    "U first": lambda a: a.G + (a.C + 0.5 * a.I),
    "c I + U + C": lambda a: (0.5 * a.I + a.G) + a.C,
    "Kron + c I + U": lambda a: a.K + 0.5 * a.I + a.L,
    "U + Kron + c I": lambda a: a.L + (a.K + 0.5 * a.I),
    "c I + U + Kron": lambda a: (0.5 * a.I + a.L) + a.K,
    "an update": lambda a: pl.LowRankUpdate(a.K + 0.5 * a.I, a.U),
    "a general update": lambda a: pl.LowRankUpdate(a.K + 0.5 * a.I, 0.1 * a.U, a.V),
    "two updates": lambda a: a.K + a.L + a.I + a.G,
    "a difference": lambda a: a.K + 0.5 * a.I - 0.01 * a.L,
    "KronSum + c I + U": lambda a: a.S + 0.5 * a.I + a.L,
    "KronSum + U": lambda a: a.S + a.L,
    "M + D + U": lambda a: a.M + pl.Diag(a.d) + a.L,
    "U + M + D": lambda a: a.L + (pl.Diag(a.d) + a.M),
    "transposed": lambda a: (a.K + 0.5 * a.I + a.G).T,
    "a product beside C": lambda a: a.A @ a.A.H + a.C + 0.5 * a.I,
    "a multiple of one": lambda a: a.C + 0.5 * a.I + 0.3 * (a.A @ a.A.H),
    "weights between": lambda a: a.K + 0.5 * a.I + a.A @ pl.Diag(a.d[:3]) @ a.A.H,
    "a matrix between": lambda a: a.C + 0.5 * a.I + a.A @ pl.Dense(a.W) @ pl.Dense(a.V).H,
    "two products": lambda a: a.A @ a.A.H + a.C + 0.5 * a.I + a.G,
    "effects of groups": lambda a: a.K + 0.5 * a.I + a.Z.H @ (2.0 * pl.Identity(a.n // 4)) @ a.Z,
    "of groups, thin": lambda a: a.C + a.I + a.Z.H @ a.Z,
    "a band beside U": lambda a: pl.Diag(a.d) + a.Z.H @ a.Z + a.L,
}


@pytest.mark.parametrize("spelt", SUMS)
@pytest.mark.parametrize("kind", "fdFD")
def test_against_dense(spelt, kind):
    r = np.random.default_rng()
    a = Parts(16, 15, kind, r)
    A = SUMS[spelt](a)
    D = A.toarray().astype(np.complex128 if a.z else np.float64)
    near = 2e-3 if kind in "fF" else 1e-9
    want = np.linalg.solve(D, a.b)
    np.testing.assert_allclose(pl.solve(A, a.b), want, rtol=near, atol=near * abs(want).max())
    np.testing.assert_allclose(
        (a.b.T @ pl.inv(A)).T, np.linalg.solve(D.T, a.b), rtol=near, atol=near * abs(want).max()
    )
    sign, log = pl.slogdet(A)
    s, l = np.linalg.slogdet(D)
    np.testing.assert_allclose(sign, s, atol=near * a.n)
    np.testing.assert_allclose(log, l, rtol=near, atol=near)
    R = np.linalg.inv(D).diagonal()
    np.testing.assert_allclose(pl.diagonal(pl.inv(A)), R, rtol=near, atol=near * abs(R).max())


@pytest.mark.parametrize("spelt", [k for k in SUMS if "groups" not in k])  # of rank n / 4
def test_no_cube(spelt):
    """The growth of explain's flops with the size, of solves, determinants and diagonals."""
    r = np.random.default_rng(5)
    for action in ("solve", "logdet", "diagonal"):
        flops = []
        for p, q in ((16, 12), (32, 24)):
            a = Parts(p, q, "d", r)
            A = SUMS[spelt](a)
            if action == "diagonal":
                flops.append(pl.inv(A).explain("diagonal").flops)
            else:
                flops.append(A.explain(action, *([a.b] if action == "solve" else [])).flops)
        assert flops[1] < 0.1 * a.n**3, action
        assert flops[1] < 16 * flops[0], action  # of a cube: 64


@pytest.mark.parametrize("p, q", [(3, 13), (5, 8), (2, 19), (1, 39), (1, 40)])
def test_both_sides_of_the_least_size(p, q):
    a = Parts(p, q, "d", np.random.default_rng())
    for A in (a.K + 0.5 * a.I + a.L, a.C + a.I):
        D = A.toarray()
        np.testing.assert_allclose(pl.solve(A, a.b), np.linalg.solve(D, a.b), rtol=1e-9)
        np.testing.assert_allclose(pl.logdet(A), np.linalg.slogdet(D)[1], rtol=1e-9)


@pytest.mark.parametrize("rank", [29, 30, 31])
def test_wide_updates(rank):
    r = np.random.default_rng()
    a = Parts(6, 10, "d", r)
    A = a.K + 0.5 * a.I + pl.LowRank(r.standard_normal((60, rank)))
    np.testing.assert_allclose(pl.solve(A, a.b), np.linalg.solve(A.toarray(), a.b), rtol=1e-9)


def test_a_singular_base():
    """Where what is updated is singular and the whole is not, the safer way is taken."""
    r = np.random.default_rng()
    n = 120
    x = np.linalg.qr(r.standard_normal((12, 12)))[0]
    P = (x * np.r_[0.0, 1 + r.random(11)]) @ x.T
    u = np.kron(x[:, :1], np.eye(10))
    A = pl.Kron(P, pl.Identity(10)) + 0.0 * pl.Identity(n) + pl.LowRank(u)
    b = r.standard_normal(n)
    np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(A.toarray(), b), rtol=1e-9)
    ones = pl.Circulant(np.full(n, 1 / n)) - pl.Identity(n)  # rank n - 1
    whole = ones + pl.LowRank(np.ones((n, 1)))
    got = pl.solve(whole, b)
    np.testing.assert_allclose(whole.toarray() @ got, b, atol=1e-9)


def test_singular_sums_are_errors():
    n = 120
    for A in (
        pl.Circulant(np.full(n, 1 / n)) - pl.Identity(n),
        pl.Circulant(np.eye(n)[0]) - pl.Identity(n),
    ):
        with pytest.raises(np.linalg.LinAlgError):
            np.testing.assert_array_less(abs(pl.solve(A, np.arange(1.0, n + 1))), 1e10)
            raise np.linalg.LinAlgError("large")


@pytest.mark.parametrize("small", [1e-2, 1e-8, 1e-14])
def test_nearly_singular_circulants(small):
    r = np.random.default_rng()
    n = 200
    c = r.standard_normal(n)
    c -= c.mean()  # one eigenvalue is 0
    C = pl.Circulant(c)
    A = C.T @ C + small * pl.Identity(n)
    D, b = A.toarray(), r.standard_normal(n)
    if np.linalg.cond(D) > 2**53:  # 1e-14 beside 200 on the diagonal may be rounded away
        assert small == 1e-14
        return
    got, plain = pl.solve(A, b), np.linalg.solve(D, b)
    norm = np.linalg.norm(D, 2)

    def eta(x):
        return np.linalg.norm(D @ x - b) / (norm * np.linalg.norm(x) + np.linalg.norm(b))

    assert eta(got) <= max(10 * eta(plain), 10 * n * 2**-53)


def test_several_levels_and_batches():
    r = np.random.default_rng()
    c = r.standard_normal((8, 9))
    c[0, 0] += 40
    C = pl.Circulant(c, levels=2)
    A = C + 0.5 * pl.Identity(72)
    b = r.standard_normal((72, 2))
    np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(A.toarray(), b), rtol=1e-9)
    np.testing.assert_allclose(
        pl.diagonal(pl.inv(A)), np.linalg.inv(A.toarray()).diagonal(), rtol=1e-9
    )
    two = pl.Circulant(c.ravel()) + C  # of other levels: no circulant of either
    np.testing.assert_allclose(pl.solve(two, b), np.linalg.solve(two.toarray(), b), rtol=1e-9)
    many = pl.Circulant(r.standard_normal((3, 72)) + 30 * np.eye(72)[0]) + pl.Identity(72)
    np.testing.assert_allclose(pl.solve(many, b), np.linalg.solve(many.toarray(), b), rtol=1e-9)


BASES = {
    "c I": lambda n: 5 * pl.Identity(n),
    "Tridiagonal": lambda n: pl.Tridiagonal(np.ones(n - 1), np.full(n, 5.0), np.ones(n - 1)),
    "Diag": lambda n: pl.Diag(np.linspace(4, 6, n)),
    "Toeplitz": lambda n: pl.Toeplitz(0.5 ** np.arange(n)),
}


@pytest.mark.parametrize("n", [12, 15, 16, 17, 100])
@pytest.mark.parametrize("base", BASES)
def test_thin_terms_of_selections_beside_others(base, n, rng):
    """A part that is a band goes to the base, the others are counted once."""
    U, W = rng.standard_normal((n, 3)), rng.standard_normal((n, 2))
    H, S = pl.Selection([1, 5, 9], n), BASES[base](n)
    for A in (
        S + pl.LowRank(H.T) + pl.LowRank(U),
        pl.LowRank(U) + S + pl.LowRank(H.T),
        S + pl.LowRank(U) + 2 * pl.LowRank(H.T, H.T) + pl.LowRank(W),
        pl.LowRank(H.T) + pl.LowRankUpdate(S, U) + pl.LowRank(W),
        pl.LowRankUpdate(S + pl.LowRank(H.T), U),
    ):
        a, x = A.toarray(), rng.standard_normal(n)
        with pl.config(check_plans=True, verify=True):
            np.testing.assert_allclose(a @ pl.solve(A, x), x, atol=1e-10)
            np.testing.assert_allclose(pl.inv(A).diagonal(), np.diag(np.linalg.inv(a)), rtol=1e-9)
        np.testing.assert_allclose(pl.slogdet(A)[1], np.linalg.slogdet(a)[1], rtol=1e-11)
