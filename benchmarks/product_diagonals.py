"""Diagonals and traces of products, of each pair of ten kinds in some ways of writing: flops over
those of one product with a vector.

    OPENBLAS_NUM_THREADS=1 python benchmarks/product_diagonals.py [--without] [--all]

n = 2000, flops as explain counts them before anything runs; then five at n = 20,000, CPU time.
--without: the rows of diagonals_of_products.c are off (not timed: minutes)."""

import argparse
import itertools
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp

import pylinop as pl

inv = pl.inv
ROWS = ["diagonal-picked", "trace-picked", "diagonal-of-rows", "diagonal-of-terms"]
ROWS.append("trace-of-terms")


def definite(r, n):
    x = r.standard_normal((n, n))
    return pl.Dense(x @ x.T / n + np.eye(n), "pos")


def sparse(r, n):
    q = sp.random_array((n, n), density=2 / n, rng=r)
    return pl.Sparse((q + q.T + 9 * sp.eye_array(n)).tocsr())


def kinds(r, n):
    e, rest = r.random(n - 1) / 3, np.minimum(np.arange(n), n - np.arange(n))
    return {
        "sparse": sparse(r, n),
        "tridiagonal": pl.Tridiagonal(e, 2 + r.random(n), e),
        "diag": pl.Diag(1 + r.random(n)),
        "update": pl.LowRankUpdate(pl.Diag(1 + r.random(n)), r.standard_normal((n, 6)) / 40),
        "kron": pl.Kron(definite(r, 40), definite(r, n // 40)),
        "toeplitz": pl.Toeplitz(np.exp(-np.arange(n) / 5)),
        "circulant": pl.Circulant(np.exp(-rest / 5) + np.eye(n)[0]),
        "blocks": pl.BlockDiag(
            *(r.standard_normal((20, 20)) + 20 * np.eye(20) for _ in range(n // 20))
        ),
        "permutation": pl.Permutation(r.permutation(n)),
        "identity": pl.Identity(n),
    }


def formulas(r, n):
    known = kinds(r, n)
    eye, u = known["identity"], pl.Dense(r.standard_normal((n, 6)) / 40)
    h = pl.Selection(np.sort(r.choice(n, 50, replace=False)), n)
    for (a, A), (b, B) in itertools.product(known.items(), repeat=2):
        yield f"{a} @ {b}", A @ B
        yield f"({a} + I) @ {b}", (A + eye) @ B
        yield f"inv({a}) @ {b}", inv(A) @ B
        yield f"inv({a}) @ inv({b})", inv(A) @ inv(B)
        yield f"inv({a} + I) @ {b}", inv(A + eye) @ B
        yield f"{a} @ {b} @ {a}.T", A @ B @ A.T
    for a, A in known.items():
        yield f"H @ {a} @ H.T", h @ A @ h.T
        yield f"U.T @ inv({a})", u.T @ inv(A)
        yield f"inv({a} + U U') @ U", inv(A + u @ u.T) @ u
        yield f"H @ inv({a})", h @ inv(A)
        yield f"{a} @ U U' @ {a}", A @ u @ u.T @ A
        yield f"{a} @ U", A @ u


def five(r, n):
    y, e = sparse(r, n), r.random(n - 1) / 3
    u, d = pl.Dense(r.standard_normal((n, 8))), pl.Diag(1 + r.random(n))
    t = pl.Tridiagonal(e, 2 + r.random(n), e)
    h = pl.Selection(np.sort(r.choice(n, 100, replace=False)), n)
    yield "(Y + I) @ Y of a sparse Y", (y + pl.Identity(n)) @ y
    yield "H @ Y @ H.T, H a Selection of 100", h @ y @ h.T
    yield "U.T @ inv(U @ U.T + D)", u.T @ inv(u @ u.T + d)
    yield "(T + U @ U.T) @ T", (t + u @ u.T) @ t
    yield "inv(T) @ (D + U @ U.T)", inv(t) @ (d + u @ u.T)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--without", action="store_true")
    p.add_argument("--all", action="store_true")
    options = p.parse_args()
    warnings.simplefilter("ignore")
    pl.config(disable_rules=ROWS if options.without else [])
    n, found = 2000, []
    for name, op in formulas(np.random.default_rng(0), n):
        once = max(op.explain("apply", np.ones(op.shape[1])).flops, 20 * n)
        for what in ("diagonal", "trace"):
            if what == "diagonal" or op.shape[0] == op.shape[1]:
                found.append((op.explain(what).flops / once, f"{what} of {name}"))
    found.sort(reverse=True)
    for ratio, name in found if options.all else found[:20]:
        print(f"{ratio:10.1f}  {name}")
    above = [sum(f[0] > bar for f in found) for bar in (10, 100, 500)]
    print(f"of {len(found)} above 10, 100 and 500 products with a vector: {above}")
    for name, op in five(np.random.default_rng(1), 20_000):
        flops = op.explain("diagonal").flops
        start = time.process_time()
        if not options.without:
            op.diagonal()
        print(f"{name}: {flops:.3g} flops, {1e3 * (time.process_time() - start):.2f} ms")


if __name__ == "__main__":
    main()
