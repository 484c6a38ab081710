"""BlockDiag of an array of three dimensions that is deferred: its matrices are the blocks, as those
of a given array are, and their cotangents are found together."""

import numpy as np
import pytest

import pylinop as pl


def stack(rng, g, b, dtype=np.float64):
    x = rng.standard_normal((g, b, b))
    x = x + 1j * rng.standard_normal((g, b, b)) if np.dtype(dtype).kind == "c" else x
    return (x @ x.conj().swapaxes(1, 2) / b + 2 * np.eye(b)).astype(dtype)


def apart(S):
    """The same matrix as a sum of Krons, which no rule on blocks sees."""
    g = S.shape[0]
    return sum(pl.Kron(np.diag(np.eye(g)[k]), S[k]) for k in range(g))


def real(x):
    return np.real(x * (0.6 - 0.8j)) if x.dtype.kind == "c" else x


LOSSES = {
    "likelihood": lambda A, y: real(np.conj(y) @ pl.solve(A, y)) + real(pl.slogdet(A)[1]),
    "trace": lambda A, y: real(pl.trace(pl.inv(A))),
    "diagonal": lambda A, y: real(np.sum(pl.diagonal(pl.inv(A @ A)) * y)),
    "beside a low rank": lambda A, y: (
        lambda B: real(np.conj(y) @ pl.solve(B, y)) + real(pl.slogdet(B)[1])
    )(A + 0.5 * pl.LowRank(np.stack([y.real, np.ones(len(y))], axis=1))),
    "product": lambda A, y: real(np.sum((A @ (2.0 * A.T @ y)) ** 2)),
}


def test_the_shape_is_that_of_the_value():
    S = stack(np.random.default_rng(0), 4, 3)
    x = pl.lazy(S)
    for given, due in (
        (S, (12, 12)),
        (x, (12, 12)),
        (np.exp(2 * x), (12, 12)),
        ([x], (4, 3, 3)),  # a list of one batch
        (pl.lazy(pl.Dense(S)), (4, 3, 3)),
        (pl.Toeplitz(x[:, 0]), (4, 3, 3)),
        (pl.Dense(S) + x, (4, 3, 3)),
    ):
        assert pl.BlockDiag(given).shape == due
    np.testing.assert_array_equal(pl.BlockDiag(x).diagonal(), pl.BlockDiag(S).diagonal())
    wide = S[:, :2]
    np.testing.assert_array_equal(
        np.asarray(pl.BlockDiag(pl.lazy(wide)) @ np.ones(12)), pl.BlockDiag(wide) @ np.ones(12)
    )


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.float32])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("g, b", [(2, 3), (15, 2), (16, 2), (17, 1), (40, 3)])
def test_gradients_and_second_derivatives(g, b, loss, dtype):
    rng = np.random.default_rng([g, b])
    S, d = stack(rng, g, b, dtype), stack(rng, g, b, dtype)
    y = rng.standard_normal(g * b).astype(dtype)
    f = LOSSES[loss]
    value, grad = pl.value_and_grad(lambda S: f(pl.BlockDiag(S), y))(S)
    tol = 100 * float(np.finfo(dtype).eps)
    assert grad.dtype == dtype and value == pytest.approx(f(pl.BlockDiag(S), y), rel=tol)
    second = pl.hvp(lambda S: f(pl.BlockDiag(S), y))(S, d)
    S, d, y = (x.astype(np.result_type(x, 1.0)) for x in (S, d, y))
    due = pl.grad(lambda S: f(apart(S), y))(S)
    eps = 1e3 * np.finfo(dtype).eps * g * b
    np.testing.assert_allclose(grad, due, rtol=0, atol=eps * np.abs(due).max())
    twice = pl.hvp(lambda S: f(apart(S), y))(S, d)
    np.testing.assert_allclose(second, twice, rtol=0, atol=10 * eps * np.abs(twice).max())


