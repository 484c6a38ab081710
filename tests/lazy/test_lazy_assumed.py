"""What is assumed of a LazyArray stays with it: in principal parts, quotients and products entry by
entry; where it does not follow it is gone."""

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
