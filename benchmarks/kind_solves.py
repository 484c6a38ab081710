"""Solves of the kinds with an immediate form beside LAPACK, SciPy and NumPy by hand.

A row makes the code of an operator, the arrays it speaks of, and the ways to solve without it."""

import numpy as np
from harness import Case, peer, tensor
from kinds import LARGE, hand, other
from overhead import rng

import pylinop as pl

SOLVES = []


def solve(name, *sizes):
    """Registers ``make(g, n) -> (code of A, its names, ways over b)``.

    A way whose name has "kept" begins where A was factored, and is no rival of A built anew."""

    def add(make):
        SOLVES.extend((name, n, make) for n in sizes)
        return make

    return add


def of_peer(name, make):
    """What another library makes, or None where it is not there or cannot."""
    module = peer(name)
    try:
        return make(module) if module else None
    except Exception:
        return None


def solves():
    """Two cases a row: what was factored is kept, and all from the arrays on."""
    if not peer("scipy"):
        return
    for name, n, make in SOLVES:
        for anew in (False, True):

            def build(n=n, make=make, anew=anew):
                g = rng()
                code, names, ways = make(g, n)
                A = eval(code, {"pl": pl, **names})
                x = g.standard_normal(A.shape[1])
                b = A @ x
                case = Case("", "", x, rtol=1e-7)
                if anew:
                    case.add(
                        "pylinop", "pylinop, anew", f"pl.solve({code}, b)", pl=pl, b=b, **names
                    )
                    ways = [way for way in ways if "kept" not in way[1]]
                else:
                    s = pl.solve
                    case.add("pylinop", "pylinop solve(A, b)", "solve(A, b)", solve=s, A=A, b=b)
                for role, label, code, more in ways:
                    case.add(role, label, code, b=b, **more)
                return case

            yield f"kinds/solve-{'anew-' if anew else ''}{name}-{n}", build


@solve("diag", 10, LARGE)
def _(g, n):
    d = 1 + g.random(n)
    return "pl.Diag(d)", {"d": d}, [hand("b / d", d=d)]


@solve("permutation", 10, LARGE)
def _(g, n):
    p = g.permutation(n)

    def by_hand(b):
        x = np.empty_like(b)
        x[p] = b
        return x

    return (
        "pl.Permutation(p)",
        {"p": p},
        [
            hand("b[q]", "numpy, inverse kept", q=np.argsort(p)),
            hand("f(b)", f=by_hand),
        ],
    )


@solve("dense", 10, 300)
def _(g, n):
    a = g.standard_normal((n, n)) + 2 * n**0.5 * np.eye(n)
    sl = peer("scipy.linalg")
    lu = sl.lu_factor(a)
    ways = [hand("s(a, b)", "numpy.linalg.solve", s=np.linalg.solve, a=a)]
    ways.append(hand("s(lu, b, check_finite=False)", "lu_solve, factor kept", s=sl.lu_solve, lu=lu))
    ways.append(other("scipy.linalg.solve", "s(a, b)", s=sl.solve, a=a))
    return "pl.Dense(a)", {"a": a}, ways


@solve("dense-pos", 10, 300)
def _(g, n):
    a = g.standard_normal((n, n))
    a, sl = a @ a.T + n * np.eye(n), peer("scipy.linalg")
    c = sl.cho_factor(a)
    kept = "s(c, b, check_finite=False)"
    ways = [hand("potrs(*potrf(a)[:1], b)", "LAPACK", potrf=sl.lapack.dpotrf, potrs=potrs(sl))]
    ways[0][3]["a"] = a
    ways.append(hand(kept, "cho_solve, factor kept", s=sl.cho_solve, c=c))
    ways.append(other("scipy.linalg.solve", "s(a, b, assume_a='pos')", s=sl.solve, a=a))
    return "pl.Dense(a, 'pos')", {"a": a}, ways


def potrs(sl):
    return lambda c, b: sl.lapack.dpotrs(c, b)[0]


@solve("triangular", 10, 1000)
def _(g, n):
    a, sl = np.tril(g.standard_normal((n, n)) / n) + np.eye(n), peer("scipy.linalg")
    F = np.asfortranarray(a)
    ways = [hand("f(a, b, lower=1)[0]", "LAPACK dtrtrs", f=sl.lapack.dtrtrs, a=F)]
    code = "s(a, b, lower=True, check_finite=False)"
    ways.append(other("scipy solve_triangular", code, s=sl.solve_triangular, a=a))
    return "pl.Triangular(a)", {"a": a}, ways


