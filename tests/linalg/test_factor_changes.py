"""Cholesky factors changed: columns added, taken away, appended; and draws from N(0, A)."""

import warnings

import numpy as np
import pytest
import scipy.linalg
from test_factor_structure import band, spd

import pylinop as pl


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_update_downdate_append(dtype, rng):
    tol = 1e-4 if np.finfo(dtype).eps > 1e-10 else 1e-12
    for n in (0, 1, 2, 7, 40):
        a = spd(rng, n, dtype)
        v = spd(rng, n, dtype)[:, : min(n, 3)]
        L = pl.cholesky(a)
        up = pl.linalg.cholesky_update(L, v)
        assert up.dtype == np.dtype(dtype)
        assert type(up) is pl.Triangular
        size = max(1.0, np.abs(a).max(initial=0)) ** 2 * 3
        close = {"rtol": 0, "atol": tol * size}
        np.testing.assert_allclose((up @ up.H).toarray(), a + v @ v.conj().T, **close)
        if n:
            one = pl.linalg.cholesky_update(L, v[:, 0])
            want = a + np.outer(v[:, 0], v[:, 0].conj())
            np.testing.assert_allclose(one.toarray(), np.linalg.cholesky(want), **close)
        down = pl.linalg.cholesky_update(up, v, downdate=True)
        np.testing.assert_allclose(down.toarray(), L.toarray(), **close)
        k = n // 2
        head = pl.cholesky(a[:k, :k])
        whole = pl.linalg.cholesky_append(head, a[:k, k:], a[k:, k:])
        np.testing.assert_allclose(whole.toarray(), L.toarray(), **close)
        if n > 1:
            row = pl.linalg.cholesky_append(pl.cholesky(a[:-1, :-1]), a[:-1, -1], a[-1, -1])
            np.testing.assert_allclose(row.toarray(), L.toarray(), **close)


def test_factor_changes_in_batches(rng):
    a = np.stack([spd(rng, 4) for _ in range(3)])
    v = rng.standard_normal((2, 1, 4, 2))
    up = pl.linalg.cholesky_update(pl.cholesky(a), v)
    assert up.shape == (2, 3, 4, 4)
    want = np.linalg.cholesky(a + v @ np.swapaxes(v, -1, -2))
    np.testing.assert_allclose(up.toarray(), want, atol=1e-12)
    b, c = rng.standard_normal((2, 1, 4, 1)), np.full((1, 1), 100.0)
    more = pl.linalg.cholesky_append(pl.cholesky(a), b, c)
    assert more.shape == (2, 3, 5, 5)
    low = more.toarray()
    whole = low @ np.swapaxes(low, -1, -2)
    np.testing.assert_allclose(whole[..., :4, :4], np.broadcast_to(a, (2, 3, 4, 4)), atol=1e-12)
    np.testing.assert_allclose(whole[..., :4, 4:], np.broadcast_to(b, (2, 3, 4, 1)), atol=1e-12)


def test_factor_changes_that_cannot_be(rng):
    L = pl.cholesky(np.stack([4 * np.eye(3)] * 2))
    v = np.zeros((2, 3, 1))
    v[1, 0] = 2.0  # takes all
    with pytest.raises(np.linalg.LinAlgError, match=r"taken away.*batch element 1"):
        pl.linalg.cholesky_update(L, v, downdate=True)
    with pytest.raises(np.linalg.LinAlgError, match="row 1"):
        pl.linalg.cholesky_update(np.diag([1.0, 0.0]), np.ones(2))
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        pl.linalg.cholesky_append(np.eye(2), np.ones(2), 1.5)
    L = np.eye(2)
    pl.linalg.cholesky_update(L, np.ones(2))
    np.testing.assert_array_equal(L, np.eye(2))  # its own memory


def test_downdate_of_graded_matrices(rng):
    """Scaled as the matrix is: the rotations are orthogonal, small rows keep their digits."""
    g = 10.0 ** -np.arange(10)
    a, v = spd(rng, 10), rng.standard_normal(10)
    up = pl.linalg.cholesky_update(g[:, None] * np.linalg.cholesky(a), g * v)
    want = g[:, None] * np.linalg.cholesky(a + np.outer(v, v))
    np.testing.assert_allclose(up.toarray(), want, rtol=1e-10)
    down = pl.linalg.cholesky_update(up, g * v, downdate=True)
    np.testing.assert_allclose(down.toarray(), g[:, None] * np.linalg.cholesky(a), rtol=1e-8)


