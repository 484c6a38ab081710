"""What is evaluated together is not dearer than apart, and one operator is factored once: all uses
of an inverse, over all kinds and composites, by explain's own figures of the steps that ran. Checks
of solutions, which apart find their norms kept, may add a quarter."""

import time

import numpy as np
import pytest
from composites import BATCHES, CASES, Make

import pylinop as pl
from pylinop import _core

DENSE, DIAGONAL, TRACE, DET = 0, 1, 2, 4


def asked(a):
    n, rng = a.shape[-1], np.random.default_rng(2)
    b, c = (pl.Dense(rng.standard_normal((n, k)).astype(a.dtype)) for k in (1, 5))
    inverse = pl.inv(a)
    return {
        "determinant": (a, DET, 0, 0),
        "solution": (inverse @ b, DENSE, 0, 0),
        "from the left": (b.H @ inverse, DENSE, 0, 0),
        "quadratic form": (b.H @ inverse @ b, DENSE, 0, 0),
        "columns": (inverse @ c, DENSE, 0, 0),
        "diagonal of the inverse": (inverse, DIAGONAL, 0, 0),
        "trace of the inverse": (inverse, TRACE, 0, 0),
        "inverse": (inverse, DENSE, 0, 0),
    }


PARTS = {
    "a likelihood": ["determinant", "solution"],
    "and its quadratic form": ["determinant", "solution", "quadratic form", "from the left"],
    "with variances": ["determinant", "solution", "diagonal of the inverse"],
    "with a gradient": ["determinant", "solution", "trace of the inverse", "columns"],
    "all": None,
}


def ran(ask):
    """(values, flops of the steps that ran, those of factors among them)."""
    with pl.explaining() as e:
        values = _core._results(ask)
    steps = [s for p in e.plans for s in p.steps if s["took"] is not None]
    return (
        values,
        sum(s["flops"] for s in steps),
        sum(s["flops"] for s in steps if s["kept"]),
    )


def check(a, parts):
    n = a.shape[-1]
    ask = [q for name, q in asked(a).items() if parts is None or name in parts]
    _core._clear_store()
    apart = [ran([q]) for q in ask]  # each finds what those before it have kept
    _core._clear_store()
    values, flops, factors = ran(ask)
    for got, (want, _, _) in zip(values, apart, strict=True):
        size = np.abs(want[0]).max(initial=0)
        assert np.abs(got - want[0]).max(initial=0) <= 1e-8 * size
    _core._clear_store()
    alone = []
    for q in ask:
        alone.append(ran([q])[2])
        _core._clear_store()
    bad = []
    if flops > 1.25 * sum(x[1] for x in apart) + 200 * n:
        bad.append(f"{flops:.4g} flops together, {sum(x[1] for x in apart):.4g} apart")
    if factors > 1.3 * max(alone) + 200 * n:
        bad.append(f"factors of {factors:.4g} flops, {max(alone):.4g} where one is asked alone")
    return bad


@pytest.mark.sweep(4)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("case", CASES)
def test_together_is_not_dearer(case, parts, dtype):
    assert check(CASES[case](Make(dtype)), PARTS[parts]) == []


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("case", BATCHES)
def test_batches_together_are_not_dearer(case, parts):
    assert check(CASES[case](Make("float64", (2,))), PARTS[parts]) == []


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("n", [17, 100, 400])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_thin_update_is_read_once(sign, n, dtype, rng):
    """Solve, determinant and the inverse's diagonal of D + U U^H share U^H D^-1 U, and a zero in D
    leads to the safer way as before."""
    U = rng.standard_normal((n, 5)).astype(dtype)
    if dtype == "complex128":
        U += 1j * rng.standard_normal((n, 5))
    d = sign * (1 + rng.random(n))
    y = rng.standard_normal(n)
    for last in (d[-1], 0.0):
        d[-1] = last
        A = pl.lazy(pl.Diag(d) + sign * pl.LowRank(U))
        with pl.config(check_plans=True), pl.explaining() as log:
            got = pl.evaluate(np.linalg.solve(A, y), *np.linalg.slogdet(A), pl.diagonal(pl.inv(A)))
        dense = np.diag(d) + sign * U @ U.conj().T
        inverse = np.linalg.inv(dense)
        np.testing.assert_allclose(got[0], inverse @ y, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(got[2], np.linalg.slogdet(dense)[1], rtol=1e-10)
        np.testing.assert_allclose(got[3], np.diag(inverse).real, rtol=1e-8, atol=1e-9)
        (plan,) = log.plans
        made = [s for s in plan.steps if s["name"] == "weighted-gram" and not s["conditional"]]
        assert len(made) == 1


def test_what_takes_more_than_a_hundredth_of_a_second_stays_one_plan(rng):
    a = rng.standard_normal((1200, 1200))
    A = pl.lazy(a @ a.T + np.eye(1200))
    with pl.explaining() as log:
        pl.evaluate(np.linalg.solve(A, a[0]), *np.linalg.slogdet(A))
    assert len(log.plans) == 1


def test_planning_of_many_unlike_blocks_is_not_quadratic(rng):
    """A plan of 4000 factors was looked through for each of them, at each call: 35 s."""
    blocks = [rng.random((3 + i % 3, 3 + i % 3)) + 5 * np.eye(3 + i % 3) for i in range(4000)]
    B = pl.BlockDiag(*map(pl.Dense, blocks))
    y = rng.standard_normal(B.shape[0])
    began = time.process_time()
    x = pl.solve(B, y)
    blocks[7][0, 0] += 1
    z = pl.solve(B, y)
    assert time.process_time() - began < 20  # 0.5 where nothing else runs; 64 before
    np.testing.assert_allclose(B @ z, y, rtol=1e-10, atol=1e-10)
    at = np.cumsum([0, *map(len, blocks)])
    same = np.ones(len(y), bool)
    same[at[7] : at[8]] = False
    np.testing.assert_array_equal(x[same], z[same])
    assert not np.allclose(x[~same], z[~same])
