"""Products: of kernels of the coordinates of all pairs of points, entry by entry; around an
inverse."""

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

import pylinop.pytensor as pp
from pylinop.pytensor import products


def pairs(x, z):
    return np.stack([np.repeat(x, len(z)), np.tile(z, len(x))], 1)


def kernel(x, scale):
    """Of points that are no grid."""
    return pt.exp(-pt.sum((x[:, None, :] - x[None, :, :]) ** 2, axis=-1) / scale)


def by_dots(x, scale):
    squares = pt.sum(x**2, axis=1)
    return pt.exp((2 * pt.dot(x, x.T) - squares[:, None] - squares[None, :]) / scale)


@pytest.mark.parametrize("form", [kernel, by_dots])
@pytest.mark.parametrize(("m", "k"), [(2, 2), (3, 5), (16, 2), (4, 17)])
def test_kernels_of_pairs(m, k, form, rng):
    X = pairs(rng.standard_normal(m), rng.standard_normal(k))
    a, b, c, s, y = (*(pt.dscalar(n) for n in "abcs"), pt.dvector("y"))
    K = c * form(X[:, :1], a) * form(X[:, 1:], b) + s * pt.eye(m * k)
    [report] = pp.explain(graphs.by_cholesky(K, y))
    assert "kron(symmetric, symmetric)" in report.structure
    on, off = compiled([a, b, c, s, y], graphs.by_cholesky(K, y), [a, b, c, s, y])
    assert used(*on.maker.fgraph.outputs)
    same(on, off, 0.7, 1.3, 2.0, 0.4, rng.standard_normal(m * k), rtol=1e-8)
    turned = form(X[:, 1:], b) * form(X[:, :1], a)  # the order of the factors is that of the points
    assert pp.explain(graphs.by_cholesky(turned + s * pt.eye(m * k), y))[0].structure == (
        "sum(kron(symmetric, symmetric), identity)"
    )


def test_what_is_no_product_of_kernels_of_pairs(rng):
    X = pairs(rng.standard_normal(4), rng.standard_normal(5))
    near = X.copy()
    near[7, 1] += 1e-12
    a, s, W = pt.dscalar("a"), pt.dscalar("s"), pt.tensor("W", shape=(20, 20))
    first, second = kernel(X[:, :1], a), kernel(X[:, 1:], a)
    assert products.factors([first, second]) is not None
    for other in (
        first,  # of one coordinate twice
        kernel(near[:, 1:], a),
        kernel(X[rng.permutation(20)][:, 1:], a),
        kernel(X, a),
        kernel(X[:, 1:], a) @ W,
        kernel(X[:, 1:], a) + pt.eye(20),
        W,
        pt.cumsum(second, axis=0),
    ):
        assert products.factors([first, other]) is None
    assert products.factors([second, first, second, second]) is not None
    pp.config(least_dense=1000)
    y = pt.dvector("y")
    [report] = pp.explain(graphs.by_cholesky(first * kernel(near[:, 1:], a) + s * pt.eye(20), y))
    assert report.reason


@pytest.mark.parametrize("names", ["kron", "active_dims"])
def test_processes_of_pymc(names, rng):
    pm = pytest.importorskip("pymc")
    X = pm.math.cartesian(np.sort(rng.random(5))[:, None], np.sort(rng.random(6))[:, None])
    with pm.Model() as model:
        a, b, s = (pm.HalfNormal(name, 1) for name in "abs")
        if names == "kron":
            kernel = pm.gp.cov.Kron([pm.gp.cov.ExpQuad(1, a), pm.gp.cov.Matern52(1, b)])
        else:
            kernel = pm.gp.cov.ExpQuad(2, a, active_dims=[0])
            kernel = kernel * pm.gp.cov.Matern52(2, b, active_dims=[1])
        gp = pm.gp.Marginal(cov_func=kernel)
        gp.marginal_likelihood("y", X, rng.standard_normal(30), sigma=s)
    [report] = pp.explain(model)
    assert report.structure == "sum(kron(symmetric, symmetric), identity, identity)"

    def density():
        found = model.logp_dlogp_function(ravel_inputs=True, mode="FAST_COMPILE")
        found.set_extra_values({})
        return found

    on = density()
    with pp.off():
        off = density()
    for x in rng.standard_normal((3, 3)):
        for found, due in zip(on(x), off(x), strict=True):
            np.testing.assert_allclose(found, due, rtol=1e-8, atol=1e-8 * np.abs(due).max())


# -- A' inv(C) A of few rows, as of inducing points ------------------------------------------------


@pytest.mark.parametrize("written", ["solve", "cho_solve"])
@pytest.mark.parametrize("n", [2, 17, 40])
def test_a_product_around_an_inverse_is_a_root(written, n, rng):
    pp.config(least_dense=1000)  # C itself is left to PyTensor
    C, A, d, y = pt.dmatrix("C"), pt.dmatrix("A"), pt.dvector("d"), pt.dvector("y")
    if written == "solve":
        x = pt.linalg.solve(C, A, assume_a="pos")
    else:
        x = pt.linalg.cho_solve((pt.linalg.cholesky(C), True), A)
    f = graphs.by_cholesky(A.T @ x + pt.diag(d), y)
    assert [r.structure for r in pp.explain(f) if not r.reason] == ["sum(root, diagonal)"]
    wrt = [A, d, y]
    on, off = compiled([C, *wrt], f, wrt)
    k = max(1, n // 4)
    same(on, off, graphs.definite(k), rng.standard_normal((k, n)), 1 + rng.random(n), np.ones(n))
    other = graphs.by_cholesky(pt.cos(A).T @ x + pt.diag(d), y)  # not from both sides
    assert all("root" not in r.structure for r in pp.explain(other))
