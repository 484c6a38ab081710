"""Ways of JAX users' that go by doors of their own: meshes of devices, transposes of functions that
are linear, numbers of weak dtypes, trees of other things, half precision."""

import subprocess
import sys

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp

import pylinop.jax as pj

N = 5


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


@pytest.fixture
def at():
    rng = np.random.default_rng(4)
    d, U, y = rng.random(N) + 1, rng.standard_normal((N, 2)), rng.standard_normal(N)
    return tuple(map(jnp.asarray, (d, U, y)))


def close(got, due):
    np.testing.assert_allclose(got, due, rtol=1e-9, atol=1e-10)


ON_TWO_DEVICES = """
import jax, jax.numpy as jnp, numpy as np, pylinop.jax as pj
jax.config.update("jax_enable_x64", True)
from jax.sharding import PartitionSpec as P
rng = np.random.default_rng(4)
d, U, ys = (jnp.asarray(rng.random(s) + 1) for s in ((5,), (5, 2), (4, 5)))
ours = lambda d, U, y: sum(pj.inv_quad_logdet(pj.Diag(d) + pj.LowRank(U), y))
def dense(d, U, y):
    A = jnp.diag(d) + U @ U.T
    return y @ jnp.linalg.solve(A, y) + jnp.linalg.slogdet(A)[1]
parts = dict(mesh=jax.sharding.Mesh(np.array(jax.devices()), ("x",)), in_specs=(P(), P(), P("x")))
total = lambda f: lambda d, U, ys: jnp.sum(jax.vmap(f, (None, None, 0))(d, U, ys) ** 2)
def shared(f):
    each = lambda d, U, ys: jax.vmap(f, (None, None, 0))(d, U, ys)
    whole = jax.shard_map(each, out_specs=P("x"), **parts)
    return lambda d, U, ys: jnp.sum(whole(d, U, ys) ** 2)
within = jax.shard_map(jax.grad(total(ours), (0, 1)), out_specs=P(), **parts)
due = jax.grad(total(dense), (0, 1, 2))(d, U, ys)
for got in (jax.jit(jax.grad(shared(ours), (0, 1, 2)))(d, U, ys), jax.jit(within)(d, U, ys)):
    for a, b in zip(got, due):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)
got, due = (jax.hessian(f)(d, U, ys) for f in (shared(ours), total(dense)))
np.testing.assert_allclose(got, due, rtol=1e-9, atol=1e-9)
"""


@pytest.mark.skipif(not hasattr(jax, "shard_map"), reason="a JAX without jax.shard_map")
def test_gradients_on_a_mesh(monkeypatch):
    """What is shared by the devices has the sum of their cotangents: those of one had come out."""
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
    ran = subprocess.run([sys.executable, "-c", ON_TWO_DEVICES], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_transposes_of_linear_functions(at):
    d, U, y = at
    K, A = pj.Diag(d) + pj.LowRank(U[:, :1], U[:, 1:]), jnp.diag(d) + U[:, :1] @ U[:, 1:].T
    for f, due in (
        (lambda x: K @ x, A.T @ y),
        (lambda x: x @ K, A @ y),
        (lambda x: pj.solve(K, x), jnp.linalg.solve(A.T, y)),
        (lambda x: K @ pj.solve(K @ K, x) - 2 * x, jnp.linalg.solve(A.T, y) - 2 * y),
        (lambda x: jax.vmap(lambda c: K @ (c * x))(d).sum(0), d.sum() * (A.T @ y)),
    ):
        transposed = jax.linear_transpose(f, y)
        close(transposed(y)[0], due)
        close(jax.jit(transposed)(y)[0], due)
    for f in (lambda x: pj.Diag(x) @ x, lambda x: pj.logdet(pj.Diag(x)), lambda x: pj.Diag(x) @ y):
        with pytest.raises(NotImplementedError, match="it has no transpose"):
            jax.linear_transpose(f, y)(f(y))


def test_products_are_linear_in_forward_mode(at):
    d, U, y = at
    K, C = lambda d: pj.Diag(d) + pj.LowRank(U), lambda d: jnp.diag(d) + U @ U.T
    for ours, dense in (
        (lambda d, x: K(d) @ x, lambda d, x: C(d) @ x),
        (lambda d, x: pj.solve(K(d), x), lambda d, x: jnp.linalg.solve(C(d), x)),
    ):
        close(jax.jvp(lambda x: ours(d, x), (y,), (d,))[1], dense(d, d))
        close(jax.jacfwd(lambda x: ours(d, x))(y), jax.jacfwd(lambda x: dense(d, x))(y))
        close(jax.jacrev(lambda x: ours(d, x))(y), jax.jacrev(lambda x: dense(d, x))(y))
        both = lambda f: jax.jit(jax.hessian(lambda t: jnp.sum(f(d + t, y * t) ** 2)))(d)
        close(both(ours), both(dense))


def test_integers_do_not_widen():
    a = jnp.eye(3, dtype=jnp.float32)
    for c in (np.int64(2), jnp.asarray(2, jnp.int64), np.bool_(True), np.float32(2)):
        assert (pj.Dense(a) * c).dtype == (a * c).dtype == jnp.float32
        assert ((pj.Dense(a) / c) @ jnp.ones(3, jnp.float32)).dtype == jnp.float32


def test_numbers_of_weak_dtypes():
    a, x = jnp.ones((2, 2), jnp.float32), jnp.ones(2, jnp.float32)
    for c in (2, 2.0, jnp.asarray(2.0), jnp.asarray(2), jax.lax.stop_gradient(2.0), np.float64(2)):
        for mine, due in ((pj.Dense(a) * c, a * c), (pj.Dense(a) / c, a / c)):
            assert mine.dtype == due.dtype and (mine @ x).dtype == (due @ x).dtype
    scaled = jax.jit(lambda c: (c * pj.Dense(a)) @ x)
    assert scaled(2.0).dtype == jnp.float32
    assert scaled(jnp.asarray(2.0, jnp.float64)).dtype == jnp.float64
    close(jax.grad(lambda c: jnp.sum((c * pj.Dense(a)) @ x))(2.0), 4.0)


def test_trees_of_other_things(at):
    K = pj.Diag(at[0]) + pj.LowRank(at[1])
    leaves, structure = jax.tree.flatten(K)
    for others in ([object(), object()], [None, None], ["a", "b"]):
        tree = jax.tree.unflatten(structure, others)
        assert jax.tree.leaves(tree, is_leaf=lambda x: x is None) == others
        assert "without its arrays" in repr(tree)
    assert [x.shape for x in leaves] == [(N,), (N, 2)]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn"])
def test_half_precision_is_refused(dtype, at):
    a = jnp.eye(N).astype(dtype)
    for f in (
        pj.Dense,
        lambda a: pj.Diag(at[0]) @ a[0],
        lambda a: pj.Diag(at[0]) * a[0, 0],
        jax.jit(lambda a: pj.solve(pj.Dense(a), a[0])),
        lambda a: pj.einsum("i j, j -> i", a, a[0]),
        pj.program(lambda a: a @ a),
    ):
        with pytest.raises(TypeError, match=rf"no arrays of dtype {dtype} .*astype\('float32'\)"):
            f(a)
