"""Positive definite matrices as PyTensor's users write them, and the structure that is due."""

import numpy as np
import pytensor.tensor as pt
from pytensor.assumptions import assume

RNG = np.random.default_rng(0)


def definite(n, seed=0):
    a = np.random.default_rng(seed).standard_normal((n, n))
    return a @ a.T / n + np.eye(n)


def distances(n):
    return np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(float)


def _low(n):
    W, d = pt.dmatrix("W"), pt.dvector("d")
    return W, d, [RNG.standard_normal((n, max(1, n // 4))), 0.5 + RNG.random(n)]


def root(n):
    W, d, values = _low(n)
    return [W, d], W @ W.T + pt.diag(d), values


def gram(n):
    W, d, values = _low(n)
    return [W, d], pt.diag(d) + W.T @ W, [values[0].T.copy(), values[1]]


def known(n):
    """Linear regression with its coefficients integrated out: a product that PyTensor folds."""
    s, t = pt.dscalar("s"), pt.dscalar("t")
    X = RNG.standard_normal((n, max(1, n // 8)))
    return [s, t], t * pt.dot(X, X.T) + s**2 * pt.eye(n), [np.array(0.8), np.array(1.3)]


def given(n):
    """A constant covariance, as of relatives or a tree of species, and noise."""
    s, t = pt.dscalar("s"), pt.dscalar("t")
    K = s**2 * (t * definite(n) + (1 - t) * np.eye(n))
    return [s, t], K, [np.array(0.8), np.array(0.4)]


def deviations(n):
    """Correlations along a grid between deviations that differ."""
    u, r = pt.dvector("u"), pt.dscalar("r")
    K = pt.diag(u) @ r ** distances(n) @ pt.diag(u)
    return [u, r], K, [0.5 + RNG.random(n), np.array(0.4)]


def weighted(n):
    W, d, values = _low(n)
    c = pt.dvector("c")
    k = values[0].shape[1]
    return [W, d, c], W @ pt.diag(c) @ W.T + pt.diag(d), [*values, 0.3 + RNG.random(k)]


def congruence(n):
    W, d, values = _low(n)
    C = pt.dmatrix("C")
    return [W, d, C], W @ C @ W.T + pt.diag(d), [*values, definite(values[0].shape[1])]


def constant(n):
    d, c = pt.dvector("d"), pt.dscalar("c")
    return [d, c], pt.diag(d) + c, [0.5 + RNG.random(n), np.array(0.7)]


def jitter(n):
    W, s = pt.dmatrix("W"), pt.dscalar("s")
    K = W @ W.T + s**2 * pt.eye(n) + 1e-6 * np.eye(n)
    return [W, s], K, [RNG.standard_normal((n, 2)), np.array(0.8)]


def scaled(n):
    W, d, values = _low(n)
    s = pt.dscalar("s")
    K = s * (W @ W.T) + pt.diag(d) / s
    return [W, d, s], K, [*values, np.array(1.7)]


def kron(n):
    A, B, s = pt.dmatrix("A"), pt.dmatrix("B"), pt.dscalar("s")
    K = pt.linalg.kron(A, B) + s * pt.eye(A.shape[0] * B.shape[0])
    return [A, B, s], K, [definite(3), definite(n, 1), np.array(0.3)]


def kron_alone(n):
    a, b = pt.dscalar("a"), pt.dscalar("b")
    K = pt.linalg.kron(pt.exp(-a * distances(n)), pt.exp(-b * distances(3)))
    return [a, b], K, [np.array(0.7), np.array(1.1)]


def kron_sum(n):
    """Of two processes that are independent: one along each side of a grid."""
    a, b, s = pt.dscalar("a"), pt.dscalar("b"), pt.dscalar("s")
    A, B = pt.exp(-a * distances(n)), pt.exp(-b * distances(3))
    K = pt.linalg.kron(A, pt.eye(3)) + pt.linalg.kron(pt.eye(n), B) + s * pt.eye(3 * n)
    return [a, b, s], K, [np.array(0.7), np.array(1.1), np.array(0.4)]


def toeplitz(n):
    a, s = pt.dscalar("a"), pt.dscalar("s")
    K = pt.exp(-a * distances(n)) + s * pt.eye(n)
    return [a, s], K, [np.array(0.6), np.array(0.2)]


def toeplitz_of_a_column(n):
    c = pt.dvector("c")
    return [c], c[distances(n).astype(int)], [0.5 ** np.arange(n)]


def blocks(n):
    A, d = pt.dmatrix("A"), pt.dvector("d")
    return [A, d], pt.linalg.block_diag(A, pt.diag(d)), [definite(n), 0.5 + RNG.random(3)]


def tridiagonal(n):
    d, e = pt.dvector("d"), pt.dvector("e")
    return (
        [d, e],
        pt.diag(d) + pt.diag(e, 1) + pt.diag(e, -1),
        [3 + RNG.random(n), RNG.random(n - 1)],
    )


def pentadiagonal(n):
    d, e, c = pt.dvector("d"), pt.dvector("e"), pt.dscalar("c")
    K = pt.diag(d) - pt.diag(e, 2) - pt.diag(e, -2) + c * pt.eye(n)
    return [d, e, c], K, [3 + RNG.random(n), RNG.random(n - 2), np.array(0.5)]


def autoregression(n):
    """By its precision, as AR(1)."""
    rho, s = pt.dscalar("rho"), pt.dscalar("s")
    ends = np.r_[1.0, np.zeros(n - 2), 1.0]
    d = ends + (1 + rho**2) * (1 - ends)
    off = pt.diag(-rho * np.ones(n - 1), 1)
    return [rho, s], pt.linalg.inv((pt.diag(d) + off + off.T) / s), [np.array(0.6), np.array(0.4)]


def noisy(n):
    """Likewise, with noise beside it."""
    inputs, K, values = autoregression(n)
    t = pt.dscalar("t")
    return [*inputs, t], K + t * pt.eye(n) + 0.1 * np.eye(n), [*values, np.array(0.3)]


def neighbours(n):
    """A Gaussian Markov random field on a line, by its precision."""
    rho, s = pt.dscalar("rho"), pt.dscalar("s")
    W = (distances(n) == 1).astype(float)
    Q = (np.diag(W.sum(1)) - rho * W) / s
    return [rho, s], pt.linalg.inv(Q), [np.array(0.6), np.array(0.4)]


def dense(n):
    a = pt.dscalar("a")
    x = np.sort(RNG.random(n))
    K = pt.exp(-a * np.subtract.outer(x, x) ** 2) + 0.5 * pt.diag(1 + x)
    return [a], K, [np.array(1.3)]


ROWS = {
    root: "sum(root, diagonal)",
    gram: "sum(diagonal, root)",
    known: "sum(scaled(root), identity)",
    given: "rotated",
    deviations: "framed(toeplitz)",
    weighted: "sum(weighted, diagonal)",
    congruence: "sum(congruence, diagonal)",
    constant: "sum(diagonal, constant)",
    jitter: "sum(root, identity, identity)",
    scaled: "sum(scaled(root), diagonal)",
    kron: "sum(kron(symmetric, symmetric), identity)",
    kron_alone: "kron(symmetric, symmetric)",
    kron_sum: "sum(kron(symmetric, unit), kron(unit, symmetric), identity)",
    toeplitz: "sum(toeplitz, identity)",
    toeplitz_of_a_column: "toeplitz",
    blocks: "blocks(dense, diagonal)",
    tridiagonal: "sum(diagonal, off, off)",
    pentadiagonal: "sum(diagonal, off, off, identity)",
    autoregression: "inverse(sum(diagonal, off, off))",
    noisy: "sum(inverse(sum(diagonal, off, off)), identity, identity)",
    neighbours: "inverse(sum(diagonal, off, off))",
    dense: "dense",
}
LEAST = {pentadiagonal: 2, autoregression: 2, noisy: 2, known: 4, kron_sum: 2, given: 4}  # rows


def naive(K, y):
    """-(y' inv(K) y + log det K) / 2, as in the paper."""
    K = assume(K, positive_definite=True)
    quad = y @ pt.linalg.solve(K, y, assume_a="pos")
    return -0.5 * (quad + pt.linalg.slogdet(K)[1])


def by_cholesky(K, y):
    """The same by a factor."""
    L = pt.linalg.cholesky(K)
    z = pt.linalg.solve_triangular(L, y, lower=True)
    return -0.5 * pt.sum(z**2) - pt.sum(pt.log(pt.diag(L)))
