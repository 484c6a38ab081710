"""Gradients by the generators of quasi-separable matrices, and by the parameters of the covariances
that have them, without a dense form."""

import functools
import math
import operator

import numpy as np
import pytest
import samples

import pylinop as pl
from pylinop._operators.quasiseparable_formulas import markov_rows, markov_sums


def generators(n, J, full, rng, dtype=np.float64):
    def a(*shape):
        x = rng.standard_normal(shape)
        return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(
            dtype
        )

    moves = a(n, J * J if full else J) * (0.4 / J)
    return (rng.random(n) + 6 * J).astype(np.zeros(0, dtype).real.dtype), a(n, J), a(n, J), moves


def slope(f, args, directions, step=1e-5):
    value = [
        float(f(*(x + k * step * h for x, h in zip(args, directions, strict=True))))
        for k in (1, -1)
    ]
    return (value[0] - value[1]) / (2 * step)


def agree(f, args, rng, rtol=1e-6):
    """By differences, in a direction of all arguments together."""
    found = pl.grad(f, tuple(range(len(args))))(*args)
    away = [rng.standard_normal(x.shape) for x in args]
    away = [
        h + 1j * rng.standard_normal(h.shape) if x.dtype.kind == "c" else h
        for h, x in zip(away, args, strict=True)
    ]
    got = sum(np.sum(np.real(np.conj(g) * h)) for g, h in zip(found, away, strict=True))
    lazily = lambda *x: f(*map(pl.lazy, x))  # noqa: E731
    np.testing.assert_allclose(got, slope(lazily, args, away), rtol=rtol, atol=1e-7)
    assert all(g.shape == x.shape and g.dtype == x.dtype for g, x in zip(found, args, strict=True))


@pytest.mark.parametrize("n", [1, 2, 3, 31, 64, 65, 130])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("J", [1, 2, 3, 4, 5])
def test_likelihoods(n, J, full, dtype):
    rng = np.random.default_rng(n + J)
    args = generators(n, J, full, rng, dtype)
    b = rng.standard_normal(n)

    def f(d, p, q, a):
        K = pl.QuasiSeparable(d, p, q, a) + 0.5 * pl.Identity(n)
        return np.real(b @ pl.solve(K, b)) + np.linalg.slogdet(K)[1]

    agree(f, args, rng)


@pytest.mark.parametrize("k", [1, 2, 3, 8, 11])
def test_products_with_columns(k):
    """Columns go by eights, pairs and ones."""
    rng = np.random.default_rng(k)
    args = generators(20, 2, True, rng)
    X, W = rng.standard_normal((20, k)), rng.standard_normal((20, k))
    for tri in (False, True):
        agree(
            lambda d, p, q, a, tri=tri: np.sum((pl.QuasiSeparable(d, p, q, a, tri) @ X) * W),
            args,
            rng,
        )


@pytest.mark.parametrize(("n", "J"), [(0, 0), (0, 1), (3, 0), (1, 1)])
def test_no_rows_and_no_states(n, J):
    b = np.ones(n)

    def f(d, p, q, a):
        K = pl.QuasiSeparable(d, p, q, a)
        return b @ pl.solve(K, b) + pl.logdet(K) + b @ (K @ b)

    d, p = np.full(n, 2.0), np.ones((n, J))
    found = pl.grad(f, (0, 1, 2, 3))(d, p, p, p)
    assert [g.shape for g in found] == [(n,), (n, J), (n, J), (n, J)]
    np.testing.assert_allclose(found[0], 1.25, rtol=1e-13)


@pytest.mark.filterwarnings("ignore:overflow")  # NumPy's, of h over the length
def test_far_times():
    """Where e^-x is 0 and x is infinite."""
    t, y = np.array([0.0, 1.0, 1e300]), np.ones(3)

    def f(length):
        K = pl.quasiseparable("matern52", t, length_scale=length) + pl.Identity(3)
        return y @ pl.solve(K, y) + pl.logdet(K)

    value, g = pl.value_and_grad(f)(1e-10)
    assert np.isfinite(value) and g == 0.0


