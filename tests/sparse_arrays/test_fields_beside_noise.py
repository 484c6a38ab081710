"""Traces of A^-1 U M^-1 Y, A = E + c U M^-1 V^H: those of the derivatives by c and by the size of
the noise, by the factor of H = M + c V^H E^-1 U; beside NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from sparse_arrays.test_sparse_fields import close, grid, largest, points

import pylinop as pl

pytestmark = pytest.mark.filterwarnings("ignore:.*onditioned", "ignore:.*large dense")


def parts(r, k, dtype, seen):
    """U, M and V, operators and arrays."""
    n = k * k
    M = grid(k, 0.3, dtype, r)
    if seen == "whole":
        U = V = sp.identity(n, dtype).tocsr()
    else:
        U = points(r, 100, n, dtype)
        V = U if seen == "points" else points(r, 100, n, dtype)
    return U, M, V


@pytest.mark.parametrize(("k", "dtype"), [(8, np.float64), (20, np.float64), (20, np.complex128)])
@pytest.mark.parametrize("seen", ["whole", "points", "nonsymmetric"])
@pytest.mark.parametrize("noise", ["number", "diagonal"])
@pytest.mark.parametrize("c", [1.0, 0.3, -0.01])
def test_beside_dense(k, dtype, seen, noise, c):
    r = np.random.default_rng([k, len(seen), len(noise), int(100 + 10 * c)])
    U, M, V = parts(r, k, dtype, seen)
    m = U.shape[0]
    e = np.full(m, 0.25) if noise == "number" else r.uniform(0.5, 2, m)
    E = 0.25 * pl.Identity(m) if noise == "number" else pl.Diag(e)
    F = pl.inv(pl.Sparse(M))
    field = F if seen == "whole" else pl.Sparse(U) @ F @ pl.Sparse(V).H
    side = F if seen == "whole" else pl.Sparse(U) @ F
    u, v = U.toarray(), V.toarray()
    f = u @ np.linalg.inv(M.toarray())
    dense = f @ v.conj().T
    inv = np.linalg.inv(np.diag(e) + c * dense)
    S = pl.inv(E + c * field)
    Y = sp.random_array((M.shape[0], m), density=0.02, rng=r).astype(dtype)
    for got, due in (
        (pl.trace(S @ field), inv @ dense),
        (pl.trace(field @ S), inv @ dense),
        (pl.trace((S @ field).T), inv @ dense),
        (pl.trace(field.T @ S.T), inv @ dense),
        (pl.trace(2 * S @ side @ pl.Sparse(Y)), 2 * inv @ f @ Y.toarray()),
        (pl.trace(pl.Sparse(Y) @ (3 * S) @ side), 3 * inv @ f @ Y.toarray()),
    ):
        assert abs(got - np.trace(due)) <= 1e-10 * np.sum(np.abs(np.diagonal(due)))


@pytest.mark.parametrize("seen", ["whole", "points"])
def test_gradients_by_the_sizes(seen):
    r = np.random.default_rng(len(seen))
    U, M, _ = parts(r, 20, np.float64, seen)
    m = U.shape[0]
    Q, A, y = pl.Sparse(M), pl.Sparse(U), r.standard_normal(m)

    def f(a, s):
        F = pl.inv(Q) if seen == "whole" else A @ pl.inv(Q) @ A.T
        V = np.exp(a) * F + np.exp(s) * pl.Identity(m)
        return pl.logdet(V) + y @ pl.solve(V, y)

    at = (np.array(0.4), np.array(-0.7))
    with pl.explaining() as record:
        got = pl.grad(f, (0, 1))(*at)
    d = U.toarray() @ np.linalg.inv(M.toarray()) @ U.toarray().T
    inv = np.linalg.inv(np.exp(0.4) * d + np.exp(-0.7) * np.eye(m))
    x = inv @ y
    due = [np.exp(0.4) * (np.trace(inv @ d) - x @ d @ x), np.exp(-0.7) * (np.trace(inv) - x @ x)]
    close(np.array(got), np.array(due), 1e-10)
    if seen == "whole":
        assert max(largest(p) for p in record.plans) < m * m // 4


@pytest.mark.parametrize("small", [1e-10, 1e-5, 1e5, 1e10])
def test_sizes_of_noise(small):
    """What is left is not a difference of terms of the size of the inverse of the noise."""
    r = np.random.default_rng(7)
    M = grid(20, 0.3)
    F, d = pl.inv(pl.Sparse(M)), np.linalg.inv(M.toarray())
    lam = np.linalg.eigvalsh(M.toarray())
    close(pl.trace(pl.inv(F + small * pl.Identity(400)) @ F), np.sum(1 / (1 + small * lam)), 1e-11)
    e = np.where(r.integers(0, 2, 400), small, 1.0)
    got = pl.trace(pl.inv(F + pl.Diag(e)) @ F)
    close(got, np.trace(np.linalg.solve(d + np.diag(e), d)), 1e-9)


def test_of_other_matrices():
    """Beside the inverse of another matrix, or another side, it is another product."""
    r = np.random.default_rng(9)
    U, M, V = parts(r, 10, np.float64, "nonsymmetric")
    N = grid(10, 0.7)
    u, v, m, n = (a.toarray() for a in (U, V, M, N))
    inv = np.linalg.inv(0.5 * np.eye(100) + u @ np.linalg.inv(m) @ v.T)
    A, B, F = pl.Sparse(U), pl.Sparse(V), pl.inv(pl.Sparse(M))
    S = pl.inv(A @ F @ B.T + 0.5 * pl.Identity(100))
    for got, due in (
        (pl.trace(S @ A @ pl.inv(pl.Sparse(N)) @ B.T), inv @ u @ np.linalg.inv(n) @ v.T),
        (pl.trace(S @ B @ F @ A.T), inv @ v @ np.linalg.inv(m) @ u.T),
        (pl.trace(S @ A @ F.T @ A.T), inv @ u @ np.linalg.inv(m).T @ u.T),
        (pl.trace(S @ A @ pl.Sparse(M) @ B.T), inv @ u @ m @ v.T),
    ):
        close(got, np.trace(due), 1e-10)
    with pytest.raises(np.linalg.LinAlgError):
        e = np.zeros(100)
        pl.trace(pl.inv(pl.Sparse(0 * M) @ F + pl.Diag(e)) @ F)
    e = np.ones(100)
    e[4] = np.nan
    assert np.isnan(pl.trace(pl.inv(A @ F @ B.T + pl.Diag(e)) @ A @ F @ B.T))
