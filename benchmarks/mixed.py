"""Programmes that call NumPy (or SciPy) and pylinop by turns, on default threads and on one.

    python benchmarks/mixed.py [--threads 0 1] [--sizes 50 200 500 1000 2000] [--seconds 2]
                               [--only TEXT] [--processes N] [--json FILE]

Each programme has two halves. What it costs by turns is set against the sum of what the halves cost
alone, each called over and over: above 1 the two keep each other off the CPUs. Wall clock, minimum
and median. Each thread count (0: as many as CPUs, the default) is a process of its own, in which
OPENBLAS_NUM_THREADS says so before NumPy loads; with --processes several, one after the other, and
each figure is the least of theirs (what a process gets of a shared machine differs). The last lines
say which BLAS libraries it has.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np


def positive(g, n):
    a = g.standard_normal((n, n))
    return a @ a.T / n + 3 * np.eye(n)


def moved(s):
    """The matrix, a little other than before: what was kept of it is of no use."""
    s[0, 0] += 1e-9
    return s


def product(pl, g, n):
    a, b = g.standard_normal((2, n, n))
    A = pl.Dense(a)
    return lambda: a @ b, lambda: A @ b


def solve_positive(pl, g, n):
    s, b = positive(g, n), g.standard_normal(n)
    a = g.standard_normal((n, n))
    return lambda: a @ a, lambda: pl.solve(pl.Dense(moved(s), "pos"), b)


def solve_general(pl, g, n):
    s, b = positive(g, n), g.standard_normal((n, 4))
    return lambda: np.linalg.solve(s, b), lambda: pl.solve(pl.Dense(moved(s)), b)


def gauss_newton(pl, g, n):
    """A step: the normal equations by NumPy, their solution by us."""
    J, r = g.standard_normal((10 * n, n)), g.standard_normal(10 * n)
    H, f = J.T @ J, J.T @ r
    return lambda: (J.T @ J, J.T @ r), lambda: pl.solve(pl.Dense(moved(H), "pos"), f)


def factor_model(pl, g, n):
    """Scores of a factor model: solves with n assets' covariance between two products in NumPy."""
    F, d = g.standard_normal((25 * n, n // 5)), g.uniform(1, 2, 25 * n)
    X, W = g.standard_normal((25 * n, 8)), g.standard_normal((n, n))
    return (
        lambda: (F.T @ X, W @ W),
        lambda: pl.solve(pl.LowRank(moved(F)) + pl.Diag(d), X),
    )


def kalman(pl, g, n):
    P, H, R = positive(g, n), g.standard_normal((n // 2, n)), np.ones(n // 2)
    A = g.standard_normal((n, n)) / n
    p, h = pl.Dense(P, "pos"), pl.Dense(H)
    z = g.standard_normal(n // 2)
    return (
        lambda: A @ P @ A.T,
        lambda: pl.solve(h @ p @ h.T + pl.Diag(R), z),
    )


def kronecker(pl, g, n):
    k = max(2, int(n**0.5))
    a, b = positive(g, k), positive(g, k)
    X, Y = g.standard_normal((k * k, 64)), g.standard_normal((n, n))
    K = pl.Kron(a, b)
    return lambda: Y @ Y, lambda: K @ X


def eigenvalues(pl, g, n):
    m = min(n, 1000)
    s = positive(g, m)
    return lambda: np.linalg.eigvalsh(s), lambda: pl.slogdet(pl.Dense(moved(s), "pos"))


def kernel(pl, g, n):
    """Our own threads after BLAS's: a kernel matrix that is never formed."""
    x, y = g.standard_normal((4 * n, 3)), g.standard_normal(4 * n)
    K, a = pl.Kernel("rbf", x, length_scale=1.0), g.standard_normal((n, n))
    return lambda: a @ a, lambda: K @ y


def scipy_product(pl, g, n):
    import scipy.linalg.blas as blas

    a, b = np.asfortranarray(g.standard_normal((n, n))), np.asfortranarray(np.eye(n))
    A = pl.Dense(a)
    return lambda: blas.dgemm(1.0, a, b), lambda: A @ b


def scipy_factor(pl, g, n):
    import scipy.linalg as sl

    s, b = positive(g, n), g.standard_normal(n)
    return lambda: sl.cho_factor(s), lambda: pl.solve(pl.Dense(moved(s), "pos"), b)


PROGRAMMES = (
    product,
    solve_positive,
    solve_general,
    gauss_newton,
    factor_model,
    kalman,
    kronecker,
    eigenvalues,
    kernel,
    scipy_product,
    scipy_factor,
)


def times(seconds, *work):
    """Seconds of one round of these, called again and again: all of them."""
    for f in work:
        f()
    out, end = [], time.perf_counter() + seconds
    while len(out) < 8 or time.perf_counter() < end:
        start = time.perf_counter()
        for f in work:
            f()
        out.append(time.perf_counter() - start)
        if len(out) >= 3 and time.perf_counter() > end + 4 * seconds:
            break
    return min(out), statistics.median(out)


def run(args):
    """One thread count: a row a programme and size, and what the process has of BLAS."""
    import pylinop as pl

    rows = []
    for make in PROGRAMMES:
        for n in args.sizes:
            name = make.__name__.replace("_", " ")
            if args.only and args.only not in name:
                continue
            other, ours = make(pl, np.random.default_rng(n), n)
            rows.append([name, n])
            for work in ((other,), (ours,), (other, ours)):
                time.sleep(0.1)  # threads that spin have gone to sleep
                rows[-1] += times(args.seconds, *work)
            print(".", end="", file=sys.stderr, flush=True)
    info = pl._core._blas()
    all_of_them = (
        [c or f for f, c, _ in pl._core._blas_all()] if hasattr(pl._core, "_blas_all") else []
    )
    return {"threads": info["threads"], "config": info["config"], "all": all_of_them, "rows": rows}


def least(found):
    """Several processes as one: each figure is the least of theirs."""
    rows = zip(*(one["rows"] for one in found), strict=True)
    return found[0] | {
        "rows": [
            [*same[0][:2], *map(min, zip(*(r[2:] for r in same), strict=True))] for same in rows
        ]
    }


def shown(seconds):
    return f"{1e3 * seconds:.3g} ms"


def report(found):
    print(f"\nThreads: {found['threads']}. Ours: {found['config']}")
    print("\n| programme | n | other alone | ours alone | by turns | to the sum | medians |")
    print("|---|---|---|---|---|---|---|")
    for name, n, a, am, b, bm, c, cm in found["rows"]:
        print(
            f"| {name} | {n} | {shown(a)} | {shown(b)} | {shown(c)} | {c / (a + b):.2f} "
            f"| {cm / (am + bm):.2f} |"
        )
    for one in found["all"]:
        print(f"\nIn the process: {one}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 200, 500, 1000, 2000])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--json")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.here:
        print(json.dumps(run(args)))
        return
    everything = []
    for threads in args.threads:
        env = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}
        if threads:
            env["OPENBLAS_NUM_THREADS"] = str(threads)
        command = [sys.executable, __file__, "--here", "--seconds", str(args.seconds)]
        command += ["--only", args.only, "--sizes", *map(str, args.sizes)]
        found = []
        for _ in range(args.processes):
            done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
            found.append(json.loads(done.stdout))
        everything.append(least(found))
        report(everything[-1])
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(everything, f)


if __name__ == "__main__":
    main()
