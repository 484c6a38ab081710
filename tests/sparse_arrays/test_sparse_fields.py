"""E + c U M^-1 V^H of a diagonal E and sparse others: a field that its precision M describes, seen
through U with noise E. Solves, determinants, parts of the inverse, variances U M^-1 U^H, gradients,
on both sides of where the sparse way begins, beside NumPy; and what no fast way may get wrong."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl

pytestmark = pytest.mark.filterwarnings("ignore:.*onditioned", "ignore:.*large dense")


def line(k):
    return sp.diags_array([-np.ones(k - 1), 2 * np.ones(k), -np.ones(k - 1)], offsets=[-1, 0, 1])


def grid(k, shift, dtype=np.float64, r=None):
    Q = sp.kron(line(k), sp.eye_array(k)) + sp.kron(sp.eye_array(k), line(k))
    Q = Q + shift * sp.eye_array(k * k)
    if np.dtype(dtype).kind == "c":
        turn = np.exp(1j * r.uniform(0, 6, k * k))
        Q = sp.diags_array(turn) @ Q @ sp.diags_array(turn.conj())
    return Q.tocsr().astype(dtype)


def points(r, m, n, dtype=np.float64):
    """Each row two neighbours, of weights that add up to 1."""
    at, w = r.integers(0, n - 1, m), r.random(m)
    rows = np.tile(np.arange(m), 2)
    return sp.csr_array((np.r_[w, 1 - w], (rows, np.r_[at, at + 1])), shape=(m, n)).astype(dtype)


def largest(explained):
    """The most numbers that a step which ran wrote."""
    sizes = [
        re.findall(r"\d+", s["writes"].partition("(")[2]) for s in explained.steps if s["took"]
    ]
    return max(int(np.prod([int(k) for k in size])) for size in sizes)


def close(x, y, digits):
    np.testing.assert_allclose(x, y, rtol=digits, atol=digits * np.abs(y).max())


@pytest.mark.parametrize(  # 361, 400 and 441 rows
    ("k", "dtype"),
    [(19, np.float64), (20, np.float64), (21, np.float64), (20, np.complex128), (20, np.float32)],
)
@pytest.mark.parametrize("seen", ["whole", "points", "picked", "nonsymmetric"])
@pytest.mark.parametrize("noise", ["number", "diagonal"])
def test_beside_dense(k, dtype, seen, noise):
    r = np.random.default_rng([k, len(seen), len(noise)])
    n = k * k
    Q = grid(k, 0.3, dtype, r)
    left = right = None
    m = n
    if seen == "points":
        m, left = 150, points(r, 150, n, dtype)
    if seen == "nonsymmetric":
        m, left, right = 130, points(r, 130, n, dtype), points(r, 130, n, dtype)
    A = pl.inv(pl.Sparse(Q))
    wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
    D = np.linalg.inv(Q.toarray().astype(wide))
    if seen == "picked":
        at = r.integers(0, n, 140)
        m, S = 140, pl.Selection(at, n)
        A, D = S @ A @ S.T, D[np.ix_(at, at)]
    if left is not None:
        right = left if right is None else right
        A = pl.Sparse(left) @ A @ pl.Sparse(right).H
        D = left.toarray() @ D @ right.toarray().conj().T
    if noise == "number":
        A, D = A + 0.25 * pl.Identity(m), D + 0.25 * np.eye(m)
    else:
        e = r.uniform(0.5, 2, m).astype(np.zeros(1, dtype).real.dtype)
        A, D = pl.Diag(e) + 0.5 * A, np.diag(e) + 0.5 * D
    digits = 3e-4 if dtype == np.float32 else 1e-11
    b = r.standard_normal((m, 3)).astype(dtype)
    close(pl.solve(A, b), np.linalg.solve(D, b), digits)
    close(pl.solve(A.T, b[:, 0]), np.linalg.solve(D.T, b[:, 0]), digits)
    close(b[:, 0] @ pl.inv(A), b[:, 0] @ np.linalg.inv(D), digits)
    sign, log = pl.slogdet(A)
    found = np.linalg.slogdet(D)
    assert abs(sign - found[0]) < 20 * digits
    assert abs(log - found[1]) < 20 * digits * (1 + abs(found[1]))
    close(pl.inv(A).diagonal(), np.diagonal(np.linalg.inv(D)), digits)
    close(pl.trace(pl.inv(A)), np.trace(np.linalg.inv(D)), digits)


@pytest.mark.parametrize("m", [31, 32, 33, 63, 64, 65, 200, 500])
def test_few_and_many_rows(m):
    r = np.random.default_rng(m)
    Q, A = grid(21, 0.1), points(r, m, 441)
    F = pl.Sparse(A) @ pl.inv(pl.Sparse(Q)) @ pl.Sparse(A).T
    D = A.toarray() @ np.linalg.inv(Q.toarray()) @ A.toarray().T
    close(F.diagonal(), np.diagonal(D), 1e-11)
    V = F + 0.1 * pl.Identity(m)
    close(pl.logdet(V), np.linalg.slogdet(D + 0.1 * np.eye(m))[1], 1e-11)
    close(pl.solve(V, np.ones(m)), np.linalg.solve(D + 0.1 * np.eye(m), np.ones(m)), 1e-11)
    close(pl.inv(V).diagonal(), np.diagonal(np.linalg.inv(D + 0.1 * np.eye(m))), 1e-11)


@pytest.mark.no_verify
def test_no_dense_form_is_made():
    r = np.random.default_rng(3)
    n, m = 10_000, 3_000
    F = pl.Sparse(points(r, m, n)) @ pl.inv(pl.Sparse(grid(100, 0.2)))
    F = F @ pl.Sparse(points(np.random.default_rng(3), m, n)).T
    V = F + pl.Diag(r.uniform(1, 2, m))
    for ask in (
        lambda: pl.solve(V, np.ones(m)),
        lambda: pl.slogdet(V),
        lambda: pl.inv(V).diagonal(),
        F.diagonal,
    ):
        with pl.explaining() as e:
            ask()
        assert 0 < largest(e) < 100 * n


@pytest.mark.parametrize("e", [1e-9, 1e-4, 1.0, 1e4, 1e9])
def test_small_and_large_noise(e):
    """A circulant precision: the eigenvalues are known, so that all digits can be looked at."""
    n = 600
    c = np.zeros(n)
    c[[0, 1, -1]] = 2.01, -1, -1
    Q = sp.csr_array(
        sp.diags_array(
            [2.01 * np.ones(n), -np.ones(n - 1), -np.ones(n - 1)], offsets=[0, 1, -1]
        ).tolil()
    )
    Q = Q.tolil()
    Q[0, n - 1] = Q[n - 1, 0] = -1
    V = pl.inv(pl.Sparse(Q.tocsr())) + e * pl.Identity(n)
    own = 1 / np.fft.fft(c).real + e
    assert abs(pl.logdet(V) - np.log(own).sum()) < 1e-9 * (1 + abs(np.log(own).sum()))
    b = np.random.default_rng(0).standard_normal(n)
    x = np.fft.ifft(np.fft.fft(b) / own).real
    close(pl.solve(V, b), x, 1e-10)
    close(pl.inv(V).diagonal(), np.full(n, (1 / own).mean()), 1e-10)


def test_what_is_not_seen_costs_no_digits():
    """A component that is all but singular and that no row of U sees: det M and det H are rounded
    there, each in its own way, and neither may be believed."""
    r = np.random.default_rng(5)
    loop = sp.kron(sp.eye_array(60), sp.csr_array([[1.0, -1.0], [-1.0, 1.0]]))
    hidden = loop + 1e-11 * sp.diags_array(r.uniform(1, 2, 120))
    Q = sp.block_diag([grid(20, 0.5), hidden]).tocsr()
    A = sp.hstack([points(r, 200, 400), sp.csr_array((200, 120))]).tocsr()
    V = pl.Sparse(A) @ pl.inv(pl.Sparse(Q)) @ pl.Sparse(A).T + 0.5 * pl.Identity(200)
    seen = A.toarray()[:, :400]
    D = seen @ np.linalg.inv(grid(20, 0.5).toarray()) @ seen.T + 0.5 * np.eye(200)
    assert abs(pl.logdet(V) - np.linalg.slogdet(D)[1]) < 1e-10
    close(pl.solve(V, np.ones(200)), np.linalg.solve(D, np.ones(200)), 1e-10)
    close(pl.inv(V).diagonal(), np.diagonal(np.linalg.inv(D)), 1e-10)


def test_singular_and_bad_values():
    r = np.random.default_rng(6)
    Q = grid(20, 0.0)
    Q = (Q - sp.diags_array(Q @ np.ones(400))).tocsr()  # rows add up to 0
    A = points(r, 100, 400)
    V = pl.Sparse(A) @ pl.inv(pl.Sparse(Q)) @ pl.Sparse(A).T + pl.Identity(100)
    with pytest.warns(pl.IllConditionedWarning):
        pl.solve(V, np.ones(100))
    H = (Q + A.T @ A).toarray()  # A^-1 has a limit, which needs no inverse of Q
    limit = np.eye(100) - A.toarray() @ np.linalg.inv(H) @ A.toarray().T
    close(pl.inv(V).diagonal(), np.diagonal(limit), 1e-11)
    P = grid(20, 0.4)
    e = np.ones(400)
    W = pl.inv(pl.Sparse(P)) + pl.Diag(e)
    before = pl.logdet(W)
    e[7] = 0.0  # E has no inverse, A has
    D = np.linalg.inv(P.toarray()) + np.diag(e)
    close(pl.logdet(W), np.linalg.slogdet(D)[1], 1e-11)
    close(pl.solve(W, np.ones(400)), np.linalg.solve(D, np.ones(400)), 1e-10)
    close(pl.inv(W).diagonal(), np.diagonal(np.linalg.inv(D)), 1e-10)
    e[7] = 1.0
    assert pl.logdet(W) == before
    e[7] = -0.2  # and may be indefinite
    D[7, 7] -= 0.2
    close(pl.logdet(W), np.linalg.slogdet(D)[1], 1e-11)
    e[7] = np.nan
    assert np.isnan(pl.slogdet(W)[1])


def negative_log_likelihood(S, A, y, m):
    def loss(p):
        t, shift, s = p
        Q = np.exp(t) * S + np.exp(shift) * pl.Identity(S.shape[0])
        F = pl.inv(Q) if A is None else A @ pl.inv(Q) @ A.T
        V = F + np.exp(s) * pl.Identity(m)
        return y @ pl.solve(V, y) + pl.logdet(V)

    return loss


def dense_gradient(S, A, y, p):
    t, shift, s = np.exp(p)
    P = np.linalg.inv(t * S + shift * np.eye(len(S)))
    A = np.eye(len(S)) if A is None else A
    V = np.linalg.inv(A @ P @ A.T + s * np.eye(len(A)))
    W = V - np.outer(V @ y, V @ y)
    N = P @ A.T @ W @ A @ P
    return np.array([-t * np.sum(N * S), -shift * np.trace(N), s * np.trace(W)])


@pytest.mark.parametrize("seen", ["whole", "points", "picked"])
@pytest.mark.parametrize("k", [19, 20])
def test_gradients(seen, k):
    r = np.random.default_rng([k, len(seen)])
    n = k * k
    S, m, A, B = grid(k, 0.0), n, None, None
    if seen == "points":
        m, B = 160, points(r, 160, n)
        A, B = pl.Sparse(B), B.toarray()
    if seen == "picked":
        m, A = 170, pl.Selection(r.integers(0, n, 170), n)
        B = A.toarray()
    y = r.standard_normal(m)
    f = pl.value_and_grad(negative_log_likelihood(pl.Sparse(S), A, y, m))
    for p in (np.array([0.1, -1.0, -0.5]), np.array([0.1, -3.0, 2.0]), np.array([0.0, 1.0, 6.0])):
        want = dense_gradient(S.toarray(), B, y, p)
        close(f(p)[1], want, 1e-9)


def test_gradients_through_a_square():
    """Of (L + k I)^2, by t and k; the middle of the product is a sum of a pair and an inverse."""
    r = np.random.default_rng(21)
    S, B = grid(20, 0.0), points(r, 130, 400)
    y = r.standard_normal(130)
    L, A = pl.Sparse(S), pl.Sparse(B)

    def loss(p):
        t, shift, s = p
        Q = L + shift * pl.Identity(400)
        V = A @ pl.inv(t * (Q @ Q)) @ A.T + s * pl.Identity(130)
        return y @ pl.solve(V, y) + pl.logdet(V)

    p = np.array([1.1, 0.3, 0.2])
    Q = S.toarray() + p[1] * np.eye(400)
    P, U = np.linalg.inv(p[0] * Q @ Q), B.toarray()
    V = np.linalg.inv(U @ P @ U.T + p[2] * np.eye(130))
    W = V - np.outer(V @ y, V @ y)
    N = P @ U.T @ W @ U @ P
    close(pl.grad(loss)(p), [-np.sum(N * (Q @ Q)), -2 * p[0] * np.sum(N * Q), np.trace(W)], 1e-9)


@pytest.mark.no_verify
def test_gradients_make_no_dense_form():
    r = np.random.default_rng(8)
    k, m = 60, 1_500
    A = pl.Sparse(points(r, m, k * k))
    y = r.standard_normal(m)
    f = pl.value_and_grad(negative_log_likelihood(pl.Sparse(grid(k, 0.0)), A, y, m))
    f(np.array([0.1, -2.0, -0.5]))
    with pl.explaining() as e:
        f(np.array([0.2, -2.0, -0.5]))
    assert {"selected-inverse", "sparse-det"} <= {s["name"] for s in e.steps if s["took"]}
    assert 0 < largest(e) < 100 * k * k


def test_gradients_by_the_numbers_of_the_precision():
    r = np.random.default_rng(9)
    Q, A = grid(20, 0.5), points(r, 120, 400)
    y = r.standard_normal(120)

    def loss(data):
        P = pl.Sparse(Q, data=data)
        V = pl.Sparse(A) @ pl.inv(P) @ pl.Sparse(A).T + 0.3 * pl.Identity(120)
        return y @ pl.solve(V, y) + pl.logdet(V)

    got = pl.grad(loss)(Q.data)
    P, B = np.linalg.inv(Q.toarray()), A.toarray()
    V = np.linalg.inv(B @ P @ B.T + 0.3 * np.eye(120))
    N = P @ B.T @ (V - np.outer(V @ y, V @ y)) @ B @ P
    at = Q.tocoo()
    close(got, -N.T[at.coords], 1e-9)


@pytest.mark.parametrize("large", [1e6, 1e12, 1e15])
def test_noise_of_many_sizes(large):
    """Missing data: rows with large noise keep their digits, and so do derivatives of what only
    such rows see."""
    n = 400
    Q, e = grid(20, 0.5), np.ones(400)
    e[::10] = large
    D = np.linalg.inv(Q.toarray()) + np.diag(e)
    V = pl.inv(pl.Sparse(Q)) + pl.Diag(e)
    assert np.abs(D @ pl.solve(V, np.ones(n)) - 1).max() < 1e-12
    left, right = (sp.block_diag(x).tocsr() for x in ((Q, 0 * Q), (0 * Q, Q)))
    noise = np.r_[np.ones(n), np.full(n, large)]

    def loss(p):
        P = p[0] * pl.Sparse(left) + p[1] * pl.Sparse(right)
        return pl.logdet(pl.inv(P) + pl.Diag(noise))

    P = np.linalg.inv(Q.toarray())
    due = [-np.trace(np.linalg.solve(P + c * np.eye(n), P)) for c in (1.0, large)]
    np.testing.assert_allclose(pl.grad(loss)(np.ones(2)), due, rtol=1e-9)


def test_rows_that_see_nothing():
    r = np.random.default_rng(30)
    Q, A = grid(20, 0.5), points(r, 120, 400).tolil()
    A[3] = 0
    A = A.tocsr()
    for e in (1e-3, 1e-7, 1e-200):
        noise = np.ones(120)
        noise[3] = e
        V = pl.Sparse(A) @ pl.inv(pl.Sparse(Q)) @ pl.Sparse(A).T + pl.Diag(noise)
        D = A.toarray() @ np.linalg.inv(Q.toarray()) @ A.toarray().T
        keep = np.arange(120) != 3
        due = np.empty(120)
        due[keep] = np.diagonal(np.linalg.inv(D[np.ix_(keep, keep)] + np.eye(119)))
        due[3] = 1 / e
        np.testing.assert_allclose(pl.inv(V).diagonal(), due, rtol=1e-9)


def test_a_gap_that_is_too_small_goes_by_the_product():
    """Noise that covers all: M^-1 - H^-1 would keep no digit."""
    r = np.random.default_rng(10)
    S, y = grid(20, 0.0), r.standard_normal(400)
    f = pl.value_and_grad(negative_log_likelihood(pl.Sparse(S), None, y, 400))
    p = np.array([0.0, 0.5, 25.0])
    close(f(p)[1], dense_gradient(S.toarray(), None, y, p), 1e-8)
