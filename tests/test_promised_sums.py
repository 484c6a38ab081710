"""Sums of what was declared positive definite and of semidefinite terms: determinants."""

import numpy as np
import pytest

import pylinop as pl


@pytest.mark.parametrize("n", [4, 30])
def test_sums_of_what_is_not_positive(n, rng):
    P = pl.Dense(np.diag(np.where(np.arange(n) % 2, -3.0, 2.0)), assume_a="pos")
    X = pl.Dense(rng.standard_normal((n - 1, n)))
    for A in (P + 0.5 * pl.Identity(n), P + P, P + 0.01 * (X.T @ X), 0.5 * pl.Identity(n) + P):
        for f in (pl.logdet, pl.slogdet, pl.det):
            with pytest.raises(np.linalg.LinAlgError, match="declared positive definite"):
                f(A)
    sign = pl.slogdet(P - 0.5 * pl.Identity(n)).sign  # nothing was promised of a difference
    assert sign == (-1) ** (n // 2)
