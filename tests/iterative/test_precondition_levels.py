"""Preconditioners of Toeplitz matrices of several levels, however their sizes are said."""

import numpy as np
import pytest

import pylinop as pl

LAG = np.abs(np.arange(-11, 12))
T = np.exp(-0.5 * (LAG[:, None] + LAG)) + 0.5 * (LAG[:, None] + LAG == 0)


@pytest.mark.parametrize("sizes", [(), ((12, 12),), ([12, 12],)], ids=str)
def test_sizes_of_levels_may_be_left_out(sizes):
    """With n left out, or given as a list, a proposal was a TypeError."""
    A = pl.MultilevelToeplitz(T, *sizes)
    M = pl.preconditioner(A)
    assert M.proposal.kind == "strang"
    assert np.array_equal(
        M.toarray(), pl.preconditioner(pl.MultilevelToeplitz(T, (12, 12))).toarray()
    )
    b = np.ones(144)
    x = pl.solve(A, b, method="cg", M="auto")
    assert np.linalg.norm(A @ x - b) <= 1e-10 * np.linalg.norm(b)


def test_levels_that_are_square_only_together():
    """Levels of 3 x 1 and 1 x 3 have as many lags as two of 2 x 2, and no circulant near."""
    A = pl.MultilevelToeplitz(np.arange(1.0, 10).reshape(3, 3), (1, 3))
    assert A.shape == (3, 3)
    with pytest.raises(pl.LinAlgError, match="it takes a square Toeplitz"):
        pl.preconditioner(A, "strang")
