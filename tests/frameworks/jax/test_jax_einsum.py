"""einsum of JAX's arrays: values and derivatives against jax.numpy.einsum, jit, vmap."""

import numpy as np
import pytest

import pylinop as pl

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

import pylinop.jax as pj  # noqa: E402

EQUATIONS = [
    ("ij,jk,k->i", ((4, 5), (5, 3), (3,))),
    ("bhqd,bkhd->bhqk", ((2, 3, 4, 5), (2, 6, 3, 5))),
    ("aij,ajk->ik", ((3, 4, 2), (3, 2, 5))),
    ("ki,k,kj->ij", ((6, 3), (6,), (6, 3))),
]


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("text, shapes", EQUATIONS)
def test_values_and_derivatives(text, shapes, jit, rng):
    given = tuple(jnp.asarray(rng.normal(size=s)) for s in shapes)
    tangent = tuple(jnp.asarray(rng.normal(size=s)) for s in shapes)

    def ours(*a):
        return pj.einsum(text, *a)

    def theirs(*a):
        return jnp.einsum(text, *a)

    f = jax.jit(ours) if jit else ours
    close = {"rtol": 2e-5, "atol": 2e-5} if given[0].dtype == np.float32 else {"rtol": 1e-10}
    np.testing.assert_allclose(f(*given), theirs(*given), **close)
    for x, y in zip(jax.jvp(f, given, tangent), jax.jvp(theirs, given, tangent)):
        np.testing.assert_allclose(x, y, **close)
    every = tuple(range(len(given)))
    x, y = (
        jax.grad(lambda *a, g=g: (g(*a) ** 2).sum(), argnums=every)(*given) for g in (f, theirs)
    )
    for a, b in zip(x, y):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    batched = jax.vmap(f)(*(jnp.stack([a, 2 * a]) for a in given))
    np.testing.assert_allclose(batched[0], theirs(*given), **close)


def test_wrong_use(rng):
    a = jnp.ones((3, 4))
    with pytest.raises(TypeError, match="text first"):
        pj.einsum(a, a)
    with pytest.raises(ValueError, match="size 4"):
        pj.einsum("ij,jk->ik", a, jnp.ones((3, 2)))
    np.testing.assert_allclose(pl.einsum("ij,kj->ik", a, np.ones((2, 4))), np.full((3, 2), 4.0))
    with pytest.raises(TypeError, match="[Tt]rac"):
        jax.jit(lambda x: pl.einsum("ij,kj->ik", x, x))(a)


@pytest.mark.parametrize("jit", [False, True])
def test_operators_in_a_contraction(jit, rng):
    d, a = jnp.asarray(rng.normal(size=4)), jnp.asarray(rng.normal(size=(4, 4)))

    def ours(d, a):
        return pj.einsum("ij,jk,ki->", pj.Diag(d), a, pj.Toeplitz(d))

    def theirs(d, a):
        return jnp.sum((d[:, None] * a) * d[abs(jnp.arange(4)[:, None] - jnp.arange(4))])

    f = jax.jit(ours) if jit else ours
    close = {"rtol": 2e-5, "atol": 2e-5} if d.dtype == np.float32 else {"rtol": 1e-10}
    np.testing.assert_allclose(f(d, a), theirs(d, a), **close)
    for x, y in zip(jax.grad(f, (0, 1))(d, a), jax.grad(theirs, (0, 1))(d, a)):
        np.testing.assert_allclose(x, y, **close)
    found = pj.einsum("ij,jk->ik", pj.Diag(d), pj.Diag(d))
    assert isinstance(found, pj.Operator)
    np.testing.assert_allclose(found.toarray(), np.diag(d * d), **close)
