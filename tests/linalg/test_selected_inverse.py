"""Entries of inverses without the inverse, against dense NumPy and mpmath."""

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from test_sparse_solve import indefinite, laplacian, saddle, scattered, uneven

import pylinop as pl
from pylinop import _core
from pylinop._sparse import factor as _factor
from pylinop._sparse import selected_inverse


def close(got, want, tolerance=1e-10):
    assert np.max(np.abs(got - want)) <= tolerance * np.max(np.abs(want))


def matrices(rng):
    n = 441
    return {
        "laplacian": pl.Sparse(laplacian(21)),
        "negative": -1 * pl.Sparse(laplacian(21)),
        "uneven": pl.Sparse(uneven(rng, 21)),
        "scattered": pl.Sparse(scattered(rng, n)),
        "complex": pl.Sparse(scattered(rng, n, complex)),
        "indefinite": pl.Sparse(indefinite(21)),
        "saddle": pl.Sparse(saddle(rng, 21)),
        "shifted": pl.Sparse(uneven(rng, 21)) + 0.3 * pl.Identity(n),
        "adjoint": pl.Sparse(scattered(rng, n, complex)).H,
        "grid": pl.Laplacian((21, 21), "neumann", float) - pl.Identity(n),
        "banded": pl.Banded((2, 3), rng.standard_normal((6, n)) + 4 * (np.arange(6) == 3)[:, None]),
        "definite band": pl.Banded((1, 1), np.tile([[-1.0], [2.5], [-1.0]], n), assume_a="pos"),
        "pivoting band": pl.Banded((1, 1), rng.standard_normal((3, n))),
        "tridiagonal": pl.Tridiagonal(rng.random(n - 1), 2 + rng.random(n), rng.random(n - 1)),
    }


@pytest.mark.parametrize("name", list(matrices(np.random.default_rng(0))))
def test_diagonals_and_traces(name, rng):
    op = matrices(rng)[name]
    inverse = np.linalg.inv(op.toarray())
    n = len(inverse)
    inv = pl.inv(op)
    # of a grid the eigenvectors of its axes are cheaper yet, for the main diagonal
    how = "eigenvectors" if name == "grid" else "selected-inverse"
    assert how in str(inv.explain("diagonal"))
    for k in (0, 1, -3):
        close(pl.diagonal(inv, k), np.diagonal(inverse, k))
    close(inv.diagonal(), np.diagonal(inverse))
    close(inv.trace(), np.trace(inverse), 1e-8)
    inside = sp.csr_array(op.tosparse())
    far = sp.csr_array(sp.random_array((n, n), density=2 / n, rng=rng))
    for B in (inside, far):
        want = np.trace(inverse @ B.toarray())
        size = np.sum(abs(inverse.T[B.nonzero()]) * abs(B[B.nonzero()]))
        for got in (
            pl.trace(inv @ pl.Sparse(B)),
            (pl.Sparse(B) @ inv).trace(),
            pl.trace(2 * (inv @ pl.Sparse(B))) / 2,
        ):
            assert abs(got - want) <= 1e-10 * size


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, int])
def test_dtypes(dtype):
    a = (4 * laplacian(21)).astype(dtype)
    got = pl.inv(pl.Sparse(a)).diagonal()
    want = np.diagonal(np.linalg.inv(a.toarray().astype(complex)))
    assert got.dtype == np.result_type(dtype, np.float32 if np.dtype(dtype).kind in "fc" else float)
    close(got, want, 10 * np.finfo(got.dtype).eps)


def test_other_right_factors(rng):
    op = pl.Sparse(uneven(rng, 21))
    inverse = np.linalg.inv(op.toarray())
    d = rng.standard_normal(441)
    close(pl.trace(pl.inv(op) @ pl.Diag(d)), np.sum(np.diagonal(inverse) * d), 1e-9)
    other = pl.Sparse(scattered(rng, 441)) + pl.Diag(d)
    close(pl.trace(pl.inv(op) @ other), np.trace(inverse @ other.toarray()), 1e-9)
    dense = rng.standard_normal((441, 441))
    close(pl.trace(pl.inv(op) @ pl.Dense(dense)), np.trace(inverse @ dense), 1e-9)


def test_against_mpmath(rng):
    """Off a badly conditioned band: as near as its condition lets it be."""
    n = 40
    ab = np.tile([[-1.0], [2.0 + 1e-6], [-1.0]], n)
    factor = _factor.Factor(sp.csr_array(pl.Banded((1, 1), ab).tosparse()))
    got = selected_inverse.entries(factor, np.arange(n), np.arange(n))
    with mpmath.workdps(40):
        m = mpmath.matrix(n, n)
        for i in range(n):
            m[i, i] = mpmath.mpf(2.0 + 1e-6)
            if i:
                m[i, i - 1] = m[i - 1, i] = -1
        want = mpmath.inverse(m)
        worst = max(abs(float((want[i, i] - got[i]) / want[i, i])) for i in range(n))
    assert worst < 1e-13


