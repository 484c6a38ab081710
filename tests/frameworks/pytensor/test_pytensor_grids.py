"""Matrices on constant regular grids are Toeplitz however they are written; others are not."""

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor")

import pytensor.tensor as pt
from frameworks.pytensor import pytensor_graphs as graphs
from frameworks.pytensor.test_pytensor_rewrites import (  # noqa: F401
    PLAIN,
    compiled,
    same,
    small_sizes,
    used,
)

import pylinop.pytensor as pp

R = np.random.default_rng(0)


def stretched(x, length):
    """Squared distances as x'x + y'y - 2 xy of the points divided."""
    z = x[:, None] / length
    return pt.sum(z**2, 1)[:, None] + pt.sum(z**2, 1)[None, :] - 2 * pt.dot(z, z.T)


def differences(x, length):
    return ((x[:, None] - x[None, :]) / length) ** 2


def clipped(x, length):
    """As pm.gp.cov writes them."""
    z = pt.mul(x[:, None], 1.0 / length)
    squares = pt.sum(pt.square(z), 1)
    both = pt.reshape(squares, (-1, 1)) + pt.reshape(squares, (1, -1))
    return pt.clip(-2.0 * pt.dot(z, pt.transpose(z)) + both, 0.0, np.inf)


def after(x, length):
    """The differences of points that are divided before."""
    z = x / length
    return pt.square(pt.abs(z[:, None] - z[None, :]))


def products(x, length):
    z = x[:, None] / length
    return z**2 - 2 * z * z.T + (z**2).T


FORMS = [stretched, differences, clipped, after, products]
GRIDS = {
    "whole": lambda n: np.arange(n),
    "from 3": lambda n: 3 + 0.1 * np.arange(n),
    "linspace": lambda n: np.linspace(-1.7, 2.9, n),
    "down": lambda n: np.linspace(5.0, -3.0, n),
}


@pytest.mark.parametrize("n", [3, 12, 65])
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_regular_grids(form, grid, n):
    x = GRIDS[grid](n).astype(float)
    length, s, y = pt.dscalar("length"), pt.dscalar("s"), pt.dvector("y")
    K = s**2 * pt.exp(-0.5 * form(x, length)) + 0.3 * pt.eye(n)
    f = graphs.by_cholesky(K, y)
    on, off = compiled([length, s, y], f, [length, s, y])
    assert used(*on.maker.fgraph.outputs)
    assert "toeplitz" in pp.explain(f)[-1].structure
    same(on, off, np.array(0.8), np.array(1.3), R.standard_normal(n), rtol=1e-8)


def odd(x, length):
    return pt.sin(np.subtract.outer(x, x) / length)


@pytest.mark.parametrize("n", [4, 30])
def test_odd_functions_squared_are_even(n):
    x = np.linspace(0, 7.3, n)
    length, y = pt.dscalar("length"), pt.dvector("y")
    for even in (odd(x, length) ** 2, pt.abs(odd(x, length)), odd(x, length) * odd(x, length)):
        f = graphs.by_cholesky(pt.exp(-2 * even) + pt.eye(n), y)
        on, off = compiled([length, y], f, [length, y])
        assert "toeplitz" in pp.explain(f)[-1].structure
        same(on, off, np.array(1.9), R.standard_normal(n), rtol=1e-8)


@pytest.mark.parametrize(
    "matrix",
    [
        lambda x, c: pt.exp(-0.5 * stretched(np.sort(R.random(12)), c)),  # points here and there
        lambda x, c: pt.exp(-0.5 * stretched(x + 1e-12 * np.eye(12)[3] * 12, c)),
        lambda x, c: pt.exp(odd(x, c)),  # neither odd nor even
        lambda x, c: pt.exp(-0.1 * odd(x, c) ** 3),
        lambda x, c: pt.exp(-(c * x[:, None] ** 2 + x[None, :] ** 2 - 2 * x[:, None] * x[None, :])),
        lambda x, c: pt.exp(-((c * x[:, None] - x[None, :]) ** 2)),
        lambda x, c: pt.exp(-0.1 * (x[:, None] + x[None, :]) ** 2 * c),
        lambda x, c: pt.exp(-0.1 * c * (x[:, None] - x[None, :] + 1.0) ** 2),
        lambda x, c: pt.exp(-0.1 * c * (x[:, None] - 2 * x[None, :]) ** 2),
        lambda x, c: pt.exp(-c * ((x[:, None] / 3 - (x / 3)[None, :] / c) ** 2)),
    ],
)
def test_near_misses(matrix):
    """Not functions of |i - j|, or not seen to be: left as they are, and right."""
    x, c, y = np.arange(12.0), pt.dscalar("c"), pt.dvector("y")
    M = matrix(x, c)
    product = M @ M.T / 12 + pt.eye(12)
    with_it = pt.exp(-graphs.distances(12)) * pt.exp(-0.01 * (M + M.T)) + 2 * pt.eye(12)
    for K in (product, with_it):
        f = graphs.by_cholesky(K, y)
        assert all("toeplitz" not in r.structure for r in pp.explain(f))
        on, off = compiled([c, y], f, [c, y])
        same(on, off, np.array(1.2), np.sin(np.arange(12.0)), rtol=1e-8)


def test_single_precision():
    x = (0.1 * np.arange(40)).astype("float32")
    length, y = pt.fscalar("length"), pt.fvector("y")
    z = x[:, None] / length
    K = pt.exp(-((z - z.T) ** 2)) + pt.eye(40, dtype="float32")
    f = graphs.by_cholesky(K, y)
    assert f.dtype == "float32" and "toeplitz" in pp.explain(f)[-1].structure
    on, off = compiled([length, y], f, [length, y])
    same(on, off, np.float32(0.7), np.sin(x), rtol=1e-4)


def test_large_shared_sums_are_read_once():
    """Sixty doublings: as a tree there would be 2^60 parts."""
    x, c = np.arange(10.0), pt.dscalar("c")
    v = c * x[:, None] - c * x[None, :]
    for _ in range(60):
        v = v + pt.sin(v) * v
    pp.explain(graphs.by_cholesky(pt.exp(-(v**2)) + pt.eye(10), pt.dvector("y")))
