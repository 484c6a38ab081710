"""`grad`, `value_and_grad`, `vjp`, `jvp`, `hvp`, `jacobian`, `hessian`, `stop_gradient`,
`custom_vjp`, and `gradients` itself."""

import inspect
import pickle

import numpy as np
import pytest

import pylinop as pl

RNG = np.random.default_rng(3)
N = 6
D, U, B = RNG.random(N) + 1, RNG.standard_normal((N, 2)), RNG.standard_normal(N)


def nll(d, U):
    q, log = pl.inv_quad_logdet(pl.Diag(d) + pl.LowRank(U), B)
    return 0.5 * (q + log)


def by_hand(d, U):
    K = np.diag(d) + U @ U.T
    a, P = np.linalg.solve(K, B), np.linalg.inv(K)
    G = 0.5 * (P - np.outer(a, a))
    return 0.5 * (B @ a + np.linalg.slogdet(K)[1]), np.diag(G), 2 * G @ U


def test_value_and_grad():
    value, (gd, gU) = pl.value_and_grad(nll, (0, 1))(D, U)
    v, hd, hU = by_hand(D, U)
    assert isinstance(value, np.float64)
    assert type(gd) is np.ndarray
    assert np.isclose(value, v, rtol=1e-13)
    assert np.allclose(gd, hd, rtol=1e-12)
    assert np.allclose(gU, hU, rtol=1e-12)
    gd[0] = 0  # the caller's own
    assert np.allclose(pl.grad(nll)(D, U), hd, rtol=1e-12)


def test_nested_arguments():
    def f(p, scale=1.0):
        return scale * nll(p["d"], p["more"][0]) + p["more"][1] ** 2

    g = pl.grad(f)({"d": D, "more": (U, 3.0)}, scale=2.0)
    _, hd, hU = by_hand(D, U)
    assert set(g) == {"d", "more"}
    assert np.allclose(g["d"], 2 * hd)
    assert np.allclose(g["more"][0], 2 * hU)
    assert g["more"][1] == 6.0
    assert isinstance(g["more"][1], np.float64)


def test_aux():
    def f(d):
        x = pl.solve(pl.Diag(d), B)
        return np.sum(x), {"x": x, "n": 3}

    (value, aux), g = pl.value_and_grad(f, has_aux=True)(D)
    assert np.isclose(value, np.sum(B / D))
    assert np.allclose(aux["x"], B / D)
    assert aux["n"] == 3
    assert np.allclose(g, -B / D**2)
    g, aux = pl.grad(f, has_aux=True)(D)
    assert np.allclose(aux["x"], B / D)


def test_operators_as_arguments():
    g = pl.grad(lambda K: pl.logdet(K))(pl.Diag(D))
    assert type(g) is pl.Diag
    assert np.allclose(g.diagonal(), 1 / D)
    base, thin = pl.Diag(D), pl.LowRank(U)
    gb, gt = pl.grad(lambda a, b: pl.logdet(a + b), (0, 1))(base, thin)
    K = np.linalg.inv(np.diag(D) + U @ U.T)
    assert type(gt) is pl.LowRank
    assert np.allclose(gb.diagonal(), np.diag(K))
    assert np.allclose(gt._given("U").toarray(), 2 * K @ U)


def test_vjp_and_jvp():
    f = lambda d, U: pl.solve(pl.Diag(d) + pl.LowRank(U), B)
    y, pullback = pl.vjp(f, D, U)
    K = np.diag(D) + U @ U.T
    assert np.allclose(y, np.linalg.solve(K, B))
    w = RNG.standard_normal(N)
    gd, gU = pullback(w)
    gd2, _ = pullback(2 * w)
    assert np.allclose(gd2, 2 * gd)
    td, tU = RNG.standard_normal(D.shape), RNG.standard_normal(U.shape)
    y2, dy = pl.jvp(f, (D, U), (td, tU))
    dK = np.diag(td) + tU @ U.T + U @ tU.T
    assert np.allclose(y2, y)
    assert np.allclose(dy, -np.linalg.solve(K, dK @ y))
    assert np.isclose(w @ dy, np.sum(gd * td) + np.sum(gU * tU))


def test_jvp_of_complex():
    z = RNG.standard_normal(4) + 1j * RNG.standard_normal(4)
    t = RNG.standard_normal(4) + 1j * RNG.standard_normal(4)
    _, dy = pl.jvp(lambda z: np.exp(z) * z.conj(), (z,), (t,))
    assert np.allclose(dy, np.exp(z) * t * z.conj() + np.exp(z) * t.conj())