@solve("tridiagonal", 10, 100_000)
def _(g, n):
    dl, d, du = g.random(n - 1), 3 + g.random(n), g.random(n - 1)
    sl = peer("scipy.linalg")
    ab = np.array([np.append(0, du), d, np.append(dl, 0)])
    ways = [hand("f(dl, d, du, b)[3]", "LAPACK dgtsv", f=sl.lapack.dgtsv, dl=dl, d=d, du=du)]
    code = "s((1, 1), ab, b, check_finite=False)"
    ways.append(other("scipy solve_banded", code, s=sl.solve_banded, ab=ab))
    return "pl.Tridiagonal(dl, d, du)", {"dl": dl, "d": d, "du": du}, ways


@solve("banded-5-5", 12, 100_000)
def _(g, n):
    ab = g.random((11, n))
    ab[5] += 10
    sl = peer("scipy.linalg")
    wide = np.zeros((16, n), order="F")
    wide[5:] = ab
    lu, pivots, _ = sl.lapack.dgbtrf(wide, 5, 5)
    names = {"f": sl.lapack.dgbtrs, "lu": lu, "p": pivots}
    ways = [hand("f(lu, 5, 5, b, p)[0]", "LAPACK dgbtrs, factor kept", **names)]
    code = "s((5, 5), ab, b, check_finite=False)"
    ways.append(other("scipy solve_banded", code, s=sl.solve_banded, ab=ab))
    return "pl.Banded((5, 5), ab)", {"ab": ab}, ways


@solve("banded-pos-5", 12, 100_000)
def _(g, n):
    ab = np.zeros((11, n))
    ab[5] = 12 + g.random(n)
    for k in range(1, 6):
        e = g.random(n - k)
        ab[5 - k, k:], ab[5 + k, : n - k] = e, e
    sl, upper = peer("scipy.linalg"), np.asfortranarray(ab[:6])
    c = sl.lapack.dpbtrf(upper)[0]
    ways = [hand("f(c, b)[0]", "LAPACK dpbtrs, factor kept", f=sl.lapack.dpbtrs, c=c)]
    code = "s(ab, b, check_finite=False)"
    ways.append(other("scipy solveh_banded", code, s=sl.solveh_banded, ab=ab[:6]))
    return "pl.Banded((5, 5), ab, 'pos')", {"ab": ab}, ways


def blocks(g, n, m, definite):
    """Blocks below, on and above the diagonal, and the same as solve_banded's band."""
    N = n // m
    low, d = g.standard_normal((N - 1, m, m)), g.standard_normal((N, m, m))
    up = low.transpose(0, 2, 1) if definite else g.standard_normal((N - 1, m, m))
    d = (d + d.transpose(0, 2, 1)) / 2 + 4 * m * np.eye(m)
    u = 2 * m - 1
    ab = np.zeros((2 * u + 1, n))
    for r in range(m):
        for c in range(m):
            ab[u + r - c, c::m] = d[:, r, c]
            ab[u + m + r - c, c : n - m : m] = low[:, r, c]
            ab[u - m + r - c, m + c :: m] = up[:, r, c]
    return low, d, up, ab


@solve("blocktridiagonal-16", 160, 16_000)
def _(g, n):
    low, d, up, ab = blocks(g, n, 16, False)
    sl = peer("scipy.linalg")
    code = "s((31, 31), ab, b, check_finite=False)"
    ways = [other("scipy solve_banded", code, s=sl.solve_banded, ab=ab)]
    return "pl.BlockTridiagonal(low, d, up)", {"low": low, "d": d, "up": up}, ways


@solve("blocktridiagonal-pos-16", 160, 16_000)
def _(g, n):
    low, d, _, ab = blocks(g, n, 16, True)
    sl = peer("scipy.linalg")
    code = "s(ab, b, check_finite=False)"
    ways = [other("scipy solveh_banded", code, s=sl.solveh_banded, ab=ab[:32])]
    return "pl.BlockTridiagonal(low, d, assume_a='pos')", {"low": low, "d": d}, ways


