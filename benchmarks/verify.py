"""What verified answers cost, by kind of call: the same call with pl.config(verify=False) and True.

    python benchmarks/verify.py [--rounds 7] [--threads 1] [name ...]

Both are timed in turn, the least of the rounds counts; with one thread the clock is the process's
CPU time (harness.py says why). The aim: 5 % of a product of two matrices of 1000 rows, 10 % of a
solve, nothing when off. Vectors cost about as much again, or more: the formula as written is all
there is to do."""

import argparse
import os
import sys
import time
import timeit

if "--threads" not in sys.argv:  # NumPy's BLAS too, before it is loaded
    os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

import pylinop as pl


def cases(rng):
    """(name, statement as a function): operators anew where the factor would be kept."""
    n = 1000
    a, b = rng.standard_normal((2, n, n))
    s, x = a @ a.T + n * np.eye(n), rng.standard_normal(n)
    A, B, S = pl.Dense(a), pl.Dense(b), pl.Dense(s, assume_a="pos")
    T = pl.Toeplitz(np.r_[4.0, x[1:] / n])
    W = pl.Diag(np.abs(x) + 1) + pl.LowRank(a[:, :10])
    K = pl.Kron(a[:30, :30], b[:30, :30])
    D, few = pl.Diag(x[:10]), np.ones(10)
    yield "product, n x n", lambda: A @ b
    yield "product of two, dense form", lambda: (A @ B).toarray()
    yield "lazy product of two", lambda: (pl.lazy(a) @ pl.lazy(b)).toarray()
    yield "ridge, lazy", lambda: (pl.inv(pl.lazy(a).T @ pl.lazy(a) + np.eye(n)) @ x).toarray()
    yield "product, vector", lambda: A @ x
    yield "solve, LU, vector", lambda: pl.solve(pl.Dense(a.copy()), x)
    yield "solve, LU, n columns", lambda: pl.solve(pl.Dense(a.copy()), b)
    yield "solve, Cholesky, vector", lambda: pl.solve(pl.Dense(s.copy(), assume_a="pos"), x)
    yield "solve, factor kept", lambda: pl.solve(S, x)
    yield "inverse, dense form", lambda: pl.inv(pl.Dense(a.copy())).toarray()
    yield "log-determinant", lambda: pl.logdet(pl.Dense(s.copy(), assume_a="pos"))
    yield "trace of a product", lambda: (A @ B).trace()
    yield "diagonal of a product", lambda: (A @ B).diagonal()
    yield "element of a product", lambda: (A @ B)[3, 4]
    yield "Toeplitz, vector", lambda: T @ x
    yield "Toeplitz, n columns", lambda: T @ b
    yield "Toeplitz solve", lambda: pl.solve(T, x)
    yield "Woodbury solve", lambda: pl.solve(W, x)
    yield "Kron 30 x 30, vector", lambda: K @ np.ones(900)
    yield "Diag, n = 10", lambda: D @ few


def best(call, rounds, clock):
    """Least seconds of a call, off and verified, in turn."""
    found = {False: np.inf, True: np.inf}
    for _ in range(rounds):
        for on in found:
            with pl.config(verify=on):
                call()
                timer = timeit.Timer(call, timer=clock)
                number = 1
                while (took := timer.timeit(number)) < 2e-3:
                    number *= 4
                found[on] = min(found[on], took / number)
    return found[False], found[True]


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("names", nargs="*")
    args = p.parse_args()
    pl.config(threads=args.threads)
    clock = time.process_time if args.threads == 1 else time.perf_counter
    print(f"{'call':30} {'off':>12} {'verified':>12} {'more':>8}")
    for name, call in cases(np.random.default_rng(0)):
        if args.names and not any(word in name for word in args.names):
            continue
        off, on = best(call, args.rounds, clock)
        print(f"{name:30} {1e6 * off:9.1f} us {1e6 * on:9.1f} us {100 * (on / off - 1):+7.0f} %")


if __name__ == "__main__":
    main()
