"""Functions that are differentiated again: from the second time on a program of what they build,
from the third on a tape. The bits are those of the first time, and nothing is of another call."""

import gc
import warnings
import weakref

import numpy as np
import pytest

import pylinop as pl
from pylinop import _core
from pylinop._programs import repeated

SIZES = (1, 2, 15, 17, 100)


def low_rank(rng, n):
    y = rng.standard_normal(n)

    def f(d, U):
        quad, log = pl.inv_quad_logdet(pl.Diag(d) + pl.LowRank(U), y)
        return 0.5 * (quad + log)

    return f, (rng.uniform(1, 2, n), rng.standard_normal((n, 3)))


def process(rng, n):
    X, y = rng.standard_normal((n, 2)), rng.standard_normal(n)

    def f(theta):
        K = pl.Kernel("rbf", X, variance=theta[0], length_scale=theta[1])
        quad, log = pl.inv_quad_logdet(K + theta[2] * pl.Identity(n), y)
        return 0.5 * (quad + log) + np.sum(theta**2)

    return f, (np.array([1.3, 0.9, 0.6]),)


def noise(rng, n):
    noise, U = rng.uniform(1, 2, n), rng.standard_normal((n, 2))

    def f(s, x):
        K = s * pl.Identity(n) + pl.Diag(noise) + pl.LowRank(U)
        return x @ pl.solve(K, np.sin(x)) + pl.logdet(K)

    return f, (np.float64(1.7), rng.standard_normal(n))


def spectrum(rng, n):
    A = rng.standard_normal((n, n))

    def f(S):
        return np.sum(np.sqrt(np.linalg.eigvalsh(S @ S.T + A @ A.T + np.eye(n))))

    return f, (rng.standard_normal((n, n)),)


def complex_solve(rng, n):
    b = rng.standard_normal(n) + 1j * rng.standard_normal(n)

    def f(c, x):
        K = pl.Circulant(c) + (2.0 + len(b)) * pl.Identity(n)
        return np.sum(np.abs(pl.solve(K, x * b)) ** 2)

    c = rng.standard_normal((2, n))
    return f, (c[0] + 1j * c[1], rng.standard_normal(n))


def elements(rng, n):
    def f(x, y):
        z = np.where(x > 0, np.exp(-x), np.tanh(y)) + np.maximum(x, y)
        return np.sum(np.reshape(np.concatenate([z, y]), (2, -1))[1] * np.log1p(x * x)) + np.mean(y)

    return f, (rng.standard_normal(n), rng.standard_normal(n))


def fixed_noise(rng, n):
    X, y = rng.standard_normal((n, 2)), rng.standard_normal(n)

    def f(theta):
        K = pl.Kernel("rbf", X, variance=theta[0], length_scale=theta[1])
        quad, log = pl.inv_quad_logdet(K + 0.3 * pl.Identity(n), y)
        return 0.5 * (quad + log)

    return f, (np.array([1.3, 0.9]),)


MAKERS = (low_rank, process, noise, fixed_noise, spectrum, complex_solve, elements)


def moved(rng, args):
    return tuple(a * (1 + 0.1 * rng.random()) for a in args)


def bits(x):
    return [np.asarray(a).tobytes() for a in x]


def plain(f, args):
    """By a way that nothing of another call is in."""
    every = tuple(range(len(args)))
    values = [pl.lazy(np.array(a)) for a in args]
    value = f(*values)
    return pl.evaluate(value, *pl.gradients(value, values, allow_unused=True)), every


@pytest.mark.parametrize("make", MAKERS, ids=lambda f: f.__name__)
def test_each_call_gives_the_bits_of_the_first(make, rng):
    for n in SIZES:
        f, args = make(rng, n)
        every = tuple(range(len(args)))
        both = pl.value_and_grad(f, every)
        many = [moved(rng, args) for _ in range(6)]
        repeated.forget()
        for one in many:
            value, grads = both(*one)
            repeated.forget()
            first_value, first = both(*one)
            assert bits((first_value, *first)) == bits((value, *grads)), n
            both(*one)


