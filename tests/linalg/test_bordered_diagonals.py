"""The diagonal and the trace of the inverse of a Block of 2 x 2 by the Schur complement of the
block that is cheap to solve for."""

import numpy as np
import pytest

import pylinop as pl


def parts(rng, dtype, p, q):
    def draw(*shape):
        x = rng.standard_normal(shape)
        return (x + 1j * rng.standard_normal(shape) if dtype == "complex128" else x).astype(dtype)

    c = 0.1 * draw(p)
    c[:1] = 9
    bases = {
        "Diag": pl.Diag(draw(p) + 9),
        "Toeplitz": pl.Toeplitz(c, c),
        "Tridiagonal": pl.Tridiagonal(draw(p - 1), draw(p) + 9, draw(p - 1)),
        "Circulant": pl.Circulant(c),
    }
    return bases, draw(p, q), draw(q, p), draw(q, q) + 9 * np.eye(q, dtype=dtype)


def check(M, tol):
    want = np.linalg.inv(M.toarray().astype("complex128")).diagonal()
    with pl.config(check_plans=True), pl.explaining() as log:
        got = pl.diagonal(pl.inv(M))
        trace = pl.trace(pl.inv(M))
    assert got.dtype == M.dtype
    near = tol * np.abs(want).max()
    np.testing.assert_allclose(got, want, rtol=0, atol=near)
    np.testing.assert_allclose(trace, want.sum(), rtol=0, atol=len(want) * near)
    steps = [s for p in log.plans for s in p.steps if s["took"] is not None]
    return sum(s["flops"] for s in steps)


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("size", [(20, 3), (21, 3), (60, 1), (60, 5), (200, 4)])
@pytest.mark.parametrize("base", ["Diag", "Toeplitz", "Tridiagonal", "Circulant"])
def test_by_the_complement(base, size, dtype):
    p, q = size
    rng = np.random.default_rng(p)
    bases, B, C, D = parts(rng, dtype, p, q)
    A = bases[base]
    tol = 1e-3 if dtype == "float32" else 1e-10
    for blocks in ([[A, B], [C, D]], [[D, C], [B, A]]):
        M = pl.Block(blocks)
        for seen in (M, M.T, M.H, 3.0 * M):
            flops = check(seen, tol)
            if p == 200 and base != "Toeplitz":
                assert flops < (p + q) ** 3 / 10
    saddle = pl.Block([[A, B], [C, pl.Zeros((q, q), dtype=dtype)]])
    check(saddle, 1e-2 if dtype == "float32" else 1e-8)


def test_where_the_base_is_singular_and_the_whole_is_not():
    rng = np.random.default_rng(3)
    bases, B, C, D = parts(rng, "float64", 60, 2)
    d = np.arange(60.0) + 1
    for zeros in (1, 2):
        d[:zeros] = 0
        check(pl.Block([[pl.Diag(d), B], [C, D]]), 1e-9)
    d[:3] = 0
    with pytest.raises(np.linalg.LinAlgError):
        pl.diagonal(pl.inv(pl.Block([[pl.Diag(d), B], [0 * C, D]])))


def test_a_base_far_nearer_to_singular_than_the_whole():
    rng = np.random.default_rng(4)
    _, B, C, D = parts(rng, "float64", 60, 2)
    for tiny in (1e-6, 1e-11, 1e-15, 1e-20):
        d = np.arange(60.0) + 1
        d[:2] = tiny
        check(pl.Block([[pl.Diag(d), B], [C, D]]), 1e-9)


def test_a_batch():
    rng = np.random.default_rng(5)
    _, B, C, D = parts(rng, "float64", 40, 2)
    M = pl.Block([[pl.Diag(rng.standard_normal((3, 40)) + 9), B], [C, D]])
    want = np.diagonal(np.linalg.inv(M.toarray()), 0, -2, -1)
    np.testing.assert_allclose(pl.diagonal(pl.inv(M)), want, atol=1e-10)
