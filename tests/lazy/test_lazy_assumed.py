"""What is assumed of a LazyArray stays with it: in principal parts, quotients and products entry by
entry; where it does not follow it is gone."""

import warnings

import numpy as np
import pytest

import pylinop as pl

N = 17


def definite(rng, n=N):
    a = rng.standard_normal((n, n))
    return a @ a.T + n * np.eye(n)


def steps(call):
    with pl.explaining() as e:
        call()
    return {s["name"] for p in e.plans for s in p.steps}


SAME = {
    "a part": lambda P: P[5:, 5:],
    "the first": lambda P: P[:3, :3],
    "every other": lambda P: P[::2, ::2],
    "over a number": lambda P: P / 3,
    "over NumPy's": lambda P: P / np.float64(3),
    "over an array of none": lambda P: P / np.array(3.0),
    "over one of one": lambda P: P / np.array([[3.0]]),
    "np.divide": lambda P: np.divide(P, 3.0),
    "with a shift": lambda P: P / 3 + pl.Identity(N),
    "its square": lambda P: P * P,
    "a part over a number": lambda P: P[2:, 2:] / 2,
}


@pytest.mark.parametrize("name", SAME)
def test_definite_ones_go_by_cholesky(name, rng):
    a = definite(rng)
    made = SAME[name](pl.lazy(a, assume_a="pos"))
    plain = np.asarray(SAME[name](pl.lazy(a)))
    assert made.shape == plain.shape
    np.testing.assert_allclose(np.asarray(made), plain, rtol=4e-16, atol=0)
    b = rng.standard_normal(plain.shape[0])
    assert "potrf" in steps(lambda: np.asarray(pl.solve(SAME[name](pl.lazy(a, assume_a="pos")), b)))
    again = SAME[name](pl.lazy(a, assume_a="pos"))
    np.testing.assert_allclose(pl.solve(again, b), np.linalg.solve(plain, b), rtol=1e-12, atol=0)


GONE = {
    "backwards": lambda P: P[::-1, ::-1],  # the triangle that is read is the other one then
    "off the diagonal": lambda P: P[5:10, 6:11],
    "rows alone": lambda P: P[2:7] @ P[2:7].T,
    "other steps": lambda P: P[::2, 1::2],
    "times another": lambda P: P * np.linspace(-1, 1.1, N),
}


@pytest.mark.parametrize("name", GONE)
def test_others_are_general(name, rng):
    a = definite(rng)
    made = np.asarray(GONE[name](pl.lazy(a, assume_a="pos")))
    np.testing.assert_allclose(made, np.asarray(GONE[name](a)), rtol=1e-13, atol=1e-13)
    if made.shape[0] == made.shape[1]:
        b = rng.standard_normal(made.shape[0])
        x = np.asarray(pl.solve(GONE[name](pl.lazy(a, assume_a="pos")), b))
        left = np.linalg.norm(made @ np.asarray(x) - b)
        assert left <= 1e-12 * (np.linalg.norm(made, 2) * np.linalg.norm(x) + 1)


def test_triangles_turn_round_when_read_backwards(rng):
    a = np.tril(rng.standard_normal((N, N))) + N * np.eye(N)
    b = rng.standard_normal(N)
    for word, L in (("lower triangular", a), ("upper triangular", np.ascontiguousarray(a.T))):
        P, D = pl.lazy(L, assume_a=word), pl.Dense(L, assume_a=word)
        for A in (P, D):
            x = pl.solve(A[::-1, ::-1], b)
            np.testing.assert_allclose(x, np.linalg.solve(L[::-1, ::-1], b), rtol=1e-11)
            x = pl.solve(A[3:, 3:], b[3:])
            np.testing.assert_allclose(x, np.linalg.solve(L[3:, 3:], b[3:]), rtol=1e-11)


@pytest.mark.parametrize("word", ["sym", "her", "pos"])
def test_what_is_read_does_not_turn_round(word, rng):
    """Read backwards, the triangle that is the matrix is the one that must not be read."""
    a = definite(rng)
    half = np.triu(a) + np.tril(100 * rng.standard_normal((N, N)), -1)
    b = rng.standard_normal(N)
    for A in (pl.lazy(half, assume_a=word), pl.Dense(half, assume_a=word)):
        x = np.asarray(pl.solve(A[3:, 3:], b[3:]))
        assert np.linalg.norm(a[3:, 3:] @ x - b[3:]) <= 1e-11 * np.linalg.norm(b)
        turned = (np.triu(half) + np.triu(half, 1).T)[::-1, ::-1]
        np.testing.assert_array_equal(np.asarray(A[::-1, ::-1]), turned)
        x = np.asarray(pl.solve(A[::-1, ::-1], b))
        size = np.linalg.norm(turned, 2) * np.linalg.norm(x)
        assert np.linalg.norm(turned @ x - b) <= 1e-12 * (size + 1)


