"""Gradients of gradients of gradients: what a second gradient is made of depends on its cotangent
as on any other part, and each part counts once."""

import numpy as np
import pytest

import pylinop as pl

N = 5
RNG = np.random.default_rng(11)
KINDS = {
    "lowrank": (lambda p: pl.LowRank(p) + 2 * pl.Identity(N), RNG.standard_normal((N, 2))),
    "lowrank of two": (
        lambda p: pl.LowRank(p, np.sin(p) + p) + 2 * pl.Identity(N),
        RNG.standard_normal((N, 2)),
    ),
    "diag": (pl.Diag, RNG.random(N) + 2),
    "update": (lambda p: pl.LowRankUpdate(pl.Diag(p + 3), np.ones((N, 1))), RNG.random(N)),
    "kron": (lambda p: pl.Kron(p, p), RNG.standard_normal((2, 2)) + 3 * np.eye(2)),
    "root": (pl.Root, 0.1 * RNG.standard_normal((N, N)) + 2 * np.eye(N)),
}


def _second(make, directions):
    """A number of two derivatives. The sine makes the cotangent of a gradient depend on p."""

    def f(p):
        K = make(p)
        n = K.shape[0]
        value = pl.slogdet(K)[1] + np.sum(np.sin(pl.solve(K, np.arange(1.0, n + 1))))
        for w in directions:
            value = np.sum(np.sin(pl.gradients(value, p)) * w)
        return value

    return f


@pytest.mark.parametrize("name", KINDS)
def test_third_derivatives(name):
    make, p = KINDS[name]
    directions = [0.1 * RNG.standard_normal(p.shape) for _ in range(2)]
    step = RNG.standard_normal(p.shape)
    f = _second(make, directions)

    def along(t):
        return float(f(pl.lazy(p + t * step)))

    h = 1e-3
    due = (8 * (along(h) - along(-h)) - (along(2 * h) - along(-2 * h))) / (12 * h)
    got = np.sum(pl.grad(f)(p) * step)
    assert abs(got - due) <= 1e-7 * max(1, abs(due))