def test_complex_transitions_of_real_generators():
    rng = np.random.default_rng(3)
    d, p, q, a = generators(12, 2, False, rng)
    args = (d, p, q, a * np.exp(1j * rng.random(a.shape)))
    agree(lambda *x: np.linalg.slogdet(pl.QuasiSeparable(*x))[1], args, rng)


def test_indefinite_ones_go_by_the_dense_form():
    rng = np.random.default_rng(4)
    d, p, q, a = generators(15, 2, False, rng)
    args = (d * np.where(np.arange(15) % 3, 1, -1), p, q, a)
    assert np.linalg.eigvalsh(pl.QuasiSeparable(*args).toarray())[0] < 0
    agree(lambda *x: np.linalg.slogdet(pl.QuasiSeparable(*x))[1], args, rng)
    b = rng.standard_normal(15)
    agree(lambda *x: b @ pl.solve(pl.QuasiSeparable(*x), b), args, rng)


def test_single_precision():
    rng = np.random.default_rng(5)
    wide = generators(30, 2, False, rng)
    args = [x.astype(np.float32) for x in wide]
    f = lambda *x: pl.logdet(pl.QuasiSeparable(*x))  # noqa: E731
    for g, w in zip(pl.grad(f, (0, 1, 2, 3))(*args), pl.grad(f, (0, 1, 2, 3))(*wide), strict=True):
        assert g.dtype == np.float32
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)


def test_elements_that_are_not_read():
    rng = np.random.default_rng(6)
    d, p, q, a = generators(10, 2, True, rng)
    p[0], q[-1], a[0], a[-1] = np.nan, np.inf, np.nan, np.nan
    b = rng.standard_normal(10)

    def f(d, p, q, a):
        K = pl.QuasiSeparable(d, p, q, a)
        return b @ pl.solve(K, b) + pl.logdet(K) + b @ (K @ b)

    found = pl.grad(f, (1, 2, 3))(d, p, q, a)
    for g, at in zip(found, (0, -1, [0, -1]), strict=True):
        assert np.isfinite(g).all() and not g[at].any()


def test_second_derivatives():
    rng = np.random.default_rng(7)
    for full in (False, True):
        args = generators(9, 2, full, rng)
        b = rng.standard_normal(9)
        away = [rng.standard_normal(x.shape) for x in args]

        def f(d, p, q, a):
            K = pl.QuasiSeparable(d, p, q, a)
            return b @ pl.solve(K, b) + pl.logdet(K)

        def along(*x):
            found = pl.gradients(f(*x), list(x))
            return sum(np.sum(g * h) for g, h in zip(found, away, strict=True))

        agree(along, args, rng, 2e-5)


@pytest.mark.no_verify  # whose own plans would be counted
def test_nothing_of_the_size_of_the_matrix():
    rng = np.random.default_rng(8)
    n = 5000
    args = generators(n, 2, False, rng)
    b = rng.standard_normal(n)

    def f(d, p, q, a):
        K = pl.QuasiSeparable(d, p, q, a)
        return b @ pl.solve(K, b) + pl.logdet(K)

    with pl.config(memory_limit=200 * 8 * n), pl.explaining() as record:
        pl.value_and_grad(f, (0, 1, 2, 3))(*args)
    names = {s["name"] for plan in record.plans for s in plan.steps if not s["conditional"]}
    assert "quasi-inverse-own-sums" in names and "todense" not in names
    assert "generator-sums-add" in names and "quasi-inverse" not in names


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("J", [1, 2, 3, 4, 5])
def test_own_generators_are_as_others_of_the_same_numbers(J, full, dtype):
    """The derivatives of log det A go by A's factor, those of trace(inv(A) B) by what is kept of
    the inverse: the same numbers where B is A."""
    rng = np.random.default_rng(J)
    d, p, q, a = generators(40, J, full, rng, dtype)
    other = [x.copy() for x in (p, q, a)]
    own = pl.grad(lambda *x: np.linalg.slogdet(pl.QuasiSeparable(d, *x))[1], (0, 1, 2))(p, q, a)
    held = pl.QuasiSeparable(d, p, q, a)

    def mean(*x):
        return np.real(pl.trace(pl.inv(held) @ pl.QuasiSeparable(d, *x)))

    for g, h in zip(own, pl.grad(mean, (0, 1, 2))(*other), strict=True):
        np.testing.assert_allclose(g, h, rtol=0, atol=1e-13 * np.abs(h).max())
    for x in (own[0][0], own[1][-1], own[2][0], own[2][-1]):  # not read
        assert not x.any()


