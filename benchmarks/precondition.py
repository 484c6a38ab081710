"""Solves by conjugate gradients with a preconditioner made for the purpose, beside none, SciPy's
incomplete LU, and a factorisation; making it counts.

``python benchmarks/precondition.py`` prints iterations, times and memory for the table of
docs/preconditioners.md."""

import time

import numpy as np
from harness import Case, peer
from overhead import rng

import pylinop as pl

RTOL = 1e-8


def laplacian(n):
    """Five points on an n x n grid, n^2 rows, CSR."""
    import scipy.sparse as sp

    one = sp.diags_array([np.full(n, 2.0), *2 * [np.full(n - 1, -1.0)]], offsets=[0, -1, 1])
    return (sp.kron(one, sp.eye_array(n)) + sp.kron(sp.eye_array(n), one)).tocsr()


def kernel(g, n):
    x = g.uniform(0, 1, (n, 2))
    return np.exp(-((x[:, None] - x) ** 2).sum(-1) / (2 * 0.2**2))


def symmetric(g, n):
    a = g.standard_normal((n, n))
    return a @ a.T + np.eye(n)


def mixed(g, n):
    return pl.Kron(symmetric(g, n), symmetric(g, n)) + pl.Diag(g.uniform(1, 10 * n, n * n))


def spilu(S):
    """SciPy's incomplete LU, as an operator."""
    import scipy.sparse.linalg as sl

    how = {"SymmetricMode": True, "ILU_MILU": "SILU"}
    f = sl.spilu(S.tocsc(), 1e-4, 20, diag_pivot_thresh=0, permc_spec="MMD_AT_PLUS_A", options=how)
    return sl.LinearOperator(S.shape, f.solve)


PROBLEMS = [
    ("laplacian-2d", 100, lambda g, n: pl.Sparse(laplacian(n)), ["ssor", "ic", "ict"]),
    ("toeplitz", 20000, lambda g, n: pl.Toeplitz(0.99 ** np.arange(n)), ["strang", "chan"]),
    ("kernel", 1500, lambda g, n: pl.Dense(kernel(g, n)) + 1e-3 * pl.Identity(n), ["auto"]),
    ("kron-diag", 60, mixed, ["kronecker"]),
]


def preconditioners():
    if not peer("scipy"):
        return
    import scipy.sparse.linalg as sl

    for name, n, make, kinds in PROBLEMS:

        def build(n=n, make=make, kinds=kinds):
            g = rng()
            A = make(g, n)
            b = g.standard_normal(A.shape[0])
            S = A.tosparse() if kinds[0] == "ssor" else None
            names = {"A": A, "b": b, "cg": sl.cg, "r": RTOL}
            answer = sl.cg(A, b, rtol=1e-13, maxiter=20000)[0]
            case = Case("", "", answer, rtol=1e-5)
            code = f"cg(A, b, rtol=r, M=pl.preconditioner(A, {kinds[-1]!r}))[0]"
            case.add("pylinop", f"cg, {kinds[-1]}", code, "_", pl=pl, **names)
            case.add("hand", "cg, none", "cg(A, b, rtol=r, maxiter=20000)[0]", "_", **names)
            if S is not None:
                more = {**names, "S": S, "f": spilu}
                case.add("hand", "cg, spilu", "cg(S, b, rtol=r, M=f(S))[0]", "_", **more)
                case.add("hand", "splu", "f(S).solve(b)", "_", f=sl.splu, S=S.tocsc(), b=b)
            return case

        yield f"precondition/{name}-{n}", build


MAKERS = [preconditioners]


def run(A, b, M):
    """Iterations and seconds."""
    import scipy.sparse.linalg as sl

    count = [0]

    def step(x):
        count[0] += 1

    t = time.perf_counter()
    info = sl.cg(A, b, rtol=RTOL, maxiter=2000, M=M, callback=step)[1]
    return count[0] if info == 0 else "none", time.perf_counter() - t


def main():
    print("| problem | preconditioner | to make, ms | iterations | to solve, ms | bytes |")
    print("|---|---|---|---|---|---|")
    for name, n, make, kinds in PROBLEMS:
        g = rng()
        A = make(g, n)
        b = g.standard_normal(A.shape[0])
        ways = ["none", "jacobi", *kinds, *(["spilu"] if kinds[0] == "ssor" else [])]
        for kind in ways:
            best = []
            for _ in range(3):
                t = time.perf_counter()
                if kind == "spilu":
                    M = spilu(A.tosparse())
                else:
                    M = None if kind == "none" else pl.preconditioner(A, kind)
                made = time.perf_counter() - t
                best.append((*run(A, b, M), made))
            steps, made, solved = best[0][0], min(x[2] for x in best), min(x[1] for x in best)
            held = M.proposal.nbytes if hasattr(M, "proposal") else 0
            print(
                f"| {name} {n} | {getattr(M, 'proposal', None) and M.proposal.kind or kind} | "
                f"{made * 1e3:.1f} | {steps} | {solved * 1e3:.1f} | {held:,} |"
            )


if __name__ == "__main__":
    main()
