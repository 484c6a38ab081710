"""Matern kernels of points on a line, and their sums with diagonals: solved by their states, in
O(n), whatever the order of the points; checked against the dense form."""

import warnings

import numpy as np
import pytest

import pylinop as pl

ORDERS = {"matern12": 1, "matern32": 2, "matern52": 3}


def line(r, n, gap=0.3):
    return gap * n * r.random((n, 1))


def steps_of(ask):
    with pl.explaining() as e:
        value = ask()
    return value, [s["name"] for s in e.steps]


def eta(A, x, b):
    norm = np.linalg.norm(A, 2)
    return np.linalg.norm(A @ x - b) / (norm * np.linalg.norm(x) + np.linalg.norm(b))


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("side", [-1, 0, 1])
def test_both_sides_of_the_size_from_which_states_pay(name, side):
    r = np.random.default_rng()
    n = 32 * (ORDERS[name] + 1) + side
    K = pl.Kernel(name, line(r, n), length_scale=0.7, variance=2.0) + 0.3 * pl.Identity(n)
    A, b = K.toarray(), r.standard_normal((n, 3))
    x, steps = steps_of(lambda: pl.solve(K, b))
    assert ("quasi-factor" in steps) == (side >= 0)
    np.testing.assert_allclose(x, np.linalg.solve(A, b), rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(pl.slogdet(K), np.linalg.slogdet(A), rtol=1e-11)
    np.testing.assert_allclose(
        pl.diagonal(pl.inv(K)), np.linalg.inv(A).diagonal(), rtol=1e-10, atol=1e-12
    )


N = 230
ORDERED = {
    "as they come": lambda x: x,
    "sorted": lambda x: np.sort(x, axis=0),
    "the other way": lambda x: np.sort(x, axis=0)[::-1],
    "alike": lambda x: np.round(x),
    "all one": lambda x: 0 * x + 2.0,
    "integers": lambda x: np.round(3 * x).astype(np.int32),
    "far apart": lambda x: 1e6 * x,
    "a column of many": lambda x: np.hstack([x, x, x])[:, 1:2],
}


@pytest.mark.parametrize("order", ORDERED)
@pytest.mark.parametrize("name", ORDERS)
def test_points_in_any_order(name, order):
    r = np.random.default_rng()
    x = ORDERED[order](line(r, N))
    K = pl.Kernel(name, x, length_scale=1.3) + pl.Diag(0.2 + r.random(N))
    A, b = K.toarray(), r.standard_normal(N)
    got, steps = steps_of(lambda: pl.solve(K, b))
    assert "quasi-factor" in steps and not any("potrf" in s for s in steps)
    np.testing.assert_allclose(got, np.linalg.solve(A, b), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(pl.logdet(K), np.linalg.slogdet(A)[1], rtol=1e-10)
    np.testing.assert_allclose(pl.diagonal(pl.inv(K)), np.linalg.inv(A).diagonal(), rtol=1e-9)


SUMS = {
    "K": lambda k, d: k[0] + d,
    "first": lambda k, d: d + k[0],
    "two": lambda k, d: k[0] + (d + k[1]),
    "three and I": lambda k, d: (k[0] + d) + (k[1] + 0.1 * pl.Identity(N)) + k[2],
    "multiples": lambda k, d: 0.5 * k[0] + 3 * k[1] + 2 * d,
    "a multiple of all": lambda k, d: 2 * (k[0] + 0.5 * d),
    "a difference": lambda k, d: k[1] - 0.1 * k[0] + d,
    "its negative": lambda k, d: -(k[0] + d),
    "indefinite": lambda k, d: k[0] - 0.4 * d,
    "transposed": lambda k, d: (k[0] + d).T,
    "conjugated": lambda k, d: (k[1] + d).conj(),
}


@pytest.mark.parametrize("spelt", SUMS)
@pytest.mark.parametrize("kind", "dfz")
def test_sums_and_spellings(spelt, kind):
    r = np.random.default_rng()
    x = line(r, N).astype(np.float32 if kind == "f" else np.float64)
    k = [pl.Kernel(name, x, length_scale=0.5 + i) for i, name in enumerate(ORDERS)]
    d = (1 + r.random(N)).astype(x.dtype)
    K = SUMS[spelt](k, pl.Diag(d))
    A = K.toarray().astype(np.float64)
    b = r.standard_normal((N, 2)).astype(x.dtype)
    if kind == "z":
        b = b + 1j * r.standard_normal((N, 2))
    near = 1e-3 if kind == "f" else 1e-9
    got, steps = steps_of(lambda: pl.solve(K, b))
    assert "quasi-factor" in steps
    assert got.dtype == b.dtype
    want = np.linalg.solve(A, b)
    np.testing.assert_allclose(got, want, rtol=near, atol=near * abs(want).max())
    right = b.T @ pl.inv(K)
    np.testing.assert_allclose(right, want.T, rtol=near, atol=near * abs(want).max())
    sign, log = pl.slogdet(K)
    assert sign == np.linalg.slogdet(A)[0]
    np.testing.assert_allclose(log, np.linalg.slogdet(A)[1], rtol=near)
    R = np.linalg.inv(A).diagonal()
    np.testing.assert_allclose(pl.diagonal(pl.inv(K)), R, rtol=near, atol=near * abs(R).max())


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("noise", [0.0, 1e-14, 1e-10, 1e-5])
def test_nearly_singular(name, noise):
    r = np.random.default_rng()
    x = np.sort(line(r, N, 0.02), axis=0)
    K = pl.Kernel(name, x) + noise * pl.Identity(N)
    A, b = K.toarray(), r.standard_normal(N)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            got = pl.solve(K, b)
        except np.linalg.LinAlgError:
            assert noise <= 1e-14
            return
    plain = np.linalg.solve(A, b)
    assert eta(A, got, b) <= max(10 * eta(A, plain, b), 10 * N * 2**-53)


def test_points_are_values(rng):
    """Of one draw: entries are compared one by one, and one of a fresh draw may be near 0."""
    x, d = np.sort(line(rng, N), axis=0), np.full(N, 0.2)
    K, b = pl.Kernel("matern32", x) + pl.Diag(d), rng.standard_normal(N)
    for change in (lambda: None, lambda: rng.shuffle(x), lambda: d.__setitem__(3, 5.0)):
        change()
        for _ in range(2):
            np.testing.assert_allclose(pl.solve(K, b), np.linalg.solve(K.toarray(), b), rtol=1e-10)
    l = np.array(0.5)
    K = pl.Kernel("matern52", x, length_scale=l) + pl.Diag(d)
    for value in (0.5, 2.0):
        l[...] = value
        np.testing.assert_allclose(pl.solve(K, b), np.linalg.solve(K.toarray(), b), rtol=1e-9)
    l[...] = -1.0
    with pytest.raises(ValueError, match=r"length_scale=\.\.\.\): expected positive numbers"):
        pl.solve(K, b)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_points_that_are_no_numbers(bad):
    r = np.random.default_rng()
    x = line(r, N)
    x[7] = bad
    K = pl.Kernel("matern32", x) + 0.2 * pl.Identity(N)
    assert np.isnan(K.toarray()).any()
    assert np.isnan(pl.solve(K, np.ones(N))).all()
    assert np.isnan(pl.logdet(K))
    assert np.isnan(pl.diagonal(pl.inv(K))).any()


def others(r):
    x = line(r, N)
    plane, batch = r.random((N, 2)), r.random((2, N, 1))
    return {
        "in a plane": pl.Kernel("matern32", plane) + 0.1 * pl.Identity(N),
        "a batch": pl.Kernel("matern32", batch) + 0.1 * pl.Identity(N),
        "a batch of scales": pl.Kernel("matern32", x, length_scale=np.ones((2, 1)))
        + 0.1 * pl.Identity(N),
        "other columns": pl.Kernel("matern12", x, x + 1e-3) + 3 * pl.Identity(N),
        "another function": pl.Kernel("rbf", x) + 0.1 * pl.Identity(N),
        "a product": pl.multiply(pl.Kernel("matern12", x), pl.Kernel("rbf", x))
        + 0.1 * pl.Identity(N),
        "complex": pl.Kernel("matern12", x) + 1j * pl.Identity(N),
    }


@pytest.mark.parametrize("which", others(np.random.default_rng(0)))
def test_what_has_no_states_takes_the_way_it_took(which):
    r = np.random.default_rng()
    K = others(r)[which]
    b = r.standard_normal((N, 2))
    got, steps = steps_of(lambda: pl.solve(K, b))
    assert "quasi-factor" not in steps
    np.testing.assert_allclose(got, np.linalg.solve(K.toarray(), b), rtol=1e-8, atol=1e-8)


def test_all_that_a_likelihood_asks_shares_one_factor():
    r = np.random.default_rng()
    n = 4000
    K, y = pl.Kernel("matern32", line(r, n)) + 0.1 * pl.Identity(n), r.standard_normal(n)
    s = pl.lazy(y)
    asked, steps = steps_of(
        lambda: pl.evaluate(
            s @ pl.solve(K, s), pl.logdet(pl.lazy(K)), pl.diagonal(pl.inv(pl.lazy(K)))
        )
    )
    assert steps.count("quasi-factor") == 1
    assert not any("potrf" in name or "kernel-dense" in name for name in steps)
    np.testing.assert_allclose(float(asked[0]), y @ pl.solve(K, y), rtol=1e-10)
    np.testing.assert_allclose(float(asked[1]), pl.logdet(K), rtol=1e-12)
    np.testing.assert_allclose(pl.inv_quad_logdet(K, y), asked[:2], rtol=1e-10)


def test_no_matrix_is_formed():
    r = np.random.default_rng()
    n = 200_000
    K, y = pl.Kernel("matern52", line(r, n)) + 0.1 * pl.Identity(n), r.standard_normal(n)
    with pl.config(memory_limit=2**28):
        x = pl.solve(K, y)
        at = r.integers(0, n, 20)
        points = K.args[0]._given("x")
        some = pl.Kernel("matern52", points[at], points) @ x + 0.1 * x[at]
        np.testing.assert_allclose(some, y[at], rtol=1e-9, atol=1e-9)
        assert np.isfinite(pl.logdet(K)) and (pl.diagonal(pl.inv(K)) > 0).all()


def test_predictive_variance():
    r = np.random.default_rng()
    x, xs = line(r, 700), line(r, 5)
    A, Ks = pl.Kernel("matern32", x) + 0.1 * pl.Identity(700), pl.Kernel("matern32", xs, x)
    got, steps = steps_of(lambda: pl.diagonal(Ks @ pl.inv(A) @ Ks.T))
    want = np.einsum("ij,ji->i", Ks.toarray(), np.linalg.solve(A.toarray(), Ks.toarray().T))
    np.testing.assert_allclose(got, want, rtol=1e-10)
    assert not any("potrf" in s for s in steps)


def test_sums_of_kernels_of_points_that_differ():
    r = np.random.default_rng()
    x = line(r, N)
    z = x.copy()  # the same points until they are overwritten
    K = pl.Kernel("matern12", x) + pl.Kernel("matern32", z, length_scale=3.0) + pl.Identity(N)
    b = r.standard_normal((N, 2))
    with pl.config(check_plans=True):
        for change in (0.0, 1.0, 0.0):
            z[N // 2] = x[N // 2] + change
            A = K.toarray()
            np.testing.assert_allclose(pl.solve(K, b), np.linalg.solve(A, b), rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(pl.logdet(K), np.linalg.slogdet(A)[1], rtol=1e-11)
            np.testing.assert_allclose(
                pl.diagonal(pl.inv(K)), np.linalg.inv(A).diagonal(), rtol=1e-9
            )