def test_hvp_hessian_jacobian():
    H = pl.hessian(lambda d: nll(d, U))(D)
    v = RNG.standard_normal(N)
    K = np.linalg.inv(np.diag(D) + U @ U.T)
    a = K @ B
    assert np.allclose(H, np.outer(a, a) * K - 0.5 * K * K)
    assert np.allclose(pl.hvp(lambda d: nll(d, U))(D, v), H @ v)
    J = pl.jacobian(lambda d: pl.solve(pl.Diag(d) + pl.LowRank(U), B))(D)
    assert np.allclose(J, -K * a)
    J0, J1 = pl.jacobian(lambda x, y: np.outer(x, y), (0, 1))(D[:2], D[:3])
    assert J0.shape == (2, 3, 2)
    assert J1.shape == (2, 3, 3)
    z = np.array([1 + 2j, 3.0])
    assert np.allclose(pl.jacobian(lambda z: z * z)(z), np.diag(2 * z))


def test_third_order_of_arrays():
    x = np.array([0.5, 1.5])
    f = lambda x: np.sum(np.exp(x) * x)
    v = np.ones(2)
    h = 1e-4
    third = (pl.hvp(f)(x + h, v) - pl.hvp(f)(x - h, v)) / (2 * h)
    lazily = pl.lazy(x)
    g = pl.gradients(f(lazily), lazily)
    gg = pl.gradients(np.sum(g), lazily)
    ggg = pl.gradients(np.sum(gg), lazily)
    assert np.allclose(ggg.toarray(), third, rtol=1e-6)


def test_stop_gradient():
    g = pl.grad(lambda d: np.sum(d * pl.stop_gradient(d * d)))(D)
    assert np.allclose(g, D * D)
    K = lambda d: pl.stop_gradient(pl.Diag(d))
    assert np.allclose(pl.grad(lambda d: pl.solve(K(d), d) @ B)(D), B / D)


def test_custom_vjp_of_a_formula():
    f = pl.custom_vjp(lambda x, y: x * y, lambda value, args, g: (g * 10, None))
    gx, gy = pl.grad(lambda x, y: np.sum(f(x, y)), (0, 1))(D, D)
    assert (gx == 10).all()
    assert (gy == 0).all()


def test_custom_vjp_of_values():
    calls = []

    def black_box(x):
        calls.append(type(x))
        return np.sort(x)[::-1]

    def rule(value, args, g):
        order = np.argsort(-D)
        return (pl.lazy(np.eye(N)[order]).T @ g,)

    f = pl.custom_vjp(black_box, rule, shape=(N,))
    w = np.arange(N, dtype=float)
    value, g = pl.value_and_grad(lambda x: np.sum(f(x) * w))(D)
    assert calls == [np.ndarray]
    assert np.isclose(value, np.sort(D)[::-1] @ w)
    assert np.allclose(g, np.eye(N)[np.argsort(-D)].T @ w)


def test_gradients_of_expressions():
    d = pl.lazy(D)
    K = pl.Diag(d) + pl.LowRank(U)
    value = pl.logdet(K)
    g = pl.gradients(value, d)
    assert "LazyArray" in repr(g)
    both = pl.gradients(value, [d, K])
    P = np.linalg.inv(np.diag(D) + U @ U.T)
    assert np.allclose(g.toarray(), np.diag(P))
    assert np.allclose(both[1].toarray(), P)  # of what lies between: a matrix
    cot = RNG.standard_normal(N)
    x = pl.solve(K, B)
    assert np.allclose(pl.gradients(x, d, cotangent=cot).toarray(), -(P @ cot) * np.asarray(x))


def test_arrays_and_operators_by_identity():
    op = pl.Diag(D) + pl.LowRank(U)
    x = pl.lazy(B)
    value = (op @ x) @ x
    gD, gU = pl.gradients(value, [D, U])
    assert np.allclose(gD.toarray(), B * B)
    assert np.allclose(gU.toarray(), 2 * np.outer(B, B) @ U)
    gx = pl.gradients(value, B)
    assert np.allclose(gx.toarray(), 2 * (np.diag(D) + U @ U.T) @ B)


def test_unused():
    d, e = pl.lazy(D), pl.lazy(B)
    with pytest.raises(ValueError, match="does not depend on the LazyArray of shape"):
        pl.gradients(np.sum(d), e)
    zero = pl.gradients(np.sum(d), e, allow_unused=True)
    assert (zero.toarray() == 0).all()
    gd, ge = pl.grad(lambda d, e: np.sum(d), (0, 1))(D, B)
    assert (ge == 0).all()


