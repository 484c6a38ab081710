"""Diagonals of inverses beside NumPy and SciPy by hand, interleaved in one process.

    OPENBLAS_NUM_THREADS=1 python benchmarks/inverse_diagonals.py [rounds]

Before each call the last bits of an operand change, so that nothing kept is used again. Each line:
the least and the median of pylinop, of the way by hand, and the ratio of the least."""

import statistics
import sys
import time

import numpy as np

import pylinop as pl


def low_rank(g, n, k):
    u, d = g.standard_normal((n, k)), g.uniform(1, 2, n)

    def by_hand():
        w = u / d[:, None]
        return 1 / d - np.einsum("ij,ji->i", w, np.linalg.solve(np.eye(k) + u.T @ w, w.T))

    return u, lambda: pl.inv(pl.LowRank(u) + pl.Diag(d)).diagonal(), by_hand


def circulant(g, n):
    c = np.r_[4.0, g.uniform(-1, 1, n - 1) / n]
    return (
        c,
        lambda: pl.inv(pl.Circulant(c)).diagonal(),
        lambda: np.full(n, np.mean(1 / np.fft.fft(c)).real),
    )


def kron_shift(g, p):
    a, b = (x @ x.T / p + np.eye(p) for x in g.standard_normal((2, p, p)))
    n = p * p

    def by_hand():
        s, v = np.linalg.eigh(a)
        t, w = np.linalg.eigh(b)
        return ((v * v) @ (1 / (np.multiply.outer(s, t) + 0.3)) @ (w * w).T).ravel()

    def ours():
        kron = pl.Kron(pl.Dense(a, assume_a="her"), pl.Dense(b, assume_a="her"))
        return pl.inv(kron + 0.3 * pl.Identity(n)).diagonal()

    return a, ours, by_hand


def toeplitz(g, n):
    from scipy.linalg import solve_toeplitz

    c = np.exp(-np.arange(n) / 20) + 0.1 * np.eye(1, n)[0]

    def by_hand():
        x = solve_toeplitz(c, np.eye(1, n)[0])
        y = x[::-1]
        steps = np.r_[x[0], (x[1:] * x[1:] - y[:-1] * y[:-1]) / x[0]]
        return np.cumsum(steps)

    return c, lambda: pl.inv(pl.Toeplitz(c)).diagonal(), by_hand


def tridiagonal(g, n):
    """By hand the two recurrences of pivots, from either end, in Python's floats."""
    e, d = g.uniform(-1, 1, n - 1), g.uniform(3, 4, n)

    def pivots(d, squares):
        p = [d[0]]
        for x, s in zip(d[1:], squares, strict=True):
            p.append(x - s / p[-1])
        return np.array(p)

    def by_hand():
        s = e * e
        down, up = pivots(d.tolist(), s.tolist()), pivots(d[::-1].tolist(), s[::-1].tolist())
        return 1 / (down + up[::-1] - d)

    return d, lambda: pl.inv(pl.Tridiagonal(e, d, e)).diagonal(), by_hand


def trace_of_bands(g, n):
    """tr(A^-1 B) of symmetric tridiagonals; by hand as above, with the diagonals beside."""
    e, d = g.uniform(-1, 1, n - 1), g.uniform(3, 4, n)
    below, b = g.uniform(-1, 1, n - 1), g.uniform(3, 4, n)

    def pivots(d, squares):
        p = [d[0]]
        for x, s in zip(d[1:], squares, strict=True):
            p.append(x - s / p[-1])
        return np.array(p)

    def by_hand():
        s = e * e
        down, up = pivots(d.tolist(), s.tolist()), pivots(d[::-1].tolist(), s[::-1].tolist())
        x = 1 / (down + up[::-1] - d)
        return x @ b - 2 * np.sum(e / down[:-1] * x[1:] * below)

    def ours():
        inverse = pl.inv(pl.Tridiagonal(e, d, e))
        return pl.trace(inverse @ pl.Tridiagonal(below, b, below))

    return d, ours, by_hand


def main(rounds):
    g = np.random.default_rng(0)
    for name, make in (
        ("LowRank + Diag, 5,000 x 10", lambda: low_rank(g, 5000, 10)),
        ("LowRank + Diag, 5,000 x 50", lambda: low_rank(g, 5000, 50)),
        ("LowRank + Diag, 50,000 x 10", lambda: low_rank(g, 50_000, 10)),
        ("Circulant, 10,000", lambda: circulant(g, 10_000)),
        ("Kron + c I, 60 x 60", lambda: kron_shift(g, 60)),
        ("Toeplitz, 2,000", lambda: toeplitz(g, 2000)),
        ("Tridiagonal, 1,500", lambda: tridiagonal(g, 1500)),
        ("tr(inv(A) B), 1,500", lambda: trace_of_bands(g, 1500)),
    ):
        leaf, *ways = make()
        np.testing.assert_allclose(ways[0](), ways[1](), rtol=1e-8)
        times = [[], []]
        for _ in range(rounds):
            for way, t in zip(ways, times, strict=True):
                leaf.flat[0] = np.nextafter(leaf.flat[0], 9)
                begin = time.perf_counter()
                way()
                t.append(1e3 * (time.perf_counter() - begin))
        line = "  ".join(f"{min(t):8.3f} {statistics.median(t):8.3f}" for t in times)
        print(f"{name:28s} {line}  {min(times[0]) / min(times[1]):5.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
