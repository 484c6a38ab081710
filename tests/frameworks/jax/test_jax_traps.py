"""Traps around programs in JAX, each of which raises or is right: rules of the user's own around
ours, arrays of NumPy with strides, buffers that are given away, threads."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp
from frameworks.reading_functions import WAYS

import pylinop as pl
import pylinop.jax as pj
from pylinop._base import dlpack

N = 6


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


@pytest.fixture
def at():
    rng = np.random.default_rng()
    d, U, y = rng.random(N) + 1, rng.standard_normal((N, 2)), rng.standard_normal(N)
    return tuple(map(jnp.asarray, (d, U, y)))


def value(d, U, y):
    quad, logdet = pj.inv_quad_logdet(pj.Diag(d) + pj.LowRank(U), y)
    return quad + logdet


def dense(d, U, y):
    C = jnp.diag(d) + U @ U.T
    return y @ jnp.linalg.solve(C, y) + jnp.linalg.slogdet(C)[1]


def close(got, due):
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(due), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


def with_own_vjp(f):
    own = jax.custom_vjp(f)
    own.defvjp(lambda *p: (f(*p), p), lambda p, g: jax.vjp(f, *p)[1](g))
    return own


def with_own_jvp(f):
    own = jax.custom_jvp(f)
    own.defjvp(lambda p, t: jax.jvp(f, p, t))
    return own


def test_own_rules_around_ours(at):
    step = tuple(jnp.ones_like(a) for a in at)
    every = (0, 1, 2)
    for own in (with_own_vjp(value), with_own_jvp(value)):
        for grad in (jax.grad, lambda f, by: jax.jit(jax.grad(f, by)), jax.jacrev):
            close(grad(own, every)(*at), jax.grad(dense, every)(*at))
    close(jax.jvp(with_own_jvp(value), at, step), jax.jvp(dense, at, step))
    close(jax.hessian(with_own_jvp(value))(*at), jax.hessian(dense)(*at))
    with pytest.raises(TypeError, match=r"forward-mode.*custom_vjp"):
        jax.jvp(with_own_vjp(value), at, step)


def test_ours_within_a_rule(at):
    """A tangent that is made by a program has forward mode alone, and says so; one that is an
    expression of JAX in the tangents has both."""
    d, U, y = at
    due = lambda d: jnp.linalg.slogdet(jnp.diag(d) + U @ U.T)[1]

    def ruled(rule):
        own = jax.custom_jvp(due)
        own.defjvp(lambda p, t: (due(p[0]), rule(pj.Diag(p[0]) + pj.LowRank(U), t[0])))
        return own

    whole = ruled(lambda K, t: pj.trace(pj.inv(K) @ pj.Diag(t)))
    close(jax.jvp(whole, (d,), (y,)), jax.jvp(due, (d,), (y,)))
    with pytest.raises(NotImplementedError, match="is not linear: it has no transpose"):
        jax.grad(whole)(d)
    parted = ruled(lambda K, t: jnp.sum(pj.diagonal(pj.inv(K)) * t))
    close(jax.grad(parted)(d), jax.grad(due)(d))
    close(jax.jit(jax.hessian(parted))(d), jax.hessian(due)(d))


def strided():
    """Matrices of NumPy whose entries are not in order, or have no place of their own."""
    rng = np.random.default_rng()
    yield "transposed", rng.standard_normal((N, N)).T
    yield "stepped", rng.standard_normal((2 * N, 3 * N))[::2, ::3]
    yield "backwards", rng.standard_normal((N, N))[::-1, ::-1]
    yield "strides of zero", np.broadcast_to(rng.standard_normal((N, 1)), (N, N))
    yield "read only", np.frombuffer(rng.standard_normal((N, N)).tobytes()).reshape(N, N)
    yield "Fortran's order", np.asfortranarray(rng.standard_normal((N, N)))


@pytest.mark.parametrize("name, a", list(strided()))
def test_strides(name, a, at):
    x = at[2]
    for f in (
        lambda a, op: jnp.sum((op(a) @ x) ** 2),
        lambda a, op: jnp.sum((op(a).T @ x) * a[0]),
        lambda a, op: jnp.sum(jnp.sin(op(a) @ (op(a) @ x))),
    ):
        ours, due = f(a, pj.Dense), f(jnp.asarray(a), lambda a: a)
        close(ours, due)
        close(jax.jit(lambda a: f(a, pj.Dense))(a), due)
        close(jax.grad(lambda a: f(a, pj.Dense))(a), jax.grad(lambda a: f(a, lambda a: a))(a))


def test_transposed_inputs_under_jit(at):
    """XLA chooses layouts by itself."""
    d, U, y = at
    f = lambda V: value(d, V.T[:, ::-1], y)
    due = lambda V: dense(d, V.T[:, ::-1], y)
    close(jax.jit(f)(U.T), due(U.T))
    close(jax.jit(jax.grad(f))(U.T), jax.grad(due)(U.T))


def test_donated_gradients(at):
    """A training step that gives its parameters away."""

    def step(f):
        def made(params, y):
            grads = jax.grad(f, (0, 1))(*params, y)
            return tuple(p - 0.01 * g for p, g in zip(params, grads, strict=True))

        return made

    ours, due = jax.jit(step(value), donate_argnums=0), step(dense)
    params, others = tuple(map(jnp.array, at[:2])), at[:2]
    for _ in range(4):
        before, params = params, ours(params, at[2])
        others = due(others, at[2])
        assert all(a.is_deleted() for a in before)
        close(params, others)
    with pytest.raises(RuntimeError, match="deleted"):
        value(*before, at[2])


def test_one_operator_in_threads(at):
    d, U, y = at
    K = pj.Diag(d) + pj.LowRank(U)
    due = jax.grad(dense, (0, 1))(*at)
    compiled = jax.jit(jax.grad(lambda K: sum(pj.inv_quad_logdet(K, y))))
    start = threading.Barrier(4)

    def work(k):
        if k < 4:
            start.wait(30)
        with jax.enable_x64(True):
            if k % 2:
                return jax.tree.leaves(compiled(K))
            return jax.grad(value, (0, 1))(d, U, y)

    with ThreadPoolExecutor(4) as pool:
        for got in pool.map(work, range(24)):
            close(got, due)


@pytest.mark.parametrize("way", WAYS)
def test_numbers_that_a_function_reads_are_those_of_the_call(way):
    f, write = WAYS[way]()
    g, d = pj.program(f), jnp.asarray(np.random.default_rng().random(3) + 1)
    for c in (1.0, 2.0, 2.0, 2.0, 2.0, 3.0, 1.0, 2.0):
        write(c)
        np.testing.assert_allclose(g(d), jnp.log(c * d).sum(), rtol=1e-12)
        np.testing.assert_allclose(jax.grad(g)(d), 1 / d, rtol=1e-12)


def test_results_are_nested_as_for_the_shapes_of_the_call():
    f = pj.program(lambda x: [np.sum(x)] * 2 if len(x) == 2 else {"x": 2 * x})
    two, three = jnp.ones(2), jnp.ones(3)
    for _ in range(3):
        assert type(f(two)) is list and len(f(two)) == 2
        np.testing.assert_allclose(f(three)["x"], 2 * three)


def test_numbers_of_a_compiled_function_are_those_of_its_trace_or_an_error():
    """JAX's rule for numbers that are read. Where the function must run again, it says so."""
    c = 2.0
    g = pj.program(lambda d: pl.trace(c * pl.Diag(d)))
    d = jnp.ones(3)
    whole = jax.jit(g)
    assert whole(d) == 6
    c = 5.0
    for _ in range(5):
        assert whole(d) == 6
    early = jax.jit(pj.program(lambda d: pl.trace(c * pl.Diag(d)))).lower(d).compile()
    c = 7.0
    with pytest.raises(Exception, match=r"c, which .* was 5\.0 .* is 7\.0 now"):
        early(d)


