"""Pivots below the normal numbers beside normal ones: their reciprocals are inf, and OpenBLAS's LU
passes their columns over."""

import numpy as np
import pytest

import pylinop as pl

SMALL = {"float32": 2.0**-140, "float64": 2.0**-1040, "complex64": 2.0**-140}
SMALL |= {"complex128": 2.0**-1040}
# Two rows and columns, as multiples of the small number.
BLOCKS = {
    "one": [[1, 0], [0, 8]],
    "beside": [[1, 0.25], [0.25, 8]],
    "zeros": [[0, 1], [1, 0]],
    "two": [[0.5, 1], [1, -0.25]],
    "three": [[4, 1], [1, 2]],
}


def matrix(n, block, place, dtype, dense):
    """A matrix with that block at `place` in small numbers and the rest beside it, in whose pivots
    of order two `dense` is seen; its determinant as a sign and a logarithm."""
    rng = np.random.default_rng(n)
    rest = np.diag(2.0 + np.arange(n - 2))
    if dense and n > 2:
        rest = rng.integers(-8, 9, (n - 2, n - 2)).astype(float)
        rest = rest + rest.T - 2 * np.diag(np.diag(rest)) + 40 * n * np.eye(n - 2)[::-1]
    a = np.zeros((n, n))
    others = np.delete(np.arange(n), [place, place + 1])
    a[np.ix_(others, others)] = rest
    sign, log = np.linalg.slogdet(rest)
    one = np.array(BLOCKS[block])
    a[place : place + 2, place : place + 2] = SMALL[dtype] * one
    value = np.linalg.det(one)
    return (
        a.astype(dtype),
        sign * np.sign(value),
        log + np.log(abs(value)) + 2 * np.log(SMALL[dtype]),
    )


def turned(a, assume_a):
    """Units on the circle on both sides, so that it is truly complex: P a P^H or P a P^T."""
    if a.dtype.kind != "c":
        return a, 1
    p = np.array([1, 1j, -1, -1j])[np.arange(len(a)) % 4]
    right = p if assume_a == "sym" else p.conj()
    return (p[:, None] * a * right).astype(a.dtype), np.prod(p) * np.prod(right)


def close(found, want, dtype):
    tolerance = 1e-3 if SMALL[dtype] > 1e-100 else 1e-9
    np.testing.assert_allclose(found, want, rtol=0, atol=tolerance * np.abs(want).max())


def solves(A, a, dtype, rng):
    for k in (0, 1, 6):
        x = rng.integers(1, 4, (len(a), k) if k else len(a)).astype(dtype)
        close(pl.solve(A, (a @ x).astype(dtype)), x, dtype)


