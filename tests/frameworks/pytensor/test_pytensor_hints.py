"""`hint(K, "dense")`: one matrix that is left to PyTensor."""

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor")

import pytensor.tensor as pt
from frameworks.pytensor import pytensor_graphs as graphs
from frameworks.pytensor.test_pytensor_rewrites import (
    compiled,
    same,
    small_sizes,  # noqa: F401
    used,
)
from pytensor.assumptions import assume

import pylinop.pytensor as pp


def likelihood(K, y):
    L = pt.linalg.cholesky(K)
    z = pt.linalg.solve_triangular(L, y, lower=True)
    return pt.sum(z**2) / 2 + pt.sum(pt.log(pt.diag(L)))


@pytest.mark.parametrize(("n", "least_dense"), [(2, 0), (17, 16)])
def test_a_hinted_matrix_is_left_to_pytensor(n, least_dense):
    pp.config(least=0, least_dense=least_dense)
    inputs, K, values = graphs.root(n)
    y = pt.vector("y", shape=(n,))
    hinted = pp.hint(pt.specify_shape(K, (n, n)), "dense")
    f = likelihood(hinted, y)
    assert not used(pp.rewrite(f))
    assert used(pp.rewrite(likelihood(K, y)))
    (report,) = pp.explain(f)
    assert report.reason == "hint(K, 'dense') asks for that" and not report.structure
    on, off = compiled([*inputs, y], f, inputs)
    assert not used(*on.maker.fgraph.outputs)
    same(on, off, *values, np.random.default_rng().standard_normal(n))


@pytest.mark.parametrize("written", ["turned", "in a batch of one", "assumed", "constant", "solve"])
def test_a_hint_is_seen_through_what_is_around_it(written):
    n = 20
    (_, d), K, _ = graphs.root(n)
    y = pt.dvector("y")
    if written == "constant":
        K = graphs.definite(n)
    K = pp.hint(K, "dense")
    K = {"turned": K.T, "in a batch of one": K[None]}.get(written, K)
    if written == "solve":
        f = pt.sum(pt.linalg.solve(K, y))
    elif written == "assumed":
        f = pt.sum(pt.linalg.solve(assume(K, positive_definite=True), y))
    else:
        f = pt.log(pt.diagonal(pt.linalg.cholesky(K), axis1=-2, axis2=-1)).sum()
    (report,) = pp.explain(f)
    assert report.reason == "hint(K, 'dense') asks for that"


def test_a_matrix_with_a_hinted_part_is_dense():
    _, K, _ = graphs.root(20)
    y = pt.dvector("y")
    (report,) = pp.explain(likelihood(pp.hint(K, "dense") + pt.eye(20), y))
    assert (report.structure, report.reason) == ("dense", "")
    (report,) = pp.explain(likelihood(K + pt.eye(20), y))
    assert report.structure == "sum(root, diagonal, identity)"


def test_hints_that_are_none():
    with pytest.raises(ValueError, match="a hint is 'dense', not 'low'"):
        pp.hint(pt.dmatrix("K"), "low")
    with pytest.raises(ValueError, match="not on an array of 1 dimensions"):
        pp.hint(pt.dvector("d"), "dense")