def test_places_far_from_the_pattern_are_solved_for(rng, monkeypatch):
    op = pl.Sparse(uneven(rng, 21))
    inverse = np.linalg.inv(op.toarray())
    B = sp.csr_array(sp.random_array((441, 441), density=0.02, rng=rng))
    monkeypatch.setattr(selected_inverse, "_GROWTH", 0)
    monkeypatch.setattr(selected_inverse._Pattern, "invert", None)  # not come to
    factor = _factor.Factor(op.tosparse())
    row, col = B.nonzero()
    monkeypatch.setattr(selected_inverse, "_selected", lambda *args: None)
    close(selected_inverse.entries(factor, row, col), inverse[row, col])


def test_a_failed_check_takes_columns(rng, monkeypatch):
    a = indefinite(21)
    factor = _factor.Factor(a)
    keep = selected_inverse._Pattern.at_places
    monkeypatch.setattr(
        selected_inverse._Pattern, "at_places", lambda self, i, j: keep(self, i, j) * (1 + 1e-6)
    )
    at = np.arange(441)
    close(selected_inverse.entries(factor, at, at), np.diagonal(np.linalg.inv(a.toarray())), 1e-9)
    assert factor.safer.pivoted


def test_writes_are_seen():
    a = laplacian(21)
    inv = pl.inv(pl.Sparse(a))
    first = inv.diagonal()
    a.data[:] *= 4
    np.testing.assert_array_equal(inv.diagonal(), first / 4)


def test_large_bands_need_no_dense_form(rng):
    n = 4000
    ab = rng.standard_normal((5, n))
    ab[2] += 6
    op = pl.Banded((2, 2), ab)
    with pl.config(memory_limit=400 << 10):
        got = pl.inv(op).diagonal()
    for i in (0, 1, 777, n - 1):
        unit = np.zeros(n)
        unit[i] = 1
        assert abs(got[i] - pl.solve(op, unit)[i]) < 1e-13


def test_structured_inverses_keep_their_own_way(rng):
    n = 500
    d = 1 + rng.random(n)
    assert "selected" not in str(pl.inv(pl.Diag(d)).explain("diagonal"))
    close(pl.inv(pl.Diag(d)).diagonal(), 1 / d, 1e-15)
    k = pl.Kron(pl.Diag(d[:20]), pl.Diag(d[:30]))
    close(pl.inv(k).diagonal(), 1 / k.diagonal(), 1e-14)


def test_patterns_that_are_none_are_refused():
    start, col = np.array([0, 0, 1]), np.array([0])
    parent, at = np.empty(2, int), np.empty(3, int)
    _core._select_counts(2, start, col, parent, at)
    assert parent.tolist() == [1, -1]
    assert at.tolist() == [0, 1, 1]
    rows = np.empty(1, int)
    _core._select_rows(2, start, col, parent, at, rows)
    assert rows.tolist() == [1]
    for bad in (np.array([1]), np.array([-1]), np.array([5])):
        with pytest.raises(ValueError, match="pattern"):
            _core._select_counts(2, start, bad, parent, at)
    with pytest.raises(ValueError, match="pattern"):
        _core._select_rows(2, start, col, np.array([0, 0]), at, rows)
    d = np.ones(2)
    with pytest.raises(ValueError, match="pattern"):
        _core._select("d", 2, at, np.array([0]), np.ones(1), np.ones(1), d)
    with pytest.raises(ValueError, match="pattern"):
        _core._select("d", 2, at, rows, np.ones(2), np.ones(1), d)
    with pytest.raises(ValueError, match="pattern"):
        _core._select("i", 2, at, rows, np.ones(1), np.ones(1), d)
    _core._select("d", 2, at, rows, np.array([0.5]), np.array([0.25]), d)
    # (L U)^-1 with L = [1 0; .5 1], U = [1 .25; 0 1]
    np.testing.assert_allclose(d, [1.125, 1.0])


@pytest.mark.parametrize("dtype", [np.float64, complex, np.float32])
@pytest.mark.parametrize("n", [16, 399, 400, 401])
def test_inverses_among_sparse_factors(n, dtype, rng):
    """tr(X A^-1 Y), A^-1 and the others seen through views, beside a part of few columns."""
    A = pl.Sparse(scattered(rng, n, complex if dtype is complex else float).astype(dtype))
    D = pl.Diag(np.linspace(1, 2, n).astype(dtype))
    S = pl.Sparse(scattered(rng, n).astype(dtype))
    u = rng.standard_normal((n, 2)).astype(dtype)
    low = pl.Dense(u) @ pl.Dense(u).T
    P = pl.inv(A + pl.Identity(n))
    for op in (
        S.T @ P @ S,
        S @ P.T @ D,
        D @ S @ P.H,
        P.conj() @ S.T @ D @ S,
        2 * (S.T @ S) @ (3 * P - low),
        (low + P.T) @ (S.T @ D).T,
        S @ (P @ low @ P + P),
    ):
        dense = op @ np.eye(n, dtype=dtype)
        size = np.abs(dense).max() * n
        tolerance = 1e-4 if dtype is np.float32 else 1e-11
        assert abs(pl.trace(op) - np.trace(dense)) <= tolerance * size
        assert np.abs(pl.diagonal(op) - np.diagonal(dense)).max() <= tolerance * size
