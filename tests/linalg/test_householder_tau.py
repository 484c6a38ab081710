"""A `Householder` with a tau of its own is solved with as the update of the identity that it is."""

import numpy as np
import pytest

import pylinop as pl


@pytest.mark.parametrize("dtypes", [("d", "d"), ("D", "D"), ("f", "f"), ("f", "d"), ("D", "d")])
@pytest.mark.parametrize("n", [1, 2, 3, 40, 300])
@pytest.mark.parametrize("tau", [0.3, -2.0, "own", "near", 0.0])
def test_beside_dense(tau, n, dtypes, rng):
    v = rng.standard_normal(n).astype(dtypes[0])
    if dtypes[0] == "D":
        v = v + 1j * rng.standard_normal(n)
    square = np.vdot(v, v).real
    tau = {"own": 2 / square, "near": (1 - 1e-3) / square}.get(tau, tau)
    H = pl.Householder(v, np.array(tau, dtypes[1]))
    dense = np.eye(n) - np.array(tau, dtypes[1]) * np.outer(v.astype(H.dtype), v.conj())
    b, B = rng.standard_normal(n), rng.standard_normal((n, 3))
    tolerance = 1e-4 if np.dtype(dtypes[1]).char in "fF" else 1e-10
    for op, full in ((H, dense), (H.T, dense.T), (H.H, dense.conj().T)):
        inverse = np.linalg.inv(full.astype("D"))
        size = np.abs(inverse).max()
        for got, want in (
            (pl.solve(op, b.astype(H.dtype)), inverse @ b),
            (pl.solve(op, B.astype(H.dtype)), inverse @ B),
            (pl.inv(op).diagonal(), inverse.diagonal()),
            (pl.trace(pl.inv(op)) / n, inverse.trace() / n),
        ):
            assert np.abs(got - want).max() <= tolerance * n * size * max(1, size)


def test_nothing_of_n_by_n_is_made(rng):
    n = 3000
    v, b = rng.standard_normal(n), rng.standard_normal(n)
    H, K = pl.Householder(v, 0.3), pl.Dense(rng.standard_normal((4, n)))
    with pl.explaining() as log:
        pl.solve(H, b)
        pl.inv(H).diagonal()
        pl.trace(pl.inv(H))
        pl.diagonal(K @ pl.inv(H) @ K.T)
    assert all(plan.memory < 300 * 8 * n for plan in log.plans)


def test_values_change_and_singular_ones_raise(rng):
    v, b = rng.standard_normal(50), rng.standard_normal(50)
    tau = np.array(0.4)
    H = pl.Householder(v, tau)
    for value in (0.4, 1.7, -3.0):
        tau[...] = value
        np.testing.assert_allclose(pl.solve(H, b), np.linalg.solve(H.toarray(), b), rtol=1e-10)
    e = np.zeros(50)
    e[3] = 1
    with pytest.raises(np.linalg.LinAlgError):
        pl.solve(pl.Householder(e, 1.0), b)
    v[0] = np.nan
    assert np.isnan(pl.solve(H, b)).any()
