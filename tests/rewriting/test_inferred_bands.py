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


def _blocks(k, dtype=np.float64, c=4):
    """Kron(I, h) with h of k x c and a Kron over a tridiagonal."""
    h = _rng().standard_normal((k, c)).astype(dtype)
    if np.issubdtype(dtype, np.complexfloating):
        h = h + 1j * h[::-1]
    g = N // c
    T = pl.Tridiagonal(-np.ones(g - 1), np.full(g, 3.0), np.ones(g - 1))
    return pl.Kron(pl.Identity(g), h), pl.Kron(T, h)


def _between(k, middle, dtype=np.float64, c=4):
    H, _ = _blocks(k, dtype, c)
    return 9 * T + H.H @ middle(H.shape[0]) @ H


GRIDS = {  # the widths to either side, by the blocks of what is multiplied
    "an identity between": (3, lambda: _between(2, lambda n: 2.0 * pl.Identity(n))),
    "a diagonal between": (3, lambda: _between(2, lambda n: pl.Diag(np.arange(1.0, n + 1)))),
    "a multiple inside": (3, lambda: 9 * T + (2 * _blocks(2)[0]).T @ (3 * _blocks(2)[0])),
    "complex": (3, lambda: _between(1, lambda n: (1 + 1j) * pl.Identity(n), np.complex128)),
    "single": (3, lambda: pl.Identity(N) + _between(2, lambda n: pl.Identity(n), np.float32)),
    "neighbours too": (3, lambda: 99 * T + _blocks(1, c=2)[0].T @ _blocks(1, c=2)[1]),
    "a band between": (
        3,
        lambda: _between(
            1, lambda n: pl.Tridiagonal(np.ones(n - 1), 4 * np.ones(n), -np.ones(n - 1)), c=2
        ),
    ),
    "an inverse between": (3, lambda: _between(2, lambda n: pl.inv(2.0 * pl.Identity(n)))),
    "of BlockDiag": (
        3,
        lambda: (
            9 * T
            + pl.BlockDiag(*[np.ones((2, 4))] * (N // 4)).T
            @ pl.Diag(np.arange(1.0, N // 2 + 1))
            @ pl.BlockDiag(*[np.ones((2, 4))] * (N // 4))
        ),
    ),
    "low rank": (3, lambda: 9 * T + pl.LowRank(_blocks(1)[0].T)),
    "an update": (3, lambda: pl.LowRankUpdate(9 * T, _blocks(2)[0].T, C=pl.Identity(N // 2))),
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


@pytest.mark.parametrize("name", GRIDS)
def test_bands_of_products_of_blocks(name):
    width, make = GRIDS[name]
    A = make()
    told = _agrees(A)
    assert "band_from_products" in [step["name"] for step in told.steps]
    below, right = np.nonzero(A.toarray())
    assert abs(below - right).max() == width
    assert f"band_from_products:{width},{width}" in str(told).replace("\n          ", "")
    np.testing.assert_allclose(
        pl.diagonal(pl.inv(A)), np.linalg.inv(A.toarray()).diagonal(), rtol=2e-4, atol=1e-6
    )


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 100])
def test_blocks_of_other_counts_are_no_grid(n):
    """Grids that share no division say nothing; those that do are as coarse as both."""
    r = _rng()
    A = pl.Kron(pl.Identity(n), r.standard_normal((6, 4)))
    B = pl.Kron(pl.Identity(2 * n), r.standard_normal((3, 2)))
    C = pl.Identity(4 * n) + 0.1 * (A.T @ B)
    D = C.toarray()
    b = r.standard_normal((4 * n, 2))
    np.testing.assert_allclose(pl.solve(C, b), np.linalg.solve(D, b), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(pl.logdet(C @ C.T), 2 * np.linalg.slogdet(D)[1], rtol=1e-9)
    R = pl.Kron(pl.Identity(3), np.ones((1, 4 * n)))
    E = pl.Identity(12 * n) + 0.1 * (R.T @ pl.Identity(3, dtype=float) @ R)
    b = r.standard_normal(12 * n)
    np.testing.assert_allclose(pl.solve(E, b), np.linalg.solve(E.toarray(), b), rtol=1e-9)


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