@solve("circulant", 10, 1000, 100_000)
def _(g, n):
    c = g.random(n)
    c[0] += n
    fft, sl = peer("scipy.fft"), peer("scipy.linalg")
    names = {"S": fft.rfft(c), "n": n, "rfft": fft.rfft, "irfft": fft.irfft}
    ways = [hand("irfft(rfft(b) / S, n)", "scipy.fft, spectrum kept", **names)]
    ways.append(hand("irfft(rfft(b) / rfft(c), n)", "scipy.fft", c=c, **names))
    ways.append(other("scipy solve_circulant", "s(c, b)", s=sl.solve_circulant, c=c))
    return "pl.Circulant(c)", {"c": c}, ways


@solve("toeplitz", 10, 500)
def _(g, n):
    c = np.exp(-np.arange(n) / 3.0)
    c[0] += 0.5
    sl = peer("scipy.linalg")
    way = other("scipy solve_toeplitz", "s(c, b, check_finite=False)", s=sl.solve_toeplitz, c=c)
    return "pl.Toeplitz(c)", {"c": c}, [way]


def stationary(name, kernel):
    """A kernel matrix on a grid: kind or unkind to iterations."""

    @solve(f"toeplitz-{name}", 500, 2000, 20_000)
    def _(g, n):
        c = kernel(np.arange(n) / 20)
        sl = peer("scipy.linalg")
        way = other("scipy solve_toeplitz", "s(c, b, check_finite=False)", s=sl.solve_toeplitz, c=c)
        return "pl.Toeplitz(c)", {"c": c}, [way]


def nugget(c, by):
    c[0] += by
    return c


stationary("kms", lambda t: 0.5 ** (20 * t))
stationary("exponential", lambda t: np.exp(-t))
stationary(
    "matern52",
    lambda t: nugget((1 + 5**0.5 * t + 5 / 3 * t**2) * np.exp(-(5**0.5) * t), 1e-4),
)
stationary("rbf", lambda t: nugget(np.exp(-(t**2) / 2), 1e-6))


@solve("toeplitz-general", 500, 2000)
def _(g, n):
    c, r = g.standard_normal((2, n))
    a = peer("scipy.linalg").toeplitz(c, r)
    return "pl.Toeplitz(c, r)", {"c": c, "r": r}, [hand("s(a, b)", "numpy", s=np.linalg.solve, a=a)]


@solve("dft", 16, 2**17)
def _(g, n):
    return "pl.DFT(n)", {"n": n}, [hand("ifft(b)", "scipy.fft.ifft", ifft=peer("scipy.fft").ifft)]


@solve("dct", 16, 2**17)
def _(g, n):
    return "pl.DCT(n)", {"n": n}, [hand("idct(b)", "scipy.fft.idct", idct=peer("scipy.fft").idct)]


@solve("householder", 10, LARGE)
def _(g, n):
    v = g.standard_normal(n)
    tau = 2 / (v @ v)
    return "pl.Householder(v)", {"v": v}, [hand("b - (tau * (v @ b)) * v", v=v, tau=tau)]


