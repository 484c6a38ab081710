"""``pl.config(check_plans=True)``: plans are checked as they are made.

What the check finds is shown by tests/c/test_plan_check.c; here that it is asked and changes
nothing.
"""

import numpy as np
import pytest

import pylinop as pl
from pylinop._base import config


@pytest.fixture
def unchecked():
    with pl.config(check_plans=False):
        yield


def test_it_is_an_option_of_a_block_and_of_the_process(unchecked):
    assert config.get("check_plans") is False
    with pl.config(check_plans=True):
        assert config.get("check_plans") is True
        with pl.config(check_plans=np.False_):
            assert config.get("check_plans") is False
    assert config.get("check_plans") is False


@pytest.mark.parametrize("wrong", [1, "yes", None])
def test_it_is_true_or_false(wrong):
    with pytest.raises(TypeError, match="check_plans must be True or False"):
        pl.config(check_plans=wrong)


def test_checked_plans_give_the_same_bits(unchecked, rng):
    A, B, C = (rng.standard_normal((16, 16)) for _ in range(3))
    S = A @ A.T + 16 * np.eye(16)

    def results():
        lazy = [pl.lazy(a) for a in (A, B, C)]
        yield np.asarray(lazy[0] - lazy[1] + lazy[2])  # lost its third term once
        yield np.asarray(lazy[0] + 2 * lazy[1] @ lazy[2])
        yield from pl.evaluate(lazy[0] @ lazy[1], lazy[0] @ lazy[1] @ lazy[2])
        D = pl.Dense(S, assume_a="pos")
        yield pl.solve(D, B)
        yield pl.logdet(D)
        yield pl.solve(pl.LowRank(A[:, :2], B[:, :2]) + 9 * pl.Identity(16), C)
        yield pl.solve(pl.Laplacian((4, 4)) + 18 * pl.Identity(16), C)
        yield (pl.Kron(pl.Dense(A[:4, :4]), pl.Dense(B[:4, :4])) @ C).copy()

    plain = list(results())
    with pl.config(check_plans=True):
        checked = list(results())
    for a, b in zip(plain, checked, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(plain[0], A - B + C, rtol=1e-15, atol=1e-15)
