"""Sums of Krons with their matrices at the same places: one dense matrix a place, where that is
cheaper, and the same numbers as written; structural zeros stay structural."""

import numpy as np
import pytest

import pylinop as pl


@pytest.fixture(autouse=True)
def checked():
    with pl.config(check_plans=True, verify=True):
        yield


def fired():
    return next(row["fired"] for row in pl.rules() if row["name"] == "apply-kron-places")


def steps(H):
    return str(H.explain()).count("gemm ")


def chain(rng, N, dtype, kinds):
    """The sum of terms of all of ``kinds`` at each place of N, as an operator and as an array."""
    H, dense = None, np.zeros((2**N, 2**N), dtype)

    def rand(n):
        a = rng.standard_normal((n, n))
        return (a + 1j * rng.standard_normal((n, n)) if dtype is complex else a).astype(dtype)

    for i in range(N):
        for kind in kinds:
            f = {
                "x": lambda: [rand(2)],
                "xx": lambda: [rand(2), rand(2)],
                "pair": lambda: [rand(4)],
                "dx": lambda: [pl.Diag(rand(2)[0]), rand(2)],
                "xix": lambda: [rand(2), pl.Identity(2), rand(2)],
            }[kind]()
            used = round(np.log2(np.prod([a.shape[0] for a in f])))
            if i + used > N:
                continue
            c = dtype(rng.standard_normal())
            f = [pl.Identity(2**i), *f, pl.Identity(2 ** (N - i - used))]
            term = c * pl.Kron(*f)
            whole = np.ones((1, 1))
            for a in f:
                whole = np.kron(whole, a if isinstance(a, np.ndarray) else a.todense())
            H = term if H is None else H + term
            dense = dense + c * whole
    return H, dense


@pytest.mark.parametrize("dtype", [float, complex, np.float32])
@pytest.mark.parametrize("N", [1, 2, 3, 4, 6, 8])
@pytest.mark.parametrize(
    "kinds", [("pair", "pair"), ("xx", "x"), ("x", "dx", "pair"), ("xix", "x", "xx")]
)
def test_products_are_those_of_the_sum_as_written(rng, N, dtype, kinds):
    H, dense = chain(rng, N, dtype, kinds)
    if H is None:
        return
    tolerance = 1e-13 if dtype is not np.float32 else 1e-5
    for k in (None, 1, 3):
        x = rng.standard_normal(2**N if k is None else (2**N, k))
        if dtype is np.float32:
            x = x.astype(np.float32)
        scale = np.abs(dense) @ np.abs(x)
        for op, array, bound in (
            (H, dense, scale),
            (H.T, dense.T, np.abs(dense.T) @ np.abs(x)),
            (H.H, dense.conj().T, np.abs(dense.T) @ np.abs(x)),
        ):
            got = op @ x
            assert got.dtype == np.result_type(dtype, x.dtype)
            assert np.all(np.abs(got - array @ x) <= tolerance * (bound + 1e-30) * 30)


def test_one_product_a_place(rng):
    H, dense = chain(rng, 8, float, ("pair", "pair"))
    x = rng.standard_normal(256)
    np.testing.assert_allclose(H @ x, dense @ x, rtol=1e-11, atol=1e-11)
    assert steps(H) == 7  # of 14 terms
    assert "apply-kron-places" in str(H.explain())


def test_terms_of_several_factors_stay(rng):
    """Their entries multiplied by each other would be out of range where products with x are not,
    and structural zeros would meet inf."""
    eye, x = pl.Identity(8), rng.standard_normal(32)
    H, _ = chain(rng, 8, float, ("xx", "xx"))
    before = fired()
    assert steps(H) == 28
    H @ np.ones(256)
    assert fired() == before
    for size in (1e-200, 1e200):
        a, b, c, d = size * rng.standard_normal((4, 2, 2))
        op = pl.Kron(eye, pl.Dense(a), pl.Dense(b)) + pl.Kron(eye, pl.Dense(c), pl.Dense(d))
        here = x / size
        want = np.kron(np.eye(8), np.kron(a / size, b / size) + np.kron(c / size, d / size)) @ x
        np.testing.assert_allclose((op @ here) / size, want, rtol=1e-12)
    wild = np.array([[np.inf, 1.0], [1.0, 2.0]])
    a, b = rng.standard_normal((2, 2, 2))
    op = pl.Kron(eye, pl.Dense(a), pl.Dense(b)) + pl.Kron(eye, pl.Dense(wild), pl.Identity(2))
    assert not np.isnan(op @ np.ones(32)).any()


def test_without_gain_all_stays(rng):
    """Terms at different places; a small whole; a window that is wide; few entries in x."""
    for N, kinds in ((8, ("x",)), (2, ("xx", "x")), (8, ("dx",))):
        before = fired()
        H, dense = chain(rng, N, float, kinds)
        np.testing.assert_allclose(H @ np.ones(2**N), dense.sum(axis=1), rtol=1e-11, atol=1e-11)
        assert fired() == before, (N, kinds)
    a, b = rng.standard_normal((2, 20, 20))
    before = fired()
    H = pl.Kron(pl.Identity(40), a) + pl.Kron(pl.Identity(40), b)
    np.testing.assert_allclose(
        H @ np.ones(800), np.tile((a + b).sum(axis=1), 40), rtol=1e-11, atol=1e-11
    )
    assert fired() == before


def test_numbers_may_change(rng):
    """A plan is used again for other multiples; far numbers stay where they are."""
    a, b = rng.standard_normal((2, 4, 4))
    eye = pl.Identity(64)
    x = rng.standard_normal(256)
    for c, d in ((2.0, 3.0), (-1.5, 0.25), (1e30, 1e-30), (0.0, 1.0), (2.0, -2.0)):
        H = c * pl.Kron(eye, a) + d * pl.Kron(eye, b)
        dense = np.kron(np.eye(64), c * a + d * b)
        bound = np.kron(np.eye(64), np.abs(c * a) + np.abs(d * b)) @ np.abs(x)
        assert np.all(np.abs(H @ x - dense @ x) <= 1e-14 * bound * 10)


def test_zeros_of_the_structure_stay(rng):
    """A diagonal beside what is dense in one factor alone: inf meets no zero of theirs."""
    x = rng.standard_normal(256)
    x[17] = np.inf
    z = np.array([1.0, -1.0])
    H = None
    for i in range(7):
        for f in ([pl.Diag(z), pl.Diag(z)], [pl.Diag(z), pl.Identity(2)]):
            term = pl.Kron(pl.Identity(2**i), *f, pl.Identity(2 ** (6 - i)))
            H = term if H is None else H + term
    assert np.isfinite(np.delete(H @ x, 17)).all()


def test_many_terms_and_deep_nests(rng):
    """Beyond what is read in one sum, and sums nested to the right."""
    eye, x = pl.Identity(16), rng.standard_normal(64)
    arrays = rng.standard_normal((300, 4, 4))
    left = right = None
    for a in arrays:
        term = pl.Kron(eye, a)
        left = term if left is None else left + term
        right = term if right is None else term + right
    want = np.kron(np.eye(16), arrays.sum(axis=0)) @ x
    np.testing.assert_allclose(left @ x, want, rtol=1e-11, atol=1e-10)
    np.testing.assert_allclose(right @ x, want, rtol=1e-11, atol=1e-10)
