"""Spectra and functions of operators by structure beside NumPy and SciPy by hand.

What vectors do to x is compared where their signs are free: Q f(w) Q^T x."""

import numpy as np
from harness import Case, peer
from overhead import rng

import pylinop as pl

SPECTRA = []


def spectrum(name, *sizes):
    """Registers ``make(g, n) -> (code, its names, what of `_` is compared, the answer, ways)``."""

    def add(make):
        SPECTRA.extend((name, n, make) for n in sizes)
        return make

    return add


def spectra():
    if not peer("scipy"):
        return
    for name, n, make in SPECTRA:

        def build(n=n, make=make):
            code, names, check, answer, ways = make(rng(), n)
            case = Case("", "", answer, rtol=1e-7)
            case.add("pylinop", "pylinop", code, check, pl=pl, **names)
            for role, label, code, check, more in ways:
                case.add(role, label, code, check, **more)
            return case

        yield f"spectra/{name}-{n}", build


def symmetric(g, n):
    a = g.standard_normal((n, n))
    return (a + a.T) / 2


@spectrum("eigh-kron-2", 3, 10, 40, 200)
def _(g, n):
    """Of n^2 rows. The floor leaves the values unsorted."""
    a, c = symmetric(g, n), symmetric(g, n)
    A, f = pl.Kron(a, c), np.linalg.eigh
    both = {"f": f, "a": a, "c": c, "o": ordered}
    ways = [("floor", "eigh of both", "f(a), f(c)", "o(_)", both)]
    if n <= 40:
        ways.append(("hand", "numpy.linalg.eigh", "f(k)", "_[0]", {"f": f, "k": np.kron(a, c)}))
    return "pl.eigh(A)", {"A": A}, "_[0]", ordered((f(a), f(c))), ways


def ordered(pairs):
    return np.sort(np.outer(pairs[0][0], pairs[1][0]).ravel())


@spectrum("eigh-circulant", 100, 2**20)
def _(g, n):
    c = g.standard_normal(n)
    c = (c + np.roll(c[::-1], 1)) / 2
    code = "np.sort(np.fft.rfft(c).real[at])"
    k = np.arange(n)
    hand = {"c": c, "at": np.minimum(k, n - k)}
    ways = [("floor", "numpy.fft, values alone", code, "_", hand)]
    return "pl.eigh(A)", {"A": pl.Circulant(c)}, "_[0]", np.sort(np.fft.fft(c).real), ways


@spectrum("eigh-tridiagonal", 100, 1000)
def _(g, n):
    d, e, sl = g.standard_normal(n), g.standard_normal(n - 1), peer("scipy.linalg")
    A = pl.Tridiagonal(e, d, e)
    bands = {"f": sl.eigh_tridiagonal, "d": d, "e": e}
    ways = [
        ("hand", "scipy eigh_tridiagonal", "f(d, e)", "_[0]", bands),
        ("hand", "numpy.linalg.eigh", "f(a)", "_[0]", {"f": np.linalg.eigh, "a": A.toarray()}),
    ]
    return "pl.eigh(A)", {"A": A}, "_[0]", sl.eigh_tridiagonal(d, e)[0], ways


@spectrum("eigh-blockdiag-20", 10, 1000)
def _(g, n):
    """n blocks of 20 x 20."""
    blocks = np.stack([symmetric(g, 20) for _ in range(n)])
    ways = [
        ("floor", "eigh of the stack", "f(s)", "_[0].min()", {"f": np.linalg.eigh, "s": blocks})
    ]
    A = pl.BlockDiag(*blocks)
    return "pl.eigh(A)", {"A": A}, "_[0][0]", np.linalg.eigvalsh(blocks).min(), ways


@spectrum("svd-lowrank-20", 1000, 100_000)
def _(g, n):
    """Rank 20. By hand: the thin vectors."""
    u, v = g.standard_normal((2, n, 20))

    def by_hand(u, v):
        q, r = np.linalg.qr(u)
        p, s = np.linalg.qr(v)
        x, values, yh = np.linalg.svd(r @ s.T)
        return q @ x, values, yh @ p.T

    ways = [("hand", "QR, QR, svd", "f(u, v)", "_[1]", {"f": by_hand, "u": u, "v": v})]
    return "pl.svd(A)", {"A": pl.LowRank(u, v)}, "_[1][:20]", by_hand(u, v)[1], ways


@spectrum("expm-kronsum-2", 5, 30, 200)
def _(g, n):
    """Of n^2 rows."""
    a, c = g.standard_normal((2, n, n)) / n
    sl = peer("scipy.linalg")
    both = {"f": sl.expm, "a": a, "c": c, "p": top}
    ways = [("floor", "expm of both", "f(a), f(c)", "p(_)", both)]
    if n <= 30:
        whole = np.kron(a, np.eye(n)) + np.kron(np.eye(n), c)
        ways.append(("hand", "scipy expm", "f(k)", "_[0, 0]", {"f": sl.expm, "k": whole}))
    return "pl.expm(A)", {"A": pl.KronSum(a, c)}, "_[0, 0]", top((sl.expm(a), sl.expm(c))), ways


def top(pair):
    return pair[0][0, 0] * pair[1][0, 0]


@spectrum("sqrtm-spd", 10, 300)
def _(g, n):
    a = g.standard_normal((n, n))
    a = a @ a.T + np.eye(n)
    a = (a + a.T) / 2
    x, sl = g.standard_normal(n), peer("scipy.linalg")

    def by_hand(a):
        w, q = np.linalg.eigh(a)
        return (q * np.sqrt(w)) @ q.T

    ways = [
        ("peer", "scipy sqrtm", "f(a)", "_ @ x", {"f": sl.sqrtm, "a": a, "x": x}),
        ("hand", "eigh by hand", "f(a)", "_ @ x", {"f": by_hand, "a": a, "x": x}),
    ]
    return "pl.sqrtm(A)", {"A": pl.Dense(a), "x": x}, "_ @ x", by_hand(a) @ x, ways


@spectrum("sqrtm-noise-20", 1000, 100_000)
def _(g, n):
    """s I + U U^T, rank 20, applied to x."""
    u, x = g.standard_normal((n, 20)), g.standard_normal(n)

    def by_hand(u, x):
        q, r = np.linalg.qr(u)
        w, y = np.linalg.eigh(r @ r.T)
        q = q @ y
        return 0.5 * x + q @ ((np.sqrt(0.25 + w) - 0.5) * (q.T @ x))

    ways = [("hand", "QR, eigh", "f(u, x)", "_", {"f": by_hand, "u": u, "x": x})]
    A = pl.LowRank(u) + 0.25 * pl.Identity(n)
    return "pl.sqrtm(A) @ x", {"A": A, "x": x}, "_", by_hand(u, x), ways


MAKERS = [spectra]