@pytest.mark.parametrize("make", MAKERS, ids=lambda f: f.__name__)
def test_gradients_follow_the_arguments(make, rng):
    for n in SIZES:
        f, args = make(rng, n)
        both = pl.value_and_grad(f, tuple(range(len(args))))
        for _ in range(5):
            one = moved(rng, args)
            value, grads = both(*one)
            (due, *slopes), _ = plain(f, one)
            np.testing.assert_allclose(value, due, rtol=1e-10, atol=1e-12)
            for g, s, a in zip(grads, slopes, one, strict=True):
                assert np.shape(g) == np.shape(a)
                assert np.asarray(g).dtype == np.asarray(a).dtype
                np.testing.assert_allclose(g, s, rtol=1e-9, atol=1e-9 * (1 + np.abs(s).max()))


@pytest.mark.parametrize("make", MAKERS[:4] + MAKERS[5:], ids=lambda f: f.__name__)
def test_hessian_products_follow_the_arguments(make, rng):
    n = 16
    f, args = make(rng, n)
    every = tuple(range(len(args)))
    product = pl.hvp(f, every)
    for _ in range(5):
        one = moved(rng, args)
        vectors = tuple(np.asarray(rng.standard_normal(np.shape(a))) for a in one)
        found = product(*one, vectors)
        repeated.forget()
        for g, due in zip(found, product(*one, vectors), strict=True):
            np.testing.assert_allclose(g, due, rtol=1e-9, atol=1e-9 * (1 + np.abs(due).max()))
        product(*one, vectors)
        product(*one, vectors)


def test_what_a_function_reads_counts_at_each_call(rng):
    n, held = 20, {"c": 1.0, "y": rng.standard_normal(20), "f": np.sin}

    def f(x):
        return held["c"] * np.sum(held["f"](x) * held["y"])

    g = pl.grad(f)
    x = rng.standard_normal(n)
    for k in range(8):
        if k == 3:
            held["c"] = 2.5
        if k == 4:
            held["y"][:] = rng.standard_normal(n)
        if k == 5:
            held["y"] = rng.standard_normal(n)
        if k == 6:
            held["f"] = np.exp
        slope = np.cos(x) if k < 6 else np.exp(x)
        np.testing.assert_allclose(g(x), held["c"] * slope * held["y"], rtol=1e-13)


def test_numbers_decide_anew(rng):
    """-0.0 is not 0.0, 1 not True; other shapes and dtypes are other programs."""
    g = pl.value_and_grad(lambda x, c: np.sum(np.power(x, c) * c), 0)
    for c in (2, 3, 2.0, True, np.float64(2), np.float32(2), -1, 2):
        for x in (rng.uniform(1, 2, 3), rng.uniform(1, 2, (2, 2)), rng.random(3, np.float32) + 1):
            for _ in range(3):
                value, slope = g(x, c)
                due = np.sum(x ** (c * 1) * c)
                np.testing.assert_allclose(value, due, rtol=1e-5)
                np.testing.assert_allclose(slope, c * c * x ** (c * 1.0 - 1), rtol=1e-5)
                assert slope.dtype == x.dtype


def test_results_are_the_callers_own(rng):
    g = pl.value_and_grad(lambda x: np.sum(x) + 0 * np.sum(x * x))
    x = rng.standard_normal(4)
    kept = [g(x)[1] for _ in range(5)]
    for a in kept:
        a[:] = 7
    np.testing.assert_array_equal(g(x)[1], np.ones(4))


def test_layouts(rng):
    f = pl.grad(lambda a: np.sum(np.exp(a) @ np.arange(5.0)))
    whole = rng.standard_normal((10, 12))
    for a in (whole[:, :5], whole[::2, 1:6], whole.T[:5, :5], np.asfortranarray(whole[:, :5])):
        for _ in range(4):
            np.testing.assert_allclose(f(a), np.exp(a) * np.arange(5.0), rtol=1e-13)


