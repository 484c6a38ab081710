"""Sums within sums: the inner one is read while the outer one has not its last term yet."""

import numpy as np
import pytest

import pylinop as pl


@pytest.mark.parametrize("n", [1, 2, 16, 17])
def test_inner_sums_are_not_held_against_outer_ones(n, rng):
    """What an unfinished sum had in memory from the plan before decided what a plan is."""
    a, b, c, d = (rng.random((n, n)) for _ in range(4))
    A, B, C, D = map(pl.Dense, (a, b, c, d))
    x = np.ones((n, 2))
    with pl.config(check_plans=True):
        for k in np.linspace(0.3, 40, 12):
            for got, want in (
                (A + B @ (A + k * (C @ D)), a + b @ (a + k * (c @ d))),
                (A + B @ (A + C @ D), a + b @ (a + c @ d)),
                (A + B @ (C + B @ (A + k * (C @ D))), a + b @ (c + b @ (a + k * (c @ d)))),
                (A @ (B + k * (C @ D)), a @ (b + k * (c @ d))),
            ):
                np.testing.assert_allclose(got @ x, want @ x, rtol=1e-12)
                np.testing.assert_allclose(got.toarray(), want, rtol=1e-12)
