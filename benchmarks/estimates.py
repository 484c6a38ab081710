"""Stochastic estimates, and a few eigenpairs, beside SciPy and exact ways.

The log-determinant of a Toeplitz and diagonal matrix of 100,000 rows is printed with its error bar:
there is no exact one to compare it with in reasonable time."""

import numpy as np
from harness import Case, peer
from overhead import rng

import pylinop as pl


def noisy_toeplitz(g, n):
    return pl.Toeplitz(np.exp(-np.arange(n) / 10.0)) + pl.Diag(0.1 + g.random(n))


def logdets():
    """30 probes; the exact one by LU where that can be had."""
    for n in (1000, 4000, 100_000):

        def build(n=n):
            A = noisy_toeplitz(rng(), n)
            e = pl.estimate_logdet(A, rng=0)
            print(f"    n = {n}: {e!r}, interval {e.interval[0]:.6g} to {e.interval[1]:.6g}")
            case = Case("", "")
            code = "pl.estimate_logdet(A, rng=0)"
            case.add("pylinop", "estimate_logdet, 30 probes", code, pl=pl, A=A)
            if n <= 4000:
                a = A.toarray()
                case.add("hand", "numpy slogdet, dense", "f(a)", f=np.linalg.slogdet, a=a)
            return case

        yield f"estimates/logdet-toeplitz-diag-{n}", build


def traces():
    """The trace of a product of two Toeplitz matrices."""
    n = 20_000
    for method in ("hutchinson", "hutch++", "xtrace"):

        def build(method=method):
            T = pl.Toeplitz(np.exp(-np.arange(n) / 10.0))
            case = Case("", "")
            code = "pl.estimate_trace(A, method=m, num_samples=30, rng=0)"
            case.add("pylinop", method, code, pl=pl, A=T @ T, m=method)
            return case

        yield f"estimates/trace-{method}-{n}", build


def graph(n):
    sp = peer("scipy.sparse")
    w = sp.random_array((n, n), density=8 / n, rng=np.random.default_rng(1))
    return sp.csr_array(sp.csgraph.laplacian(sp.csr_array(w + w.T)))


def symmetric(g, n):
    a = g.standard_normal((n, n))
    return a + a.T


EIGENPAIRS = {
    "toeplitz-20000": lambda g: pl.Toeplitz(np.exp(-np.arange(20_000) / 50.0)),
    "graph-3000": lambda g: pl.Sparse(graph(3000)),
    "graph-30000": lambda g: pl.Sparse(graph(30_000)),
    "dense-500": lambda g: pl.Dense(symmetric(g, 500)),
    "dense-2000": lambda g: pl.Dense(symmetric(g, 2000)),
    "kron-100-2": lambda g: pl.Kron(symmetric(g, 100), symmetric(g, 100)),
}


def eigenpairs():
    """The 6 largest; SciPy's eigsh takes the same operator, the array or sparse matrix where there
    is one."""
    sl = peer("scipy.sparse.linalg")
    if not sl or not peer("scipy.sparse") or not peer("scipy.sparse.csgraph"):
        return
    for name, make in EIGENPAIRS.items():

        def build(make=make):
            A = make(rng())
            given = A._init[0] if A._head in ("dense", "sparse") else A
            v0 = np.random.default_rng(0).standard_normal(A.shape[0])
            code = "f(A, 6, which='LA', v0=v0)"
            want = sl.eigsh(given, 6, which="LA", v0=v0)[0]
            case = Case("", "", want, rtol=1e-8)
            case.add("pylinop", "pylinop.eigsh", code, "np.sort(_[0])", f=pl.eigsh, A=A, v0=v0)
            case.add("peer", "scipy eigsh", code, "np.sort(_[0])", f=sl.eigsh, A=given, v0=v0)
            return case

        yield f"estimates/eigsh-{name}", build


MAKERS = [logdets, traces, eigenpairs]
