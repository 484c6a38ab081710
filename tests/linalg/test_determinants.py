"""Determinants by structure: huge sizes, closed forms, scales, singular and assumed ones, and the
determinant lemma with its guard."""

import decimal
import math
from fractions import Fraction

import numpy as np
import pytest
import ref
import scipy.linalg
import scipy.sparse as sp
from samples import values

import pylinop as pl
from pylinop._structured import determinants

CLOSE = {"float32": 2e-4, "complex64": 2e-4, "float64": 1e-10, "complex128": 1e-10}


def vectors(rng, *shapes):
    return [rng.standard_normal(s) for s in shapes]


def test_huge(rng):
    n = 10**6
    p = rng.permutation(n)
    sign, log = pl.slogdet(pl.Permutation(p))
    marks, cycles = np.zeros(n, bool), 0
    for i in range(n):
        cycles += not marks[i]
        while not marks[i]:
            marks[i], i = True, p[i]
    assert sign == (-1) ** (n - cycles) and log == 0
    assert pl.det(pl.Permutation(np.roll(np.arange(n), 1))) == -1
    T = pl.Tridiagonal(np.ones(n - 1), np.full(n, 4.0), np.ones(n - 1))
    g = 2 + math.sqrt(3)  # det = (g^(n+1) - g^-(n+1)) / (g - 1/g)
    want = (n + 1) * math.log(g) - math.log(g - 1 / g)
    assert abs(pl.logdet(T) - want) < 1e-9 * want
    B = pl.Banded((1, 1), np.stack([np.ones(n), np.full(n, 4.0), np.ones(n)]))
    assert abs(pl.logdet(B) - want) < 1e-9 * want
    blocks = rng.standard_normal((1000, 5, 5))
    want = np.linalg.slogdet(blocks)
    sign, log = pl.slogdet(pl.BlockDiag(*blocks))
    assert sign == np.prod(want.sign) and abs(log - want.logabsdet.sum()) < 1e-9
    c = np.zeros(n)
    c[[0, 1]] = 2, 1  # det = 2^n - (-1)^n
    assert abs(pl.logdet(pl.Circulant(c)) - n * math.log(2)) < 1e-6
    assert abs(pl.logdet(pl.Hadamard(2**20)) - 2**19 * 20 * math.log(2)) < 1e-6
    assert abs(pl.slogdet(pl.DFT(n)).logabsdet - n / 2 * math.log(n)) < 1e-6
    assert pl.det(pl.Householder(rng.standard_normal(n))) == -1
    assert pl.slogdet(pl.Laplacian(n, "dirichlet")) == (1, math.log(n + 1))
    k = np.arange(1, 1001) * np.pi / 2002
    sizes = 4 * np.sin(k) ** 2
    want = np.log(sizes[:, None] + sizes).sum()
    assert abs(pl.slogdet(pl.Laplacian((1000, 1000), "dirichlet")).logabsdet - want) < 1e-6
    n = 10**5
    d, U = rng.uniform(0.5, 1.5, n), rng.standard_normal((n, 4))
    want = np.log(d).sum() + np.linalg.slogdet(np.eye(4) + U.T @ (U / d[:, None])).logabsdet
    assert abs(pl.logdet(pl.Diag(d) + pl.LowRank(U)) - want) < 1e-9 * abs(want)


@pytest.mark.parametrize("n", range(1, 18))
def test_transforms(n):
    for norm in ("backward", "ortho", "forward"):
        for A in (
            pl.DFT(n, norm),
            pl.DFT((n, 3), norm).H,
            *(pl.DCT(n, t, norm) for t in (1, 2, 3, 4) if n > 1 or t > 1),
            pl.DCT((2, n), 3, norm).T,
            pl.inv(pl.DFT(n, norm)),
        ):
            got, want = pl.slogdet(A), np.linalg.slogdet(A.toarray())
            np.testing.assert_allclose(got.sign, want.sign, atol=1e-9)
            np.testing.assert_allclose(got.logabsdet, want.logabsdet, rtol=1e-11, atol=1e-11)


