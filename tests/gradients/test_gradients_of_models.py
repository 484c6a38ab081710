"""Losses as papers write them, of several structures at once: value, gradient and Hessian against
dense forms, on both sides of where structure is worth its while, and no array of all entries."""

import re

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

import pylinop as pl

SIZES = (2, 7, 15, 16, 17, 64, 130, 420)
SMALL = 130  # up to which second derivatives are compared
DENSE = {  # what the formulas call, of arrays
    "solve": np.linalg.solve,
    "inv": np.linalg.inv,
    "logdet": lambda a: np.linalg.slogdet(a)[1],
    "trace": np.trace,
    "diagonal": np.diagonal,
    "Diag": np.diag,
    "Identity": np.eye,
    "Circulant": scipy.linalg.circulant,
    "LowRank": lambda u: u @ u.T,
    "expm": scipy.linalg.expm,
    "lazy": np.asarray,
    "Sparse": lambda s: s.toarray(),
    "Tridiagonal": lambda a, b, c: np.diag(a, -1) + np.diag(b) + np.diag(c, 1),
}


class _Dense:
    def __getattr__(self, name):
        return DENSE[name]


def divergence(n, rng):
    """Kullback-Leibler's of two normal distributions, each a diagonal and a few factors."""
    U, V, mu = rng.standard_normal((n, 4)), rng.standard_normal((n, 3)), rng.standard_normal(n)

    def loss(xp, a, b):
        A, B = xp.LowRank(U) + xp.Diag(a), xp.LowRank(V) + xp.Diag(b)
        return xp.trace(xp.inv(B) @ A) + mu @ xp.solve(B, mu) + xp.logdet(B) - xp.logdet(A)

    return loss, (rng.uniform(0.5, 2, n), rng.uniform(0.5, 2, n))


def smoother(n, rng):
    """Whittaker's, with its evidence: weights, and a penalty on second differences."""
    y = rng.standard_normal(n)
    ones = np.ones(max(n - 2, 1))
    D = scipy.sparse.diags_array([ones, -2 * ones, ones], offsets=[0, 1, 2], shape=(ones.size, n))
    D = scipy.sparse.csr_array(D)

    def loss(xp, w, c):
        D_ = xp.Sparse(D)
        A = xp.Diag(w) + c * (D_.T @ D_)
        x = xp.solve(A, w * y)
        return np.sum(w * (y - x) ** 2) + xp.logdet(A)

    return loss, (rng.uniform(0.5, 1.5, n), np.array(2.0))


def deconvolution(n, rng):
    """Generalised cross-validation of a circular blur."""
    far = np.minimum(np.arange(n), n - np.arange(n))
    c, y, d = np.exp(-(far**2) / 8.0), rng.standard_normal(n), 2.0 * (far == 0) - (far == 1)
    c /= c.sum()

    def loss(xp, s):
        C, D = xp.Circulant(c), xp.Circulant(d)
        A = C.T @ C + s * (D.T @ D) + 0.01 * xp.Identity(n)
        r = C @ xp.solve(A, C.T @ y) - y
        return n * (r @ r) / (n + 1 - xp.trace(xp.inv(A) @ C.T @ C)) ** 2

    return loss, (np.array(0.3),)


def field(n, rng):
    """A conditional autoregression on a graph, beside noise."""
    W = scipy.sparse.random_array((n, n), density=min(1.0, 2 / n), rng=rng, format="csr")
    W = scipy.sparse.csr_array(W + W.T)
    degrees, y = np.asarray(W.sum(axis=1)).ravel() + 1.0, rng.standard_normal(n)

    def loss(xp, r, t, s):
        Q = t * (xp.Diag(degrees) - r * xp.Sparse(W))
        P = Q + s * xp.Identity(n)
        return xp.logdet(P) - xp.logdet(Q) - y @ xp.solve(P, y)

    return loss, (np.array(0.9), np.array(1.3), np.array(2.0))


def diffusion(n, rng):
    """Heat on a line after a time that is to be found."""
    u, v = rng.standard_normal(n), rng.standard_normal(n)
    m = max(n - 1, 0)

    def loss(xp, t):
        L = xp.Tridiagonal(np.full(m, 1.0), np.full(n, -2.0), np.full(m, 0.7))
        return v @ (xp.expm(t * L) @ u)

    return loss, (np.array(0.5),)


def propagator(n, rng):
    """Where a particle is after a while in a potential that is to be found."""
    u, w = rng.standard_normal(n) + 0j, rng.random(n)
    m = max(n - 1, 0)

    def loss(xp, V):
        H = xp.Tridiagonal(np.full(m, -1.0), 2 + V, np.full(m, -1.0))
        x = xp.expm(-0.3j * H) @ u
        return np.sum(w * np.real(np.conj(x) * x))

    return loss, (rng.standard_normal(n),)


MODELS = {
    f.__name__: f for f in (propagator, divergence, smoother, deconvolution, field, diffusion)
}


def differences(f, args, k, way, step):
    moved = lambda t: f(*(a + t * way if i == k else a for i, a in enumerate(args)))
    weights = ((1, 45), (2, -9), (3, 1))
    return sum(w * (moved(i * step) - moved(-i * step)) for i, w in weights) / (60 * step)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", MODELS)
def test_against_dense_forms(name, n, rng):
    loss, args = MODELS[name](n, rng)
    dense = lambda *p: float(loss(_Dense(), *p))
    every = tuple(range(len(args)))
    value, found = pl.value_and_grad(lambda *p: loss(pl, *p), every)(*args)
    np.testing.assert_allclose(value, dense(*args), rtol=1e-9)
    for k, a in enumerate(args):
        way = rng.standard_normal(a.shape) / max(1, a.size) ** 0.5
        wanted = differences(dense, args, k, way, 1e-3)
        size = max(abs(wanted), np.linalg.norm(np.ravel(found[k])), 1e-3 * abs(value))
        assert abs(np.sum(found[k] * way) - wanted) < 1e-7 * size, (k, wanted)


@pytest.mark.parametrize("n", [n for n in SIZES if n <= SMALL])
@pytest.mark.parametrize("name", MODELS)
def test_twice_against_differences(name, n, rng):
    loss, args = MODELS[name](n, rng)
    every = tuple(range(len(args)))
    f = lambda *p: loss(pl, *p)
    ways = tuple(rng.standard_normal(a.shape) / max(1, a.size) ** 0.5 for a in args)
    found = pl.hvp(f, every)(*args, ways)
    grad = pl.grad(f, every)
    at = lambda t: grad(*(a + t * w for a, w in zip(args, ways, strict=True)))
    h = 1e-3
    for k in every:
        wanted = sum(w * (at(i * h)[k] - at(-i * h)[k]) for i, w in ((1, 45), (2, -9), (3, 1)))
        wanted = wanted / (60 * h)
        size = max(np.linalg.norm(np.ravel(wanted)), np.linalg.norm(np.ravel(at(0)[k])))
        assert np.linalg.norm(np.ravel(found[k] - wanted)) < 1e-6 * size, k


@pytest.mark.parametrize("name", MODELS)
def test_no_array_of_all_entries(name, rng):
    n = 1500
    loss, args = MODELS[name](n, rng)
    with pl.explaining() as record:
        pl.grad(lambda *p: loss(pl, *p), tuple(range(len(args))))(*args)
    for plan in record.plans:
        for step in plan.steps:
            shape = re.findall(r"\d+", step["writes"].partition("(")[2]) if step["took"] else []
            assert np.prod([float(x) for x in shape]) < n * n / 8, step
