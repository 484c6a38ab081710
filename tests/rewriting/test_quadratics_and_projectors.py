"""K K + c K as K (K + c I), V (c I + V' V)^-1, projectors squared, parallel sums inverted,
triangles of blocks, (c I + K) L: prices, and accuracy beside what is written."""

import numpy as np
import pytest
from drawn import positive, values

import pylinop as pl

N = 96
inv, DTYPES = pl.inv, ["float64", "complex128"]


def eigen(r, d, dtype):
    q = np.linalg.qr(values(r, (len(d), len(d)), dtype))[0]
    a = (q * d) @ q.conj().T
    return (a + a.conj().T) / 2


def quadratic(K, c):
    return K @ K + (K if c == 1 else c * K)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", ["definite", "1e8", "1e12", "indefinite", "cancels", "not normal"])
def test_determinants_and_solves_of_quadratics(case, dtype):
    """No worse than the formula as written, whose sum has an error of n u |K| (|K| + |c|)."""
    r, c = np.random.default_rng(1), 1.0
    d = np.geomspace(1, {"1e8": 1e-8, "1e12": 1e-12}.get(case, 0.1), N)
    if case == "indefinite":
        d *= np.sign(r.standard_normal(N))
    if case == "cancels":  # eigenvalues near -1: K (K + I) is small where neither factor is
        d = -1 - 1e-7 * r.standard_normal(N)
    k = eigen(r, d, dtype)
    if case == "not normal":
        k = k + np.triu(values(r, (N, N), dtype), 1) / 8
    K = pl.Dense(k, "pos" if case in ("definite", "1e8", "1e12") else None)
    A, a = quadratic(K, c), k @ k + c * k
    condition = (
        np.linalg.norm(k, 2) * (np.linalg.norm(k, 2) + c) * np.linalg.norm(np.linalg.inv(a), 2)
    )
    want = np.linalg.slogdet(k)[1] + np.linalg.slogdet(k + c * np.eye(N))[1]
    assert abs(pl.slogdet(A)[1] - want) <= 4 * N * 2.3e-16 * condition
    b = values(r, (N, 2), dtype)
    x = pl.solve(A, b)
    eta = np.linalg.norm(b - k @ (k @ x + c * x)) / np.linalg.norm(x)
    assert eta <= 10 * N * 2.3e-16 * np.linalg.norm(k, 2) * (np.linalg.norm(k, 2) + c)


@pytest.mark.parametrize("kind", ["Dense", "Kron", "Toeplitz"])
def test_the_price_of_quadratics(kind):
    r = np.random.default_rng(2)
    K = {
        "Dense": lambda: pl.Dense(positive(r, N, "float64"), "pos"),
        "Kron": lambda: pl.Kron(*(pl.Dense(positive(r, n, "float64"), "pos") for n in (8, 12))),
        "Toeplitz": lambda: pl.Toeplitz(np.exp(-np.arange(N) / 5.0)),
    }[kind]()
    one, two = quadratic(K, 1.0), K @ (K + pl.Identity(N))
    assert one.explain("logdet").flops <= 1.3 * two.explain("logdet").flops + 20 * N
    if kind != "Toeplitz":
        b = np.ones(N)
        assert one.explain("solve", b).flops <= 1.3 * two.explain("solve", b).flops + 20 * N


