"""What NumPy computes entry by entry of symmetric arguments is symmetric: solves and determinants
by Cholesky where LU was taken, and nothing else changes."""

import numpy as np
import pytest

import pylinop as pl
from pylinop import _core
from pylinop._base import config
from pylinop._programs import freezing
from pylinop._programs.programs import Written


def points(n, d=3, seed=0, dtype=float):
    return pl.lazy(np.random.default_rng(seed).standard_normal((n, d)).astype(dtype))


def squares(X):
    q = (X * X).sum(1)
    return q[:, None] + q[None, :] - 2 * X @ X.T


KERNELS = {
    "squared distances": lambda X: np.exp(-0.5 * squares(X)),
    "differences": lambda X: np.exp(-((X[:, None, :] - X[None, :, :]) ** 2).sum(-1)),
    "norms": lambda X: np.exp(-np.linalg.norm(X[:, None] - X[None], axis=-1) / 0.7),
    "a line": lambda X: (lambda d: (1 + 3 * d) * np.exp(-3 * d))(abs(X[:, 0][:, None] - X[:, 0])),
    "periodic": lambda X: np.exp(-(np.cos((X[:, 0][:, None] - X[:, 0]) / 2) ** 2 + squares(X))),
    "reshaped": lambda X: (lambda t: np.exp(-abs(t.reshape(-1, 1) - t.reshape(1, -1))))(X[:, 1]),
    "polynomial": lambda X: (X @ X.T + 1) ** 3,
    "weighed": lambda X: np.tanh(X @ pl.lazy(np.diag([1.0, 2.0, 3.0]), "pos") @ X.T / 9) ** 2,
    "minimum": lambda X: (lambda t: np.minimum(t[:, None], t[None, :]))(np.exp(X[:, 0])),
    "of what is assumed": lambda X: np.cosh(pl.lazy((X @ X.T / 9).toarray(), "sym")),
}
OTHERS = {
    "two sets of points": lambda X: np.exp(-abs(X[:, 0][:, None] - X[:, 1][None, :])),
    "a factor on one side": lambda X: np.exp(-squares(X)) * np.exp(X[:, 0])[:, None],
    "not even": lambda X: np.exp(X[:, 0][:, None] - X[:, 0][None, :]) + np.exp(-squares(X)),
    "an odd power": lambda X: np.tanh((X[:, 0][:, None] - X[:, 0][None, :]) ** 3),
    "backwards": lambda X: np.exp(-abs(X[::-1, 0][:, None] - X[:, 0][None, :])),
    "a product": lambda X: np.exp(-abs(X @ (2 * X + X[0]).T)),
}


def matrix(f, n, dtype=float):
    K = f(points(n, dtype=dtype))
    c = K.dtype.type(0.5)  # a matrix that LU and Cholesky take
    return K + c * pl.Identity(n), K


def method(K):
    text = str(pl.explain(pl.logdet(K)))
    return "Cholesky" if "potrf" in text else "LU" if "getrf" in text else text


@pytest.mark.parametrize("name", KERNELS)
def test_by_cholesky(name):
    for n in (31, 32, 33, 150):
        A, K = matrix(KERNELS[name], n)
        assert method(A) == ("Cholesky" if n >= 32 else "LU"), n
        dense = np.asarray(K.toarray()) + 0.5 * np.eye(n)
        b = np.cos(np.arange(n))
        sign, want = np.linalg.slogdet(dense)
        got = pl.slogdet(A)
        assert got[0] == sign and abs(got[1] - want) <= 1e-10 * n
        x = pl.solve(A, b).toarray()
        size = np.linalg.norm(dense) * np.linalg.norm(x) + np.linalg.norm(b)
        assert np.linalg.norm(dense @ x - b) <= 10 * n * 2.0**-53 * size
        np.testing.assert_allclose((K.T @ b).toarray(), dense.T @ b - 0.5 * b, atol=1e-9)


