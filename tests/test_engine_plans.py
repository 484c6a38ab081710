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


@pytest.mark.parametrize("c", [complex(1, np.inf), complex(np.nan, 1), complex(1, np.nan), 1 + 2j])
def test_a_multiple_of_the_identity_that_is_not_finite_is_written_out(rng, c):
    """c I has c * 0 beside its diagonal, which is no number there: it cannot go to a diagonal."""
    a = rng.standard_normal((4, 4)) + 1j
    made = pl.lazy(a) + c * pl.Identity(4)
    assert ("add-shift" in made.explain().fired) == np.isfinite(c)
    with np.errstate(invalid="ignore"):
        want = a + c * np.eye(4)
    np.testing.assert_array_equal(np.isnan(made.toarray()), np.isnan(want))
    if np.isfinite(c):
        np.testing.assert_allclose(made.toarray(), want, rtol=1e-15)


@pytest.mark.parametrize("small", [0, 1, 12, 19, 20, 24, 30])
def test_the_pivot_of_a_bordered_matrix_is_cheap_and_no_less_than_half_the_other(rng, small):
    """A pivot block is solved for alone, the rest beside it: the dense block takes getrf there. A
    cheap block of less than half the rows of the other does not pay, nor does a dense one."""
    large = 40
    b, c = rng.standard_normal((large, small)), rng.standard_normal((small, large))
    wide, thin = pl.Diag(1 + rng.random(large)), pl.Diag(1 + rng.random(small))
    dense = [pl.Dense(rng.standard_normal((n, n)) + 9 * np.eye(n)) for n in (large, small)]
    x = rng.standard_normal(large + small)
    for first, last, fires in (
        (wide, dense[1], True),
        (dense[0], thin, 2 * small >= large),
        (dense[0], dense[1], False),
    ):
        for A in (pl.Block([[first, b], [c, last]]), pl.Block([[last, c], [b, first]])):
            assert ("solve-bordered" in A.explain("solve", x).fired) == fires
            got, want = pl.solve(A, x), np.linalg.solve(A.toarray(), x)
            np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-8 * abs(want).max())


@pytest.mark.parametrize("sizes", [(9, 2, 9, 2, 9), (4, 4, 4, 4, 4), (60, 3, 50, 4, 70)])
def test_halves_multiplied_by_one_another_are_told_with_their_price(rng, sizes):
    """(A B) (C D), of which neither side is a factor, is the plan or an alternative to it."""
    A, B, C, D = (pl.Dense(rng.standard_normal(s)) for s in zip(sizes, sizes[1:], strict=False))
    told = (A @ B @ C @ D).explain("dense")
    a, b, c, d, e = sizes
    pairs = ((a, b, c), (c, d, e), (a, c, e))
    seconds = 0.0
    for m, k, n in pairs:
        work = 2 * m * k * n * (1 + 8 / min(m, k, n)) / 4e10
        seconds += max(work, 8 * (m * k + k * n + m * n) / 1.2e10) + 2e-8
    found = {o["text"]: o["seconds"] for o in told.alternatives}
    assert found["((A B) (C D))"] == pytest.approx(seconds, rel=1e-6)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_rows_of_a_power_are_rows_of_the_first_factor(rng, p):
    """From the second power on: two rows of A^p are two rows of A times p - 1 times A."""
    n = 30
    A = pl.Dense(rng.standard_normal((n, n)))
    want = np.linalg.matrix_power(A.toarray(), p)
    for rows, columns in ((np.s_[3:5], np.s_[:]), (np.s_[:], np.s_[3:5])):
        part = (A**p)[rows, columns]
        assert part.explain("dense").flops == (p - 1) * 2 * 2 * n * n
        np.testing.assert_allclose(part.toarray(), want[rows, columns], atol=1e-11)


@pytest.mark.parametrize("factors", [7, 8, 9])
def test_the_spectra_of_eight_factors_and_of_more(rng, factors):
    """Of up to eight each turns into its own basis; nine are a dense matrix."""
    a = rng.standard_normal((factors, 2, 2))
    parts = [pl.Dense(x @ x.T + np.eye(2), assume_a="pos") for x in a]
    S = pl.Kron(*parts) + 0.5 * pl.Identity(2**factors)
    b = rng.standard_normal(2**factors)
    assert ("solve-spectral-sum" in S.explain("solve", b).fired) == (factors <= 8)
    np.testing.assert_allclose(S @ pl.solve(S, b), b, atol=1e-10)
