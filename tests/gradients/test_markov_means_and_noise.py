"""Likelihoods of Markov processes whose mean, data or noise of each point depends on parameters:
values, gradients and second derivatives as by dense forms; gradients without n x n arrays."""

import numpy as np
import pytest

import pylinop as pl

NAMES = {"matern12": 0, "matern32": 1, "matern52": 2}


def dense_kernel(name, x, variance, length):
    r = np.sqrt(2 * NAMES[name] + 1) * np.abs(x[:, None] - x[None]) / length
    return variance * [1, 1 + r, 1 + r + r * r / 3][NAMES[name]] * np.exp(-r)


def kernel(name, x, p):
    return pl.Kernel(name, x[:, None], variance=p["v"], length_scale=p["l"])


def usual(K, r):
    return r @ pl.inv(K) @ r + pl.logdet(K)


def by_hand(K, r):
    return r @ np.linalg.solve(K, r) + np.linalg.slogdet(K)[1]


class Data:
    def __init__(self, name, n, rng, order):
        self.name, self.n = name, n
        x = np.sort(rng.uniform(0, n / 8, n))
        self.x = {"sorted": x, "reversed": x[::-1].copy(), "mixed": rng.permutation(x)}[order]
        self.X = np.c_[np.ones(n), self.x / n]
        self.y = rng.standard_normal(n)

    def parts(self, p):
        """K without noise, the residual, exp(h), sum and identity, lazily or dense."""
        if any(type(v) is not np.ndarray for v in p.values()):
            own = kernel(self.name, self.x, p), pl.Diag, pl.Identity(self.n), usual
            return (*own, self.y - self.X @ p["b"], np.exp(p["h"]))
        own = dense_kernel(self.name, self.x, p["v"], p["l"]), np.diag, np.eye(self.n), by_hand
        return (*own, self.y - self.X @ p["b"], np.exp(p["h"]))


def mean(d, p):
    K, _, eye, f, r, _ = d.parts(p)
    return f(K + p["s"] * eye, r)


def noise(d, p):
    K, diag, _, f, _, w = d.parts(p)
    return f(K + diag(w), d.y)


def both(d, p):
    K, diag, eye, f, r, w = d.parts(p)
    return f(K + diag(w) + p["s"] * eye, r)


def scaled_noise(d, p):
    K, diag, _, f, r, w = d.parts(p)
    return f(1.5 * K + p["s"] * diag(w), r)


def data(d, p):
    K, _, eye, f, _, _ = d.parts(p)
    return f(K + p["s"] * eye, p["h"])


def one_array_twice(d, p):
    K, diag, _, f, _, w = d.parts(p)
    return f(K + diag(w), w)


def number_of_the_array(d, p):
    K, diag, eye, f, _, w = d.parts(p)
    return f(K + diag(w) + p["s"] * np.mean(w) * eye, w - d.y)


def two_residuals(d, p):
    K, _, eye, f, r, w = d.parts(p)
    K = K + p["s"] * eye
    return f(K, r) * f(K, w) + f(K, d.y)


def beside_another_use(d, p):
    K, diag, _, f, r, w = d.parts(p)
    K = K + diag(w)
    if f is by_hand:
        return f(K, r) + np.linalg.slogdet(d.X.T @ np.linalg.solve(K, d.X))[1]
    X = pl.lazy(d.X)
    return f(K, r) + pl.logdet(X.T @ pl.inv(K) @ X)


def two_kernels(d, p):
    K, _, eye, f, r, _ = d.parts(p)
    other = "matern12" if d.name != "matern12" else "matern32"
    q = {"v": 0.5 * p["s"], "l": 2.0 * p["l"]}
    if f is by_hand:
        return f(K + 2 * dense_kernel(other, d.x, q["v"], q["l"]) + 0.4 * eye, r)
    return f(K + 2 * kernel(other, d.x, q) + 0.4 * eye, r)


def beside_a_low_rank(d, p):
    K, diag, _, f, r, w = d.parts(p)
    if f is by_hand:
        return f(K + diag(w) + p["s"] * d.X @ d.X.T, r)
    return f(K + diag(w) + p["s"] * pl.LowRank(d.X), r)


def beside_a_product(d, p):
    K, diag, _, f, r, w = d.parts(p)
    if f is by_hand:
        U = d.X * p["b"]
        return f(K + diag(w) + U @ U.T, r)
    U = pl.lazy(d.X) * p["b"]
    return f(K + diag(w) + U @ U.T, r)


def left_out(d, p):
    """The errors of points that are left out, and the trace of the inverse."""
    K, diag, eye, f, r, w = d.parts(p)
    K = K + diag(w) + p["s"] * eye
    if f is by_hand:
        W = np.linalg.inv(K)
        return np.sum((W @ r / np.diag(W)) ** 2) + np.trace(W)
    W = pl.inv(K)
    return np.sum((W @ r / pl.diagonal(W)) ** 2) + pl.trace(W)


