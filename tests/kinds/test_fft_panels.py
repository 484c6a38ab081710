"""Products by FFT with columns that lie across each other: the bits of the columns one by one."""

import numpy as np
import pytest

import pylinop as pl

N = 400  # beyond the direct loops


def decaying(n, dtype):
    c = 0.9 ** np.arange(float(n))
    return (c * (1 + 0.5j) if np.dtype(dtype).kind == "c" else c).astype(dtype)


KINDS = {
    "Toeplitz": lambda c: pl.Toeplitz(c, c[: c.size // 2 + 1].copy()),
    "Circulant": pl.Circulant,
    "Hankel": lambda c: pl.Hankel(c, c[::-1].copy()),
    "Convolution": lambda c: pl.Convolution(c[: c.size // 3], c.size, "full"),
    "two levels": lambda c: pl.Circulant(np.outer(c[:20], c[:20]), 2),
}

LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "every other column": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "backwards": lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
    "every other row": lambda x: np.repeat(x, 2, axis=0)[::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("kind", KINDS)
def test_columns_as_one_by_one(kind, dtype, layout):
    g = np.random.default_rng(0)
    A = KINDS[kind](decaying(N, dtype))
    single = dtype in ("float32", "complex64")
    for op, k in ((A, 40), (A.T, 2), (A.H, 17)):
        x = LAYOUTS[layout](g.standard_normal((op.shape[1], k)).astype(dtype))
        want = np.stack([op @ np.ascontiguousarray(x[:, j]) for j in range(k)], axis=1)
        assert np.abs(want - op.toarray() @ x).max() < (1e-3 if single else 1e-11)
        for out in (np.empty(want.shape, dtype), np.empty(want.shape[::-1], dtype).T):
            assert np.array_equal(np.matmul(op, x, out=out), want)
        assert np.array_equal(op @ x, want)


@pytest.mark.parametrize("kind", KINDS)
def test_real_ones_with_complex_columns(kind):
    g = np.random.default_rng(0)
    A = KINDS[kind](decaying(N, "float64"))
    x = g.standard_normal((A.shape[1], 21)) + 1j * g.standard_normal((A.shape[1], 21))
    want = np.stack([A @ np.ascontiguousarray(x[:, j]) for j in range(21)], axis=1)
    assert np.array_equal(A @ x, want)
    assert np.abs(want - A.toarray() @ x).max() < 1e-11


def test_one_matrix_for_both():
    g = np.random.default_rng(0)
    A = pl.Toeplitz(decaying(N, "float64"))
    x = g.standard_normal((N, 20))
    want = A @ x
    assert np.array_equal(np.matmul(A, x, out=x), want)


def test_batches():
    g = np.random.default_rng(0)
    A = pl.Toeplitz(np.stack([decaying(N, "float64"), 2 * decaying(N, "float64")]))
    x = g.standard_normal((3, 1, N, 5))
    want = np.stack([A @ np.ascontiguousarray(x[..., j : j + 1]) for j in range(5)], -1)[..., 0, :]
    assert np.array_equal(A @ x, want)


def test_the_memory_is_stated():
    A = pl.Toeplitz(decaying(5000, "float64"))
    few, many = (A.explain("apply", np.zeros((5000, k))).memory for k in (1, 40))
    assert 0 < many - few - 8 * 5000 * 39 <= 128 * 10_000 + 64