@pytest.mark.parametrize("n", [1, 2, 100])
def test_arrays_are_taken_where_they_lie(n):
    """The second time by a shorter way: read-only, the same memory; given away is an error."""
    for dtype in (np.float32, np.float64, np.complex128, np.int64):
        x = jnp.arange(n).astype(dtype) + 1
        first, again = dlpack.taken(x), dlpack.taken(x)
        for a in (first, again):
            assert a.__array_interface__["data"] == (x.unsafe_buffer_pointer(), True)
            assert dlpack.is_immutable(a) and a.dtype == dtype
            np.testing.assert_array_equal(a, np.arange(n) + 1)
    x.delete()
    with pytest.raises((TypeError, RuntimeError), match="deleted"):
        dlpack.taken(x)
    half = dlpack.as_array(jnp.ones(3, jnp.float16))
    assert half.dtype == np.float16
    with pytest.raises(TypeError):
        pl.Diag(jnp.ones(3, jnp.bfloat16))


@pytest.mark.parametrize(
    "way",
    [
        jax.grad,
        jax.hessian,
        lambda f: jax.jit(jax.grad(f)),
        lambda f: lambda s: jax.jvp(f, (s,), (1.0,))[1],
        lambda f: jax.vmap(jax.grad(f), in_axes=None, axis_size=2),
    ],
)
def test_numbers_of_python_by_which_is_differentiated(way):
    """JAX hands them to rules as they are, without a shape."""
    x = jnp.arange(1.0, 4.0)

    def ours(s):
        return (pj.Kernel("rbf", x[:, None], length_scale=s) @ x).sum() + pj.logdet(s * pj.Diag(x))

    def dense(s):
        return (jnp.exp(-((x[:, None] - x) ** 2) / (2 * s**2)) @ x).sum() + jnp.log(s * x).sum()

    np.testing.assert_allclose(way(ours)(2.0), way(dense)(2.0), rtol=1e-12)
