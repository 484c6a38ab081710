"""Bands and triangles that follow from how a matrix is written: sums, products, stencils."""

import numpy as np
import pytest

import pylinop as pl

N = 40


def _rng():
    return np.random.default_rng(5)


def _band(l, u, n=N, dtype=np.float64, batch=()):
    rng = _rng()
    ab = rng.standard_normal((*batch, l + u + 1, n)).astype(dtype)
    if np.issubdtype(dtype, np.complexfloating):
        ab = ab + 1j * rng.standard_normal(ab.shape).astype(dtype)
    ab[..., u, :] += 3 * (l + u + 1)
    return pl.Banded((l, u), ab)


def _triangle(lower):
    a = _rng().standard_normal((N, N)) / N + 2 * np.eye(N)
    return pl.Triangular(np.tril(a) if lower else np.triu(a), lower=lower)


T = pl.Tridiagonal(np.ones(N - 1), np.full(N, 7.0), -np.ones(N - 1))
B = _band(1, 1)
BANDS = {
    "two bands": lambda: _band(2, 1) + T,
    "multiples and views": lambda: T.T - 2 * _band(1, 3),
    "complex": lambda: (1 + 2j) * T + _band(1, 1, dtype=np.complex128),
    "single": lambda: _band(1, 2, dtype=np.float32) + _band(0, 1, dtype=np.float32),
    "a view of a sum": lambda: (_band(2, 1) + pl.Diag(np.arange(N))).H,
    "a stack": lambda: _band(1, 1, batch=(2, 3)) + _band(2, 0),
    "blocks": lambda: pl.BlockDiag(*[np.eye(4) * 9 + 1] * (N // 4)) + T,
    "a Kron": lambda: pl.Kron(pl.Identity(N // 4), np.eye(4) * 9 + 1) + T,
    "element by element": lambda: pl.multiply(_band(2, 2), _band(1, 3)) + pl.Identity(N),
    "a power": lambda: T**3 + pl.Identity(N),
}
OWN = {  # their own adjoints: Cholesky is tried
    "normal equations": lambda: B.T @ B + pl.Identity(N),
    "heat": lambda: pl.Identity(N) - 0.1 * pl.Laplacian((N,)),
    "heat on a grid": lambda: pl.Identity(N) - 0.1 * pl.Laplacian((N // 4, 4)),
    "smoothing": lambda: (
        pl.Identity(N) + 5 * pl.FiniteDifference(N, 2).T @ pl.FiniteDifference(N, 2)
    ),
    "indefinite": lambda: pl.Identity(N) + 1.0 * pl.Laplacian((N,)),
}
TRIANGLES = {
    "lower": lambda: _triangle(True) + pl.Diag(np.arange(1.0, N + 1)),
    "upper": lambda: 2 * _triangle(False) + pl.Identity(N),
    "turned": lambda: (_triangle(True) + pl.Identity(N)).T,
    "assumed": lambda: pl.Dense(np.tril(np.ones((N, N))), "lower triangular") + pl.Identity(N),
}


def _agrees(A):
    dense = A.toarray()
    b = _rng().standard_normal((N, 3)).astype(dense.dtype)
    eps = np.finfo(dense.dtype).eps
    cond = np.max(np.linalg.cond(dense.astype(complex)))
    x = np.linalg.solve(dense, b)
    assert np.max(np.abs(pl.solve(A, b) - x)) <= 50 * cond * eps * np.max(np.abs(x))
    sign, size = pl.slogdet(A)
    want = np.linalg.slogdet(dense.astype(np.result_type(dense, np.float64)))
    np.testing.assert_allclose(sign, want[0], atol=50 * N * eps)
    np.testing.assert_allclose(size, want[1], rtol=50 * eps, atol=50 * N * eps)
    return pl.explain(pl.inv(pl.lazy(A)) @ b) if A.ndim == 2 else A.explain("solve", b)


@pytest.mark.parametrize("name", [*BANDS, *OWN])
def test_bands_are_solved_within(name):
    A = {**BANDS, **OWN}[name]()
    told = _agrees(A)
    names = [step["name"] for step in told.steps]
    assert "band_from_products" in names and "solve-inferred" in told.fired
    assert ("pbsv" if name in OWN else "gbtrf") in names
    assert {"scaledet-inferred", "scaledet-grid-sum"} & set(A.explain("logdet").fired)


@pytest.mark.parametrize("name", TRIANGLES)
def test_triangles_are_substituted(name):
    A = TRIANGLES[name]()
    names = [step["name"] for step in _agrees(A).steps]
    assert "trsm" in names and "getrf" not in names


def test_diagonal_products_divide():
    D = pl.FiniteDifference(N, 0, "forward", "zero")  # the identity as a stencil
    A = pl.Diag(np.arange(1.0, N + 1)) + D @ D
    told = _agrees(A)
    assert "div" in [step["name"] for step in told.steps]


def test_no_square_of_the_size_is_held():
    n = 100_000
    A = _band(2, 1, n)
    A = A.T @ A + pl.Identity(n)
    b = np.ones(n)
    with pl.config(memory_limit=100 << 20):
        x = pl.solve(A, b)
        assert np.isfinite(pl.logdet(A))
    assert np.max(np.abs(A @ x - b)) < 1e-12


def test_writes_are_seen_and_bits_repeat():
    ab = np.random.default_rng(1).standard_normal((3, N))
    ab[1] += 5
    A = pl.Banded((1, 1), ab) + T
    b = np.ones(N)
    first = pl.solve(A, b)
    assert np.array_equal(first, pl.solve(A, b))
    ab[1] += 1
    np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(A.toarray(), b), rtol=1e-12)


@pytest.mark.parametrize("wide", [False, True])
def test_singular_ones_are_errors(wide):
    D = pl.FiniteDifference(N, 1, "backward", "zero")
    A = D.T @ D - D.T @ D if wide else 0.0 * T + 0.0 * _band(1, 1)
    with pytest.raises(np.linalg.LinAlgError):
        pl.solve(A, np.ones(N))


def test_no_warning_where_cholesky_was_only_tried(recwarn):
    pl.solve(OWN["indefinite"](), np.ones(N))
    pl.logdet(OWN["indefinite"]())
    assert not list(recwarn)


def test_what_is_wide_stays_dense():
    A = _band(12, 12) + T
    assert "band_from_products" not in [
        step["name"] for step in A.explain("solve", np.ones(N)).steps
    ]
