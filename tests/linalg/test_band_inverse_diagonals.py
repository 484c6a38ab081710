"""Diagonals and traces of inverses of bands: by recurrences on the band, in O(l u n), checked; by
the sparse or the dense factor where these are not sound."""

import warnings

import numpy as np
import pytest

import pylinop as pl

SIZES = [1, 2, 3, 15, 16, 17, 100]
DTYPES = [np.float64, np.complex128, np.float32, np.complex64]


def numbers(rng, shape, dtype):
    a = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal(shape)
    return a.astype(dtype)


def wanted(a, k=0):
    wide = np.result_type(a.dtype, np.float64)
    return np.diagonal(np.linalg.inv(a.astype(wide)), k, -2, -1)


def close(found, want, a, terms=1):
    """To n u cond(A) of the largest entry of the inverse, as of an inverse by LU."""
    u, inverse = np.finfo(a.dtype).eps / 2, np.linalg.inv(a.astype(np.result_type(a, np.float64)))
    assert np.asarray(found).shape == want.shape
    assert np.asarray(found).dtype == a.dtype
    cond = (np.linalg.norm(a, 1, (-2, -1)) * np.linalg.norm(inverse, 1, (-2, -1))).max()
    bound = 10 * terms * a.shape[-1] * u * cond * np.abs(inverse).max()
    assert np.abs(found - want).max(initial=0) <= bound


def goes_by_the_band(op):
    return "band-inverse-diagonal" in [s["name"] for s in op.explain("diagonal").steps]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("n", SIZES)
def test_tridiagonal(n, batch, dtype):
    rng = np.random.default_rng(n)
    off = [numbers(rng, (*batch, n - 1), dtype) for _ in range(2)]
    T = pl.Tridiagonal(off[0], (numbers(rng, (*batch, n), dtype) + 6).astype(dtype), off[1])
    a = T.toarray()
    for k in (-1, 0, 1):
        if abs(k) < n:
            close(pl.diagonal(pl.inv(T), k), wanted(a, k), a)
            close(pl.diagonal(pl.inv(T.H), k), wanted(np.swapaxes(a, -1, -2).conj(), k), a)
    close(pl.trace(pl.inv(T)), wanted(a).sum(-1), a, terms=n)
    if n > 1:
        assert goes_by_the_band(pl.inv(T)) and goes_by_the_band(pl.inv(2 * T.T))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("l_and_u", [(2, 1), (0, 2), (3, 0), (3, 3), (1, 4)])
@pytest.mark.parametrize("n", SIZES)
def test_banded(n, l_and_u, dtype):
    rng = np.random.default_rng(n)
    (below, above), batch = l_and_u, (2,) if n == 16 else ()
    ab = numbers(rng, (*batch, below + above + 1, n), dtype)
    ab[..., above, :] += 12
    B = pl.Banded(l_and_u, ab)
    a = B.toarray()
    for k in range(-above, below + 1):
        if abs(k) < n:
            close(pl.diagonal(pl.inv(B), k), wanted(a, k), a)
    if n >= 100:  # of a triangle it is that of its diagonal
        assert goes_by_the_band(pl.inv(B)) == (below > 0 < above)


@pytest.mark.parametrize("n", [17, 100, 410])
def test_what_is_a_band_as_it_is_written(n):
    rng = np.random.default_rng(n)
    T = pl.Tridiagonal(rng.random(n - 1), rng.random(n) + 3, rng.random(n - 1))
    F = pl.FiniteDifference(n)
    for op in (
        T.T @ T,
        F.T @ F + pl.Diag(rng.random(n) + 1),
        pl.Banded((1, 1), np.ones((3, n))) + 5 * T,
    ):
        a = op.toarray()
        close(pl.diagonal(pl.inv(op)), wanted(a), a)
        assert goes_by_the_band(pl.inv(op))


def test_lazy_formulas():
    rng = np.random.default_rng(1)
    n = 60
    a = np.diag(rng.random(n) + 3) + np.diag(rng.random(n - 1), 1) + np.diag(rng.random(n - 1), -1)
    A = pl.lazy(a, assume_a="tridiagonal")
    found = pl.diagonal(pl.inv(A) + pl.Identity(n))
    np.testing.assert_allclose(np.asarray(found), wanted(a) + 1, rtol=1e-12)


def test_the_named_half_is_read_alone():
    n = 40
    d, e = np.full(n, 4.0), np.linspace(-1, 1, n - 1)
    T = pl.Tridiagonal(np.full(n - 1, np.nan), d, e, assume_a="pos")
    a = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
    close(pl.diagonal(pl.inv(T)), wanted(a), a)
    close(pl.diagonal(pl.inv(T.T)), wanted(a), a)
    c = e + 1j * e[::-1]
    ab = np.array([np.r_[0, c], d, np.full(n, np.nan)])
    a = np.diag(d) + np.diag(c, 1) + np.diag(c.conj(), -1)
    close(pl.diagonal(pl.inv(pl.Banded((1, 1), ab, "pos"))), wanted(a), a)


@pytest.mark.parametrize("n", [50, 450])
@pytest.mark.parametrize("small", [0.0, 1e-12, 1e-6])
def test_without_sound_pivots_the_safer_way_is_taken(n, small):
    rng = np.random.default_rng(n)
    T = pl.Tridiagonal(rng.random(n - 1) + 1, small * rng.random(n), rng.random(n - 1) + 1)
    a = T.toarray()
    close(pl.diagonal(pl.inv(T)), wanted(a), a)


@pytest.mark.parametrize("power", [4, 8, 12])
def test_graded(power):
    n = 60
    rng = np.random.default_rng(power)
    s = 10.0 ** (-power * rng.random(n))
    base = np.diag(np.full(n, 2.5)) + np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
    a = s[:, None] * base * s
    T = pl.Tridiagonal(*(np.diagonal(a, k).copy() for k in (-1, 0, 1)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pl.IllConditionedWarning)
        found = pl.diagonal(pl.inv(T))
    close(found, wanted(base) / s**2, a)
    if power == 4:
        exact = wanted(base) / s**2
        np.testing.assert_allclose(found, exact, rtol=1e-9)


def test_what_is_assumed_and_false_is_said():
    n = 30
    T = pl.Tridiagonal(np.ones(n - 1), np.full(n, -4.0), np.ones(n - 1), assume_a="pos")
    with pytest.warns(pl.FallbackWarning, match="assumed positive definite"):
        found = pl.diagonal(pl.inv(T))
    close(found, wanted(T.toarray()), T.toarray())


@pytest.mark.parametrize("n", [12, 500])
def test_singular(n):
    with pytest.raises(np.linalg.LinAlgError):
        pl.diagonal(pl.inv(pl.Tridiagonal(np.ones(n - 1), np.zeros(n), np.zeros(n - 1))))


def test_not_a_number_passes():
    n = 20
    d = np.full(n, 4.0)
    d[3] = np.nan
    T = pl.Tridiagonal(np.ones(n - 1), d, np.ones(n - 1))
    assert np.isnan(pl.diagonal(pl.inv(T))).any()


def test_it_costs_a_few_operations_a_row():
    for n in (1000, 100_000):
        T = pl.Tridiagonal(np.ones(n - 1), np.full(n, 4.0), np.ones(n - 1))
        found = pl.inv(T).explain("diagonal")
        assert found.flops <= 20 * n
        B = pl.Banded((2, 2), np.ones((5, n)))
        assert pl.inv(B).explain("diagonal").flops <= 60 * n
        assert pl.inv(T.T @ T).explain("diagonal").flops <= 200 * n
