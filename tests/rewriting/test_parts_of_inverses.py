"""Diagonals and traces of small blocks of inverses, inv(S)[:k, :k]: by as many right sides as they
have columns, where the whole inverse was made."""

import numpy as np
import pytest

import pylinop as pl

N = 64


def matrices(rng, dtype):
    x = rng.standard_normal((N, N)) + 1j * rng.standard_normal((N, N))
    x = (x if np.dtype(dtype).kind == "c" else x.real).astype(dtype)
    s = (x @ x.conj().T / N + np.eye(N)).astype(dtype)
    d = (rng.random(N) + 0.5).astype(np.finfo(dtype).dtype)
    S, eye = pl.Dense(s, "pos"), pl.Identity(N, dtype=dtype)
    return {
        "definite": (S, s),
        "any": (pl.Dense(x + 9 * np.eye(N, dtype=dtype)), x + 9 * np.eye(N, dtype=dtype)),
        "with noise": (S + 0.5 * eye, s + 0.5 * np.eye(N)),
        "with a diagonal": (2 * S + pl.Diag(d), 2 * s + np.diag(d)),
        "kernel": (
            pl.Kernel("rbf", np.arange(N)[:, None] / 3.0, length_scale=1.0) + 0.5 * pl.Identity(N),
            np.exp(-0.5 * ((np.arange(N)[:, None] - np.arange(N)) / 3.0) ** 2) + 0.5 * np.eye(N),
        ),
    }


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_values(dtype, rng):
    eps = float(np.finfo(dtype).eps)
    for A, a in matrices(rng, dtype).values():
        inverse = np.linalg.inv(np.asarray(a, "c16"))
        for rows, columns in (
            (slice(0, 8), slice(0, 8)),
            (slice(3, 5), slice(3, 5)),
            (slice(0, 9), slice(0, 9)),
            (slice(2, 60, 10), slice(2, 60, 10)),
            (slice(1, 6), slice(4, 9)),
            (slice(0, 3), slice(2, 9)),
            (slice(20, 21), slice(20, 21)),
        ):
            for k in (0, 1, -1):
                part = pl.inv(A)[rows, columns]
                wanted = np.diagonal(inverse[rows, columns], k)
                if wanted.size == 0:
                    continue
                assert np.abs(part.diagonal(k) - wanted).max() <= 1e3 * eps
            square = inverse[rows, columns]
            if square.shape[0] == square.shape[1]:
                assert abs(pl.inv(A)[rows, columns].trace() - np.trace(square)) <= 1e3 * eps


def test_prices(rng):
    for name, (A, _) in matrices(rng, "f8").items():
        small, large = pl.inv(A)[: N // 8, : N // 8], pl.inv(A)[: N // 8 + 1, : N // 8 + 1]
        for what in ("diagonal", "trace"):
            few, many = small.explain(what).flops, large.explain(what).flops
            assert few < 0.75 * many, (name, what)
        assert large.explain("diagonal").flops <= 1.01 * pl.inv(A).explain("diagonal").flops
    # what has diagonals of inverses by its structure keeps that way
    e = np.ones(N - 1)
    T = pl.Tridiagonal(-e, 3 * np.ones(N), -e)
    assert pl.inv(T)[:4, :4].explain("diagonal").flops < 30 * N


def test_singular():
    a = np.ones((N, N))
    with pytest.raises(np.linalg.LinAlgError):
        pl.inv(pl.Dense(a))[:4, :4].diagonal()
    nan = np.eye(N)
    nan[60, 2] = np.nan
    with np.errstate(all="ignore"):
        assert np.isnan(pl.inv(pl.Dense(nan))[:4, :4].diagonal()).any()