def test_a_singular_quadratic_raises():
    k = np.diag([2.0, 0.0, 1.0])
    with pytest.raises(np.linalg.LinAlgError):
        pl.solve(quadratic(pl.Dense(k), 1.0), np.ones(3))
    assert pl.logdet(quadratic(pl.Dense(k), 1.0)) == -np.inf


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", ["plain", "tiny c", "1e8", "rank"])
def test_ridge_hats(case, dtype):
    """X' (X X' + c I)^-1 X of a tall X forms nothing of N x N, whatever its rank; X.T of a complex
    X is no adjoint."""
    r, k = np.random.default_rng(3), 10
    x = values(r, (N, k), dtype)
    c = 1e-9 if case == "tiny c" else 0.5
    if case == "1e8":
        x = x * np.geomspace(1, 1e-8, k)
    if case == "rank":
        x[:, 1] = x[:, 0]
    X, h = pl.Dense(x), x.conj().T
    small = np.linalg.solve(h @ x + c * np.eye(k), h @ x)
    hat = X.H @ inv(X @ X.H + c * pl.Identity(N)) @ X
    tol = 1e-13 * (1 + np.linalg.norm(x, 2) ** 2 / c) if case == "tiny c" else 1e-12
    np.testing.assert_allclose(hat.toarray(), small, atol=tol)
    np.testing.assert_allclose(hat @ np.ones(k), small.sum(1), atol=k * tol)
    np.testing.assert_allclose(hat.diagonal(), np.diagonal(small), atol=tol)
    left = inv(X @ X.H + c * pl.Identity(N)) @ X
    want = np.linalg.solve(h @ x + c * np.eye(k), h).conj().T
    np.testing.assert_allclose(
        left.toarray(), want, atol=tol * max(1, np.abs(want).max()) / min(1, c)
    )
    assert hat.explain("dense").flops < 20 * N * k * k * (4 if dtype == "complex128" else 1)
    if dtype == "complex128" and case == "plain":
        other = X.T @ inv(X @ X.T + c * pl.Identity(N)) @ X
        want = x.T @ np.linalg.solve(x @ x.T + c * np.eye(N), x)
        np.testing.assert_allclose(other.toarray(), want, atol=1e-10)


