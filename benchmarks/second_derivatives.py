"""`pl.hvp` beside `pl.value_and_grad` of the same function: python benchmarks/second_derivatives.py
[NAME ...]

By turns in one process, wall time, minima over three seconds or three rounds; the parameters change
before each call, so that nothing is kept. Each product is compared with the difference of two
gradients. Threads: OPENBLAS_NUM_THREADS, 1 if it is not set.
"""

import os
import sys
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import pylinop as pl

RNG = np.random.default_rng(0)
SECONDS, LEAST, MOST = 3, 3, 40


def likelihood(K, y):
    quadratic, logdet = pl.inv_quad_logdet(K, y)
    return 0.5 * (quadratic + logdet)


def low_rank(n, k=10):
    y = RNG.standard_normal(n)
    start = RNG.uniform(1, 2, n), RNG.standard_normal((n, k))
    return lambda d, U: likelihood(pl.Diag(d) + pl.LowRank(U), y), start


def toeplitz(n, det):
    c = np.exp(-np.arange(n) / 3.0)
    c[0] += 0.5
    y, w = RNG.standard_normal((2, n))

    def f(c):
        K = pl.Toeplitz(c)
        return pl.solve(K, y) @ w + (pl.logdet(K) if det else 0)

    return f, (c,)


def markov(n, det):
    t = np.sort(RNG.random(n)) * n / 10
    y = np.sin(t)

    def f(p):
        K = pl.quasiseparable("matern32", t, variance=p[0], length_scale=p[1])
        K = K + p[2] * pl.Identity(n)
        return likelihood(K, y) if det else y @ pl.solve(K, y)

    return f, (np.array([1.3, 3.0, 0.2]),)


def dense(n):
    X, y = RNG.standard_normal((n, 3)), RNG.standard_normal(n)

    def f(p):
        K = pl.Kernel("rbf", X, variance=p[0], length_scale=p[1]) + p[2] * pl.Identity(n)
        return likelihood(K, y)

    return f, (np.array([1.2, 0.9, 0.3]),)


def kron(m):
    X, Z = RNG.standard_normal((2, m, 1))
    y = RNG.standard_normal(m * m)

    def f(p):
        A = pl.Kernel("rbf", X, variance=p[0], length_scale=p[1])
        B = pl.Kernel("rbf", Z, length_scale=p[2])
        return likelihood(pl.Kron(A, B) + p[3] * pl.Identity(m * m), y)

    return f, (np.array([1.2, 0.9, 0.7, 0.3]),)


CASES = {
    "low rank + diagonal, n = 100": lambda: low_rank(100),
    "low rank + diagonal, n = 2000": lambda: low_rank(2000),
    "Toeplitz solve, n = 2000": lambda: toeplitz(2000, False),
    "Toeplitz solve and determinant, n = 500": lambda: toeplitz(500, True),
    "Matern-3/2 solve, n = 2000": lambda: markov(2000, False),
    "Matern-3/2 likelihood, n = 1000": lambda: markov(1000, True),
    "dense GP, n = 400": lambda: dense(400),
    "dense GP, n = 1000": lambda: dense(1000),
    "Kron of kernels 30 x 30 + c I": lambda: kron(30),
    "Kron of kernels 100 x 100 + c I": lambda: kron(100),
}


def measured(f, start):
    """Least seconds of the gradient and of the product, and how far the latter is off."""
    numbers = tuple(range(len(start)))
    gradient, product = pl.value_and_grad(f, numbers), pl.hvp(f, numbers)
    along = tuple(RNG.standard_normal(a.shape) for a in start)
    least, rounds, begun = [np.inf, np.inf], 0, time.perf_counter()
    while rounds < LEAST or (rounds < MOST and time.perf_counter() - begun < SECONDS):
        rounds += 1
        at = tuple(a * (1 + 1e-9 * rounds) for a in start)
        for i, call in enumerate((lambda at=at: gradient(*at), lambda at=at: product(*at, along))):
            before = time.perf_counter()
            call()
            least[i] = min(least[i], time.perf_counter() - before)
    step = 1e-5
    up, down = (
        gradient(*(a + s * t for a, t in zip(start, along, strict=True)))[1] for s in (step, -step)
    )
    off = max(
        np.abs((u - d) / (2 * step) - h).max() / max(1, np.abs(h).max())
        for u, d, h in zip(up, down, product(*start, along), strict=True)
    )
    return *least, off


def main():
    print(f"{os.environ['OPENBLAS_NUM_THREADS']} thread(s)\n")
    print("| work | gradient, ms | hvp, ms | ratio | against differences |")
    print("|---|---|---|---|---|")
    for name, make in CASES.items():
        if sys.argv[1:] and not any(word in name for word in sys.argv[1:]):
            continue
        first, second, off = measured(*make())
        times = f"{first * 1e3:.3g} | {second * 1e3:.3g} | {second / first:.1f}"
        print(f"| {name} | {times} | {off:.0e} |", flush=True)


if __name__ == "__main__":
    main()
