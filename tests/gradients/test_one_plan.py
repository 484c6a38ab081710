"""Value and gradient are one plan: every factor is made once, kernels are passed over once."""

from collections import Counter

import numpy as np
import pytest

import pylinop as pl

RNG = np.random.default_rng(9)
N = 400
X, Y = RNG.standard_normal((N, 2)), RNG.standard_normal(N)


def likelihood(K):
    quad, log = pl.inv_quad_logdet(K, Y)
    return 0.5 * (quad + log)


def steps(f, *args):
    """How often each step of the plans of value and gradient is run, but fallbacks."""
    made = pl.value_and_grad(f, tuple(range(len(args))))
    with pl.explaining() as record:
        made(*args)
    run = [s for plan in record.plans for s in plan.steps if not s["conditional"]]
    return len(record.plans), Counter(s["name"] for s in run)


@pytest.mark.no_verify  # whose own plans would be counted
def test_a_gaussian_process():
    def nll(theta):
        v, length, s = theta[0], theta[1], theta[2]
        K = pl.Kernel("rbf", X, variance=v, length_scale=length)
        return likelihood(K + s * pl.Identity(N))

    plans, count = steps(nll, np.array([1.2, 0.9, 0.3]))
    assert plans == 1
    for name in ("potrf", "potri", "kernel-dense", "kernel-number-sums"):
        assert count[name] == 1, count


@pytest.mark.no_verify
def test_a_matrix_of_parameters():
    a = RNG.standard_normal((N, N))
    plans, count = steps(lambda a: likelihood(a @ a.T + 3 * pl.Identity(N)), a)
    assert plans == 1
    assert count["potrf"] == 1, count


@pytest.mark.no_verify
def test_a_sum_of_markov_processes():
    """Parts of one inverse, of which elements are taken out of arrays of two dimensions."""
    t = np.sort(RNG.random(N)) * 9

    def nll(theta):
        K = pl.quasiseparable("matern32", t, length_scale=theta[0])
        K = K + pl.quasiseparable("matern12", t, variance=theta[1], length_scale=theta[2])
        return likelihood(K + 0.1 * pl.Identity(N))

    plans, count = steps(nll, np.array([1.2, 0.9, 0.3]))
    assert plans == 1
    assert count["quasi-inverse-generator-sums"] == 2, count


@pytest.mark.no_verify
def test_low_rank_and_diagonal_make_no_square():
    n = 3000
    U, d, b = RNG.standard_normal((n, 3)), RNG.random(n) + 1, RNG.standard_normal(n)

    def nll(d, U):
        quad, log = pl.inv_quad_logdet(pl.Diag(d) + pl.LowRank(U), b)
        return quad + log

    f = pl.value_and_grad(nll, (0, 1))
    with pl.explaining() as record:
        f(d, U)
    assert len(record.plans) == 1
    run = [s for p in record.plans for s in p.steps if not s["conditional"]]
    assert not [s for s in run if f"({n}, {n})" in s["writes"]]


@pytest.mark.no_verify
def test_a_multiple_of_the_identity_by_a_lazy_number_keeps_its_structure():
    s = pl.lazy(np.array(0.5))
    for K in (s * pl.Identity(N), pl.Identity(N) * s):
        assert K._head == "scale"
        assert np.allclose(pl.solve(K, Y), 2 * Y)


def test_last_columns_of_symmetric_toeplitz_inverses_are_the_first_ones_reversed(rng):
    """Gohberg and Semencul's two columns of the inverse: one solve where T is symmetric."""
    n = 300
    c = np.exp(-np.arange(n) / 3.0) + 0.1 / (1 + np.arange(n))
    c[0] += 0.5
    r = np.r_[c[0], 0.9 * c[1:]]

    def solves(*given):
        leaves = [pl.lazy(x) for x in given]
        found = pl.gradients(pl.logdet(pl.Toeplitz(*leaves)), leaves)
        steps = pl.explain(found[0]).steps
        T = pl.Toeplitz(*given).toarray()
        inverse = np.linalg.inv(T)
        due = [np.trace(inverse, k) for k in range(1, n)]
        if len(given) == 1:
            due = [x + np.trace(inverse, -k) for k, x in enumerate(due, 1)]
        np.testing.assert_allclose(found[0].toarray()[1:], due, rtol=1e-9, atol=1e-9)
        names = Counter(s["name"] for s in steps if not s["conditional"])
        return names["toeplitz-solve"] / names["toeplitz_inverse_sums"]

    assert solves(c) == 2 and solves(c, r) == 3  # one is of a probe
