"""P (P + Q)^-1 Q, P - P (P + Q)^-1 P and the inverse of P^-1 + Q^-1 of every two kinds: solves,
determinants and diagonals of the inverse without a dense form of the whole, beside NumPy, also
where nothing is definite, one is far larger, or one is singular."""

import numpy as np
import pytest
import scipy.sparse as sp
from drawn import values

import pylinop as pl

pytestmark = pytest.mark.filterwarnings("ignore:.*onditioned")
inv = pl.inv
N = 120
KINDS = ["diagonal", "number", "pos", "any", "band", "sparse", "toeplitz", "update"]


def one(kind, dtype, r, size=1.0, n=N):
    """An operator and its dense form."""
    real = np.zeros(1, dtype).real.dtype
    d, e = (size * r.uniform(1, 2, n)).astype(real), (size * r.random(n - 1) / 3).astype(real)
    if kind == "diagonal":
        return pl.Diag(d), np.diag(d)
    if kind == "number":
        return size * 0.5 * pl.Identity(n), size * 0.5 * np.eye(n)
    if kind == "pos":
        x = values(r, (n, n), dtype)
        x = (size * (x @ x.conj().T / n + np.eye(n))).astype(dtype)
        return pl.Dense(x, "pos"), x
    if kind == "any":
        x = (size * (values(r, (n, n), dtype) / 20 + np.eye(n))).astype(dtype)
        return pl.Dense(x), x
    if kind == "band":
        return pl.Tridiagonal(e, d, e), np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
    if kind == "sparse":
        q = sp.random_array((n, n), density=1.5 / n, rng=r) + 3 * sp.eye_array(n)
        q = (size * q).tocsr().astype(real)
        return pl.Sparse(q), q.toarray()
    if kind == "toeplitz":
        t = pl.Toeplitz((size * np.exp(-np.arange(n) / 3.0)).astype(real))
        return t, t.toarray()
    u = (np.sqrt(size) * values(r, (n, 4), dtype)).astype(dtype)
    return pl.Diag(d) + pl.Dense(u) @ pl.Dense(u).H, np.diag(d) + u @ u.conj().T


def spelled(P, Q):
    yield P - P @ inv(P + Q) @ P
    yield -0.5 * (P @ (inv(Q + P) @ P)) + 0.5 * P
    yield P @ inv(P + Q) @ Q
    yield 2.0 * inv(P) + inv(Q)


def written(p, q):
    p, q = (a.astype(np.result_type(a, np.float64)) for a in (p, q))
    h = np.linalg.inv(p + q)
    yield p @ h @ q
    yield 0.5 * (p @ h @ q)
    yield p @ h @ q
    yield 2 * np.linalg.inv(p) + np.linalg.inv(q)


def looked_at(A, D, b, digits):
    def close(x, y, times=1):
        np.testing.assert_allclose(x, y, rtol=digits, atol=times * digits * np.abs(y).max())

    close(pl.solve(A, b), np.linalg.solve(D, b))
    close(pl.solve(A.H, b[:, 0]), np.linalg.solve(D.conj().T, b[:, 0]))
    sign, log = pl.slogdet(A)
    found = np.linalg.slogdet(D)
    assert abs(sign - found[0]) < 20 * digits
    assert abs(log - found[1]) < 20 * digits * (1 + abs(found[1]))
    close(inv(A).diagonal(), np.diagonal(np.linalg.inv(D)))
    close(pl.trace(inv(A)), np.trace(np.linalg.inv(D)), 10)


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("p", [k for k in KINDS if k not in ("diagonal", "number")])
@pytest.mark.parametrize("q", KINDS)
def test_beside_dense(p, q, dtype):
    r = np.random.default_rng([len(p), KINDS.index(q), len(dtype)])
    P, p = one(p, dtype, r)
    Q, q = one(q, dtype, r)
    b = values(r, (N, 3), dtype)
    for A, D in zip(spelled(P, Q), written(p, q), strict=True):
        looked_at(A, D, b, 5e-3 if dtype == "float32" else 1e-9)


@pytest.mark.parametrize("p", ["pos", "band", "update"])
@pytest.mark.parametrize("size", [1e-6, 1e-3, 1e3, 1e6])
def test_one_is_far_larger(p, size):
    r = np.random.default_rng(3)
    P, p = one(p, "float64", r)
    b = values(r, (N, 2), "float64")
    for q in ("diagonal", "pos", "band"):
        Q, own = one(q, "float64", r, size)
        for A, D in zip(spelled(P, Q), written(p, own), strict=True):
            looked_at(A, D, b, 1e-8 if size > 1 else 1e-9 / size)


@pytest.mark.no_verify
@pytest.mark.parametrize("q", ["diagonal", "number", "band", "sparse"])
@pytest.mark.parametrize("p", ["sparse", "update"])  # a band and a band are one when they are added
def test_nothing_cubic_is_left(p, q):
    r, n = np.random.default_rng(4), 480
    P, Q = (one(k, "float64", r, n=n)[0] for k in (p, q))
    A = next(spelled(P, Q))
    for e in (A.explain("solve", np.ones(n)), A.explain("logdet"), inv(A).explain("diagonal")):
        assert e.flops < n**3 / 6  # a factor alone: n^3 / 3


@pytest.mark.no_verify
def test_of_dense_ones_the_factors_alone():
    r = np.random.default_rng(5)
    K, L = one("pos", "float64", r)[0], one("pos", "float64", r)[0]
    A = K - K @ inv(K + L) @ K
    for A in (K - K @ inv(K + L) @ K, inv(K) + inv(L)):
        assert A.explain("logdet").flops < 1.3 * N**3  # three factors
    assert (K - K @ inv(K + L) @ K).explain("solve", np.ones(N)).flops < 1.3 * N**3


def test_singular_ones():
    r = np.random.default_rng(6)
    P, p = one("pos", "float64", r)
    d = r.uniform(1, 2, N)
    d[3] = 0
    A = P - P @ inv(P + pl.Diag(d)) @ P  # of rank N - 1
    assert pl.slogdet(A)[1] < np.linalg.slogdet(p)[1] - 25
    with pytest.warns(match="onditioned"):
        pl.solve(A, np.ones(N))
    D = inv(P) + inv(-1.0 * P)  # 0
    assert pl.slogdet(D)[1] < -20 * N or pl.slogdet(D)[0] == 0


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("kinds", ["band", "two bands", "toeplitz", "two toeplitz", "diagonal"])
def test_sums_that_closed(kinds, dtype):
    """P + Q is one kind with P: Q is what was added."""
    r = np.random.default_rng(11)
    P, p = one(kinds.split()[-1].removesuffix("s"), dtype, r)
    other = {"band": "diagonal", "toeplitz": "number", "diagonal": "number"}
    Q, q = one(other.get(kinds, kinds.split()[-1].removesuffix("s")), dtype, r, 0.5)
    assert type(P + Q) is type(P)
    b = values(r, (N, 3), dtype)
    for A, D in zip(spelled(P, Q), written(p, q), strict=True):
        looked_at(A, D, b, 5e-3 if dtype == "float32" else 1e-9)
    if dtype == "float64":
        A, most = P - P @ inv(P + Q) @ P, N**3
        assert A.explain("logdet").flops < most
        assert A.explain("solve", b[:, 0]).flops < most
        assert inv(A).explain("diagonal").flops < most