def test_scales_of_determinants(rng):
    """No intermediate over- or underflows, no symmetry is lost."""
    for size in (1e300, 1e-300):
        c = rng.standard_normal(50)
        got, want = pl.slogdet(pl.Circulant(size * c)), np.linalg.slogdet(scipy.linalg.circulant(c))
        assert got.sign == want.sign
        assert abs(got.logabsdet - want.logabsdet - 50 * math.log(size)) < 1e-9
        T = pl.Tridiagonal(*(size * v for v in vectors(rng, 49, 50, 49)))
        want = np.linalg.slogdet(T.toarray() / size)
        got = pl.slogdet(T)
        assert got.sign == want.sign
        assert abs(got.logabsdet - want.logabsdet - 50 * math.log(size)) < 1e-8
        v = rng.standard_normal(20)
        assert pl.det(pl.Householder(size * v)) == -1
        H = pl.Householder(size * v, np.float64(0.3) / size)
        want = 1 - 0.3 * size * (v @ v)
        assert np.isclose(pl.det(H), want, rtol=1e-13)
    for n in (2, 3, 4, 5, 6):  # real ones of several levels are exactly real
        c = rng.standard_normal((n, 3, 4))
        C = pl.Circulant(c, 3)
        assert isinstance(pl.det(C), float)
        np.testing.assert_allclose(pl.det(C), np.linalg.det(C.toarray()), rtol=1e-8)
    assert pl.det(pl.Circulant(np.zeros(5))) == 0 and pl.det(pl.Circulant(np.ones(4))) == 0
    assert pl.det(pl.Circulant([1, -1, 0, 0])) == 0
    assert pl.det(pl.Circulant(np.array([3, 1], np.int8))) == 8
    assert np.isnan(pl.det(pl.Circulant([1.0, np.nan])))


@pytest.mark.parametrize("boundary", ["valid", "zero", "periodic"])
@pytest.mark.parametrize("kind", ["forward", "backward", "central"])
@pytest.mark.parametrize("order", [0, 1, 2, 3, 4])
def test_finite_differences(order, kind, boundary):
    for n in (0, 1, 2, 3, 4, 5, 8, 9, 16, 17):
        try:
            A = pl.FiniteDifference(n, order, kind, boundary)
        except ValueError:
            continue
        if A.shape == (n, n):
            a = A.toarray().astype(float)
            bound = np.prod(np.linalg.norm(a, axis=1))  # Hadamard's
            assert abs(pl.det(A) - np.linalg.det(a)) <= 1e-14 * n * bound, n


def test_singular_and_empty():
    zero = np.zeros((2, 2))
    for A in (
        pl.BlockDiag(np.eye(2), zero),
        pl.Tridiagonal([1.0, 0.0], [1.0, 1.0, 1.0], [1.0, 0.0]),
        pl.Banded((1, 1), [[0.0, 1, 0], [1, 1, 1], [1, 0, 0]]),
        pl.Triangular([[1.0, 5], [2, 0]]),
        pl.Full((3, 3), 2.0),
        pl.Diag([1.0, 2.0], 1),
        pl.Laplacian(4),
        pl.FiniteDifference(5, 2, "central", "periodic"),
        pl.BlockDiag(np.ones((1, 2)), np.ones((2, 1))),
        pl.Kron(np.ones((1, 2)), np.ones((2, 1))),
        pl.Householder([1.0, 0.0], 1.0),
    ):
        assert pl.slogdet(A) == (0, -np.inf) and pl.det(A.H) == 0
        assert pl.matrix_rank(A) == np.linalg.matrix_rank(A.toarray().astype(float))
    for A in (
        pl.Permutation(np.zeros(0, int)),
        pl.BlockDiag(np.ones((0, 0))),
        pl.Tridiagonal([], [], []),
        pl.Banded((1, 1), np.ones((3, 0))),
        pl.Triangular(np.ones((0, 0))),
        pl.Full((0, 0), 1.0),
        pl.Circulant([]),
        pl.Householder(np.ones(0)),
        pl.Laplacian(0),
        pl.DFT(0),
    ):
        assert pl.slogdet(A) == (1, 0)
    with pytest.raises(np.linalg.LinAlgError, match="no direction"):
        pl.det(pl.Householder(np.zeros(3)))
    with pytest.raises(ValueError, match="once"):
        pl.det(pl.Permutation([0, 0]))