@pytest.mark.parametrize("by", [1.0, -1.0, 0.5, -2.5])
@pytest.mark.parametrize("other", [1.0, -1.0, 0.3])
def test_sums_of_a_pair_are_added_to_those_of_an_inverse(by, other):
    rng = np.random.default_rng(6)
    args, b = generators(30, 2, True, rng), rng.standard_normal(30)
    quad = lambda *x: b @ pl.solve(pl.QuasiSeparable(*x), b)  # noqa: E731
    log = lambda *x: pl.logdet(pl.QuasiSeparable(*x))  # noqa: E731
    both = pl.grad(lambda *x: by * quad(*x) + other * log(*x), (1, 2, 3))(*args)
    turned = pl.grad(lambda *x: other * log(*x) - (-by) * quad(*x), (1, 2, 3))(*args)
    due = [
        by * g + other * h
        for g, h in zip(*(pl.grad(f, (1, 2, 3))(*args) for f in (quad, log)), strict=True)
    ]
    for g, h, e in zip(both, turned, due, strict=True):
        np.testing.assert_allclose(g, e, rtol=0, atol=1e-13 * np.abs(e).max())
        np.testing.assert_allclose(h, e, rtol=0, atol=1e-13 * np.abs(e).max())


KERNELS = {
    "matern12": {"variance": 1.3, "length_scale": 0.7},
    "matern32": {"variance": 1.3, "length_scale": 0.7},
    "matern52": {"variance": 1.3, "length_scale": 0.7},
    "celerite": {"a": 1.2, "b": 0.1, "c": 0.5, "d": 1.4},
}
CASES = list(KERNELS.items()) + [
    ("oscillator", {"variance": 1.2, "frequency": 1.7, "quality": q})
    for q in (0.2, 0.49, 0.5 - 3e-5, 0.5 - 1e-11, 0.5, 0.5 + 2.4e-5, 0.5 + 2.6e-5, 0.55, 0.7, 3.0)
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("kernel", "given"), CASES)
def test_covariances_of_lazy_parameters(kernel, given, dtype):
    """As of numbers, and their derivatives, on all sides of critical damping."""
    rng = np.random.default_rng(9)
    t = np.sort(rng.random(30) * 10).astype(dtype)
    t[5] = t[6]
    y = rng.standard_normal(30).astype(dtype)
    K = pl.quasiseparable(kernel, t, **given)
    lazily = pl.quasiseparable(kernel, t, **{k: pl.lazy(np.array(v)) for k, v in given.items()})
    tol = 1e-13 if dtype is np.float64 else 1e-6
    np.testing.assert_allclose(np.asarray(lazily), K.toarray(), rtol=0, atol=tol)
    assert lazily.dtype == dtype
    if dtype is np.float32:
        return

    def f(*x):
        A = pl.quasiseparable(kernel, t, **dict(zip(given, x, strict=True))) + 0.3 * pl.Identity(30)
        return y @ pl.solve(A, y) + pl.logdet(A)

    x = np.array(list(given.values()))
    found = pl.grad(f, tuple(range(len(x))))(*x)
    for i, g in enumerate(found):
        unit = np.arange(len(x)) == i
        np.testing.assert_allclose(
            g, slope(lambda v: f(*v), [x], [unit * 1.0]), rtol=1e-6, atol=1e-7
        )


