"""What has an inverse by assumption or by how it is written cancels against it."""

import numpy as np
import pytest

import pylinop as pl

N = 6


def positive(rng, n=N, dtype=np.float64):
    x = rng.normal(size=(n, n)) + (1j * rng.normal(size=(n, n)) if dtype == np.complex128 else 0)
    return (x @ x.conj().T + n * np.eye(n)).astype(dtype)


def unitary(rng, m=N, n=N, dtype=np.float64):
    x = rng.normal(size=(m, n)) + (1j * rng.normal(size=(m, n)) if dtype == np.complex128 else 0)
    return np.linalg.qr(x)[0]


def kernels(expression):
    return [step["name"] for step in expression.explain().steps]


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_positive_definite(rng, dtype):
    p, g = positive(rng, dtype=dtype), rng.normal(size=(N, N))
    b = rng.normal(size=N)
    A, G = pl.lazy(p, assume_a="pos"), pl.lazy(g)
    for e in (pl.inv(A) @ A @ b, A @ (pl.inv(A) @ b), pl.inv(2.0 * A) @ (A @ b) * 2.0):
        assert not [k for k in kernels(e) if "potr" in k or "gemm" in k]
        assert np.allclose(e, b, rtol=1e-15)
    e = G @ pl.inv(A) @ A @ b
    assert [k for k in kernels(e) if k != "cast"] == ["gemm"]
    assert np.allclose(e, g @ b)
    assert np.allclose(pl.inv(A) @ A, np.eye(N), atol=1e-12)
    assert np.allclose(G + pl.inv(A) @ A, g + np.eye(N), atol=1e-12)


def test_what_is_written_positive_definite(rng):
    h, r, q = rng.normal(size=(3, N)), positive(rng, 3), positive(rng)
    H, R, P = pl.lazy(h), pl.lazy(r, assume_a="pos"), pl.lazy(q, assume_a="pos")
    S = H @ P @ H.T + R
    K = P @ H.T @ pl.inv(S)
    v = rng.normal(size=N)
    s = h @ q @ h.T + r
    want = q @ h.T @ np.linalg.solve(s, h @ q)
    joseph = K @ S @ K.T
    assert np.allclose(joseph, want, rtol=1e-11)
    assert np.allclose(K @ S @ K.T @ v, want @ v, rtol=1e-11)
    by_hand = P @ H.T @ pl.inv(S) @ H @ P
    assert joseph.explain().flops <= 1.01 * by_hand.explain().flops
    assert np.allclose(S @ S @ pl.inv(S) @ v[:3], s @ v[:3])
    assert np.allclose(pl.inv(S) @ S @ S @ v[:3] + S @ v[:3], 2 * s @ v[:3])


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_unitary(rng, dtype):
    q = unitary(rng, dtype=dtype)
    d, b = rng.normal(size=N), rng.normal(size=N)
    Q, D = pl.lazy(q, assume_a="orthogonal"), pl.Diag(d)
    for e in (Q.H @ Q @ b, Q @ Q.H @ b, pl.inv(Q) @ (Q @ b), Q @ (pl.inv(Q) @ b)):
        assert not kernels(e) or kernels(e) == ["copy"] or kernels(e) == ["cast"]
        assert np.allclose(e, b)
    A = Q @ D @ Q.H
    a = (q * d) @ q.conj().T
    e = A @ A @ A @ b
    assert len([k for k in kernels(e) if k == "gemm"]) == 2
    assert np.allclose(e, a @ a @ a @ b)
    if dtype == np.complex128:
        assert np.allclose(Q.T @ Q @ b, q.T @ q @ b)
        assert np.allclose(Q.conj() @ Q @ b, q.conj() @ q @ b)
    else:
        assert np.allclose(Q @ Q @ b, q @ q @ b)


def test_kinds_without_numbers_of_their_own(rng):
    b = rng.normal(size=8)
    for Q in (pl.DFT(8, norm="ortho"), pl.Householder(b)):
        assert not [k for k in kernels(pl.lazy(b) @ Q.H @ Q @ pl.Diag(b)) if k in ("fft", "gemm")]
    for Q in (pl.Permutation(rng.permutation(8)), pl.DCT(8, norm="ortho"), pl.Householder(b)):
        assert np.allclose(Q @ Q.T @ (pl.Diag(b) @ (Q.H @ (Q @ b))), b * b)
    K = pl.Kron(pl.Permutation([1, 0]), pl.Dense(positive(rng, 4), assume_a="pos"))
    assert np.allclose(K @ (pl.inv(K) @ b), b)


def test_unknown_is_computed(rng):
    g, b = rng.normal(size=(N, N)), rng.normal(size=N)
    G = pl.lazy(g)
    assert len(kernels(pl.inv(G) @ G @ b)) > 1
    assert np.allclose(pl.inv(G) @ G @ b, b)
    zero = pl.lazy(np.zeros((N, N)))
    with pytest.raises(pl.LinAlgError):
        np.asarray(pl.inv(zero) @ zero @ b)
    S = G @ G.T  # semidefinite at least
    assert len(kernels(pl.inv(S) @ S @ b)) > 1
    with pytest.raises(pl.LinAlgError):
        np.asarray(pl.inv(0.0 * pl.lazy(positive(rng), assume_a="pos")) @ b)


def test_batches_are_computed(rng):
    p = np.stack([positive(rng), positive(rng)])
    A, b = pl.lazy(p, assume_a="pos"), rng.normal(size=(N, 1))
    got = pl.inv(A) @ A @ b
    assert got.shape == (2, N, 1)
    assert np.allclose(got, np.broadcast_to(b, (2, N, 1)))


def test_false_assumptions_are_found_where_they_are_tested(rng):
    g, b = rng.normal(size=(N, N)), rng.normal(size=N)
    A, Q = pl.lazy(g, assume_a="pos"), pl.lazy(g, assume_a="orthogonal")
    with pl.config(check="full"):
        for e in (pl.inv(A) @ A @ b, Q.T @ Q @ b):
            with pytest.raises(ValueError, match="assumed"):
                np.asarray(e)
        true = pl.lazy(positive(rng), assume_a="pos")
        assert np.allclose(pl.inv(true) @ true @ b, b)
