"""Gradients by operators: of their kind; each by itself, whatever else holds its arrays."""

import pickle

import numpy as np
import pytest
from gradients.test_gradients_of_kinds import KINDS, Make

import pylinop as pl

D = np.array([1.0, 2.0, 3.5])


@pytest.mark.parametrize("dtype", ["f", "c"])
@pytest.mark.parametrize("name", sorted(set(KINDS) - {"full"}))
def test_of_the_same_kind(name, dtype):
    """Their arrays are the gradients by the arrays."""
    m = Make("float64" if dtype == "f" else "complex128")
    make, arrays = KINDS[name](m)
    op = make(*arrays)
    x, w = m.a(op.shape[1]), m.a(op.shape[0])
    f = lambda A: np.sum(np.abs((A @ x) * w - 1.0) ** 2)
    lazies = [pl.lazy(a) for a in arrays]
    wanted = make(*pl.evaluate(*pl.gradients(f(make(*lazies)), [*lazies, x]))[:-1])
    value = f(pl.lazy(op))
    number, found = pl.evaluate(value, pl.gradients(value, op))
    np.testing.assert_allclose(number, f(pl.lazy(op)).toarray(), rtol=1e-12)
    scale = np.abs(wanted.toarray()).max()
    for got in (found, pl.grad(f)(op), pl.vjp(f, op)[1](1.0)[0]):
        assert type(got) is type(op)
        np.testing.assert_allclose(got.toarray(), wanted.toarray(), rtol=0, atol=1e-12 * scale)


def test_as_an_expression():
    A, T = pl.Diag(D), pl.Toeplitz(np.array([4.0, 1.0, 0.5]))
    value = pl.logdet(pl.lazy(A) + pl.LowRank(np.ones((3, 1))))
    g = pl.gradients(value, A)
    wanted = np.diag(np.diag(np.linalg.inv(np.diag(D) + 1)))
    np.testing.assert_allclose(g.toarray(), wanted, atol=1e-15)
    again = pl.evaluate(pickle.loads(pickle.dumps(g)))
    assert isinstance(again, pl.Diag)
    with pytest.raises(ValueError, match="does not depend on the Toeplitz"):
        pl.gradients(value, T)
    zero, one = pl.evaluate(*pl.gradients(value, [T, A], allow_unused=True))
    assert isinstance(zero, pl.Toeplitz) and (zero.toarray() == 0).all()
    np.testing.assert_allclose(one.diagonal(), np.diag(wanted))
    with pytest.raises(NotImplementedError, match=r"gradient by an operator.*\n.*built at"):
        pl.gradients(np.sum(g), A)


def test_made_by_operations():
    """Each part by its place; one that operations take twice has its sum in both."""
    A, T = pl.Diag(D), pl.Toeplitz(np.array([4.0, 1.0, 0.5]))
    x = np.array([1.0, -1.0, 2.0])
    f = lambda S: np.sum(np.sin(S @ x))
    S = A @ T + 2 * T
    value = f(pl.lazy(S))
    g, by_A, by_T = pl.evaluate(*pl.gradients(value, [S, A, T]))
    first, second = g.args
    np.testing.assert_allclose(first.args[0].diagonal(), by_A.diagonal())
    for part in (first.args[1], second.args[0]):
        np.testing.assert_allclose(part.toarray(), by_T.toarray())
    np.testing.assert_allclose(pl.grad(f)(S).toarray(), g.toarray())


def test_of_many_operations():
    """However many they are, without recursion."""
    A, T = pl.Diag(D), pl.Toeplitz(np.array([4.0, 1.0, 0.5]))
    S, x = A @ T, np.ones(3)
    for _ in range(2000):
        S = S + T
    value = np.sum(pl.lazy(S) @ x)
    by_S, by_A, by_T = pl.evaluate(*pl.gradients(value, [S, A, T]))
    np.testing.assert_allclose(by_S.args[1].toarray(), by_T.toarray())
    assert pl.grad(lambda S: np.sum(S @ x))(S).args[1].shape == (3, 3)
    np.testing.assert_allclose(by_A.diagonal(), T @ x)


def test_each_place_by_itself():
    """One array in two arguments, in two parameters, in the function as well."""
    A, B = pl.Diag(D), pl.Diag(D)
    f = lambda A, B: pl.trace(A @ B @ B)
    for other in (A, B):
        by_A, by_B = pl.grad(f, (0, 1))(A, other)
        np.testing.assert_allclose(by_A.diagonal(), D**2)
        np.testing.assert_allclose(by_B.diagonal(), 2 * D**2)
    np.testing.assert_allclose(pl.grad(lambda A: f(A, pl.lazy(B)))(A).diagonal(), D**2)
    by_A, by_d = pl.grad(lambda A, d: pl.trace(A @ pl.Diag(d * d)), (0, 1))(A, D)
    np.testing.assert_allclose(by_A.diagonal(), D**2)
    np.testing.assert_allclose(by_d, 2 * D**2)
    for one, other in (
        pl.grad(pl.logdet)(pl.Kron(A, A))._init,
        pl.grad(pl.logdet)(pl.Kron(A, B))._init,
    ):
        np.testing.assert_allclose(one.diagonal(), 3 / D)
        np.testing.assert_allclose(other.diagonal(), 3 / D)
    g = pl.grad(lambda T: np.sum(T @ np.ones(3)))(pl.Toeplitz(D, D))
    by_c, by_r = pl.grad(lambda c, r: np.sum(pl.Toeplitz(c, r) @ np.ones(3)), (0, 1))(D, D)
    np.testing.assert_allclose(g.toarray(), pl.Toeplitz(by_c, by_r).toarray())
    t = pl.jvp(
        lambda K: np.trace(K),
        (pl.LowRank(D[:, None], D[:, None]),),
        (pl.LowRank(D[:, None], 0 * D[:, None]),),
    )[1]
    np.testing.assert_allclose(t, D @ D)


