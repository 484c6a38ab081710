"""Digits of what goes by a low rank or by first and last columns, beside dense solves: at small
pivots, at scales whose squares leave the range."""

import numpy as np
import pytest

import pylinop as pl


def near_pivot(n, d0, dtype):
    r = np.random.default_rng(n)
    d = 1 + r.random(n)
    d[0] = d0
    U = r.standard_normal((n, 5)) / np.sqrt(n)
    U[0] = r.standard_normal(5)
    return d.astype(dtype), U.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d0", [1e-2, 1e-3])
@pytest.mark.parametrize("n", [33, 100, 300])
def test_determinants_at_a_small_pivot(n, d0, dtype):
    d, U = near_pivot(n, d0, dtype)
    A = pl.Diag(d) + pl.LowRank(U)
    dense = np.diag(d).astype(float) + U.astype(float) @ U.T.astype(float)
    eps = np.finfo(dtype).eps
    assert (
        abs(pl.slogdet(A)[1] - np.linalg.slogdet(dense)[1])
        <= (1e3 if eps < 1e-10 else 300) * n * eps
    )


@pytest.mark.parametrize("corner", ["Diag", "Tridiagonal"])
def test_blocks_at_a_small_pivot_in_single_precision(corner):
    n, m = 100, 5
    d, U = near_pivot(n, 3e-3, np.float32)
    e = np.full(n - 1, 0.01, np.float32)
    A = pl.Diag(d) if corner == "Diag" else pl.Tridiagonal(e, d, e)
    M = pl.Block([[A, pl.Dense(U)], [pl.Dense(U.T), -pl.Identity(m, dtype=np.float32)]])
    dense = M.toarray().astype(float)
    b = np.ones(n + m, np.float32)
    due = np.linalg.solve(dense, b)
    assert np.abs(pl.solve(M, b) - due).max() <= 3e-6 * np.linalg.cond(dense) * abs(due).max()
    assert abs(pl.slogdet(M)[1] - np.linalg.slogdet(dense)[1]) <= 3e-4


@pytest.mark.parametrize("scale", [1e-160, 1e-100, 1.0, 1e150, 1e154, 1e158, 1e200])
@pytest.mark.parametrize("made", ["Toeplitz", "Hankel"])
def test_inverses_at_any_scale(made, scale):
    n = 100
    r = np.random.default_rng(3)
    if made == "Toeplitz":
        c = np.zeros(n)
        c[0], c[1], c[5] = 3, 0.5, -0.4
        T, one = pl.Toeplitz(c * scale), pl.Toeplitz(c).toarray()
    else:
        h = r.standard_normal(2 * n - 1)
        h[n - 1] += 20
        T, one = (
            pl.Hankel(h[:n] * scale, h[n - 1 :] * scale),
            pl.Hankel(h[:n], h[n - 1 :]).toarray(),
        )
    due = np.linalg.inv(one)
    size = np.abs(due).max()
    found = pl.inv(T)
    assert np.abs(found.toarray() * scale - due).max() <= 1e-12 * size
    assert np.abs(pl.diagonal(found) * scale - due.diagonal()).max() <= 1e-12 * size
    assert np.abs(found[:5, :5].toarray() * scale - due[:5, :5]).max() <= 1e-12 * size
    assert abs(pl.trace(found) * scale - due.trace()) <= 1e-11 * size


def test_a_leading_minor_next_to_singular_at_a_scale_whose_squares_overflow():
    """The check of the first and last columns had no bound there, and believed anything."""
    for n in (100, 150):
        r = np.random.default_rng(n)
        c = r.standard_normal(n)
        row = r.standard_normal(n)
        row[0] = c[0]
        one = pl.Toeplitz(c, row).toarray()
        w = np.linalg.eigvals(one[:-1, :-1])  # moved so that the leading minor is nearly singular
        shift = w[np.argmin(np.abs(w.imag) * 1e3 + np.abs(w))].real
        c[0] = row[0] = c[0] - shift
        due = np.linalg.inv(pl.Toeplitz(c, row).toarray())
        for scale in (1.0, 1e154, 1e158):
            found = pl.inv(pl.Toeplitz(c * scale, row * scale)).toarray() * scale
            assert np.abs(found - due).max() <= 1e-9 * np.abs(due).max()


TINY = [0.0, 1e-14, 1e-10, 1e-6, 1.0]


