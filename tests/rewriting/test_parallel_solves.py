"""Solves with sums of two inverses, P^-1 + Q^-1, cost the factor of P + Q alone where both are
definite, are of O(n) where both are bands, and are as accurate as what is written."""

import mpmath
import numpy as np
import pytest
from drawn import figures, positive, values

import pylinop as pl

inv = pl.inv
N = 150


# a P^-1 + b Q^-1, as they are written
SUMS = {
    "plain": lambda P, Q: inv(P) + inv(Q),
    "factors": lambda P, Q: 2.0 * inv(P) + 0.25 * inv(Q),
    "one within": lambda P, Q: inv(3.0 * P) + inv(Q),
    "as a whole": lambda P, Q: 0.5 * (inv(P) + inv(Q)),
    "the other way": lambda P, Q: (inv(Q) + inv(P)).T,
}
ASKS = {"solve": pl.solve, "@": lambda A, b: inv(A) @ b, "left": lambda A, b: b @ inv(A)}


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("written", SUMS)
def test_neither_is_factored(written, dtype):
    r = np.random.default_rng(21)
    p, q = (positive(r, N, dtype) for _ in range(2))
    b = values(r, N, dtype)
    wide = "complex128" if dtype == "complex128" else "float64"
    A = SUMS[written](pl.Dense(p, "pos"), pl.Dense(q, "pos"))
    a = SUMS[written](*(pl.Dense(m.astype(wide)) for m in (p, q))).toarray()
    want = np.linalg.solve(a, b)
    most = 100 * N * np.finfo(dtype).eps * np.linalg.cond(a) * np.abs(want).max()
    for name, ask in ASKS.items():
        x, fx = figures(ask, A, b)
        mine = np.linalg.solve(a.T, b) if name == "left" else want
        np.testing.assert_allclose(x, mine, rtol=0, atol=most)
        assert fx <= N**3 / 3 + 30 * N**2, (name, fx / N**3)
    many = values(r, (N, 5), dtype)
    x, fx = figures(pl.solve, A, many)
    np.testing.assert_allclose(x, np.linalg.solve(a, many), rtol=0, atol=10 * most)
    assert fx <= N**3 / 3 + 70 * N**2, fx / N**3


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_the_named_triangle_alone_is_read(dtype):
    r = np.random.default_rng(22)
    p, q = (positive(r, N, dtype) for _ in range(2))
    b = values(r, N, dtype)
    other = np.tri(N, k=-1, dtype=bool)
    half, rest = (np.where(other, np.nan, m) for m in (p, q))
    for sum_ in SUMS.values():
        want = pl.solve(sum_(pl.Dense(p, "pos"), pl.Dense(q, "pos")), b)
        for P, Q in ((half, q), (p, rest), (half, rest)):
            got = pl.solve(sum_(pl.Dense(P, "pos"), pl.Dense(Q, "pos")), b)
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-10 * np.abs(want).max())


def graded(r, n, power, scale=1.0):
    q = np.linalg.qr(r.standard_normal((n, n)))[0]
    p = scale * (q * 10.0 ** -np.linspace(0, power, n)) @ q.T
    return (p + p.T) / 2


@pytest.mark.filterwarnings("ignore::pylinop.IllConditionedWarning")
@pytest.mark.parametrize(
    "powers", [(0, 0), (3, 3), (12, 0), (0, 12), (12, 12), (14, 6), (6, 14)], ids=str
)
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_graded_ones(powers, scale):
    """The backward error, in 60 digits, is one that the formula as written has, or 10 n u."""
    n = 24
    r = np.random.default_rng(23)
    p, q = graded(r, n, powers[0], scale), graded(r, n, powers[1])
    b = r.standard_normal(n)
    with mpmath.workdps(60):
        a = mpmath.matrix(p.tolist()) ** -1 + mpmath.matrix(q.tolist()) ** -1
        size = float(mpmath.mnorm(a, "f")) / np.sqrt(n)  # no more than the 2-norm

        def eta(x):
            rest = mpmath.matrix(b.tolist()) - a * mpmath.matrix(x.tolist())
            return float(mpmath.norm(rest)) / (size * np.linalg.norm(x) + np.linalg.norm(b))

        written = eta(np.linalg.solve(np.linalg.inv(p) + np.linalg.inv(q), b))
        for A in (inv(pl.Dense(p, "pos")) + inv(pl.Dense(q, "pos")),):
            for x in (pl.solve(A, b), inv(A) @ b):
                most = max(10 * written, 10 * n * np.finfo(float).eps * np.sqrt(n))
                assert eta(x) <= most, (eta(x), written)


