"""Multiples by numbers of single precision of what is double: numbers of double precision all
along, as NumPy's products with such numbers are."""

import numpy as np
import pytest
import scipy.linalg as sl

import pylinop as pl

RNG = np.random.default_rng(31)
a = RNG.standard_normal((6, 6)) / 4 + 2 * np.eye(6)
F, C = np.float32, np.complex64


def nested(wide):
    """The same matrix by operators and by arrays in double precision."""
    c, d = (C(0.9 + 0.3j), C(1.1 - 0.2j)) if wide else (F(1.1), F(1.3))
    value = complex if wide else float
    yield c * pl.Dense(a), value(c) * a
    yield -c * (d * pl.Dense(a)).T, -value(c) * value(d) * a.T
    yield (
        c * (d * pl.Dense(a)).T + F(0.7) * pl.Identity(6),
        value(c) * value(d) * a.T + float(F(0.7)) * np.eye(6),
    )
    blocks = pl.BlockDiag(pl.Dense(a[:2, :2]), pl.Dense(a[2:, 2:]))
    yield c * blocks, value(c) * sl.block_diag(a[:2, :2], a[2:, 2:])
    yield (
        pl.Kron(c * pl.Identity(2), d * pl.Identity(1), pl.Dense(a[:3, :3])),
        value(c) * value(d) * np.kron(np.eye(2), a[:3, :3]),
    )


FUNCTIONS = {
    "expm": (pl.expm, sl.expm),
    "logm": (lambda A: pl.logm(1.0 * A @ A), lambda x: sl.logm(x @ x)),
    "pinv": (pl.pinv, np.linalg.pinv),
    "lstsq": (lambda A: pl.lstsq(A, np.ones(6))[0], lambda x: np.linalg.lstsq(x, np.ones(6))[0]),
    "solve": (lambda A: pl.solve(A, np.ones(6)), lambda x: np.linalg.solve(x, np.ones(6))),
    "svdvals": (pl.svdvals, np.linalg.svdvals),
}


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_digit_is_lost(name, wide):
    ours, theirs = FUNCTIONS[name]
    for A, x in nested(wide):
        if name == "logm" and wide:  # the principal one of a square turns over
            continue
        got = ours(A)
        got = got.toarray() if isinstance(got, pl.LinearOperator) else got
        want = theirs(x)
        assert np.asarray(got).dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11 * abs(want).max())