# -- draws --


def test_draws_have_the_covariance(rng):
    n, count = 6, 40_000
    for A in (pl.Kron(spd(rng, 2), spd(rng, 3)), pl.Toeplitz(0.5 ** np.arange(n)),
              pl.LowRank(rng.standard_normal((n, 2)), None, spd(rng, 2)),
              pl.Dense(spd(rng, n, complex)), pl.inv(band(rng, 1, n, complex)),
              pl.Toeplitz((0.5j) ** np.arange(n))):  # fmt: skip
        a = A.toarray()
        x = pl.sample(A, count, np.random.default_rng(1))
        got = x.T @ x.conj() / count
        scale = np.sqrt(np.abs(np.diagonal(a)))
        assert np.abs((got - a) / scale / scale[:, None]).max() < 6 / np.sqrt(count)
        if np.iscomplexobj(a):  # circular
            other = x.T @ x / count
            assert np.abs(other / scale / scale[:, None]).max() < 6 / np.sqrt(count)


def test_draws_shapes_and_generators(rng):
    A = pl.Diag(np.ones((2, 3), np.float32))
    assert pl.sample(A).shape == (2, 3)
    assert pl.sample(A, 4).shape == (4, 2, 3)
    assert pl.sample(A, (4, 5)).shape == (4, 5, 2, 3)
    assert pl.sample(A, 0).shape == (0, 2, 3)
    assert pl.sample(A).dtype == np.float32
    assert pl.sample(pl.Zeros((3, 3)), 2).tolist() == [[0, 0, 0]] * 2
    assert pl.sample(pl.Identity(0), 2).shape == (2, 0)
    g, h = np.random.default_rng(3), np.random.default_rng(3)
    np.testing.assert_array_equal(pl.sample(A, 2, g), pl.sample(A, 2, 3))
    assert g.standard_normal() != h.standard_normal()
    assert not np.array_equal(pl.sample(A), pl.sample(A))
    z = np.random.default_rng(5).standard_normal((2, 4))
    a = spd(rng, 4)
    np.testing.assert_allclose(pl.sample(a, 2, 5), z @ np.linalg.cholesky(a).T)


def test_singular_covariance_is_clipped_and_told_of(rng):
    v = rng.standard_normal((20, 3))
    a = v @ v.T
    with pytest.warns(pl.FallbackWarning, match="negative by rounding, at most .*e-1"):
        x = pl.sample(a, 50, 0)
    rest = x - x @ v @ np.linalg.pinv(v)
    assert np.abs(rest).max() < 1e-6 * np.abs(x).max()
    with pytest.raises(np.linalg.LinAlgError, match="least eigenvalue"):
        pl.sample(a - 1e-3 * np.eye(20))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pl.sample(pl.LowRank(v), 3)


def test_toeplitz_without_an_exact_embedding():
    """The circulant around it is indefinite: the dense root then."""
    c = np.exp(-0.5 * (np.arange(12) / 8.0) ** 2)
    c[0] += 1e-3
    assert np.fft.fft(np.r_[c, c[-2:0:-1]]).real.min() < -1e-6
    from pylinop._structured import square_roots

    r = square_roots.root(pl.Toeplitz(c))
    assert type(r) is pl.Triangular
    np.testing.assert_allclose((r @ r.T).toarray(), scipy.linalg.toeplitz(c), atol=1e-14)


def test_jitter_is_added_where_it_is_needed_and_told():
    x = np.random.default_rng(0).standard_normal((6, 3))
    a = x @ x.T - 1e-9 * np.eye(6)  # of rank three, and less
    with pytest.raises(np.linalg.LinAlgError):
        pl.cholesky(a)
    with pytest.warns(pl.FallbackWarning, match=r"was added to the diagonal"):
        L = pl.cholesky(a, jitter=1e-8)
    assert 0 < np.max(np.abs((L @ L.T).toarray() - a)) < 1e-5
    K = pl.Kron(pl.Diag([1.0, 2.0]), x[:3] @ x[:3].T)
    with warnings.catch_warnings():  # not where it is not needed
        warnings.simplefilter("error")
        np.testing.assert_array_equal(
            pl.cholesky(K, jitter=1e-8).toarray(), pl.cholesky(K).toarray()
        )
    with pytest.raises(np.linalg.LinAlgError):
        pl.cholesky(-np.eye(3), jitter=1e-6)
    for bad in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="jitter"):
            pl.cholesky(np.eye(2), jitter=bad)
