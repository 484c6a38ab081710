"""Diagonals, traces, elements, rows, slices and sums of products with an inverse near a singular
matrix: they keep the digits that the formula with solves keeps. An inverse that is multiplied by
from both sides loses them to the square of the condition (a Schur complement was off by 8 %)."""

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl

pytestmark = pytest.mark.filterwarnings("ignore::pylinop.IllConditionedWarning")
DTYPES = ["float64", "complex128", "float32", "complex64"]


def covariance(rng, n, dtype, noise=None):
    """A covariance of points on a line, of condition n / noise."""
    x = np.sort(rng.random(n))
    K = np.exp(-20 * (x[:, None] - x) ** 2)
    if np.dtype(dtype).kind == "c":
        turn = np.exp(6j * x)
        K = turn[:, None] * K * turn.conj()
    if noise is None:
        noise = 1e-8 if np.dtype(dtype).itemsize > 8 or dtype == "float64" else 1e-3
    return (K + noise * np.eye(n)).astype(dtype)


def exact(*factors):
    """Their product in 40 digits; a pair (A,) stands for the inverse."""
    with mpmath.workdps(40):
        out = None
        for f in factors:
            m = mpmath.matrix((f[0] if isinstance(f, tuple) else f).tolist())
            m = m**-1 if isinstance(f, tuple) else m
            out = m if out is None else out * m
        return np.array(out.tolist(), dtype=complex)


def seen(f, due):
    """What is asked of f, less what is due."""
    m = due.shape[0]
    a, b = m // 3, m // 2
    total = pl.lazy(f)
    return {
        "dense": f.toarray() - due,
        "diagonal": f.diagonal() - due.diagonal(),
        "beside": pl.diagonal(f, 1) - due.diagonal(1),
        "trace": (f.trace() - due.trace()) / m,
        "trace of the transpose": (f.T.trace() - due.trace()) / m,
        "element": f[a, b] - due[a, b],
        "row": f[a] - due[a],
        "column": f[:, b] - due[:, b],
        "slice": f[a:, : b + 1].toarray() - due[a:, : b + 1],
        "diagonal of a slice": f[a:, a:].diagonal() - due.diagonal()[a:],
        "sums": (np.asarray(total.sum(1)) - due.sum(1)) / m,
        "sum": (np.asarray(total.sum()) - due.sum()) / m**2,
    }


def check(f, due, by_hand, times=60, room=1e3):
    size = np.abs(due).max()
    most = times * np.abs(by_hand - due).max() / size + room * np.finfo(by_hand.dtype).eps
    off = {what: np.abs(x).max() / size for what, x in seen(f, due).items()}
    assert all(x <= most for x in off.values()), (most, off)


def dressed(rng, a):
    """One matrix, written in several ways."""
    d = (1 + rng.random(a.shape[1])).astype(np.empty(0, a.dtype).real.dtype)
    e = (1 + rng.random(a.shape[0])).astype(d.dtype)
    return [
        pl.Dense(a),
        pl.Dense(np.ascontiguousarray(a.T)).T,
        pl.Dense(a / d) @ pl.Diag(d),
        pl.Diag(e) @ pl.Dense(a / e[:, None]),
        pl.Sparse(sp.csr_array(a)),
    ]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows, inner", [(40, 30), (40, 12), (12, 36), (30, 30), (34, 33)])
def test_schur_complements(rows, inner, dtype):
    rng = np.random.default_rng(rows + inner)
    K = covariance(rng, rows + inner, dtype)
    at = rng.permutation(rows + inner)
    i, j = at[:rows], at[rows:]
    P, R, Q, D = K[np.ix_(i, i)], K[np.ix_(i, j)], K[np.ix_(j, j)], K[np.ix_(j, i)]
    due = exact(P) - exact(R, (Q,), D)
    by_hand = P - R @ np.linalg.solve(Q, D)
    own = "her" if np.dtype(dtype).kind == "c" else "sym"
    for assumed in (None, own, "pos"):
        q = pl.Dense(Q, assumed)
        for r, d in zip(dressed(rng, R), dressed(rng, D), strict=True):
            check(pl.Dense(P) - r @ pl.inv(q) @ d, due, by_hand)
    check(pl.Dense(P) - pl.Dense(R) @ pl.inv(pl.Dense(Q.T)).T @ pl.Dense(D), due, by_hand)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [32, 33, 48])
