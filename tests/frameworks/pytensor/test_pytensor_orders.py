"""Second derivatives by finite differences of the first, matrices without rows, and the graph that
is made."""

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor")

import pytensor.tensor as pt
from frameworks.pytensor import pytensor_graphs as graphs
from frameworks.pytensor.test_pytensor_rewrites import (
    PLAIN,
    small_sizes,  # noqa: F401
    used,
)
from pytensor.graph.basic import equal_computations

import pylinop.pytensor as pp

ROWS = [
    graphs.root,
    graphs.weighted,
    graphs.constant,
    graphs.kron_alone,
    graphs.tridiagonal,
    graphs.noisy,
    graphs.dense,
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.__name__)
def test_second_order(row):
    """A gradient is a program, and so is its gradient."""
    inputs, K, values = row(3 if row is graphs.kron_alone else 9)
    y = pt.dvector("y")
    wrt = [*inputs, y]
    given = [*values, np.sin(np.arange(float(K.eval(dict(zip(inputs, values))).shape[0])))]
    r = np.random.default_rng(0)
    along = [r.standard_normal(np.shape(v)) for v in given]
    first = pytensor.grad(pp.rewrite(graphs.by_cholesky(K, y)), wrt)
    slope = sum(pt.sum(g * v) for g, v in zip(first, along, strict=True))
    f = pytensor.function(wrt, [*first, *pytensor.grad(slope, wrt)], mode=PLAIN)
    assert used(*f.maker.fgraph.outputs)
    h, n = 1e-5, len(wrt)
    found = f(*given)[n:]
    up, down = (f(*(x + s * v for x, v in zip(given, along, strict=True)))[:n] for s in (h, -h))
    size = max(np.abs(x).max() for x in found)
    for a, b, c in zip(found, up, down, strict=True):
        np.testing.assert_allclose(a, (b - c) / (2 * h), atol=1e-6 * size, rtol=1e-6)


EMPTY = [graphs.root, graphs.gram, graphs.weighted, graphs.congruence, graphs.blocks]


@pytest.mark.parametrize("row", EMPTY, ids=lambda row: row.__name__)
def test_no_rows(row):
    """The determinant is 1, squares are 0, and gradients are empty or zero."""
    inputs, K, values = row(4)
    y = pt.dvector("y")
    f = pp.rewrite(graphs.by_cholesky(K, y))
    on = pytensor.function([*inputs, y], [f, *pytensor.grad(f, [*inputs, y])], mode=PLAIN)
    assert used(*on.maker.fgraph.outputs)
    empty = [np.zeros([0 if n in (3, 4) else n for n in v.shape]) for v in values]
    if row is graphs.congruence:
        empty[2] = values[2]
    value, *slopes = on(*empty, np.zeros(0))
    assert value == 0
    for given, slope in zip([*empty, np.zeros(0)], slopes, strict=True):
        assert slope.shape == given.shape and not slope.any()


def test_the_graph_that_is_made():
    """One program in place of the factor, and nothing else of it is left."""
    inputs, K, _ = graphs.root(5)
    y = pt.dvector("y")
    tree = ("sum", ("root", 0), ("diagonal", 1))
    found = pp.rewrite(graphs.by_cholesky(K, y))
    spec = ("values", tree, (("logdet",), ("squares", 2)), 3)
    logdet, square = pp.Structured(repr(spec))(*inputs, y, return_list=True)
    due = np.float64(-0.5) * square - logdet / 2
    shown = [pytensor.dprint(x, file="str", print_type=True) for x in (found, due)]
    assert shown[0] == shown[1]
    assert equal_computations([found], [due])


def test_gradient_of_a_solve_by_factors_that_are_not_symmetric():
    """PyTensor's gradient solves with the transpose: its factors were read without transposing."""
    A, B, b = (
        pt.tensor("A", shape=(4, 4)),
        pt.tensor("B", shape=(4, 4)),
        pt.tensor("b", shape=(16,)),
    )
    r = np.random.default_rng(19)
    values = [r.normal(size=(4, 4)), r.normal(size=(4, 4)), r.normal(size=16)]
    for K in (pt.eye(16) - pt.linalg.kron(A, B), pt.eye(16) + pt.linalg.kron(A, B).T):
        x = pt.linalg.solve(K, b, b_ndim=1)
        asked = [x, *pytensor.grad((x * np.arange(16.0)).sum(), [A, B, b])]
        function = pytensor.function([A, B, b], asked)
        ops = [str(node.op) for node in function.maker.fgraph.toposort()]
        assert sum("Structured" in op for op in ops) == 2
        with pp.off():
            wanted = pytensor.function([A, B, b], asked)(*values)
        for found, w in zip(function(*values), wanted, strict=True):
            np.testing.assert_allclose(found, w, rtol=1e-8, atol=1e-8 * np.abs(w).max())
