"""JAX's transformations over operators of the array API: what is traced lies on no device, and may
stand beside arrays that lie on one."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp

import pylinop.array_api as pa


def likelihood(d, U, y):
    A = pa.Diag(d) + pa.LowRank(U)
    return pa.logdet(A) + y @ pa.solve(A, y)


def by_hand(d, U, y):
    A = jnp.diag(d) + U @ U.T
    return jnp.linalg.slogdet(A)[1] + y @ jnp.linalg.solve(A, y)


OVER = {
    "hessian": jax.hessian,
    "vmap": lambda f: lambda d, U, y: jax.vmap(f, (None, None, 0))(d, U, jnp.stack([y, 2 * y])),
    "jit of vmap of grad": lambda f: (
        lambda d, U, y: jax.jit(jax.vmap(jax.grad(f, (0, 1)), (0, None, None)))(
            jnp.stack([d, 2 * d]), U, y
        )
    ),
    "scan of grad": lambda f: (
        lambda d, U, y: jax.lax.scan(
            lambda c, v: (c + jax.grad(f)(d, U, v), None), 0 * d, jnp.stack([y, 2 * y])
        )[0]
    ),
}


@pytest.mark.parametrize("over", OVER)
def test_transformations(over):
    """Where not all is traced: eagerly, of few functions, which JAX compiles one by one."""
    ours = (lambda d, U, y: y @ (pa.Diag(d) @ (pa.Dense(U) @ (U.T @ y))), likelihood)
    dense = (lambda d, U, y: y @ (d * (U @ (U.T @ y))), by_hand)
    compiled = over not in ("hessian", "vmap")
    with jax.enable_x64(True):
        rng = np.random.default_rng(41)
        at = [jnp.asarray(x) for x in (1 + rng.random(5), rng.random((5, 2)), rng.random(5))]
        f, due = ours[compiled], dense[compiled]
        for x, y in zip(*(jax.tree.leaves(OVER[over](g)(*at)) for g in (f, due)), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)


def test_exponentials_under_jit():
    with jax.enable_x64(True):
        a = jnp.asarray(np.random.default_rng(42).standard_normal((4, 4)))
        found = jax.jit(lambda a: pa.expm(pa.Dense(a)).toarray())(a)
        np.testing.assert_allclose(found, jax.scipy.linalg.expm(a), rtol=1e-11, atol=1e-12)
        root = jax.jit(lambda a: pa.sqrtm(pa.Dense(a @ a.T, assume_a="sym")).toarray())(a)
        np.testing.assert_allclose(root @ root, a @ a.T, rtol=1e-10, atol=1e-11)


def test_exponentials_on_strict_arrays():
    xp = pytest.importorskip("array_api_strict")
    d, y = np.array([0.5, -1.0, 2.0]), np.ones(3)
    a = xp.asarray(np.diag(d) + np.diag(np.ones(2), 1), device=xp.Device("device1"))
    found = pa.expm(pa.Dense(a)) @ xp.asarray(y, device=xp.Device("device1"))
    assert found.device == xp.Device("device1")
    due = np.asarray(jax.scipy.linalg.expm(np.diag(d) + np.diag(np.ones(2), 1)) @ y)
    found = np.asarray(found.to_device(xp.Device("CPU_DEVICE")))
    np.testing.assert_allclose(found, due, rtol=1e-6)
