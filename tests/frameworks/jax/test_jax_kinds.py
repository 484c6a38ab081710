"""Every kind that has derivatives, and every action, on arrays of JAX: values against the dense
form, gradients against pylinop's own, which are tested against differences, and against JAX's of
the dense form."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp
from frameworks.framework_kinds import tables
from jax.test_util import check_grads

import pylinop as pl
import pylinop.jax as pj

OURS, PLAIN = tables(pj), tables(pl)
NAMES = list(PLAIN.KINDS)
# The second cotangents of the one pass the core's limit of 1024 nodes, the others have none.
FIRST_ONLY = {"kron, three", "reflections", "reflections, all"}
SINGULAR = {"lowrank, U", "offdiag"}


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def given(name, dtype="d"):
    """What makes the operator of JAX's arrays, the plain one, the arrays, and what draws more."""
    m = PLAIN.Make("float64" if dtype == "d" else "complex128")
    plain, arrays = PLAIN.KINDS[name](m)
    ours, _ = OURS.KINDS[name](OURS.Make("float64" if dtype == "d" else "complex128"))
    return ours, plain, [jnp.asarray(a) for a in arrays], arrays, m


def dense(plain, arrays):
    return np.asarray(pl.lazy(plain(*arrays)).toarray())


def close(got, due, factor=1.0):
    scale = max(1.0, float(np.max(np.abs(due), initial=0)))
    assert np.shape(got) == np.shape(due)
    assert np.max(np.abs(np.asarray(got) - due), initial=0) <= factor * 1e-10 * scale


@pytest.mark.parametrize("dtype", ["d", "D"])
@pytest.mark.parametrize("name", NAMES)
def test_values(name, dtype):
    ours, plain, arrays, held, m = given(name, dtype)
    A = dense(plain, held)
    K = ours(*arrays)
    assert K.shape == A.shape and K.dtype == A.dtype
    x, X, w = m.a(A.shape[1]), m.a(A.shape[1], 3), m.a(A.shape[0])
    for run in (lambda f: f, jax.jit):
        close(run(lambda K: K.toarray())(K), A)
        close(run(lambda K, x: K @ x)(K, x), A @ x)
        close(run(lambda K, x: K @ x)(K, X), A @ X)
        close(run(lambda K, w: w @ K)(K, jnp.asarray(w)), w @ A)
        close(run(lambda K, w: K.H @ w)(K, w), A.conj().T @ w)
        close(run(lambda K, w: K.T @ w)(K, w), A.T @ w)
        close(run(pj.diagonal)(K), np.diagonal(A))
        close(run(lambda K: (2.5 * K + K / 2 - K).toarray())(K), 2 * A)
        close(run(lambda K: K[1, 2])(K), A[1, 2])
        close(run(lambda K: K[1:3].toarray())(K), A[1:3])


@pytest.mark.parametrize("dtype", ["d", "D"])
@pytest.mark.parametrize("name", NAMES)
def test_solves_and_determinants(name, dtype):
    ours, plain, arrays, held, m = given(name, dtype)
    A = dense(plain, held)
    if A.shape[0] != A.shape[1] or name in SINGULAR:
        pytest.skip("not square, or singular")
    K, b = ours(*arrays), m.a(len(A))
    inverse = np.linalg.inv(A)
    sign, logabs = np.linalg.slogdet(A)
    for run in (lambda f: f, jax.jit):
        close(run(pj.solve)(K, b), inverse @ b, 100)
        close(run(lambda K, b: pj.inv(K) @ b)(K, b), inverse @ b, 100)
        close(run(lambda K, b: b @ pj.inv(K))(K, jnp.asarray(b)), b @ inverse, 100)
        close(run(lambda K: pj.inv(K).toarray())(K), inverse, 100)
        close(run(pj.trace)(K), np.trace(A))
        found = run(pj.slogdet)(K)
        close(found.sign, sign)
        close(found.logabsdet, logabs)
        close(run(pj.det)(K), np.linalg.det(A))
        close(run(lambda K, b: pj.inv_quad_logdet(K, b)[0])(K, b), b.conj() @ inverse @ b, 100)


