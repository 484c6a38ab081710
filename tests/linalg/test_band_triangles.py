"""Solves with bands on one side of the diagonal: substitution, whose residual is as small as each
row allows, whatever the rows' sizes; exchanges of rows, as LU makes them, lose that."""

import numpy as np
import pytest
import samples

import pylinop as pl

pytestmark = pytest.mark.filterwarnings("ignore::pylinop.IllConditionedWarning")


def lower(rng, n, l, dtype, batch=()):
    """Diagonals 0 to -l, in rows of 1e-6 to 1e6, and the matrix."""
    a = samples.values(rng, (*batch, n, n), dtype).astype(dtype)
    a = np.tril(np.triu(a, -l)) * (10.0 ** rng.uniform(-6, 6, (*batch, n, 1))).astype(a.real.dtype)
    at = np.arange(n)
    a[..., at, at] = np.where(a[..., at, at] == 0, 1, a[..., at, at])
    ab = np.zeros((*batch, l + 1, n), dtype)
    for k in range(l + 1):
        ab[..., k, : max(n - k, 0)] = np.diagonal(a, -k, -2, -1)
        ab[..., k, max(n - k, 0) :] = np.nan  # outside of the matrix: never read
    return a, ab


def residual(a, x, b):
    """|b - a x| as a part of |a| |x|, entry by entry."""
    size = np.abs(a) @ np.abs(x)
    with np.errstate(all="ignore"):
        return np.where(size > 0, np.abs(b - a @ x) / size, 0).max(initial=0)


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("n, l", [(1, 0), (2, 1), (9, 1), (40, 3), (70, 20), (5, 7)])
def test_each_row_keeps_its_digits(n, l, dtype, rng):
    a, ab = lower(rng, n, l, dtype)
    wide = a.astype("D" if dtype == "complex128" else "d")
    A = pl.Banded((l, 0), ab)
    most = 4 * (min(l, n) + 2) * np.finfo(dtype).eps
    views = {
        "A": (A, wide),
        "A.T": (A.T, wide.T),
        "A.conj()": (A.conj(), wide.conj()),
        "A.H": (A.H, wide.conj().T),
    }
    for name, (op, form) in views.items():
        for columns in (1, 2, 17):
            b = (form @ samples.values(rng, (n, columns), dtype)).astype(dtype)
            x = pl.solve(op, b)
            assert x.dtype == dtype
            if np.isfinite(x).all():
                assert residual(form, x.astype(form.dtype), b) <= most, (name, columns)


@pytest.mark.parametrize("n", [6, 300])
def test_beside_other_ways(n, rng):
    """Triangular, and the same band above the diagonal, do the same substitution."""
    a, ab = lower(rng, n, 1, "float64")
    b = a @ rng.standard_normal(n)
    x = pl.solve(pl.Banded((1, 0), ab), b)
    assert residual(a, x, b) < 1e-15
    assert residual(a, pl.solve(pl.Triangular(a), b), b) < 1e-15
    up = np.zeros((2, n))
    up[1], up[0, 1:] = ab[0], ab[1, :-1]
    np.testing.assert_array_equal(pl.solve(pl.Banded((0, 1), up).T, b), x)


def test_batches_zeros_and_faint_pivots(rng):
    a, ab = lower(rng, 12, 2, "float64", (3, 1))
    b = a @ rng.standard_normal((2, 12, 4))
    x = pl.solve(pl.Banded((2, 0), ab), b)
    size = np.abs(a) @ np.abs(x)
    assert (np.abs(b - a @ x) <= 1e-14 * size).all()
    ab[1, 0, 0, 4] = 0
    with pytest.raises(pl.LinAlgError, match="pivot 5 of 12 is exactly zero"):
        pl.solve(pl.Banded((2, 0), ab), b)
    for dtype in ("float64", "complex128"):
        faint = np.array([[1e-310, 2.0, 1e-310, 1.0], [1e-310, 1.0, 1e-309, 0]], dtype)
        form = pl.Banded((1, 0), faint).toarray()
        b = form @ np.ones(4)
        for op, M in ((pl.Banded((1, 0), faint), form), (pl.Banded((1, 0), faint).T, form.T)):
            right = M @ np.ones(4)
            with pytest.warns(pl.IllConditionedWarning):
                y = pl.solve(op, right)
            np.testing.assert_allclose(M @ y, right, rtol=1e-12, atol=5e-324)


def test_determinants_and_inverses_agree(rng):
    a, ab = lower(rng, 30, 2, "float64")
    A = pl.Banded((2, 0), ab)
    pl.solve(A, np.ones(30))  # its factor is kept
    sign, log = pl.slogdet(A)
    d = np.diagonal(a)
    assert sign == np.sign(d).prod()
    np.testing.assert_allclose(log, np.log(np.abs(d)).sum(), rtol=1e-13)
    np.testing.assert_allclose(pl.inv(A).diagonal(), 1 / d, rtol=1e-15)
    np.testing.assert_allclose((pl.inv(A) + 0 * A).trace(), (1 / d).sum(), rtol=1e-12)
    whole = pl.Triangular(a)  # and of products of triangles
    for op, w in ((whole, d), (whole @ whole, d * d), ((A @ A).T, d * d)):
        np.testing.assert_allclose(pl.inv(op).diagonal(), 1 / w, rtol=1e-14)
