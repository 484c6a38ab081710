"""T (T + c I)^-1 in all its numbers is I - c (T + c I)^-1 for a Toeplitz T where that keeps its
digits, and as accurate as an inverse is."""

import numpy as np
import pytest
import scipy.linalg

import pylinop as pl

inv = pl.inv


def drawn(r, n, which):
    c, row = r.standard_normal(n), r.standard_normal(n)
    if which == "definite":
        c = row = 0.9 ** np.arange(n)
    elif which == "smooth":  # nearly singular by itself
        c = row = np.exp(-(np.arange(n) ** 2) / 20)
    elif which == "symmetric":
        row = c
    row = np.concatenate([c[:1], row[1:]])
    return c, row


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("which", ["definite", "smooth", "symmetric", "general"])
def test_dense_forms(which, dtype):
    seed = int(np.random.default_rng().integers(2**31))
    r, u = np.random.default_rng(seed), np.finfo(dtype).eps
    for n in (5, 47, 64, 130):
        c, row = (a.astype(dtype) for a in drawn(r, n, which))
        T, I = pl.Toeplitz(c, row), pl.Identity(n, dtype=dtype)
        t = scipy.linalg.toeplitz(c, row).astype(np.longdouble)
        for s in (1e-4, 0.25, 3.0, 1e5):
            shifted = t + np.longdouble(s) * np.eye(n)
            cond = np.linalg.cond(shifted.astype(float))
            if cond > 0.01 / u:
                continue
            w = np.linalg.inv(shifted.astype(float)).astype(np.longdouble)
            for _ in range(3):
                w = w + w @ (np.eye(n) - shifted @ w)
            for A, want in (
                (T @ inv(T + s * I), t @ w),
                (inv(T + s * I) @ T, w @ t),
                (inv(T + s * I) @ (-2 * T), -2 * (w @ t)),
            ):
                off = np.linalg.norm(A.toarray() - want) / np.linalg.norm(want)
                assert off <= 10 * n * u + 2 * cond * u, (seed, n, s)


def test_costs_no_dense_factor(n=480):
    Z, I = pl.Toeplitz(np.exp(-np.arange(n) / 5.0)), pl.Identity(n)
    for A in (Z @ inv(Z + 0.5 * I), inv(Z + 0.5 * I) @ Z):
        assert A.explain("dense").flops < n**3 / 20


def test_a_singular_sum_says_so():
    n = 32
    T = pl.Toeplitz(-np.eye(n)[0])
    with pytest.raises(np.linalg.LinAlgError):
        (T @ inv(T + pl.Identity(n))).toarray()