def actions(make, np_, pl_):
    """Real numbers of the parameters, x and w, in which each action has its part."""

    def applied(x, w, *p):
        return np_.real(np_.sum((make(*p) @ x) ** 2 * w))

    def whole(x, w, *p):
        K = make(*p)
        return np_.sum(np_.abs(K.toarray() if pl_ is pj else pl.lazy(K) * 1.0) ** 2)

    def diagonal(x, w, *p):
        return np_.sum(np_.abs(pl_.diagonal(make(*p))) ** 2)

    def solved(x, w, *p):
        return np_.real(np_.sum(pl_.solve(make(*p), x) ** 2 * w))

    def determined(x, w, *p):
        return pl_.slogdet(make(*p))[1]

    def both(x, w, *p):
        K = make(*p)
        return np_.real(np_.sum(x * pl_.solve(K, w))) * pl_.slogdet(K)[1]

    def inverted(x, w, *p):
        return np_.sum(np_.abs(pl_.diagonal(pl_.inv(make(*p)))) ** 2)

    return [applied, whole, diagonal], [solved, determined, both, inverted]


@pytest.mark.parametrize("dtype", ["d", "D"])
@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_pylinops(name, dtype):
    ours, plain, arrays, held, m = given(name, dtype)
    A = dense(plain, held)
    x, w = m.a(A.shape[1]), m.a(A.shape[0])
    theirs, mine = actions(ours, jnp, pj), actions(plain, np, pl)
    square = A.shape[0] == A.shape[1] and name not in SINGULAR
    pairs = list(zip(theirs[0], mine[0])) + square * list(zip(theirs[1], mine[1]))
    number = tuple(range(len(arrays) + 2))
    for f, g in pairs:
        due = pl.grad(g, number)(x, w, *held)
        for run in (lambda f: f, jax.jit):
            got = run(jax.grad(f, number))(jnp.asarray(x), jnp.asarray(w), *arrays)
            for one, other in zip(got, due, strict=True):
                close(one, np.conj(other), 100)


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_against_differences(name):
    ours, plain, arrays, held, m = given(name)
    A = dense(plain, held)
    x, w = jnp.asarray(m.a(A.shape[1])), jnp.asarray(m.a(A.shape[0]))
    first, second = actions(ours, jnp, pj)
    order = 1 if name in FIRST_ONLY else 2
    check_grads(lambda *p: ours(*p) @ x, arrays, order, modes=["fwd", "rev"])
    check_grads(lambda *p: first[0](x, w, *p), arrays, order, modes=["fwd", "rev"])
    if A.shape[0] == A.shape[1] and name not in SINGULAR:
        check_grads(lambda x, *p: pj.solve(ours(*p), x), [x, *arrays], order, modes=["fwd", "rev"])
        check_grads(lambda *p: second[2](x, w, *p), arrays, order, modes=["fwd", "rev"])


FAMILIES = PLAIN.FAMILIES


@pytest.mark.parametrize("family", FAMILIES)
def test_kernel(family):
    """Values and first derivatives, also by the points."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((6, 2)), rng.standard_normal(6)
    own = FAMILIES[family]

    def nll(pl_, np_):
        def f(v, length, s, X, *more):
            given = dict(zip(own, more, strict=True))
            K = pl_.Kernel(family, X, variance=v, length_scale=length, **given)
            q, logdet = pl_.inv_quad_logdet(K + s * pl_.Identity(6), y)
            return q + logdet

        return f

    args = [np.array(1.3), np.array(0.9), np.array(2.1), X, *own.values()]
    number = tuple(range(len(args)))
    value, due = pl.value_and_grad(nll(pl, np), number)(*args)
    for run in (lambda f: f, jax.jit):
        found, got = run(jax.value_and_grad(nll(pj, jnp), number))(*map(jnp.asarray, args))
        close(found, value)
        for one, other in zip(got, due, strict=True):
            close(one, other, 100)
