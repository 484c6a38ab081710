"""What the planner's passes save, told by their plans: a pass that does nothing gives right answers
too, so faults of tests/mutants/engine.txt that only lose a saving are found here."""

import numpy as np
import pytest

import pylinop as pl


def steps(plan):
    """The names of the steps, in order."""
    lines = str(plan).splitlines()
    first = next(i for i, s in enumerate(lines) if s.split()[:1] == ["steps"])
    told = [s.split() for s in lines[first + 1 :]]
    return [s[1] for s in told if len(s) > 2 and s[0].isdigit() and "<-" in s]


SUMS = {  # the steps below 16 rows and columns, and from there on
    "(a.T @ b).T + 2.0 * (c @ d)": ("gemm gemm scale add", "gemm start gemm-add"),
    "a @ b - c @ d": ("gemm gemm sub", "gemm start gemm-add"),
    "c - a @ b": ("gemm sub", "start gemm-add"),
    "a @ b @ c - d": ("gemm gemm sub", "gemm gemm sub"),
    "a @ b + c @ d + a.T": ("gemm gemm add swap add", "gemm start gemm-add swap add"),
    "c - (a @ b).T": ("swap gemm sub", "swap start gemm-add"),
}


@pytest.mark.parametrize("n", [15, 16, 40])
@pytest.mark.parametrize("formula", SUMS)
def test_parts_of_sums_are_joined(rng, formula, n):
    arrays = dict(zip("abcd", rng.standard_normal((4, n, n))))
    made = eval(formula, {}, {k: pl.lazy(v) for k, v in arrays.items()})
    assert steps(made.explain()) == SUMS[formula][n >= 16].split()
    np.testing.assert_allclose(made.toarray(), eval(formula, {}, arrays), atol=1e-11)


@pytest.mark.parametrize("n", [15, 16])
def test_a_product_of_another_dtype_or_size_is_the_right_one(rng, n):
    a, b, c = rng.standard_normal((3, n, n))
    narrow = pl.lazy(a.astype("f4")) @ pl.lazy(b.astype("f4"))
    got = (pl.lazy(c) + narrow).toarray()
    np.testing.assert_allclose(got, c + a.astype("f4") @ b.astype("f4"), atol=1e-4)
    row = pl.lazy(a[:1]) @ pl.lazy(b)
    np.testing.assert_allclose((pl.lazy(c) + row).toarray(), c + a[:1] @ b, atol=1e-12)
    np.testing.assert_allclose((pl.lazy(c) - row).toarray(), c - a[:1] @ b, atol=1e-12)


@pytest.mark.parametrize("n", [3, 20, 60])
def test_a_part_of_the_result_that_a_kept_value_is_made_of_is_written_each_time(rng, n):
    a, b = rng.standard_normal((2, n, n))
    part = pl.multiply(pl.lazy(a), pl.lazy(b))
    want = np.vstack([a * b, np.linalg.inv(a * b)])
    whole = pl.block([[part], [pl.inv(part)]])
    for _ in range(3):  # the factors are found from the second time on
        np.testing.assert_allclose(whole.toarray(), want, rtol=1e-7, atol=1e-7)
