"""A Kron beside a diagonal that is constant in runs or repeats itself, and beside one that nearly
does: solves, determinants and diagonals of the inverse, beside NumPy in double precision."""

import numpy as np
import pytest

import pylinop as pl

DTYPES = [np.float64, np.float32, np.complex128, np.complex64]


def definite(rng, n, dtype):
    x = rng.standard_normal((n, n)).astype(dtype)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal((n, n))
    return (x @ x.conj().T / n + np.eye(n)).astype(dtype)


def diagonals(rng, p, q, real):
    v, w = (0.1 + rng.random(k) for k in (p, q))
    runs = np.repeat(v, q).astype(real)
    one_off = runs.copy()
    one_off[rng.integers(p * q)] *= 1 + np.finfo(real).eps
    yield "runs", runs, True
    yield "tiles", np.tile(w, p).astype(real), True
    yield "negative runs", -3 * runs, True
    yield "zeros in runs", np.where(np.arange(p * q) < q, 0, runs).astype(real), True
    yield "graded runs", (runs * np.repeat(10.0 ** rng.uniform(-8, 2, p), q)).astype(real), True
    yield "one number", np.full(p * q, 0.5, real), True
    yield "any", (0.1 + rng.random(p * q)).astype(real), False
    yield "one off", one_off, False


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("p, q", [(15, 14), (24, 20), (14, 40)])
def test_beside_numpy(rng, dtype, p, q):
    real = np.dtype(dtype).type(0).real.dtype.type
    a, b = definite(rng, p, dtype), definite(rng, q, dtype)
    wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
    kron = np.kron(a.astype(wide), b.astype(wide))
    x = rng.standard_normal((p * q, 2)).astype(dtype)
    for name, d, _ in diagonals(rng, p, q, real):
        op = 1.5 * pl.Kron(pl.Dense(a, "pos"), pl.Dense(b, "pos")) + pl.Diag(d)
        full = 1.5 * kron + np.diag(d.astype(np.float64))
        room = 500 * np.finfo(real).eps * np.linalg.cond(full)
        inverse = np.linalg.inv(full)
        got = pl.solve(op, x)
        assert got.dtype == dtype
        assert np.linalg.norm(got - inverse @ x) <= room * np.linalg.norm(inverse @ x), name
        sign, log = np.linalg.slogdet(full)
        mine = pl.slogdet(op)
        assert abs(mine[0] - sign) <= room, name
        assert abs(mine[1] - log) <= room * p * q, name
        own = pl.inv(op).diagonal()
        assert np.linalg.norm(own - inverse.diagonal()) <= room * np.linalg.norm(inverse), name
        with pl.config(verify=True):
            pl.solve(op, x), pl.slogdet(op), pl.inv(op).diagonal()


def test_nan_and_singular(rng):
    p, q = 15, 14
    a, b = definite(rng, p, np.float64), definite(rng, q, np.float64)
    kron = pl.Kron(pl.Dense(a, "pos"), pl.Dense(b, "pos"))
    assert np.isnan(pl.slogdet(kron + pl.Diag(np.full(p * q, np.nan)))[1])
    low = -np.linalg.eigvalsh(a)[0] * np.linalg.eigvalsh(b)[0] * (1 + 1e-9)
    x = pl.solve(kron + pl.Diag(np.full(p * q, low)), np.ones(p * q))
    left = (np.kron(a, b) + low * np.eye(p * q)) @ x - 1
    assert np.linalg.norm(left) <= 1e-13 * np.linalg.norm(x)


def test_by_rows_costs_what_krons_cost(rng):
    p, q = 24, 20
    kron = pl.Kron(*(pl.Dense(definite(rng, n, np.float64), "pos") for n in (p, q)))
    v = 1 + rng.random(p)
    one, two = kron + pl.Diag(np.repeat(v, q)), kron + pl.Kron(pl.Diag(v), pl.Identity(q))
    for price in (
        lambda a: a.explain("solve", np.ones(p * q)).flops,
        lambda a: a.explain("logdet").flops,
        lambda a: pl.inv(a).explain("diagonal").flops,
    ):
        assert price(one) <= 1.1 * price(two)


def test_large_solves_are_left_to_iteration(rng):
    d = 1 + np.repeat(rng.random(40), 40)
    op = pl.Kron(*[pl.Dense(definite(rng, 40, np.float64), "pos")] * 2) + pl.Diag(d)
    assert "run-values" not in str(op.explain("solve", np.ones(1600)))
    assert "run-values" in str(op.explain("logdet"))
