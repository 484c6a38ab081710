"""Second derivatives by the points and numbers of a Kernel, and what is of third order."""

import re

import numpy as np
import pytest
from gradients.differences import check, check_second
from gradients.test_gradients_of_kinds import FAMILIES

import pylinop as pl

RNG = np.random.default_rng(14)
N, M, D = 7, 9, 3
LENGTHS = [np.array(1.4), np.array([1.4, 0.9, 2.0])]


def offset(family):
    """What makes the matrix of one set of points definite by far."""
    return 9 if family in ("polynomial", "linear") else 0.5


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("lengths", LENGTHS)
def test_of_likelihoods_by_one_set_of_points(family, lengths):
    x, b = RNG.standard_normal((N, D)), RNG.standard_normal(N)
    own = FAMILIES[family]

    def f(x, v, length, *more):
        given = dict(zip(own, more, strict=True))
        K = pl.Kernel(family, x, variance=v, length_scale=length, **given)
        quad, log = pl.inv_quad_logdet(K + offset(family) * pl.Identity(N), b)
        return quad + log

    check_second(f, x, np.array(0.8), lengths, *own.values())


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("lengths", LENGTHS)
def test_of_products_with_two_sets_of_points(family, lengths):
    x, y = RNG.standard_normal((N, D)), RNG.standard_normal((M, D))
    b, w = RNG.standard_normal(M), RNG.standard_normal((N, M))
    own = FAMILIES[family]

    def f(x, y, v, length, *more):
        given = dict(zip(own, more, strict=True))
        K = pl.Kernel(family, x, y, variance=v, length_scale=length, **given)
        return np.sum((K @ b - w[:, 0]) ** 2) + np.sum(w * K)

    check_second(f, x, y, np.array(0.8), lengths, *own.values())


@pytest.mark.parametrize("n", [1, 7, 300])
def test_blocks_of_rows_and_many_columns(n):
    """More numbers than one block holds."""
    x, y = RNG.standard_normal((n, 2)), RNG.standard_normal((500, 2))
    w = RNG.standard_normal((n, 500))
    f = lambda x, s: np.sum(w * pl.Kernel("matern52", x, y, length_scale=s))
    check_second(f, x, np.array(0.9))


@pytest.mark.parametrize("degree", [0, 1, 2, 5])
def test_degrees(degree):
    x = RNG.standard_normal((N, 2))
    w = RNG.standard_normal((N, N))
    x[0] = 0
    f = lambda x, o: np.sum(w * pl.Kernel("polynomial", x, degree=degree, offset=o))
    check_second(f, x, np.array(0.0))


@pytest.mark.parametrize("family", FAMILIES)
def test_tangents(family):
    x, t, b = RNG.standard_normal((N, D)), RNG.standard_normal((N, D)), RNG.standard_normal(N)
    f = lambda x, s: pl.Kernel(family, x, length_scale=s) @ b
    _, found = pl.jvp(f, (x, np.array(1.1)), (t, np.array(0.7)))
    at = lambda h: pl.evaluate(f(x + h * t, 1.1 + h * 0.7))
    h = 1e-3
    weights = ((-3, -1), (-2, 9), (-1, -45), (1, 45), (2, -9), (3, 1))
    wanted = sum(w * at(k * h) for k, w in weights) / (60 * h)
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("family", ["rbf", "rational_quadratic", "periodic", "polynomial"])
def test_a_derivative_of_a_product_with_a_hessian(family):
    """Third order, where the cotangent of the matrix alone is differentiated."""
    x, own = RNG.standard_normal((N, D)), FAMILIES[family]
    w, q = RNG.standard_normal((2, N, N))

    def along(c, s, *more):
        given = dict(zip(own, more, strict=True))
        value = np.sum((w + c * q) * pl.Kernel(family, x, length_scale=s, **given))
        first = pl.gradients(value, s)
        return pl.gradients(first * first, s) + sum(pl.gradients(first, m) for m in more)

    def by_c(c, s, *more):
        return pl.gradients(along(c, s, *more), c)

    held = [np.array(0.3), np.array(1.2), *own.values()]
    leaves = list(map(pl.lazy, held))
    h = 1e-3
    weights = ((-3, -1), (-2, 9), (-1, -45), (1, 45), (2, -9), (3, 1))
    at = lambda k: float(pl.evaluate(along(*map(pl.lazy, [held[0] + k * h, *held[1:]]))))
    wanted = sum(w * at(k) for k, w in weights) / (60 * h)
    assert np.isclose(float(pl.evaluate(by_c(*leaves))), wanted, rtol=1e-8)


