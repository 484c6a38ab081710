"""Kinds of LazyArrays: heads of random formulas whose operators' parameters are lazy.

Each is said in heads that the reference knows: `c(head, *operands, p=())` is one operation, on
values with their bounds and on values with their tangents alike."""

import numpy as np

from .sizes import size

# How they are written; {n} is the size of the dimension that stands in the line's parameters.
WRITTEN = {
    "diagof": "pl.Diag({0}) @ {1}",
    "circof": "pl.Circulant({0}) @ {1}",
    "toepof": "pl.Toeplitz({0}, {1}) @ {2}",
    "thinof": "pl.LowRank({0}, {1}) @ {2}",
    "kronof": "pl.Kron({0}, {1}) @ {2}",
    "updated": "pl.solve(pl.Diag(2 + ({0} * {0}.conj()).real) + pl.LowRank({1}), {2})",
    "noisy": "pl.solve((2 + ({0} * {0}.conj()).real) * pl.Identity({n}) + pl.LowRank({1}), {2})",
    "loglike": "pl.logdet(pl.Diag(2 + ({0} * {0}.conj()).real) + pl.LowRank({1}))",
    "quadof": "pl.inv_quad_logdet(pl.Diag(2 + ({0} * {0}.conj()).real) + pl.LowRank({1}), {2})[0]",
    "kernelof": "pl.Kernel('rbf', points({n}), length_scale=2 + {0} * {0}) @ {1}",
}


def points(n):
    """Of the kernel: n in the plane."""
    return np.random.default_rng(n).standard_normal((n, 2))


def updated(c, p, v, U):
    return c("add", c("vmatrix", c("lift", v)), c("root", U))


COMPOSED = {
    "diagof": lambda c, p, d, A: c("rowscale", d, A),
    "circof": lambda c, p, d, A: c("matmul", c("circulant", d), A),
    "toepof": lambda c, p, a, r, A: c("matmul", c("toeplitz", a, r), A),
    "thinof": lambda c, p, U, V, A: c("matmul", c("lowrank", U, V), A),
    "kronof": lambda c, p, A, B, X: c("matmul", c("kron", A, B), X),
    "updated": lambda c, p, v, U, B: c("solve", updated(c, p, v, U), B),
    "noisy": lambda c, p, a, U, B: c(
        "solve", c("add", c("multiplied", c("lift", a), p=p), c("root", U)), B
    ),
    "loglike": lambda c, p, v, U: c("nlogdet", updated(c, p, v, U)),
    "quadof": lambda c, p, v, U, b: c(
        "real", c("vdot", c("vconj", b), c("vsolve", updated(c, p, v, U), b))
    ),
    "kernelof": lambda c, p, a, A: c("matmul", c("rbf", c("lift", a), p=p), A),
}


def circulant(d):
    n = len(d)
    i = np.arange(n)
    return d[(i[:, None] - i) % n] if n else np.zeros((0, 0), d.dtype)


def toeplitz(c, r):
    i, j = np.arange(len(c))[:, None], np.arange(len(r))
    if not (len(c) and len(r)):
        return np.zeros((len(c), len(r)), c.dtype)
    return np.where(i >= j, c[np.maximum(i - j, 0)], r[np.maximum(j - i, 0)])


# of values and of bounds alike, and linear
LINEAR = {
    "vmatrix": np.diag,
    "circulant": circulant,
    "toeplitz": toeplitz,
}


def gaps(n):
    x = points(n)
    return ((x[:, None] - x) ** 2).sum(-1)


def primitive(head, p, V, M, sizes):
    """The value and the bound of the heads that stand only here."""
    if head == "lift":
        return 2 + np.abs(V[0]) ** 2, 2 + M[0] ** 2
    if head == "multiplied":
        n = size(p[0], sizes)
        return V[0] * np.eye(n), M[0] * np.eye(n)
    if head == "rbf":  # squares of distances cancel: errors are those of the largest entry
        K = np.exp(-gaps(size(p[0], sizes)) / (2 * V[0] ** 2))
        return K, np.full(K.shape, 64.0)
    value, bound = LINEAR[head](*V), LINEAR[head](*M)
    if head != "vmatrix":  # by FFT
        bound = np.full(bound.shape, sum(np.linalg.norm(m) for m in M))
    return value, bound


PRIMITIVE = ("lift", "multiplied", "rbf", *LINEAR)