def diagonal_and_thin(n, k, tiny, dtype, middle):
    r = np.random.default_rng([n, k, int(tiny * 1e16)])
    real = np.dtype(dtype).type(0).real.dtype
    d = 1 + r.random(n)
    d[r.integers(n)] = tiny
    U = r.standard_normal((n, k))
    C = r.standard_normal((k, k))
    if np.dtype(dtype).kind == "c":
        U = U + 1j * r.standard_normal((n, k))
        C = C + 1j * r.standard_normal((k, k))
    d, U, C = d.astype(real), U.astype(dtype), (C @ C.conj().T + np.eye(k)).astype(dtype)
    wide = np.result_type(dtype, np.float64)
    if middle == "none":
        A, C = pl.Diag(d) + pl.LowRank(U, U), np.eye(k)
    elif middle == "weights":
        w = (0.5 + r.random(k)).astype(real)
        A, C = pl.Diag(d) + pl.LowRank(U, U, C=pl.Diag(w)), np.diag(w)
    else:
        A = pl.Diag(d) + pl.LowRank(U, U, C=pl.Dense((C + C.conj().T) / 2, assume_a="her"))
        C = (C + C.conj().T) / 2
    U = U.astype(wide)
    return A, np.diag(d).astype(wide) + U @ C @ U.conj().T


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("middle", ["none", "weights", "dense"])
@pytest.mark.parametrize("n, k", [(15, 1), (79, 8), (80, 8), (89, 9), (90, 9), (161, 16), (300, 5)])
def test_a_diagonal_with_a_tiny_entry_beside_a_low_rank(n, k, middle, dtype):
    """On both sides of ten rows a column."""
    eps = float(np.finfo(dtype).eps)
    for tiny in TINY:
        A, dense = diagonal_and_thin(n, k, tiny, dtype, middle)
        b = np.random.default_rng(k).standard_normal((n, 3)).astype(dtype)
        size, inverse = np.linalg.norm(dense, 2), np.linalg.inv(dense)
        for a, m in ((A, dense), (A.H, dense), (A.T, dense.T), (2 * A, 2 * dense)):
            x = pl.solve(a, b).astype(dense.dtype)
            left = np.linalg.norm(m @ x - b, axis=0)
            units = 10 * n if middle == "dense" or n // 10 < k else 30 * n**0.5
            assert (left <= units * eps * size * 2 * np.linalg.norm(x, axis=0)).all()
        cond = size * np.linalg.norm(inverse, 2)
        room = 30 * n**0.5 * eps * cond
        if room < 0.1:
            near = np.abs(inverse).max()
            found = pl.diagonal(pl.inv(A))
            assert np.abs(found - inverse.diagonal()).max() <= room * near
            assert abs(pl.trace(pl.inv(A)) - inverse.trace()) <= room * near * n**0.5
            sign, log = pl.slogdet(A)
            assert abs(log - np.linalg.slogdet(dense)[1]) <= room + 300 * n * eps
            assert abs(sign - 1) <= 10 * eps * n + room


def test_a_tiny_entry_asks_for_no_square_memory():
    for k in (4, 12):
        A, dense = diagonal_and_thin(1000, k, 1e-12, np.float64, "none")
        b = np.ones(1000)
        with pl.config(memory_limit=2_000_000):
            x = pl.solve(A, b)
        due = np.linalg.solve(dense, b)
        assert np.linalg.norm(x - due) <= 1e-9 * np.linalg.norm(due)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("n", [120, 500])
def test_a_tiny_entry_beside_a_low_rank_of_two_sides(n, dtype):
    """On both sides of the rows from which a border is factored as a sparse matrix."""
    for tiny in TINY:
        r = np.random.default_rng([n, int(tiny * 1e16)])
        d = (1 + r.random(n)).astype(dtype)
        d[n // 3] = tiny
        U, V = (r.standard_normal((n, 3)).astype(dtype) for _ in "UV")
        if np.dtype(dtype).kind == "c":
            U, d = U + 1j * V[::-1], d * np.exp(1j * np.arange(n))
        A = pl.Diag(d) + pl.LowRank(U, V)
        dense = np.diag(d) + U @ V.conj().T
        inverse, b = np.linalg.inv(dense), r.standard_normal((n, 2))
        room = 30 * n * np.finfo(float).eps * np.linalg.cond(dense)
        for a, m in ((A, inverse), (A.T, inverse.T), (A.H, inverse.conj().T)):
            assert np.linalg.norm(pl.solve(a, b) - m @ b) <= room * np.linalg.norm(m @ b)
        found = pl.diagonal(pl.inv(A))
        assert np.abs(found - inverse.diagonal()).max() <= room * np.abs(inverse).max()
        sign, log = pl.slogdet(A)
        due = np.linalg.slogdet(dense)
        assert abs(log - due[1]) + abs(sign - due[0]) <= 2 * room + 1e-12 * n


@pytest.mark.parametrize("base", ["Tridiagonal", "banded factor", "Convolution", "Circulant"])
@pytest.mark.parametrize("n", [12, 33, 90])
def test_what_a_low_rank_hardly_sees_of_a_base_next_to_singular(n, base):
    """Differences have constants as null vectors, to which U is nearly orthogonal: what was made of
    the base's inverse was accepted, 500 times as large as that of the whole."""
    for seed in range(3):
        s = 1e-7
        U = np.random.default_rng([n, seed]).standard_normal((n, 1))
        d, e = 2 * np.ones(n), -np.ones(n - 1)
        d[0] = d[-1] = 1
        steps = np.stack([-np.ones(n), np.ones(n)])

        def matrix(s):
            if base == "Tridiagonal":
                B = pl.Tridiagonal(e, d, e)
            elif base == "Circulant":
                B = pl.Circulant(np.r_[2.0, -1.0, np.zeros(n - 3), -1.0])
            elif base == "Convolution":
                C = pl.Convolution(np.array([1.0, -1.0]), n, mode="valid")
                B = C.T @ C
            else:
                L = pl.Banded((1, 0), steps)[: n - 1]
                B = L.T @ L
            return B + s * pl.Identity(n) + pl.LowRank(U)

        dense = matrix(s).toarray()
        inverse = np.linalg.inv(dense)
        room = 100 * n**0.5 * np.finfo(float).eps * np.linalg.cond(dense)
        lazy = pl.inv(matrix(s))
        assert abs(pl.trace(lazy) / inverse.trace() - 1) <= room
        assert np.abs(pl.diagonal(lazy) - inverse.diagonal()).max() <= room * inverse.max()
        due = np.trace(inverse @ inverse)
        assert abs(pl.trace(lazy @ lazy) / due - 1) <= 2 * room
        found = pl.grad(lambda s: pl.trace(pl.inv(matrix(s))))(np.array(s))
        assert abs(-found / due - 1) <= 2 * room
