"""Solves and determinants of what is assumed symmetric or Hermitian, by L D L^H; one factor for a
matrix and its views."""

import mpmath
import numpy as np
import pytest

import pylinop as pl

WORDS = ["sym", "her"]


def _matrix(n, dtype, word, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((n, n)).astype(dtype)
    if np.iscomplexobj(a):
        a = (a + 1j * rng.standard_normal((n, n))).astype(dtype)
    return a + (a.T if word == "sym" else a.conj().T)


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 17, 120])
def test_solves_and_determinants(n, dtype, word):
    a = _matrix(n, dtype, word)
    b = np.random.default_rng(1).standard_normal((n, 3)).astype(a.real.dtype)
    wide = a.astype(complex)
    eps = np.finfo(a.dtype).eps
    only_upper = pl.Dense(np.triu(a), word)
    for op, dense in [
        (pl.Dense(a, word), wide),
        (pl.Dense(a, word).T, wide.T),
        (pl.Dense(a, word).H, wide.conj().T),
        (pl.Dense(a, word).conj(), wide.conj()),
        (only_upper, wide),  # the other triangle is not read
    ]:
        x = pl.solve(op, b)
        assert x.dtype == np.result_type(a, b)
        if n:
            residual = np.abs(b - dense @ x).max()
            assert residual <= 50 * n * eps * (np.abs(dense).max() * np.abs(x).max() + 1)
        sign, size = pl.slogdet(op)
        want = np.linalg.slogdet(dense)
        assert abs(sign - want[0]) <= 100 * (n + 1) * eps
        assert abs(size - want[1]) <= 100 * (n + 1) * eps
    if n:
        assert "sytrf" in [s["name"] for s in pl.Dense(a, word).explain("solve", b).steps]


def test_the_inverse_reads_one_triangle_too():
    a = _matrix(80, "f8", "sym")
    got = pl.inv(pl.Dense(np.triu(a), "sym")).toarray()
    np.testing.assert_allclose(got @ a, np.eye(80), atol=1e-9)


@pytest.mark.parametrize("word", WORDS)
def test_singular(word):
    ones = pl.Dense(np.ones((3, 3)), word)
    with pytest.raises(np.linalg.LinAlgError, match="pivot 2 of 3"):
        pl.solve(ones, np.ones(3))
    assert pl.det(ones) == 0 and pl.logdet(ones) == -np.inf
    stack = np.stack([np.eye(3), np.ones((3, 3))])
    with pytest.raises(np.linalg.LinAlgError, match="batch|element"):
        pl.solve(pl.Dense(stack, word), np.ones((3, 1)))


@pytest.mark.parametrize("where", [(0, 0), (1, 2), (3, 3)])
def test_nan_passes_through(where):
    a = _matrix(4, "f8", "sym")
    a[where] = a[where[::-1]] = np.nan
    assert np.isnan(pl.solve(pl.Dense(a, "sym"), np.ones(4))).all()
    assert np.isnan(pl.logdet(pl.Dense(a, "sym")))


def test_blocks_of_two_neither_over_nor_underflow():
    for tiny in (1e-300, 1e300):
        sign, size = pl.slogdet(pl.Dense(np.array([[0, tiny], [tiny, 0]]), "sym"))
        assert sign == -1 and abs(size - 2 * np.log(tiny)) < 1e-12 * abs(size)


def test_ill_conditioned_and_graded():
    n = 12
    with mpmath.workdps(60):
        hilbert = mpmath.hilbert(n)
        shift = mpmath.mpf("0.3")
        exact = mpmath.matrix(n)
        for i in range(n):
            for j in range(n):  # what float64 holds of an indefinite, graded matrix
                value = hilbert[i, j] * mpmath.mpf(10) ** (-(i + j) // 2) - (
                    shift if i == j == 5 else 0
                )
                exact[i, j] = mpmath.mpf(float(value))
        det = mpmath.det(exact)
        a = np.array(exact.tolist(), dtype=float)
        sign, size = pl.slogdet(pl.Dense(a, "sym"))
        assert sign == mpmath.sign(det)
        b = np.ones(n)
        x = pl.solve(pl.Dense(a, "sym"), b)
    residual = np.abs(b - a @ x).max() / (np.abs(a).sum(1).max() * np.abs(x).max() + 1)
    plain = np.linalg.solve(a, b)
    bound = np.abs(b - a @ plain).max() / (np.abs(a).sum(1).max() * np.abs(plain).max() + 1)
    assert residual <= max(10 * bound, 10 * n * 2**-53)
    assert abs(size - float(mpmath.log(abs(det)))) < 1e-2


def test_stacks_and_writes():
    a = np.stack([_matrix(9, "f8", "sym", seed) for seed in range(4)])
    op = pl.Dense(a, "sym")
    b = np.ones((9, 2))
    np.testing.assert_allclose(pl.solve(op, b), np.linalg.solve(a, b), rtol=1e-9)
    np.testing.assert_allclose(pl.slogdet(op)[1], np.linalg.slogdet(a)[1], rtol=1e-12)
    first = pl.solve(op, b)
    assert np.array_equal(first, pl.solve(op, b))
    a[2] += 3 * np.eye(9)
    np.testing.assert_allclose(pl.solve(op, b), np.linalg.solve(a, b), rtol=1e-9)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_one_factor_for_both_sides(dtype):
    rng = np.random.default_rng(3)
    a = rng.standard_normal((40, 40)).astype(dtype)
    if dtype == "c16":
        a = a + 1j * rng.standard_normal((40, 40))
    A, b = pl.lazy(a), rng.standard_normal((40, 2))
    left, right = pl.inv(A) @ b, b.T @ pl.inv(A)
    with pl.explaining() as told:
        x, y = pl.evaluate(left, right)
    np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-9)
    np.testing.assert_allclose(y, np.linalg.solve(a.T, b).T, rtol=1e-9)
    names = [s["name"] for s in told.steps]
    assert names.count("getrf") == 1 and names.count("getrs") == 2
    D = pl.Dense(a)
    for op, dense in [(D.T, a.T), (D.H, a.conj().T), (D.conj(), a.conj())]:
        np.testing.assert_allclose(pl.solve(op, b), np.linalg.solve(dense, b), rtol=1e-9)
