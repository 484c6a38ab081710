"""Sums, products, views and inverses of circulants are one Circulant: a few FFTs, as accurate as
what is written."""

import mpmath
import numpy as np
import pytest
from drawn import values

import pylinop as pl

inv = pl.inv


def circulant(r, n, dtype, levels=1):
    c = values(r, n, dtype) / n
    c[0] = 3
    return pl.Circulant(c if levels == 1 else c.reshape(-1, 5), levels=levels)


SUMS = {
    "Wiener's": lambda C, D, I: C.H @ C + 0.5 * inv(D),
    "of two inverses": lambda C, D, I: inv(C) + 2 * inv(D) - I,
    "of an inverse of a sum": lambda C, D, I: inv(C @ D + 0.5 * I) + D,
    "of a view": lambda C, D, I: (C + 2 * I) + (C + 2 * I).T,
    "a multiple": lambda C, D, I: -2.5 * (C + 4 * I),
    "a product": lambda C, D, I: C @ inv(D) + I,
    "a resolvent": lambda C, D, I: I + 0.5 * inv(C),
}


@pytest.mark.parametrize("dtype, levels", [("float64", 1), ("complex128", 2), ("float32", 1)])
@pytest.mark.parametrize("written", SUMS)
def test_one_spectrum(written, dtype, levels):
    r, n = np.random.default_rng(2), 120
    A = SUMS[written](
        *(circulant(r, n, dtype, levels) for _ in range(2)), pl.Identity(n, dtype=dtype)
    )
    b, u = values(r, n, dtype), np.finfo(dtype).eps
    for B in (A, A.H, (2 * A).T):
        a = B.toarray()
        for x, m in ((pl.solve(B, b), a), (b @ inv(B), a.T)):
            room = 100 * n * u * np.linalg.norm(a, 2) * np.linalg.norm(x)
            assert np.linalg.norm(m @ x - b) <= room
        assert B.explain("solve", b).flops < n**3 / 8
    sign, log = pl.slogdet(A)
    want = np.linalg.slogdet(A.toarray().astype(complex if A.dtype.kind == "c" else float))
    assert abs(log - want[1]) <= 1000 * n * u and abs(sign - want[0]) <= 1000 * n * u
    d = inv(A).diagonal()
    np.testing.assert_allclose(d, np.diagonal(np.linalg.inv(A.toarray())), atol=1000 * n * u)
    assert inv(A).explain("diagonal").flops < n**3 / 8


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_diagonals_of_products(dtype):
    r, n = np.random.default_rng(3), 120
    C, D = (circulant(r, n, dtype) for _ in range(2))
    for P in (C @ inv(D), inv(C) @ inv(D), inv(C @ D + pl.Identity(n, dtype=dtype)) @ C.H):
        p = P.toarray()
        np.testing.assert_allclose(P.diagonal(), np.diagonal(p), rtol=0, atol=1e-12)
        np.testing.assert_allclose(P.trace(), np.trace(p), rtol=0, atol=1e-10)
        np.testing.assert_allclose(P.diagonal(7), np.diagonal(p, 7), rtol=0, atol=1e-12)
        assert P.explain("diagonal").flops < n**3 / 8


