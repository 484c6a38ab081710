"""Spellings of one matrix, drawn: a formula of structured parts and another way to write it cost
the same, within 1.3, by explain's own figures."""

import numpy as np
import pytest

import pylinop as pl

N, K = 96, 3


class Drawn:
    """A sum or product of parts, with the same parts written in other ways."""

    def __init__(self, seed):
        self.r = np.random.default_rng(seed)
        r = self.r
        self.d, self.e, self.f = 2 + r.random(N), r.random(N - 1), r.random(N - 1)
        x = r.standard_normal((N, N))
        self.S, self.G = pl.Dense(x @ x.T + N * np.eye(N), "pos"), pl.Dense(x + 3 * N * np.eye(N))
        self.U = pl.Dense(r.standard_normal((N, K)))
        self.A = {
            "diag": np.diag(self.d),
            "tri": np.diag(self.d + 2) + np.diag(self.e, -1) + np.diag(self.f, 1),
        }
        self.T = pl.Toeplitz(np.exp(-np.arange(N) / 5.0))
        self.D, self.B = pl.Diag(self.d), pl.Tridiagonal(self.e, self.d + 2, self.f)
        self.c = np.exp(-np.minimum(np.arange(N), N - np.arange(N)) / 5.0) + 9 * (np.arange(N) == 0)
        self.given = np.tril(x) + 3 * N * np.eye(N)
        self.C, self.L = pl.Circulant(self.c), pl.Triangular(self.given)
        self.M = pl.Dense(self.given, "lower triangular")
        self.H = pl.Kron(pl.Identity(24), r.standard_normal((1, 4)))
        self.E = pl.Selection(np.sort(r.choice(N, 24, replace=False)), N)
        self.K = pl.Kron(x[:8, :8] @ x[:8, :8].T + 8 * np.eye(8), np.diag(np.arange(1.0, 13)))

    def pick(self, ways):
        return ways[int(self.r.integers(len(ways)))]

    def part(self, which):
        """One part, as its kind and another way."""
        d, b = pl.Dense(self.A["diag"], "diagonal"), pl.Dense(self.A["tri"], "tridiagonal")
        c = float(self.r.integers(2, 5))
        eye = pl.Identity(N)
        return {
            "D": (self.D, self.pick([d, d.T, self.D.T, self.D @ eye, -1 * (-self.D)])),
            "B": (self.B, self.pick([b, b.T.T, self.B.T.T, eye @ self.B, 2 * (0.5 * b)])),
            "C": (self.C, self.pick([self.C.T.T, 2 * (self.C * 0.5), self.C @ eye])),
            "L": (self.L, self.pick([self.M, self.M.T.T, 2 * (0.5 * self.M), self.M @ eye])),
            "P": (
                pl.Laplacian((8, 12)),
                self.pick([pl.Laplacian((8, 12)).T, pl.Laplacian((8, 12)) @ eye]),
            ),
            "S": (self.S, self.pick([self.S.T, self.S.T.T, self.S.H])),
            "G": (self.G, self.pick([self.G.T.T, (2 * self.G) * 0.5, self.G.H.H])),
            "T": (self.T, self.pick([self.T.T, self.T.conj(), 2 * (self.T * 0.5)])),
            "K": (self.K, self.pick([self.K.T, self.K.T.T, self.K.conj()])),
            "UU": (pl.LowRank(self.U), self.pick([self.U @ self.U.T, pl.LowRank(self.U, self.U)])),
            "HH": (self.H.T @ self.H, self.pick(self.around(self.H.T, self.H, 24))),
            "EE": (self.E.T @ self.E, self.pick(self.around(self.E.T, self.E, 24))),
            "I": (c * eye, self.pick([eye * c, c * eye.T, (c - 1) * eye + eye])),
        }[which]

    def around(self, left, right, k):
        """left @ right with a multiple of the identity in between or before, or as a LowRank."""
        two = 2.0 * pl.Identity(k)
        return [
            0.5 * (left @ two @ right),
            left @ (0.5 * two) @ right,
            (2 * left) @ (right * 0.5),
            left @ pl.inv(two) @ (2 * right),
            pl.LowRank(left),
        ]

    def whole(self, names, product):
        """Both as a sum (or product) of the same parts, the second in another order or nesting."""
        parts = [self.part(name) for name in names]
        one, two = [p[0] for p in parts], [p[1] for p in parts]
        if product:
            left, right = one[0], two[-1]
            for x in one[1:]:
                left = left @ x
            for x in two[-2::-1]:
                right = x @ right
            return left, self.pick([right, right.T.T])
        order = self.r.permutation(len(two))
        left, right = one[0], two[order[0]]
        for x in one[1:]:
            left = left + x
        for i in order[1:]:
            right = right + two[i]
        return left, self.pick([right, right.T.T, 2 * (0.5 * right)])


SUMS = ["D I", "B D", "B I", "S I", "S D", "G D", "T I", "K I", "D UU", "I UU", "B UU", "S UU"]
SUMS += ["D UU I", "B D I", "S D I", "S UU D", "G UU I", "T UU I"]
SUMS += ["B HH", "D HH", "HH I", "P HH I", "K HH I", "B EE", "P EE I", "C EE I", "D HH UU"]
SUMS += ["C I", "C T", "C UU I", "L I", "L D", "P I", "P D I", "P UU", "D D I", "B B", "T I D"]
PRODUCTS = ["D B", "D G", "B G", "S G", "D B G", "D D", "B D B", "K D", "S S", "T D"]
PRODUCTS += ["C C", "C D", "L D", "L L", "D L B", "D S D", "L G", "C D C", "P D", "I B I D"]
SEEDS = 6
MORE = {"D HH UU": [10]}  # beside the first ones: those that were found to differ once
ACTIONS = ["solve", "logdet", "apply", "diagonal", "trace"]

# What the generator found and is not mended yet, by its cause. Strict: who mends it takes it out.
FOUND: dict[str, str] = {}
KNOWN = {case.strip(): why for why, cases in FOUND.items() for case in cases.split(",")}


def cases():
    for names in SUMS + ["* " + p for p in PRODUCTS]:
        for seed in [*range(SEEDS), *MORE.get(names, [])]:
            why = KNOWN.get(f"{names} {seed}")
            marks = [pytest.mark.xfail(reason=why, strict=True)] if why else []
            yield pytest.param(names, seed, marks=marks)


def price(op, action):
    args = (np.ones((op.shape[1], 4)),) if action in ("solve", "apply") else ()
    return op.explain(action, *args).flops


@pytest.mark.parametrize(("names", "seed"), cases())
def test_the_same_price(names, seed):
    drawn = Drawn(seed)
    one, two = drawn.whole(names.strip("* ").split(), names.startswith("*"))
    np.testing.assert_allclose(two.toarray(), one.toarray(), rtol=1e-12, atol=1e-10)
    for action in ACTIONS:
        a, b = price(one, action), price(two, action)
        assert max(a, b) <= 1.3 * min(a, b) + 8 * N * 4, (action, a, b)
    a, b = price(pl.inv(one), "diagonal"), price(pl.inv(two), "diagonal")
    assert max(a, b) <= 1.3 * min(a, b) + 8 * N * 4, ("diagonal of the inverse", a, b)
