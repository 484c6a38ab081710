"""c P^-1 + E of a diagonal E and of a P that is no band and not sparse: an update of such a matrix
by few columns (nothing of n^3 is left), or as dense as it is (its inverse is not formed). Beside
NumPy, on both sides of where the way begins; what cannot be had so goes by the dense form."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from drawn import values

import pylinop as pl

pytestmark = pytest.mark.filterwarnings("ignore:.*onditioned")
inv = pl.inv


def bases(r, n, dtype):
    real = np.zeros(1, dtype).real.dtype
    d, e = r.uniform(1, 2, n).astype(real), (r.random(n - 1) / 3).astype(real)
    q = sp.random_array((n, n), density=1.5 / n, rng=r)
    q = (q + q.T + 5 * sp.eye_array(n)).tocsr().astype(real)
    blocks = [m @ m.T + np.eye(5) for m in r.standard_normal((n // 5, 5, 5))]
    blocks = [m.astype(real) for m in blocks]
    return {
        "diagonal": (pl.Diag(d), np.diag(d)),
        "number": (0.5 * pl.Identity(n), 0.5 * np.eye(n)),
        "band": (pl.Tridiagonal(e, 1 + d, e), np.diag(1 + d) + np.diag(e, 1) + np.diag(e, -1)),
        "sparse": (pl.Sparse(q), q.toarray()),
        "blocks": (pl.BlockDiag(*blocks), scipy.linalg.block_diag(*blocks)),
    }


def spelled(A, B, U, V, a, d):
    """c P^-1 + E in other words, and what it is."""
    n = len(a)
    I, P, E, p = pl.Identity(n), B + U @ V.H, pl.Diag(d), a
    yield inv(P) + E, np.linalg.inv(p) + np.diag(d)
    yield E - 0.5 * inv(P), np.diag(d) - 0.5 * np.linalg.inv(p)
    yield 0.25 * I + inv(pl.LowRankUpdate(B, U, V)), np.linalg.inv(p) + 0.25 * np.eye(n)
    yield 2.0 * inv(P + 0.5 * I) + E, 2 * np.linalg.inv(p + 0.5 * np.eye(n)) + np.diag(d)
    yield inv(U @ V.H + B) + E.T, np.linalg.inv(p) + np.diag(d)


def looked_at(V, D, b, digits):
    def close(x, y):
        np.testing.assert_allclose(x, y, rtol=digits, atol=digits * np.abs(y).max())

    D = D.astype(np.result_type(D, np.float64))
    in_ = np.linalg.inv(D)
    close(pl.solve(V, b), in_ @ b)
    close(pl.solve(V.T, b[:, 0]), in_.T @ b[:, 0])
    close(pl.solve(V.H, b[:, 0]), in_.conj().T @ b[:, 0])
    close(b[:, 0] @ inv(V), b[:, 0] @ in_)
    sign, log = pl.slogdet(V)
    found = np.linalg.slogdet(D)
    assert abs(sign - found[0]) < 20 * digits
    assert abs(log - found[1]) < 20 * digits * (1 + abs(found[1]))
    close(inv(V).diagonal(), np.diagonal(in_))
    close(pl.trace(inv(V)), np.trace(in_))


@pytest.mark.parametrize("n", [60, 65, 150])
@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("base", ["diagonal", "number", "band", "sparse", "blocks"])
def test_beside_dense(n, dtype, base):
    r = np.random.default_rng([n, len(base), len(dtype)])
    B, a = bases(r, n, dtype)[base]
    u, v = values(r, (n, 4), dtype), values(r, (n, 4), dtype) / n
    d = r.uniform(0.5, 2, n).astype(a.dtype)
    b = values(r, (n, 3), dtype)
    wide = np.result_type(dtype, np.float64)
    for v_ in (u, v):
        p = a.astype(wide) + u.astype(wide) @ v_.astype(wide).conj().T
        U = pl.Dense(u)
        for V, D in spelled(None, B, U, U if v_ is u else pl.Dense(v_), p, d.astype(float)):
            looked_at(V, D, b, 2e-3 if dtype == "float32" else 1e-10)


@pytest.mark.no_verify
@pytest.mark.parametrize("base", ["diagonal", "number", "band", "sparse", "blocks"])
def test_nothing_cubic_is_left(base):
    r, n = np.random.default_rng(len(base)), 400
    B, a = bases(r, n, np.float64)[base]
    u = r.standard_normal((n, 4))
    for V, _ in spelled(None, B, pl.Dense(u), pl.Dense(u), a, r.uniform(1, 2, n)):
        for e in (
            V.explain("solve", np.ones(n)),
            V.explain("logdet"),
            inv(V).explain("diagonal"),
            inv(V).explain("trace"),
        ):
            assert e.flops < n**3 / 10  # a factor alone: n^3 / 3


@pytest.mark.no_verify
def test_of_a_dense_matrix_no_inverse_is_formed():
    r, n = np.random.default_rng(5), 200
    k, d = values(r, (n, n), "float64"), r.uniform(1, 2, n)
    V = inv(pl.Dense(k)) + pl.Diag(d)
    b = r.standard_normal(n)
    D = np.linalg.inv(k) + np.diag(d)
    np.testing.assert_allclose(pl.solve(V, b), np.linalg.solve(D, b), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(pl.slogdet(V)[1], np.linalg.slogdet(D)[1], rtol=1e-10)
    assert V.explain("solve", b).flops < 1.6 * n**3  # two factors
    assert V.explain("logdet").flops < 1.6 * n**3
    t = pl.Toeplitz(np.exp(-np.arange(n) / 5.0))
    V, D = inv(t) + pl.Diag(d), np.linalg.inv(t.toarray()) + np.diag(d)
    np.testing.assert_allclose(pl.logdet(V), np.linalg.slogdet(D)[1], rtol=1e-11)
    assert V.explain("logdet").flops < 0.6 * n**3


@pytest.mark.parametrize("e", [1e-9, 1e-4, 1.0, 1e4, 1e9])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_small_and_large_noise(e, scale):
    """P = I + s^2 Q Q^T of orthonormal columns: all eigenvalues are known."""
    r, n = np.random.default_rng(7), 120
    q, _ = np.linalg.qr(r.standard_normal((n, 3)))
    V = inv(pl.Identity(n) + pl.Dense(scale * q) @ pl.Dense(scale * q).T) + e * pl.Identity(n)
    low, one = 1 / (1 + scale**2) + e, 1 + e
    want = 3 * np.log(low) + (n - 3) * np.log(one)
    np.testing.assert_allclose(pl.logdet(V), want, rtol=1e-11, atol=1e-11)
    assert V.explain("logdet").flops < n**3 / 10
    b = r.standard_normal(n)
    want = b / one + q @ (q.T @ b) * (1 / low - 1 / one)
    np.testing.assert_allclose(pl.solve(V, b), want, rtol=0, atol=1e-11 * np.abs(want).max())
    want = 1 / one + (q**2).sum(1) * (1 / low - 1 / one)
    digits = 1e-14 * (1 + scale**2)  # where the dense form stands in: those of the inverse
    np.testing.assert_allclose(inv(V).diagonal(), want, rtol=max(digits, 1e-10))


def test_what_is_no_number_or_singular():
    r, n = np.random.default_rng(8), 80
    u, d = r.standard_normal((n, 3)), r.uniform(1, 2, n)
    U = pl.Dense(u)
    d[4] = 0.0  # E is singular, the sum is not
    V = inv(pl.Identity(n) + U @ U.T) + pl.Diag(d)
    D = np.linalg.inv(np.eye(n) + u @ u.T) + np.diag(d)
    np.testing.assert_allclose(pl.solve(V, np.ones(n)), np.linalg.solve(D, np.ones(n)), rtol=1e-9)
    np.testing.assert_allclose(pl.logdet(V), np.linalg.slogdet(D)[1], rtol=1e-11)
    np.testing.assert_allclose(inv(V).diagonal(), np.diagonal(np.linalg.inv(D)), rtol=1e-9)
    gone = pl.Identity(n) - inv(pl.Identity(n) + 0.0 * (U @ U.T))  # 0 as a whole
    assert pl.slogdet(gone)[1] == -np.inf or pl.slogdet(gone)[1] < -n * 30
    with pytest.warns(match="onditioned"):
        pl.solve(inv(pl.Diag(np.zeros(n)) + U @ U.T) + pl.Diag(np.ones(n)), np.ones(n))
    d[4] = np.nan
    assert np.isnan(pl.solve(V, np.ones(n))).any()


def test_follows_its_numbers():
    r, n = np.random.default_rng(9), 90
    u, d, e = r.standard_normal((n, 3)), r.uniform(1, 2, n), r.uniform(1, 2, n)
    V = inv(pl.Diag(d) + pl.Dense(u) @ pl.Dense(u).T) + pl.Diag(e)
    for _ in range(3):
        D = np.linalg.inv(np.diag(d) + u @ u.T) + np.diag(e)
        np.testing.assert_allclose(pl.logdet(V), np.linalg.slogdet(D)[1], rtol=1e-11)
        np.testing.assert_allclose(inv(V).diagonal(), np.diagonal(np.linalg.inv(D)), rtol=1e-10)
        u *= 3
        d += 0.5
        e[::2] /= 10
