"""Products of kinds without a dtype of their own, element by element and column by column: they
adopt the dtype of what they meet, and wrap around in it, also where they go by a dense form."""

import numpy as np
import pytest

import pylinop as pl


def kinds(n):
    index = np.arange(n)[::-1]
    return {
        "FiniteDifference": pl.FiniteDifference(n + 1),
        "Permutation": pl.Permutation(index),
        "Selection": pl.Selection(index[: n // 2], n),
        "Full": pl.Full((n, n), 3),
        "Hadamard": pl.Hadamard(16),
        "Sum": pl.Identity(n) + 3 * pl.Permutation(index),
        "Kron": pl.Kron(pl.FiniteDifference(4), pl.Permutation([1, 0])),
        "Sliced": (pl.Permutation(index) @ pl.Full((n, n), -5))[1:],
    }


def products(A):
    """(the operator, its entries as integers without bounds)."""
    a = np.vectorize(int, otypes=[object])(A.toarray())
    rows = (a[:, None, :] * a[None, :, :]).reshape(-1, a.shape[1])
    return {
        "multiply": (pl.multiply(A, A), a * a),
        "transpose": (pl.multiply(A, A).T, (a * a).T),
        "multiple": (3 * pl.multiply(A, 7 * A), 21 * a * a),
        "thrice": (pl.multiply(pl.multiply(A, A), A), a * a * a),
        "KhatriRao": (pl.KhatriRao(A, A), rows),
        "KhatriRao.T": (pl.KhatriRao(A, A).T, rows.T),
        "Kron": (pl.Kron(pl.multiply(A, A), pl.Identity(2)), np.kron(a * a, np.eye(2, dtype=int))),
        "Sum": (pl.multiply(A, A) + A, a * a + a),
        "Product": (pl.multiply(A, A) @ A.T, (a * a).dot(a.T)),
        "BlockDiag": (
            pl.BlockDiag(pl.multiply(A, A), A),
            np.block([[a * a, 0 * a], [0 * a, a]]),
        ),
    }


def wrapped(a, dtype):
    size = 1 << (8 * np.dtype(dtype).itemsize)
    a = a % size
    return a if np.dtype(dtype).kind == "u" else np.where(a >= size // 2, a - size, a)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
@pytest.mark.parametrize("kind", list(kinds(6)))
@pytest.mark.parametrize("n", [6, 40])
def test_integers_wrap_as_written(n, kind, dtype, rng):
    A = kinds(n)[kind]
    info = np.iinfo(dtype)
    for name, (B, b) in products(A).items():
        for shape in ((b.shape[1],), (b.shape[1], 1), (b.shape[1], 9), (2, b.shape[1], 3)):
            x = rng.integers(info.min, info.max, size=shape, dtype=dtype, endpoint=True)
            y = B @ x
            assert y.dtype == np.dtype(dtype), name
            value = np.matmul(b, x.astype(object))
            assert np.array_equal(y.astype(object), wrapped(value, dtype)), (name, shape)


@pytest.mark.parametrize("join", [pl.multiply, pl.KhatriRao])
def test_each_factor_is_cast_to_the_dtype_of_the_product(join, rng):
    """1 + 2^-12 squared has more digits than single precision has."""
    a = pl.Dense(np.full((5, 5), 1 + 2.0**-12, np.float32))
    x = rng.integers(1, 9, size=(5, 3)).astype(float)
    y = join(a, a) @ x
    assert np.array_equal(y, np.broadcast_to((1 + 2.0**-12) ** 2 * x.sum(0), y.shape))
