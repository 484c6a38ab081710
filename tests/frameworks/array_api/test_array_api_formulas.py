"""Random formulas walked on the arrays of other libraries against C: some of those of
`make namespaces`, and those that were wrong once."""

import collections
import warnings

import numpy as np
import pytest
from formulas import elsewhere

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