def test_inverses_at_the_end(n, dtype):
    """Of A^-1 B with B near A the rows of A^-1 count, of B A^-1 the columns."""
    rng = np.random.default_rng(n)
    A = covariance(rng, n, dtype)
    B = (A * (1 + 0.1 * np.cos(3 * np.arange(n)))[:, None]).astype(dtype)
    before, after = exact((A,), B), exact(B, (A,))
    d, room = (1 + rng.random(n)).astype(A.real.dtype), np.linalg.cond(A)
    for assumed in (None, "pos"):
        a = pl.inv(pl.Dense(A, assumed))
        for b in dressed(rng, B):
            check(a @ b, before, np.linalg.solve(A, B), room=room)
            check(b @ a, after, np.linalg.solve(A.T, B.T).T, room=room)
        scaled = pl.Diag(d) @ pl.Dense(B / d[:, None])
        check(a @ scaled, before, np.linalg.solve(A, B), room=room)


@pytest.mark.parametrize("dtype", DTYPES)
def test_two_inverses(dtype):
    """A^-1 B A^-1 is large, and what is on both sides of it makes it small again."""
    rng = np.random.default_rng(5)
    n, p = 30, 40
    K = covariance(rng, n + p, dtype, 1e-5 if np.finfo(dtype).eps < 1e-10 else 1e-3)
    R, A, D = K[n:, :n], K[:n, :n], K[:n, n:]
    B = (A * (1 + 0.1 * np.cos(3 * np.arange(n)))[:, None]).astype(dtype)
    due = exact(R, (A,), B, (A,), D)
    by_hand = R @ np.linalg.solve(A, B @ np.linalg.solve(A, D))
    for assumed in (None, "pos"):
        a = pl.inv(pl.Dense(A, assumed))
        for b in dressed(rng, B):
            check(pl.Dense(R) @ a @ b @ a @ pl.Dense(D), due, by_hand, 300)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [33, 60, 100, 256, 257])
def test_inverses_of_definite_matrices_invert_from_both_sides(n, dtype):
    """As LAPACK's potri does: from one side it was 1e4 times as far off, at a condition of 1e10."""
    A = covariance(
        np.random.default_rng(n), n, dtype, 1e-9 if np.finfo(dtype).eps < 1e-10 else 1e-4
    )
    X = pl.inv(pl.Dense(A, "pos")).toarray()
    wide = np.clongdouble if np.dtype(dtype).kind == "c" else np.longdouble
    bound = 4 * n * np.finfo(dtype).eps * np.linalg.norm(A, 2) * np.linalg.norm(X, 2)
    A = A.astype(wide)
    for at in (slice(0, 9), slice(n - 9, n)):
        assert np.abs(A @ X[:, at] - np.eye(n)[:, at]).max() <= bound
        assert np.abs(X[at] @ A - np.eye(n)[at]).max() <= bound


def test_traces_of_one_inverse_and_one_matrix_take_the_inverse():
    """Two thirds of n^3: a solve would take three times as many."""
    A = covariance(np.random.default_rng(3), 200, "float64", 1e-2)
    B = np.cos(np.arange(200.0)[:, None] + np.arange(200.0) ** 2)
    with pl.explaining() as e:
        (pl.inv(pl.Dense(A, "pos")) @ pl.Dense(B)).trace()
    assert "potri" in [s["name"] for p in e.plans for s in p.steps]