@pytest.mark.parametrize("name", OTHERS)
def test_by_lu(name):
    A, K = matrix(OTHERS[name], 64)
    dense = np.asarray(K.toarray()) + 0.5 * np.eye(64)
    assert method(A) == "LU"
    np.testing.assert_allclose(pl.solve(A, dense @ np.ones(64)).toarray(), 1, atol=1e-6)


def test_single_precision_and_complex():
    A, K = matrix(KERNELS["squared distances"], 64, np.float32)
    assert K.dtype == np.float32 and method(A) == "Cholesky"
    z = pl.lazy(np.exp(1j * np.arange(64)))
    assert method(np.exp(z[:, None] + z[None, :]) + 9 * pl.Identity(64)) == "LU"


def test_an_indefinite_one_is_factored_by_lu():
    t = pl.lazy(np.random.default_rng(3).standard_normal(50))
    K = abs(t[:, None] - t[None, :])  # of both signs
    sign, want = np.linalg.slogdet(K.toarray())
    got = pl.slogdet(K)
    assert got[0] == sign and abs(got[1] - want) < 1e-9
    b = np.ones(50)
    np.testing.assert_allclose(K.toarray() @ pl.solve(K, b).toarray(), b, atol=1e-9)


def test_halves_that_rounding_took_apart_are_two_halves():
    n = 60
    r = np.random.default_rng(4)
    B = r.standard_normal((n, n)) * (1 + 1e-9)
    A = pl.lazy(B) @ pl.lazy(np.diag(r.random(n)) + 0.1, "pos") @ pl.lazy(B).T
    rough = np.sin(1e13 * A) + n * np.eye(n)  # a unit in the last place of A is some 1e-2
    value = rough.toarray()
    b = np.ones(n)
    x = pl.solve(rough, b).toarray()
    assert np.linalg.norm(value @ x - b) <= 1e-12
    assert abs(pl.logdet(rough) - np.linalg.slogdet(value)[1]) < 1e-11


def test_nan_passes_through():
    X = np.random.default_rng(5).standard_normal((40, 2))
    X[3] = np.nan
    K = np.exp(-squares(pl.lazy(X))) + np.eye(40)
    assert np.isnan(pl.logdet(K))


def test_gradients_are_those_of_the_formula():
    X = np.random.default_rng(6).standard_normal((40, 2))
    y = np.sin(np.arange(40.0))

    def f(x):
        K = np.exp(-0.5 * squares(x)) + 0.3 * pl.Identity(40)
        return y @ pl.inv(K) @ y + pl.logdet(K)

    value, grad = pl.value_and_grad(f)(X)
    way, h = np.cos(np.arange(80.0)).reshape(40, 2), 1e-6
    slope = (float(f(pl.lazy(X + h * way))) - float(f(pl.lazy(X - h * way)))) / (2 * h)
    assert abs(np.vdot(grad, way) - slope) < 1e-5 * abs(slope)
    assert abs(value - float(f(pl.lazy(X)))) < 1e-9


@pytest.mark.skipif(config.get("verify"), reason="there are no tapes under verify=")
def test_a_tape_asks_again_for_its_own_numbers():
    n = 60
    r = np.random.default_rng(4)
    Y, t, b = r.random((n, n)), r.standard_normal(n), np.ones(n)

    def f(c, Y, t):
        inner = np.exp(-abs(t[:, None] - t[None, :]))
        K = np.sin(c * (Y @ inner @ Y.T)) + n * pl.Identity(n)
        return b @ pl.inv(K) @ b + pl.logdet(K)

    arrays, out = (np.array(1e-3), Y, t), (np.empty(()),)
    program = Written(lambda leaves: [f(*leaves)], f, 3)
    tape, _ = freezing._frozen(freezing.Freezable(program, False), arrays, out)
    assert _core._tape_run(tape, arrays, out) and out[0] == program(arrays)[0]
    for c in (1e-3, 3.0, 1e11):  # by 1e11 rounding takes the halves apart
        given = (np.array(c), Y, t)
        if _core._tape_run(tape, given, out):
            assert c < 1e11 and out[0] == program(given)[0]
