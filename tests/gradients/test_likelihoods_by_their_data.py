"""Derivatives of gradients of likelihoods of Markov processes by what is no number of theirs: data,
times, weights; and the parts of log |det A| of matrices that are not definite."""

import numpy as np
import pytest

import pylinop as pl

pytestmark = pytest.mark.no_verify  # which compares plans with the formula, and so takes no sweep
N = 260
P, ALONG = np.array([1.3, 0.8, 0.2]), np.array([0.3, -0.7, 0.2])
RNG = np.random.default_rng(5)
T = np.sort(RNG.random(N)) * 25
Y, W = np.sin(T) + 0.1 * RNG.standard_normal(N), RNG.uniform(0.5, 2, N)
STEP = RNG.standard_normal(N) / 10


def likelihood(A, y):
    quad, log = pl.inv_quad_logdet(A, y)
    return 0.5 * (quad + log)


def matern(p):
    return pl.quasiseparable("matern32", T, variance=p[0], length_scale=p[1])


FORMULAS = {
    "data": (Y, lambda p, y: likelihood(matern(p) + p[2] * pl.Identity(N), y)),
    "weights": (W, lambda p, w: likelihood(matern(p) + pl.Diag(p[2] * w), Y)),
    "both": (W, lambda p, w: likelihood(matern(p) + pl.Diag(p[2] * w), w)),
    "what is added": (
        W,
        lambda p, w: likelihood(matern(p) + p[2] * pl.Identity(N) + pl.Diag(w), Y),
    ),
    "points": (
        T[:, None],
        lambda p, x: likelihood(
            pl.Kernel("matern32", x, variance=p[0], length_scale=p[1]) + p[2] * pl.Identity(N), Y
        ),
    ),
    "generators": (
        1.0 + W,
        lambda p, d: likelihood(
            p[0] * pl.QuasiSeparable(d, *GENERATORS) + p[2] * pl.Identity(N), Y
        ),
    ),
}
GENERATORS = tuple(getattr(pl.quasiseparable("matern12", T), k) for k in "pqa")


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("name", FORMULAS)
def test_gradients_of_gradients(name, raw):
    """By arrays, as LazyArrays and as they are, but for points, of which a Kernel of LazyArrays has
    no gradient as they are, and no third derivatives."""
    array, f = FORMULAS[name]
    raw, third = raw and name != "points", float(name != "points")

    def mixed(a):
        value, found = pl.value_and_grad(lambda p: f(p, a))(P)
        return value + found @ ALONG + third * pl.hvp(lambda p: f(p, a))(P, ALONG) @ ALONG

    array = array.copy()
    p, x = pl.lazy(P), array if raw else pl.lazy(array)
    value = f(p, x)
    slopes = pl.gradients(value, p)
    if third:
        slopes = slopes + pl.gradients(np.sum(slopes * ALONG), p)
    found = pl.gradients(value + np.sum(slopes * ALONG), x).toarray()
    step = 1e-4 * STEP.reshape(array.shape)
    due = (mixed(array + step) - mixed(array - step)) / 2
    np.testing.assert_allclose(np.sum(found * step), due, rtol=1e-5)


def test_parts_that_are_no_arrays():
    """What has become something else is an error, not a derivative that lacks it."""
    p = pl.lazy(P)
    K, noise = matern(p), p[2] * pl.lazy(W)
    A = K + pl.Diag(noise)
    value = likelihood(A, Y)
    value = value + np.sum(pl.gradients(value, p) * ALONG)
    for x in (A, K, noise):
        with pytest.raises(NotImplementedError, match="likelihood"):
            pl.gradients(value, x)
    C, D = pl.quasiseparable("matern32", T), pl.Diag(W)
    value = likelihood(p[0] * C + p[2] * D, Y)
    value = value + np.sum(pl.gradients(value, p) * ALONG)
    for x in (C, D):
        with pytest.raises(NotImplementedError, match="likelihood"):
            pl.gradients(value, x)
    variance = np.exp(p[0])
    K = variance * pl.quasiseparable("matern32", T, length_scale=p[1])
    value = likelihood(K + p[2] * pl.Identity(N), Y)
    slope = pl.gradients(value, p) @ [1.0, 0, 0]  # by log(variance)
    found = pl.gradients(slope, variance).toarray() * np.exp(P[0])
    e = np.array([1e-4, 0, 0])
    g = pl.grad(lambda p: likelihood(np.exp(p[0]) * matern([1.0, p[1]]) + p[2] * pl.Identity(N), Y))
    np.testing.assert_allclose(found, (g(P + e) - g(P - e))[0] / 2e-4, rtol=1e-6)


@pytest.mark.parametrize("n", [N - 1, N])
@pytest.mark.parametrize("p", [[-1.3, 0.8, 0.2], [1.3, 0.8, -0.2], [-1.3, 0.8, -0.2]])
def test_matrices_that_are_not_definite(p, n):
    p, t, y = np.array(p), T[:n], Y[:n]

    def f(p):
        A = p[0] * pl.quasiseparable("matern32", t, length_scale=p[1]) + p[2] * pl.Identity(n)
        return y @ pl.solve(A, y) + pl.slogdet(A)[1]

    with pl.config(verify=True):
        due, wanted = pl.value_and_grad(f)(p)
    for _ in range(3):
        value, found = pl.value_and_grad(f)(p)
        np.testing.assert_allclose(value, due, rtol=1e-8)
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_a_variance_that_is_an_array_is_read_with_the_others():
    x, s = T[:, None].copy(), np.array(1.3)
    p = pl.lazy(P[1:].copy())
    f = lambda p: likelihood(  # noqa: E731
        pl.Kernel("matern32", x, variance=s, length_scale=p[0]) + p[1] * pl.Identity(N), Y
    )
    value = f(p)
    g = pl.gradients(value, p)
    s[...] = 2.0
    got, found = pl.evaluate(value, g)
    due, wanted = pl.value_and_grad(f)(P[1:].copy())
    np.testing.assert_allclose(got, due, rtol=1e-12)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("size", [1e120, 1e140])
def test_numbers_that_are_very_large(size):
    """Of one over which the sweep's powers would be 0."""

    def of_some(p, size):  # the noise of some alone
        w = np.where(np.arange(N) % 5 == 0, size, 1.0)
        return likelihood(matern(p) + pl.Diag(p[2] * w), Y)

    def of_all(p, size):
        return pl.logdet(size * (matern(p) + p[2] * pl.Identity(N)))

    for f, small in ((of_some, 1e20), (of_all, 1.0)):
        due = pl.grad(lambda p: f(p, small))(P)  # noqa: B023
        np.testing.assert_allclose(pl.grad(lambda p: f(p, size))(P), due, rtol=1e-9)  # noqa: B023
        second = pl.hvp(lambda p: f(p, small))(P, ALONG)  # noqa: B023
        got = pl.hvp(lambda p: f(p, size))(P, ALONG)  # noqa: B023
        np.testing.assert_allclose(got, second, rtol=1e-9)