@pytest.mark.filterwarnings("ignore::pylinop.IllConditionedWarning")
@pytest.mark.no_verify("the steps as written leave the range, where these do not")
@pytest.mark.parametrize("dtype", list(SMALL))
@pytest.mark.parametrize("block", list(BLOCKS))
@pytest.mark.parametrize("assume_a", [None, "sym", "her"])
@pytest.mark.parametrize("n", [2, 3, 17, 70])
def test_dense(n, assume_a, block, dtype, rng):
    """By L D L^H and by LU: sizes on both sides of the panels, of LAPACK's too."""
    for place in sorted({0, n // 2 - 1}):
        for dense in (False, True):
            a, sign, log = matrix(n, block, place, dtype, dense)
            a, unit = turned(a, assume_a)
            held = a.copy()
            if assume_a:
                held[np.tril_indices(n, -1)] = np.nan  # the upper triangle alone is read
            A = pl.Dense(held, assume_a)
            views = ((A, a), (A.T, a.T), (A.H, a.conj().T), (A.conj(), a.conj()))
            for B, b in views if n < 50 else views[:1]:
                solves(B, b, dtype, rng)
            found = pl.slogdet(A)
            np.testing.assert_allclose(found.logabsdet, log, rtol=1e-5)
            np.testing.assert_allclose(found.sign, sign * unit, atol=1e-3)


@pytest.mark.filterwarnings("ignore::pylinop.IllConditionedWarning")
@pytest.mark.no_verify("the steps as written leave the range, where these do not")
@pytest.mark.parametrize("dtype", list(SMALL))
@pytest.mark.parametrize("block", list(BLOCKS))
@pytest.mark.parametrize("widths", [(1, 1), (2, 1), (3, 4)])
@pytest.mark.parametrize("n", [2, 3, 40])
def test_bands(n, widths, block, dtype, rng):
    lower, upper = widths
    for place in sorted({0, n // 2 - 1, n - 2}):
        a, sign, log = matrix(n, block, place, dtype, False)
        a, unit = turned(a, "her")
        ab = np.zeros((lower + upper + 1, n), dtype)
        for k in range(-min(lower, n - 1), min(upper, n - 1) + 1):
            ab[upper - k, max(k, 0) : n + min(k, 0)] = np.diagonal(a, k)
        A = pl.Banded(widths, ab)
        for B, b in ((A, a), (A.T, a.T), (A.H, a.conj().T), (A.conj(), a.conj())):
            solves(B, b, dtype, rng)
        found = pl.slogdet(A)
        np.testing.assert_allclose(found.logabsdet, log, rtol=1e-5)
        np.testing.assert_allclose(found.sign, sign * unit, atol=1e-3)
        T = pl.Tridiagonal(*(np.diagonal(a, k).copy() for k in (-1, 0, 1)))
        solves(T, a, dtype, rng)


@pytest.mark.filterwarnings("ignore::pylinop.IllConditionedWarning")
@pytest.mark.filterwarnings("ignore::pylinop.FallbackWarning")  # bands: no reciprocal, so LU
@pytest.mark.no_verify("the steps as written leave the range, where these do not")
@pytest.mark.parametrize("dtype", list(SMALL))
@pytest.mark.parametrize("n", [2, 5, 40])
def test_positive_definite(n, dtype, rng):
    """Cholesky has roots of the pivots, bands and batches of small matrices the pivots."""
    for block in ("one", "three"):
        for place in sorted({0, n // 2 - 1, n - 2}):
            a, _, log = matrix(n, block, place, dtype, False)
            a, _ = turned(a, "her")
            ab = np.zeros((2, n), dtype)
            ab[0, 1:], ab[1] = np.diagonal(a, 1), np.diagonal(a)
            both = np.stack([a, a])
            band = pl.Banded((1, 1), np.stack([*ab, np.r_[ab[0, 1:].conj(), 0]]), "pos")
            for A in (pl.Dense(a, "pos"), band):
                solves(A, a, dtype, rng)
                np.testing.assert_allclose(pl.logdet(A), log, rtol=1e-5)
            x = rng.integers(1, 4, (2, n)).astype(dtype)
            b = (a @ x[..., None])[..., 0].astype(dtype)
            close(pl.solve(pl.Dense(both, "pos"), b[..., None])[..., 0], x, dtype)


@pytest.mark.filterwarnings("ignore::pylinop.IllConditionedWarning")
@pytest.mark.no_verify("the steps as written leave the range, where these do not")
@pytest.mark.parametrize("dtype", list(SMALL))
@pytest.mark.parametrize("block", list(BLOCKS))
def test_factors(block, dtype, rng):
    """As operators: P L U and L D L^H are the matrix."""
    for n in (3, 40):
        a, _ = turned(matrix(n, block, n // 2 - 1, dtype, True)[0], "her")
        for given in (a, a[:, :-1], a[:-1]):
            p, low, up = (f.toarray() for f in pl.lu(pl.Dense(given)))
            close(p @ low @ up, given, dtype)
            pair = np.s_[n // 2 - 1 : n // 2 + 1]
            scale = a.dtype.type(2.0**100 if SMALL[dtype] > 1e-100 else 2.0**1000)
            close((p @ low @ (up * scale))[pair, pair], given[pair, pair] * scale, dtype)
        low, d = (f.toarray() for f in pl.ldl(pl.Dense(a, "her"))[:2])
        close(low @ d @ low.conj().T, a, dtype)
