"""Random formulas walked on the arrays of other libraries against C: some of those of
`make namespaces`, and those that were wrong once."""

import collections
import warnings

import numpy as np
import pytest
from formulas import elsewhere

import pylinop as pl
import pylinop.array_api as pa

KEPT = [  # off before: powers of zero, closed determinants, Part of a Hankel matrix, batches
    955117300684094831,
    955117300684094996,
    324437319369416887,
    324437319369416889,
    324437319369416918,
]


@pytest.mark.parametrize("name", ["numpy", "torch", "strict"])  # JAX compiles for a minute
def test_formulas(name):
    pytest.importorskip(elsewhere.LIBRARIES[name][0].partition(".")[0])
    library, count, wrong = elsewhere.Library(name), collections.Counter(), []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for seed in (*KEPT, *range(20)):
            wrong += elsewhere.compared(library, seed, count)
    assert not wrong, "\n".join(wrong)
    assert count["product"] >= 5 and count["solution"] >= 3


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8"])
def test_sums_and_products_of_integers_in_wider_formulas(dtype):
    """They are values there, so that they wrap as NumPy's: those of the arrays, and not of what
    stands for these while a formula is written."""
    xp, rng = pytest.importorskip("array_api_strict"), np.random.default_rng(7)
    d, U = rng.integers(1, 5, 5).astype(dtype), rng.integers(0, 3, (5, 2)).astype(dtype)
    b = rng.standard_normal(5)
    ours, core = (
        (m, m.Diag(put(d)) + m.LowRank(put(U)), put(b))
        for m, put in ((pa, xp.asarray), (pl, np.asarray))
    )
    for asked in (
        lambda m, A, b: m.solve(A, b),
        lambda m, A, b: m.inv(A.T) @ b,
        lambda m, A, b: (A @ A) @ b,
        lambda m, A, b: (0.5 * A) @ b,
        lambda m, A, b: m.logdet(A),
    ):
        np.testing.assert_allclose(np.asarray(asked(*ours)), np.asarray(asked(*core)), rtol=1e-9)
