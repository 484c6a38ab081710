"""Iterative solvers beside SciPy's of the same names and plain NumPy, as many iterations each.

Tolerances are 0 and the iterations counted, so that all do the same work; a product with A is
ours in our rows, SciPy's or the fastest by hand in theirs."""

import numpy as np
from harness import Case, peer
from overhead import rng

import pylinop as pl

RUNS = []


def iterations(name, *sizes):
    """Registers ``make(g, n) -> (answer, goal or None, ways)``; a way is (role, label, code, check,
    names), the first one ours."""

    def add(make):
        RUNS.extend((name, n, make) for n in sizes)
        return make

    return add


def runs():
    if not peer("scipy"):
        return
    for name, n, make in RUNS:

        def build(n=n, make=make):
            answer, goal, ways = make(rng(), n)
            case = Case("", "", answer, rtol=1e-6)
            for role, label, code, check, names in ways:
                case.add(role, label, code, check, **names)
            return case.goal(*goal) if goal else case

        yield f"krylov/{name}-{n}", build


def by_hand(d, b, count):
    """Conjugate gradients in NumPy, nothing tested."""
    x, r = np.zeros_like(b), b.copy()
    p, rr = r.copy(), r @ r
    for _ in range(count):
        q = d * p
        alpha = rr / (p @ q)
        x += alpha * p
        r -= alpha * q
        rr, before = r @ r, rr
        p *= rr / before
        p += r
    return x


@iterations("cg-diag-100-iterations", 100, 10_000)
def _(g, n):
    sl = peer("scipy.sparse.linalg")
    d, b = np.linspace(1, 100, n), g.standard_normal(n)
    A = sl.LinearOperator((n, n), matvec=lambda x: d * x, dtype=float)
    both = {"d": d, "b": b, "A": A}
    ways = [
        ("pylinop", "pylinop cg", "cg(D, b, rtol=0, maxiter=100)", "_[0]",
         {"cg": pl.cg, "D": pl.Diag(d), "b": b}),
        ("peer", "scipy cg", "cg(A, b, rtol=0, maxiter=100)", "_[0]", {"cg": sl.cg, **both}),
        ("hand", "NumPy by hand", "f(d, b, 100)", "_", {"f": by_hand, "d": d, "b": b}),
    ]  # fmt: skip
    goal = None
    if n == 100:
        goal = ("pylinop cg", "scipy cg", 0.013, "cg: 100 iterations, diagonal n = 100",
                "0.012 ms where scipy takes 0.94")  # fmt: skip
    return by_hand(d, b, 100), goal, ways


def laplacian(n):
    """Of an n x n grid, ours and as a CSR matrix."""
    sp = peer("scipy.sparse")
    t = pl.Tridiagonal(-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1))
    one = sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])
    eye = sp.eye_array(n)
    return pl.KronSum(t, t), (sp.kron(one, eye) + sp.kron(eye, one)).tocsr()


@iterations("cg-laplacian-50-iterations", 30, 300)
def _(g, n):
    """n^2 unknowns; the first row is the structured operator, the second the same CSR matrix."""
    sl = peer("scipy.sparse.linalg")
    A, csr = laplacian(n)
    b = g.standard_normal(n * n)
    code = "cg(A, b, rtol=0, maxiter=50)"
    ways = [
        ("pylinop", "pylinop, KronSum", code, "_[0]", {"cg": pl.cg, "A": A, "b": b}),
        ("pylinop", "pylinop, Sparse", code, "_[0]", {"cg": pl.cg, "A": pl.Sparse(csr), "b": b}),
        ("peer", "scipy cg", code, "_[0]", {"cg": sl.cg, "A": csr, "b": b}),
    ]
    return sl.cg(csr, b, rtol=0, maxiter=50)[0], None, ways


