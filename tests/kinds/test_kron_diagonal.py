"""Diagonals of Kron at every offset, against the dense form; never by way of it."""

import itertools

import numpy as np
import pytest
from ref import FLOATS
from samples import values

import pylinop as pl

SHAPES = [
    [(3, 3), (2, 2)],
    [(3, 2), (2, 2)],
    [(2, 4), (3, 3)],
    [(2, 2), (2, 3)],
    [(2, 3), (4, 1)],
    [(2, 3), (3, 2)],
    [(1, 2), (2, 3), (3, 2)],
    [(2, 2), (2, 1), (1, 3), (3, 3)],
    [(2, 3), (1, 1), (2, 2)],
    [(0, 2), (2, 2)],
    [(2, 2), (0, 0)],
    [(2, 2), (0, 3)],
    [(1, 1), (1, 1)],
    [(4, 5)],
]


def all_offsets(A, a):
    m, n = a.shape[-2:]
    for k in range(-m - 2, n + 3):
        got = A.diagonal(k)
        want = np.diagonal(a, k, -2, -1) if -m <= k <= n else np.zeros((*a.shape[:-2], 0), a.dtype)
        assert got.shape == want.shape and got.dtype == want.dtype, (k, got.dtype, want.dtype)
        if a.dtype.kind in "fc":
            np.testing.assert_allclose(got, want, rtol=8 * np.finfo(a.dtype).eps, err_msg=str(k))
        else:
            np.testing.assert_array_equal(got, want, err_msg=str(k))


def dense(factors):
    a = factors[0]
    for b in factors[1:]:
        m, n = a.shape[-2] * b.shape[-2], a.shape[-1] * b.shape[-1]
        a = a[..., :, None, :, None] * b[..., None, :, None, :]
        a = a.reshape(*a.shape[:-4], m, n)
    return a


@pytest.fixture
def rng():
    return np.random.default_rng(8)


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "uint8", "bool", "int64"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_every_offset(shapes, dtype, rng):
    factors = [values(rng, s, dtype) for s in shapes]
    all_offsets(pl.Kron(*factors), dense(factors))


def test_batches_and_mixed_dtypes(rng):
    for pair in (((5, 1, 2, 2), (4, 3, 3)), ((3, 2, 2), (3, 2, 3)), ((2, 3), (4, 1, 2, 2))):
        a, b = values(rng, pair[0], "float32"), values(rng, pair[1], "complex128")
        all_offsets(pl.Kron(a, b), dense([a, b]))
        a = values(rng, pair[0], "int8")
        all_offsets(pl.Kron(a, b), dense([a, b]))


def test_views_and_structured_factors(rng):
    c = values(rng, (3,), "complex128")
    T, D, L = pl.Toeplitz(c, c[::-1]), pl.Diag(c), pl.LowRank(values(rng, (3, 1), "float64"))
    for f in itertools.product((T, D, L, pl.Identity(2)), repeat=2):
        K = pl.Kron(*f)
        for V in (K, K.T, K.H, 2 * K, K + K.conj()):
            all_offsets_close(V)


def all_offsets_close(A):
    a = A.toarray()
    for k in range(-a.shape[0], a.shape[1] + 1):
        np.testing.assert_allclose(A.diagonal(k), np.diagonal(a, k), rtol=1e-12, atol=1e-14)


def test_nan_stays_where_it_is():
    a = np.ones((3, 3))
    a[1, 1] = np.nan
    with np.errstate(invalid="ignore"):
        K, want = pl.Kron(a, a), np.kron(a, a)
    for k in range(-8, 9):
        np.testing.assert_array_equal(K.diagonal(k), np.diagonal(want, k))


def test_large_ones_have_no_dense_form():
    n = 200_000
    K = pl.Kron(pl.Identity(n), np.array([[1.0, 2.0], [3.0, 4.0]]))
    with pl.config(memory_limit=10**8):
        np.testing.assert_array_equal(K.diagonal(1), np.tile([2.0, 0.0], n)[:-1])
        np.testing.assert_array_equal(K.diagonal(-1), np.tile([3.0, 0.0], n)[:-1])
        assert not K.diagonal(2).any()
        K = pl.Kron(np.arange(6.0).reshape(2, 3), pl.Toeplitz(np.arange(40_000.0)))
        assert K.diagonal(40_001)[1] == 1.0 and K.diagonal(40_001).shape == (79_999,)
    assert "kron_diag_scatter" in K.explain("diagonal", 3) and "todense" not in K.explain(
        "diagonal", 40_000
    )
