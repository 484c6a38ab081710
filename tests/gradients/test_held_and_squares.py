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


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize("k", [2, 3])
def test_gradients_beside_the_condition_that_allows_the_inverse(k, refused):
    """Far on both sides of it, beside 40 digits."""
    mpmath = pytest.importorskip("mpmath")
    n, g = 2048, np.random.default_rng([k, refused])
    U = g.standard_normal((n, k)) + 1j * g.standard_normal((n, k))
    if refused:
        U *= np.logspace(4, -4, k)
    d = g.uniform(1, 2, n)
    L = np.linalg.cholesky(np.eye(k) + U.conj().T @ (U / d[:, None]))
    spread = np.linalg.norm(L) * np.linalg.norm(np.linalg.inv(L))
    assert spread > 1e4 * k if refused else spread < 2 * k

    def nll(d):
        return pl.logdet(pl.Diag(d) + pl.LowRank(U)).real

    with pl.explaining() as e:
        found = pl.grad(nll)(d)
    assert any(s["name"] == "trsm-squares" for s in e.steps)
    with mpmath.workdps(40):
        rows = [[mpmath.mpc(complex(v)) for v in row] for row in U]
        over = [1 / mpmath.mpf(float(v)) for v in d]
        S = mpmath.matrix(k, k)
        for i in range(k):
            for j in range(k):
                S[i, j] = (i == j) + mpmath.fsum(
                    mpmath.conj(r[i]) * r[j] * o for r, o in zip(rows, over, strict=True)
                )
        P = S**-1
        due = [
            float(
                o
                - o**2
                * mpmath.re(
                    mpmath.fsum(
                        r[i] * P[i, j] * mpmath.conj(r[j]) for i in range(k) for j in range(k)
                    )
                )
            )
            for r, o in zip(rows, over, strict=True)
        ]
    assert np.max(np.abs(found - due)) <= 100 * np.finfo(float).eps
