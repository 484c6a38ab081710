"""Plans of operators of many operands are found again by what is written anew at each call: the
inverse that `solve` builds, views, multiples."""

import gc
import weakref

import numpy as np
import pytest

import pylinop as pl


def blocks(g, k, rng, kind="d"):
    a = rng.standard_normal((g, k, k)).astype(kind)
    return a @ np.swapaxes(a, 1, 2) / k + np.eye(k, dtype=kind)


def fired():
    """How often rules have been used so far: a plan that is found uses none."""
    return sum(rule["fired"] for rule in pl.rules())


@pytest.mark.parametrize("g", [2, 23, 24, 25, 200])
@pytest.mark.parametrize("kind", "fd")
def test_many_blocks_and_a_thin_term(g, kind):
    rng = np.random.default_rng()
    a, u = blocks(g, 5, rng, kind), rng.standard_normal((5 * g, 2)).astype(kind)
    A = pl.BlockDiag(a) + pl.LowRank(pl.Dense(u))
    near = 1e-3 if kind == "f" else 1e-9
    for cols in (None, 1, 3, None, 3):  # other right sides in between, each with its own plan
        b = rng.standard_normal(5 * g if cols is None else (5 * g, cols)).astype(kind)
        for _ in range(2):
            want = np.linalg.solve(A.toarray().astype("d"), b)
            np.testing.assert_allclose(pl.solve(A, b), want, rtol=near, atol=near)
            np.testing.assert_allclose(pl.inv(A) @ b, want, rtol=near, atol=near)
            np.testing.assert_allclose(A @ want.astype(kind), b, rtol=near, atol=1e2 * near)
        a[0] += np.eye(5, dtype=kind)  # the values of operands may change at any time
    with pl.config(fft=False):  # plans are for options
        np.testing.assert_allclose(pl.solve(A, b), pl.solve(A, b))


def test_many_kinds_of_right_sides():
    """More than an operator keeps."""
    rng = np.random.default_rng()
    A = pl.BlockDiag(*blocks(80, 3, rng))
    D = A.toarray()
    for _ in range(2):
        for k in range(1, 10):
            b = rng.standard_normal((240, k))
            np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(D, b), rtol=1e-9)
            np.testing.assert_allclose(A @ b, D @ b, rtol=1e-9, atol=1e-12)


def test_a_plan_is_made_once():
    rng = np.random.default_rng()
    A = pl.BlockDiag(blocks(300, 4, rng)) + pl.LowRank(pl.Dense(rng.standard_normal((1200, 2))))
    b = rng.standard_normal(1200)
    with pl.config(verify=False):
        start = fired()
        pl.solve(A, b)
        first = fired() - start
        pl.solve(A, b)
        pl.inv(A) @ b
        assert first > 20 and fired() == start + first
        pl.solve(A, rng.standard_normal((1200, 2)))
        assert fired() > start + first


def test_nothing_is_held_by_what_is_kept():
    rng = np.random.default_rng()
    gc.collect()
    gc.disable()
    try:
        a = blocks(80, 3, rng)
        A = pl.BlockDiag(a)
        pl.solve(A, np.ones(240))
        gone = weakref.ref(A)
        del A
        assert gone() is None  # no cycle of an operator and its inverse
    finally:
        gc.enable()


FORMS = [
    lambda A, D, y: (A.T @ y, D.T @ y),
    lambda A, D, y: (A.H @ y, D.conj().T @ y),
    lambda A, D, y: (A.conj() @ y, D.conj() @ y),
    lambda A, D, y: (y @ A.T, y @ D.T),
    lambda A, D, y: ((0.5 * A) @ y, 0.5 * (D @ y)),
    lambda A, D, y: ((0.25 * A) @ y, 0.25 * (D @ y)),
    lambda A, D, y: ((2 * A) @ y, 2 * (D @ y)),
    lambda A, D, y: ((2.0 * A).T @ y, 2 * (D.T @ y)),
    lambda A, D, y: (2.0 * A.H @ y, 2 * (D.conj().T @ y)),
    lambda A, D, y: (((1 + 2j) * A) @ y, (1 + 2j) * (D @ y)),
    lambda A, D, y: ((np.float64(0.5) * A) @ y, 0.5 * (D @ y)),
    lambda A, D, y: (y @ pl.inv(A), np.linalg.solve(D.T, y)),
    lambda A, D, y: (pl.inv(A).H @ y, np.linalg.solve(D.conj().T, y)),
    lambda A, D, y: (pl.inv(A.T) @ y, np.linalg.solve(D.T, y)),
    lambda A, D, y: (pl.solve(2 * A, y), np.linalg.solve(2 * D, y)),
    lambda A, D, y: (pl.solve(0.5 * A.T, y), np.linalg.solve(0.5 * D.T, y)),
    lambda A, D, y: ((0.5 * pl.inv(A)) @ y, 0.5 * np.linalg.solve(D, y)),
    lambda A, D, y: ((0.5 * A)[3, 0], 0.5 * D[3, 0]),
    lambda A, D, y: (A.T[3, 0], D[0, 3]),
    lambda A, D, y: (A.H[3, 1], D[1, 3].conj()),
    lambda A, D, y: ((2 * A).diagonal(), 2 * np.diagonal(D)),
    lambda A, D, y: (pl.trace(0.5 * A.T), 0.5 * np.trace(D)),
    lambda A, D, y: (np.real(pl.logdet(3.0 * A.T)), np.linalg.slogdet(3 * D)[1]),
    lambda A, D, y: ((3.0 * A).H.toarray(), 3 * D.conj().T),
]


