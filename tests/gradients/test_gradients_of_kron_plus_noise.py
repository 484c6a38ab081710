"""Likelihoods with Kron + c I by eigenvectors: value and gradient make no matrix of the size of the
sum."""

import math
import re

import numpy as np
import pytest
from gradients.differences import check, check_second

import pylinop as pl

RNG = np.random.default_rng(22)


def definite(n, dtype="float64"):
    a = RNG.standard_normal((n, n)).astype(dtype)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * RNG.standard_normal((n, n))
    return a @ a.conj().T / n + np.eye(n)


def likelihood(y, left=None):
    """Of the factors and the noise; `left`: what stands around the Kron."""

    def f(*given):
        *factors, s = given
        K = pl.Kron(*(0.5 * (a + np.conj(a).T) for a in factors))
        S = (K if left is None else left(K)) + s * pl.Identity(len(y))
        return np.real(np.vdot(y, pl.solve(S, y))) + pl.slogdet(S)[1]

    return f


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(
    "sizes",
    [(2, 3), (6, 6), (13, 3), (3, 13), (5, 8), (6, 7), (12, 11), (1, 41), (41, 1), (2, 5, 6)],
)
def test_gradients_on_both_sides_of_the_threshold(sizes, dtype):
    y = RNG.standard_normal(int(np.prod(sizes))).astype(dtype)
    check(likelihood(y), *(definite(n, dtype) for n in sizes), np.array(0.7))


@pytest.mark.parametrize("left", [lambda K: K.T, lambda K: 2.5 * K, lambda K: -0.1 * K])
def test_views_and_multiples(left):
    y = RNG.standard_normal(63)
    check(likelihood(y, left), definite(9), definite(7), np.array(3.0))


def test_kronecker_sums_and_factors_that_are_not_hermitian():
    y, a, b = RNG.standard_normal(63), definite(9), definite(7)

    def summed(a, b, s):
        S = pl.KronSum(0.5 * (a + a.T), 0.5 * (b + b.T)) + s * pl.Identity(63)
        return y @ pl.solve(S, y) + pl.logdet(S)

    def general(a, b, s):
        S = pl.Kron(a, b) + s * pl.Identity(63)
        return y @ pl.solve(S, y) + pl.slogdet(S)[1]

    check(summed, a, b, np.array(0.3))
    check(general, a + np.triu(np.ones((9, 9))), b, np.array(0.3))


def test_a_sum_that_loses_its_digits_goes_the_safe_way():
    """The eigenvalues cancel beside the noise: the dense form serves."""
    q = np.linalg.qr(RNG.standard_normal((8, 8)))[0]
    a = (q * np.r_[1e9, np.linspace(1, 2, 7)]) @ q.T
    check(likelihood(RNG.standard_normal(56)), a, definite(7), np.array(1.0), rtol=1e-5)


def test_second_derivatives():
    check_second(likelihood(RNG.standard_normal(42)), definite(6), definite(7), np.array(0.6))


@pytest.mark.no_verify  # whose own plans would be counted
def test_no_matrix_of_the_size_of_the_sum_is_made():
    sizes = 60, 50
    n = 3000
    x = [np.linspace(0, 1, m) for m in sizes]
    y = RNG.standard_normal(n)

    def f(l1, l2, s):
        a, b = (np.exp(-((t[:, None] - t) ** 2) / el) for t, el in zip(x, (l1, l2), strict=True))
        S = pl.Kron(a, b) + s * pl.Identity(n)
        return 0.5 * y @ pl.solve(S, y) + 0.5 * pl.logdet(S)

    with pl.explaining() as e:
        pl.value_and_grad(f, (0, 1, 2))(0.1, 0.2, 0.3)
    steps = [s for p in e.plans for s in p.steps if s["took"] is not None]
    assert steps
    written = [re.search(r"\(([\d, ]+)\)", s["writes"]) for s in steps]
    assert max(math.prod(map(int, re.findall(r"\d+", m[1]))) for m in written if m) < n * 100


@pytest.mark.parametrize("kind", ["Kron", "KronSum"])
@pytest.mark.parametrize("sizes", [(1, 50), (2, 25), (15, 17), (16, 3), (3, 4, 5), (2, 1, 3, 9)])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_second_derivatives_by_factors_and_noise(kind, sizes, dtype):
    """By the factors and the noise together."""
    y = RNG.standard_normal(int(np.prod(sizes)))

    def f(*given):
        *factors, s = given
        S = getattr(pl, kind)(*(0.5 * (a + np.conj(a).T) for a in factors))
        return np.real(sum(pl.inv_quad_logdet(S + s * pl.Identity(len(y)), y)))

    with pl.config(check_plans=True):
        check_second(f, *(definite(n, dtype) for n in sizes), np.array(0.7))


def test_second_derivatives_make_no_matrix_of_the_size_of_the_sum():
    m = 40
    A, B = (RNG.standard_normal((m, 1)) for _ in range(2))
    y = RNG.standard_normal(m * m)

    def f(p):
        K = pl.Kron(
            pl.Kernel("matern52", A, variance=p[0], length_scale=p[1]),
            pl.Kernel("rbf", B, length_scale=p[2]),
        )
        return sum(pl.inv_quad_logdet(K + p[3] * pl.Identity(m * m), y))

    with pl.config(memory_limit=m**4):  # bytes: a dense form takes 8 times as many
        check_second(f, np.array([1.2, 0.9, 0.7, 0.3]))


def two_krons(y):
    """Of a model of several tasks, each with a noise of its own: A (x) K + D (x) M."""

    def f(a, k, d, m):
        half = lambda x: 0.5 * (x + np.conj(x).T)
        S = pl.Kron(half(a), half(k)) + pl.Kron(pl.Diag(d) if d.ndim == 1 else half(d), half(m))
        return np.real(np.vdot(y, pl.solve(S, y))) + pl.slogdet(S)[1]

    return f


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("sizes", [(2, 3), (3, 13), (13, 3), (6, 6), (6, 7), (12, 11), (3, 60)])
@pytest.mark.parametrize("noise", ["of tasks", "of both", "nearly singular", "indefinite"])
def test_sums_of_two_krons(noise, sizes, dtype):
    """Eigenvectors of pencils are no unitary basis: checked, where the metric is near singular or
    none, by the dense form."""
    m, n = sizes
    y = RNG.standard_normal(m * n).astype(dtype)
    d = RNG.uniform(0.2, 2, m) if noise == "of tasks" else definite(m, dtype)
    metric = np.eye(n) if noise == "of tasks" else definite(n, dtype)
    if noise == "nearly singular":
        w, q = np.linalg.eigh(metric)
        w[0] = 1e-7
        metric = (q * w) @ q.conj().T
    if noise == "indefinite":
        d = d - 1.3 * np.eye(m)
    check(two_krons(y), definite(m, dtype), definite(n, dtype), d, metric, rtol=1e-7)


def test_sums_of_two_krons_make_no_matrix_of_their_size():
    m, n = 4, 150
    y, d = RNG.standard_normal(m * n), RNG.uniform(0.2, 2, m)
    with pl.explaining() as record:
        pl.grad(two_krons(y), (0, 1, 2))(definite(m), definite(n), d, np.eye(n))
    for plan in record.plans:
        for step in plan.steps:
            shape = re.findall(r"\d+", step["writes"].partition("(")[2]) if step["took"] else []
            assert math.prod(map(int, shape)) < (m * n) ** 2 / 4, step
