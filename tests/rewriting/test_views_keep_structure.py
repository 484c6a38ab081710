"""A view, a multiple and a side cost what the operator itself costs: solves and determinants of
A.T, A.H, A.conj(), c A and from the right, over all kinds and composites, by explain's figures."""

import numpy as np
import pytest
from composites import BATCHES, CASES, Make

import pylinop as pl


def figures(ask):
    with pl.explaining() as e:
        value = ask()
    told = e.explanation
    return value, told.flops, told.memory


def dense(a):
    return a.toarray()


VIEWS = {
    "T": (lambda a: a.T, lambda x: np.swapaxes(x, -1, -2)),
    "H": (lambda a: a.H, lambda x: np.swapaxes(x, -1, -2).conj()),
    "conj": (lambda a: a.conj(), lambda x: x.conj()),
    "2": (lambda a: 2 * a, lambda x: 2 * x),
    "-": (lambda a: -a, lambda x: -x),
    "T of conj": (lambda a: a.conj().T, lambda x: np.swapaxes(x, -1, -2).conj()),
    "T of 2": (lambda a: (2 * a).T, lambda x: 2 * np.swapaxes(x, -1, -2)),
}


def near(got, want, least=0.0):
    """The operands are far from singular: 1e-9 is loose for an error of n u."""
    size = max(np.max(np.abs(want), initial=0), least)
    assert np.max(np.abs(got - want), initial=0) <= 1e-9 * size, "wrong value"


def same_cost(name, plain, other, n):
    """Within 1.3, and a few passes over vectors: a conjugate, a multiple."""
    room = 16 * n * 5
    bad = [
        f"{what} {b:.3g} where the operator itself takes {a:.3g}"
        for what, a, b, more in (
            ("flops", plain[1], other[1], room),
            ("memory", plain[2], other[2], 16 * room),
        )
        if max(a, b) > 1.3 * min(a, b) + more
    ]
    return [f"{name}: {b}" for b in bad]


def check(a):
    n, rng = a.shape[-1], np.random.default_rng(1)
    full = dense(a)
    b = rng.standard_normal((n, 5)).astype(full.dtype)
    plain = figures(lambda: pl.solve(a, b))
    near(plain[0], np.linalg.solve(full, b))
    bad = []
    for name, (view, same) in VIEWS.items():
        got = figures(lambda view=view: pl.solve(view(a), b))
        near(got[0], np.linalg.solve(same(full), b))
        bad += same_cost(f"solve {name}", plain, got, n)
    left = np.ascontiguousarray(b.T)
    for name, (view, same) in {"": (lambda a: a, lambda x: x), **VIEWS}.items():
        got = figures(lambda view=view: left @ pl.inv(view(a)))
        near(got[0], left @ np.linalg.inv(same(full)))
        bad += same_cost(f"from the right {name}", plain, got, n)
    plain = figures(lambda: pl.slogdet(a))
    for name, (view, same) in VIEWS.items():
        got = figures(lambda view=view: pl.slogdet(view(a)))
        want = np.linalg.slogdet(same(full))
        near(np.asarray(got[0][0]), np.asarray(want[0]))
        near(np.asarray(got[0][1]), np.asarray(want[1]), 1.0)
        bad += same_cost(f"slogdet {name}", plain, got, n)
    return bad


@pytest.mark.sweep(3)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("case", CASES)
def test_a_view_costs_what_the_operator_costs(case, dtype):
    assert check(CASES[case](Make(dtype))) == []


@pytest.mark.parametrize("case", BATCHES)
def test_a_view_of_a_batch_costs_what_the_batch_costs(case):
    assert check(CASES[case](Make("float64", (2,)))) == []