@pytest.mark.no_verify  # whose own dense forms would be counted
def test_made_of_few_numbers():
    rng = np.random.default_rng(3)
    g, b = 24, 4
    Z, y = rng.standard_normal((g, b, 2)), rng.standard_normal(g * b)
    u = rng.standard_normal((g * b, 2))

    def f(L, s):
        A = pl.BlockDiag(Z @ (L @ L.T) @ Z.swapaxes(1, 2) + np.exp(s) * np.eye(b))
        B = A + np.exp(s) * pl.LowRank(u)
        return y @ pl.solve(B, y) + pl.logdet(B)

    def dense(L, s):
        a = np.kron(np.eye(g), np.zeros((b, b)))
        for k in range(g):
            a[k * b : k * b + b, k * b : k * b + b] = Z[k] @ (L @ L.T) @ Z[k].T
        a += np.exp(s) * (np.eye(g * b) + u @ u.T)
        return y @ np.linalg.solve(a, y) + np.linalg.slogdet(a)[1]

    L, s = np.eye(2) + 0.1, np.array(0.3)
    dL, ds = rng.standard_normal((2, 2)), 0.7
    with pl.explaining() as record:
        value, (gL, gs) = pl.value_and_grad(f, (0, 1))(L, s)
        hL, hs = pl.hvp(f, (0, 1))(L, s, (dL, np.array(ds)))
    n = g * b
    wrote = [s["writes"] for p in record.plans for s in p.steps if s["took"] is not None]
    assert not [w for w in wrote if f"({n}, {n})" in w]
    assert value == pytest.approx(dense(L, s), rel=1e-12)

    def at(f, t):
        return f(L + t * dL, s + t * ds)

    w, h = {1: 45, 2: -9, 3: 1}, 1e-2
    slope = sum(c * (at(dense, k * h) - at(dense, -k * h)) for k, c in w.items()) / (60 * h)
    assert np.sum(gL * dL) + gs * ds == pytest.approx(slope, rel=1e-8)
    twice = [pl.grad(f, (0, 1))(L + t * h * dL, s + t * h * ds) for t in (-3, -2, -1, 1, 2, 3)]
    for k, got in ((0, hL), (1, hs)):
        p = [np.asarray(x[k]) for x in twice]
        due = (45 * (p[3] - p[2]) - 9 * (p[4] - p[1]) + (p[5] - p[0])) / (60 * h)
        np.testing.assert_allclose(got, due, rtol=0, atol=1e-7 * np.abs(due).max())


@pytest.mark.parametrize("places", [[0, 1, 2], [*range(12)], [5, 3, 0, -1, -2, 7, 1, 9, 2, 2, 5]])
def test_elements_that_are_read_apart(places):
    rng = np.random.default_rng(4)
    x, w = rng.standard_normal((12, 3)), rng.standard_normal((12, 3))

    def f(x):
        return sum(np.sum(np.exp(x[k]) * w[k]) for k in places)

    due = np.zeros((12, 3))
    for k in places:
        due[k] += np.exp(x[k]) * w[k]
    np.testing.assert_allclose(pl.grad(f)(x), due, rtol=1e-14)
    h = pl.hvp(f)(x, w)
    np.testing.assert_allclose(h, due * w, rtol=1e-14)


