"""Plans against the least over all equivalent forms (oracle.py), for random expressions.

EXCEPTIONS is strict: a plan that gets better must be taken out of it (`python tests/oracle.py 1000`
prints the table). What they have in common: sums within products, of which the planner multiplies
all terms out or none, and takes no half of a symmetric one.
"""

import numpy as np
import oracle
import pytest

import pylinop as pl

SEEDS = 1000
# price of the plan over the least, seed, expression and sizes
EXCEPTIONS = [
    (1.245, 501, "A @ (B + C) @ C.T: A 120x30, B 30x500, C 30x500"),
    (1.164, 850, "(A @ A.T).T @ (A + B): A 120x1, B 120x1"),
    (1.156, 613, "A @ (inv(A) + A) @ A.T: A 500x500"),
    (1.152, 636, "A @ A.T @ B @ (C + B.T): A 4x1, B 4x120, C 120x4"),
    (1.119, 972, "A @ (B @ B.T + C + D + C.T): A 30x120, B 120x1, C 120x120, D 120x120"),
    (1.105, 337, "(A + B + A + B) @ C @ D: A 4x4, B 4x4, C 4x1, D 1x1"),
    (1.082, 704, "(A + A @ B @ A) @ A.T @ C: A 500x30, B 30x500, C 500x4"),
    (1.081, 954, "(A + B + A + C @ D) @ D.T: A 500x120, B 500x120, C 500x30, D 30x120"),
    (1.064, 405, "A @ (inv(B) + C) @ (A.T @ A @ C).T: A 4x500, B 500x500, C 500x500"),
    (1.042, 220, "A @ (A.T @ B + C) @ C.T @ D: A 120x500, B 120x500, C 500x500, D 500x120"),
    (1.004, 626, "A @ A.T @ inv(B) @ (B.T + B) @ A: A 120x4, B 120x120"),
]


def test_plans_are_the_cheapest():
    found = oracle.exceptions(range(SEEDS))
    assert found == EXCEPTIONS, "\n".join(map(repr, found))


def test_the_oracle_counts_what_it_writes():
    """Forms are equal, and the price is that of the form: by hand for some."""
    a, b, x = (("leaf", k) for k in "ABx")
    sizes = {"A": (50, 50), "B": (50, 50), "x": (50, 1)}
    t, mul, add = (lambda e: ("t", e)), (lambda *e: ("mul", *e)), (lambda *e: ("add", *e))
    g, v, s = oracle.gemm(50, 50, 50), oracle.gemm(50, 1, 50), oracle.onepass(2500, 2)
    for e, price in (
        (mul(t(a), b), g),
        (mul(mul(a, b), x), 2 * v),
        (mul(a, t(a)), min(g, oracle.gram(50, 50))),
        (add(mul(a, b), mul(a, t(b))), g + s),
        (add(mul(a, b), mul(t(b), t(a))), g + s),
        (mul(("inv", a), x), oracle.factor(50) + oracle.solve(50, 1)),
        (mul(add(a, mul(b, b)), x), 3 * v + oracle.onepass(50, 2)),
    ):
        assert oracle.least(e, sizes) == pytest.approx(price, rel=1e-12), oracle.text(e)


def test_a_worse_plan_is_seen():
    rng = np.random.default_rng(0)
    H, x = rng.standard_normal((200, 200)), rng.standard_normal((200, 1))
    e = ("mul", ("mul", ("t", ("leaf", "H")), ("leaf", "H")), ("leaf", "x"))
    low = oracle.least(e, {"H": H.shape, "x": x.shape})
    lazy = pl.lazy(H)
    first = pl.lazy(np.asarray(lazy.T @ lazy))  # the product that the plan avoids
    cost = sum(oracle.price_of_plan(pl.explain(v)) for v in (lazy.T @ H, first @ x))
    assert cost > 2 * low


@pytest.mark.parametrize("seed", range(40))
def test_values(seed):
    rng = np.random.default_rng(seed)
    e, sizes = oracle.drawn(rng)
    arrays = {
        k: rng.standard_normal(s) + 30 * (s[0] == s[1]) * np.eye(*s) for k, s in sizes.items()
    }
    want = oracle.plainly(e, arrays)
    got = np.asarray(oracle.lazily(e, {k: pl.lazy(v) for k, v in arrays.items()}))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-9 * np.abs(want).max())