def test_a_sum_of_terms():
    """Of which each has its own part of the inverse."""
    rng = np.random.default_rng(10)
    t, y = np.sort(rng.random(60) * 5), rng.standard_normal(60)

    def f(theta):
        v = np.exp(theta)
        terms = [
            pl.quasiseparable("matern32", t, variance=v[0], length_scale=v[1]),
            pl.quasiseparable("celerite", t, a=v[2], c=v[3], d=2.0),
            2.0 * pl.quasiseparable("matern52", t, length_scale=v[4]),
        ]
        A = functools.reduce(operator.add, terms) + v[5] * pl.Identity(60)
        quad, logdet = pl.inv_quad_logdet(A, y)
        return quad + logdet

    theta = rng.standard_normal(6) * 0.3
    value, g = pl.value_and_grad(f)(theta)
    np.testing.assert_allclose(value, float(f(theta)), rtol=1e-12)
    for i in range(6):
        unit = (np.arange(6) == i) * 1.0
        np.testing.assert_allclose(
            g[i], slope(lambda x: f(x), [theta], [unit]), rtol=1e-6, atol=1e-7
        )


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 100])
@pytest.mark.parametrize("J", [1, 2, 3])
def test_plans_are_sound(n, J):
    """Of values, gradients and second derivatives, each plan checked and each value verified."""
    rng = np.random.default_rng(n + J)
    args = generators(n, J, J > 1, rng)
    b, away = rng.standard_normal(n), [rng.standard_normal(x.shape) for x in args]

    def f(*own):
        K = pl.QuasiSeparable(*own)
        return b @ pl.solve(K, b) + pl.logdet(K)

    with pl.config(check_plans=True, verify=True):
        agree(f, args, rng)
        got = pl.hvp(f, (0, 1, 2, 3))(*args, tuple(away))
    ahead, back = (
        pl.grad(f, (0, 1, 2, 3))(*(x + k * 1e-5 * h for x, h in zip(args, away, strict=True)))
        for k in (1, -1)
    )
    for g, u, v in zip(got, ahead, back, strict=True):
        np.testing.assert_allclose(g, (u - v) / 2e-5, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 127, 128, 129, 300])
@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("moves", [False, True])
def test_matern_rows_of_any_derivative(n, order, moves):
    """As the polynomials say, also far out, of negative numbers, and of what is no number."""
    rng = np.random.default_rng(n)
    x = np.concatenate([rng.random(n) * 3, [0.0, -0.5, 700.0, 1e5, np.nan]])
    J = order + 1
    f = [np.exp(-x) * x**m / math.factorial(m) for m in range(J)]
    for r in range(5):
        due = np.zeros((x.size, J, J))
        for m in range(J):
            terms = [math.comb(r, k) * (-1) ** (r - k) * f[m - k] for k in range(min(r, m) + 1)]
            for j in range(J - m):
                due[:, j, j + m] = np.sum(terms, axis=0)
        due = due.reshape(x.size, J * J) if moves else due[:, 0]
        got = markov_rows(x, order, moves, r)
        assert np.isnan(got[-1]).any()
        np.testing.assert_allclose(got[:-1], due[:-1], rtol=1e-12, atol=1e-14)
        g = rng.standard_normal(got.shape)
        np.testing.assert_allclose(
            markov_sums(x, g, order, moves, r)[:-1],
            np.sum(due * g, axis=1)[:-1],
            rtol=1e-10,
            atol=1e-12,
        )


@pytest.mark.parametrize(
    "layout", ["negative", "swapped", "strided", "misaligned", "F", "readonly"]
)
def test_the_memory_of_parameters_changes_nothing(layout):
    rng = np.random.default_rng(8)
    args = generators(40, 2, True, rng)
    b = rng.standard_normal(40)
    f = pl.value_and_grad(
        lambda *own: pl.logdet(K := pl.QuasiSeparable(*own)) + b @ pl.solve(K, b), (0, 1, 2, 3)
    )
    value, found = f(*(samples.arrange(x, layout) for x in args))
    own_value, own = f(*args)
    assert value == own_value
    for g, h in zip(found, own, strict=True):
        if layout in ("negative", "swapped", "misaligned"):  # copied: A's and what they are by
            np.testing.assert_allclose(g, h, rtol=0, atol=1e-15 * np.abs(h).max())
        else:
            np.testing.assert_array_equal(g, h)


