"""Solves within solves: what both branches of a checked solve need is computed once, before."""

import itertools

import numpy as np
import pytest

import pylinop as pl

N = 6


def good(rng):
    return pl.LowRankUpdate(pl.Diag(6 + rng.random(N)), rng.random((N, 2)), rng.random((N, 2)))


def bad(rng):
    """Regular, of a base that is nearly singular: Woodbury's formula loses all digits, so that the
    fallback branch runs."""
    d, u = 6 + rng.random(N), np.zeros((N, 1))
    d[2], u[2] = 1e-17, 1.0
    return pl.LowRankUpdate(pl.Diag(d), u + 0.1 * rng.random((N, 1)), u)


def singular(rng):
    """Regular, of a sparse base that is singular: the solve with the base fails on the way, within
    a branch, and nothing outside of it may ask for it."""
    import scipy.sparse as sp

    d, u = 6 + rng.random(N), np.zeros((N, 1))
    d[2], u[2] = 0.0, 1.0
    base = pl.Sparse(sp.csr_array(np.diag(d) + np.diag(0.1 * (d[1:] > 6) * (d[:-1] > 6), 1)))
    return pl.LowRankUpdate(base, u + 0.1 * rng.random((N, 1)), u)


def chain(matrices):
    A = pl.inv(matrices[0])
    for M in matrices[1:]:
        A = pl.inv(M) @ A
    return A


def wanted(matrices, x):
    for M in matrices:
        x = np.linalg.solve(M.toarray(), x)
    return x


KINDS = list(itertools.product((good, bad, singular), repeat=3))


@pytest.mark.parametrize("kinds", KINDS, ids=lambda k: "".join(f.__name__[0] for f in k))
def test_each_solve_of_a_chain_may_need_its_fallback(kinds, rng):
    matrices = [make(rng) for make in kinds]
    x = rng.standard_normal(N)
    with pl.config(check_plans=True):
        y = chain(matrices) @ x
    np.testing.assert_allclose(y, wanted(matrices, x), rtol=1e-10)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 9, 14])
def test_plans_grow_with_the_number_of_solves_alone(n, rng):
    matrices = [good(rng) for _ in range(n)]
    x = rng.standard_normal(N)
    one = len(pl.inv(matrices[0]).explain("apply", x).steps)
    A = chain(matrices)
    # plans of more than 256 steps are not fused: two more a solve
    assert len(A.explain("apply", x).steps) <= n * (one + 2)
    with pl.config(check_plans=True):
        np.testing.assert_allclose(A @ x, wanted(matrices, x), rtol=1e-12)


@pytest.mark.parametrize("p", range(1, 10))
def test_powers_of_an_inverse(p, rng):
    A, x = good(rng), rng.standard_normal(N)
    with pl.config(check_plans=True):
        y = (pl.inv(A) ** p) @ x
    np.testing.assert_allclose(y, wanted([A] * p, x), rtol=1e-11)


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=str)
def test_chains_of_several_kinds(order, rng):
    """Toeplitz, quasi-separable and bordered solves are checked too, each in its own way."""
    n = 100
    t = 0.3 ** np.arange(n)
    kinds = [
        pl.LowRankUpdate(pl.Diag(6 + rng.random(n)), rng.random((n, 2)), rng.random((n, 2))),
        pl.Toeplitz(4 * t, np.r_[4, 0.5 * t[1:]]),
        pl.quasiseparable("matern12", np.sort(rng.random(n))) + pl.Diag(1 + rng.random(n)),
        pl.Block([[pl.Diag(5 + rng.random(n - 2)), rng.random((n - 2, 2))],
                  [rng.random((2, n - 2)), 9 * np.eye(2)]]),
    ]  # fmt: skip
    matrices = [kinds[i] for i in order]
    x = rng.standard_normal((n, 3))
    with pl.config(check_plans=True):
        y = chain(matrices) @ x
    np.testing.assert_allclose(y, wanted(matrices, x), rtol=1e-9)


def test_determinants_of_what_holds_solves(rng):
    A, B = good(rng), good(rng)
    S = pl.Diag(np.full(2, 3.0)) - pl.LowRank(
        np.eye(2), (pl.inv(A) @ pl.inv(B) @ np.ones((N, 2)))[:2].T.copy()
    )
    with pl.config(check_plans=True):
        got = pl.slogdet(S)[1]
    assert abs(got - np.linalg.slogdet(S.toarray())[1]) < 1e-12


def test_what_is_kept_in_a_fallback_three_deep_follows_writes(rng):
    """A product of inverses of Kronecker's factors in a fallback, of which one has a try by
    Cholesky: a factor kept there rests on all that it is made of, and on no mask that is set
    wherever it is made."""
    d = rng.standard_normal(20) + 3
    d[0] = 0
    u, v, w = (rng.standard_normal(s) for s in ((20, 3), (20, 3), (120, 2)))
    p = 3 * np.eye(3)
    kron = pl.Kron(pl.Dense(p, "pos"), pl.Dense(3 * np.eye(2), "pos")) + pl.Identity(6)
    A = pl.Kron(pl.Diag(d) + pl.LowRank(u, v), kron) + pl.LowRank(w)
    b = pl.Dense(rng.standard_normal((120, 2)))
    for a in (None, d, u, p, w, v, None):
        if a is not None:
            a *= 1.25
        with pl.config(check_plans=True):
            x = (b.T @ pl.inv(A)).toarray()
        want = np.linalg.solve(A.toarray().T, b.toarray()).T
        np.testing.assert_allclose(x, want, rtol=0, atol=1e-8 * np.abs(want).max())
