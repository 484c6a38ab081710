"""Constant sparse matrices that are no bands: a Gaussian Markov random field by its precision."""

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor")

import pytensor.tensor as pt
from frameworks.pytensor.test_pytensor_rewrites import (
    compiled,
    same,
    small_sizes,  # noqa: F401
    used,
)

import pylinop.pytensor as pp
from pylinop.pytensor import constants, definite, patterns


def neighbours(n, rng, more=0):
    """Of points on a grid of two columns, in any order, and of `more` pairs besides."""
    a = np.zeros((n, n))
    i = np.arange(n)
    a[i[:-1], i[1:]] = a[i[:-2], i[2:]] = 1.0
    a[rng.integers(0, n, more), rng.integers(0, n, more)] = 1.0
    np.fill_diagonal(a, 0.0)
    order = rng.permutation(n)
    return np.maximum(a, a.T)[np.ix_(order, order)]


def density(K, y):
    L = pt.linalg.cholesky(K)
    z = pt.linalg.solve_triangular(L, y, lower=True)
    return pt.sum(z**2) / 2 - pt.sum(pt.log(pt.diag(L)))


@pytest.mark.parametrize("form", ["covariance", "precision", "general"])
@pytest.mark.parametrize("n", [40, 100])
def test_a_field_runs_by_sparse_factors(form, n, rng, monkeypatch):
    monkeypatch.setattr(constants, "SPARSE", 1)
    tau, rho, y = pt.dscalar("tau"), pt.dscalar("rho"), pt.dvector("y")
    d, W = pt.tensor("d", shape=(n,)), neighbours(n, rng)
    Q = tau * (pt.diag(d) - rho * W) + 1e-6 * pt.eye(n)
    if form == "general":
        f = y @ pt.linalg.solve(Q, y) + pt.log(pt.abs(pt.linalg.det(Q)))
    else:
        f = density(pt.linalg.inv(Q) if form == "precision" else Q, y)
    (report,) = pp.explain(f)
    assert "sparse" in report.structure and not report.reason
    inputs = [tau, rho, d, y]
    on, off = compiled(inputs, f, inputs)
    assert used(*on.maker.fgraph.outputs)
    degrees = W.sum(0)
    for r in (0.9, 0.99, -0.5):  # the sum of a row is positive
        same(on, off, 1.3, r, degrees, rng.standard_normal(n), rtol=1e-8)
    below = np.linalg.eigvalsh(W)[-1]
    same(on, off, 1.3, 0.9, np.full(n, below), rng.standard_normal(n), rtol=1e-8)  # the pivots are
    if form != "general":
        for t, r in ((1.3, 1.2), (-1.0, 0.5), (1.3, np.nan)):
            assert np.isnan(on(t, r, degrees, rng.standard_normal(n))[0])


@pytest.mark.parametrize("n", [1, 2, 16, 40])
def test_patterns_come_back(n, rng):
    a = rng.standard_normal((n, n)) * (rng.random((n, n)) < 0.3)
    word = patterns.packed(*np.nonzero(a), n)
    found = patterns.unpacked(word).copy()
    found.data = a[np.nonzero(a)]
    assert np.array_equal(found.toarray(), a)
    assert patterns.unpacked(word) is patterns.unpacked(word)


@pytest.mark.parametrize("n", [2, 17, 60])
def test_what_is_proved_is_definite(n, rng):
    """Also where rows do not outweigh what is beside the diagonal; never what is not."""
    told = set()
    for c in (0.3, 0.8, 1.0, 1.05, 1.6):
        W = neighbours(n, rng, n // 4)
        K = np.linalg.eigvalsh(W)[-1] * c * np.eye(n) - W
        terms = ("sum", ("identity", 0), ("sparse", patterns.packed(*np.nonzero(W), n), 1))
        arrays = [np.array(K[0, 0]), -W[np.nonzero(W)]]
        is_proved = definite.proved(("values", terms, (), 2), arrays)
        assert is_proved == (c > 1) or c == 1.0
        told.add(is_proved)
        assert not definite.proved(("values", terms, (), 2), [arrays[0], arrays[1] * np.nan])
    assert told == {True, False}


def test_which_constants_are_sparse(rng):
    n = constants.SPARSE
    W = neighbours(n, rng)
    assert constants.what(W)[0] == "sparse"
    assert constants.what(W[1:, 1:])[0] == "dense"  # too few rows
    W[3, 5] = 2.0
    assert constants.what(W)[0] == "dense"  # not symmetric
    W = neighbours(n, rng, 9 * n)
    assert constants.what(W)[0] == "dense"
