"""Traces of products with the inverse of a diagonal and a low rank: no matrix of n rows is formed,
and what cancels goes by a dense factor."""

import warnings

import numpy as np
import pytest
from scipy import sparse

import pylinop as pl


def drawn(rng, dtype, *shape):
    x = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return (x if np.dtype(dtype).kind == "c" else x.real).astype(dtype)


def others(rng, n, dtype):
    x = drawn(rng, dtype, n, n)
    c = drawn(rng, dtype, n)
    return {
        "dense": (pl.Dense(x), 2 * n * n),
        "positive": (pl.Dense(x @ x.conj().T, assume_a="her"), 2 * n * n),
        "sparse": (pl.Sparse(sparse.csr_array(np.where(np.abs(x) > 2.2, x, 0))), n * n),
        "tridiagonal": (pl.Tridiagonal(c[1:], c, c[:-1]), 8 * n),
        "toeplitz": (pl.Toeplitz(c), 2 * n * n),
        "product": (pl.Diag(c) @ pl.Dense(x), 2 * n * n),
        "inverse": (pl.inv(pl.Tridiagonal(c[1:], c + 9, c[:-1])), 40 * n),
    }


def updates(rng, n, k, dtype):
    u, d = drawn(rng, dtype, n, k), rng.random(n).astype(np.float32).astype(dtype) + 1
    return {
        "update": pl.LowRankUpdate(pl.Diag(d), u),
        "sum": pl.Dense(u) @ pl.Dense(u).H + pl.Diag(d),
        "multiple": 2.0 * (pl.LowRank(u) + pl.Diag(d)),
        "identity": 3.0 * pl.Identity(n) + pl.LowRank(u),
        "general": pl.LowRankUpdate(pl.Diag(d), u, drawn(rng, dtype, n, k) / n),
        "middle": pl.LowRankUpdate(pl.Diag(d), u, u, drawn(rng, dtype, k, k) / n),
    }


@pytest.mark.parametrize("dtype", ["f8", "c16", "f4"])
@pytest.mark.parametrize("k", [7, 30, 31])
def test_traces_form_no_matrix(dtype, k):
    rng = np.random.default_rng(k)
    n = 120
    for a in updates(rng, n, k, dtype).values():
        dense = np.linalg.inv(a.toarray())
        for x, once in others(rng, n, dtype).values():
            own = x.toarray()
            want = np.trace(dense @ own)
            size = np.linalg.norm(dense) * np.linalg.norm(own)
            asked = [(pl.inv(a) @ x, want), (x @ pl.inv(a), want)]
            asked += [(pl.inv(a).T @ x, np.trace(dense.T @ own)), (x @ pl.inv(a.H), None)]
            for product, value in asked:
                if value is None:
                    value = np.trace(own @ dense.conj().T)
                assert abs(product.trace() - value) <= 1000 * np.finfo(dtype).eps * size
            if 4 * k <= n and k >= 30 and dtype == "f8":
                e = (pl.inv(a) @ x).explain("trace")
                assert e.flops <= once * k + 20 * n * k + 8 * n * k * k


def test_what_cancels_goes_by_a_dense_factor():
    rng = np.random.default_rng(5)
    n = 40
    q = np.linalg.qr(rng.standard_normal((n, 1)))[0]
    x = rng.standard_normal((n, n))
    for gap in (1e-6, 1e-13):
        a = pl.LowRankUpdate(pl.Identity(n), q, q, np.array([[gap - 1]]))
        inverse = np.eye(n) - (gap - 1) / gap * (q @ q.T)
        value = (pl.inv(a) @ pl.Dense(x)).trace()
        assert abs(value - np.trace(inverse @ x)) <= 1e-14 / gap * abs(inverse).max() * n
    d = 10.0 ** np.linspace(-12, 0, n)
    u = rng.standard_normal((n, 3))
    a = pl.LowRankUpdate(pl.Diag(d), u)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pl.IllConditionedWarning)
        value = (pl.inv(a) @ pl.Dense(x)).trace()
    inverse = np.linalg.inv(a.toarray())
    assert abs(value - np.trace(inverse @ x)) <= 1e-5 * np.linalg.norm(inverse) * n


def test_singular_parts():
    x = pl.Dense(np.arange(256.0).reshape(16, 16))
    d, e = np.arange(16.0), np.eye(16)
    regular = pl.LowRankUpdate(pl.Diag(d), e[:, :1])  # a base that is singular
    assert (pl.inv(regular) @ x).trace() == pytest.approx(
        sum(17 * i / max(i, 1) for i in range(16))
    )
    for a in (
        pl.LowRankUpdate(pl.Diag(d), e[:, 1:2]),
        pl.LowRankUpdate(pl.Identity(16), e[:, :1], e[:, :1], np.array([[-1.0]])),
    ):
        with pytest.raises(np.linalg.LinAlgError):
            (pl.inv(a) @ x).trace()


def test_batches_and_thin_products():
    rng = np.random.default_rng(6)
    a = pl.LowRankUpdate(pl.Diag(rng.random((3, 20)) + 1), rng.standard_normal((3, 20, 2)))
    x = rng.standard_normal((20, 20))
    want = np.trace(np.linalg.inv(a.toarray()) @ x, axis1=1, axis2=2)
    assert np.allclose((pl.inv(a) @ pl.Dense(x)).trace(), want, atol=1e-12)
    one = pl.LowRankUpdate(pl.Diag(rng.random(400) + 1), rng.standard_normal((400, 9)))
    low = pl.LowRank(rng.standard_normal((400, 2)))
    assert (pl.inv(one) @ low).explain("trace").flops < 1.2e5  # two solves
