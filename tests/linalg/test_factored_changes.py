"""Changed factors: determinants and diagonals of inverses are as right as anew."""

import numpy as np
import pytest

import pylinop as pl

N = 24
RNG = np.random.default_rng(5)
LEFT, RIGHT = (np.linalg.qr(RNG.standard_normal((N, N)))[0] for _ in range(2))
SYMMETRIC = (LEFT, LEFT)
GENERAL = (LEFT, RIGHT)


def nearly_singular(k, size, vectors, dtype=float):
    """A matrix with k singular values of that size, and U, V whose U V^H takes them away."""
    p, q = vectors
    if np.dtype(dtype).kind == "c":
        turn = np.exp(1j * np.arange(N))[:, None]
        p, q = p * turn, q * turn
    A = (p * np.r_[np.full(k, size), np.ones(N - k)]) @ q.conj().T
    mixed = np.random.default_rng(k).standard_normal((k, k)) + 3 * np.eye(k)
    return A.astype(dtype), (p[:, :k] @ mixed).astype(dtype), q[:, :k].astype(dtype)


def right(F, n_times=100):
    """All three against LAPACK on the matrix itself, within rounding and its condition."""
    D = F.A.toarray()
    inverse = np.linalg.inv(D)
    tolerance = n_times * len(D) * np.finfo(F.dtype).eps * np.linalg.cond(D)
    size = np.abs(inverse).max()
    assert tolerance < 1e-2
    assert F.diagonal().dtype == F.dtype
    assert np.abs(F.diagonal() - np.diagonal(inverse)).max() <= tolerance * size
    assert np.abs(F.trace() - np.trace(inverse)) <= len(D) * tolerance * size
    sign, log = np.linalg.slogdet(D)
    assert abs(F.slogdet().sign - sign) <= tolerance
    assert abs(F.slogdet().logabsdet - log) <= tolerance


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("vectors", [SYMMETRIC, GENERAL], ids=["symmetric", "general"])
@pytest.mark.parametrize("size", [1e-4, 1e-8, 1e-12, 1e-15])
@pytest.mark.parametrize("k", [1, 4])
def test_an_ill_conditioned_base_costs_no_digits(k, size, vectors, dtype):
    A, U, V = nearly_singular(k, size, vectors, dtype)
    F = pl.factorized(A)
    right(F.update(U, V))
    right(F.append(U, np.zeros((k, k)), V.conj().T))
    rest = RNG.standard_normal((N, 1))
    right(F.update(U, V).append(rest, 50.0).update(np.r_[rest, [[1.0]]]))


@pytest.mark.parametrize("size", [1e-3, 1e-6])
def test_in_single_precision(size):
    A, U, V = nearly_singular(2, size, SYMMETRIC, "float32")
    right(pl.factorized(A).update(U, V))
    right(pl.factorized(A).append(U, np.zeros((2, 2), "float32"), V.T))


def test_a_base_of_less_precision_than_the_change():
    """Its determinant and diagonal have its digits, those of the new matrix are in double."""
    P = (RNG.standard_normal((N, N)) / 8 + 2 * np.eye(N)).astype("float32")
    F, u = pl.factorized(P), RNG.standard_normal(N)
    right(F.update(u), 10)
    right(F.append(u, 3.0), 10)


@pytest.mark.parametrize(
    "base",
    [
        pl.Kron([[1.0, 1.0], [1.0, 1 + 1e-9]], np.diag([1.0, 2, 3])),
        pl.Circulant(np.r_[1.0, -1 + 1e-11, np.zeros(10)]),
        pl.Tridiagonal(-np.ones(11), np.r_[1 + 1e-12, np.full(10, 2.0), 1], -np.ones(11)),
        pl.Diag(np.r_[1e-13, np.ones(11)]),
        pl.LowRank(LEFT[:12, :11]) + 1e-9 * pl.Identity(12),
    ],
    ids=lambda base: type(base).__name__,
)
def test_bases_with_structure(base):
    u, _, vh = np.linalg.svd(base.toarray())
    few = max(1, base.shape[0] // 4)
    F = pl.factorized(base)
    right(F.update(u[:, -few:], vh[-few:].T))
    right(F.append(u[:, -few:], np.zeros((few, few)), vh[-few:]))


def test_a_good_base_is_made_use_of():
    """Nothing is factored by itself where the base is as good as the new matrix."""
    P = RNG.standard_normal((N, N)) + 8 * np.eye(N)
    F = pl.factorized(P)
    for G in (F.update(P[:, :2]), F.append(P[:, :2], 40 * np.eye(2))):
        right(G)
        G.solve(np.ones(G.shape[0]))
        assert G._by_itself is None


def asked(F, order):
    """The bits of each answer, asked for in that order."""
    b = np.cos(np.arange(F.shape[0]))
    ask = {
        "solve": lambda: F.solve(b),
        "solve_H": lambda: F.solve_H(b),
        "diagonal": F.diagonal,
        "slogdet": lambda: np.array(F.slogdet()),
        "inv": lambda: F.inv() @ b,
        "nan": lambda: F.solve(b * np.nan),
    }
    found = {name: ask[name]().tobytes() for name in order}
    return [found[name] for name in sorted(found)]


@pytest.mark.parametrize("size", [1.0, 1e-3, 1e-7, 1e-14])
def test_what_was_asked_before_changes_no_bit(size):
    A, U, V = nearly_singular(2, size, GENERAL)
    F = pl.factorized(A)
    names = ["solve", "solve_H", "diagonal", "slogdet", "inv", "nan"]
    for make in (lambda: F.update(U, V), lambda: F.append(U, np.zeros((2, 2)), V.T)):
        first = asked(make(), names)
        assert asked(make(), names[::-1]) == first
        assert asked(make(), names[3:] + names[:3]) == first


def test_overflow_on_the_way_is_no_answer():
    """W = A^-1 U is infinite, the new matrix is the identity."""
    base = pl.Diag(np.r_[1e-310, np.ones(5)])
    e = np.eye(6)[:, 0]
    F = pl.factorized(base).update(e)
    np.testing.assert_array_equal(F.solve(np.arange(6.0)), np.arange(6.0))
    np.testing.assert_array_equal(F.diagonal(), np.ones(6))
    assert F.logdet() == 0


def test_a_small_matrix_that_rounding_makes_singular():
    """S = I + 1e20 [[1, 1], [1, 1]] is singular in floats; the new matrix is not."""
    base = pl.factorized(pl.Diag(np.r_[1e-20, np.ones(5)]))
    twice = np.eye(6)[:, [0, 0]]
    right(base.update(twice))
    right(base.append(twice, [[1.0, 0.5], [0.5, 2.0]]))
    assert base.update(twice).nbytes > base.nbytes
    with pytest.raises(np.linalg.LinAlgError):
        pl.factorized(np.eye(2)).update([1.0, 0.0], [-1.0, 0.0])
