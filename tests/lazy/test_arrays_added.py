"""Plain arrays in sums of LazyArrays that are diagonal, `K + 0.1 * np.eye(n)`, are added as what
they are; nothing else changes."""

import contextlib
import pickle

import numpy as np
import pytest

import pylinop as pl

N = 40


def definite(rng, n=N, dtype="f8"):
    x = rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n))
    x = (x if np.dtype(dtype).kind == "c" else x.real).astype(dtype)
    return (x @ x.conj().T / n + np.eye(n)).astype(dtype)


def written(f):
    return str(pl.explain(f))


@pytest.mark.parametrize("n", [5, 31, 32, 33, 70])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_multiple_of_the_identity_leaves_the_sum_definite(n, order, rng):
    k, b = definite(rng, n), rng.standard_normal(n)
    eye = np.asarray(0.5 * np.eye(n), order=order)
    for sum_ in (lambda a, e: a + e, lambda a, e: e + a, lambda a, e: 2 * a - e):
        found = sum_(pl.lazy(k, "pos"), eye)
        assert ("getrf" in written(pl.logdet(found))[:800]) == (n < 32)
        dense = sum_(k, eye)
        np.testing.assert_allclose(pl.solve(found, b), np.linalg.solve(dense, b), rtol=1e-9)
        np.testing.assert_allclose(np.asarray(found), dense, rtol=1e-12, atol=1e-14)


def test_thin_products_take_woodbury(rng):
    u, b = rng.standard_normal((200, 3)), rng.standard_normal(200)
    d = rng.random(200) + 0.5
    U = pl.lazy(u)
    for e in (0.3 * np.eye(200), np.diag(d), -4.0 * np.eye(200), np.eye(200)):
        A = U @ U.T + e
        assert "(200, 200) <-" not in written(pl.solve(A, b)).split("--- if a step fails")[0]
        np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(u @ u.T + e, b), rtol=1e-9)
        sign, value = pl.slogdet(U @ U.T + e)
        wanted = np.linalg.slogdet(u @ u.T + e)
        assert sign == wanted[0]
        np.testing.assert_allclose(value, wanted[1], rtol=1e-10)