def from_both_sides(d, p):
    K, _, eye, f, r, w = d.parts(p)
    K = 1.2 * K + p["s"] * eye
    if f is by_hand:
        W = np.linalg.inv(K)
        M = d.X.T @ W @ d.X
        return r @ W @ w + np.linalg.slogdet(M)[1] + np.sum((d.X.T @ W) ** 2) + r @ W @ W @ w
    W, X = pl.inv(K), pl.lazy(d.X)
    M = (X.T @ W) @ X
    return r @ W @ w + pl.logdet(M) + np.sum((X.T @ W) ** 2) + (r @ W) @ (W @ w)


def signs_and_logarithms(d, p):
    K, diag, _, f, r, w = d.parts(p)
    K = K + diag(w)
    if f is by_hand:
        return np.prod(np.linalg.slogdet(K)) + r @ np.linalg.inv(K)[:, 3] * 0
    sign, log = pl.slogdet(K)
    return sign * log + 0 * (r @ (pl.inv(K) @ np.eye(d.n)[3]))


MODELS = [
    mean, noise, both, scaled_noise, data, one_array_twice, number_of_the_array, two_residuals,
    beside_another_use, two_kernels, beside_a_low_rank, beside_a_product, left_out,
    from_both_sides, signs_and_logarithms,
]  # fmt: skip


def parameters(n, rng):
    return {
        "v": np.array(1.1),
        "l": np.array(1.3),
        "s": np.array(0.3),
        "b": rng.standard_normal(2),
        "h": 0.2 * rng.standard_normal(n),
    }


def slope(f, p, t, h):
    def at(s):
        return f({k: p[k] + s * h * t[k] for k in p})

    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "name, n, order",
    [
        ("matern12", 257, "sorted"),
        ("matern32", 256, "mixed"),
        ("matern52", 260, "reversed"),
        ("matern32", 255, "sorted"),
        ("matern52", 40, "mixed"),
    ],
)
def test_values_and_derivatives(model, name, n, order):
    rng = np.random.default_rng([n, MODELS.index(model)])
    d, p = Data(name, n, rng, order), parameters(n, rng)
    t = {k: rng.standard_normal(w.shape) for k, w in p.items()}

    def f(p):
        return model(d, p)

    value, g = pl.value_and_grad(f)(p)
    np.testing.assert_allclose(value, f(p), rtol=1e-11)
    size = sum(np.abs(g[k] * t[k]).sum() for k in p)
    assert abs(sum(np.sum(g[k] * t[k]) for k in p) - slope(f, p, t, 1e-3)) <= 1e-8 * size
    used = {k: p[k] for k in p if np.any(g[k])}
    rest = {k: p[k] for k in p if k not in used}
    along = {k: t[k] for k in used}
    second = pl.hvp(lambda q: f({**rest, **q}))(used, along)

    def gradient(k):
        return lambda q: pl.grad(lambda q: f({**rest, **q}))(q)[k]

    for k in used:
        expected = slope(gradient(k), used, along, 3e-4)
        np.testing.assert_allclose(
            second[k], expected, rtol=0, atol=2e-7 * max(1.0, np.abs(expected).max())
        )


@pytest.mark.no_verify  # which goes by the expression as it is
@pytest.mark.parametrize("model", MODELS[:-1])
def test_gradients_make_no_whole_matrix(model):
    n = 400
    rng = np.random.default_rng(7)
    d, p = Data("matern32", n, rng, "sorted"), parameters(n, rng)
    with pl.explaining() as e:
        pl.grad(lambda p: model(d, p))(p)
    assert not [s["name"] for s in e.steps if f"{n}, {n}" in s["writes"] and s.get("took")]