def test_what_holds_no_arrays():
    """Its gradient would be itself."""
    x = np.ones(3)
    for op in (
        pl.Identity(3),
        pl.Full((3, 3), 2.0),
        2.5 * pl.Identity(3),
        pl.Permutation([1, 0, 2]),
    ):
        with pytest.raises(TypeError, match="holds no arrays"):
            pl.grad(lambda A: np.sum(A @ x))(op)
        with pytest.raises(TypeError, match="holds no arrays"):
            pl.gradients(np.sum(pl.lazy(op) @ x), op)
    op = pl.MatVec((3, 3), lambda v: 2 * v, rmatvec=lambda v: 2 * v, dtype=float)
    for f in (
        lambda: pl.grad(lambda A: np.sum(A @ x))(op),
        lambda: pl.gradients(np.sum(op @ pl.lazy(x)), op),
    ):
        with pytest.raises(
            NotImplementedError, match=r"a MatVec \(3, 3\), of callables.*\n.*built at"
        ):
            f()


def _value(a, b):
    return np.sum(pl.lazy(a) ** 2) + np.sum(pl.lazy(b) ** 3)


def test_other_views_of_an_array():
    """Would lack in the gradient by it; those of all of it, in the same order, are the same."""
    d, A = np.array(D), np.array([[2.0, 1.0], [0.5, 3.0]])
    for other in (d[:2], d[::-1], d[::2], d.reshape(3, 1), np.broadcast_to(d, (2, 3))):
        for a, b in ((d, other), (other, d)):
            with pytest.raises(
                ValueError, match=r"also holds another view, of shape .*\n.*built at"
            ):
                pl.gradients(_value(a, b), a)
    with pytest.raises(ValueError, match="another view"):
        pl.gradients(pl.trace(pl.lazy(A) @ pl.lazy(A.T)), A)
    c = D + 1j
    with pytest.raises(ValueError, match="another view"):
        pl.gradients(np.sum(pl.lazy(c.imag)) + np.sum(np.abs(pl.lazy(c))), c)
    with pytest.raises(ValueError, match="another view"):
        pl.gradients(pl.lazy(pl.Kernel("rbf", d[:, None])) @ d @ d, d)
    for other in (d, d[:], d.view()):
        np.testing.assert_allclose(pl.gradients(_value(d, other), d), 2 * d + 3 * d**2)
        np.testing.assert_allclose(pl.gradients(np.sum(pl.lazy(d) * other), d), 2 * d)
    for wrt in ([d, d[:]], [d[:], d, d]):
        for g in pl.evaluate(*pl.gradients(_value(wrt[0], wrt[1]), wrt)):
            np.testing.assert_allclose(g, 2 * d + 3 * d**2)
    apart = np.arange(6.0)
    np.testing.assert_allclose(
        pl.gradients(_value(apart[::2], apart[1::2]), apart[::2]).toarray(), 2 * apart[::2]
    )
    stopped = np.sum(pl.lazy(d) * pl.stop_gradient(d[:]))
    np.testing.assert_allclose(pl.gradients(stopped, d).toarray(), d)
    with pytest.raises(ValueError, match=r"Toeplitz of LazyArrays holds as a constant"):
        pl.gradients(pl.Toeplitz(pl.lazy(D), d)[1, 0] + np.sum(pl.lazy(d)), d)


def test_matrices_beside_lazy_arrays_are_leaves():
    U, v = pl.lazy(np.full((3, 1), 2.0)), D[:, None] + 0
    got = pl.gradients(np.trace(pl.LowRank(U, v)) + np.sum(pl.lazy(v)), v)
    np.testing.assert_allclose(got, np.full((3, 1), 3.0))
    d = np.array(D)
    A = pl.Diag(d)
    held = np.trace(pl.Kron(pl.lazy(np.eye(2)), A)) + np.sum(pl.lazy(A) @ d)
    np.testing.assert_allclose(pl.gradients(held, d), 2 + 2 * d)
    np.testing.assert_allclose(pl.gradients(held, A).diagonal(), 2 + d)


def test_a_formula_with_a_rule_that_reads_more():
    def f(x, by=lambda x: x):
        scaled = pl.custom_vjp(lambda y: y * by(x), lambda value, args, g: (g * by(x),))
        return np.sum(scaled(x * 1.0))

    with pytest.raises(ValueError, match=r"beside its arguments.*\n.*built at"):
        pl.grad(f)(D)
    x = pl.lazy(D)
    with pytest.raises(ValueError, match="beside its arguments"):
        pl.gradients(f(x), x)
    np.testing.assert_allclose(pl.grad(lambda x: f(x, pl.stop_gradient))(D), D)
    square = pl.custom_vjp(lambda x, y: x * y, lambda value, args, g: (g * args[1], None))
    np.testing.assert_allclose(pl.grad(lambda x: np.sum(square(x, x)))(D), D)
