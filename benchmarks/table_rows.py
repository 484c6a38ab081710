"""Rows of the table of figures (RESULTS_one_road.md) in one process, pylinop and by hand in turn.

    OPENBLAS_NUM_THREADS=1 python benchmarks/table_rows.py [rounds]

One number of an operand changes before each call. With one thread of BLAS the process's CPU time is
taken, else wall time; printed are minimum and median in milliseconds, and the ratio of minima."""

import os
import sys
import time

import numpy as np
import scipy.linalg.blas as blas
import scipy.linalg.lapack as lapack

import pylinop as pl

clock = time.thread_time if os.environ.get("OPENBLAS_NUM_THREADS") == "1" else time.perf_counter
rng = np.random.default_rng(0)


def measured(title, ways, changed, rounds):
    """ways: name to a function; the last one is by hand."""
    times = {name: [] for name in ways}
    for _ in range(rounds):
        for name, f in ways.items():
            for a in changed:
                a.flat[len(a) // 2 + 1 if a.ndim == 1 else 0] += 1e-9
            start = clock()
            f()
            times[name].append(clock() - start)
    low = {name: min(t) for name, t in times.items()}
    hand = low[list(ways)[-1]]
    for name, t in times.items():
        middle = np.median(t) * 1e3
        print(
            f"{title:28} {name:24} {low[name] * 1e3:9.3f} ({middle:9.3f})  {low[name] / hand:5.2f}",
            flush=True,
        )


def low_rank():
    n, k = 100_000, 50
    d, U, b = 1 + rng.random(n), rng.standard_normal((n, k)), rng.standard_normal(n)
    A = pl.LowRankUpdate(pl.Diag(d), U)

    def apart():
        return pl.solve(A, b), pl.logdet(A)

    def by_hand():
        W = U / d[:, None]
        R = lapack.dpotrf(np.eye(k) + blas.dgemm(1.0, U.T, W.T, trans_b=1))[0]
        y = b / d
        x = y - W @ lapack.dpotrs(R, U.T @ y)[0]
        return x, np.log(d).sum() + 2 * np.log(np.diag(R)).sum()

    return {"pylinop": apart, "dgemm, Cholesky": by_hand}, [d]


def inverse_diagonal():
    n, k = 5000, 10
    d, U = 1 + rng.random(n), rng.standard_normal((n, k))

    def by_hand():
        W = U / d[:, None]
        R = np.linalg.cholesky(np.eye(k) + U.T @ W)
        V = blas.dtrsm(1.0, R.T, W, side=1)
        return 1 / d - (V * V).sum(1)

    return {
        "pylinop": lambda: pl.diagonal(pl.inv(pl.LowRankUpdate(pl.Diag(d), U))),
        "trsm": by_hand,
    }, [d]


def tridiagonal():
    n = 100_000
    d, e, f = 2.5 + rng.random(n), rng.uniform(-1, 1, n - 1), rng.uniform(-1, 1, n - 1)
    w, b = rng.standard_normal(n), rng.standard_normal(n)
    A = {
        "definite": pl.Tridiagonal(e, d, e, assume_a="pos"),
        "nothing assumed": pl.Tridiagonal(e, d, e),
        "not symmetric": pl.Tridiagonal(e, d, f),
        "exchanges": pl.Tridiagonal(e, w, f),
    }
    ways = {name: (lambda a=a: pl.solve(a, b)) for name, a in A.items()}
    ways["gtsv, exchanges"] = lambda: lapack.dgtsv(e, w, f, b)
    ways["gtsv"] = lambda: lapack.dgtsv(e, d, f, b)
    ways["ptsv"] = lambda: lapack.dptsv(d, e, b)
    return ways, [d, w]


def band():
    n = 100_000
    ab = np.zeros((5, n))
    ab[2] = 5 + rng.random(n)
    for j in (1, 2):
        ab[2 - j, j:] = ab[2 + j, :-j] = rng.uniform(-1, 1, n - j)
    b, half = rng.standard_normal(n), np.asfortranarray(ab[:3])
    A, G = pl.Banded((2, 2), ab, assume_a="pos"), pl.Banded((2, 2), ab)
    room = np.zeros((7, n), order="F")
    room[2:] = ab
    return {
        "definite": lambda: pl.solve(A, b),
        "nothing assumed": lambda: pl.solve(G, b),
        "gbsv": lambda: lapack.dgbsv(2, 2, room, b),
        "pbsv": lambda: lapack.dpbsv(half, b),
    }, [ab]


def blocks():
    g, k = 1000, 20
    S = rng.standard_normal((g, k, k)) / np.sqrt(k) + 3 * np.eye(k)
    P = S @ S.transpose(0, 2, 1)
    b = rng.standard_normal(g * k)
    plain, definite = [a.copy() for a in S], [a.copy() for a in P]
    kept = [pl.Dense(a, "pos") for a in definite]
    whole = pl.BlockDiag(*[pl.Dense(a) for a in plain])
    return {
        "Denses 'pos' anew": lambda: pl.solve(
            pl.BlockDiag(*[pl.Dense(a, "pos") for a in definite]), b
        ),
        "the BlockDiag anew": lambda: pl.solve(pl.BlockDiag(*kept), b),
        "arrays anew": lambda: pl.solve(pl.BlockDiag(*plain), b),
        "arrays, all there": lambda: pl.solve(whole, b),
        "one array": lambda: pl.solve(pl.BlockDiag(S), b),
        "a stack": lambda: pl.solve(pl.Dense(S), b.reshape(g, k, 1)),
        "a stack, 'pos'": lambda: pl.solve(pl.Dense(P, "pos"), b.reshape(g, k, 1)),
        "slogdet, arrays anew": lambda: pl.slogdet(pl.BlockDiag(*plain)),
        "product, arrays anew": lambda: pl.BlockDiag(*plain) @ b,
        "product, all there": lambda: whole @ b,
        "np.matmul of the stack": lambda: S @ b.reshape(g, k, 1),
        "np.linalg.slogdet": lambda: np.linalg.slogdet(S),
        "np.linalg.solve": lambda: np.linalg.solve(S, b.reshape(g, k, 1)),
    }, [*plain[:3], *definite[:3], S, P]


def kron_plus_diag():
    A, B = (
        a @ a.T / len(a) + np.eye(len(a)) for a in map(rng.standard_normal, ((60,) * 2, (55,) * 2))
    )
    d, b = 1 + rng.random(3300), rng.standard_normal(3300)
    K = pl.Kron(pl.Dense(A, "pos"), pl.Dense(B, "pos")) + pl.Diag(d)
    return {"pylinop": lambda: pl.solve(K, b)}, [d]


def coefficient():
    U, b, c = rng.standard_normal((139, 5)), rng.standard_normal(139), [1.0]

    def solved(step):
        c[0] += step
        return pl.solve(c[0] * pl.Identity(139) + pl.LowRank(U), b)

    return {"new": lambda: solved(1e-3), "the same": lambda: solved(0)}, [U]


def small_lu():
    S, B = rng.standard_normal((200, 20, 20)), rng.standard_normal((200, 20, 1))
    D = pl.Dense(S)
    return {
        "200 of 20 x 20": lambda: pl.solve(D, B),
        "np.linalg.solve": lambda: np.linalg.solve(S, B),
    }, [S]


def tall(m, k, n):
    A, B = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    D = pl.Dense(A)
    return {f"{m} x {k} times {n}": lambda: D @ B, "np.matmul": lambda: A @ B}, [A]


def by_half():
    A, X = rng.standard_normal((1000, 1000)), rng.standard_normal((1000, 200))
    D, cols = pl.Dense(A, "sym"), np.asfortranarray(X)
    return {
        "1000 rows, 200 columns": lambda: D @ X,
        "dsymm by columns": lambda: blas.dsymm(1.0, A.T, cols, lower=1),
    }, [A]


def ensemble_kalman():
    n, m, k = 1000, 200, 40
    B, R = (a @ a.T / len(a) + np.eye(len(a)) for a in map(rng.standard_normal, ((n, n), (m, m))))
    H, X, Y = (rng.standard_normal(s) for s in ((m, n), (n, k), (m, k)))

    def written():
        b, r = pl.lazy(B, assume_a="pos"), pl.lazy(R, assume_a="pos")
        h, x, y = map(pl.lazy, (H, X, Y))
        inv = pl.inv
        return np.asarray(x + inv(inv(b) + h.T @ inv(r) @ h) @ h.T @ inv(r) @ (y - h @ x))

    def by_hand():
        S = blas.dsymm(1.0, B.T, H.T, lower=1)
        c = lapack.dpotrf(blas.dgemm(1.0, H, S, 1.0, R), lower=1)[0]
        return X + S @ lapack.dpotrs(c, Y - H @ X, lower=1)[0]

    return {"pylinop": written, "dsymm, Cholesky": by_hand}, [B, H]


if __name__ == "__main__":
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 25
    print("load", os.getloadavg(), "threads of BLAS", os.environ.get("OPENBLAS_NUM_THREADS", "all"))
    for title, made in {
        "low rank + diagonal": low_rank,
        "diagonal of its inverse": inverse_diagonal,
        "tridiagonal": tridiagonal,
        "band of width 5": band,
        "BlockDiag 1000 x 20": blocks,
        "Kron + Diag": kron_plus_diag,
        "c I + LowRank": coefficient,
        "small LU": small_lu,
        "tall product": lambda: tall(1000, 1000, 100),
        "tall product ": lambda: tall(2000, 2000, 200),
        "product by half": by_half,
        "ensemble-kalman": ensemble_kalman,
    }.items():
        measured(title, *made(), many)
    print("load", os.getloadavg())
