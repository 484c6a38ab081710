"""Factors, least squares and draws by structure beside NumPy and SciPy by hand."""

import numpy as np
from harness import Case, peer
from overhead import rng

import pylinop as pl

FACTORS = []


def factor(name, *sizes):
    """Registers ``make(g, n) -> (code, its names, what of `_` is compared, the answer, ways)``."""

    def add(make):
        FACTORS.extend((name, n, make) for n in sizes)
        return make

    return add


def factors():
    if not peer("scipy"):
        return
    for name, n, make in FACTORS:

        def build(n=n, make=make):
            code, names, check, answer, ways = make(rng(), n)
            case = Case("", "", answer, rtol=1e-7)
            case.add("pylinop", "pylinop", code, check, pl=pl, **names)
            for role, label, code, check, more in ways:
                case.add(role, label, code, check, **more)
            return case

        yield f"factors/{name}-{n}", build


def spd(g, n):
    a = g.standard_normal((n, n))
    return a @ a.T + n * np.eye(n)


@factor("cholesky-dense", 10, 300)
def _(g, n):
    a = spd(g, n)
    names = {"A": pl.Dense(a)}
    way = ("hand", "numpy.linalg.cholesky", "f(a)", "_", {"f": np.linalg.cholesky, "a": a})
    return "pl.cholesky(A)", names, "_.toarray()", np.linalg.cholesky(a), [way]


def changed(a, code):
    """The code after `a` got a new first element, so that nothing is kept."""
    return f"a[0, 0] = np.nextafter(a[0, 0], np.inf); _ = {code}"


@factor("cholesky-anew", 160, 200, 300, 400, 500, 700, 1000)
def _(g, n):
    """A factor and one solve beside the factor alone by LAPACK, in the same library."""
    a = spd(g, n)
    b = a.sum(axis=1)
    ours, one = changed(a, "pl.solve(pl.Dense(a, 'pos'), b)"), np.ones(n)
    names = {"a": a, "f": np.linalg.cholesky}
    way = ("hand", "numpy.linalg.cholesky", changed(a, "f(a)"), "np.ones(len(a))", names)
    return ours, {"a": a, "b": b}, "_", one, [way]


@factor("lu-anew", 160, 200, 300, 400, 500, 700, 1000)
def _(g, n):
    a = g.standard_normal((n, n))
    b = a.sum(axis=1)
    names = {"a": a, "b": b, "f": np.linalg.solve}
    way = ("hand", "numpy.linalg.solve", changed(a, "f(a, b)"), "_", names)
    return changed(a, "pl.solve(pl.Dense(a), b)"), {"a": a, "b": b}, "_", np.ones(n), [way]


@factor("cholesky-kron-2", 3, 100)
def _(g, n):
    """Of n^2 rows; the factor's diagonal is compared."""
    a, c = spd(g, n), spd(g, n)
    names = {"A": pl.Kron(a, c)}
    hand = {"f": np.linalg.cholesky, "a": a, "c": c}
    check = "np.outer(_[0].diagonal(), _[1].diagonal()).ravel()"
    way = ("hand", "numpy.linalg.cholesky of both", "f(a), f(c)", check, hand)
    diagonals = [np.linalg.cholesky(f).diagonal() for f in (a, c)]
    return "pl.cholesky(A)", names, "_.diagonal()", np.outer(*diagonals).ravel(), [way]


def bands(w):
    def make(g, n):
        ab = g.standard_normal((w + 1, n))
        ab[0] = 4 * w + 4
        for k in range(1, w + 1):
            ab[k, n - k :] = 0
        whole = np.zeros((2 * w + 1, n))
        whole[w:] = ab
        for k in range(1, w + 1):
            whole[w - k, k:] = ab[k, : n - k]
        sl = peer("scipy.linalg")
        code = "f(ab, lower=True, check_finite=False)"
        kept = {"f": sl.cholesky_banded, "ab": ab}
        way = ("hand", "scipy cholesky_banded", code, "_[0]", kept)
        answer = sl.cholesky_banded(ab, lower=True)[0]
        return "pl.cholesky(A)", {"A": pl.Banded((w, w), whole)}, "_.diagonal()", answer, [way]

    return make


