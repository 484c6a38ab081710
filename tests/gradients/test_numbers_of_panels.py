"""Numbers that several blocks are multiples of: beside a batch, and asked for one by one."""

import numpy as np
import pytest

import pylinop as pl


@pytest.mark.parametrize("g", [2, 4, 20])
@pytest.mark.parametrize("way", ["itself", "an element", "a function"])
def test_beside_a_batch(g, way):
    rng = np.random.default_rng(g)
    R, d = 1 + rng.random(g), 1 + rng.random((3, 2 * g))

    def number(x):
        return {"itself": x, "an element": x[0] if x.ndim else x, "a function": np.exp(x)}[way]

    def f(x):
        c = number(x)
        blocks = [c * pl.Dense(R[k] * np.eye(2) + 1) for k in range(g)]
        return np.sum(pl.logdet(pl.BlockDiag(*blocks) + pl.Diag(d)))

    x = np.array([1.3, 0.7]) if way == "an element" else np.array(1.3)
    h = 1e-3 * (np.arange(2) == 0) if x.ndim else 1e-3
    due = (f(x + h) - f(x - h)) / 2e-3
    got = pl.grad(f)(x)
    assert got.shape == x.shape
    assert np.sum(got * (np.arange(2) == 0 if x.ndim else 1)) == pytest.approx(due, rel=1e-5)


def test_numbers_made_alike_are_each_their_own():
    rng = np.random.default_rng(0)
    g, m = 6, 3
    R = [(lambda a: a @ a.T)(rng.standard_normal((m, m))) for _ in range(g)]
    x = pl.lazy(np.array([1.3, 0.7]))
    a = [x[0] for _ in range(g)]
    blocks = [a[k] * pl.lazy(pl.Dense(R[k])) + x[1] * pl.Identity(m) for k in range(g)]
    value = pl.logdet(pl.BlockDiag(*blocks))
    due = [np.trace(np.linalg.inv(1.3 * r + 0.7 * np.eye(m)) @ r) for r in R]
    for wanted in ((0,), (0, 1), (1, 5), tuple(range(g))):
        got = pl.evaluate(*pl.gradients(value, [a[k] for k in wanted]))
        got = got if len(wanted) > 1 else (got,)
        np.testing.assert_allclose(got, [due[k] for k in wanted], rtol=1e-12)
    both = pl.evaluate(*pl.gradients(value, [x, a[2]]))
    np.testing.assert_allclose(both[1], due[2], rtol=1e-12)
    np.testing.assert_allclose(both[0][0], sum(due), rtol=1e-12)


@pytest.mark.parametrize("batch", [1, 2, 16])
@pytest.mark.parametrize("columns", [1, 2])
def test_a_kron_beside_a_batch_of_diagonals(batch, columns):
    rng = np.random.default_rng([batch, columns])
    P, Q = rng.standard_normal((2, 4, 4))
    d, b = 8 + rng.random((batch, 16)), rng.standard_normal((16, columns))

    def f(c, one=True):
        K = pl.Kron(P, Q) if one else pl.lazy(np.kron(P, Q))
        return np.sum(np.linalg.solve(c * K + pl.Diag(d), b) ** 2)

    c = np.array(0.7)
    due = pl.grad(lambda c: f(c, False))(c)
    np.testing.assert_allclose(pl.grad(f)(c), due, rtol=1e-10)
    twice = pl.hvp(lambda c: f(c, False))(c, c)
    np.testing.assert_allclose(pl.hvp(f)(c, c), twice, rtol=1e-9)