def test_errors_are_the_same_at_each_call():
    g = pl.grad(lambda d: pl.logdet(pl.lazy(np.outer(d, d), assume_a="pos")) + np.sum(d))
    h = pl.grad(lambda a: np.sum(pl.inv(a)))
    said = set()
    for _ in range(5):
        with pytest.raises(np.linalg.LinAlgError) as why:
            h(np.zeros((2, 2)))
        said.add(str(why.value))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                g(np.ones(2))
            except np.linalg.LinAlgError as e:
                said.add(str(e)[:20])
    assert len([s for s in said if "line" in s or "test_gradients_again" in s]) <= 1, said


def test_repeated_eigenvalues_are_an_error_at_each_call():
    g = pl.grad(lambda a: np.sum(np.linalg.eigh(a)[1][:, 0]))
    for _ in range(4):
        with pytest.raises(np.linalg.LinAlgError, match="repeated"):
            g(np.eye(3))
        assert np.isfinite(g(np.diag([1.0, 2.0, 4.0]))).all()


def test_a_rule_that_looks_at_values(rng):
    square = pl.custom_vjp(lambda x: x * x, _looks)
    g = pl.grad(lambda x: np.sum(square(x)))
    for _ in range(4):
        x = rng.standard_normal(3)
        np.testing.assert_allclose(g(x), np.where(x > 0, 2 * x, 0.0), rtol=1e-14)


def _looks(value, args, g):
    (x,) = args
    return (g * 2 * np.where(np.asarray(x) > 0, np.asarray(x), 0.0),)


def run_from_tapes(call):
    """How many tapes a call runs once they are made; on a busy machine the first calls may take
    too long for that."""
    ran = 0
    for _ in range(30):
        before = _core._tape_counts()[1]
        call()
        ran = max(ran, _core._tape_counts()[1] - before)
    return ran


@pytest.mark.no_verify  # verified functions leave none
def test_a_function_leaves_a_tape(rng):
    for make in (low_rank, fixed_noise):
        f, args = make(rng, 30)
        g = pl.value_and_grad(f, tuple(range(len(args))))
        assert run_from_tapes(lambda g=g, args=args: g(*moved(rng, args))) == 1


def test_multiples_of_what_holds_no_arrays_are_constants_of_a_program(rng):
    """Not of one another: the number counts, and the kind."""
    n, d = 20, rng.uniform(1, 2, 20)

    def of(c, kind):
        return pl.grad(lambda d: pl.logdet(pl.Diag(d) + c * kind))

    for _ in range(4):
        for c in (0.3, 0.7, 2):
            np.testing.assert_allclose(of(c, pl.Identity(n))(d), 1 / (d + c), rtol=1e-13)
            L = pl.Laplacian((n,))
            due = np.linalg.inv(np.diag(d) + c * np.asarray(L.toarray())).diagonal()
            np.testing.assert_allclose(of(c, L)(d), due, rtol=1e-12)
    p = pl.program(lambda d: pl.logdet(pl.Diag(d) + 0.3 * pl.Identity(n)))
    np.testing.assert_allclose(p(d), np.log(d + 0.3).sum(), rtol=1e-13)