@pytest.mark.parametrize("kind", "dD")
@pytest.mark.parametrize("g", [2, 24, 57])
def test_views_inverses_and_multiples(g, kind):
    """In any order; more than an operator keeps."""
    rng = np.random.default_rng()
    a = rng.standard_normal((g, 4, 4)) + 6 * np.eye(4)
    if kind == "D":
        a = a + 1j * rng.standard_normal((g, 4, 4))
    parts = list(a.astype(kind))
    A = pl.BlockDiag(*parts)
    y = rng.standard_normal(4 * g)
    with pl.config(check_plans=True, verify=True):
        for i in rng.permutation(2 * len(FORMS)):
            got, want = FORMS[i % len(FORMS)](A, A.toarray(), y)
            np.testing.assert_allclose(
                got, want, rtol=1e-10, atol=1e-10, err_msg=str(i % len(FORMS))
            )
            parts[i % g] *= 1.25  # values may change at any time


def test_plans_of_what_is_written_anew_are_made_once():
    """What is left at the second call is what closes the operator, one rule a block at most."""
    g = 200
    rng = np.random.default_rng()
    A = pl.BlockDiag(*(rng.standard_normal((g, 4, 4)) + 6 * np.eye(4)))
    y = rng.standard_normal(4 * g)
    asked = [
        lambda c: A.T @ y,
        lambda c: y @ A.T,
        lambda c: (c * A) @ y,
        lambda c: y @ pl.inv(A),
        lambda c: pl.solve(c * A + pl.LowRank(y), y),
    ]
    made = pl._core._store
    with pl.config(verify=False):
        for ask in asked:
            start = fired()
            ask(0.5)
            first, again, plans = fired() - start, fired(), made()["plans_made"]
            ask(0.75)
            assert fired() - again <= g + 2 and 2 * (fired() - again) < first
            assert made()["plans_made"] == plans


@pytest.mark.no_verify("counts plans")
@pytest.mark.parametrize("n", [20, 30, 100, 1000])
def test_sums_chains_and_lists_of_many_arrays_and_numbers(n):
    """Arrays and numbers are others at each call, one of them comes twice."""
    rng = np.random.default_rng()
    made = pl._core._store
    plans = None
    for _ in range(3):
        a = rng.standard_normal((n, 3, 3)) / 2
        c, x = rng.uniform(1.5, 2.5, n), rng.standard_normal(3)
        a[n // 2], twice = a[0], pl.Dense(a[0])
        D = [twice if k in (0, n // 2) else pl.Dense(a[k]) for k in range(n)]
        total, chain = c[0] * D[0], D[0]
        for k in range(1, n):
            total = total + c[k] * D[k]
        for d in D[1:12]:
            chain = chain @ d
        np.testing.assert_allclose(total @ x, np.einsum("k,kij,j", c, a, x), rtol=1e-9, atol=1e-9)
        want = x
        for m in a[11::-1]:
            want = m @ want
        np.testing.assert_allclose(chain @ x, want, rtol=1e-9, atol=1e-9)
        shifted = pl.BlockDiag([d + 9 * pl.Identity(3) for d in D])
        y = rng.standard_normal(3 * n)
        want = np.linalg.solve(a + 9 * np.eye(3), y.reshape(n, 3, 1)).ravel()
        np.testing.assert_allclose(pl.solve(shifted, y), want, rtol=1e-9, atol=1e-9)
        tall = np.vstack([pl.lazy(m) for m in a]) @ x
        np.testing.assert_allclose(tall, (a @ x).ravel(), rtol=1e-9, atol=1e-9)
        assert plans in (None, made()["plans_made"])
        plans = made()["plans_made"]


@pytest.mark.no_verify("counts rules")
def test_blocks_within_blocks_take_steps_in_proportion():
    """A sum of low ranks is one of columns beside columns beside columns."""
    rng = np.random.default_rng(3)
    steps = []
    for n in (50, 100, 2000):
        (u, v), x = rng.standard_normal((2, 6, n)), rng.standard_normal(6)
        S = pl.Diag(np.arange(1.0, 7.0))
        for k in range(n):
            S = S + pl.LowRank(u[:, k : k + 1], v[:, k : k + 1])
        start = fired()
        got = S @ x
        steps.append(fired() - start)
        want = np.arange(1.0, 7.0) * x + u @ (v.T @ x)
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
    assert steps[1] <= 2.2 * steps[0]
