"""Solves with and determinants of a Laplacian, multiplied and shifted, by transforms of its grid's
axes, against dense NumPy."""

import warnings

import numpy as np
import pytest

import pylinop as pl

SHAPES = [(16, 16), (13, 17), (14, 1, 15), (5, 6, 7), (3, 40), (1, 90), (200,), (2, 3, 2, 3, 4)]
BOUNDARIES = ["dirichlet", "neumann", "periodic"]


def names(A, b):
    return [s["name"] for s in A.explain("solve", b).steps]


def eta(a, x, b):
    size = np.linalg.norm(a, np.inf) * abs(x).max() + abs(b).max()
    return abs(b - a @ x).max() / size


def drawn(rng, shape, dtype):
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shifted_laplacians_agree_with_dense(shape, boundary, rng):
    L = pl.Laplacian(shape, boundary)
    n = L.shape[0]
    identity = pl.Identity(n)
    for A in (L - 0.7 * identity, 0.3 * identity + 2 * (L - identity), -(L - 3 * identity) * 0.5):
        a = A.toarray()
        for b in (drawn(rng, n, "d"), drawn(rng, (n, 3), "D"), drawn(rng, n, "f")):
            x = pl.solve(A, b)
            assert x.dtype == np.result_type(b, a) or b.dtype == np.float32
            assert eta(a, x, b) < (1e-5 if b.dtype == np.float32 else 1e-14)
        sign, log = np.linalg.slogdet(a)
        told = pl.slogdet(A)
        assert told[0] == sign and told[1] == pytest.approx(log, rel=1e-12, abs=1e-10)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_zeros_beyond_the_ends(shape, rng):
    L = pl.Laplacian(shape, "dirichlet")
    a, b = L.toarray(), rng.standard_normal((L.shape[0], 2))
    for A, factor in ((L, 1), (-L, -1), (L.T * 3, 3), (2.5 * L.H, 2.5)):
        assert eta(factor * a, pl.solve(A, b), b) < 1e-14
    np.testing.assert_allclose(pl.inv(L) @ b, np.linalg.solve(a, b), rtol=1e-9)
    np.testing.assert_allclose(pl.solve(L.T, b), pl.solve(L, b), rtol=0, atol=0)


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_complex_shifts(boundary, rng):
    """Helmholtz's equation with damping."""
    L = pl.Laplacian((14, 15), boundary)
    A = L + (1.3 + 0.4j) * pl.Identity(210)
    a = A.toarray()
    for b in (drawn(rng, 210, "d"), drawn(rng, (210, 2), "D")):
        assert "grid-solve" in names(A, b)
        assert eta(a, pl.solve(A, b), b) < 1e-14
        assert eta(a.conj(), pl.solve(A.conj(), b), b) < 1e-14
        assert eta(a.conj().T, pl.solve(A.H, b), b) < 1e-14
    sign, log = np.linalg.slogdet(a)
    told = pl.slogdet(A)
    assert told[0] == pytest.approx(sign, rel=1e-10) and told[1] == pytest.approx(log, rel=1e-12)


@pytest.mark.parametrize("boundary", BOUNDARIES[1:])
def test_singular_ones_raise(boundary):
    L = pl.Laplacian((20, 20), boundary)
    for A in (L, 2 * L, L - pl.Identity(400) + pl.Identity(400)):
        with pytest.raises(np.linalg.LinAlgError):
            pl.solve(A, np.ones(400))
    assert pl.det(L) == 0


def test_a_shift_onto_an_eigenvalue_is_told():
    L = pl.Laplacian((16, 16), "periodic")
    A = L + 4 * pl.Identity(256)  # -4 is an eigenvalue, of several pairs
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            pl.solve(A, np.arange(256.0))
        except np.linalg.LinAlgError:
            return  # it came out as an exact zero
    assert [w.category for w in caught] == [pl.IllConditionedWarning]


def test_it_goes_by_transforms_where_they_are_the_cheaper_way():
    for boundary in BOUNDARIES:
        large = pl.Laplacian((300, 300), boundary) - 0.5 * pl.Identity(90000)
        told = large.explain("solve", np.ones(90000))
        assert [s["name"] for s in told.steps][-1] == "grid-solve"
        assert told.flops < 90000 * 1000 and told.memory
    line = pl.Laplacian(5000, "dirichlet")
    assert "grid-solve" not in names(line, np.ones(5000))  # a band of three diagonals
    ring = pl.Laplacian(5000, "periodic") - pl.Identity(5000)
    assert "grid-solve" in names(ring, np.ones(5000))
    narrow = pl.Laplacian((4000, 5), "dirichlet")
    assert "grid-solve" not in names(narrow, np.ones(20000))
    assert "grid-solve" not in names(pl.Laplacian((6, 6), "dirichlet"), np.ones(36))


def test_what_is_no_shift_of_one_grid_goes_other_ways(rng):
    n = 400
    L, M = pl.Laplacian((20, 20), "dirichlet"), pl.Laplacian((10, 40), "dirichlet")
    d = pl.Diag(1 + rng.random(n))
    for A in (L - d, L + M, L + pl.Laplacian((20, 20), "periodic") - pl.Identity(n)):
        b = rng.standard_normal(n)
        assert "grid-solve" not in names(A, b)
        assert eta(A.toarray(), pl.solve(A, b), b) < 1e-14
    twice = L + 0.5 * pl.Laplacian((20, 20), "dirichlet")
    assert "grid-solve" in names(twice, np.ones(n))
    assert eta(twice.toarray(), pl.solve(twice, np.ones(n)), np.ones(n)) < 1e-14


def test_empty_grids():
    A = pl.Laplacian((0, 3), "periodic") - pl.Identity(0)
    assert pl.solve(A, np.ones(0)).shape == (0,)