def test_assumed_bands(rng):
    """Assumed positive definite: the upper half alone is read, Cholesky; LU where that fails."""
    n = 30
    upper = 0.3 * rng.standard_normal((2, n)) + 0.2j * rng.standard_normal((2, n))
    ab = np.concatenate([upper, np.full((1, n), 3.0), np.full((2, n), np.nan)])
    B = pl.Banded((2, 2), ab, assume_a="pos")
    full = sp.diags_array([ab[0, 2:], ab[1, 1:], ab[2]], offsets=[2, 1, 0]).toarray()
    full = full + np.triu(full, 1).conj().T
    got, want = pl.slogdet(B), np.linalg.slogdet(full)
    assert got.sign == 1 and abs(got.logabsdet - want.logabsdet) < 1e-12
    assert abs(pl.logdet(B.T) - want.logabsdet) < 1e-12
    e = upper[1, 1:]
    for T in (
        pl.Tridiagonal(e * np.nan, np.full(n, 3.0), e, assume_a="pos"),
        pl.Tridiagonal(e * np.nan, np.full(n, 3.0), e, assume_a="pos").H,
    ):
        want = np.linalg.slogdet(np.diag(np.full(n, 3.0)) + np.diag(e, 1) + np.diag(e.conj(), -1))
        assert abs(pl.logdet(T) - want.logabsdet) < 1e-12
    for A in (
        pl.Banded((1, 1), [[0.0, 2], [1, 1], [2, 0]], assume_a="pos"),
        pl.Tridiagonal([2.0], [1.0, 1.0], [2.0], assume_a="pos"),
    ):
        with pl.config(check="none"), pytest.warns(pl.FallbackWarning):
            assert abs(pl.det(A) + 3) < 1e-14


def test_band_factor_is_shared(rng):
    ab = rng.standard_normal((4, 50))
    B = pl.Banded((1, 2), ab)
    for _ in range(2):
        b = np.ones(50)
        np.testing.assert_allclose(B @ pl.solve(B, b), b, atol=1e-9)
        np.testing.assert_allclose(pl.det(B), np.linalg.det(B.toarray()), rtol=1e-9)
        ab[1] *= 2  # a write is seen
    singular = pl.Banded((0, 0), [[1.0, 0.0]])
    assert pl.det(singular) == 0
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError, match="pivot 2 of 2"):
            pl.solve(singular, np.ones(2))


# -- the determinant lemma and its guard --


def test_lemma_leads_to_lu(rng):
    """A base that is singular, or nearly so, where the sum is not."""
    n = 40
    U = rng.standard_normal((n, 2))
    for tiny in (0.0, 1e-300, 1e-17, 1e-12):
        d = rng.uniform(1, 2, n)
        d[3] = tiny
        a = np.diag(d) + U @ U.T
        for A in (pl.Diag(d) + pl.LowRank(U), pl.Banded((0, 0), d[None]) + pl.LowRank(U)):
            got, want = pl.slogdet(A), np.linalg.slogdet(a)
            assert got.sign == want.sign and abs(got.logabsdet - want.logabsdet) < 1e-10
    q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    base = q @ np.diag([1e-15, *rng.uniform(1, 2, n - 1)]) @ q.T
    V = 10 * q[:, :1]
    A = pl.LowRankUpdate(pl.BlockDiag(base), V)
    want = np.linalg.slogdet(base + V @ V.T)
    assert abs(pl.logdet(A) - want.logabsdet) < 1e-11
    ones = pl.LowRankUpdate(pl.Kron(np.ones((2, 2)), np.eye(4)), rng.standard_normal((8, 4)))
    np.testing.assert_allclose(pl.det(ones), np.linalg.det(ones.toarray()), rtol=1e-8)


@pytest.mark.parametrize("dtype", ref.FLOATS)
def test_lemma(dtype, rng):
    """For every base, with and without a middle, in batches, cancelling ones too."""
    n, r = 12, 3
    bases = [
        pl.Diag(values(rng, (n,), dtype) + np.asarray(9, dtype)),
        pl.Diag(values(rng, (2, n), dtype) + np.asarray(9, dtype)),
        pl.Identity(n),
        pl.Tridiagonal(
            *(values(rng, (n - 1,), dtype), np.full(n, 9, dtype), np.ones(n - 1, dtype))
        ),
        pl.Circulant(values(rng, (n,), dtype) + 20 * np.eye(n, dtype=dtype)[0]),
        pl.Kron(np.eye(3, dtype=dtype) * 5, values(rng, (4, 4), dtype)),
        pl.Permutation(rng.permutation(n)),
    ]
    for base in bases:
        U, V = values(rng, (n, r), dtype), values(rng, (n, r), dtype)
        C = values(rng, (r, r), dtype)
        for A in (
            pl.LowRankUpdate(base, U),
            pl.LowRankUpdate(base, U, V),
            pl.LowRankUpdate(base, U, V, C),
            pl.LowRank(U, V) + base,
            base + pl.LowRank(U, V, C),
            3 * pl.LowRankUpdate(base, U, V).H,
        ):
            got, want = pl.det(A), np.linalg.det(A.toarray().astype(np.complex128))
            size = np.prod(np.linalg.norm(A.toarray(), axis=-1), axis=-1).max()
            assert np.all(np.abs(got - want) <= CLOSE[dtype] * size)
    d = rng.uniform(1, 2, n).astype(np.empty(0, dtype).real.dtype)
    e = np.eye(n, 1, dtype=d.dtype)
    A = pl.Diag(d) - pl.LowRank(e * np.sqrt(d[0] * (1 - 2.0**-10)))  # most of an element goes
    want = np.linalg.slogdet(A.toarray().astype(float))
    assert abs(pl.logdet(A) - want.logabsdet) < 1e5 * CLOSE[dtype]


