"""Views, sides and parts of inverses beside their plain spelling, over all kinds and composites.

    OPENBLAS_NUM_THREADS=1 python benchmarks/views.py [n ...] [--only PATTERN] [--seconds S] [--all]

For every kind and composite of n rows (300 and 1500): solve(A, b) and solves with A.T, A.H,
A.conj(), 2 A and b @ inv(A); logdet of each; A @ b and those of each view; the diagonal, the
trace, one entry and a corner of the inverse. Before each call one number of each operand changes,
so that nothing kept is used again, and A is written anew. Each is timed beside the plain spelling
(or, of an inverse's parts, beside what holds as much: a solve with as many columns), in turns, by
the thread's CPU time, and once more alone where it takes longer. Printed: what takes more than 1.5
times as long, by minima; --all: all. And the solve beside the best known way by hand, for kinds
that have one in SciPy."""

import argparse
import fnmatch
import os
import sys
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
import scipy.sparse.linalg as ssl

import pylinop as pl

BOUND = 1.5


class Draw:
    """Operands of n rows; every array that is drawn is remembered, and changed between calls."""

    def __init__(self, n):
        self.g, self.n, self.arrays = np.random.default_rng(16), n, []
        self.p = next(p for p in range(int(n**0.5), 0, -1) if n % p == 0)
        self.q = n // self.p

    def keep(self, a):
        a = np.ascontiguousarray(a)
        self.arrays.append(a)
        return a

    def a(self, *shape):
        return self.keep(self.g.standard_normal(shape))

    def d(self, n=None):
        return self.keep(self.g.uniform(3, 5, n or self.n))

    def square(self, n=None):
        n = n or self.n
        return self.keep(self.g.standard_normal((n, n)) + 3 * n**0.5 * np.eye(n))

    def definite(self, n=None):
        n = n or self.n
        x = self.g.standard_normal((n, n))
        return self.keep(x @ x.T / n + np.eye(n))

    def first(self, n=None):
        """A column that dominates: of Toeplitz and circulant matrices far from singular."""
        c = 0.3 * self.g.standard_normal(n or self.n) / (n or self.n) ** 0.5
        c[0] = 4
        return self.keep(c)

    def column(self, n=None):
        """The first column of a definite Toeplitz matrix."""
        return self.keep(0.9 ** np.arange(n or self.n) + np.eye(1, n or self.n)[0])

    def change(self):
        for a in self.arrays:
            a.flat[0] *= 1 + 1e-13


def sparse(m):
    a = sp.random_array((m.n, m.n), density=4 / m.n, rng=m.g) + 8 * sp.eye_array(m.n)
    a = a.tocsr()
    m.arrays.append(a.data)
    return a


def band(m):
    ab = m.a(4, m.n)
    ab[1] += 12
    return ab


def block_tridiagonal(m, k=5):
    b = m.n // k
    mid = m.keep(m.g.standard_normal((b, k, k)) + 12 * np.eye(k))
    return m.a(b - 1, k, k), mid, m.a(b - 1, k, k)


