"""QR and LU of Krons and BlockDiags of tall, wide and square parts: what NumPy and SciPy promise of
the factors, which are triangles with unit pivots, and no dense form."""

import itertools

import numpy as np
import pytest

import pylinop as pl

SHAPES = [(3, 2), (2, 3), (3, 3), (4, 1), (1, 4), (1, 1)]
DTYPES = [np.float64, np.complex128, np.float32]


def full(rng, shape, dtype):
    a = rng.standard_normal(shape)
    return (a + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else a).astype(dtype)


def tolerance(a):
    return 50 * max(a.shape[-2:]) * np.finfo(a.real.dtype).eps * max(np.abs(a).max(initial=0), 1)


def check_qr(A, rank=None):
    a = A.toarray()
    m, n = a.shape[-2:]
    for mode in ("reduced", "complete"):
        Q, R = pl.qr(A, mode)
        q, r = Q.toarray(), R.toarray()
        k = m if mode == "complete" else min(m, n)
        assert q.shape[-2:] == (m, k) and r.shape[-2:] == (k, n)
        assert Q.dtype == R.dtype == a.dtype
        tol = tolerance(a)
        np.testing.assert_allclose(q @ r, a, rtol=0, atol=tol)
        gram = np.swapaxes(q, -1, -2).conj() @ q
        np.testing.assert_allclose(gram - np.eye(k), 0, atol=tol)
        assert not np.tril(r, -1).any()
    r = pl.qr(A, "r").toarray()
    assert r.shape[-2:] == (min(m, n), n) and not np.tril(r, -1).any()
    gram = np.swapaxes(a, -1, -2).conj() @ a
    np.testing.assert_allclose(
        np.swapaxes(r, -1, -2).conj() @ r, gram, rtol=0, atol=tolerance(a) * np.abs(a).max() * m
    )


def check_lu(A):
    a = A.toarray()
    m, n = a.shape[-2:]
    k = min(m, n)
    P, L, U = pl.lu(A)
    p, low, up = P.toarray(), L.toarray(), U.toarray()
    assert low.shape[-2:] == (m, k) and up.shape[-2:] == (k, n)
    np.testing.assert_allclose(p @ low @ up, a, rtol=0, atol=tolerance(a))
    assert not np.tril(up, -1).any() and not np.triu(low, 1).any()
    assert (np.diagonal(low, axis1=-2, axis2=-1) == 1).all()
    assert ((p == 0) | (p == 1)).all() and (p.sum(-1) == 1).all() and (p.sum(-2) == 1).all()


@pytest.mark.parametrize("join", [pl.Kron, pl.BlockDiag])
@pytest.mark.parametrize("one, two", list(itertools.product(SHAPES, SHAPES)))
def test_of_two(join, one, two, rng):
    dtype = DTYPES[rng.integers(3)]
    A = join(full(rng, one, dtype), full(rng, two, dtype))
    check_qr(A)
    check_lu(A)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("join", [pl.Kron, pl.BlockDiag])
def test_of_three(join, dtype, rng):
    for shapes in itertools.permutations([(3, 2), (2, 4), (2, 2)]):
        A = join(*(full(rng, s, dtype) for s in shapes))
        check_qr(A)
        check_lu(A)


@pytest.mark.parametrize("join", [pl.Kron, pl.BlockDiag])
def test_singular_batched_and_structured(join, rng):
    a = np.ones((4, 2))
    for parts in (
        (a, np.ones((2, 3))),
        (np.zeros((3, 2)), full(rng, (2, 5), float)),
        (full(rng, (5, 4, 2), float), full(rng, (2, 3), float)),
        (pl.Kron(full(rng, (3, 1), float), np.eye(2)), pl.Selection([0, 2], 4)),
        (pl.Diag(np.arange(1.0, 4), -1, (4, 3)), full(rng, (2, 3), float)),
        (pl.Tridiagonal(np.ones(2), np.ones(3), np.ones(2))[:, :2], full(rng, (2, 3), float)),
    ):
        A = join(*parts)
        check_qr(A)
        check_lu(A)


def test_without_a_dense_form(rng):
    A = pl.Kron(full(rng, (300, 20), float), full(rng, (20, 200), float))
    b = rng.standard_normal(A.shape[1])
    with pl.config(memory_limit=30_000_000):
        Q, R = pl.qr(A)
        P, L, U = pl.lu(A)
        np.testing.assert_allclose(Q @ (R @ b), A @ b, atol=1e-9)
        np.testing.assert_allclose(Q.H @ (Q @ b[: Q.shape[1]]), b[: Q.shape[1]], atol=1e-11)
        np.testing.assert_allclose(P @ (L @ (U @ b)), A @ b, atol=1e-9)
