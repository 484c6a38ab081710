"""lineax's operators and solvers with pylinop's, and equinox's filters over modules that hold
operators."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
lx = pytest.importorskip("lineax")
eqx = pytest.importorskip("equinox")

import jax.numpy as jnp

import pylinop.jax as pj
import pylinop.jax.lineax as pjl

N = 5


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def draw(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape))


def ours(d, U):
    return pjl.LinearOperator(pj.Diag(d) + pj.LowRank(U), lx.positive_semidefinite_tag)


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


def test_our_operators_in_lineax():
    d, U, y = draw(N) ** 2 + 1, draw(N, 2), draw(N, seed=1)
    A = ours(d, U)
    dense = jnp.diag(d) + U @ U.T
    close(A.mv(y), dense @ y)
    close(A.as_matrix(), dense)
    close(A.T.mv(y), dense.T @ y)
    close((2 * A + lx.DiagonalLinearOperator(d)).mv(y), 2 * dense @ y + d * y)
    close(lx.diagonal(A), jnp.diagonal(dense))
    assert A.in_size() == A.out_size() == N
    assert lx.is_positive_semidefinite(A) and lx.is_symmetric(A) and not lx.is_diagonal(A)
    assert lx.is_diagonal(pjl.LinearOperator(pj.Diag(d)))
    assert not lx.is_diagonal(pjl.LinearOperator(pj.Diag(d[1:], 1, (N, N))))
    due = jnp.linalg.solve(dense, y)
    for solver in (
        pjl.Structured(),
        lx.CG(1e-12, 1e-12),
        lx.Cholesky(),
        lx.LU(),
        lx.AutoLinearSolver(True),
    ):
        close(lx.linear_solve(A, y, solver).value, due)
        close(jax.jit(lambda A, y: lx.linear_solve(A, y, solver).value)(A, y), due)


@pytest.mark.parametrize("solver", [pjl.Structured(), lx.LU()])
def test_derivatives_of_lineaxs_solves(solver):
    d, U, y = draw(N) ** 2 + 1, draw(N, 2), draw(N, seed=1)

    def f(d, U, y):
        return jnp.sum(jnp.sin(lx.linear_solve(ours(d, U), y, solver).value))

    def g(d, U, y):
        return jnp.sum(jnp.sin(jnp.linalg.solve(jnp.diag(d) + U @ U.T, y)))

    every = (0, 1, 2)
    for got, due in zip(jax.grad(f, every)(d, U, y), jax.grad(g, every)(d, U, y), strict=True):
        close(got, due)
    close(jax.jacfwd(f)(d, U, y), jax.grad(g)(d, U, y))
    close(
        jax.jvp(jax.grad(f), (d, U, y), (d, U, y))[1], jax.jvp(jax.grad(g), (d, U, y), (d, U, y))[1]
    )
    D = jnp.stack([d, d + 1])
    close(jax.vmap(f, (0, None, None))(D, U, y), jnp.stack([g(a, U, y) for a in D]))


def test_lineaxs_operators_in_ours():
    a, d = draw(N, N) + 4 * jnp.eye(N), draw(N) + 3
    y = draw(N, seed=3)
    lower = lx.MatrixLinearOperator(a, lx.lower_triangular_tag)
    cases = [
        lx.MatrixLinearOperator(a),
        lx.MatrixLinearOperator(a + a.T, lx.symmetric_tag),
        lx.MatrixLinearOperator(a @ a.T, lx.positive_semidefinite_tag),
        lx.DiagonalLinearOperator(d),
        lx.TridiagonalLinearOperator(d, d[1:] / 4, d[:-1] / 5),
        lx.IdentityLinearOperator(jax.ShapeDtypeStruct((N,), jnp.float64)),
    ]
    cases += [cases[0] + cases[3], cases[0] @ cases[4], -cases[1], 3 * cases[2], cases[3] / 2.0]
    cases += [lx.TaggedLinearOperator(cases[0], lx.upper_triangular_tag)]
    for A in cases:
        dense = A.as_matrix()
        if lx.TaggedLinearOperator is type(A):
            dense = jnp.triu(dense)
        K = pjl.as_operator(A)
        close(K.toarray(), dense)
        close(pj.solve(K, y), jnp.linalg.solve(dense, y))
        close(lx.linear_solve(A, y, pjl.Structured()).value, jnp.linalg.solve(dense, y))
    assert pjl.as_operator(lower)._node.name == "Triangular"
    assert pjl.as_operator(pjl.LinearOperator(K)) is K
    with pytest.raises(TypeError, match="FunctionLinearOperator has no structure"):
        pjl.as_operator(lx.FunctionLinearOperator(lambda x: 2 * x, cases[3].in_structure()))


def test_vectors_that_are_pytrees():
    """Of a matrix in four blocks, whose rows and columns are nested in other ways; also transposed,
    within a compiled gradient."""
    a = draw(N, N) + 4 * jnp.eye(N)
    blocks = {"u": [a[:2, :1].reshape(2, 1), a[:2, 1:].reshape(2, 2, 2)]}
    blocks["v"] = [a[2:, :1].reshape(3, 1), a[2:, 1:].reshape(3, 2, 2)]
    due = {"u": jnp.zeros(2), "v": jnp.zeros(3)}
    b = {"u": draw(2, seed=1), "v": draw(3, seed=2)}
    rhs = jnp.concatenate([b["u"], b["v"]])

    def solved(blocks, b, transposed=False):
        A = lx.PyTreeLinearOperator(blocks, jax.eval_shape(lambda: due))
        return lx.linear_solve(A.T if transposed else A, b, pjl.Structured()).value

    first, rest = solved(blocks, b)
    close(jnp.concatenate([first, rest.reshape(-1)]), jnp.linalg.solve(a, rhs))
    found = solved(blocks, [rhs[:1], rhs[1:].reshape(2, 2)], True)
    close(jnp.concatenate([found["u"], found["v"]]), jnp.linalg.solve(a.T, rhs))
    loss = lambda *args: sum(jnp.sum(jnp.sin(x)) for x in jax.tree.leaves(solved(*args)))
    got = jax.jit(jax.grad(loss))(blocks, b)
    want = jax.grad(lambda a: jnp.sum(jnp.sin(jnp.linalg.solve(a, rhs))))(a)
    close(got["v"][1].reshape(3, 4), want[2:, 1:])


def test_wrong_use():
    with pytest.raises(TypeError, match="of two dimensions"):
        pjl.LinearOperator(jnp.eye(2))
    wide = pjl.LinearOperator(pj.LowRank(draw(3, 1), draw(4, 1)))
    with pytest.raises(ValueError, match="square"):
        lx.linear_solve(wide, draw(3), pjl.Structured())
    with pytest.raises(Exception, match="exactly zero"):
        A = pjl.LinearOperator(pj.Diag(jnp.zeros(3)))
        lx.linear_solve(A, draw(3), pjl.Structured()).value.block_until_ready()


class Model(eqx.Module):
    K: pj.Operator
    scale: jax.Array
    name: str

    def __call__(self, y):
        return self.scale * pj.logdet(self.K) + y @ pj.solve(self.K, y)


def test_equinox():
    d, U, y = draw(N) ** 2 + 1, draw(N, 2), draw(N, seed=1)
    model = Model(pj.Diag(d) + pj.LowRank(U), jnp.array(0.5), "gp")
    value, grads = eqx.filter_jit(eqx.filter_value_and_grad(lambda m, y: m(y)))(model, y)

    def dense(d, U, s):
        K = jnp.diag(d) + U @ U.T
        return s * jnp.linalg.slogdet(K)[1] + y @ jnp.linalg.solve(K, y)

    close(value, dense(d, U, 0.5))
    due = jax.grad(dense, (0, 1, 2))(d, U, 0.5)
    for got, one in zip([*jax.tree.leaves(grads.K), grads.scale], due, strict=True):
        close(got, one)
    assert grads.name == "gp" or grads.name is None
    better = eqx.apply_updates(
        model, jax.tree.map(lambda g: -1e-3 * g, eqx.filter(grads, eqx.is_array))
    )
    assert better(y) < value
    dynamic, static = eqx.partition(model, eqx.is_array)
    close(eqx.combine(dynamic, static)(y), value)