def test_third_derivatives_by_the_numbers_are_refused():
    x = RNG.standard_normal((N, D))

    def f(s):
        first = pl.gradients(np.sum(pl.Kernel("rbf", x, length_scale=s)), s)
        return pl.gradients(first, s)

    with pytest.raises(NotImplementedError, match="third derivatives by the points and numbers"):
        pl.grad(f)(np.array(1.3))


def test_stacks():
    x, v = RNG.standard_normal((3, N, D)), np.array([0.8, 1.1, 1.7])
    each = lambda x, v: pl.logdet(pl.Kernel("matern52", x, variance=v) + 0.2 * pl.Identity(N))
    found = pl.hessian(lambda v: np.sum(each(x, v)))(v)
    one = [pl.hessian(lambda u, k=k: each(x[k], u))(np.array(v[k])) for k in range(3)]
    np.testing.assert_allclose(found, np.diag(np.ravel(one)), rtol=1e-9, atol=1e-12)
    found = pl.hvp(lambda x: np.sum(each(x, v)))(x, x[::-1].copy())
    one = [pl.hvp(lambda p, k=k: each(p, v[k]))(x[k], x[2 - k]) for k in range(3)]
    np.testing.assert_allclose(found, one, rtol=1e-9, atol=1e-12)
    found = pl.hessian(lambda s: np.sum(each(x, s)))(np.array(0.9))
    one = [pl.hessian(lambda s, k=k: each(x[k], s))(np.array(0.9)) for k in range(3)]
    np.testing.assert_allclose(found, np.sum(one), rtol=1e-9)


@pytest.mark.parametrize("family", ["matern12", "matern32"])
def test_equal_points_are_never_nan(family):
    x = np.repeat(RNG.standard_normal((3, 2)), 2, axis=0)
    f = lambda x, s: np.sum(pl.Kernel(family, x, length_scale=s))
    found = pl.hvp(f, (0, 1))(x, np.array(1.1), (x * x, np.array(0.3)))
    assert np.isfinite(found[0]).all() and np.isfinite(found[1])
    check_second(lambda s: f(x, s), np.array(1.1))


