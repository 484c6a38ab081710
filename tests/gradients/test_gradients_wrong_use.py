"""No path gives a detached, zero or stale gradient without an error."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pylinop as pl

D = np.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    "f",
    [
        lambda d: float(np.sum(d)),
        lambda d: np.asarray(d).sum(),
        lambda d: np.sum(d) if d[0] > 0 else d[0],
        lambda d: sum(x for x in np.array(d)),
        lambda d: np.sum(d).item(),
        lambda d: np.linalg.eig(pl.Diag(d))[0].sum(),
        lambda d: np.sum(np.add(d, 1.0, out=np.empty(3))),
        lambda d: np.partition(d, 1)[-1],
    ],
)
def test_values_are_not_to_be_asked_for(f):
    with pytest.raises(TypeError, match=r"LazyArray of shape \(3,\) was asked") as why:
        pl.grad(f)(D)
    assert "asked for at" in str(why.value)
    assert f"{__file__.rpartition('/')[2]}:{f.__code__.co_firstlineno}" in str(why.value)


def test_the_function_that_computes_at_once_is_named():
    a = np.eye(3)
    for f in (pl.orth, pl.eig, pl.null_space):
        with pytest.raises(TypeError, match=rf"by {f.__name__}\)"):
            pl.grad(lambda a, f=f: np.sum(f(a)[0]))(a)
    with pytest.raises(NotImplementedError, match="funm has no derivative"):
        pl.grad(lambda a: np.sum(pl.funm(a, np.exp)[0]))(a)


@pytest.mark.parametrize(
    ("f", "name"),
    [
        (lambda a: pl.cg(a, np.ones(3))[0][0], "by cg"),
        (lambda a: pl.eigsh(a, k=1)[0][0], "by eigsh"),
        (lambda a: np.linalg.eig(a)[0][0], r"by np\.linalg\.eig,"),
        (lambda a: np.median(a), r"by np\.median,"),
        (lambda a: np.sum(np.exp(a, out=np.empty((3, 3)))), r"by np\.exp with out="),
        (lambda a: np.sum(a, out=np.empty(())), r"by np\.sum,"),
    ],
)
def test_functions_of_others_are_named(f, name):
    with pytest.raises(TypeError, match=name):
        pl.grad(f)(np.eye(3) * 2 + 0.1)


def test_wrong_arguments_of_gradients_are_named():
    x = pl.lazy(D)
    with pytest.raises(ValueError, match=r"not depend on the ndarray of shape \(2,\)"):
        pl.gradients(np.sum(x * x), np.ones(2))
    with pytest.raises(TypeError, match=r"of shape \(4,\) of dtype int64"):
        pl.gradients(np.sum(x * x), np.arange(4))
    with pytest.raises(ValueError, match=r"shape \(2,\) for a value of shape \(3,\)\n.*built at"):
        pl.gradients(x * x, x, cotangent=np.ones(2))
    with pytest.raises(ValueError, match=r"shape \(2,\) for a value of shape \(3,\)\n.*built at"):
        pl.vjp(lambda x: x * x, D)[1](np.ones(2))
    with pytest.raises(TypeError, match="argnums='x'"):
        pl.grad(lambda x: np.sum(x), argnums="x")(D)
    with pytest.raises(ValueError, match=r"argnums=\(0, -2\) names an argument of <lambda> twice"):
        pl.grad(lambda x, y: np.sum(x * y), argnums=(0, -2))(D, D)


def test_a_function_without_a_derivative_is_named():
    with pytest.raises(NotImplementedError, match="ldl has no derivative"):
        pl.grad(lambda d: pl.ldl(pl.Diag(d))[0].trace())(D)


def test_what_does_not_depend():
    with pytest.raises(TypeError, match="gave a float64, which does not depend"):
        pl.grad(lambda d: np.sum(D))(D)


def test_shapes_and_dtypes():
    with pytest.raises(ValueError, match=r"gave an array of shape \(3,\)"):
        pl.grad(lambda d: d * 2)(D)
    with pytest.raises(TypeError, match="complex number"):
        pl.grad(lambda d: np.sum(d))(D + 1j)
    with pytest.raises(TypeError, match="dtype int64"):
        pl.grad(lambda d: np.sum(d))(np.arange(3))
    with pytest.raises(TypeError, match="dtype bool"):
        pl.grad(lambda d: np.sum(d))(np.ones(3, bool))
    with pytest.raises(TypeError, match="not defined"):
        pl.grad(lambda d: d)(1)
    with pytest.raises(ValueError, match="argnums=2"):
        pl.grad(lambda d: np.sum(d), 2)(D)
    with pytest.raises(ValueError, match=r"shape \(2,\) for a value of shape \(3,\)"):
        pl.vjp(lambda d: d * 2, D)[1](np.ones(2))
    with pytest.raises(ValueError, match="tangent of shape"):
        pl.jvp(lambda d: d * 2, (D,), (np.ones(2),))
    with pytest.raises(ValueError, match="1 arguments, but 2 tangents"):
        pl.jvp(lambda d: d * 2, (D,), (D, D))
    with pytest.raises(
        ValueError, match=r"array of shape \(3,\) as tangents of 1 arguments: a tuple"
    ):
        pl.hvp(lambda d: np.sum(d), (0,))(D, D)
    with pytest.raises(ValueError, match="a number as tangents of 1 arguments: a tuple is due"):
        pl.hvp(lambda c: c * c, (0,))(2.0, 1.0)
    with pytest.raises(TypeError, match="by one array"):
        pl.hessian(lambda p: np.sum(p[0]) + np.sum(p[1]))((D, D))
    with pytest.raises(TypeError, match="give a LazyArray"):
        pl.gradients(D, D)
    d = pl.lazy(D)
    with pytest.raises(ValueError, match="give cotangent="):
        pl.gradients(d * 2, d)
    with pytest.raises(ValueError, match="cotangent of shape"):
        pl.gradients(d * 2, d, cotangent=np.ones(2))
    with pytest.raises(TypeError, match="gradients by a str"):
        pl.gradients(np.sum(d), "d")
    with pytest.raises(TypeError, match="has to be real or complex"):
        pl.gradients(np.sum(d), np.arange(3))


def test_functions_without_a_derivative_are_named():
    for f, name in (
        (lambda d: np.sum(np.spacing(d)), "spacing"),
        (lambda d: np.sum(np.spacing(pl.expm(pl.Diag(d)))), "spacing"),
    ):
        with pytest.raises((NotImplementedError, TypeError), match=name):
            pl.grad(f)(D)
    with pytest.raises(NotImplementedError, match=r"test_gradients_wrong_use.py:\d+"):
        pl.grad(lambda d: np.sum(np.spacing(d)))(D)


def test_a_leaf_is_as_it_was_when_the_value_was_computed():
    d = np.array(D)
    x = pl.lazy(d)
    value = np.sum(np.exp(x))
    g = pl.gradients(value, x)
    first = g.toarray().copy()
    d[:] = 0
    assert (g.toarray() == first).all()


def test_an_error_leaves_the_argument_usable():
    seen = []

    def f(d):
        seen.append(d)
        raise RuntimeError("by the user")

    with pytest.raises(RuntimeError, match="by the user"):
        pl.grad(f)(D)
    assert seen[0].toarray().tolist() == D.tolist()


def test_rules_that_are_wrong():
    for rule in (
        lambda y, args, g: (g, g),
        lambda y, args, g: (np.sum(g),),
    ):
        f = pl.custom_vjp(lambda x: x * x, rule)
        with pytest.raises(ValueError, match="the rule of"):
            pl.grad(lambda x: np.sum(f(x)))(D)
    with pytest.raises(TypeError, match="both callable"):
        pl.custom_vjp(1, 2)
    with pytest.raises(TypeError, match="say shape="):
        pl.custom_vjp(lambda x: 1.0, lambda *a: None)(D)


def test_a_change_between_the_halves_is_found():
    """Of an array that the formula holds, in any place; arguments are copied."""
    y, U, t = np.arange(3.0), np.ones((3, 1)), np.array([4.0, 1.0, 0.5])
    T = pl.Toeplitz(t)

    def f(d):
        return pl.solve(pl.Diag(d) + pl.LowRank(U) + T, y)

    d = np.array([1.0, 2.0, 4.0])
    wanted = pl.vjp(f, d)[1](np.ones(3))[0]
    for held in (y, U, t):
        value, pullback = pl.vjp(f, d)
        np.testing.assert_array_equal(pullback(np.ones(3))[0], wanted)
        held += 1
        with pytest.raises(RuntimeError, match=r"shape .* has been written to.*\n.*built at"):
            pullback(np.ones(3))
        held -= 1
        np.testing.assert_array_equal(pullback(np.ones(3))[0], wanted)
    for held in (y, U, t):  # read-only then and now, and thawed by its owner in between
        held.flags.writeable = False
        value, pullback = pl.vjp(f, d)
        held.flags.writeable = True
        held += 1
        held.flags.writeable = False
        with pytest.raises(RuntimeError, match=r"shape .* has been written to"):
            pullback(np.ones(3))
        held.flags.writeable = True
        held -= 1
    value, pullback = pl.vjp(f, d)
    d[:] = 0
    np.testing.assert_array_equal(pullback(np.ones(3))[0], wanted)


def test_long_chains():
    x = pl.lazy(np.ones(3))
    y = x
    for k in range(100_000):
        y = y + 0.5 if k % 2 else y * 1.00001
    g = pl.gradients(np.sum(y), x)
    np.testing.assert_allclose(np.asarray(g), 1.00001**50_000, rtol=1e-10)
    A = pl.lazy(2 * np.eye(3))
    S = A
    for _ in range(3000):
        S = S + A
    assert np.asarray(pl.gradients(np.trace(S @ S), A))[0, 0] == 2 * 2 * 3001**2


def test_many_solves_with_one_matrix():
    """Whose cotangent is a long sum of pairs."""
    A, b = pl.lazy(2 * np.eye(3)), np.ones(3)
    total = sum(k * (b @ pl.solve(A, (k % 3) * b)) for k in range(2500))
    got = np.asarray(pl.gradients(total, A))
    np.testing.assert_allclose(got, -sum(k * (k % 3) for k in range(2500)) / 4, rtol=1e-10)


def test_threads_get_the_same_bits():
    rng = np.random.default_rng(3)
    d, U, y = rng.uniform(1, 2, 50), rng.standard_normal((50, 3)), rng.standard_normal(50)

    def nll(d, U):
        quad, log = pl.inv_quad_logdet(pl.Diag(d) + pl.LowRank(U), y)
        return quad + log

    f = pl.value_and_grad(nll, (0, 1))
    value, (by_d, by_U) = f(d, U)
    with ThreadPoolExecutor(4) as pool:
        for got, (one, other) in pool.map(lambda _: f(d.copy(), U.copy()), range(60)):
            assert got == value
            np.testing.assert_array_equal(one, by_d)
            np.testing.assert_array_equal(other, by_U)


def test_an_operator_without_an_adjoint_is_named_with_its_line():
    A = pl.MatVec((3, 3), lambda v: 2 * v)
    with pytest.raises(NotImplementedError, match=r"(?s)rmatvec= .*MatVec \(3, 3\) built at .*A ="):
        pl.grad(lambda d: np.sum(A @ d))(D)
