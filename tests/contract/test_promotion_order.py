"""The dtype of what has several parts does not depend on their order, so that views have it too."""

import itertools

import numpy as np
import pytest

import pylinop as pl

N = 3
RNG = np.random.default_rng(0)
LEAVES = {
    name: pl.Dense(RNG.integers(0, 9, (N, N)).astype(name))
    for name in ("int16", "uint16", "float32", "complex64")
}
LEAVES["weak complex"] = pl.DFT(N)
LEAVES["weak"] = pl.Identity(N)
MADE = {
    "LowRankUpdate": lambda a, b, c: pl.LowRankUpdate(a, b, c),
    "LowRank": lambda a, b, c: pl.LowRank(a, b, c),
    "Kron": lambda a, b, c: pl.Kron(a, b, c),
    "BlockDiag": lambda a, b, c: pl.BlockDiag(a, b, c),
    "Block": lambda a, b, c: pl.Block([[a, b], [c, a]]),
}


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("names", itertools.combinations(LEAVES, 3), ids=" ".join)
def test_any_order(names, made):
    dtypes = set()
    for parts in itertools.permutations(LEAVES[name] for name in names):
        op = MADE[made](*parts)
        dtypes.add(op.dtype)
        dense, x = op.toarray(), np.ones((op.shape[1], 2))
        assert dense.dtype == op.dtype
        for view, want in ((op.T, dense.T), (op.H, dense.conj().T), (op.conj(), dense.conj())):
            assert view.dtype == op.dtype
            close = {"rtol": 1e-4, "atol": 1e-4 * np.abs(want).max()}
            np.testing.assert_allclose(view.toarray(), want, **close)
            np.testing.assert_allclose(view @ x, want @ x, **close)
    assert len(dtypes) == 1


def test_as_numpys():
    """int16 and uint16 are int32 together, which makes float64 of float32: not with all three."""
    parts = [LEAVES[name] for name in ("int16", "uint16", "float32")]
    assert pl.BlockDiag(*parts).dtype == np.result_type(np.int16, np.uint16, np.float32)
    assert pl.Kron(LEAVES["int16"], pl.DFT(N), LEAVES["complex64"]).dtype == np.result_type(
        np.int16, 1j, np.complex64
    )