def test_single_precision_and_kernels_without_numbers():
    x = RNG.standard_normal((N, D))
    f = lambda x: np.sum(np.sin(pl.Kernel("rbf", x)))
    wanted = pl.hvp(f)(x, x)
    check_second(f, x)
    found = pl.hvp(f)(x.astype(np.float32), x.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_a_kernel_that_is_an_operator():
    (x, t), b = RNG.standard_normal((2, N, D)), RNG.standard_normal(N)
    K = pl.Kernel("rbf", x, variance=np.array(1.3), length_scale=np.array([0.7]))

    def norm(K):
        return np.sum((pl.lazy(K) @ b) ** 2)

    points = K._given("x")
    twice = pl.gradients(np.sum(pl.gradients(norm(K), points) * t), points)
    wanted = pl.hvp(lambda p: norm(pl.Kernel("rbf", p, variance=1.3, length_scale=0.7)))(x, t)
    np.testing.assert_allclose(twice.toarray(), wanted, rtol=1e-12)


@pytest.mark.no_verify  # whose own plans would be counted
def test_a_hessian_takes_one_factor():
    x, b = RNG.standard_normal((40, 2)), RNG.standard_normal(40)

    def nll(theta):
        K = pl.Kernel("rbf", x, variance=theta[0], length_scale=theta[1])
        quad, log = pl.inv_quad_logdet(K + theta[2] * pl.Identity(40), b)
        return quad + log

    with pl.explaining() as record:
        pl.hvp(nll)(np.array([1.2, 0.9, 0.3]), np.ones(3))
    run = [s["name"] for p in record.plans for s in p.steps if not s["conditional"]]
    assert run.count("potrf") == 1, run
    check(nll, np.array([1.2, 0.9, 0.3]))


def likelihood(x, b, v, length, noise):
    K = pl.Kernel("matern52", x, variance=v, length_scale=length) + noise * pl.Identity(len(b))
    quad, log = pl.inv_quad_logdet(K, b)
    return quad + log


@pytest.mark.parametrize("n", [47, 48, 70])
def test_between_values_of_the_inverse(n):
    """From 48 rows on by products with the inverse, not by solves with n columns."""
    rng = np.random.default_rng(n)
    x, b = rng.standard_normal((n, 2)), rng.standard_normal(n)
    numbers = np.array(0.8), np.array([1.4, 0.9]), np.array(0.5)
    check_second(lambda x, *more: likelihood(x, b, *more), x, *numbers)
    check_second(lambda *more: likelihood(x, b, *more), numbers[0], np.array(1.1), numbers[2])


@pytest.mark.no_verify  # whose own plans would be counted
def test_one_factor_and_one_inverse():
    rng, n = np.random.default_rng(3), 60
    x, b = rng.standard_normal((n, 2)), rng.standard_normal(n)
    product = pl.hvp(lambda p: likelihood(x, b, p[0], p[1], p[2]))
    with pl.explaining() as done:
        product(np.array([0.8, 1.1, 0.5]), np.array([0.3, -0.2, 0.4]))
    text = str(done)
    assert text.count(" potri ") == 1
    assert "potrs          t" in text and not re.search(rf"potrs +t\d+\({n}, {n}\)", text)
    factored = re.findall(r"potrf .*?took (\S+) s", text, re.S)
    assert len(factored) <= 2  # the second one is found, by what it is made of


def test_a_hessian_of_an_inverse_s_other_uses():
    """The inverse stands in solves and products too, and in what is of other structure."""
    rng, n = np.random.default_rng(4), 50
    x, b, W = rng.standard_normal((n, 2)), rng.standard_normal(n), rng.standard_normal((n, n))

    def f(v, d):
        K = pl.Kernel("rbf", x, variance=v, length_scale=1.2) + pl.Diag(d)
        inverse = pl.inv(K)
        return np.sum(W * inverse) + b @ (inverse @ b) + np.trace(inverse @ K) + pl.logdet(K)

    check_second(f, np.array(0.8), 0.5 + rng.random(n))


def test_where_a_value_is_nan():
    """For want of a definite matrix: so are all derivatives, which solves by an LU would have."""
    n, v = 50, np.ones(3)
    x, b = np.zeros((n, 2)), np.ones(n)
    f = lambda p: likelihood(x, b, p[0], p[1], p[2])
    at = np.array([1.0, 1.0, -0.5])
    with pl.config(not_definite="nan"):
        for _ in range(3):
            found = (
                pl.value_and_grad(f)(at),
                pl.hvp(f)(at, v),
                pl.hessian(f)(at),
                pl.jacobian(f)(at),
            )
            found += pl.jvp(f, (at,), (v,)), pl.vjp(f, at)[1](1.0)
            for a in (found[0][1], *found[1:4], *found[4], *found[5]):
                assert np.isnan(a).all()
        assert not np.isnan(pl.hvp(f)(np.array([1.0, 1.0, 0.5]), v)).any()


@pytest.mark.parametrize("family", ["rbf", "matern32"])
@pytest.mark.parametrize("n", [47, 48, 63, 64, 65, 130])
def test_of_what_is_symmetric_on_both_sides_one_half_is_multiplied(family, n, rng):
    """inv(K) @ dK @ inv(K) is symmetric where one set of points is; of 64 rows on half of it is
    made."""
    X, y = rng.standard_normal((n, 3)), rng.standard_normal(n)

    def f(p):
        K = pl.Kernel(family, X, variance=p[0], length_scale=p[1]) + p[2] * pl.Identity(n)
        return sum(pl.inv_quad_logdet(K, y))

    p = np.array([1.2, 0.9, 0.3])
    check_second(f, p)
    with pl.explaining() as record:
        pl.hvp(f)(p, np.array([0.3, -0.2, 0.5]))
    names = [s["name"] for plan in record.plans for s in plan.steps]
    assert ("gemm-half" in names) == (n >= 64)
