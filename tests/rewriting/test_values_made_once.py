"""Values of one key are made once a run: what they cost, what runs for them, what is told of them.
Small, and all told by counts: faults of tests/mutants/engine.txt that make a value twice give right
answers too."""

import re

import numpy as np
import pytest
from composites import CASES, Make

import pylinop as pl
from pylinop import _core

DENSE, DIAGONAL, TRACE, DET = 0, 1, 2, 4


def asked(a, uses):
    n, rng = a.shape[-1], np.random.default_rng(2)
    b, c = (pl.Dense(rng.standard_normal((n, k))) for k in (1, 5))
    inverse = pl.inv(a)
    every = {
        "det": (a, DET, 0, 0),
        "solution": (inverse @ b, DENSE, 0, 0),
        "diagonal": (inverse, DIAGONAL, 0, 0),
        "trace": (inverse, TRACE, 0, 0),
        "columns": (inverse @ c, DENSE, 0, 0),
    }
    return [every[use] for use in uses.split()]


def run(ask):
    """The plan of the whole, and how many values were found and made."""
    before = _core._store()
    with pl.explaining() as e:
        _core._results(ask)
    after = _core._store()
    return e.plans[-1], after["hits"] - before["hits"], after["misses"] - before["misses"]


def ran(plan):
    return [s for s in plan.steps if s["took"] is not None]


@pytest.mark.parametrize("uses", ["det solution", "det solution diagonal", "det solution columns"])
@pytest.mark.parametrize("case", ["Dense", "Sparse", "Circulant", "Kron", "own Kron + c I"])
def test_a_plan_costs_what_its_steps_cost(case, uses):
    """A value that is made before is not counted again, one that is made first is."""
    _core._clear_store()
    plan, _, _ = run(asked(CASES[case](Make("float64")), uses))
    assert plan.flops == pytest.approx(sum(s["flops"] for s in ran(plan)), rel=1e-12)


def test_none_of_many_values_is_taken_for_another(rng):
    """Of thirty keys some fall in one place of the table."""
    _core._clear_store()
    sides = pl.Dense(rng.standard_normal((5, 2)))
    inverses = [pl.inv(pl.Dense(rng.standard_normal((5, 5)) + 9 * np.eye(5))) for _ in range(30)]
    plan, _, made = run([(inverse @ sides, DENSE, 0, 0) for inverse in inverses])
    assert made == 30
    assert plan.flops == pytest.approx(sum(s["flops"] for s in ran(plan)), rel=1e-12)


def test_the_factor_of_one_use_is_that_of_the_other(rng):
    """The determinant's factor is also that of the solution, whose recursion is not taken."""
    c, r = rng.standard_normal((2, 100))
    c[0] = r[0] = 90
    _core._clear_store()
    plan, _, _ = run(asked(pl.Toeplitz(c, r), "solution det"))
    factors = [s["late"] is None for s in plan.steps if s["name"] == "getrf"]
    assert factors == [True]
    assert plan.flops == pytest.approx(sum(s["flops"] for s in ran(plan)), rel=1e-12)


def kept(plan):
    return int(re.search(r"(\d+) kept", str(plan))[1])


@pytest.mark.parametrize("case", ["Dense", "Sparse"])
def test_a_value_that_serves_twice_takes_its_bytes_once(case):
    _core._clear_store()
    a = CASES[case](Make("float64"))
    both, det, solution = (
        kept(run(asked(a, uses))[0]) for uses in ("det solution", "det", "solution")
    )
    assert both == max(det, solution) > 0


# Values made by the first run and found by it, and by the second.
FIGURES = {
    ("c I + U U^H", "det solution diagonal"): (2, 8, 10),
    ("BlockDiag of composites", "det solution"): (8, 4, 12),
    ("KronSum", "det solution trace columns"): (4, 8, 18),
}


@pytest.mark.parametrize(("case", "uses"), FIGURES)
def test_a_value_is_made_for_all_that_follow(case, uses):
    _core._clear_store()
    ask = asked(CASES[case](Make("float64")), uses)
    _, found, made = run(ask)
    _, again, anew = run(ask)
    assert (made, found, again, anew) == (*FIGURES[case, uses], 0)


def test_what_serves_a_value_that_is_made_does_not_run():
    """Two solutions ask for one bound of the condition: its probes go through the matrix once."""
    _core._clear_store()
    plan, _, _ = run(asked(CASES["KronSum"](Make("float64")), "solution columns"))
    probes = [s for s in plan.steps if s["name"] == "probe" and s["late"] is None]
    assert [s["took"] is not None for s in probes] == [True]


@pytest.mark.parametrize("uses", ["diagonal det", "trace solution"])
def test_what_is_made_within_a_fallback_is_not_there(uses):
    """The factor that a diagonal falls back to is counted where it is made in any case."""
    _core._clear_store()
    plan, _, _ = run(asked(CASES["Banded"](Make("float64")), uses))
    assert plan.flops == pytest.approx(sum(s["flops"] for s in ran(plan)), rel=1e-12)
    assert kept(plan) > 0


def test_of_two_values_side_by_side_one_is_made():
    """The factor of the determinant is that of the diagonal: no dense form is made anew."""
    _core._clear_store()
    plan, _, _ = run(asked(CASES["Toeplitz"](Make("float64")), "det diagonal"))
    assert [s["name"] for s in ran(plan)].count("toeplitz-dense") == 1


def test_a_value_that_is_found_has_taken_no_time(rng):
    A = pl.Dense(rng.standard_normal((40, 40)) + 9 * np.eye(40))
    for found in (False, True):
        plan, hits, _ = run(asked(A, "det solution"))
        assert hits == found and len(plan.steps) == 3
        assert [s["took"] is None for s in plan.steps] == [found, False, False]


@pytest.mark.parametrize("results", [1, 2, 3])
def test_what_nobody_asked_for_is_larger_than_all_results(rng, results):
    """A kept factor counts where it has more than 32 bytes for each number of the operands, of the
    results, and of four vectors as long as the sides of each."""
    n = 92
    c, r = rng.standard_normal((2, n))
    c[0] = r[0] = n
    inverse = pl.inv(pl.Toeplitz(c, r))
    dense, factor = 8 * n * n, 8 * n * n + 768
    for k in range(1, 13):
        sides = [pl.Dense(rng.standard_normal((n, k))) for _ in range(results)]
        given = 2 * n + results * (2 * n * k + 4 * (n + k))
        told = run([(inverse @ b, DENSE, 0, 0) for b in sides])[0]._data["unasked"]
        assert told == (factor if factor > 32 * given else dense)


@pytest.mark.no_verify
@pytest.mark.parametrize("n", [255, 257, 530])
def test_a_callable_under_a_mask_runs_once_a_column(n, rng):
    """Blocks of columns are as wide as memory lets them be: each makes the dense form anew."""
    M, W, calls = rng.standard_normal((n, n)), rng.standard_normal((n, n)), []

    def matvec(x):
        calls.append(0)
        return M @ x

    A = pl.LinearOperator((n, n), matvec=matvec, dtype=float)
    found = pl.LowRank(pl.multiply(A, pl.Dense(W)), pl.Identity(n)).diagonal()
    assert len(calls) == n
    np.testing.assert_allclose(found, np.diagonal(M * W), rtol=1e-10)