def of_spectrum(r, n, low):
    """A symmetric one whose eigenvalues are between `low` and 1."""
    d = np.geomspace(low, 1, n // 2 + 1)
    return np.fft.irfft(r.permutation(d), n)


@pytest.mark.parametrize("low", [1e-4, 1e-8, 1e-12])
def test_of_ill_conditioned_ones(low, n=16):
    r, u = np.random.default_rng(4), 2.0**-53
    c, d, b = of_spectrum(r, n, low), of_spectrum(r, n, low), r.standard_normal(n)
    C, D, I = pl.Circulant(c), pl.Circulant(d), pl.Identity(n)

    def full(c):
        return mpmath.matrix([[c[(i - j) % n] for j in range(n)] for i in range(n)])

    for A, exact in (
        (C.T @ C + 1e-3 * inv(D), lambda C, D, I: C.T * C + mpmath.mpf(1e-3) * D**-1),
        (inv(C) + inv(D), lambda C, D, I: C**-1 + D**-1),
        (D + inv(inv(C) + I), lambda C, D, I: D + (C**-1 + I) ** -1),
        (I + inv(C) @ D, lambda C, D, I: I + C**-1 * D),
    ):
        with mpmath.workdps(50):
            a = exact(full(c), full(d), mpmath.eye(n))
            size = float(mpmath.mnorm(a, "f"))

            def eta(x, a=a, size=size):
                r = mpmath.matrix(b.tolist()) - a * mpmath.matrix(x.tolist())
                return float(mpmath.norm(r)) / (size * np.linalg.norm(x) + np.linalg.norm(b))

            mine, theirs = eta(pl.solve(A, b)), eta(np.linalg.solve(A.toarray(), b))
            log = mpmath.log(abs(mpmath.det(a)))
            off = abs(float(mpmath.mpf(float(pl.slogdet(A)[1])) - log))
        # what a backward stable inverse is within
        bound = 10 * n * u / low
        assert mine <= max(10 * theirs, 10 * n * u)
        assert off <= n * bound


def test_singular_ones_say_so():
    n = 24
    C, D = pl.Circulant(np.ones(n)), pl.Circulant(np.eye(n)[0] * 3)
    with pytest.raises(np.linalg.LinAlgError):
        pl.solve(D @ D + inv(C), np.ones(n))
    with pytest.raises(np.linalg.LinAlgError):
        (inv(C) @ D).diagonal()


def test_a_shifted_toeplitz_within_a_resolvent_stays_one():
    n = 507
    T, I = pl.Toeplitz(0.9 ** np.arange(n)), pl.Identity(n)
    A, b = inv(I + 0.5 * inv(T)), np.ones(n)
    assert A.explain("apply", b).flops < n**3 / 20
    want = np.linalg.solve(np.eye(n) + 0.5 * np.linalg.inv(T.toarray()), b)
    np.testing.assert_allclose(A @ b, want, rtol=0, atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
@pytest.mark.parametrize("taps, n", [((2,), (64,)), ((5,), (300,)), ((2, 3), (6, 8)), ((9,), (4,))])
def test_circular_convolutions_are_circulants(taps, n, dtype):
    """Solves, determinants and inverses by the spectrum, from every view and in sums; they took an
    LU of the dense form."""
    rng = np.random.default_rng(5)
    kernel = rng.standard_normal(taps).astype(dtype)
    if dtype == np.complex64:
        kernel += 1j * rng.standard_normal(taps).astype(np.float32)
    kernel.flat[0] += 6
    C = pl.Convolution(kernel, n if len(n) > 1 else n[0], "circular")
    N = C.shape[0]
    A, eye, I = C.toarray().astype(np.complex128), np.eye(N), pl.Identity(N)
    b = rng.standard_normal((N, 2)).astype(dtype)
    found = [
        (pl.solve(C, b), np.linalg.solve(A, b)),
        (pl.solve(C.H, b), np.linalg.solve(A.conj().T, b)),
        (b.T @ pl.inv(3 * C.T), b.T @ np.linalg.inv(3 * A.T)),
        (pl.solve(C.H @ C + I, b), np.linalg.solve(A.conj().T @ A + eye, b)),
        (pl.solve(C + pl.LowRank(b), b), np.linalg.solve(A + b @ b.conj().T, b)),
        (pl.inv(C).diagonal(), np.linalg.inv(A).diagonal()),
        (pl.inv(C).trace(), np.trace(np.linalg.inv(A))),
        (pl.inv(C).toarray(), np.linalg.inv(A)),
        (pl.slogdet(C)[0], np.linalg.slogdet(A)[0]),
        (pl.slogdet(C)[1], np.linalg.slogdet(A)[1]),
    ]
    rounding = 1e4 * np.finfo(dtype).eps
    for i, (got, want) in enumerate(found):
        assert np.abs(got - want).max() < rounding * np.abs(want).max(), i
    for of, ask in ((C, ("solve", b)), (C, ("logdet",)), (pl.inv(C), ("diagonal",))):
        steps = {s["name"] for s in of.explain(*ask).steps}
        assert not steps & {"getrf", "convolve-dense", "SuperLU", "eye"}, steps


def test_a_singular_circular_convolution():
    with pytest.raises(np.linalg.LinAlgError):
        pl.solve(pl.Convolution([1.0, -1.0], 8, "circular"), np.ones(8))
