"""Programs under PyTensor's JAX linker, and JAX's own gradient of what it makes."""

import subprocess
import sys

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor")
jax = pytest.importorskip("jax")

import pytensor.tensor as pt
from frameworks.pytensor import pytensor_graphs as graphs
from frameworks.pytensor.test_pytensor_rewrites import (  # noqa: F401
    PLAIN,
    compiled,
    same,
    small_sizes,
)

import pylinop.pytensor as pp
from pylinop.jax import handler


@pytest.mark.parametrize("row", [graphs.root, graphs.toeplitz, graphs.kron_alone])
def test_jax_runs_the_same(row):
    inputs, K, values = row(9)
    y = pt.dvector("y")
    f = graphs.by_cholesky(K, y)
    rewritten = pp.rewrite(f)
    found = pytensor.grad(rewritten, [*inputs, y])
    on = pytensor.function([*inputs, y], [rewritten, *found], mode="JAX")
    off = compiled([*inputs, y], f, [*inputs, y])[1]
    same(on, off, *values, np.ones(27 if row is graphs.kron_alone else 9))


def test_jax_is_imported_where_it_is_asked_for():
    """With programs in the graph, by the linker, in a new process; not by our import."""
    text = """
import sys, numpy as np, pytensor, pytensor.tensor as pt
import pylinop.pytensor as pp
pp.config(least=0)
d, e, y = pt.dvector(), pt.dscalar(), pt.dvector()
K = pt.diag(d) + e
f = pt.sum(pt.linalg.solve_triangular(pt.linalg.cholesky(K), y, lower=True) ** 2)
assert "jax" not in sys.modules and not pp.explain(f)[0].reason
run = pytensor.function([d, e, y], f, mode="JAX")
x = np.arange(1.0, 6.0)
print(float(run(x, 0.5, np.ones(5))) - np.linalg.solve(np.diag(x) + 0.5, np.ones(5)).sum())
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert abs(float(done.stdout)) < 1e-13


def test_derivatives_by_jax():
    inputs, K, values = graphs.root(9)
    y = pt.dvector("y")
    on = pytensor.function([*inputs, y], pp.rewrite(graphs.by_cholesky(K, y)), mode="JAX")
    given = [jax.numpy.asarray(v) for v in (*values, np.ones(9))]
    found = jax.grad(lambda *a: on.vm.jit_fn(*a)[0], argnums=(0, 1, 2))(*given)
    due = compiled([*inputs, y], graphs.by_cholesky(K, y), [*inputs, y])[1](*values, np.ones(9))
    for a, b in zip(found, due[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9)
    lows = jax.numpy.stack([given[1], -given[1]])
    many = jax.vmap(lambda d: on.vm.jit_fn(given[0], d, given[2])[0])(lows)
    assert np.isfinite(many[0]) and np.isnan(many[1])


@pytest.mark.parametrize("has_handler", [True, False])
def test_from_c_or_called_back(has_handler, monkeypatch, rng):
    """The same values and gradients; from C from the third call on, where XLA can call it."""
    if not has_handler:
        monkeypatch.setattr(handler, "there", lambda: False)
    inputs, K, _ = graphs.root(17)
    y = pt.dvector("y")
    f = pp.rewrite(graphs.by_cholesky(K, y))
    wrt = [*inputs, y]
    on = pytensor.function(wrt, [f, *pytensor.grad(f, wrt)], mode="JAX")
    off = compiled(wrt, graphs.by_cholesky(K, y), wrt)[1]
    for _ in range(4):
        given = rng.standard_normal((17, 3)), 1 + rng.random(17), rng.standard_normal(17)
        same(on, off, *given)
    roads = {r.road for r in pp.explain(on)}
    assert roads == ({"from C"} if has_handler else {"in Python: XLA calls back"})
    assert np.isnan(on(given[0], -9 - given[1], given[2])[0])


def test_stacks_under_jax(rng):
    W, d, y = pt.tensor("W", shape=(3, 12, 2)), pt.tensor("d", shape=(3, 12)), pt.dmatrix("y")
    L = pt.linalg.cholesky(W @ W.mT + d[:, :, None] * pt.eye(12))
    z = pt.linalg.solve_triangular(L, y, lower=True, b_ndim=1)
    g = pt.sum(z**2) + pt.sum(pt.log(pt.diagonal(L, axis1=-2, axis2=-1)))
    f = pp.rewrite(g)
    on = pytensor.function([W, d, y], [f, *pytensor.grad(f, [W, d, y])], mode="JAX")
    assert "values of" in str(pp.explain(on))
    with pp.off():
        off = pytensor.function([W, d, y], [g, *pytensor.grad(g, [W, d, y])], mode=PLAIN)
    same(on, off, rng.standard_normal((3, 12, 2)), 1 + rng.random((3, 12)), rng.random((3, 12)))