LOWER, NEAR = np.tri(5), np.abs(np.subtract.outer(np.arange(5), np.arange(5))) <= 1
ASSUMED = {
    "gen": lambda g: g,
    "sym": lambda g: (g + g.T) / 2,
    "her": lambda g: (g + g.T) / 2,
    "pos": lambda g: (g + g.T) / 2,
    "lower triangular": lambda g: g * LOWER,
    "upper triangular": lambda g: g * LOWER.T,
    "diagonal": lambda g: g * np.eye(5),
    "tridiagonal": lambda g: g * NEAR,
}


@pytest.mark.parametrize("word", ASSUMED)
@pytest.mark.parametrize("n", [1, 5])
def test_a_gradient_keeps_to_what_is_assumed(word, n, rng):
    """Of arrays, of LazyArrays, of a Dense made of them, by place and by keyword."""
    full, b, c = rng.standard_normal((5, 5))[:n, :n], rng.standard_normal(5)[:n], np.ones(n)
    A = ASSUMED[word]
    a = (A(np.pad(full, (0, 5 - n))))[:n, :n] + 5 * np.eye(n)
    x, z = np.linalg.solve(a, c), np.linalg.solve(a.T, b)
    product, solve = (A(np.pad(g, (0, 5 - n)))[:n, :n] for g in (np.outer(b, c), -np.outer(z, x)))
    held = pl.lazy(a, assume_a=word)
    np.testing.assert_allclose(np.asarray(pl.gradients(b @ (held @ c), held)), product, atol=1e-14)
    np.testing.assert_allclose(
        np.asarray(pl.gradients(b @ pl.solve(held, c), held)), solve, rtol=1e-10, atol=1e-13
    )
    for made in (lambda a: pl.Dense(a, word), lambda a: pl.Dense(a, assume_a=word)):
        got = pl.grad(lambda a, made=made: b @ (made(a) @ c))(a)
        np.testing.assert_allclose(got, product, atol=1e-14)
        got = pl.grad(lambda a, made=made: b @ pl.solve(made(a), c))(a)
        np.testing.assert_allclose(got, solve, rtol=1e-10, atol=1e-13)


def test_an_orthogonal_matrix_has_no_gradient(rng):
    q = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    with pytest.raises(NotImplementedError):
        pl.grad(lambda q: np.sum(pl.Dense(q, "orthogonal") @ np.ones(4)))(q)
    held = pl.lazy(q, assume_a="orthogonal")
    with pytest.raises(NotImplementedError, match="orthogonal"):
        pl.gradients(np.sum(held @ np.ones(4)), held)


def test_assumed_matrices_have_gradients_of_their_kind():
    A = RNG.standard_normal((N, N))
    A = A @ A.T + N * np.eye(N)
    a = pl.lazy(A, assume_a="pos")
    G = pl.gradients(pl.solve(a, B) @ np.arange(N), a).toarray()
    P = np.linalg.inv(A)
    full = -np.outer(P @ np.arange(N), P @ B)
    assert np.allclose(G, (full + full.T) / 2)


def test_what_is_returned_pickles_and_prints():
    d = pl.lazy(D)
    g = pl.gradients(pl.logdet(pl.Diag(d) + pl.LowRank(U)), d)
    again = pickle.loads(pickle.dumps(g))
    assert np.allclose(again.toarray(), g.toarray())
    assert inspect.signature(pl.grad).parameters["argnums"].default == 0


def test_tangents_of_operators():
    """Of the arrays that they hold: as if these were the arguments."""
    r = np.random.default_rng(71)
    d, e, U, V = 3 + r.random(5), r.random(5), r.standard_normal((5, 2)), r.standard_normal((5, 2))
    b = r.standard_normal(5)
    f = lambda D, L: pl.solve(D + L, b)
    number = lambda D, L: np.sum(f(D, L) ** 2) + pl.logdet(D + L)
    arrays = lambda d, U: number(pl.Diag(d), pl.LowRank(U))
    D, L, tD, tL = pl.Diag(d), pl.LowRank(U), pl.Diag(e), pl.LowRank(V)
    value, found = pl.jvp(f, (D, L), (tD, tL))
    wanted = pl.jvp(lambda d, U: f(pl.Diag(d), pl.LowRank(U)), (d, U), (e, V))
    np.testing.assert_allclose(value, wanted[0], rtol=1e-12)
    np.testing.assert_allclose(found, wanted[1], rtol=1e-10)
    along = pl.hvp(number, (0, 1))(D, L, (tD, tL))
    by = pl.hvp(arrays, (0, 1))(d, U, (e, V))
    assert isinstance(along[0], pl.Diag) and isinstance(along[1], pl.LowRank)
    np.testing.assert_allclose(along[0].diagonal(), by[0], rtol=1e-10)
    np.testing.assert_allclose(along[1]._given("U").toarray(), by[1], rtol=1e-10)
    nested = pl.jvp(lambda p: f(p["K"], p["L"]), ({"K": D, "L": L},), ({"K": tD, "L": tL},))
    np.testing.assert_allclose(nested[1], found, rtol=1e-12)


