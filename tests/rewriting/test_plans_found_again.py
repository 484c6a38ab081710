"""Large expressions find their plan by structure; what was derived for one plan serves others."""

import numpy as np
import pytest

import pylinop as pl
from pylinop._programs.programs import Pullback, WithGradients, Written

STORE = pl._core._store


def definite(n, seed):
    a = np.random.default_rng(seed).standard_normal((n, n))
    return a @ a.T / n + np.eye(n)


def likelihood(K, y):
    return [y @ pl.solve(K, y), pl.logdet(K)]


def kron(leaves):
    A, B, s, y = leaves
    factors = (pl.Dense(A, "sym"), pl.Dense(B, "sym"))
    return likelihood(pl.Kron(*factors) + s * pl.Identity(y.shape[0]), y)


def blocks(leaves):
    *parts, y = leaves
    return likelihood(pl.BlockDiag([pl.Dense(a, "pos") for a in parts]), y)


CASES = {
    "kron": (kron, [definite(9, 1), definite(8, 2), np.array(0.3), np.arange(72.0)]),
    "blocks": (blocks, [*(definite(5, k) for k in range(20)), np.arange(100.0)]),
}


def ran(program, arrays):
    """The names of the steps that ran."""
    with pl.explaining() as e:
        values = program(arrays)
    return values, [s["name"] for p in e.plans for s in p.steps if s["took"] is not None]


@pytest.mark.parametrize("derived", [WithGradients, Pullback])
@pytest.mark.parametrize("name", CASES)
def test_programs_of_new_arrays_are_not_planned_again(name, derived):
    f, arrays = CASES[name]
    base = Written(f, name, len(arrays))
    by = tuple(range(len(arrays)))
    more = [np.ones(()), np.ones(())] if derived is Pullback else []
    program = Pullback(base, by, 2) if derived is Pullback else WithGradients(base, by)
    program([*arrays, *more])
    made = STORE()["plans_made"]
    for k in range(3):
        program([*(a * (1.1 + k) for a in arrays), *more])
    assert STORE()["plans_made"] == made


def test_factors_of_the_value_serve_the_pullback():
    f, arrays = CASES["kron"]
    base = Written(f, "served", len(arrays))
    pullback = Pullback(base, tuple(range(len(arrays))), 2)
    ones = [np.ones(()), np.ones(())]
    base(arrays)
    pullback([*arrays, *ones])
    fresh = [a * 1.25 for a in arrays]
    _, first = ran(base, fresh)
    found, then = ran(pullback, [*fresh, *ones])
    factors = {"heevd", "potrf"}
    assert factors & set(first) and not factors & set(then)
    alone = pullback([*(a.copy() for a in fresh), *ones])
    assert all(np.array_equal(a, b) for a, b in zip(found, alone, strict=True))


def test_a_matrix_and_its_transpose_have_factors_of_their_own():
    """One is a view of the other in the plan, and what is kept is told apart."""
    A = np.random.default_rng(3).standard_normal((30, 30)) + 6 * np.eye(30)
    b = np.arange(30.0)
    for first in (False, True):
        a = A.copy()
        D = pl.Dense(a)
        for turned in (first, not first):
            given = D.T @ D + D if turned else D
            found = pl.evaluate(pl.solve(given, pl.lazy(b)), pl.solve(D.T, pl.lazy(b)))
            full = a.T @ a + a if turned else a
            assert np.allclose(found[0], np.linalg.solve(full, b))
            assert np.allclose(found[1], np.linalg.solve(a.T, b))
