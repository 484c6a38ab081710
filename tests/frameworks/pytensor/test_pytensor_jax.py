"""Programs under PyTensor's JAX linker, and JAX's own gradient of what it makes."""

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor")
jax = pytest.importorskip("jax")

import pytensor.tensor as pt
from frameworks.pytensor import pytensor_graphs as graphs
from frameworks.pytensor.test_pytensor_rewrites import compiled, same, small_sizes  # noqa: F401

import pylinop.pytensor as pp
from pylinop.pytensor import dispatch_jax  # noqa: F401  (registers)


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