def test_the_conditional_covariance_is_one_cholesky(rng):
    a = definite(rng, 60)
    P = pl.lazy(a, assume_a="pos")
    k = 20
    found = steps(lambda: np.asarray(P[:k, :k] - P[:k, k:] @ pl.inv(P[k:, k:]) @ P[k:, :k]))
    assert "potrf" in found and "getrf" not in found
    want = a[:k, :k] - a[:k, k:] @ np.linalg.solve(a[k:, k:], a[k:, :k])
    again = P[:k, :k] - P[:k, k:] @ pl.inv(P[k:, k:]) @ P[k:, :k]
    np.testing.assert_allclose(np.asarray(again), want, rtol=0, atol=1e-12 * np.abs(a).max())


def test_integers_divide_as_numpys(rng):
    a = np.eye(3, dtype=int) * 7
    assert np.array_equal(np.asarray(pl.lazy(a, assume_a="pos") / 3), a / 3)


@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("n", [6, 60])
def test_a_shared_inverse_has_one_factor_of_the_named_triangle(n, complex_, rng):
    """What is computed once for two uses is seen transposed by one of them: the matrix that is
    factored stays the one whose upper triangle was given."""
    C = rng.standard_normal((n, 2 * n)) + 1j * complex_ * rng.standard_normal((n, 2 * n))
    C = C @ C.conj().T / n + np.eye(n)
    C, X = (C, rng.standard_normal((n, 3))) if complex_ else (C.real, rng.standard_normal((n, 3)))
    d, y = 1 + rng.random(n), rng.standard_normal(n)
    named = np.triu(C) + np.tril(rng.standard_normal((n, n)), -1)
    V = 0.7 * pl.lazy(named, assume_a="pos") + 0.3 * pl.Diag(d)
    W = np.linalg.inv(0.7 * C + 0.3 * np.diag(d))
    L = pl.lazy(X)
    for A, B in ((V, W), (V.T, W.T), (V.conj(), W.conj())):
        wanted = np.linalg.solve(X.T @ B @ X, X.T @ B @ y)
        with pl.explaining() as e:
            got = np.asarray(pl.inv(L.T @ pl.inv(A) @ L) @ L.T @ pl.inv(A) @ y)
        assert np.max(np.abs(got - wanted)) < 1e-10 * np.max(np.abs(wanted))
        slots = [(p, s) for p in e.plans for s in p.steps if s["name"] == "potrf"]
        some = sum(p.slots[s["arguments"][1]]["shape"][-1] == n for p, s in slots)
        assert some == 1 or (complex_ and A is not V and some == 2)  # half a solve by conj(A)


def test_a_function_of_one_matrix_is_computed_once_an_evaluation(rng):
    P = definite(rng)
    Q = pl.inv(pl.lazy(P, assume_a="pos") + 0.5 * pl.Identity(N))
    with pl.explaining() as e:
        got = np.asarray(pl.diagonal(Q) ** 2 + np.log(pl.diagonal(Q)) * pl.diagonal(Q.T, 0))
    d = np.diag(np.linalg.inv(P + 0.5 * np.eye(N)))
    np.testing.assert_allclose(got, d**2 + np.log(d) * d, rtol=1e-12)
    assert sum(s["name"] == "potri" for p in e.plans for s in p.steps) <= 2
    assert np.all(np.asarray(pl.sample(Q) - pl.sample(Q)))  # two draws
    assert float(pl.logdet(Q, method="slq") - pl.logdet(Q, method="slq"))  # by other probes
    one, two = pl.diagonal(Q), pl.diagonal(Q)
    np.asarray(one)
    P += np.eye(N)  # the other has not been asked for
    np.testing.assert_allclose(two, np.diag(np.linalg.inv(P + 0.5 * np.eye(N))), rtol=1e-12)
    np.testing.assert_allclose(np.asarray(one), d, rtol=1e-12)


@pytest.mark.parametrize("complex_", [False, True])
def test_one_factor_on_a_stack_of_vectors(complex_, rng):
    """The vectors run as columns of one matrix, also where Cholesky fails and LU stands in."""
    n, some = 21, 5
    C = rng.standard_normal((n, 2 * n)) + 1j * complex_ * rng.standard_normal((n, 2 * n))
    C = (C if complex_ else C.real) @ C.conj().T / n
    G = rng.standard_normal((some, some))
    x = rng.standard_normal((2, some, n, 1))
    for A, how in ((C, "pos"), (C - np.eye(n), "pos"), (rng.standard_normal((n, n)) + C, None)):
        K, dense = pl.Kron(G, pl.Dense(A, assume_a=how)), np.kron(G, A)
        for op, a in ((K, dense), (K.T, dense.T), (K.H, dense.conj().T), (K.conj(), dense.conj())):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", pl.FallbackWarning)
                got, stack = pl.solve(op, x[0, :, :, 0].ravel()), pl.solve(pl.Dense(A, how), x)
            want = np.linalg.solve(a, x[0, :, :, 0].ravel())
            assert np.max(np.abs(got - want)) < 1e-9 * np.max(np.abs(want))
            want = np.linalg.solve(A, x)
            assert np.max(np.abs(stack - want)) < 1e-9 * np.max(np.abs(want))
