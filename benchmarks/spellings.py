"""Identities of papers in two and more spellings each: what one spelling costs beside the cheapest.

    OPENBLAS_NUM_THREADS=1 python benchmarks/spellings.py [--only PATTERN] [--all] [--values]

n = 480; of each spelling a product, the dense form, the diagonal, the trace, a solve, the
determinant and the diagonal of the inverse; flops as explain counts them before anything runs, with
room for 20 n. Nothing stands here that computes when it is built, as pinv of a Dense does, which
explain counts none of. Printed: what is above 1.3, and how many. --values: each is computed too,
and compared with NumPy."""

import argparse
import fnmatch
import os
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp

import pylinop as pl

N, K, P, Q = 480, 8, 24, 20
inv, E, D = pl.inv, pl.Dense, pl.Diag


class Given:
    def __init__(self, seed=1):
        r = self.r = np.random.default_rng(seed)
        self.S, self.R, self.A = self.definite(N), self.definite(N), self.square(N)
        self.B = self.square(N)
        self.U, self.V, self.W = (E(r.standard_normal((N, K)) / 8) for _ in range(3))
        self.X = E(r.standard_normal((2 * N, N)) / 10)
        self.C, self.F = self.definite(K), self.definite(K)
        self.D, self.G, self.M = D(1 + r.random(N)), D(1 + r.random(N)), D(1 + r.random(K))
        e = r.random(N - 1) / 3
        self.T = pl.Tridiagonal(e, 2 + r.random(N), e)
        self.Z = pl.Toeplitz(np.exp(-np.arange(N) / 5.0))
        c = np.exp(-np.minimum(np.arange(N), N - np.arange(N)) / 5.0)
        self.O = pl.Circulant(c + np.eye(N)[0])
        self.P1, self.P2, self.Q1, self.Q2 = (self.definite(k) for k in (P, P, Q, Q))
        self.K = pl.Kron(self.P1, self.Q1)
        self.L = pl.Kron(self.P2, self.Q2)
        self.I, self.J = pl.Identity(N), pl.Identity(K)
        self.IP, self.IQ = pl.Identity(P), pl.Identity(Q)
        self.H = pl.Selection(np.sort(r.choice(N, 40, replace=False)), N)
        self.h = E(r.standard_normal((40, N)) / 8)
        self.N4 = D(1 + r.random(40))
        q = sp.random_array((N, N), density=2 / N, rng=r)
        self.Y = pl.Sparse((q + q.T + 9 * sp.eye_array(N)).tocsr())
        self.half = N // 2
        self.D1, self.D2 = D(2 + r.random(N // 2)), D(2 + r.random(N // 2))
        self.S1, self.S2 = self.definite(N // 2), self.definite(N // 2)
        self.m12 = E(r.standard_normal((N // 2, N // 2)) / 100)
        self.b1 = E(r.standard_normal((N - K, K)) / 20)
        self.DK = D(2 + r.random(N - K))
        self.blocks = [r.standard_normal((20, 20)) + 20 * np.eye(20) for _ in range(P)]

    def definite(self, n):
        x = self.r.standard_normal((n, n))
        return E(x @ x.T / n + np.eye(n), "pos")

    def square(self, n):
        return E(self.r.standard_normal((n, n)) + 3 * n**0.5 * np.eye(n))


def woodbury(b, u, w, v):
    """B^-1 - B^-1 U (W^-1 + V B^-1 U)^-1 V B^-1 of their inverses."""
    return b - b @ u @ inv(w + v @ b @ u) @ v @ b


def projector(g, X):
    return X @ inv(X.T @ X) @ X.T


def resolvents(K, I, s=0.5):
    return (
        lambda: K @ inv(K + s * I),
        lambda: inv(K + s * I) @ K,
        lambda: I - s * inv(K + s * I),
        lambda: inv(I + s * inv(K)),
    )


IDENTITIES = {}


def identity(name):
    def keep(f):
        IDENTITIES[name] = f
        return f

    return keep


def about(what):
    """Identities of one matrix k, a part of what is given by its name."""
    return {
        f"resolvent of {what}": lambda g, k: resolvents(k, g.I),
        f"other resolvent of {what}": lambda g, k: (
            lambda: inv(k) - inv(k + g.I),
            lambda: inv(k) @ inv(k + g.I),
            lambda: inv(k @ k + k),
            lambda: inv(k @ (k + g.I)),
        ),
        f"Woodbury over {what}": lambda g, k: (
            lambda: inv(k + g.U @ g.U.T),
            lambda: woodbury(inv(k), g.U, g.J, g.U.T),
            lambda: (lambda q: q @ (g.I - g.U @ inv(g.J + g.U.T @ q @ g.U) @ g.U.T @ q))(inv(k)),
            lambda: inv(k) @ inv(g.I + g.U @ g.U.T @ inv(k)),
            lambda: -inv(-k - g.U @ g.U.T),
        ),
        f"update of {what} + s I": lambda g, k: (
            lambda: k + 0.5 * g.I + g.U @ g.U.T,
            lambda: pl.LowRankUpdate(k + 0.5 * g.I, g.U),
            lambda: g.U @ g.U.T + (0.5 * g.I + k),
            lambda: (k + g.U @ g.U.T) + 0.5 * g.I,
            lambda: 0.5 * (g.I + 2 * (g.U @ g.U.T + k)),
        ),
        f"{what} + {what}.T": lambda g, k: (
            lambda: 2 * k + g.I,
            lambda: k + k.T + g.I,
            lambda: (k + 0.5 * g.I) * 2,
            lambda: (k + 0.5 * g.I) + (k + 0.5 * g.I).T,
        ),
        f"square of {what}": lambda g, k: (
            lambda: k @ k,
            lambda: k**2,
            lambda: k @ k.T,
            lambda: (k @ k).T,
        ),
        f"whitened by {what}": lambda g, k: (
            lambda: inv(g.D) @ k @ inv(g.D),
            lambda: inv(g.D @ inv(k) @ g.D),
            lambda: inv(g.D) @ (k @ inv(g.D)),
            lambda: inv((g.D @ inv(k)) @ g.D),
        ),
    }


for what in "S D T Z O K Y".split():
    for name, spell in about(what).items():
        IDENTITIES[name] = lambda g, spell=spell, what=what: spell(g, getattr(g, what))

IDENTITIES |= {
    "Woodbury with a middle": lambda g: (
        lambda: inv(g.D + g.U @ g.C @ g.U.T),
        lambda: woodbury(inv(g.D), g.U, inv(g.C), g.U.T),
        lambda: (
            inv(g.D)
            - inv(g.D)
            @ g.U
            @ g.C
            @ inv(g.C + g.C @ g.U.T @ inv(g.D) @ g.U @ g.C)
            @ g.C
            @ g.U.T
            @ inv(g.D)
        ),
        lambda: (
            inv(g.D)
            - inv(g.D) @ g.U @ g.C @ inv(g.J + g.U.T @ inv(g.D) @ g.U @ g.C) @ g.U.T @ inv(g.D)
        ),
    ),
    "Woodbury of two": lambda g: (
        lambda: inv(g.D + g.U @ g.V.T),
        lambda: woodbury(inv(g.D), g.U, g.J, g.V.T),
        lambda: inv(g.D.T + g.V @ g.U.T).T,
    ),
    "Woodbury, minus": lambda g: (
        lambda: inv(g.D - 0.1 * g.U @ g.U.T),
        lambda: (
            inv(g.D) + inv(g.D) @ g.U @ inv(10.0 * g.J - g.U.T @ inv(g.D) @ g.U) @ g.U.T @ inv(g.D)
        ),
        lambda: -inv(0.1 * g.U @ g.U.T - g.D),
    ),
    "Woodbury of D on both sides": lambda g: (
        lambda: inv(g.D + g.G @ g.U @ g.U.T @ g.G),
        lambda: inv(g.G) @ inv(inv(g.G) @ g.D @ inv(g.G) + g.U @ g.U.T) @ inv(g.G),
        lambda: inv(g.D + (g.G @ g.U) @ (g.G @ g.U).T),
    ),
    "push-through": lambda g: (
        lambda: g.U @ inv(g.J + g.V.T @ g.U) @ g.V.T,
        lambda: inv(g.I + g.U @ g.V.T) @ g.U @ g.V.T,
        lambda: g.I - inv(g.I + g.U @ g.V.T),
        lambda: g.U @ g.V.T @ inv(g.I + g.U @ g.V.T),
    ),
    "ridge hat": lambda g: (
        lambda: g.X.T @ inv(g.X @ g.X.T + 0.5 * pl.Identity(2 * N)) @ g.X,
        lambda: inv(g.X.T @ g.X + 0.5 * g.I) @ g.X.T @ g.X,
        lambda: g.I - 0.5 * inv(g.X.T @ g.X + 0.5 * g.I),
    ),
    "thin ridge hat": lambda g: (
        lambda: g.U @ inv(g.U.T @ g.U + 0.5 * g.J) @ g.U.T,
        lambda: g.U @ g.U.T @ inv(g.U @ g.U.T + 0.5 * g.I),
        lambda: inv(g.U @ g.U.T + 0.5 * g.I) @ g.U @ g.U.T,
        lambda: g.I - 0.5 * inv(g.U @ g.U.T + 0.5 * g.I),
    ),
    "parallel sum": lambda g: (
        lambda: g.S @ inv(g.S + g.R) @ g.R,
        lambda: inv(inv(g.S) + inv(g.R)),
        lambda: g.S - g.S @ inv(g.S + g.R) @ g.S,
        lambda: g.R @ inv(g.S + g.R) @ g.S,
    ),
    "parallel sum with Diag": lambda g: (
        lambda: g.S @ inv(g.S + g.D) @ g.D,
        lambda: inv(inv(g.S) + inv(g.D)),
        lambda: g.D - g.D @ inv(g.S + g.D) @ g.D,
        lambda: g.S - g.S @ inv(g.S + g.D) @ g.S,
    ),
    "parallel sum of bands": lambda g: (
        lambda: g.T @ inv(g.T + g.D) @ g.D,
        lambda: inv(inv(g.T) + inv(g.D)),
        lambda: g.D - g.D @ inv(g.T + g.D) @ g.D,
    ),
    "posterior": lambda g: (
        lambda: g.S - g.S @ g.h.T @ inv(g.N4 + g.h @ g.S @ g.h.T) @ g.h @ g.S,
        lambda: inv(inv(g.S) + g.h.T @ inv(g.N4) @ g.h),
        lambda: (g.I - g.S @ g.h.T @ inv(g.N4 + g.h @ g.S @ g.h.T) @ g.h) @ g.S,
    ),
    "posterior of a Selection": lambda g: (
        lambda: g.S - g.S @ g.H.T @ inv(g.N4 + g.H @ g.S @ g.H.T) @ g.H @ g.S,
        lambda: inv(inv(g.S) + g.H.T @ inv(g.N4) @ g.H),
        lambda: (g.I - g.S @ g.H.T @ inv(g.N4 + g.H @ g.S @ g.H.T) @ g.H) @ g.S,
    ),
    "posterior of a diagonal prior": lambda g: (
        lambda: g.D - g.D @ g.h.T @ inv(g.N4 + g.h @ g.D @ g.h.T) @ g.h @ g.D,
        lambda: inv(inv(g.D) + g.h.T @ inv(g.N4) @ g.h),
        lambda: (g.I - g.D @ g.h.T @ inv(g.N4 + g.h @ g.D @ g.h.T) @ g.h) @ g.D,
    ),
    "Joseph": lambda g: (
        lambda: inv(inv(g.S) + g.h.T @ inv(g.N4) @ g.h),
        lambda: (lambda k: (g.I - k @ g.h) @ g.S @ (g.I - k @ g.h).T + k @ g.N4 @ k.T)(
            g.S @ g.h.T @ inv(g.N4 + g.h @ g.S @ g.h.T)
        ),
    ),
    "Schur complement, Diag": lambda g: (
        lambda: inv(g.D1 - g.m12 @ inv(g.D2) @ g.m12.T),
        lambda: inv(pl.Block([[g.D1, g.m12], [g.m12.T, g.D2]]))[: N // 2, : N // 2],
    ),
    "Schur complement, Dense": lambda g: (
        lambda: inv(g.S1 - g.m12 @ inv(g.S2) @ g.m12.T),
        lambda: inv(pl.Block([[g.S1, g.m12], [g.m12.T, g.S2]]))[: N // 2, : N // 2],
    ),
    "Schur complement, thin": lambda g: (
        lambda: inv(g.DK - g.b1 @ inv(g.C) @ g.b1.T),
        lambda: inv(pl.Block([[g.DK, g.b1], [g.b1.T, g.C]]))[: N - K, : N - K],
        lambda: (lambda s: inv(g.DK) + inv(g.DK) @ g.b1 @ inv(s) @ g.b1.T @ inv(g.DK))(
            g.C - g.b1.T @ inv(g.DK) @ g.b1
        ),
    ),
    "small Schur complement": lambda g: (
        lambda: inv(g.C - g.b1.T @ inv(g.DK) @ g.b1),
        lambda: inv(pl.Block([[g.DK, g.b1], [g.b1.T, g.C]]))[N - K :, N - K :],
    ),
    "off-diagonal of a Block's inverse": lambda g: (
        lambda: inv(g.DK) @ g.b1 @ inv(g.C - g.b1.T @ inv(g.DK) @ g.b1) @ g.b1.T @ inv(g.DK),
        lambda: (
            inv(pl.Block([[g.DK, g.b1], [g.b1.T, g.C]]))[: N - K, N - K :] @ (-g.b1.T @ inv(g.DK))
        ),
    ),
    "marginal of a precision": lambda g: (
        lambda: inv(g.S)[:K, :K],
        lambda: inv(g.S[:K, :K] - g.S[:K, K:] @ inv(g.S[K:, K:]) @ g.S[K:, :K]),
    ),
    "conditional": lambda g: (
        lambda: g.S[:K, :K] - g.S[:K, K:] @ inv(g.S[K:, K:]) @ g.S[K:, :K],
        lambda: inv(inv(g.S)[:K, :K]),
    ),
    "block triangle": lambda g: (
        lambda: inv(pl.Block([[g.S1, pl.Zeros((N // 2, N // 2))], [g.m12, g.D2]])),
        lambda: pl.Block(
            [[inv(g.S1), pl.Zeros((N // 2, N // 2))], [-inv(g.D2) @ g.m12 @ inv(g.S1), inv(g.D2)]]
        ),
    ),
    "Block by its factors": lambda g: (
        lambda: pl.Block([[g.DK, g.b1], [g.b1.T, g.C]]),
        lambda: (lambda l: l @ pl.BlockDiag(g.DK, g.C - g.b1.T @ inv(g.DK) @ g.b1) @ l.T)(
            pl.Block([[pl.Identity(N - K), pl.Zeros((N - K, K))], [g.b1.T @ inv(g.DK), g.J]])
        ),
    ),
    "projector": lambda g: (
        lambda: g.I - g.U @ inv(g.U.T @ g.U) @ g.U.T,
        lambda: (lambda m: m @ m)(g.I - g.U @ inv(g.U.T @ g.U) @ g.U.T),
        lambda: (lambda m: m.T)(g.I - g.U @ inv(g.U.T @ g.U) @ g.U.T),
    ),
    "residual maker of X": lambda g: (
        lambda: (lambda m: m.T @ g.D @ m)(g.I - projector(g, g.U)),
        lambda: (lambda m: m @ g.D @ m.T)(g.I - projector(g, g.U)),
    ),
    "REML": lambda g: (
        lambda: inv(g.D) - inv(g.D) @ g.U @ inv(g.U.T @ inv(g.D) @ g.U) @ g.U.T @ inv(g.D),
        lambda: (lambda w: w - w @ g.U @ inv(g.U.T @ w @ g.U) @ g.U.T @ w)(inv(g.D)),
        lambda: inv(g.D) @ (g.I - g.U @ inv(g.U.T @ inv(g.D) @ g.U) @ g.U.T @ inv(g.D)),
    ),
    "GLS": lambda g: (
        lambda: inv(g.U.T @ inv(g.S) @ g.U) @ g.U.T @ inv(g.S),
        lambda: inv(g.U.T @ (inv(g.S) @ g.U)) @ (inv(g.S) @ g.U).T,
        lambda: inv((inv(g.S) @ g.U).T @ g.U) @ (g.U.T @ inv(g.S)),
    ),
    "Kalman gain": lambda g: (
        lambda: g.S @ g.h.T @ inv(g.h @ g.S @ g.h.T + g.N4),
        lambda: inv(inv(g.S) + g.h.T @ inv(g.N4) @ g.h) @ g.h.T @ inv(g.N4),
    ),
    "inverse of a product": lambda g: (
        lambda: inv(g.A @ g.B),
        lambda: inv(g.B) @ inv(g.A),
        lambda: inv((g.A @ g.B).T).T,
    ),
    "similar": lambda g: (
        lambda: inv(g.A) @ g.S @ g.A + g.I,
        lambda: inv(g.A) @ (g.S + g.I) @ g.A,
    ),
    "commuted": lambda g: (
        lambda: inv(g.S) @ (g.S + g.D),
        lambda: g.I + inv(g.S) @ g.D,
    ),
    "distributed": lambda g: (
        lambda: g.A @ (g.D + g.G),
        lambda: g.A @ g.D + g.A @ g.G,
    ),
    "distributed on the left": lambda g: (
        lambda: (g.S + g.R) @ g.A,
        lambda: g.S @ g.A + g.R @ g.A,
    ),
    "square of a sum": lambda g: (
        lambda: (g.U + g.V) @ (g.U + g.V).T + g.D,
        lambda: g.U @ g.U.T + g.U @ g.V.T + g.V @ g.U.T + g.V @ g.V.T + g.D,
    ),
    "a middle sum": lambda g: (
        lambda: g.D + g.U @ (g.C + g.F) @ g.U.T,
        lambda: g.D + g.U @ g.C @ g.U.T + g.U @ g.F @ g.U.T,
    ),
    "a factor split": lambda g: (
        lambda: g.D + g.U @ g.U.T + g.V @ g.V.T,
        lambda: g.D + (lambda w: w @ w.T)(pl.Block([[g.U, g.V]])),
    ),
    "Kron of inverses": lambda g: (
        lambda: inv(g.K),
        lambda: pl.Kron(inv(g.P1), inv(g.Q1)),
    ),
    "Kron of products": lambda g: (
        lambda: g.K @ g.L,
        lambda: pl.Kron(g.P1 @ g.P2, g.Q1 @ g.Q2),
        lambda: pl.Kron(g.P1, g.IQ) @ pl.Kron(g.P2, g.Q1) @ pl.Kron(g.IP, g.Q2),
    ),
    "Kron of sums": lambda g: (
        lambda: pl.Kron(g.P1, g.Q1) + pl.Kron(g.P1, g.Q2),
        lambda: pl.Kron(g.P1, g.Q1 + g.Q2),
        lambda: pl.Kron(g.P1, g.IQ) @ (pl.Kron(g.IP, g.Q1) + pl.Kron(g.IP, g.Q2)),
    ),
    "KronSum as Krons": lambda g: (
        lambda: pl.KronSum(g.P1, g.Q1),
        lambda: pl.Kron(g.P1, g.IQ) + pl.Kron(g.IP, g.Q1),
        lambda: g.K @ (pl.Kron(g.IP, inv(g.Q1)) + pl.Kron(inv(g.P1), g.IQ)),
        lambda: g.K @ pl.KronSum(inv(g.P1), inv(g.Q1)),
    ),
    "Kron + I as a product": lambda g: (
        lambda: g.K + g.I,
        lambda: g.K @ (g.I + inv(g.K)),
        lambda: pl.Kron(g.P1, g.IQ) @ (pl.Kron(g.IP, g.Q1) + pl.Kron(inv(g.P1), g.IQ)),
    ),
    "two Krons": lambda g: (
        lambda: g.K + g.L,
        lambda: g.L + g.K,
        lambda: g.K @ (g.I + pl.Kron(inv(g.P1) @ g.P2, inv(g.Q1) @ g.Q2)),
    ),
    "Kron of three": lambda g: (
        lambda: pl.Kron(g.P1[:4, :4], g.P2[:6, :6], g.Q1) + g.I,
        lambda: pl.Kron(pl.Kron(g.P1[:4, :4], g.P2[:6, :6]), g.Q1) + g.I,
        lambda: pl.Kron(g.P1[:4, :4], pl.Kron(g.P2[:6, :6], g.Q1)) + g.I,
    ),
    "Kron of three products": lambda g: (
        lambda: pl.Kron(g.P1[:4, :4] @ g.P2[:4, :4], g.P2[:6, :6] @ g.P1[:6, :6], g.Q1 @ g.Q2),
        lambda: (
            pl.Kron(g.P1[:4, :4], g.P2[:6, :6], g.Q1) @ pl.Kron(g.P2[:4, :4], g.P1[:6, :6], g.Q2)
        ),
        lambda: (
            pl.Kron(g.P1[:4, :4], g.P2[:6, :6], g.Q1)
            @ pl.Kron(pl.Kron(g.P2[:4, :4], g.P1[:6, :6]), g.Q2)
        ),
    ),
    "Kron by its axes": lambda g: (
        lambda: pl.Kron(g.P1[:4, :4], g.P2[:6, :6], g.Q1),
        lambda: (
            pl.Kron(g.P1[:4, :4], pl.Identity(120))
            @ pl.Kron(pl.Identity(4), g.P2[:6, :6], g.IQ)
            @ pl.Kron(g.IP, g.Q1)
        ),
    ),
    "Kron, noise by rows": lambda g: (
        lambda: g.K + pl.Kron(D(np.arange(1.0, P + 1)), g.IQ),
        lambda: pl.Kron(D(np.arange(1.0, P + 1)), g.IQ) + g.K,
        lambda: g.K + D(np.repeat(np.arange(1.0, P + 1), Q)),
    ),
    "BlockDiag of equal blocks": lambda g: (
        lambda: pl.BlockDiag(*g.blocks),
        lambda: pl.BlockDiag(np.array(g.blocks)),
        lambda: pl.BlockDiag(*(E(b) for b in g.blocks)),
        lambda: pl.BlockDiag(*(E(b.T).T for b in g.blocks)),
    ),
    "BlockDiag + c I": lambda g: (
        lambda: pl.BlockDiag(*g.blocks) + g.I,
        lambda: pl.BlockDiag(*(b + np.eye(20) for b in g.blocks)),
        lambda: g.I + pl.BlockDiag(*g.blocks),
    ),
    "BlockDiag of one": lambda g: (
        lambda: pl.BlockDiag(*[g.Q1] * P),
        lambda: pl.Kron(g.IP, g.Q1),
    ),
    "BlockDiag by Krons": lambda g: (
        lambda: pl.BlockDiag(*[g.Q1] * P) + g.I,
        lambda: pl.Kron(g.IP, g.Q1) + g.I,
        lambda: pl.Kron(g.IP, g.Q1 + g.IQ),
    ),
    "sparse + c I": lambda g: (
        lambda: g.Y + g.I,
        lambda: g.I + g.Y,
        lambda: pl.Sparse(g.Y.tosparse() + sp.eye_array(N)),
        lambda: 2 * (0.5 * g.Y + 0.5 * g.I),
    ),
    "sparse precision": lambda g: (
        lambda: g.Y + g.H.T @ g.H,
        lambda: pl.LowRankUpdate(g.Y, g.H.T),
        lambda: g.Y + g.H.T @ pl.Identity(40) @ g.H,
    ),
    "Toeplitz by Circulant": lambda g: (
        lambda: g.Z @ g.O,
        lambda: (g.O.T @ g.Z.T).T,
    ),
    "circulant smoother": lambda g: (
        lambda: inv(g.O.T @ g.O + 0.5 * g.I) @ g.O.T,
        lambda: g.O.T @ inv(g.O @ g.O.T + 0.5 * g.I),
        lambda: inv(g.O.T @ g.O + 0.5 * g.I) @ g.O,
    ),
    "quadratic of bands": lambda g: (
        lambda: g.T.T @ g.T + g.I,
        lambda: g.T @ g.T + g.I,
        lambda: (g.T @ g.T.T) + g.I,
        lambda: g.T**2 + g.I,
    ),
    "bands over bands": lambda g: (
        lambda: inv(g.T) @ (g.T + g.D),
        lambda: g.I + inv(g.T) @ g.D,
    ),
    "Cayley": lambda g: (
        lambda: (g.I - g.T) @ inv(g.I + g.T),
        lambda: inv(g.I + g.T) @ (g.I - g.T),
        lambda: 2 * inv(g.I + g.T) - g.I,
    ),
    "Crank-Nicolson": lambda g: (
        lambda: inv(g.I + 0.1 * g.T) @ (g.I - 0.1 * g.T),
        lambda: 2 * inv(g.I + 0.1 * g.T) - g.I,
    ),
    "factor analysis": lambda g: (
        lambda: g.U.T @ inv(g.U @ g.U.T + g.D),
        lambda: inv(g.J + g.U.T @ inv(g.D) @ g.U) @ g.U.T @ inv(g.D),
    ),
    "kernel by features": lambda g: (
        lambda: g.U @ inv(g.C) @ g.U.T + g.D,
        lambda: pl.LowRankUpdate(g.D, g.U, g.U, inv(g.C)),
        lambda: g.D + (g.U @ inv(g.C)) @ g.U.T,
        lambda: g.D + g.U @ (inv(g.C) @ g.U.T),
    ),
    "Nystrom": lambda g: (
        lambda: g.S[:, :K] @ inv(g.S[:K, :K]) @ g.S[:K, :] + 0.5 * g.I,
        lambda: 0.5 * g.I + g.S[:K, :].T @ inv(g.S[:K, :K]) @ g.S[:K, :],
    ),
    "centring": lambda g: (
        lambda: (lambda c: c @ g.S @ c)(g.I - pl.Full((N, N), 1.0 / N)),
        lambda: (lambda c: c @ g.S @ c)(g.I - E(np.ones((N, 1))) @ E(np.ones((1, N))) / N),
        lambda: (lambda o: (lambda c: c @ g.S @ c)(g.I - o @ o.T / N))(E(np.ones((N, 1)))),
    ),
    "ones by Full": lambda g: (
        lambda: g.D + pl.Full((N, N), 0.5),
        lambda: g.D + 0.5 * pl.LowRank(np.ones((N, 1))),
        lambda: g.D + 0.5 * (lambda o: o @ o.T)(E(np.ones((N, 1)))),
    ),
    "compound symmetry": lambda g: (
        lambda: pl.Kron(g.IP, 0.5 * g.IQ + pl.Full((Q, Q), 0.5)),
        lambda: 0.5 * g.I + 0.5 * pl.Kron(g.IP, pl.Full((Q, Q), 1.0)),
        lambda: pl.BlockDiag(*[0.5 * g.IQ + pl.Full((Q, Q), 0.5)] * P),
    ),
    "random effects": lambda g: (
        lambda: (lambda z: z @ z.T + g.I)(pl.Kron(g.IP, E(np.ones((Q, 1))))),
        lambda: pl.Kron(g.IP, pl.Full((Q, Q), 1.0)) + g.I,
        lambda: pl.LowRankUpdate(g.I, pl.Kron(g.IP, E(np.ones((Q, 1))))),
    ),
    "graph Laplacian": lambda g: (
        lambda: g.D - g.Y,
        lambda: -(g.Y - g.D),
        lambda: g.D + (-1) * g.Y,
    ),
    "weighted normal equations": lambda g: (
        lambda: g.X.T @ D(np.ones(2 * N)) @ g.X + g.I,
        lambda: (lambda y: y.T @ y + g.I)(D(np.ones(2 * N)) @ g.X),
    ),
}

BY_NUMBERS = {"solve", "logdet", "diagonal of the inverse"}


def questions(shape):
    x, square = np.ones(shape[1]), shape[0] == shape[1]
    yield "@ x", lambda a: a.explain("apply", x).flops, lambda a: a @ x, lambda m: m @ x
    yield "dense", lambda a: a.explain("dense").flops, lambda a: a.toarray(), lambda m: m
    yield "diagonal", lambda a: a.explain("diagonal").flops, lambda a: a.diagonal(), np.diagonal
    if not square:
        return
    yield "trace", lambda a: a.explain("trace").flops, lambda a: a.trace(), np.trace
    yield (
        "solve",
        lambda a: a.explain("solve", x).flops,
        lambda a: pl.solve(a, x),
        lambda m: np.linalg.solve(m, x),
    )
    yield (
        "logdet",
        lambda a: a.explain("logdet").flops,
        lambda a: pl.slogdet(a)[1],
        lambda m: np.linalg.slogdet(m)[1],
    )
    yield (
        "diagonal of the inverse", lambda a: inv(a).explain("diagonal").flops,
        lambda a: inv(a).diagonal(), lambda m: np.diagonal(np.linalg.inv(m)),
    )  # fmt: skip


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--only", default="*")
    p.add_argument("--all", action="store_true")
    p.add_argument("--values", action="store_true")
    opt = p.parse_args()
    warnings.simplefilter("ignore")
    g, rows, asked, names = Given(), [], 0, 0
    for name, spell in IDENTITIES.items():
        if not fnmatch.fnmatch(name, opt.only):
            continue
        names += 1
        ways = [way() for way in spell(g)]
        dense = np.asarray(ways[0].toarray())
        for way in ways[1:]:
            if not np.allclose(way.toarray(), dense, rtol=1e-6, atol=1e-8):
                print("DIFFERENT", name)
        singular = dense.shape[0] != dense.shape[1] or np.linalg.cond(dense) > 1e12
        for what, price, value, plain in questions(dense.shape):
            if singular and what in BY_NUMBERS:
                continue
            flops = [price(way) for way in ways]
            least = min(flops)
            for i, way in enumerate(ways):
                asked += 1
                ratio = flops[i] / (1.3 * least + 20 * N) * 1.3
                if ratio > 1.3 or opt.all:
                    rows.append((flops[i] / max(least, 20 * N), name, what, i, flops[i], least))
                if opt.values and not np.allclose(value(way), plain(dense), rtol=1e-6, atol=1e-8):
                    print("WRONG", name, what, i)
    for ratio, name, what, i, flops, least in sorted(rows, reverse=True):
        print(f"{ratio:10.1f}  {name}: {what}, spelling {i}  {flops:.3g} beside {least:.3g}")
    print(f"{len(rows)} of {asked} above 1.3, {names} identities")


if __name__ == "__main__":
    main()
