"""Gradients and Hessians of likelihoods of Markov processes by their numbers: by one sweep in every
spelling, beside the dense form differentiated by complex steps, and by other ways where the sweep
does not say."""

import numpy as np
import pytest

import pylinop as pl

pytestmark = pytest.mark.no_verify  # which compares plans with the formula, and so takes no sweep
ROWS = [1, 2, 17, 128, 129]
NUMBERS = np.array([1.3, 0.8, 0.2])
ALONG = np.array([0.3, -0.7, 0.2])


def data(n, seed=3):
    rng = np.random.default_rng(seed + n)
    t = np.sort(rng.random(n)) * n / 10
    t[n // 2 :] += 5000.0 * (n > 100)  # so far apart that nothing is left
    if n > 2:
        t[1] = t[0]
    return t, np.sin(t) + 0.1 * rng.standard_normal(n), rng.uniform(0.5, 2, n)


def covariance(order, t, variance, length):
    x = np.sqrt(2 * order + 1) * abs(t[:, None] - t) / length
    return variance * np.exp(-x) * [1, 1 + x, 1 + x + x * x / 3][order]


def dense(order, t, y, noise=lambda p: p[2] * np.eye(1)):
    """The value as a function of complex numbers, of A = K + noise."""

    def f(p):
        A = covariance(order, t, p[0], p[1]) + noise(p) * np.eye(len(t))
        sign, log = np.linalg.slogdet(A)
        return 0.5 * (y @ np.linalg.solve(A, y) + log + 1j * np.angle(sign))

    return f


def slopes(f, p):
    return np.array([f(p + 1e-30j * e).imag for e in np.eye(len(p))]) * 1e30


def check(f, due, p=NUMBERS, along=ALONG, rtol=1e-9, second_rtol=1e-6):
    """Value, gradient and Hessian, as the first time and again, by functions and by a program."""
    wanted, e = slopes(due, p), 1e-5 * along
    second = (slopes(due, p + e) - slopes(due, p - e)) / 2e-5
    size, bend = abs(wanted).max() + 1, abs(second).max() + 1
    for g in (f, f, pl.program(f)):
        value, found = pl.value_and_grad(g)(p)
        np.testing.assert_allclose(value, due(p).real, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * size)
        np.testing.assert_allclose(pl.hvp(f)(p, along), second, rtol=second_rtol, atol=1e-7 * bend)
    x = pl.lazy(p)
    value = f(x)
    got, found = pl.evaluate(value, pl.gradients(value, x))
    np.testing.assert_allclose(got, due(p).real, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * size)


def sweeps(f, *args):
    """How many sweeps a call takes; no other way may be taken beside them."""
    with pl.explaining() as e:
        f(*args)
    names = [step["name"] for step in e.steps]
    assert not [x for x in names if "factor" in x or "solve" in x], names
    return names.count("markov-jets")


def likelihood(A, y):
    quad, log = pl.inv_quad_logdet(A, y)
    return 0.5 * (quad + log)


def matern(order, t, p):
    return pl.quasiseparable(f"matern{2 * order + 1}2", t, variance=p[0], length_scale=p[1])


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("n", ROWS)
def test_sizes(n, order):
    t, y, _ = data(n)
    f = lambda p: likelihood(matern(order, t, p) + p[2] * pl.Identity(n), y)  # noqa: E731
    check(f, dense(order, t, y))
    assert sweeps(pl.value_and_grad(f), NUMBERS) == 1
    assert sweeps(pl.hvp(f), NUMBERS, ALONG) == 2


N = 140
T, Y, W = data(N)
EYE = pl.Identity(N)


def of_solve(A, y):
    return 0.5 * (y @ pl.solve(A, y) + pl.logdet(A))


SPELLINGS = {
    "solve": lambda p: of_solve(matern(1, T, p) + p[2] * EYE, Y),
    "noise first": lambda p: of_solve(p[2] * EYE + matern(1, T, p), Y),
    "a lazy y": lambda p: likelihood(matern(1, T, p) + p[2] * EYE, pl.lazy(Y)),
    "solve, twice made": lambda p: (
        0.5
        * (Y @ pl.solve(matern(1, T, p) + p[2] * EYE, Y) + pl.logdet(matern(1, T, p) + EYE * p[2]))
    ),
    "inverse": lambda p: (lambda A: 0.5 * (Y @ pl.inv(A) @ Y + pl.slogdet(A)[1]))(
        matern(1, T, p) + p[2] * EYE
    ),
    "sum": lambda p: (lambda A: 0.5 * (np.sum(Y * pl.solve(A, Y)) + pl.logdet(A)))(
        matern(1, T, p) + p[2] * EYE
    ),
    "dot, transposed": lambda p: (lambda A: 0.5 * (np.dot(pl.solve(A.T, Y), Y) + pl.logdet(A)))(
        matern(1, T, p) + p[2] * EYE
    ),
    "multiple": lambda p: likelihood(
        p[0] * pl.quasiseparable("matern32", T, length_scale=p[1]) + p[2] * EYE, Y
    ),
    "multiple of all": lambda p: likelihood(
        p[0] * (pl.quasiseparable("matern32", T, length_scale=p[1]) + (p[2] / p[0]) * EYE), Y
    ),
    "two noises": lambda p: likelihood(matern(1, T, p) + 0.5 * p[2] * EYE + EYE * (p[2] / 2), Y),
    "diagonal": lambda p: likelihood(matern(1, T, p) + pl.Diag(p[2] * np.ones(N)), Y),
    "a function of the value": lambda p: np.log(
        np.exp(likelihood(matern(1, T, p) + p[2] * EYE, Y))
    ),
    "normal": lambda p: (
        -pl.MultivariateNormal(np.zeros(N), matern(1, T, p) + p[2] * EYE).logpdf(Y)
        - N / 2 * np.log(2 * np.pi)
    ),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spellings(spelling):
    f = SPELLINGS[spelling]
    check(f, dense(1, T, Y))
    assert sweeps(pl.value_and_grad(f), NUMBERS) == (2 if "twice" in spelling else 1)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_noise_of_its_own_at_each_time(order):
    noise = lambda p: p[2] * np.diag(W)  # noqa: E731
    f = lambda p: likelihood(matern(order, T, p) + pl.Diag(p[2] * W), Y)  # noqa: E731
    check(f, dense(order, T, Y, noise))
    assert sweeps(pl.value_and_grad(f), NUMBERS) == 1
    g = lambda p: likelihood(matern(order, T, p) + p[2] * pl.Diag(W), Y)  # noqa: E731
    check(g, dense(order, T, Y, noise))
    h = lambda p: likelihood(matern(order, T, p) + pl.Diag(W) + p[2] * EYE, Y)  # noqa: E731
    check(h, dense(order, T, Y, lambda p: np.diag(W) + p[2] * np.eye(N)))
    assert sweeps(pl.value_and_grad(h), NUMBERS) == 1


@pytest.mark.parametrize("family", ["matern12", "matern32", "matern52", "celerite", "oscillator"])
@pytest.mark.parametrize("n", [1, 2, 40])
def test_multiples_of_given_matrices(family, n):
    t, y, w = data(n)
    more = {"a": 1.2, "b": 0.1, "c": 0.5, "d": 1.4} if family == "celerite" else {}
    K = pl.quasiseparable(family, t, **more)
    array = K.toarray()

    def due(p):
        A = p[0] * array + p[1] * np.diag(w)
        sign, log = np.linalg.slogdet(A)
        return 0.5 * (y @ np.linalg.solve(A, y) + log + 1j * np.angle(sign))

    f = lambda p: likelihood(p[0] * K + p[1] * pl.Diag(w), y)  # noqa: E731
    check(f, due, NUMBERS[::2].copy(), ALONG[:2].copy())
    assert sweeps(pl.value_and_grad(f), NUMBERS[::2].copy()) == 1


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("n", [255, 256])
def test_kernels_of_points_in_any_order(n, order):
    t, y, w = data(n)
    turn = np.random.default_rng(0).permutation(n)
    x, z, v = t[turn][:, None].copy(), y[turn].copy(), w[turn].copy()

    def f(p):
        K = pl.Kernel(f"matern{2 * order + 1}2", x, variance=p[0], length_scale=p[1])
        return of_solve(K + pl.Diag(p[2] * v), z)

    check(f, dense(order, t, y, lambda p: p[2] * np.diag(w)))
    if n >= 256:
        assert sweeps(pl.value_and_grad(f), NUMBERS) == 1


def test_arrays_that_are_written_to():
    """What is held is read at each call."""
    t, y, w = data(N)
    x = t[:, None].copy()

    def f(p):
        K = pl.Kernel("matern32", x, variance=p[0], length_scale=p[1])
        return likelihood(K + pl.Diag(p[2] * w), y)

    g = pl.value_and_grad(pl.program(f))
    for k in range(4):
        x[:, 0] = t * (1 + k)
        y += 0.1
        w[:] = w[::-1].copy()
        due = dense(1, t * (1 + k), y, lambda p: p[2] * np.diag(w))
        value, found = g(NUMBERS)
        np.testing.assert_allclose(value, due(NUMBERS).real, rtol=1e-11)
        np.testing.assert_allclose(found, slopes(due, NUMBERS), rtol=1e-9)


def no_sweeps(f, *args):
    with pl.explaining() as e:
        f(*args)
    return "markov-jets" not in [step["name"] for step in e.steps]


def test_other_derivatives_go_other_ways():
    """By data, times of single precision, a mean, or by more numbers beside them."""
    f = lambda p, y: likelihood(matern(1, T, p) + p[2] * EYE, y)  # noqa: E731
    by_p, by_y = pl.grad(f, (0, 1))(NUMBERS, Y)
    np.testing.assert_allclose(by_p, slopes(dense(1, T, Y), NUMBERS), rtol=1e-9)
    A = covariance(1, T, *NUMBERS[:2]) + NUMBERS[2] * np.eye(N)
    np.testing.assert_allclose(by_y, np.linalg.solve(A, Y), rtol=1e-9, atol=1e-9)
    single = lambda p: likelihood(matern(1, T.astype("f4"), p) + p[2] * EYE, Y)  # noqa: E731
    assert no_sweeps(pl.grad(single), NUMBERS)
    shifted = lambda p: likelihood(matern(1, T, p) + p[2] * EYE, Y - p[0])  # noqa: E731
    due = lambda p: dense(1, T, Y - p[0])(p)  # noqa: E731
    np.testing.assert_allclose(pl.grad(shifted)(NUMBERS), slopes(due, NUMBERS), rtol=1e-9)
    one = pl.lazy(Y)  # wanted in one place of two
    p = pl.lazy(NUMBERS)
    A = matern(1, T, p) + p[2] * EYE
    g = pl.gradients(one @ pl.solve(A, Y), one)
    np.testing.assert_allclose(g, np.asarray(pl.solve(A, Y)), rtol=1e-12)


@pytest.mark.parametrize("kind", ["steps", "generators", "points"])
def test_where_the_pivots_are_small(kind):
    """There a checked solve says it, in all orders of derivatives."""
    t, y, _ = data(N)
    noise, y = 1e-9, np.sin(t)

    def f(p):
        if kind == "steps":
            K = matern(1, t, p)
        elif kind == "points":
            K = pl.Kernel("matern32", t[:, None], variance=p[0], length_scale=p[1])
        else:
            K = p[0] * pl.quasiseparable("matern32", t, length_scale=4.0)
        return likelihood(K + p[2] * EYE, y)

    p = np.array([1.3, 4.0, noise])
    value, found = pl.value_and_grad(f)(p)
    with pl.config(verify=True):
        due, wanted = pl.value_and_grad(f)(p)
        second = pl.hvp(f)(p, ALONG * p)
    np.testing.assert_allclose(value, due, rtol=1e-9)
    np.testing.assert_allclose(found * p, wanted * p, rtol=1e-6, atol=1e-6)
    for _ in range(3):
        got = pl.hvp(f)(p, ALONG * p)
        np.testing.assert_allclose(got * p, second * p, rtol=1e-4, atol=1e-4)


def test_numbers_that_are_none():
    f = lambda p: likelihood(matern(1, T, p) + p[2] * EYE, Y)  # noqa: E731
    with pytest.raises(np.linalg.LinAlgError):  # times that are equal, no noise
        pl.value_and_grad(f)(np.array([1.0, 1.0, 0.0]))
    bad = Y.copy()
    bad[7] = np.nan
    g = lambda p: bad @ pl.solve(matern(1, T, p) + p[2] * EYE, bad)  # noqa: E731
    value, found = pl.value_and_grad(g)(NUMBERS)
    assert np.isnan(value)
    assert np.isnan(found).all()
    negative = np.array([-0.01, 0.8, 3.0])  # a multiple that is no variance, of a definite matrix
    value, found = pl.value_and_grad(f)(negative)
    np.testing.assert_allclose(found, slopes(dense(1, T, Y), negative), rtol=1e-8)


def test_third_derivatives():
    """By the ways that are open to all matrices."""
    f = lambda p: likelihood(matern(1, T[:20], p) + p[2] * pl.Identity(20), Y[:20])  # noqa: E731
    p = pl.lazy(NUMBERS)
    third = pl.gradients(np.sum(pl.gradients(np.sum(pl.gradients(f(p), p) * ALONG), p) * ALONG), p)
    h = 1e-4
    ahead, back = (pl.hvp(f)(NUMBERS + k * h * ALONG, ALONG) for k in (1, -1))
    np.testing.assert_allclose(third, (ahead - back) / (2 * h), rtol=1e-5, atol=1e-5)


def test_hessians():
    f = lambda p: likelihood(matern(2, T, p) + p[2] * EYE, Y)  # noqa: E731
    H = pl.hessian(f)(NUMBERS)
    np.testing.assert_allclose(H @ ALONG, pl.hvp(f)(NUMBERS, ALONG), rtol=1e-10)
    np.testing.assert_allclose(H, H.T, rtol=1e-9)


def test_two_likelihoods_of_other_weights():
    """Of which second derivatives need two sweeps; each is its own."""

    def f(p):
        quad, log = pl.inv_quad_logdet(matern(1, T, p) + p[2] * EYE, Y)
        return quad * np.exp(0.001 * log) + np.sin(log)

    def due(p):
        A = covariance(1, T, p[0], p[1]) + p[2] * np.eye(N)
        sign, log = np.linalg.slogdet(A)
        log = log + 1j * np.angle(sign)
        return Y @ np.linalg.solve(A, Y) * np.exp(0.001 * log) + np.sin(log)

    check(f, due, second_rtol=1e-5)