@pytest.mark.parametrize("own", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_dtypes(dtype, own, rng):
    k = definite(rng, dtype=dtype)
    word = "her" if np.dtype(dtype).kind == "c" else "pos"
    for e in (
        0.5 * np.eye(N),
        np.diag(rng.random(N)),
        np.eye(N) * (1 + 1j if own[0] == "c" else 1),
    ):
        e = e.astype(own)
        found = pl.lazy(k, word) + e
        dense = k + e
        assert np.asarray(found).dtype == dense.dtype
        assert np.array_equal(np.asarray(found), dense)
        fine = np.finfo(np.promote_types(dtype, own)).eps
        x = np.asarray(pl.solve(pl.lazy(k, word) + e, np.ones(N)))
        wide = np.linalg.solve(dense.astype("c16"), np.ones(N))
        assert np.abs(x - wide).max() <= 1e3 * fine * np.abs(wide).max()


def test_what_is_not_diagonal_stays_an_array(rng):
    k, b = definite(rng), rng.standard_normal(N)
    for i, j in ((0, 1), (N - 1, N - 2), (N // 2, 3), (N - 1, 0)):
        for value in (0.3, np.nan):
            e = np.eye(N)
            e[i, j] = value
            assert np.array_equal(np.asarray(pl.lazy(k, "pos") + e), k + e, equal_nan=True)
            if value == value:
                found = pl.solve(pl.lazy(k, "pos") + e, b)
                np.testing.assert_allclose(found, np.linalg.solve(k + e, b), rtol=1e-9)
    for e in (np.zeros((N, N)), np.diag(np.where(np.arange(N) == 3, np.inf, 1.0))):
        assert np.array_equal(np.asarray(pl.lazy(k, "pos") + e), k + e)
    strided = np.eye(2 * N)[::2, ::2]
    np.testing.assert_allclose(
        pl.solve(pl.lazy(k, "pos") + strided, b), np.linalg.solve(k + np.eye(N), b), rtol=1e-9
    )


def test_zeros_with_a_sign(rng):
    k, b = definite(rng), rng.standard_normal(N)
    e = -0.5 * np.eye(N)
    assert np.signbit(e[0, 1])
    assert "getrf" not in written(pl.logdet(4 * pl.lazy(k, "pos") + e))[:800]
    np.testing.assert_allclose(
        pl.solve(4 * pl.lazy(k, "pos") + e, b), np.linalg.solve(4 * k + e, b), rtol=1e-9
    )


def test_the_array_is_read_when_the_sum_is(rng):
    k, e = definite(rng), np.eye(N)
    A = pl.lazy(k, "pos") + e
    e[:] = k  # no more a diagonal
    np.testing.assert_allclose(float(pl.logdet(A)), np.linalg.slogdet(2 * k)[1], rtol=1e-12)


@pytest.mark.parametrize("first", ["logdet", "solve", "evaluate", "failed", "cg"])
def test_another_evaluation_looks_again(first, rng):
    k, b = definite(rng), rng.standard_normal(N)
    for now in (3 * np.eye(N), np.diag(rng.random(N)), k.copy()):
        e = -np.diag(np.linalg.eigvalsh(k)[:1].repeat(N)) if first == "failed" else np.eye(N)
        A = pl.lazy(k, "pos") + e
        if first == "failed":
            with contextlib.suppress(np.linalg.LinAlgError):
                pl.evaluate(pl.solve(A, b), pl.logdet(A.T))
        elif first == "evaluate":
            pl.evaluate(pl.solve(A, b), pl.logdet(A.T))
        elif first == "cg":
            np.testing.assert_allclose(pl.cg(A, b, rtol=1e-13)[0], np.linalg.solve(k + e, b))
        else:
            np.asarray(pl.logdet(2 * A) if first == "logdet" else pl.solve(A, b))
        e[:] = now
        np.testing.assert_allclose(pl.cg(A, b, rtol=1e-13)[0], np.linalg.solve(k + e, b), rtol=1e-9)
        np.testing.assert_allclose(pl.solve(A.T, b), np.linalg.solve(k + e, b), rtol=1e-9)
        np.testing.assert_allclose(float(pl.logdet(A)), np.linalg.slogdet(k + e)[1], rtol=1e-10)
        np.testing.assert_allclose(np.asarray(2 * A), 2 * (k + e), rtol=1e-12, atol=1e-14)


def test_gradients_of_named_matrices_are_whole(rng):
    k = definite(rng)
    K, E = pl.lazy(k, "pos"), pl.lazy(0.5 * np.eye(N))
    inverse = np.linalg.inv(k + 0.5 * np.eye(N))
    found = pl.gradients(pl.logdet(K + E), [E])[0]
    np.testing.assert_allclose(np.asarray(found), inverse, rtol=1e-8, atol=1e-10)
    found = pl.gradients(pl.logdet(K + 0.5 * np.eye(N)), [K])[0]
    np.testing.assert_allclose(np.asarray(found), inverse, rtol=1e-8, atol=1e-10)


def test_functions_called_with_other_constants(rng):
    k = definite(rng)
    for c in (0.5, 0.25, 2.0):
        for e in (c * np.eye(N), np.diag(c + rng.random(N)), c * k):
            f = lambda a, e=e: pl.logdet(a + e)
            wanted = np.linalg.inv(k + e)
            for _ in range(2):
                found = pl.grad(f)(k)
                np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-8, atol=1e-10)
            value, slope = pl.value_and_grad(lambda a, b: pl.logdet(a + b), argnums=1)(k, e)
            np.testing.assert_allclose(float(value), np.linalg.slogdet(k + e)[1], rtol=1e-10)
            np.testing.assert_allclose(np.asarray(slope), wanted, rtol=1e-8, atol=1e-10)


def test_programs_read_the_arrays_that_they_hold(rng):
    k, e, b = definite(rng), np.eye(N), rng.standard_normal(N)
    both = pl.program(lambda a, c: pl.logdet(a + c))
    held = pl.program(lambda a: (pl.logdet(a + e), pl.solve(a + e, b)))
    slope = pl.value_and_grad(lambda a: pl.logdet(a - e))
    for c in (np.eye(N), 3.0 * np.eye(N), np.diag(rng.random(N)), definite(rng), np.eye(N)):
        e[:] = c
        for _ in range(5):  # by the last one a tape may run
            wanted = np.linalg.slogdet(k + c)[1]
            np.testing.assert_allclose(float(both(k, c)), wanted, rtol=1e-10)
            value, x = held(k)
            np.testing.assert_allclose(float(value), wanted, rtol=1e-10)
            np.testing.assert_allclose(x, np.linalg.solve(k + c, b), rtol=1e-9)
            value, found = slope(9 * k)
            np.testing.assert_allclose(float(value), np.linalg.slogdet(9 * k - c)[1], rtol=1e-10)
            wanted = np.linalg.inv(9 * k - c)
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-8, atol=1e-10)


def test_pickled_and_verified(rng):
    k, b = definite(rng), rng.standard_normal(N)
    x = pl.solve(pl.lazy(k, "pos") + 0.5 * np.eye(N), b)
    other = pickle.loads(pickle.dumps(x))
    assert np.array_equal(np.asarray(other), np.asarray(x))
    with pl.config(verify=True):
        y = np.asarray(pl.solve(pl.lazy(k, "pos") + np.diag(np.arange(1.0, N + 1)), b))
    np.testing.assert_allclose(y, np.linalg.solve(k + np.diag(np.arange(1.0, N + 1)), b), rtol=1e-9)
