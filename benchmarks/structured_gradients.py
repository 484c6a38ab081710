"""Gradients of functions of structured matrices, and of traces of inverses of bands, over their
values: python benchmarks/structured_gradients.py [ROWS]

Wall time, minima of three calls, with fresh parameters each, so that nothing is kept; 1,200 rows if
nothing is given. Threads: OPENBLAS_NUM_THREADS, 1 if it is not set.
"""

import os
import sys
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import pylinop as pl

RNG = np.random.default_rng(0)
CALLS = 3


def kinds(n):
    """Name, the matrix, its parameters."""
    a = int(n**0.5)
    b, m = -(-n // a), 40
    grown = np.diag(np.arange(1.0, a + 1)) + 0.1
    off = np.ones(n - 1)
    yield "Diag", pl.Diag, RNG.uniform(0.5, 1, n)
    yield "Circulant", pl.Circulant, np.r_[3, 0.01 * RNG.standard_normal(n - 1)]
    blocks = 3 * np.eye(m) + 0.1 * RNG.standard_normal((n // m, m, m))
    yield "BlockDiag", lambda p: pl.BlockDiag(*(p[i] for i in range(n // m))), blocks

    def sums(p):
        return pl.KronSum(
            p[0] * pl.Dense(grown, assume_a="pos"), p[1] * pl.Diag(np.arange(b) + 1.0)
        )

    yield "KronSum", sums, np.array([0.1, 0.2])
    yield (
        "c Laplacian + s I",
        lambda p: p[1] * pl.Identity(a * b) - p[0] * pl.Laplacian((a, b)),
        (np.array([0.1, 1.2])),
    )
    yield (
        "shifted LowRank",
        lambda p: pl.LowRank(p, p) + 2 * pl.Identity(n),
        (0.05 * RNG.standard_normal((n, 3))),
    )
    yield (
        "Tridiagonal",
        lambda p: pl.Tridiagonal(-off, p, -off, assume_a="pos"),
        (RNG.uniform(2.5, 3, n)),
    )


def taken(f, parameters):
    f(parameters)
    times = []
    for i in range(CALLS):
        p = parameters * (1 + 1e-3 * (i + 1))
        start = time.perf_counter()
        f(p)
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1200
    print(f"{n} rows, ms: value, value and gradient; load {os.getloadavg()[0]:.1f}")
    for name, matrix, parameters in kinds(n):
        for of in ("expm", "sqrtm", "logm", "inv"):
            if (name, of) in (("KronSum", "sqrtm"), ("KronSum", "logm")):
                continue

            def value(p, of=of, matrix=matrix):
                return pl.trace(getattr(pl, of)(matrix(p)))

            times = (
                taken(lambda p: float(value(p)), parameters),
                taken(pl.value_and_grad(value), parameters),
            )
            print(f"trace {of}({name})".ljust(32), *(f"{t:10.2f}" for t in times), flush=True)


if __name__ == "__main__":
    main()
