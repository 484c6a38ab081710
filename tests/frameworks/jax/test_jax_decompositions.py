"""Eigenvectors, singular vectors and functions of matrices on arrays of JAX, with derivatives."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp
from jax.test_util import check_grads

import pylinop.jax as pj

W = np.linspace(-1, 2, 5)


def even(a):
    return (a + a.T) / 2


FUNCTIONS = {
    "eigenvalues": lambda a: pj.eigh(pj.Dense(even(a))).eigenvalues,
    "projections": lambda a: pj.eigh(pj.Dense(even(a))).eigenvectors[:, :2] ** 2,
    "singular-values": lambda a: pj.svd(a[:3]).S,
    "exponential": lambda a: pj.expm(pj.Dense(a * 0.1)) @ W,
    "root": lambda a: pj.sqrtm(pj.Dense(even(a), "her")) @ W,
    "logarithm": lambda a: pj.logm(pj.Dense(even(a), "her")).toarray(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name, rng):
    with jax.enable_x64(True):
        a = rng.standard_normal((5, 5))
        f = FUNCTIONS[name]
        check_grads(f, (jnp.asarray(a @ a.T + np.eye(5)),), 1)
        found, jitted = f(jnp.asarray(a @ a.T)), jax.jit(f)(jnp.asarray(a @ a.T))
        np.testing.assert_allclose(found, jitted, rtol=1e-10, atol=1e-12)