FORMS = {
    "sum": lambda Z, M, s: (
        Z @ (M @ M.T) @ np.swapaxes(Z, 1, 2) + s * np.eye(Z.shape[1], dtype=Z.dtype)
    ),
    "part": lambda Z, M, s: (
        Z @ (M @ M.T) @ np.swapaxes(Z, 1, 2) + s * np.eye(Z.shape[1], dtype=Z.dtype)
    )[1:],
    "exp": lambda Z, M, s: (
        np.exp(Z @ M @ np.swapaxes(Z, 1, 2)) + s * np.eye(Z.shape[1], dtype=Z.dtype)
    ),
    "turned": lambda Z, M, s: (
        np.swapaxes(Z @ M @ np.swapaxes(Z, 1, 2), 1, 2) - s * np.eye(Z.shape[1], dtype=Z.dtype)
    ),
}
ACTIONS = {
    "product": lambda A, x: A @ x,
    "views": lambda A, x: 2.0 * A.T @ (A.conj() @ x) - A.H @ x,
    "columns": lambda A, x: A @ np.stack([x, x * x, x - 1], axis=1),
    "solve": pl.solve,
    "solve of the transpose": lambda A, x: pl.solve(-3.0 * A.T, x),
    "dense": lambda A, x: A.toarray(),
    "dense inverse": lambda A, x: pl.inv(A).toarray(),
    "determinant": lambda A, x: np.stack(pl.slogdet(A)),
    "diagonal of the inverse": lambda A, x: pl.diagonal(pl.inv(A)),
    "trace of the inverse": lambda A, x: pl.trace(pl.inv(A)),
    "beside a low rank": lambda A, x: pl.solve(A + pl.LowRank(x[:, None]), x),
    "cubed": lambda A, x: (A**3) @ x,
}


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.float32])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("g, b", [(2, 3), (15, 2), (16, 2), (17, 3), (18, 64), (18, 65)])
def test_all_actions_of_formulas_of_stacks(g, b, form, dtype):
    rng = np.random.default_rng([g, b])
    Z, M = rng.standard_normal((g, b, 2)) / b**0.5, rng.standard_normal((2, 2))
    Z = (Z + 0.3j * rng.standard_normal(Z.shape) if dtype == np.complex128 else Z).astype(dtype)
    M, s = M.astype(dtype), dtype(3.1)
    given = FORMS[form](
        Z.astype(np.result_type(dtype, 1.0)), M.astype(float if dtype == np.float32 else dtype), s
    )
    blocks = np.zeros((len(given), b, len(given), b), given.dtype)
    blocks[range(len(given)), :, range(len(given))] = given
    dense = pl.lazy(blocks.reshape(len(given) * b, -1))
    x = rng.standard_normal(len(given) * b)
    for name, action in ACTIONS.items():
        made = pl.BlockDiag(FORMS[form](pl.lazy(Z), pl.lazy(M), pl.lazy(np.asarray(s))))
        got, due = (np.asarray(action(A, y)) for A, y in ((made, x.astype(dtype)), (dense, x)))
        assert got.dtype == dtype, name
        tol = 2e3 * np.finfo(dtype).eps * max(1, np.abs(due).max())
        np.testing.assert_allclose(got, due, rtol=0, atol=tol, err_msg=name)


@pytest.mark.no_verify  # whose own steps would be counted
def test_steps_do_not_grow_with_the_stack():
    def steps(g):
        rng = np.random.default_rng(g)
        Z, y = pl.lazy(rng.standard_normal((g, 5, 2))), rng.standard_normal(5 * g)
        A = pl.BlockDiag(Z @ np.swapaxes(Z, 1, 2) + 2.0 * np.eye(5))
        B = A + pl.LowRank(y[:, None])
        return len(pl.explain(y @ pl.solve(B, y) + pl.logdet(B)).steps)

    assert steps(64) == steps(300) < 400


@pytest.mark.parametrize(
    "form",
    [
        lambda a, b, x: a[:, :, None] * b[:, None, :],
        lambda a, b, x: a[:, :1, None] * x,
        lambda a, b, x: 2 * np.conj(a[:, :1, None] * x) + x,
        lambda a, b, x: np.swapaxes(x - a[:, :1, None] * (b[:, 1:2, None] * x), 1, 2),
    ],
)
@pytest.mark.parametrize("g, m, n", [(3, 4, 1), (3, 1, 1), (17, 1, 2), (17, 2, 3)])
def test_matrices_times_their_own_numbers(g, m, n, form):
    rng = np.random.default_rng([g, m, n])
    a, b, x = (rng.standard_normal(s) for s in ((g, m), (g, max(n, 2)), (g, m, n)))
    got, due = pl.BlockDiag(form(pl.lazy(a), pl.lazy(b), pl.lazy(x))), pl.BlockDiag(form(a, b, x))
    assert got.shape == due.shape
    np.testing.assert_allclose(got.toarray(), due.toarray(), atol=1e-14)