def exactly(a):
    """Determinant and inverse of a matrix of Fractions."""
    n = len(a)
    rows = [[*row, *(Fraction(int(i == j)) for j in range(n))] for i, row in enumerate(a)]
    det = Fraction(1)
    for k in range(n):
        best = max(range(k, n), key=lambda i: abs(rows[i][k]))
        if best != k:
            rows[k], rows[best], det = rows[best], rows[k], -det
        pivot = rows[k][k]
        det *= pivot
        rows[k] = [x / pivot for x in rows[k]]
        for i in range(n):
            if i != k:
                f = rows[i][k]
                rows[i] = [x - f * y for x, y in zip(rows[i], rows[k], strict=True)]
    return det, [row[n:] for row in rows]


def exact_log(x):
    with decimal.localcontext(prec=60):
        return float(decimal.Decimal(abs(x.numerator)).ln() - decimal.Decimal(x.denominator).ln())


def test_lemma_is_as_good_as_lu(rng):
    """Of badly scaled and nearly cancelling updates: within n u cond(A) of exact rationals."""
    n, r, u = 6, 2, 2.0**-53
    for trial in range(60):
        d = rng.choice([-1.0, 1.0], n) * (10.0 ** rng.uniform(-16, 16, n) if trial % 2 else 1)
        U, V = rng.standard_normal((2, n, r)) * 10.0 ** rng.uniform(-8, 8)
        if trial % 3 == 0:  # most of the first elements goes
            U, V = np.eye(n, r), -np.eye(n, r) * d[:r] * (1 - 1e-9)
        exact = [
            [
                sum(Fraction(U[i, k]) * Fraction(V[j, k]) for k in range(r))
                + (Fraction(d[i]) if i == j else 0)
                for j in range(n)
            ]
            for i in range(n)
        ]
        det, inverse = exactly(exact)
        got = pl.slogdet(pl.LowRankUpdate(pl.Diag(d), U, V))
        size = math.sqrt(sum(float(x) ** 2 for row in exact for x in row))
        condition = size * math.sqrt(sum(float(x) ** 2 for row in inverse for x in row))
        if n * u * condition < 0.1:
            assert got.sign == (1 if det > 0 else -1)
            assert abs(got.logabsdet - exact_log(det)) <= n * u * condition + 1e-14 * abs(
                exact_log(det)
            )


@pytest.mark.parametrize(
    ("dtype", "d", "u", "c"), [("float32", 1e-30, 1e-25, 1e20), ("float64", 1e-200, 1e-170, 1e140)]
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_thin_terms_whose_squares_vanish(dtype, d, u, c, order, rng):
    """c * Identity + U C U^H where U^H U is below the smallest number and U^H U / c is not."""
    U = np.asarray(u * rng.standard_normal((400, 5)), dtype, order=order)
    A = (
        np.dtype(dtype).type(d) * pl.Identity(400)
        + pl.Dense(U) @ pl.Dense((c * np.eye(5)).astype(dtype), "pos") @ pl.Dense(U).T
    )
    s = np.linalg.svd(U.astype(float) / u, compute_uv=False)
    # of 1 + (c u^2 / d) s^2, by logarithms
    want = 400 * np.log(d) + np.log1p(np.exp(np.log(c) + 2 * np.log(u) - np.log(d)) * s**2).sum()
    np.testing.assert_allclose(pl.logdet(A), want, rtol=1e-6 if dtype == "float32" else 1e-12)


def test_the_modulus_of_a_huge_complex_number():
    """Python's abs raises OverflowError where NumPy's is infinite."""
    sign, log = determinants._log(complex(1.5e308, 1.5e308), 3.0)
    assert abs(sign - (0.5**0.5) * (1 + 1j)) < 1e-15
    assert abs(log - (math.log(1.5e308) + math.log(2) * 3.5)) < 1e-12
    assert math.isnan(determinants._log(complex(math.inf, math.nan), 0.0)[0].real)
    with np.errstate(over="ignore"):
        np.exp(np.full(9, 1e3 + 1e3j))  # leaves an errno, which Python's abs(nan + nan j) reads
    assert math.isnan(determinants._log(complex(math.nan, math.nan), 0.0)[1])