for _w, _sizes in ((1, (10, 100_000)), (5, (12, 100_000)), (40, (10_000,))):
    factor(f"cholesky-banded-{_w}", *_sizes)(bands(_w))


@factor("lstsq-kron-2", 4, 100)
def _(g, n):
    """Two factors of n x n / 2."""
    a, c = g.standard_normal((2, n, n // 2))
    b = g.standard_normal(n * n)
    code = "f(a, f(c, b.reshape(n, n).T)[0].T)[0].ravel()"
    hand = {"f": lambda m, x: np.linalg.lstsq(m, x, None), "a": a, "c": c, "b": b, "n": n}
    answer = eval(code, hand)
    way = ("hand", "numpy.linalg.lstsq twice", code, "_", hand)
    return "pl.lstsq(A, b)", {"A": pl.Kron(a, c), "b": b}, "_[0]", answer, [way]


@factor("cholesky-update", 10, 1000)
def _(g, n):
    a, v = spd(g, n), g.standard_normal(n)
    answer = np.linalg.cholesky(a + np.outer(v, v))
    hand = {"f": np.linalg.cholesky, "a": a, "v": v}
    ways = [("hand", "factored anew", "f(a + v[:, None] * v)", "_", hand)]
    names = {"L": pl.cholesky(a), "v": v}
    return "pl.linalg.cholesky_update(L, v)", names, "_.toarray()", answer, ways


@factor("cholesky-downdate", 10, 1000)
def _(g, n):
    a, v = spd(g, n), g.standard_normal(n)
    whole = a + np.outer(v, v)
    hand = {"f": np.linalg.cholesky, "a": whole, "v": v}
    ways = [("hand", "factored anew", "f(a - v[:, None] * v)", "_", hand)]
    names = {"L": pl.cholesky(whole), "v": v}
    code = "pl.linalg.cholesky_update(L, v, downdate=True)"
    return code, names, "_.toarray()", np.linalg.cholesky(a), ways


@factor("cholesky-append", 10, 1000)
def _(g, n):
    a = spd(g, n + 1)
    ways = [("hand", "factored anew", "f(a)", "_", {"f": np.linalg.cholesky, "a": a})]
    names = {"L": pl.cholesky(a[:n, :n]), "b": a[:n, n].copy(), "c": a[n, n]}
    code = "pl.linalg.cholesky_append(L, b, c)"
    return code, names, "_.toarray()", np.linalg.cholesky(a), ways


@factor("inv-quad-logdet", 10, 1000)
def _(g, n):
    """A new matrix each time, by `copy`: nothing kept."""
    a, b, sl = spd(g, n), g.standard_normal(n), peer("scipy.linalg")

    def by_hand(a, b):
        c = sl.lapack.dpotrf(a, lower=1, clean=0)[0]
        x = sl.lapack.dpotrs(c, b, lower=1)[0]
        return b @ x, 2 * np.log(c.diagonal()).sum()

    ways = [("hand", "potrf, potrs", "f(a.copy(), b)", "_", {"f": by_hand, "a": a, "b": b})]
    code = "pl.inv_quad_logdet(pl.Dense(a.copy(), 'pos'), b)"
    return code, {"a": a, "b": b}, "_", by_hand(a, b), ways


@factor("sample-toeplitz", 1000, 100_000)
def _(g, n):
    """Draws differ: nothing is compared."""
    c = 0.99 ** np.arange(n)

    def by_hand(c, g):
        w = np.fft.rfft(np.r_[c, c[-2:0:-1]]).real
        z = g.standard_normal(2 * n - 2)
        return np.fft.irfft(np.sqrt(w) * np.fft.rfft(z), 2 * n - 2)[:n]

    ways = [("hand", "numpy.fft", "f(c, g)", "_", {"f": by_hand, "c": c, "g": g})]
    if n <= 1000:
        full = peer("scipy.linalg").toeplitz(c)
        code = "g.multivariate_normal(m, a, method='cholesky')"
        kept = {"g": g, "m": np.zeros(n), "a": full}
        ways.append(("peer", "numpy multivariate_normal", code, "_", kept))
    return "pl.sample(pl.Toeplitz(c), rng=g)", {"c": c, "g": g}, "_", None, ways


MAKERS = [factors]