@pytest.mark.parametrize(
    "theta", [[1.0, 0.7, 0.7], [1.0, 1.0, 1.0], [1.0, 0.7, 0.5], [2.0, 0.25, 4.0]], ids=str
)
@pytest.mark.parametrize("n", [6, 40])
def test_numbers_that_are_alike_are_not_taken_for_one_another(theta, n, rng):
    """A tape that is made where two parameters are alike, or one is twice another, holds for all
    others; of elements of a vector, of a symmetric matrix, and of numbers."""
    X = rng.random((n, 2))

    def f(v, length, s):
        K = pl.Kernel("rbf", X, variance=v, length_scale=length) + s * pl.Identity(n)
        return pl.logdet(K)

    def of_vector(p):
        return f(p[0], p[1], p[2])

    def of_matrix(P):
        return f(P[0, 1], P[1, 1], P[1, 0])

    def by_hand(v, length, s):
        S = ((X[:, None] - X) ** 2).sum(-1)
        F = np.exp(-0.5 * S / length**2)
        P = np.linalg.inv(v * F + s * np.eye(n))
        return np.array([np.sum(P * F), np.sum(P * F * S) * v / length**3, np.trace(P)])

    theta = np.array(theta)
    vector, matrix, numbers = pl.grad(of_vector), pl.grad(of_matrix), pl.grad(f, (0, 1, 2))
    for k in range(12):  # the first of them are alike
        now = theta + 0.05 * max(0, k - 6) * np.arange(3)
        due = by_hand(*now)
        for found in (
            vector(now),
            matrix(np.array([[0.0, now[0]], [now[2], now[1]]]))[[0, 1, 1], [1, 1, 0]],
            np.array(numbers(*now)),
        ):
            np.testing.assert_allclose(found, due, rtol=1e-7, atol=1e-8 * np.abs(due).max())


@pytest.mark.parametrize("n", [6, 40])
def test_ratios_are_not_taken_for_constants(n, rng):
    """Of elements of one array, and of two: a tape is made of runs on other numbers."""
    X = rng.random((n, 2))
    P = np.exp(-((X[:, None] - X) ** 2).sum(-1))

    def of(ratio):
        return pl.logdet(pl.Dense(P, "pos") + ratio * pl.Identity(n))

    one = pl.grad(lambda p: of(p[0] / p[1]))
    two = pl.grad(lambda p, q: of(p[0] / q[0]), (0, 1))
    norms = pl.grad(lambda p, q: of(np.sum(p) / np.sum(q)), (0, 1))
    for k in range(8):
        p = np.array([0.6 + 0.05 * k * (k > 3), 1.2])
        slope = np.trace(np.linalg.inv(P + p[0] / p[1] * np.eye(n)))
        due = slope * np.array([1 / p[1], -p[0] / p[1] ** 2])
        np.testing.assert_allclose(one(p), due, rtol=1e-8)
        np.testing.assert_allclose(np.ravel(two(p[:1], p[1:])), due, rtol=1e-8)
        found = norms(np.array([p[0], 0.0]), np.array([p[1], 0.0]))
        np.testing.assert_allclose(found, np.repeat(due, 2).reshape(2, 2), rtol=1e-8)


class Owner(np.ndarray):
    """An array that can be watched."""


def test_nothing_of_the_arguments_is_held(rng):
    def differentiated():
        owner = np.ndarray.__new__(Owner, 50)
        owner[:] = rng.standard_normal(50)
        x = owner.view(np.ndarray)
        g = pl.grad(lambda a: np.sum(np.sin(a) * x))
        for _ in range(4):
            g(x)
        return weakref.ref(owner)

    seen = differentiated()
    gc.collect()
    assert seen() is None


def test_arrays_that_are_thawed_written_and_frozen_again_are_read_again():
    own, held, x = np.zeros(3), np.zeros(3), np.ones(3)
    own.flags.writeable = False
    calls = (
        pl.program(lambda x: pl.Diag(own) @ x),
        pl.program(lambda x: [pl.lazy(held), pl.lazy(own) * x]),
        pl.grad(lambda x: np.sum(pl.lazy(own) * x)),
        pl.grad(lambda x: x @ (pl.Diag(own) @ x) / 2),
    )
    for k in range(6):
        own.flags.writeable = True
        own[:], held[:] = k, k
        own.flags.writeable = False
        for call in calls:
            for got in call(x) if isinstance(call(x), (list, tuple)) else [call(x)]:
                np.testing.assert_array_equal(np.asarray(got).ravel(), np.full(3, float(k)))