@iterations("cg-16-right-sides", 100)
def _(g, n):
    """All at once, or one after the other; n^2 unknowns, 30 iterations."""
    sl = peer("scipy.sparse.linalg")
    _, csr = laplacian(n)
    b = g.standard_normal((n * n, 16))

    def each(A, b):
        return np.stack([sl.cg(A, b[:, j], rtol=0, maxiter=30)[0] for j in range(16)], axis=1)

    ways = [
        ("pylinop", "pylinop cg", "cg(A, b, rtol=0, maxiter=30)", "_[0]",
         {"cg": pl.cg, "A": pl.Sparse(csr), "b": b}),
        ("peer", "scipy cg, each", "f(A, b)", "_", {"f": each, "A": csr, "b": b}),
    ]  # fmt: skip
    return each(csr, b), None, ways


@iterations("solve-16-right-sides-kernel", 1000)
def _(g, n):
    """A Gaussian kernel and noise, to 1e-8: cg together, block cg, cg one by one, scipy's each."""
    sl = peer("scipy.sparse.linalg")
    A = pl.Kernel("rbf", g.random((n, 3)), length_scale=0.3) + pl.Diag(np.full(n, 0.1))
    b = g.standard_normal((n, 16))
    S = sl.LinearOperator((n, n), matvec=lambda x: A @ x, dtype=float)

    def each(solve):
        return np.stack([solve(b[:, j].copy()) for j in range(16)], axis=1)

    names = {"solve": pl.solve, "A": A, "b": b}
    one = {"each": each, "f": lambda v: pl.solve(A, v, method="cg", rtol=1e-8)}
    scipys = {"each": each, "f": lambda v: sl.cg(S, v, rtol=1e-8)[0]}
    ways = [
        ("pylinop", "pylinop block_cg", "solve(A, b, method='block_cg', rtol=1e-8)", "_", names),
        ("pylinop", "pylinop cg, together", "solve(A, b, method='cg', rtol=1e-8)", "_", names),
        ("pylinop", "pylinop cg, each", "each(f)", "_", one),
        ("peer", "scipy cg, each, our product", "each(f)", "_", scipys),
    ]
    return np.linalg.solve(A.toarray(), b), None, ways


@iterations("gmres-100-iterations", 1000)
def _(g, n):
    """Dense, cycles of 50."""
    sl = peer("scipy.sparse.linalg")
    a = g.standard_normal((n, n)) / np.sqrt(n) + np.diag(np.linspace(2, 50, n))
    b = g.standard_normal(n)
    code = "gmres(A, b, rtol=0, restart=50, maxiter=2)"
    ways = [
        ("pylinop", "pylinop gmres", code, "_[0]", {"gmres": pl.gmres, "A": pl.Dense(a), "b": b}),
        ("peer", "scipy gmres", code, "_[0]", {"gmres": sl.gmres, "A": a, "b": b}),
    ]
    return sl.gmres(a, b, rtol=0, restart=50, maxiter=2)[0], None, ways


@iterations("lsmr-5-iterations", 10_000, 1_000_000)
def _(g, n):
    """n x n/10, 10 numbers a row."""
    sp, sl = peer("scipy.sparse"), peer("scipy.sparse.linalg")
    cols = g.integers(0, n // 10, 10 * n)
    csr = sp.csr_array(
        (g.standard_normal(10 * n), (np.repeat(np.arange(n), 10), cols)), shape=(n, n // 10)
    )
    b = g.standard_normal(n)
    code = "lsmr(A, b, atol=0, btol=0, conlim=0, maxiter=5)"
    ways = [
        ("pylinop", "pylinop lsmr", code, "_[0]", {"lsmr": pl.lsmr, "A": pl.Sparse(csr), "b": b}),
        ("peer", "scipy lsmr", code, "_[0]", {"lsmr": sl.lsmr, "A": csr, "b": b}),
    ]
    goal = ("pylinop lsmr", "scipy lsmr", 0.5, "LSMR, an iteration", "half of scipy's time")
    answer = sl.lsmr(csr, b, atol=0, btol=0, conlim=0, maxiter=5)[0]
    return answer, goal if n == 1_000_000 else None, ways


MAKERS = [runs]
