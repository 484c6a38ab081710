"""Second derivatives of likelihoods of Krons and a low rank, of pencils of Krons that are not known
to be symmetric and of variances of circulants, beside the same losses on dense arrays."""

import os

import numpy as np
import pytest

import pylinop as pl

SEED = int(os.environ.get("PYLINOP_SEED", 7))


def definite(r, n):
    a = r.standard_normal((n, n))
    return a @ a.T / n + np.eye(n)


def low_rank(r, n):
    A, B, y = definite(r, n[0]), definite(r, n[1]), r.standard_normal(n[0] * n[1])
    U = r.standard_normal((n[0] * n[1], 1 + r.integers(2)))
    first = r.integers(3)

    def f(th, kron=pl.Kron, lowrank=pl.LowRank):
        a = np.exp(th[0]) * A
        b = np.exp(th[1]) * B + np.eye(n[1])
        parts = (pl.Identity(n[0]), b) if first == 0 else (a, pl.Identity(n[1]))
        K = kron(*(parts if first < 2 else (a, b))) + np.exp(th[2]) * lowrank(U)
        return y @ pl.solve(K, y) + pl.logdet(K)

    return f


def pencil(r, n):
    A, B, y = definite(r, n[0]), definite(r, n[1]), r.standard_normal(n[0] * n[1])

    def f(th, kron=pl.Kron, lowrank=None):
        K = kron(np.exp(th[0]) * A, np.exp(th[1]) * B) + kron(
            pl.Identity(n[0]), pl.Diag(np.exp(th[2] * np.arange(1, n[1] + 1) / n[1]))
        )
        return y @ pl.solve(K, y) + pl.logdet(K)

    return f


def shifted(r, n):
    A, B = definite(r, n[0]), definite(r, n[1])

    def f(th, kron=pl.Kron, lowrank=None):
        K = kron(np.exp(th[0]) * A + np.eye(n[0]), np.exp(th[1]) * B)
        K = K + np.exp(th[2]) * pl.Identity(n[0] * n[1])
        return pl.logdet(K) + pl.trace(pl.inv(K))

    return f


def dense_kron(a, b):
    a, b = (x.toarray() if isinstance(x, (pl.Identity, pl.Diag)) else x for x in (a, b))
    m, n = a.shape[0], b.shape[0]
    whole = np.reshape(a, (m, 1, m, 1)) * np.reshape(b, (1, n, 1, n))
    return pl.Dense(np.reshape(whole, (m * n, m * n)))


def dense_low(U):
    return pl.Dense(U @ U.T)


@pytest.mark.parametrize("model", [low_rank, pencil, shifted])
@pytest.mark.parametrize("n", [(3, 4), (6, 6), (16, 5), (5, 17), (40, 3)])
def test_krons_beside_the_dense_form(model, n):
    r = np.random.default_rng(SEED + sum(n))
    f = model(r, n)
    th, d = r.standard_normal(3) / 2, r.standard_normal(3)

    def dense(t):
        return f(t, kron=dense_kron, lowrank=dense_low)

    value, slope = pl.value_and_grad(f)(th)
    want, due = pl.value_and_grad(dense)(th)
    assert value == pytest.approx(want, rel=1e-10)
    assert np.allclose(slope, due, rtol=1e-9, atol=1e-10 * abs(due).max())
    got, want = pl.hvp(f)(th, d), pl.hvp(dense)(th, d)
    assert np.allclose(got, want, rtol=1e-8, atol=1e-9 * abs(want).max())


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 64, 100])
def test_variances_of_circulants(n):
    r = np.random.default_rng(SEED + n)
    lag, w = np.minimum(np.arange(n), n - np.arange(n)), r.standard_normal(n)

    def f(th, circulant=pl.Circulant):
        C = circulant(np.exp(-lag * np.exp(th[0]))) + np.exp(th[1]) * pl.Identity(n)
        return np.sum(w * pl.diagonal(pl.inv(C))) + pl.logdet(C) + pl.trace(pl.inv(C) @ pl.Diag(w))

    def dense(th):
        at = (np.arange(n)[:, None] - np.arange(n)) % n
        return f(th, lambda c: pl.Dense(c[at]))

    th, d = r.standard_normal(2) / 2, r.standard_normal(2)
    assert np.allclose(pl.grad(f)(th), pl.grad(dense)(th), rtol=1e-9)
    want = pl.hvp(dense)(th, d)
    assert np.allclose(pl.hvp(f)(th, d), want, rtol=1e-8, atol=1e-9 * abs(want).max())