@pytest.mark.parametrize("k", [0, 1, 2, 3, 8, 9])
@pytest.mark.parametrize("full", [False, True])
def test_a_second_call_and_one_array_given_twice_change_no_bit(full, k):
    """The first call reads an array that the function holds twice, later ones once."""
    rng = np.random.default_rng(k)
    args, b = generators(40, 2, full, rng), rng.standard_normal((40, k) if k else 40)
    other = b.copy()

    def f(*x):
        K = pl.QuasiSeparable(*x)
        quad = pl.trace(b.T @ pl.solve(K, b)) if k else b @ pl.solve(K, b)
        return pl.logdet(K) + quad

    def apart(*x):
        K = pl.QuasiSeparable(*x)
        quad = pl.trace(b.T @ pl.solve(K, other)) if k else b @ pl.solve(K, other)
        return pl.logdet(K) + quad

    found = pl.grad(f, (1, 2, 3))(*args)
    for again in (f, f, apart, apart):
        for g, h in zip(pl.grad(again, (1, 2, 3))(*args), found, strict=True):
            np.testing.assert_array_equal(g, h)


@pytest.mark.parametrize("narrow", range(4))
def test_each_parameter_gets_its_own_dtype(narrow):
    rng = np.random.default_rng(9)
    args = generators(40, 2, False, rng)
    mixed = [x.astype("f4") if i == narrow else x for i, x in enumerate(args)]
    f = lambda *own: pl.logdet(pl.QuasiSeparable(*own))  # noqa: E731
    found = pl.grad(f, (0, 1, 2, 3))(*mixed)
    wide = pl.grad(f, (0, 1, 2, 3))(*(x.astype("f8") for x in mixed))
    assert [g.dtype for g in found] == [x.dtype for x in mixed]
    for g, h in zip(found, wide, strict=True):
        np.testing.assert_allclose(g, h, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("n", [1, 3, 40, 130])
@pytest.mark.parametrize("full", [False, True])
def test_narrow_parameters_in_a_value_of_double_precision(n, full, dtype):
    rng = np.random.default_rng(n)
    args = generators(n, 2, full, rng, dtype)
    b = np.ones(n)  # float64

    def f(*own):
        K = pl.QuasiSeparable(*own)
        return np.real(b @ pl.solve(K, b)) + np.linalg.slogdet(K)[1]

    every = tuple(range(4))
    found = pl.grad(f, every)(*args)
    wide = [x.astype("complex128" if x.dtype.kind == "c" else "float64") for x in args]
    for g, h, x in zip(found, pl.grad(f, every)(*wide), args, strict=True):
        assert g.dtype == x.dtype
        np.testing.assert_allclose(g, h, rtol=0, atol=2e-6 * max(1, abs(h).max(initial=0)))
    tangents = tuple(np.ones_like(x) for x in args)
    twice = pl.hvp(f, every)(*args, tangents)
    wide_twice = pl.hvp(f, every)(*wide, tuple(map(np.ones_like, wide)))
    for g, h in zip(twice, wide_twice, strict=True):
        np.testing.assert_allclose(g, h, rtol=0, atol=2e-5 * max(1, abs(h).max(initial=0)))


def test_wrong_parameters_are_named():
    t = np.arange(4.0)
    with pytest.raises(
        ValueError, match=r"length_scale=\.\.\.\): expected one real number.*\(2,\)"
    ):
        pl.quasiseparable("matern12", t, length_scale=pl.lazy(np.ones(2)))
    with pytest.raises(ValueError, match=r"t\[2\] = 0\.5 after t\[1\] = 1\.0"):
        pl.quasiseparable("matern12", [0.0, 1.0, 0.5], length_scale=pl.lazy(np.array(1.0)))
    with pytest.raises(TypeError, match="has the parameters"):
        pl.quasiseparable("matern12", t, length=pl.lazy(np.array(1.0)))