@pytest.mark.parametrize("sign", [(1, -0.3), (-0.3, 1), (-1, -1)])
def test_factors_of_any_sign(sign):
    r = np.random.default_rng(24)
    p, q = (positive(r, N, "float64") for _ in range(2))
    b = r.standard_normal(N)
    A = sign[0] * inv(pl.Dense(p, "pos")) + sign[1] * inv(pl.Dense(q, "pos"))
    a = sign[0] * np.linalg.inv(p) + sign[1] * np.linalg.inv(q)
    with pl.config(check_plans=True, verify=True):
        x = pl.solve(A, b)
    assert np.abs(a @ x - b).max() <= 1e-11 * np.linalg.norm(a, 2) * np.linalg.norm(x)


def test_of_what_has_no_inverse():
    r = np.random.default_rng(25)
    G, P = pl.Dense(r.standard_normal((N, 5))), pl.Dense(positive(r, N, "float64"), "pos")
    for A in (inv(G @ G.T) + inv(P), inv(P) + inv(G @ G.T)):
        with pytest.raises(np.linalg.LinAlgError, match="rank at most"):
            pl.solve(A, np.ones(N))


def bands(r, n, dtype):
    e = (r.random(n - 1) / 3).astype(dtype)
    if dtype == "complex128":
        e = e + 1j * (r.random(n - 1) / 3)
    T = pl.Tridiagonal(e.conj(), (2 + r.random(n)).astype(dtype), e)
    ab = np.zeros((5, n), dtype)
    ab[2] = 4 + r.random(n)
    for k in (1, 2):
        ab[2 - k, k:] = ab[2 + k, : n - k] = r.random(n - k) / 3
    return T, pl.Banded((2, 2), ab)


def least_norm(a):
    """What |a|_2 is at least, near it, by powers: singular values take a hundred times as long."""
    x = np.ones(len(a))
    for _ in range(10):
        x = a.conj().T @ (a @ (x / np.linalg.norm(x)))
    return np.sqrt(np.linalg.norm(x))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("n", [80, 600])
def test_bands_beside_each_other_and_diagonals(n, dtype):
    r = np.random.default_rng(26)
    T, B = bands(r, n, dtype)
    real = r.random(n) + 1
    b = values(r, n, dtype)
    signs = np.where(np.arange(n) % 3 == 0, -0.1, 1.0)
    for d in (real, real * signs):
        D = pl.Diag(d)
        for A in (
            inv(T) + D,
            D + inv(T),
            inv(T) + inv(D),
            inv(D) + inv(B),
            2.0 * inv(B) - 0.5 * D,
            0.5 * (inv(T.T) + D),
            inv(T) + inv(B),
        ):
            a = A.toarray()
            x, fx = figures(pl.solve, A, b)
            y, fy = figures(lambda A: inv(A) @ b, A)
            assert max(fx, fy) <= 600 * n, (fx / n, fy / n)
            size = least_norm(a)
            for got in (x, y):
                left = np.linalg.norm(a @ got - b)
                assert left <= 1e-11 * size * np.linalg.norm(got)


def test_a_diagonal_with_zeros_beside_a_band():
    """It has no inverse, the sum has one: as written."""
    n = 200
    r = np.random.default_rng(27)
    T, _ = bands(r, n, "float64")
    d = r.random(n)
    d[[3, 77]] = 0
    A, b = inv(T) + pl.Diag(d), r.standard_normal(n)
    with pl.config(check_plans=True, verify=True):
        x = pl.solve(A, b)
    a = np.linalg.inv(T.toarray()) + np.diag(d)
    assert np.linalg.norm(a @ x - b) <= 1e-12 * np.linalg.norm(a, 2) * np.linalg.norm(x)
