"""Square operators of all kinds and composites, far from singular, of sizes at which structure
pays: ``CASES[name](Make(dtype, batch))``."""

import numpy as np
import scipy.sparse as sp

import pylinop as pl

N = 48


class Make:
    """Operands of one dtype, drawn in one order, of sizes at which structure pays."""

    def __init__(self, dtype, batch=()):
        self.rng, self.dt, self.batch = np.random.default_rng(16), np.dtype(dtype), batch

    def a(self, *shape):
        x = self.rng.standard_normal(self.batch + shape)
        if self.dt.kind == "c":
            x = x + 1j * self.rng.standard_normal(self.batch + shape)
        return x.astype(self.dt)

    def d(self, n=N):
        """A diagonal far from zero."""
        x = self.a(n)
        return (
            x + 4 * np.exp(1j * np.angle(x)) if self.dt.kind == "c" else x + 4 * np.sign(x)
        ).astype(self.dt)

    def positive(self, n=N):
        return (np.abs(self.a(n)) + 1).astype(self.dt)

    def square(self, n):
        return self.a(n, n) + 3 * n * np.eye(n, dtype=self.dt)

    def hermitian(self, n):
        x = self.a(n, n)
        return x + np.swapaxes(x.conj(), -1, -2)

    def definite(self, n):
        x = self.a(n, n)
        return x @ np.swapaxes(x.conj(), -1, -2) + n * np.eye(n, dtype=self.dt)


def toeplitz(m, n=N):
    c, r = m.a(n), m.a(n)
    c[..., 0] = r[..., 0] = 4 * n
    return pl.Toeplitz(c, r)


def own_toeplitz(m, n=N):
    c = 0.1 * m.a(n)
    c[..., 0] = 4 * n
    return pl.Toeplitz(c)


def circulant(m, n=N):
    c = m.a(n)
    c[..., 0] = 4 * n
    return pl.Circulant(c)


def hankel(m, n=N):
    c, r = m.a(n), m.a(n)
    c[..., -1] = r[..., 0] = 4 * n
    return pl.Hankel(c, r)


def banded(m, n=N, lower=2, upper=1):
    ab = m.a(lower + upper + 1, n)
    ab[..., upper, :] += 16
    return pl.Banded((lower, upper), ab)


def tridiagonal(m, n=N):
    return pl.Tridiagonal(m.a(n - 1), m.d(n) + 8, m.a(n - 1))


def scattered(m, n=600):
    a = sp.random_array((n, n), density=3 / n, rng=m.rng).astype(m.dt)
    return (a + 8 * sp.eye_array(n)).tocsr().astype(m.dt)


def sparse(m, n=600):
    return pl.Sparse(scattered(m, n))


def block_tridiagonal(m, blocks=8, k=6):
    mid = m.a(blocks, k, k) + 20 * np.eye(k)
    return pl.BlockTridiagonal(m.a(blocks - 1, k, k), mid.astype(m.dt), m.a(blocks - 1, k, k))


def lowrank(m, n=N, k=3):
    return pl.LowRank(m.a(n, k), m.a(n, k))


def gram(m, n=N, k=3):
    return pl.LowRank(m.a(n, k))


def selected(m, inner, n):
    return pl.Selection(m.rng.permutation(n)[: n - 8], n)


def small_blocks(m, many=30):
    return pl.BlockDiag(*[pl.Dense(m.definite(4), "pos") for _ in range(many)])