def test_points_may_change_their_order_between_calls():
    rng = np.random.default_rng(9)
    n = 300
    d, p = Data("matern32", n, rng, "sorted"), parameters(n, rng)
    g = pl.grad(lambda p: both(d, p))
    before = g(p)
    order = rng.permutation(n)
    d.x[:], d.y[:], d.X[:] = d.x[order], d.y[order], d.X[order]
    after = g({**p, "h": p["h"][order]})
    for k in ("v", "l", "s", "b"):
        np.testing.assert_allclose(after[k], before[k], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(after["h"], before["h"][order], rtol=1e-8, atol=1e-8)


@pytest.mark.no_verify
def test_parts_that_are_in_another_form_are_said():
    """A further derivative by what stood within: an error, never a zero."""
    rng = np.random.default_rng(11)
    n = 300
    x = np.sort(rng.uniform(0, 30, n))[:, None]
    y = rng.standard_normal(n)
    v, h = pl.lazy(np.array(1.2)), pl.lazy(0.1 * rng.standard_normal(n))
    K = pl.Kernel("matern32", x, variance=v) + pl.Kernel("matern12", x, variance=0.3)
    D = pl.Diag(np.exp(h))
    value = y @ pl.inv(K + D) @ y
    (first,) = pl.gradients(value, [v])
    (second,) = pl.gradients(first, [v])
    t = 1e-4
    ends = [
        float(pl.grad(lambda v: y @ pl.inv(
            pl.Kernel("matern32", x, variance=v) + pl.Kernel("matern12", x, variance=0.3) + D
        ) @ y)(np.array(1.2 + s))) for s in (t, -t)
    ]  # fmt: skip
    np.testing.assert_allclose(second, (ends[0] - ends[1]) / (2 * t), rtol=1e-5)
    with pytest.raises(NotImplementedError, match="in another form"):
        pl.gradients(first, [D])


def small(n=300):
    rng = np.random.default_rng(13)
    X, (y, c) = rng.uniform(0, 10, (n, 1)), rng.standard_normal((2, n))
    return X, y, c, rng.standard_normal((2, n, 2)), np.array([0.7, 1.3])


def covariance(X, t):
    return pl.Kernel("matern32", X, variance=t[0], length_scale=t[1]) + pl.Identity(len(X))


@pytest.mark.parametrize(
    "low",
    [
        lambda U, V: pl.LowRank(U, V),
        lambda U, V: pl.LowRank(U, C=[[1.0, 2.0], [0.5, 1.0]]),
        lambda U, V: pl.lazy(U) @ pl.lazy(V).T,
        lambda U, V: pl.lazy(U) @ pl.lazy(U).T,
    ],
)
def test_low_ranks_that_are_not_symmetric(low):
    X, y, c, (U, V), t = small()
    for f in (
        lambda A: y @ (pl.inv(A).T @ c),
        lambda A: (y @ pl.inv(A)) @ c,
        lambda A: y @ pl.inv(A.T) @ c,
        lambda A: np.sum((V.T @ pl.inv(A)) @ U),
    ):

        def at(t, f=f):
            return f(covariance(X, t) + low(U, V))

        value, g = pl.value_and_grad(at)(t)
        np.testing.assert_allclose(value, float(at(pl.lazy(t))), rtol=1e-9)
        h = np.array([1e-5, 0])
        slope = (float(at(pl.lazy(t + h))) - float(at(pl.lazy(t - h)))) / 2e-5
        np.testing.assert_allclose(g[0], slope, rtol=1e-5)


def test_arrays_of_one_memory():
    X, y, c, _, t = small()
    W = np.linalg.inv(np.asarray((covariance(X, t)).toarray()))
    first, second, T = pl.lazy(y), pl.lazy(y), pl.lazy(t)
    A = covariance(X, T)
    value = second @ (pl.inv(A) @ first) + 3 * (second @ pl.inv(A) @ second)
    g = pl.evaluate(*pl.gradients(value, (T, first, second)))
    np.testing.assert_allclose(g[1], W @ y, rtol=1e-9)
    np.testing.assert_allclose(g[2], 7 * W @ y, rtol=1e-9)
    both = pl.grad(lambda t, q: y @ (pl.inv(covariance(X, t)) @ q), argnums=(0, 1))(t, y)
    np.testing.assert_allclose(both[1], W @ y, rtol=1e-9)


def test_points_of_one_of_two_kernels():
    X, y, c, _, t = small()

    def f(t, x):
        return pl.logdet(covariance(X, t) + pl.Kernel("matern52", x, length_scale=t[1]))

    apart, one = (pl.grad(f, argnums=(0, 1))(t, x) for x in (X.copy(), X))
    for a, b in zip(apart, one, strict=True):
        assert np.abs(a).max() > 0.01
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_lengths_that_are_none():
    X, y, c, (U, V), t = small()
    functions = (
        lambda t: y @ (pl.inv(covariance(X, t)) @ c),
        lambda t: y @ (pl.inv(covariance(X, t)) @ y),
        lambda t: pl.logdet(covariance(X, t) + pl.LowRank(U)),
    )
    for f in functions:
        for bad in (-1.3, 0.0):
            with np.errstate(all="ignore"), pytest.raises(ValueError, match="positive"):
                pl.value_and_grad(f)(np.array([0.7, bad]))
        for parts in (pl.value_and_grad(f)(np.array([0.7, np.nan])),):
            assert np.isnan(parts[0]) and np.isnan(parts[1]).all()
    X[3] = np.inf
    for f in functions:
        assert np.isnan(pl.value_and_grad(f)(t)[0])
    K = pl.Kernel("matern32", np.sort(c)[:, None], length_scale=np.nan) + pl.Identity(len(c))
    assert np.isnan(K.solve(y)).all() and np.isnan(pl.logdet(K))  # where it was that of v I


@pytest.mark.no_verify
def test_a_part_that_stands_elsewhere_too():
    X, y, c, (U, V), t = small()
    T = pl.lazy(t)
    K = pl.Kernel("matern32", X, variance=T[0], length_scale=T[1])
    value = (y @ (K @ y)) ** 2 + pl.logdet(K + pl.Identity(len(X)) + pl.LowRank(U))
    (first,) = pl.gradients(value, [T])
    with pytest.raises(NotImplementedError, match="in another form"):
        pl.gradients(first, [K])
