"""Block tridiagonal matrices, as bands."""

import numpy as np
import pytest

import pylinop as pl


def _blocks(N, m, dtype="f8", batch=(), seed=0):
    rng = np.random.default_rng(seed)

    def draw(count):
        a = rng.standard_normal((*batch, count, m, m)).astype(dtype)
        return a + 1j * rng.standard_normal(a.shape).astype(dtype) if dtype[0] == "c" else a

    return draw(max(N - 1, 0)), draw(N) + 6 * m * np.eye(m, dtype=dtype), draw(max(N - 1, 0))


def _dense(low, d, up):
    N, m = d.shape[-3], d.shape[-1]
    a = np.zeros((*d.shape[:-3], N * m, N * m), d.dtype)
    for k in range(N):
        here = slice(k * m, (k + 1) * m)
        a[..., here, here] = d[..., k, :, :]
        if k + 1 < N:
            after = slice((k + 1) * m, (k + 2) * m)
            a[..., after, here] = low[..., k, :, :]
            a[..., here, after] = up[..., k, :, :]
    return a


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize(("N", "m"), [(1, 3), (2, 1), (7, 1), (9, 4), (30, 2), (3, 0), (0, 2)])
def test_general(N, m, dtype):
    low, d, up = _blocks(N, m, dtype)
    A, dense = pl.block_tridiag(low, d, up), _dense(low, d, up)
    np.testing.assert_array_equal(A.toarray(), dense)
    b = np.ones((N * m, 2), dense.real.dtype)
    rtol = 1e-4 if dtype in ("f4", "c8") else 1e-11
    np.testing.assert_allclose(A @ b, dense @ b, rtol=rtol)
    np.testing.assert_allclose(A.H @ b, dense.conj().T @ b, rtol=rtol, atol=10 * rtol)
    if N * m:
        np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(dense, b), rtol=rtol, atol=rtol)
        np.testing.assert_allclose(pl.slogdet(A)[1], np.linalg.slogdet(dense)[1], rtol=rtol)


def test_hermitian_without_upper_blocks():
    low, d, _ = _blocks(20, 3, "c16")
    d = d + d.conj().swapaxes(-1, -2)
    A = pl.block_tridiag(low, d, assume_a="pos")
    dense = _dense(low, d, low.conj().swapaxes(-1, -2))
    np.testing.assert_array_equal(A.toarray(), dense)
    L = pl.cholesky(A)
    assert type(L) is pl.Banded
    np.testing.assert_allclose((L @ L.H).toarray(), dense, atol=1e-12)
    b = np.ones(60)
    np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(dense, b), rtol=1e-11)
    np.testing.assert_allclose(
        pl.inv(A).diagonal(), np.linalg.inv(dense).diagonal(), rtol=1e-11, atol=1e-14
    )


def test_stacks():
    low, d, up = _blocks(6, 2, batch=(3,))
    A = pl.block_tridiag(low[0], d, up)
    dense = _dense(np.broadcast_to(low[0], low.shape), d, up)
    np.testing.assert_array_equal(A.toarray(), dense)
    b = np.ones((12, 1))
    np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(dense, b), rtol=1e-11)


def test_no_square_is_held():
    low, d, up = _blocks(20_000, 3)
    with pl.config(memory_limit=64 << 20):
        A = pl.block_tridiag(low, d, up)
        x = pl.solve(A, np.ones(60_000))
    assert np.max(np.abs(A @ x - 1)) < 1e-12


@pytest.mark.parametrize(
    ("low", "d", "up", "name"),
    [
        ((2, 2, 2), (3, 2, 3), None, "diagonal"),
        ((3, 2, 2), (3, 2, 2), None, "lower"),
        ((2, 2, 2), (3, 2, 2), (2, 3, 3), "upper"),
        ((2, 2), (3, 2, 2), None, "lower"),
    ],
)
def test_blocks_that_do_not_fit_are_named(low, d, up, name):
    with pytest.raises(ValueError, match=name):
        pl.block_tridiag(np.ones(low), np.ones(d), up if up is None else np.ones(up))
