"""Transforms of JAX over results of operators, against those over the dense form."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp
from jax.test_util import check_grads

import pylinop.jax as pj

N = 6


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def arrays(dtype="d"):
    rng = np.random.default_rng(2)

    def draw(*shape):
        x = rng.standard_normal(shape)
        return jnp.asarray(x + 1j * rng.standard_normal(shape) if dtype == "D" else x)

    return draw(N) * 0.2 + 4, draw(N, 2), draw(N)


def ours(d, U):
    return pj.Diag(d) + pj.LowRank(U)


def theirs(d, U):
    return jnp.diag(d) + U @ U.conj().T


def solved(d, U, y):
    return pj.solve(ours(d, U), y)


def solved_dense(d, U, y):
    return jnp.linalg.solve(theirs(d, U), y)


def likelihood(d, U, y):
    quad, logdet = pj.inv_quad_logdet(ours(d, U), y)
    return jnp.real(quad) + jnp.real(logdet)


def likelihood_dense(d, U, y):
    K = theirs(d, U)
    quad = jnp.real(y.conj() @ jnp.linalg.solve(K, y))
    return quad + jnp.linalg.slogdet(K)[1]


def close(got, due):
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(due), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


PAIRS = {"solve": (solved, solved_dense), "likelihood": (likelihood, likelihood_dense)}


@pytest.mark.parametrize("name", PAIRS)
def test_third_order_in_both_modes(name):
    check_grads(PAIRS[name][0], arrays(), 3, modes=["fwd", "rev"], eps=1e-4)


@pytest.mark.parametrize("outer", [jax.jacfwd, jax.jacrev])
@pytest.mark.parametrize("inner", [jax.jacfwd, jax.jacrev])
@pytest.mark.parametrize("name", PAIRS)
def test_hessians_in_all_orders(name, inner, outer):
    f, g = PAIRS[name]
    at = arrays()
    due = jax.jacfwd(jax.jacfwd(g, (0, 1, 2)), (0, 1, 2))(*at)
    close(outer(inner(f, (0, 1, 2)), (0, 1, 2))(*at), due)
    close(jax.jit(outer(inner(f, (0, 1, 2)), (0, 1, 2)))(*at), due)


def test_hessian_times_vector_in_three_ways():
    at, step = arrays(), arrays()[::-1]
    step = tuple(jnp.ones_like(a) for a in at)

    def inner(grads):
        return sum(jnp.sum(g * s) for g, s in zip(grads, step, strict=True))

    every = (0, 1, 2)
    due = jax.grad(lambda *p: inner(jax.grad(likelihood_dense, every)(*p)), every)(*at)
    f = likelihood
    close(jax.jvp(lambda *p: jax.grad(f, every)(*p), at, step)[1], due)
    close(jax.grad(lambda *p: inner(jax.grad(f, every)(*p)), every)(*at), due)
    close(jax.grad(lambda *p: jax.jvp(f, p, step)[1], every)(*at), due)


@pytest.mark.parametrize("name", PAIRS)
def test_complex(name):
    """JAX's gradients are the conjugates of pylinop's."""
    f, g = PAIRS[name]
    at = arrays("D")

    def number(h):
        return lambda *p: jnp.sum(jnp.abs(h(*p)) ** 2) + jnp.real(jnp.sum(h(*p) * (1 + 2j)))

    every = (0, 1, 2)
    close(jax.grad(number(f), every)(*at), jax.grad(number(g), every)(*at))
    step = tuple(a * (0.3 - 1j) for a in at)
    close(jax.jvp(f, at, step), jax.jvp(g, at, step))
    close(jax.jit(jax.grad(number(f), every))(*at), jax.grad(number(g), every)(*at))


def _stack(at):
    d, U, y = at
    return jnp.stack([d, d + 1, 2 * d]), jnp.stack([U, 2 * U, -U]), jnp.stack([y, y + 1, 3 * y])


AXES = [(0, 0, 0), (0, None, None), (None, None, 0), (None, 0, 0)]


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("name", PAIRS)
def test_batches(name, axes):
    f, g = PAIRS[name]
    one, several = arrays(), _stack(arrays())
    at = [b if k == 0 else a for a, b, k in zip(one, several, axes)]
    close(jax.vmap(f, axes)(*at), jax.vmap(g, axes)(*at))
    close(jax.jit(jax.vmap(f, axes))(*at), jax.vmap(g, axes)(*at))
    every = (0, 1, 2)
    close(jax.vmap(jax.jacrev(f, every), axes)(*at), jax.vmap(jax.jacrev(g, every), axes)(*at))

    def total(h):
        return lambda *p: jnp.sum(jnp.sin(jax.vmap(h, axes)(*p)))

    close(jax.grad(total(f), every)(*at), jax.grad(total(g), every)(*at))
    step = [jnp.ones_like(a) for a in at]
    close(jax.jvp(jax.vmap(f, axes), at, step), jax.jvp(jax.vmap(g, axes), at, step))


def test_batches_of_batches_at_other_axes():
    d, U, y = arrays()
    D, Y = jnp.stack([d, d + 1], 1), jnp.stack([y, 2 * y, 3 * y], 1)

    def both(h):
        return jax.vmap(jax.vmap(h, (1, None, None)), (None, None, 1), 1)(D, U, Y)

    close(both(solved), both(solved_dense))


def test_scan():
    d, U, y = arrays()
    rows = jnp.stack([y, 2 * y, y + 1])

    def total(h):
        def step(c, x):
            return c + h(d + c**2, U, x), jnp.sum(c)

        return lambda y: sum(map(jnp.sum, jax.lax.scan(step, y, rows)))

    for derive in (jax.grad, jax.jacfwd, jax.hessian, lambda f: jax.jit(jax.grad(f))):
        close(derive(total(solved))(y), derive(total(solved_dense))(y))


def test_loops_conditions_and_checkpoints():
    d, U, y = arrays()

    def f(h):
        def inner(d):
            big = jax.lax.cond(jnp.sum(d) > 0, lambda d: h(d, U, y), lambda d: y, d)
            return jax.lax.fori_loop(0, 3, lambda k, x: x + h(d, U, x), big)

        return lambda d: jnp.sum(jax.checkpoint(inner)(d) ** 2)

    close(jax.jit(f(solved))(d), f(solved_dense)(d))
    close(jax.jacfwd(f(solved))(d), jax.jacfwd(f(solved_dense))(d))
    close(jax.grad(f(solved))(d), jax.jacfwd(f(solved_dense))(d))


def test_operators_are_pytrees():
    d, U, y = arrays()
    K = ours(d, U)
    assert [a.shape for a in jax.tree.leaves(K)] == [(N,), (N, 2)]
    same = jax.tree.map(lambda a: a, K)
    close(same.toarray(), K.toarray())
    close(jax.jit(lambda K: K @ K)(K).toarray(), K.toarray() @ K.toarray())
    g = jax.grad(pj.logdet)(K)
    due = jax.grad(lambda d, U: jnp.linalg.slogdet(theirs(d, U))[1], (0, 1))(d, U)
    close(jax.tree.leaves(g), list(due))
    D = jnp.stack([d, d + 1])
    several = jax.vmap(pj.Diag)(D)
    close(jax.vmap(pj.logdet)(several), jnp.sum(jnp.log(D), 1))
    step = jax.tree.map(jnp.ones_like, K)
    assert jax.jvp(pj.logdet, (K,), (step,))[1].shape == ()


def test_leaves_do_not_depend_on_what_they_are():
    """Filters and masks put one object in the place of all arrays."""
    d, U, y = arrays()
    D = pj.Diag(d)
    K = D @ pj.LowRank(U) @ D + pj.Diag(d)
    assert len(jax.tree.leaves(K)) == 3
    mask = jax.tree.map(lambda a: True, K)
    same = jax.tree.map(lambda a, on: a if on else None, K, mask)
    close(same.toarray(), K.toarray())
    assert jax.tree.structure(same) == jax.tree.structure(K) == jax.tree.structure(mask)
    close(
        jax.grad(lambda d: jnp.sum((pj.Diag(d) @ pj.LowRank(U) @ pj.Diag(d)) @ y))(d),
        jax.grad(lambda d: jnp.sum(jnp.diag(d) @ U @ U.T @ jnp.diag(d) @ y))(d),
    )


def test_one_call_of_one_program():
    d, U, y = arrays()
    jaxpr = jax.make_jaxpr(likelihood)(d, U, y)
    assert [e.primitive.name for e in jaxpr.eqns].count("pylinop") == 1
    jaxpr = jax.make_jaxpr(jax.value_and_grad(likelihood, (0, 1, 2)))(d, U, y)
    assert [e.primitive.name for e in jaxpr.eqns].count("pylinop") == 1
