"""Which actions on which matrices make n x n arrays, or grow as the cube of n: a walk over kinds
and composites by explain's own figures, at two sizes. Nothing is timed.

    OPENBLAS_NUM_THREADS=1 python benchmarks/structure_walk.py [name ...]

A line for each action whose flops grow faster than n^2.4 ("cubic"), or whose plan holds more than
half of an n x n array ("n x n"); kinds without such a line are counted. What remains and has no
other way is in docs/limits.md."""

import sys
import warnings

import numpy as np
import scipy.sparse as sp

import pylinop as pl
from pylinop import _core

SIZES = 144, 576  # squares, multiples of 12
DENSE = "potrf getrf sytrf potri lu-inverse eye todense heevd gees"


class Make:
    """Operands of n rows, far from singular."""

    def __init__(self, n):
        self.n, self.p, self.rng = n, round(n**0.5), np.random.default_rng(16)

    def a(self, *shape):
        return self.rng.standard_normal(shape)

    def diag(self, n=None):
        return pl.Diag(self.rng.uniform(1, 2, n or self.n))

    def eye(self, c=0.5):
        return c * pl.Identity(self.n)

    def definite(self, k):
        x = self.a(k, k)
        return pl.Dense(x @ x.T / k + np.eye(k), "pos")

    def square(self, k):
        return pl.Dense(self.a(k, k) + 3 * k * np.eye(k))

    def line(self, n=None, top=4.0):
        n = n or self.n
        c = self.a(n) / n
        c[0] = top
        return c

    def toeplitz(self, n=None):
        return pl.Toeplitz(self.line(n), self.line(n))

    def own_toeplitz(self, n=None):
        return pl.Toeplitz(self.line(n))

    def circulant(self, n=None, top=4.0):
        return pl.Circulant(self.line(n, top))

    def band(self, n=None):
        ab = self.a(4, n or self.n)
        ab[1] += 16
        return pl.Banded((2, 1), ab)

    def tridiagonal(self, n=None):
        e = self.a((n or self.n) - 1)
        return pl.Tridiagonal(e, self.rng.uniform(9, 10, len(e) + 1), e)

    def sparse(self):
        a = sp.random_array((self.n, self.n), density=2 / self.n, rng=self.rng)
        return pl.Sparse((a + a.T + 9 * sp.eye_array(self.n)).tocsr())

    def thin(self):
        return pl.LowRank(self.a(self.n, 3))

    def own_kron(self):
        return pl.Kron(self.definite(self.p), self.definite(self.p))

    def kron(self):
        return pl.Kron(self.square(self.p), self.square(self.p))

    def matern(self):
        x = np.sort(self.rng.uniform(0, self.n / 4, self.n))[:, None]
        return pl.Kernel("matern32", x, length_scale=1.0)

    def blocks(self):
        return pl.BlockDiag(*[self.definite(4) for _ in range(self.n // 4)])

    def grid(self, make, q=2):
        h = self.n // q
        rows = [[make(h, 9.0 if i == j else 1.0) for j in range(q)] for i in range(q)]
        return pl.Block(rows)

    def picked(self, inner, rows):
        s = pl.Selection(np.sort(self.rng.permutation(rows)[: self.n]), rows)
        return s @ inner @ s.T

    def between(self, q, x):
        return q @ x @ q.H


CASES = {
    "Toeplitz": lambda m: m.toeplitz(),
    "Hankel": lambda m: pl.Hankel(m.line()[::-1], m.line()),
    "Sparse": lambda m: m.sparse(),
    "BlockTridiagonal": lambda m: pl.BlockTridiagonal(
        m.a(m.n // 4 - 1, 4, 4), m.a(m.n // 4, 4, 4) + 20 * np.eye(4), m.a(m.n // 4 - 1, 4, 4)
    ),
    "Householder with tau": lambda m: pl.Householder(m.a(m.n), 0.3),
    "Reflections": lambda m: pl.Reflections(m.a(5, 4), m.n),
    "Laplacian + Diag": lambda m: -1.0 * pl.Laplacian((m.p, m.p), "dirichlet") + m.diag(),
    "Matern + I + U U'": lambda m: m.matern() + m.eye(1.0) + m.thin(),
    "Kron + c I": lambda m: m.kron() + m.eye(),
    "own Kron + c I + U U'": lambda m: m.own_kron() + m.eye() + m.thin(),
    "own Kron + Diag": lambda m: m.own_kron() + m.diag(),
    "Kron + Kron": lambda m: m.kron() + m.kron(),
    "own Kron + Kron + c I": lambda m: m.own_kron() + m.own_kron() + m.eye(),
    "KronSum": lambda m: pl.KronSum(m.square(m.p), m.square(m.p)),
    "own KronSum + Diag": lambda m: pl.KronSum(m.definite(m.p), m.definite(m.p)) + m.diag(),
    "BlockDiag + U U'": lambda m: m.blocks() + m.thin(),
    "BlockDiag + Tridiagonal": lambda m: m.blocks() + m.tridiagonal(),
    "Block with a border": lambda m: pl.Block(
        [[m.tridiagonal(m.n - 4), m.a(m.n - 4, 4)], [m.a(4, m.n - 4), m.n * m.square(4)]]
    ),
    "Block of diagonals": lambda m: m.grid(lambda h, t: t * m.diag(h)),
    "Block of 3 x 3 diagonals": lambda m: m.grid(lambda h, t: t * m.diag(h), 3),
    "Block of bands": lambda m: m.grid(lambda h, t: t * m.tridiagonal(h)),
    "Block of circulants": lambda m: m.grid(m.circulant),
    "Block of 3 x 3 circulants": lambda m: m.grid(m.circulant, 3),
    "Block of Toeplitz": lambda m: m.grid(lambda h, t: t * m.toeplitz(h)),
    "Diag + U V'": lambda m: m.diag() + pl.LowRank(m.a(m.n, 3), m.a(m.n, 3) / m.n),
    "Toeplitz + U U'": lambda m: m.own_toeplitz() + m.thin(),
    "Toeplitz + Diag": lambda m: m.own_toeplitz() + m.diag(),
    "Toeplitz + Tridiagonal": lambda m: m.toeplitz() + m.tridiagonal(),
    "Toeplitz + Toeplitz'": lambda m: (lambda t: t + t.T)(m.toeplitz()),
    "Circulant + Diag": lambda m: m.circulant() + m.diag(),
    "inv(Toeplitz) + Diag": lambda m: pl.inv(m.own_toeplitz()) + m.diag(),
    "inv(Tridiagonal) + Diag": lambda m: pl.inv(m.tridiagonal()) + m.diag(),
    "inv(Sparse) + Diag": lambda m: pl.inv(m.sparse()) + m.diag(),
    "inv(Diag + U U') + Diag": lambda m: pl.inv(m.diag() + m.thin()) + m.diag(),
    "inv(own Kron) + c I": lambda m: pl.inv(m.own_kron()) + m.eye(),
    "D T D + c I": lambda m: (lambda d: d @ m.own_toeplitz() @ d + m.eye())(m.diag()),
    "T T' + c I": lambda m: (lambda t: t @ t.T + m.eye())(m.toeplitz()),
    "T D T": lambda m: m.tridiagonal() @ m.diag() @ m.toeplitz(),
    "S Toeplitz S' + c I": lambda m: m.picked(m.own_toeplitz(m.n + 20), m.n + 20) + m.eye(),
    "S' D S + Tridiagonal": lambda m: (
        lambda s: s.T @ m.diag(m.n // 2) @ s + m.tridiagonal()
    )(pl.Selection(m.rng.permutation(m.n)[: m.n // 2], m.n)),
    "slice of Diag + Toeplitz": lambda m: (m.own_toeplitz(m.n + 8) + m.diag(m.n + 8))[8:, 8:],
    "slice of inv(Tridiagonal)": lambda m: pl.inv(m.tridiagonal(m.n + 8))[8:, 8:],
    "Toeplitz o Toeplitz": lambda m: pl.HadamardProduct(m.own_toeplitz(), m.own_toeplitz()),
    "P T P'": lambda m: m.between(pl.Permutation(m.rng.permutation(m.n)), m.tridiagonal()),
    "DFT D DFT' + c I": lambda m: m.between(pl.DFT(m.n, norm="ortho"), m.diag()) + m.eye(),
    "DCT D DCT' + c I": lambda m: m.between(pl.DCT(m.n, norm="ortho"), m.diag()) + m.eye(),
    "H D H + c I": lambda m: m.between(pl.Householder(m.a(m.n)), m.diag()) + m.eye(),
    "Circulant D Circulant' + c I": lambda m: m.between(m.circulant(), m.diag()) + m.eye(),
}  # fmt: skip


def actions(a, rng):
    n = a.shape[-1]
    b, k = rng.standard_normal(n), pl.Dense(rng.standard_normal((5, n)))
    inverse = pl.inv(a)
    return {
        "solve": lambda: pl.solve(a, b),
        "logdet": lambda: pl.slogdet(a),
        "diagonal of inv": lambda: inverse.diagonal(),
        "trace of inv": lambda: pl.trace(inverse),
        "diag(K inv K')": lambda: pl.diagonal(k @ inverse @ k.T),
    }


def figures(ask):
    """(flops of the steps that ran, bytes at most, the dense steps among them)."""
    _core._clear_store()
    with pl.explaining() as log:
        ask()
    ran = [s for p in log.plans for s in p.steps if s["took"] is not None]
    ran = [s for s in ran if not s.get("conditional")]
    names = sorted({s["name"] for s in ran} & set(DENSE.split()))
    return sum(s["flops"] for s in ran), max(p.memory for p in log.plans), names


def walk(name):
    """Lines of what is dense."""
    found = []
    for action in actions(pl.Identity(1), np.random.default_rng(0)):
        few, many = (
            figures(actions(CASES[name](m), m.rng)[action]) for m in (Make(n) for n in SIZES)
        )
        growth = np.log(max(many[0], 1) / max(few[0], 1)) / np.log(SIZES[1] / SIZES[0])
        whole = many[1] / (8 * SIZES[1] ** 2)
        word = "cubic" if growth > 2.4 else "n x n" if whole > 0.5 else None
        if word:
            found.append(
                f"    {action:16s} {word}, n^{growth:.1f}, {many[0]:.2g} flops, "
                f"{whole:.1f} n^2 numbers: {' '.join(many[2])}"
            )
    return found


def main(names):
    warnings.simplefilter("ignore")
    clean = []
    for name in names or CASES:
        found = walk(name)
        if found:
            print(name, *found, sep="\n", flush=True)
        else:
            clean.append(name)
    print(f"nothing dense in {len(clean)}: {', '.join(clean)}")


if __name__ == "__main__":
    main(sys.argv[1:])
