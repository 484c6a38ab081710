"""Stochastic estimates, and a few eigenpairs, beside SciPy and exact ways.

The log-determinant of a Toeplitz and diagonal matrix of 100,000 rows is printed with its error bar:
there is no exact one to compare it with in reasonable time. By hand, and by linear_operator, it is
the same quadrature with as many probes and steps, without an error bar; linear_operator up to
20,000 rows (at 100,000 it took 32 s)."""

import warnings

import numpy as np
from harness import Case, peer, tensor
from overhead import rng

import pylinop as pl


def noisy_toeplitz(g, n):
    return np.exp(-np.arange(n) / 10.0), 0.1 + g.random(n)


def slq(fft, c, d, probes, steps):
    """By hand: Lanczos from all probes at once, the product by FFT, Gauss's rule."""
    n, k = c.size, probes
    size = 2 * n
    spectrum = fft.rfft(np.concatenate([c, [0.0], c[:0:-1]]))
    x = np.sign(np.random.default_rng(0).standard_normal((k, n)))
    v, before = x / np.sqrt(n), np.zeros((k, n))
    alpha, beta = np.zeros((k, steps)), np.zeros((k, steps))
    for j in range(steps):
        w = fft.irfft(fft.rfft(v, size) * spectrum, size)[:, :n] + d * v
        if j:
            w -= beta[:, j - 1, None] * before
        alpha[:, j] = np.einsum("ij,ij->i", v, w)
        w -= alpha[:, j, None] * v
        beta[:, j] = np.sqrt(np.einsum("ij,ij->i", w, w))
        before, v = v, w / beta[:, j, None]
    i = np.arange(steps)
    t = np.zeros((k, steps, steps))
    t[:, i, i] = alpha
    t[:, i[1:], i[:-1]] = t[:, i[:-1], i[1:]] = beta[:, :-1]
    w, q = np.linalg.eigh(t)
    return float((np.log(w) * q[:, 0, :] ** 2).sum(axis=1).mean() * n)


def torch_slq(lo, c, d, probes, steps):
    """linear_operator's: CG and Lanczos quadrature together, its preconditioner off."""
    s = lo.settings
    A = lo.operators.ToeplitzLinearOperator(c) + lo.operators.DiagLinearOperator(d)
    warnings.simplefilter("ignore")  # that CG does not converge in so few
    with (
        s.max_cholesky_size(1), s.num_trace_samples(probes), s.max_cg_iterations(steps),
        s.max_lanczos_quadrature_iterations(steps), s.max_preconditioner_size(0),
        s.cg_tolerance(1e-10),
    ):  # fmt: skip
        return float(A.logdet())


def logdets():
    """30 probes; the exact one by LU where that can be had."""
    for n in (1000, 4000, 20_000, 100_000):

        def build(n=n):
            c, d = noisy_toeplitz(rng(), n)
            A = pl.Toeplitz(c) + pl.Diag(d)
            e = pl.estimate_logdet(A, rng=0)
            print(f"    n = {n}: {e!r}, interval {e.interval[0]:.6g} to {e.interval[1]:.6g}")
            # as far as two sets of 30 probes are apart
            case = Case("", "", e.value, rtol=3 * (e.error + e.bias) / abs(e.value))
            code = "pl.estimate_logdet(A, rng=0)"
            case.add("pylinop", "estimate_logdet, 30 probes", code, "float(_)", pl=pl, A=A)
            how = {"c": c, "d": d, "k": 30, "s": e.steps}
            fft = peer("scipy.fft") or np.fft
            case.add(
                "hand", "numpy and FFT, as many steps", "f(fft, c, d, k, s)", f=slq, fft=fft, **how
            )
            lo = peer("linear_operator")
            if lo and n <= 20_000:
                t = {"c": tensor(c), "d": tensor(d), "k": 30, "s": e.steps}
                case.add("peer", "linear_operator", "f(lo, c, d, k, s)", f=torch_slq, lo=lo, **t)
            if n <= 4000:
                a = A.toarray()
                case.add("hand", "numpy slogdet, dense", "f(a)[1]", f=np.linalg.slogdet, a=a)
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
