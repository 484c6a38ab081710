"""B + U C V^H of a sparse B or a band that is singular, or next to it: a Laplacian of a graph
beside a constant, whose inverse tells effective resistances. Beside NumPy, without a dense form."""

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl

pytestmark = pytest.mark.filterwarnings("ignore:.*onditioned", "ignore:.*large dense")


def grid(m):
    """No flow over the rim: constants are in its null space."""
    ends = np.r_[1, 2 * np.ones(m - 2), 1]
    line = sp.diags_array([-np.ones(m - 1), ends, -np.ones(m - 1)], offsets=[-1, 0, 1])
    return sp.csr_array(sp.kron(line, sp.eye_array(m)) + sp.kron(sp.eye_array(m), line))


def singular(kind, m, r):
    """The operator, its dense form, and bases of its null spaces on the right and the left."""
    n = m * m
    one = np.ones((n, 1)) / m
    if kind == "grid":
        S = grid(m)
        return pl.Sparse(S), S.toarray(), one, one
    if kind == "laplacian":
        L = -1.0 * pl.Laplacian((m, m), boundary_conditions="neumann")
        return L, L.todense(), one, one
    if kind == "parts":  # each of three has a constant of its own
        S = sp.csr_array(sp.block_diag([grid(m // 3)] * 3, format="csr"))
        k = S.shape[0] // 3
        ones = np.kron(np.eye(3), np.ones((k, 1)) / np.sqrt(k))
        return pl.Sparse(S), S.toarray(), ones, ones
    if kind == "line":
        e = np.ones(n - 1)
        T = pl.Tridiagonal(-e, np.r_[1, 2 * np.ones(n - 2), 1], -e)
        return T, T.todense(), one, one
    d, f = (np.exp(1j * r.uniform(0, 6, n)) for _ in range(2))  # complex, and not Hermitian
    S = sp.csr_array(sp.diags_array(d) @ grid(m) @ sp.diags_array(f))
    return pl.Sparse(S), S.toarray(), one / f[:, None], one * d[:, None]


def no_square(record, n):
    """Did no step run that writes a dense form?"""
    ran = [str(s["writes"]) for p in record.plans for s in p.steps if s["took"] is not None]
    return not [w for w in ran if any(f"({n + k}, {n + k})" in w for k in range(6))]


KINDS = ["grid", "laplacian", "parts", "line", "complex"]


@pytest.mark.no_verify  # whose own dense forms would be counted
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("middle", [False, True])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_beside_dense(kind, middle, size):
    r = np.random.default_rng([KINDS.index(kind), middle])
    B, b, right, left = singular(kind, 45 if kind == "parts" else 24, r)
    n, k = left.shape
    u = np.concatenate([left, 0.1 * r.standard_normal((n, 2))], 1)
    v = np.concatenate([right, 0.1 * r.standard_normal((n, 2))], 1)
    c = np.eye(k + 2) + 0.2 * r.standard_normal((k + 2, k + 2)) if middle else np.eye(k + 2)
    for scale in (1.0, 1.3, 0.7):
        low = pl.LowRank(u, v, size * c) if middle else size * pl.LowRank(u, v)
        A, a = scale * B + low, scale * b + size * u @ c @ v.conj().T
        y = r.standard_normal((n, 3))
        with pl.explaining() as record:
            got = [pl.solve(A, y), pl.solve(A, y[:, 0]), pl.solve(A.T, y), pl.solve(A.H, y)]
            sign, log = pl.slogdet(A)
        assert no_square(record, n)
        rel = 1e-15 * np.linalg.cond(a) + 1e-13
        for x, due in zip(
            got,
            (
                np.linalg.solve(a, y),
                np.linalg.solve(a, y[:, 0]),
                np.linalg.solve(a.T, y),
                np.linalg.solve(a.conj().T, y),
            ),
            strict=True,
        ):
            assert np.linalg.norm(x - due) <= 100 * rel * np.linalg.norm(due)
        s, ln = np.linalg.slogdet(a)
        assert abs(sign - s) <= 100 * rel and abs(log - ln) <= 100 * rel * max(abs(ln), 1)


@pytest.mark.no_verify
def test_effective_resistance_and_its_gradient():
    S = grid(24)
    n = S.shape[0]
    L, one = pl.Sparse(S), np.ones((n, 1)) / np.sqrt(n)
    e = np.zeros(n)
    e[3], e[-1] = 1, -1
    due = e @ np.linalg.pinv(S.toarray()) @ e
    with pl.explaining() as record:
        value, grad = pl.value_and_grad(lambda c: e @ pl.solve(c * L + pl.LowRank(one), e))(
            np.array(1.7)
        )
    assert no_square(record, n)
    assert abs(value - due / 1.7) <= 1e-12 * due
    assert abs(grad + due / 1.7**2) <= 1e-12 * due


@pytest.mark.parametrize("n", [399, 400, 401])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_single_precision_and_few_rows(n, dtype):
    e = np.ones(n - 1)
    T = sp.diags_array([-e, np.r_[1, 2 * np.ones(n - 2), 1], -e], offsets=[-1, 0, 1])
    T = sp.csr_array(
        T + sp.coo_array(([1, 1, -1, -1], ([0, 9, 0, 9], [0, 9, 9, 0])), shape=T.shape)
    )
    u = (np.ones((n, 1)) / np.sqrt(n)).astype(dtype)
    A = pl.Sparse(T.astype(dtype)) + pl.LowRank(u)
    a, y = T.toarray() + u @ u.T, np.arange(n) % 5 - 2.0
    assert np.linalg.norm(a @ pl.solve(A, y.astype(dtype)) - y) <= 1e-3 * np.linalg.norm(y)
    assert abs(pl.slogdet(A)[1] - np.linalg.slogdet(a)[1]) <= 1e-2


def test_not_numbers():
    S = grid(22)
    n = S.shape[0]
    u = np.random.default_rng(0).standard_normal((n, 1))
    u[5] = np.nan
    assert np.isnan(pl.solve(pl.Sparse(S) + pl.LowRank(u), np.ones(n))).all()
