"""What a likelihood asks of one matrix, y^H K^-1 y, log det K, diag K^-1: by one `pl.evaluate`, by
one call after the other, and by hand. The matrix changes between calls, so that nothing is kept."""

import numpy as np
from harness import Case, peer
from overhead import rng

import pylinop as pl


def spd(g, n):
    a = g.standard_normal((n, n))
    return a @ a.T / n + np.eye(n)


def changed(a):
    """The array, another one than at the last call."""
    a.flat[0] += 1e-13
    return a


def together(K, y):
    K = pl.lazy(K)
    inverse = pl.inv(K)
    quad, log, variances = pl.evaluate(y @ (inverse @ y), pl.logdet(K), np.diagonal(inverse))
    return np.r_[quad, log, variances]


def apart(K, y):
    return np.r_[y @ pl.solve(K, y), pl.logdet(K), pl.inv(K).diagonal()]


def case_of(make, y, rtol=1e-9):
    case = Case("", "", apart(make(), y), rtol=rtol)
    case.add("pylinop", "pylinop together", "f(make(), y)", f=together, make=make, y=y)
    case.add("pylinop", "pylinop apart", "f(make(), y)", f=apart, make=make, y=y)
    return case


def dense():
    linalg = peer("scipy.linalg")
    if not linalg:
        return

    def build():
        g = rng()
        a, y = spd(g, 1000), g.standard_normal(1000)
        case = case_of(lambda: pl.Dense(changed(a), assume_a="pos"), y)

        def hand():
            factor = linalg.cho_factor(changed(a), lower=True)
            log = 2 * np.log(factor[0].diagonal()).sum()
            inverse = linalg.lapack.dpotri(factor[0], lower=1)[0]
            return np.r_[y @ linalg.cho_solve(factor, y), log, inverse.diagonal()]

        case.add("hand", "scipy potrf, potri", "f()", f=hand)
        return case

    yield "programs/dense-1000", build


def structured():
    def low_rank():
        g = rng()
        d, U, y = g.uniform(1, 2, 5000), g.standard_normal((5000, 20)), g.standard_normal(5000)
        case = case_of(lambda: pl.Diag(changed(d)) + pl.LowRank(U), y)

        def hand():
            w = U / changed(d)[:, None]
            L = np.linalg.cholesky(np.eye(20) + U.T @ w)
            half = np.linalg.solve(L, w.T)
            z = y / d - half.T @ (half @ y)
            log = np.log(d).sum() + 2 * np.log(L.diagonal()).sum()
            return np.r_[y @ z, log, 1 / d - (half**2).sum(0)]

        case.add("hand", "numpy by Woodbury", "f()", f=hand)
        return case

    def toeplitz():
        g = rng()
        t, y = np.exp(-np.arange(1000) / 3.0), g.standard_normal(1000)
        t[0] += 0.5
        return case_of(lambda: pl.Toeplitz(changed(t)), y)

    def kron():
        g = rng()
        a, b, y = spd(g, 40), spd(g, 25), g.standard_normal(1000)
        return case_of(
            lambda: (
                pl.Kron(pl.Dense(changed(a), "sym"), pl.Dense(b, "sym")) + 0.5 * pl.Identity(1000)
            ),
            y,
        )

    yield "programs/lowrank-5000x20", low_rank
    yield "programs/toeplitz-1000", toeplitz
    yield "programs/kron-1000", kron


MAKERS = [dense, structured]
