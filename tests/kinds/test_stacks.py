"""Many small matrices at once: batches, and BlockDiag of Dense, by Cholesky side by side or LU."""

import numpy as np
import pytest
import scipy.linalg as sl

import pylinop as pl


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def definite(rng, shape, dtype):
    a = rng.normal(size=shape) + (1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else 0)
    return (a @ a.conj().swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def right(rng, shape, dtype):
    return (rng.normal(size=shape) + (1j if np.dtype(dtype).kind == "c" else 0)).astype(dtype)


def tolerance(dtype):
    return 1e4 * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("n", [1, 2, 3, 20, 32, 33])
def test_batches(n, dtype, rng):
    """All counts up to twice the lanes, transposed and strided memory, broadcast right sides."""
    for batch in [(), (1,), (2,), (7,), (8,), (9,), (17,), (3, 5), (2, 1), (0,)]:
        s = definite(rng, (*batch, n, n), dtype)
        nan = s.copy()
        nan[..., *np.tril_indices(n, -1)] = np.nan  # below the diagonal nothing is read
        for a in (nan, np.asfortranarray(nan)):
            D = pl.Dense(a, assume_a="pos")
            for b in (
                right(rng, (*batch, n, 2), dtype),
                right(rng, (n, 3), dtype),
                right(rng, (4, *batch, n, 1), dtype)[::2],
                *([right(rng, (9, n, 2), dtype)] if batch == (1,) else []),
            ):
                x = pl.solve(D, b)
                want = np.linalg.solve(s, b)
                assert x.dtype == dtype and x.shape == want.shape
                np.testing.assert_allclose(x, want, rtol=tolerance(dtype), atol=tolerance(dtype))
            got, want = pl.logdet(D), np.linalg.slogdet(s)[1]
            np.testing.assert_allclose(got, want, rtol=tolerance(dtype), atol=tolerance(dtype))


def test_each_lane_has_its_own_bits(rng):
    s, b = definite(rng, (13, 6, 6), "float64"), rng.normal(size=(13, 6, 1))
    x = pl.solve(pl.Dense(s, assume_a="pos"), b)
    order = rng.permutation(13)
    y = pl.solve(pl.Dense(s[order], assume_a="pos"), b[order])
    assert np.array_equal(x[order], y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_false_assumptions_fall_back_one_by_one(dtype, rng):
    s, b = definite(rng, (19, 5, 5), dtype), rng.normal(size=(19, 5, 1)).astype(dtype)
    s[[0, 8, 18]] -= 40 * np.eye(5, dtype=dtype)
    D = pl.Dense(s, assume_a="pos")
    with pytest.warns(pl.FallbackWarning, match="3"):
        x = pl.solve(D, b)
    np.testing.assert_allclose(x, np.linalg.solve(s, b), rtol=tolerance(dtype) * 10)
    with pl.config(check="none"), pytest.warns(pl.FallbackWarning):
        sign, log = pl.slogdet(D)
    want = np.linalg.slogdet(s)
    np.testing.assert_array_equal(sign, want[0])
    np.testing.assert_allclose(log, want[1], rtol=tolerance(dtype))
    s[:] = definite(rng, (19, 5, 5), dtype)  # written in place: seen
    np.testing.assert_allclose(pl.solve(D, b), np.linalg.solve(s, b), rtol=tolerance(dtype))
    s[4] = 0
    with pytest.raises(np.linalg.LinAlgError):
        pl.solve(D, b)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int64"])
@pytest.mark.parametrize("word", ["pos", None])
@pytest.mark.parametrize("p", [3, 15, 16, 40])
def test_blockdiag_of_many(p, word, dtype, rng):
    """Below 16 blocks one by one, from there on as one batch: the same values, all views."""
    n = 4
    if dtype == "int64":
        s = rng.integers(-3, 4, (p, n, n))
        s = s + s.swapaxes(-1, -2) + 40 * np.eye(n, dtype=int)
    else:
        s = definite(rng, (p, n, n), dtype)
    if word is None:
        s = np.triu(s) + np.triu(s, 1).swapaxes(-1, -2) * 2
    full = sl.block_diag(*s)
    blocks = [pl.Dense(m, assume_a=word) for m in s]
    B = pl.BlockDiag(*blocks)
    t = tolerance("float32" if dtype == "float32" else "float64")
    for b in (rng.normal(size=n * p), rng.normal(size=(n * p, 3)), rng.normal(size=(2, n * p, 1))):
        b = b.astype(dtype)
        views = ((B, full), (B.T, full.T), (B.H, full.conj().T), (2 * B, 2 * full))
        for A, a in views:
            want = np.linalg.solve(a, b)
            for got in (pl.solve(A, b), pl.inv(A) @ b):
                np.testing.assert_allclose(got, want, rtol=t, atol=t)
    sign, log = pl.slogdet(B)
    want = np.linalg.slogdet(full.astype(complex if np.dtype(dtype).kind == "c" else float))
    np.testing.assert_allclose(sign, want[0], rtol=t)
    np.testing.assert_allclose(log, want[1], rtol=t)
    inverse = np.linalg.inv(full)
    np.testing.assert_allclose(pl.inv(B).toarray(), inverse, rtol=t, atol=t)
    np.testing.assert_allclose(pl.inv(B).diagonal(), np.diag(inverse), rtol=t, atol=t)
    np.testing.assert_allclose(pl.inv(B).trace(), np.trace(inverse), rtol=t, atol=t)
    np.testing.assert_allclose(pl.inv(B)[3, 2], inverse[3, 2], rtol=t, atol=t)
    np.testing.assert_allclose(B @ b, full @ b, rtol=t, atol=t)


def test_determinants_block_by_block(rng):
    """No dense form of the whole: 20,000 rows would be 3.2 GB."""
    s = definite(rng, (2000, 10, 10), "float64")
    with pl.config(memory_limit=2**24):
        B = pl.BlockDiag(*s, pl.Diag(np.arange(1.0, 5.0)))
        want = np.linalg.slogdet(s)[1].sum() + np.log(24)
        np.testing.assert_allclose(pl.logdet(B), want, rtol=1e-12)
        C = pl.BlockDiag(*s)
        np.testing.assert_allclose(pl.logdet(C), want - np.log(24), rtol=1e-12)
    mixed = pl.BlockDiag(pl.Diag([2.0, 3.0]), pl.Identity(3), s[0])
    np.testing.assert_allclose(pl.det(mixed), 6 * np.linalg.det(s[0]), rtol=1e-12)
    crossed = pl.BlockDiag(np.ones((1, 2)), np.ones((2, 1)))
    assert pl.det(crossed) == 0


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int64"])
def test_block_triangles(dtype, rng):
    """Substitution from either side, views, three blocks, operators that are not dense."""

    def v(*shape):
        return (rng.normal(size=shape) * 2).astype(dtype)

    t = tolerance("float32" if dtype in ("float32", "complex64") else "float64")
    a, d, e = (v(k, k) + np.asarray(12, dtype) * np.eye(k, dtype=dtype) for k in (3, 4, 2))
    diag = np.arange(1, 5).astype(dtype)
    z = np.zeros
    for A, want in (
        (pl.Block([[a, None], [v43 := v(4, 3), d]]), np.block([[a, z((3, 4))], [v43, d]])),
        (pl.Block([[a, v34 := v(3, 4)], [None, pl.Diag(diag)]]),
         np.block([[a, v34], [z((4, 3)), np.diag(diag)]])),
        (pl.Block([[a, None, None], [v43, d, None], [v23 := v(2, 3), None, e]]),
         np.block([[a, z((3, 4)), z((3, 2))], [v43, d, z((4, 2))], [v23, z((2, 4)), e]])),
        (pl.Block([[a, None], [None, d]]), sl.block_diag(a, d)),
    ):  # fmt: skip
        n = len(want)
        for M, m in ((A, want), (A.T, want.T), (A.H, want.conj().T)):
            for b in (v(n), v(n, 3), v(2, n, 1)):
                x = pl.solve(M, b)
                right = (
                    np.linalg.solve(m, b) if b.ndim > 1 else np.linalg.solve(m, b[:, None])[:, 0]
                )
                np.testing.assert_allclose(x, right, rtol=t, atol=t)
            np.testing.assert_allclose(pl.det(M), np.linalg.det(m), rtol=t)
        assert any(r.startswith("solve-block") for r in pl.inv(A).explain().fired)
    singular = pl.Block([[a, None], [v43, np.zeros((4, 4), dtype)]])
    with pytest.raises(np.linalg.LinAlgError):
        pl.solve(singular, v(7))
    assert pl.det(singular) == 0
    batch = pl.Block([[a, None], [v(2, 4, 3), d]])  # the batch lies off the diagonal
    np.testing.assert_allclose(pl.det(batch), np.linalg.det(batch.toarray()), rtol=t)
    b = v(7, 1)
    np.testing.assert_allclose(
        pl.solve(batch, b), np.linalg.solve(batch.toarray(), b), rtol=t, atol=t
    )


def test_block_triangles_take_no_dense_memory(rng):
    n = 50_000
    T = pl.Tridiagonal(np.full(n - 1, -1.0), np.full(n, 4.0), np.full(n - 1, -1.0))
    A = pl.Block([[T, None], [pl.Diag(rng.random(n)), pl.Diag(1 + rng.random(n))]])
    b = rng.standard_normal(2 * n)
    with pl.config(memory_limit=2**24):
        x = pl.solve(A, b)
    np.testing.assert_allclose(A @ x, b, atol=1e-12)
