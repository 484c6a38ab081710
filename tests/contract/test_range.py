"""Numbers far from one: coefficients, determinants and substitution over- and underflow only where
the formula as written does."""

import math

import numpy as np
import pytest

import pylinop as pl

LEAVES = {
    "identity": lambda n: pl.Identity(n),
    "diag": lambda n: pl.Diag(np.ones(n)),
    "dense": lambda n: pl.Dense(np.eye(n)),
    "permutation": lambda n: pl.Permutation(np.arange(n)),
    "triangular": lambda n: pl.Triangular(np.eye(n)),
    "kron": lambda n: pl.Kron(np.eye(n), np.eye(1)),
}


@pytest.mark.parametrize("head", LEAVES)
@pytest.mark.parametrize("n", [2, 20])
def test_coefficients_whose_product_is_out_of_range(head, n):
    op = LEAVES[head](n)
    np.testing.assert_allclose(
        (1e-200 * (1e-200 * op)) @ np.full(n, 1e300), np.full(n, 1e-100), rtol=1e-14
    )
    np.testing.assert_allclose(
        (1e200 * (1e200 * op)) @ np.full(n, 1e-300), np.full(n, 1e100), rtol=1e-14
    )
    for c in (1e200, 1e-200):
        sign, log = pl.slogdet(c * (c * op))
        assert sign == 1
        assert log == pytest.approx(2 * n * math.log(c), rel=1e-14)
        assert pl.logdet(c * (c * op)) == pytest.approx(2 * n * math.log(c), rel=1e-14)


@pytest.mark.parametrize("head", LEAVES)
@pytest.mark.parametrize("c", [1e-310, 1e-200, 1e200, 1e308])
@pytest.mark.parametrize("n", [2, 20])
def test_solves_with_multiples_far_from_one(head, c, n):
    np.testing.assert_allclose(pl.solve(c * LEAVES[head](n), np.full(n, c)), np.ones(n), rtol=1e-13)
    if c < 1e-300:  # a complex division has no digits there
        return
    got = pl.solve(c * 1j * LEAVES[head](n), np.full(n, c))
    np.testing.assert_allclose(got, np.full(n, -1j), rtol=1e-13)


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("view", ["N", "T", "C", "H"])
@pytest.mark.parametrize("n, k", [(1, 1), (3, 2), (40, 5)])
def test_triangles_with_pivots_below_the_normal_numbers(dtype, lower, view, n, k):
    """The reciprocals of such pivots are inf."""
    rng = np.random.default_rng(n)
    a = np.tril(rng.integers(-3, 4, (n, n))) + np.diag(rng.integers(4, 9, n))
    a = (a if lower else a.T).astype(dtype)
    if dtype in "FD":
        a = a * np.dtype(dtype).type(1j)
    small = np.finfo(dtype).smallest_subnormal * 4
    op = pl.Triangular(a * small, lower)
    seen = {"N": op, "T": op.T, "C": op.conj(), "H": op.H}[view]
    x = rng.integers(-4, 5, (n, k)).astype(dtype)
    right = {"N": a, "T": a.T, "C": a.conj(), "H": a.conj().T}[view] @ x
    got = pl.solve(seen, (right * small).astype(dtype))
    rtol = 1e3 * n * np.finfo(dtype).eps
    np.testing.assert_allclose(got, x, rtol=rtol, atol=rtol * 10 ** (n / 10))


@pytest.mark.no_verify("the steps as written leave the range, where these do not")
@pytest.mark.parametrize("head", [h for h in LEAVES if h != "diag"])  # that is a Diag again
@pytest.mark.parametrize("first, second", [(1e200, 1e-200), (1e-200, 1e200), (1e305, -1e-307)])
def test_krons_of_multiples_far_from_one(head, first, second):
    """The numbers of all factors meet before they meet the array."""
    one, other = LEAVES[head](2), LEAVES[head](20)
    A = pl.Kron(first * one, second * other)
    both = first * second
    for c in (1e150, 1e-150, 1e300, 1e-300):
        x = np.full((40, 3), c)
        np.testing.assert_allclose(A @ x, both * x, rtol=1e-14)
        np.testing.assert_allclose(A.T @ x[:, 0], both * x[:, 0], rtol=1e-14)
        np.testing.assert_allclose(pl.solve(A, x), x / both, rtol=1e-13)
    B = pl.Kron(1e200 * one, 1e200 * other)
    np.testing.assert_allclose(B @ np.full(40, 1e-300), np.full(40, 1e100), rtol=1e-14)
    assert (B @ np.full(40, 1.0) == np.inf).all()
