"""Likelihoods of mixed models, V = sum_i c_i Z_i Z_i^T + s I with a row of Z_i in one group, as
they are written, their gradients by the components of the variance, and the same by hand with
NumPy and SciPy, interleaved in one process.

    OPENBLAS_NUM_THREADS=1 python benchmarks/mixed_models.py [rounds]

By hand, the value and its gradient: S = C^-1 + Z^T Z / s of all Z_i side by side, dense, its
Cholesky factor and inverse, and Henderson's equations. Before each call all numbers change. Each
line: least and median CPU time, and the least over that by hand."""

import sys

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
from sparse_fields import least

import pylinop as pl

SIZES = [(3_000, (100,)), (20_000, (400,)), (20_000, (400, 100)), (50_000, (2_000, 50))]


def groups(r, n, k):
    return sp.csr_array((np.ones(n), (np.arange(n), r.integers(0, k, n))), shape=(n, k))


def ours(Z, y):
    S = [pl.Sparse(z) for z in Z]

    def value(*p):
        V = sum((c * s @ s.T for c, s in zip(p, S)), p[-1] * pl.Identity(len(y)))
        return pl.logdet(V) + y @ pl.solve(V, y)

    return value


def by_hand(Z, y, p):
    """The value and its derivatives, the last by the noise."""
    n, s = len(y), p[len(Z)]
    z = sp.hstack(Z).tocsr()
    sizes = [a.shape[1] for a in Z]
    c = np.repeat(np.array(p[:-1]), sizes)
    G, t = (z.T @ z).toarray(), z.T @ y
    L = sl.cholesky(np.diag(1 / c) + G / s, lower=True, check_finite=False)
    inv = sl.lapack.dpotri(L, lower=1)[0]
    inv = np.tril(inv) + np.tril(inv, -1).T
    x = (y - z @ (inv @ t) / s) / s
    logs = 2 * np.log(L.diagonal()).sum() + np.log(c).sum() + n * np.log(s)
    # Z_i^T V^-1 Z_i = (C^-1 - C^-1 S^-1 C^-1)_ii
    own = 1 / c - inv.diagonal() / c**2
    zx = z.T @ x
    ends = np.cumsum([0, *sizes])
    d = [(own[a:b].sum() - zx[a:b] @ zx[a:b]) for a, b in zip(ends, ends[1:])]
    trace = (n - np.sum(own * c)) / s
    return logs + y @ x, [*d, trace - x @ x]


def compare(n, sizes, rounds):
    r = np.random.default_rng(n)
    Z, y = [groups(r, n, k) for k in sizes], r.standard_normal(n)
    f = ours(Z, y)
    both = pl.value_and_grad(f, tuple(range(len(Z) + 1)))
    numbers = lambda p: [np.array(x) for x in (*p[: len(Z)], p[-1])]  # noqa: E731
    calls = {
        "value": lambda p: float(f(*[pl.lazy(x) for x in numbers(p)])),
        "value and gradient": lambda p: both(*numbers(p)),
        "by hand": lambda p: by_hand(Z, y, numbers(p)),
    }
    p = np.array([1.1, 0.05, 0.1])
    want, due = calls["by hand"](p)
    got = both(*numbers(p))
    assert abs(calls["value"](p) - want) < 1e-9 * abs(want)
    assert np.allclose(got[1], due, rtol=1e-8)
    found = least(calls, rounds)
    hand = found["by hand"][0]
    print(f"{n} rows, {' and '.join(map(str, sizes))} groups")
    for name, (low, mid) in found.items():
        print(f"    {name:20s} {low * 1e3:9.1f} {mid * 1e3:9.1f} ms  {low / hand:6.2f}")


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for n, sizes in SIZES:
        compare(n, sizes, rounds)


if __name__ == "__main__":
    main()