def tapped(m, k=7):
    """A short kernel far from singular."""
    g = 0.3 * m.a(k)
    g[..., k // 2] = 4
    return g


def kron(m, p=8, q=6):
    return pl.Kron(m.square(p), m.square(q))


def own_kron(m, p=12, q=9):
    return pl.Kron(pl.Dense(m.definite(p), "pos"), pl.Dense(m.definite(q), "pos"))


def congruence_of(m, inner):
    n = inner.shape[-1]
    s = pl.Selection(m.rng.permutation(n)[: n - 8], n)
    return s @ inner @ s.T + 0.5 * pl.Identity(n - 8)


BATCHES = ["Dense", "Diag", "Toeplitz", "Kron", "BlockDiag", "Tridiagonal", "Diag + LowRank",
           "Diag + LowRank(U)", "Dense + Diag", "product", "multiple"]  # fmt: skip
CASES = {
    "Dense": lambda m: pl.Dense(m.square(N)),
    "Dense sym": lambda m: pl.Dense(
        (lambda x: x + np.swapaxes(x, -1, -2))(m.square(N)), "sym"
    ),
    "Dense her": lambda m: pl.Dense(m.hermitian(N), "her"),
    "Dense pos": lambda m: pl.Dense(m.definite(N), "pos"),
    "Dense lower": lambda m: pl.Dense(np.tril(m.square(N)), "lower triangular"),
    "Identity": lambda m: pl.Identity(N, dtype=m.dt),
    "Diag": lambda m: pl.Diag(m.d()),
    "Permutation": lambda m: pl.Permutation(m.rng.permutation(N), dtype=m.dt),
    "Triangular": lambda m: pl.Triangular(m.square(N)),
    "Tridiagonal": tridiagonal,
    "Banded": banded,
    "Toeplitz": toeplitz,
    "Toeplitz(c)": own_toeplitz,
    "Circulant": circulant,
    "Hankel": hankel,
    "Sparse": sparse,
    "SparseTriangular": lambda m: pl.SparseTriangular(sp.tril(scattered(m)).tocsr()),
    "BlockTridiagonal": block_tridiagonal,
    "Householder": lambda m: pl.Householder(m.a(N)),
    "DFT": lambda m: pl.DFT(N),
    "DCT": lambda m: pl.DCT(N),
    "Hadamard": lambda m: pl.Hadamard(64),
    "Laplacian": lambda m: pl.Laplacian((25, 24), "dirichlet", dtype=m.dt),
    "Kernel": lambda m: pl.Kernel("rbf", 3.0 * np.arange(N)[:, None]) + pl.Identity(N),
    "Kron": kron,
    "Kron of three": lambda m: pl.Kron(m.square(4), pl.Diag(m.d(4)), m.square(3)),
    "Kron + c I": lambda m: kron(m, 12, 10) + 0.5 * pl.Identity(120),
    "own Kron + c I": lambda m: own_kron(m) + 0.5 * pl.Identity(108),
    "own Kron + Diag": lambda m: own_kron(m) + pl.Diag(m.positive(108)),
    "KronSum": lambda m: pl.KronSum(m.square(12), m.square(10)),
    "own KronSum": lambda m: pl.KronSum(
        pl.Dense(m.definite(12), "pos"), pl.Dense(m.definite(10), "pos")
    ),
    "BlockDiag": lambda m: pl.BlockDiag(m.square(20), tridiagonal(m, 18), pl.Diag(m.d(10))),
    "BlockDiag alike": lambda m: pl.BlockDiag(*[m.square(5) for _ in range(20)]),
    "BlockDiag of composites": lambda m: pl.BlockDiag(
        pl.Diag(m.d(60)) + lowrank(m, 60), kron(m), circulant(m, 20) @ toeplitz(m, 20)
    ),
    "Block": lambda m: pl.Block(
        [[tridiagonal(m, 40), m.a(40, 4)], [m.a(4, 40), m.square(4)]]
    ),
    "Block triangle": lambda m: pl.Block(
        [[m.square(20), pl.Zeros((20, 30))], [m.a(30, 20), tridiagonal(m, 30)]]
    ),
    "Diag + LowRank": lambda m: pl.Diag(m.d()) + lowrank(m),
    "Diag + LowRank(U)": lambda m: pl.Diag(m.positive()) + gram(m),
    "Diag + LowRank(U, C)": lambda m: pl.Diag(m.positive())
    + pl.LowRank(m.a(N, 3), C=m.definite(3)),
    "c I + LowRank": lambda m: 0.5 * pl.Identity(N, dtype=m.dt) + lowrank(m),
    "LowRankUpdate": lambda m: pl.LowRankUpdate(tridiagonal(m), m.a(N, 3), m.a(N, 3), m.square(3)),
    "Toeplitz + LowRank": lambda m: toeplitz(m, 200) + lowrank(m, 200),
    "Kron + LowRank": lambda m: kron(m, 12, 10) + lowrank(m, 120),
    "BlockDiag + LowRank": lambda m: pl.BlockDiag(m.square(60), m.square(60)) + lowrank(m, 120),
    "Sparse + LowRank": lambda m: sparse(m) + lowrank(m, 600),
    "Circulant + LowRank": lambda m: circulant(m, 120) + lowrank(m, 120),
    "LowRankUpdate of a view": lambda m: (pl.Diag(m.d()) + lowrank(m)).T + lowrank(m),
    "Diag + U V": lambda m: pl.Diag(m.d(200)) + pl.Dense(m.a(200, 3)) @ pl.Dense(m.a(3, 200)),
    "Diag + U M V": lambda m: pl.Diag(m.d(200))
    + pl.Dense(m.a(200, 3)) @ pl.Dense(m.square(3)) @ pl.Dense(m.a(3, 200)),
    "Diag + U U^H": lambda m: (
        lambda u: pl.Diag(m.positive(200)) + u @ u.H
    )(pl.Dense(m.a(200, 3))),
    "c I + U U^H": lambda m: (lambda u: 0.5 * pl.Identity(200) + u @ u.H)(pl.Dense(m.a(200, 3))),
    "Dense + Diag": lambda m: pl.Dense(m.square(N)) + pl.Diag(m.d()),
    "Dense pos + Diag": lambda m: pl.Dense(m.definite(N), "pos") + pl.Diag(m.positive()),
    "X^H X + c I": lambda m: (lambda x: x.H @ x + 0.5 * pl.Identity(N))(pl.Dense(m.a(2 * N, N))),
    "X^H X": lambda m: (lambda x: x.H @ x)(pl.Dense(m.a(2 * N, N))),
    "bands added": lambda m: banded(m, 100) + tridiagonal(m, 100),
    "bands multiplied": lambda m: banded(m, 100) @ tridiagonal(m, 100) + pl.Diag(m.d(100)),
    "differences": lambda m: (lambda f: f.T @ f + pl.Diag(m.positive(100)))(
        pl.FiniteDifference(100)
    ),
    "product": lambda m: tridiagonal(m) @ pl.Diag(m.d()) @ toeplitz(m),
    "product of Dense": lambda m: pl.Dense(m.square(N)) @ pl.Dense(m.square(N)),
    "product with an inverse": lambda m: pl.inv(tridiagonal(m)) @ circulant(m),
    "multiple": lambda m: 3.0 * (pl.Dense(m.square(N)) @ tridiagonal(m)),
    "multiple of Diag + U V": lambda m: 3.0
    * (pl.Diag(m.d(200)) + pl.Dense(m.a(200, 3)) @ pl.Dense(m.a(3, 200))),
    "D (Diag + LowRank) E": lambda m: pl.Diag(m.d())
    @ (pl.Diag(m.d()) + lowrank(m))
    @ pl.Diag(m.d()),
    "power": lambda m: (pl.Diag(m.d()) + lowrank(m)) ** 2,
    "inverse": lambda m: pl.inv(pl.Diag(m.d()) + lowrank(m)),
    "inverse + LowRank": lambda m: pl.inv(tridiagonal(m, 200)) + pl.Diag(m.d(200)),
    "S T S^H + c I": lambda m: congruence_of(m, own_toeplitz(m, 120)),
    "S nonsymmetric T S^H + c I": lambda m: congruence_of(m, toeplitz(m, 120)),
    "S Kron S^H + c I": lambda m: congruence_of(m, own_kron(m)),
    "Congruence": lambda m: pl.Congruence(m.square(N), tridiagonal(m)),
    "Root": lambda m: pl.Root(m.square(N)),
    "Sliced": lambda m: (own_toeplitz(m, 60) + 0.5 * pl.Identity(60))[8:, 8:],
    "Sliced by indices": lambda m: (own_toeplitz(m, 60) + 0.5 * pl.Identity(60))[
        np.ix_(np.arange(0, 60, 2), np.arange(0, 60, 2))
    ],
    "Sliced block": lambda m: (pl.Diag(m.d()) + lowrank(m))[8:, 8:],
    "elementwise": lambda m: pl.HadamardProduct(m.square(N), toeplitz(m)),
    "Toeplitz + Toeplitz^T": lambda m: (lambda t: t + t.T)(toeplitz(m, 200)),
    "Kron + Kron": lambda m: kron(m, 12, 10) + kron(m, 12, 10),
    "sum of own Krons": lambda m: own_kron(m) + own_kron(m),
    "Kron of composites": lambda m: pl.Kron(
        pl.Diag(m.d(20)) + lowrank(m, 20), own_kron(m, 3, 2) + pl.Identity(6)
    ),
    "Dense orthogonal": lambda m: pl.Dense(np.linalg.qr(m.a(N, N))[0], "orthogonal"),
    "triangles": lambda m: pl.Dense(np.tril(m.square(N)), "lower triangular")
    + pl.Triangular(m.square(N)),
    "many blocks + Diag": lambda m: small_blocks(m) + pl.Diag(m.positive(120)),
    "mixed model": lambda m: small_blocks(m)
    + pl.LowRankUpdate(pl.Diag(m.positive(120)), m.a(120, 2)),
    "two updates": lambda m: pl.LowRankUpdate(pl.Diag(m.positive(120)), m.a(120, 2))
    + pl.LowRankUpdate(pl.Diag(m.positive(120)), m.a(120, 2)),
    "Toeplitz + LowRankUpdate": lambda m: own_toeplitz(m, 200)
    + pl.LowRankUpdate(pl.Identity(200), m.a(200, 2)),
    "Sliced update": lambda m: pl.LowRankUpdate(pl.Diag(m.positive(120)), m.a(120, 2))[20:, 20:],
    "S^T D S + LowRank": lambda m: (
        lambda s: s.T @ pl.Diag(m.positive(80)) @ s + pl.Identity(100) + pl.LowRank(m.a(100, 2))
    )(pl.Selection(m.rng.permutation(100)[:80], 100)),
    "Convolution": lambda m: pl.Convolution(tapped(m), 120, "same"),
    "K^H K + c I": lambda m: (lambda k: k.H @ k + 0.5 * pl.Identity(120))(
        pl.Convolution(tapped(m), 120)
    ),
    "Toeplitz o Toeplitz": lambda m: pl.HadamardProduct(toeplitz(m, 120), toeplitz(m, 120)),
    "Hankel o Hankel": lambda m: pl.HadamardProduct(hankel(m, 120), hankel(m, 120)),
    "BlockTridiagonal + Diag": lambda m: block_tridiagonal(m) + pl.Diag(m.d()),
}  # fmt: skip