def test_tangents_of_operators_that_do_not_fit():
    D, f = pl.Diag(np.ones(3)), lambda D: pl.logdet(D)
    for t in (np.ones(3), pl.Dense(np.eye(3)), pl.Diag(np.ones(4)), pl.Identity(3)):
        with pytest.raises(ValueError, match=r"a tangent of a Diag \(3, 3\) is one too"):
            pl.jvp(f, (D,), (t,))
    with pytest.raises(TypeError, match="a tangent of an array is an array"):
        pl.jvp(lambda d: np.sum(d), (np.ones(3),), (D,))
    with pytest.raises(ValueError, match="nested as the arguments are"):
        pl.jvp(lambda p: np.sum(p[0]), ((np.ones(3), D),), ((np.ones(3),),))


@pytest.mark.parametrize(
    "make, shape",
    [
        (lambda U: pl.LowRank(U), (5, 2)),
        (lambda c: pl.Toeplitz(c), (5,)),
        (lambda L: pl.Root(L), (5, 5)),
        (lambda c: pl.Hankel(c), (5,)),
        (lambda x: pl.Kernel("rbf", x), (5, 2)),
    ],
)
def test_second_derivatives_by_operators_with_one_parameter_for_two(make, shape):
    """LowRank(U) is U U^H: a change of U is one on both sides."""
    r = np.random.default_rng(72)
    U, V, b = r.standard_normal(shape), r.standard_normal(shape), r.standard_normal(5)
    f = lambda K: np.sum(pl.solve(K + 9 * pl.Identity(5), b) ** 2)
    along = pl.hvp(f)(make(U), make(V))
    held = [x for x in along._init if x is not None and not isinstance(x, str)][:1]
    by = pl.hvp(lambda U: f(make(U)))(U, V)
    found = held[0].toarray() if isinstance(held[0], pl.LinearOperator) else held[0]
    np.testing.assert_allclose(found.reshape(shape), by, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", [pl.Kron, pl.HadamardProduct, pl.KhatriRao, pl.LowRank])
def test_mixed_second_derivatives_by_the_parts_of_an_operator(kind):
    """d/dA of d/dB: what an operator holds counts as what a formula holds."""
    r = np.random.default_rng(73)
    a, b, c, d = r.standard_normal((4, 3, 3))
    f = lambda K: np.sum(pl.lazy(K) ** 3)
    along = pl.hvp(f)(kind(a, b), kind(c, d))
    by = pl.hvp(lambda a, b: f(kind(a, b)), (0, 1))(a, b, (c, d))
    for found, wanted in zip(along._init[:2], by, strict=True):
        np.testing.assert_allclose(found.toarray(), wanted, rtol=1e-10)


def test_mixed_second_derivatives_by_a_low_rank_update():
    r = np.random.default_rng(74)
    d, U, V, b = r.random(4) + 2, *r.standard_normal((2, 4, 2)), r.standard_normal(4)
    make = lambda d, U, V: pl.LowRankUpdate(pl.Diag(d), U, V)
    f = lambda K: np.sum((pl.lazy(K) @ b) ** 3)
    g = lambda d, U, V: np.sum((make(d, U, V) @ b) ** 3)
    way = (d - 1, V, U)
    along, by = pl.hvp(f)(make(d, U, V), make(*way)), pl.hvp(g, (0, 1, 2))(d, U, V, way)
    np.testing.assert_allclose(along._given("base").diagonal(), by[0], rtol=1e-10)
    np.testing.assert_allclose(along._given("U").toarray(), by[1], rtol=1e-10)
    np.testing.assert_allclose(along._given("V").toarray(), by[2], rtol=1e-10)
