"""Stacks of covariances: one program for each matrix of a stack, and what is left alone."""

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
from pytensor.tensor.blockwise import Blockwise

import pylinop.pytensor as pp


def density(K, y):
    """Of vectors along the last axis, as `pm.MvNormal` writes it."""
    L = pt.linalg.cholesky(K)
    z = pt.linalg.solve_triangular(L, y, lower=True, b_ndim=1)
    diagonal = pt.diagonal(L, axis1=-2, axis2=-1)
    logs = pt.log(diagonal).sum(axis=-1)
    return pt.sum(pt.sin(-0.5 * (z**2).sum(axis=-1) - logs) + pt.all(diagonal > 0, axis=-1))


def solutions(K, y):
    L = pt.linalg.cholesky(K)
    x = pt.linalg.solve_triangular(L.mT, pt.linalg.solve_triangular(L, y[..., None], lower=True))
    return pt.sin(x).sum() + pt.sum(pt.log(pt.diagonal(L, axis1=-2, axis2=-1)))


def low_rank(b, n, rng):
    W, d = pt.dtensor3("W"), pt.dmatrix("d")
    K = W @ W.mT + d[:, :, None] * pt.eye(n)
    return [W, d], K, [rng.standard_normal((b, n, 2)), 0.5 + rng.random((b, n))]


def shared_loadings(b, n, rng):
    W, d = pt.dmatrix("W"), pt.dmatrix("d")
    K = (W @ W.T)[None] + pt.eye(n) * d[:, None, :]
    return [W, d], K, [rng.standard_normal((n, 2)), 0.5 + rng.random((b, n))]


def grids(b, n, rng):
    a, s = pt.dvector("a"), pt.dscalar("s")
    K = pt.exp(-graphs.distances(n) * a[:, None, None]) + s * pt.eye(n)
    return [a, s], K, [0.3 + rng.random(b), np.array(0.3)]


def krons(b, n, rng):
    a, s = pt.dvector("a"), pt.dvector("s")
    A = pt.exp(-a[:, None, None] * graphs.distances(n))
    B = pt.exp(-a[:, None, None] * graphs.distances(3))
    one = pt.vectorize(pt.linalg.kron, signature="(m,m),(n,n)->(o,o)")(A, B)
    return (
        [a, s],
        one + s[:, None, None] * pt.eye(3 * n),
        [0.5 + rng.random(b), 0.2 + rng.random(b)],
    )


ROWS = {
    low_rank: "sum(root, diagonal)",
    shared_loadings: "sum(root, diagonal)",
    grids: "sum(toeplitz, identity)",
    krons: "sum(kron(symmetric, symmetric), identity)",
}


@pytest.mark.parametrize("form", [density, solutions])
@pytest.mark.parametrize(("b", "n"), [(1, 16), (4, 5), (2, 33)])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.__name__)
def test_rows(row, b, n, form, rng):
    inputs, K, values = row(b, n, rng)
    y = pt.dmatrix("y")
    on, off = compiled([*inputs, y], form(K, y), [*inputs, y])
    rows = 3 * n if row is krons else n
    same(on, off, *values, rng.standard_normal((b, rows)))
    [report] = pp.explain(form(K, y))
    assert report.structure == ROWS[row]
    assert (
        "logdet" in report.asked and ("solve" if form is solutions else "squares") in report.asked
    )
    assert any(
        isinstance(node.op, Blockwise) and isinstance(node.op.core_op, pp.Structured)
        for node in on.maker.fgraph.apply_nodes
    )


def test_many_draws_for_each_matrix_of_a_stack(rng):
    """(draws, stack, rows) as of observed values, and the same for all matrices."""
    inputs, K, values = grids(3, 12, rng)
    for y, given in (
        (pt.dtensor3("y"), rng.standard_normal((5, 3, 12))),
        (pt.dvector("y"), rng.standard_normal(12)),
        (pt.tensor("y", shape=(7, 1, 12)), rng.standard_normal((7, 1, 12))),
    ):
        on, off = compiled([*inputs, y], density(K, y), [*inputs, y])
        same(on, off, *values, given)
        assert not pp.explain(density(K, y))[0].reason


def test_one_that_is_not_definite_is_nan_alone(rng):
    inputs, K, values = low_rank(4, 9, rng)
    L = pt.linalg.cholesky(K)
    logs = pt.log(pt.diagonal(L, axis1=-2, axis2=-1)).sum(axis=-1)
    f = pytensor.function(inputs, pp.rewrite(logs), mode="FAST_COMPILE")
    values[1][2] = -50.0
    found = f(*values)
    due = [
        np.linalg.slogdet(w @ w.T + np.diag(d))[1] / 2 if k != 2 else np.nan
        for k, (w, d) in enumerate(zip(*values, strict=True))
    ]
    np.testing.assert_allclose(found, due, rtol=1e-12)


def test_stacks_of_dense_matrices_and_flops():
    x, a, y = np.sort(np.random.default_rng(0).random(32)), pt.tensor("a", shape=(3,)), None
    K = pt.exp(-a[:, None, None] * np.subtract.outer(x, x) ** 2) + 0.1 * pt.eye(32)
    y = pt.tensor("y", shape=(3, 32))
    on, off = compiled([a, y], density(K, y), [a, y])
    same(on, off, np.array([0.5, 1.0, 2.0]), np.ones((3, 32)))
    [report] = pp.explain(density(K, y))
    assert report.structure == "dense" and report.before == 3 * (32**3 / 3 + 32**2)
    assert report.after == 3 * report.plans[0].flops


def test_stacks_that_are_left_alone():
    several = pt.dtensor4("K")
    assert pp.explain(density(several, pt.dtensor3("y")))[0].reason == "a batch of matrices"
    W, d = pt.dtensor3("W"), pt.dmatrix("d")
    K = W @ W.mT + d[:, :, None] * pt.eye(9)
    L = pt.linalg.cholesky(K)
    z = pt.linalg.solve_triangular(L, pt.dtensor3("y"), lower=True)
    assert "a triangular solve is used by" in pp.explain(z.mT @ z)[0].reason
    assert not used(pp.rewrite(pt.sum(z.mT @ z)))
    front = pt.linalg.cholesky(K[None])
    x = pt.linalg.cho_solve((front, True), pt.dtensor4("Y"), b_ndim=2)
    assert "a batch of right-hand sides" in pp.explain(pt.sum(x))[0].reason
    by_rows = W[::-1] @ W.mT + d[:, :, None] * pt.eye(9)
    pp.config(least_dense=100)
    assert pp.explain(density(by_rows, pt.dmatrix("y")))[0].reason


@pytest.mark.slow
def test_stacks_under_numba(rng):
    """Value and gradient, from C after some calls."""
    inputs, K, values = grids(3, 16, rng)
    y = pt.dmatrix("y")
    L = pt.linalg.cholesky(K)
    z = pt.linalg.solve_triangular(L, y, lower=True, b_ndim=1)
    f = -pt.sum(z**2) - pt.sum(pt.log(pt.diagonal(L, axis1=-2, axis2=-1)))
    on = compiled([*inputs, y], f, inputs, mode="NUMBA")[0]
    off = compiled([*inputs, y], f, inputs)[1]
    for _ in range(4):
        same(on, off, values[0] + rng.random(3), values[1], rng.standard_normal((3, 16)))