# name: draw(m) -> (the operands, how A is written of them, a way by hand to solve or None)
CASES = {
    "Dense": lambda m: ((m.square(),), pl.Dense, np.linalg.solve),
    "Dense pos": lambda m: (
        (m.definite(),),
        lambda a: pl.Dense(a, "pos"),
        lambda a, b: sl.solve(a, b, assume_a="pos", check_finite=False),
    ),
    "Dense her": lambda m: (
        (m.keep((lambda x: x + x.T)(m.g.standard_normal((m.n, m.n)))),),
        lambda a: pl.Dense(a, "her"),
        lambda a, b: sl.solve(a, b, assume_a="sym", check_finite=False),
    ),
    "Diag": lambda m: ((m.d(),), pl.Diag, lambda d, b: b / (d if b.ndim == 1 else d[:, None])),
    "Permutation": lambda m: ((m.g.permutation(m.n),), pl.Permutation, None),
    "Triangular": lambda m: (
        (m.square(),),
        pl.Triangular,
        lambda a, b: sl.solve_triangular(a, b, lower=True, check_finite=False),
    ),
    "Tridiagonal": lambda m: (
        (m.a(m.n - 1), m.d(), m.a(m.n - 1)),
        pl.Tridiagonal,
        lambda lo, d, up, b: sl.lapack.dgtsv(lo, d, up, b)[3],
    ),
    "Banded": lambda m: (
        (band(m),),
        lambda ab: pl.Banded((2, 1), ab),
        lambda ab, b: sl.solve_banded((2, 1), ab, b, check_finite=False),
    ),
    "Toeplitz": lambda m: (
        (m.first(), m.first()),
        pl.Toeplitz,
        lambda c, r, b: sl.solve_toeplitz((c, r), b, check_finite=False),
    ),
    "Toeplitz(c)": lambda m: (
        (m.column(),),
        pl.Toeplitz,
        lambda c, b: sl.solve_toeplitz(c, b, check_finite=False),
    ),
    "Circulant": lambda m: ((m.first(),), pl.Circulant, lambda c, b: sl.solve_circulant(c, b)),
    "Hankel": lambda m: (
        (lambda c, r: (m.keep(c[::-1]), r))(m.first(), m.first()),
        pl.Hankel,
        lambda c, r, b: sl.solve_toeplitz((c[::-1], r), b[::-1], check_finite=False),
    ),
    "Sparse": lambda m: (
        (sparse(m),),
        pl.Sparse,
        lambda a, b: ssl.splu(a.tocsc()).solve(b),
    ),
    "SparseTriangular": lambda m: ((sp.tril(sparse(m)).tocsr(),), pl.SparseTriangular, None),
    "BlockTridiagonal": lambda m: (block_tridiagonal(m), pl.BlockTridiagonal, None),
    "Householder": lambda m: ((m.a(m.n),), pl.Householder, None),
    "DCT": lambda m: ((m.n,), pl.DCT, None),
    "Laplacian": lambda m: (((m.p, m.q),), lambda s: pl.Laplacian(s, "dirichlet"), None),
    "Kron": lambda m: (
        (m.square(m.p), m.square(m.q)),
        pl.Kron,
        lambda a, b, y: np.linalg.solve(
            a, np.linalg.solve(b, y.reshape(len(a), -1).T).T
        ).ravel() if y.ndim == 1 else None,
    ),
    "Kron + c I": lambda m: (
        (m.square(m.p), m.square(m.q)),
        lambda a, b: pl.Kron(a, b) + 0.5 * pl.Identity(m.n),
        None,
    ),
    "own Kron + c I": lambda m: (
        (m.definite(m.p), m.definite(m.q)),
        lambda a, b: pl.Kron(pl.Dense(a, "pos"), pl.Dense(b, "pos")) + 0.5 * pl.Identity(m.n),
        None,
    ),
    "own Kron + Diag": lambda m: (
        (m.definite(m.p), m.definite(m.q), m.d()),
        lambda a, b, d: pl.Kron(pl.Dense(a, "pos"), pl.Dense(b, "pos")) + pl.Diag(d),
        None,
    ),
    "KronSum": lambda m: ((m.square(m.p), m.square(m.q)), pl.KronSum, None),
    "own KronSum": lambda m: (
        (m.definite(m.p), m.definite(m.q)),
        lambda a, b: pl.KronSum(pl.Dense(a, "pos"), pl.Dense(b, "pos")),
        None,
    ),
    "BlockDiag": lambda m: (
        (m.square(m.n // 3), m.square(m.n // 3), m.d(m.n // 3)),
        lambda a, b, d: pl.BlockDiag(a, b, pl.Diag(d)),
        None,
    ),
    "BlockDiag alike": lambda m: (
        tuple(m.square(5) for _ in range(m.n // 5)),
        lambda *blocks: pl.BlockDiag(*blocks),
        lambda *x: np.linalg.solve(np.array(x[:-1]), x[-1].reshape(m.n // 5, 5, -1)).reshape(
            x[-1].shape
        ),
    ),
    "BlockDiag of one array": lambda m: (
        (m.keep(m.g.standard_normal((m.n // 5, 5, 5)) + 9 * np.eye(5)),),
        pl.BlockDiag,
        lambda a, b: np.linalg.solve(a, b.reshape(m.n // 5, 5, -1)).reshape(b.shape),
    ),
    "Block": lambda m: (
        (m.d(m.n - 4), m.a(m.n - 4, 4), m.a(4, m.n - 4), m.square(4)),
        lambda d, b, c, s: pl.Block([[pl.Diag(d), b], [c, s]]),
        None,
    ),
    "Block triangle": lambda m: (
        (m.square(m.n // 2), m.a(m.n // 2, m.n // 2), m.d(m.n // 2)),
        lambda a, c, d: pl.Block([[a, pl.Zeros((m.n // 2, m.n // 2))], [c, pl.Diag(d)]]),
        None,
    ),
    "Diag + LowRank": lambda m: (
        (m.d(), m.a(m.n, 5), m.a(m.n, 5)),
        lambda d, u, v: pl.Diag(d) + pl.LowRank(u, v),
        None,
    ),
    "Diag + LowRank(U)": lambda m: (
        (m.d(), m.a(m.n, 5)),
        lambda d, u: pl.Diag(d) + pl.LowRank(u),
        lambda d, u, b: (
            lambda w, y: y - w @ np.linalg.solve(np.eye(5) + u.T @ w, u.T @ y)
        )(u / d[:, None], b / (d if b.ndim == 1 else d[:, None])),
    ),
    "c I + LowRank": lambda m: (
        (m.a(m.n, 5),), lambda u: 0.5 * pl.Identity(m.n) + pl.LowRank(u), None),
    "LowRankUpdate": lambda m: (
        (m.a(m.n - 1), m.d() + 9, m.a(m.n - 1), m.a(m.n, 3)),
        lambda lo, d, up, u: pl.LowRankUpdate(pl.Tridiagonal(lo, d, up), u),
        None,
    ),
    "Toeplitz + LowRank": lambda m: (
        (m.column(), m.a(m.n, 3)), lambda c, u: pl.Toeplitz(c) + pl.LowRank(u), None),
    "Kron + LowRank": lambda m: (
        (m.square(m.p), m.square(m.q), m.a(m.n, 3), m.a(m.n, 3)),
        lambda a, b, u, v: pl.Kron(a, b) + pl.LowRank(u, v),
        None,
    ),
    "Circulant + LowRank": lambda m: (
        (m.first(), m.a(m.n, 3)), lambda c, u: pl.Circulant(c) + pl.LowRank(u), None),
    "Sparse + LowRank": lambda m: (
        (sparse(m), m.a(m.n, 3)), lambda a, u: pl.Sparse(a) + pl.LowRank(u), None),
    "Diag + U V": lambda m: (
        (m.d(), m.a(m.n, 3), m.a(3, m.n)),
        lambda d, u, v: pl.Diag(d) + pl.Dense(u) @ pl.Dense(v),
        None,
    ),
    "Dense + Diag": lambda m: (
        (m.square(), m.d()),
        lambda a, d: pl.Dense(a) + pl.Diag(d),
        lambda a, d, b: np.linalg.solve(a + np.diag(d), b),
    ),
    "X^T X + c I": lambda m: (
        (m.a(2 * m.n, m.n),),
        lambda x: pl.Dense(x).T @ pl.Dense(x) + 0.5 * pl.Identity(m.n),
        lambda x, b: sl.solve(
            x.T @ x + 0.5 * np.eye(m.n), b, assume_a="pos", check_finite=False),
    ),
    "bands added": lambda m: (
        (band(m), m.a(m.n - 1), m.d()),
        lambda ab, e, d: pl.Banded((2, 1), ab) + pl.Tridiagonal(e, d, e),
        None,
    ),
    "bands multiplied": lambda m: (
        (band(m), m.d(), m.d()),
        lambda ab, d, e: pl.Banded((2, 1), ab) @ pl.Diag(d) @ pl.Banded((2, 1), ab) + pl.Diag(e),
        None,
    ),
    "product": lambda m: (
        (m.d(), m.first(), m.a(m.n - 1), m.d() + 9, m.a(m.n - 1)),
        lambda d, c, lo, e, up: pl.Tridiagonal(lo, e, up) @ pl.Diag(d) @ pl.Circulant(c),
        None,
    ),
    "product of Dense": lambda m: (
        (m.square(), m.square()), lambda a, b: pl.Dense(a) @ pl.Dense(b), None),
    "D (Diag + LowRank) E": lambda m: (
        (m.d(), m.d(), m.a(m.n, 3), m.d()),
        lambda d, e, u, f: pl.Diag(d) @ (pl.Diag(e) + pl.LowRank(u)) @ pl.Diag(f),
        None,
    ),
    "power": lambda m: (
        (m.d(), m.a(m.n, 3)), lambda d, u: (pl.Diag(d) + pl.LowRank(u)) ** 2, None),
    "inverse": lambda m: (
        (m.d(), m.a(m.n, 3)), lambda d, u: pl.inv(pl.Diag(d) + pl.LowRank(u)), None),
    "Congruence": lambda m: (
        (m.square(), m.d()), lambda a, d: pl.Congruence(a, pl.Diag(d)), None),
    "Root": lambda m: ((m.square(),), pl.Root, None),
    "Sliced": lambda m: (
        (m.column(m.n + 8),),
        lambda c: (pl.Toeplitz(c) + 0.5 * pl.Identity(m.n + 8))[8:, 8:],
        None,
    ),
    "elementwise": lambda m: (
        (m.definite(), m.column()),
        lambda a, c: pl.HadamardProduct(pl.Dense(a, "pos"), pl.Toeplitz(c)),
        None,
    ),
    "sum of own Krons": lambda m: (
        (m.definite(m.p), m.definite(m.q), m.definite(m.p), m.definite(m.q)),
        lambda a, b, c, d: pl.Kron(pl.Dense(a, "pos"), pl.Dense(b, "pos"))
        + pl.Kron(pl.Dense(c, "pos"), pl.Dense(d, "pos")),
        None,
    ),
    "Kernel on a line + c I": lambda m: (
        (m.keep(np.sort(m.g.uniform(0, 10, m.n))),),
        lambda x: pl.Kernel("matern32", x[:, None]) + 0.1 * pl.Identity(m.n),
        None,
    ),
}  # fmt: skip

VIEWS = {
    "": lambda A: A,
    ".T": lambda A: A.T,
    ".H": lambda A: A.H,
    ".conj()": lambda A: A.conj(),
    "2 *": lambda A: 2 * A,
    "-": lambda A: -A,
}


def questions(make, b, e1, block):
    """(what, its plain spelling, how) over an operator written anew at each call."""
    rows = []
    for view, of in VIEWS.items():
        rows.append((f"solve {view}", "solve ", lambda of=of: pl.solve(of(make()), b)))
        rows.append((f"logdet {view}", "logdet ", lambda of=of: pl.slogdet(of(make()))))
        rows.append((f"product {view}", "product ", lambda of=of: of(make()) @ b))
    rows.append(("b @ inv(A)", "solve ", lambda: b @ pl.inv(make())))
    rows.append(("b @ A", "product ", lambda: b @ make()))
    rows.append(("inv(A) @ b", "solve ", lambda: pl.inv(make()) @ b))
    n, k = len(b), block.shape[1]
    corner = np.arange(k)
    pick = np.ix_(corner, corner)
    rows += [
        ("solve e1", "solve e1", lambda: pl.solve(make(), e1)),
        ("solve block", "solve block", lambda: pl.solve(make(), block)),
        ("entry of inv", "solve e1", lambda: pl.inv(make())[n - 1, 0]),
        ("corner of inv", "solve block", lambda: pl.inv(make())[:k, :k].toarray()),
        ("corner by indices", "solve block", lambda: pl.inv(make())[pick].toarray()),
        ("diagonal of inv", "diagonal of inv", lambda: pl.diagonal(pl.inv(make()))),
        ("dense inverse", "dense inverse", lambda: pl.inv(make()).toarray()),
        ("diagonal of inv .T", "diagonal of inv", lambda: pl.diagonal(pl.inv(make().T))),
        ("diagonal of inv 2 *", "diagonal of inv", lambda: pl.diagonal(pl.inv(2 * make()))),
        ("trace of inv", "diagonal of inv", lambda: pl.trace(pl.inv(make()))),
        ("diagonal beside the dense inverse", "dense inverse",
         lambda: pl.diagonal(pl.inv(make()))),
    ]  # fmt: skip
    return rows


def minima(rows, change, seconds, least=4):
    """The least CPU time of each, in turns: {what: seconds}."""
    best, begin, rounds = {}, time.perf_counter(), 0
    while rounds < least or (rounds < 60 and time.perf_counter() - begin < seconds):
        for what, _, how in rows:
            if best.get(what, 0) > 1.0 and rounds > 1:
                continue
            change()
            t = time.thread_time()
            how()
            t = time.thread_time() - t
            best[what] = min(best.get(what, t), t)
        rounds += 1
    return best


def measured(name, n, seconds):
    """[(what, seconds, beside what, seconds)] of one case."""
    m = Draw(n)
    operands, write, hand = CASES[name](m)
    b, e1, block = m.g.standard_normal(n), np.eye(n)[:, 0].copy(), np.eye(n, 5)
    rows = questions(lambda: write(*operands), b, e1, block)
    if hand:
        rows.append(("by hand", "by hand", lambda: hand(*operands, b)))
        near = np.abs(pl.solve(write(*operands), b) - hand(*operands, b)).max()
        assert near < 1e-6 * np.abs(b).max(), f"{name}: the way by hand is another answer"
    best = minima(rows, m.change, seconds)
    how = {row[0]: row for row in rows}
    beside = [("solve ", "by hand")] * bool(hand) + [(what, plain) for what, plain, _ in rows]
    found = []
    for what, plain in beside:
        times = best
        if best[what] > BOUND * best[plain]:  # both once more, alone, before it is said
            times = minima([how[what], how[plain]], m.change, seconds, 20)
        if plain != what:
            found.append((what, times[what], plain, times[plain]))
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("n", nargs="*", type=int, default=[300, 1500])
    p.add_argument("--only", default="*", metavar="PATTERN")
    p.add_argument("--seconds", type=float, default=0.5, help="a case, at least four rounds")
    p.add_argument("--all", action="store_true", help="print what is within the bound, too")
    args = p.parse_args()
    pl.config(warn_limit=1 << 40, slow_limit=1e6)
    for n in args.n:
        asked = above = 0
        for name in CASES:
            if not fnmatch.fnmatch(name, args.only):
                continue
            for what, took, plain, other in measured(name, n, args.seconds):
                asked += 1
                far = took > BOUND * other
                above += far
                if far or args.all:
                    print(
                        f"{n:5d}  {name:24s} {what:34s} {took * 1e6:10.1f} us"
                        f"  {plain:16s} {other * 1e6:10.1f} us  {took / other:6.2f}",
                        flush=True,
                    )
        print(f"{n}: {above} of {asked} above {BOUND}")


if __name__ == "__main__":
    sys.exit(main())