@solve("blockdiag-20", 40, 20_000)
def _(g, n):
    a = g.standard_normal((n // 20, 20, 20)) + 10 * np.eye(20)
    code = "s(a, b.reshape(-1, 20, 1)).ravel()"
    lo = of_peer("linear_operator.operators", lambda m: m.BlockDiagLinearOperator(tensor(a)))
    ways = [hand(code, "numpy, batched", s=np.linalg.solve, a=a)]
    if lo is not None:
        ways.append(other("linear_operator", "A.solve(t(b)).numpy()", A=lo, t=tensor))
    return "pl.BlockDiag(*a)", {"a": a}, ways


@solve("lowrank-update-10", 20, 100_000)
def _(g, n):
    d, u = 1 + g.random(n), g.standard_normal((n, 10))

    def by_hand(b):
        w = u / d[:, None]
        return b / d - w @ np.linalg.solve(np.eye(10) + u.T @ w, w.T @ b)

    names = {"d": d, "u": u}
    return "pl.LowRankUpdate(pl.Diag(d), u)", names, [hand("f(b)", "Woodbury by hand", f=by_hand)]


@solve("kron-2", 9, 10_000)
def _(g, n):
    m, sl = round(n**0.5), peer("scipy.linalg")
    a, c = g.standard_normal((2, m, m)) + 2 * m**0.5 * np.eye(m)
    names = {"s": sl.lu_solve, "a": sl.lu_factor(a), "c": sl.lu_factor(c), "m": m}
    code = "s(c, s(a, b.reshape(m, m)).T).T.ravel()"
    ways = [hand(code, "lu_solve, factors kept", **names)]
    code = "s(c, s(a, b.reshape(m, m)).T).T.ravel()"
    ways.append(hand(code, "numpy.linalg.solve", s=np.linalg.solve, a=a, c=c, m=m))
    return "pl.Kron(a, c)", {"a": a, "c": c}, ways


def squared(g, m):
    """A Gaussian kernel over m points: symmetric, not assumed."""
    t = np.sort(g.random(m))
    return np.exp(-((t[:, None] - t) ** 2) / 0.1)


@solve("kron-shifted", 64, 1024, 40_000)
def _(g, n):
    m = round(n**0.5)
    a, c = squared(g, m), squared(g, m)
    kept = [*np.linalg.eigh(a), *np.linalg.eigh(c)]

    def back(b, la, qa, lc, qc):
        y = qa.T @ b.reshape(m, m) @ qc
        return (qa @ (y / (np.multiply.outer(la, lc) + 0.1)) @ qc.T).ravel()

    def by_hand(b):
        return back(b, *np.linalg.eigh(a), *np.linalg.eigh(c))

    names = {"a": a, "c": c, "n": n}
    ways = [hand("f(b, *kept)", "numpy, eigh kept", f=back, kept=kept)]
    ways.append(hand("f(b)", "numpy.linalg.eigh", f=by_hand))
    return "pl.Kron(a, c) + 0.1 * pl.Identity(n)", names, ways


@solve("kron-pair", 64, 1024, 10_000)
def _(g, n):
    m, sl = round(n**0.5), peer("scipy.linalg")
    a, c = squared(g, m), squared(g, m)
    d, e = squared(g, m) + np.eye(m), squared(g, m) + np.eye(m)
    kept = [*sl.eigh(a, d), *sl.eigh(c, e)]

    def back(b, la, va, lc, vc):
        y = va.T @ b.reshape(m, m) @ vc
        return (va @ (y / (np.multiply.outer(la, lc) + 1)) @ vc.T).ravel()

    def by_hand(b):
        return back(b, *sl.eigh(a, d), *sl.eigh(c, e))

    names = {"a": a, "c": c, "d": d, "e": e}
    ways = [hand("f(b, *kept)", "scipy, generalised eigh kept", f=back, kept=kept)]
    ways.append(hand("f(b)", "scipy.linalg.eigh", f=by_hand))
    return "pl.Kron(a, c) + pl.Kron(d, e)", names, ways


@solve("arrow-3", 60, 100_000)
def _(g, n):
    d, u, v, w = 1 + g.random(n), *g.standard_normal((2, n, 3)), g.standard_normal((3, 3))

    def by_hand(b):
        z, y = b[:n] / d, u / d[:, None]
        last = np.linalg.solve(w - v.T @ y, b[n:] - v.T @ z)
        return np.concatenate([z - y @ last, last])

    names = {"d": d, "u": u, "v": v, "w": w}
    code = "pl.Block([[pl.Diag(d), u], [pl.Dense(v).T, w]])"
    return code, names, [hand("f(b)", "Schur complement by hand", f=by_hand)]


@solve("kronsum-her", 64, 900, 10_000)
def _(g, n):
    m = round(n**0.5)
    a = 2 * np.eye(m) - np.eye(m, k=1) - np.eye(m, k=-1)
    c = a + np.diag(g.random(m))

    def back(b, la, qa, lc, qc):
        y = qa.T @ b.reshape(m, m) @ qc
        return (qa @ (y / np.add.outer(la, lc)) @ qc.T).ravel()

    def by_hand(b):
        return back(b, *np.linalg.eigh(a), *np.linalg.eigh(c))

    kept = [*np.linalg.eigh(a), *np.linalg.eigh(c)]
    ways = [hand("f(b, *kept)", "numpy, eigh kept", f=back, kept=kept)]
    ways.append(hand("f(b)", "numpy.linalg.eigh", f=by_hand))
    return "pl.KronSum(a, c)", {"a": a, "c": c}, ways


@solve("kronsum-2", 9, 900)
def _(g, n):
    m, sl = round(n**0.5), peer("scipy.linalg")
    a, c = g.standard_normal((2, m, m)) + 3 * m**0.5 * np.eye(m)
    code = "s(a, c.T, b.reshape(m, m)).ravel()"
    way = other("scipy solve_sylvester", code, s=sl.solve_sylvester, a=a, c=c, m=m)
    return "pl.KronSum(a, c)", {"a": a, "c": c}, [way]


MAKERS = [solves]