@pytest.mark.parametrize("dtype", DTYPES)
def test_graded_ridge_hats(dtype):
    """(c I + V V')^-1 V x has the rounding of V x times the inverse: 0.1 to 2 times the answer,
    where V (c I + V' V)^-1 x has 1e-10. It would need a check: such products stay as written."""
    r, k, c = np.random.default_rng(0), 3, 1e-7
    right, left = (np.linalg.qr(values(r, (n, k), dtype))[0] for n in (24, k))
    s = np.array([1e4, 1.0, 1e-4])
    v = (left * s) @ right.conj().T
    V = pl.Dense(v)
    M = V @ inv(V.H @ V + c * pl.Identity(24))
    for A, x, to in ((M, right[:, 0], 1 / s[0]), (M @ V.H, left[:, 0], 1.0)):
        np.testing.assert_allclose(A @ x, left[:, 0] * to, atol=1e-5 * to)
    np.testing.assert_allclose((M @ V.H).toarray() @ left[:, 0], left[:, 0], atol=1e-5)
    other = inv(V.H @ V + c * pl.Identity(24)) @ V.H
    np.testing.assert_allclose(left[:, 0].conj() @ (V @ other), left[:, 0].conj(), atol=1e-5)
    one = pl.lazy(v)
    gram = one.conj().T @ one + c * np.eye(24)
    np.testing.assert_allclose(
        np.asarray(one @ pl.solve(gram, right[:, 0])), left[:, 0] / s[0], atol=1e-5 / s[0]
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_projectors_squared(dtype):
    r, k = np.random.default_rng(4), 5
    U, V, I = pl.Dense(values(r, (N, k), dtype)), pl.Dense(values(r, (k, N), dtype)), pl.Identity(N)
    for M in (I - U @ inv(U.H @ U) @ U.H, I - U @ inv(V @ U) @ V):
        m = M.toarray()
        S = M @ M
        np.testing.assert_allclose(S.toarray(), m, atol=1e-10)
        np.testing.assert_allclose(S.trace(), np.trace(m), atol=1e-10)
        np.testing.assert_allclose(S.diagonal(), np.diagonal(m), atol=1e-10)
        assert S.explain("diagonal").flops < 40 * N * k * k * (4 if dtype == "complex128" else 1)
    for W in (I - U @ inv(V @ U) @ (2 * V), I - U @ inv(U.H @ U) @ V, U @ inv(V @ U) @ V + I):
        w = W.toarray()  # none of these is one
        np.testing.assert_allclose((W @ W).toarray(), w @ w, atol=1e-8 * np.abs(w @ w).max())
    one = pl.Dense(np.ones((N, 2)))
    P = pl.Identity(N) - one @ inv(one.T @ one) @ one.T
    with pytest.raises(np.linalg.LinAlgError):
        (P @ P).diagonal()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("condition", [1, 1e8])
def test_diagonals_of_inverses_of_parallel_sums(condition, dtype):
    r = np.random.default_rng(5)
    d = np.geomspace(1, 1 / condition, N)
    p, q = eigen(r, d, dtype), eigen(r, d[::-1], dtype)
    P, Q = pl.Dense(p, "pos"), pl.Dense(q, "pos")
    want = np.diagonal(np.linalg.inv(p) + np.linalg.inv(q)).real
    for A in (
        P @ inv(P + Q) @ Q,
        P @ (inv(Q + P) @ Q),
        P - P @ inv(P + Q) @ P,
    ):
        np.testing.assert_allclose(inv(A).diagonal(), want, atol=1e-14 * N * condition * want.max())
    other = P - 0.5 * P @ inv(P + Q) @ P  # no parallel sum
    np.testing.assert_allclose(
        inv(other).diagonal(), np.diagonal(np.linalg.inv(other.toarray())), rtol=1e-6
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_diagonals_of_inverses_of_triangles_of_blocks(dtype):
    r, k = np.random.default_rng(6), 30
    S, D = pl.Dense(positive(r, k, dtype), "pos"), pl.Diag(1 + r.random(20))
    C = pl.Dense(values(r, (20, k), dtype))
    for A in (
        pl.Block([[S, pl.Zeros((k, 20))], [C, D]]),
        pl.Block([[D, C], [pl.Zeros((k, 20)), inv(S)]]),
    ):
        want = np.diagonal(np.linalg.inv(A.toarray()))
        np.testing.assert_allclose(inv(A).diagonal(), want, atol=1e-10)
        np.testing.assert_allclose(inv(A).trace(), want.sum(), atol=1e-9)
    assert inv(A).explain("diagonal").flops < k * k
    whole = pl.Block([[S, C.H], [C, D]])  # no triangle
    want = np.diagonal(np.linalg.inv(whole.toarray()))
    np.testing.assert_allclose(inv(whole).diagonal(), want, atol=1e-9)
    singular = pl.Block([[pl.Diag(np.zeros(3)), pl.Zeros((3, 20))], [C[:, :3], D]])
    with pytest.raises(np.linalg.LinAlgError):
        inv(singular).diagonal()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("view", ["as it is", "T", "H", "conj"])
def test_diagonals_beside_a_shift(view, dtype):
    r = np.random.default_rng(7)
    K, L = (pl.Kron(*(pl.Dense(values(r, (n, n), dtype)) for n in (8, 12))) for _ in range(2))
    U, V = pl.Dense(values(r, (N, 3), dtype)), pl.Dense(values(r, (3, N), dtype))
    S, c = pl.Dense(values(r, (N, N), dtype)), 0.5 + (0.25j if dtype == "complex128" else 0)
    for one, other in ((K, L), (U @ V, S), (-(U @ V), S)):
        M = c * pl.Identity(N) + one
        M = {"as it is": lambda: M, "T": lambda: M.T, "H": lambda: M.H, "conj": M.conj}[view]()
        for A, dense in (
            (M @ other, M.toarray() @ other.toarray()),
            (other @ M, other.toarray() @ M.toarray()),
        ):
            bound = 1e-13 * np.abs(dense).max()
            np.testing.assert_allclose(A.diagonal(), np.diagonal(dense), atol=bound)
            np.testing.assert_allclose(A.diagonal(2), np.diagonal(dense, 2), atol=bound)
            np.testing.assert_allclose(A.trace(), np.trace(dense), atol=N * bound)
    assert ((K + pl.Identity(N)) @ K).explain("diagonal").flops < 60 * N
