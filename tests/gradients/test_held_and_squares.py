"""What a block of a program in halves holds goes with it, and diagonals of inverses of updates by
the inverse of the small triangle, on both sides of what allows it."""

import numpy as np
import pytest

import pylinop as pl
from pylinop import _core
from pylinop._base.dlpack import Owner


def test_a_holder_is_let_go_of_by_an_interrupt_too():
    outer, inner = Owner(), Owner()
    A = pl.Dense(np.eye(3) + 1, "pos")

    def stopped():
        pl.solve(A, np.ones(3))
        raise KeyboardInterrupt

    def nested():
        with pytest.raises(KeyboardInterrupt):
            inner.holding(stopped)
        return _core._hold(0, lambda: 5)

    assert outer.holding(nested) == 5
    assert _core._owned(outer.number) == 0
    before = _core._owned(inner.number)
    pl.solve(pl.Dense(np.eye(4) + 2, "pos"), np.ones(4))
    assert _core._owned(inner.number) == before
    assert _core._owned(outer.number) == 0
    for bad in ((), (0,), (-1, int), ("1", int)):
        with pytest.raises((TypeError, OverflowError)):
            _core._hold(*bad)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.float32])
@pytest.mark.parametrize("n", [2047, 2048, 4100])
@pytest.mark.parametrize("spread", [0, 6])
def test_diagonals_of_inverses_of_updates(n, dtype, spread):
    g, k = np.random.default_rng([n, spread]), 40
    U = g.standard_normal((n, k)) + (
        1j * g.standard_normal((n, k)) if dtype == np.complex128 else 0
    )
    U = (U * np.logspace(0, -spread, k)).astype(dtype)
    d = g.uniform(1, 2, n).astype(np.float32 if dtype == np.float32 else np.float64)
    found = pl.diagonal(pl.inv(pl.Diag(d) + pl.LowRank(U)))
    wide = U.astype(np.complex128)
    W = wide / d[:, None]
    due = 1 / d - np.sum(np.linalg.solve(np.eye(k) + wide.conj().T @ W, W.conj().T).T * W, 1).real
    eps = np.finfo(dtype).eps
    assert np.max(np.abs(found - due)) <= 200 * eps * np.max(np.abs(due))
