"""Woodbury's formula on other libraries' arrays, where the matrix that is updated is nearly
singular and the sum is not: C solves the dense form there; elsewhere the result is NaN, and not a
number that is wrong."""

import numpy as np
import pytest

import pylinop as pl
import pylinop.array_api as pa

xp = pytest.importorskip("array_api_strict")


def drawn(rng, dtype, deepest):
    """(d, U, V): some of d as small as 10^-deepest, no more of them than U has columns and one."""
    n, k = int(rng.integers(3, 40)), int(rng.integers(1, 4))
    d = rng.uniform(0.5, 2, n)
    for _ in range(int(rng.integers(k + 2))):
        d[rng.integers(n)] *= 10.0 ** -rng.uniform(0, deepest)
    U = rng.standard_normal((n, k))
    V = U if rng.integers(2) else rng.standard_normal((n, k))
    return d.astype(dtype), U.astype(dtype), V.astype(dtype)


def asked(d, U, V, b):
    """Solution, determinant, and diagonal of the inverse; NaN where an error says it."""
    D, U, V, b = pa.Diag(xp.asarray(d)), xp.asarray(U), xp.asarray(V), xp.asarray(b)
    A = D + pa.LowRank(U, V)

    def of(f):
        try:
            return np.asarray(f())
        except np.linalg.LinAlgError:
            return np.full(1, np.nan)

    def determinant():
        sign, log = pa.slogdet(A)
        return np.asarray(sign) * np.exp(np.asarray(log))

    return of(lambda: pa.solve(A, b)), of(determinant), of(lambda: pa.diagonal(pa.inv(A)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_nothing_is_wrong_where_the_base_is_nearly_singular(dtype):
    rng, nans, eps = np.random.default_rng(11), 0, float(np.finfo(dtype).eps)
    for _ in range(60):
        d, U, V = drawn(rng, dtype, 20)
        dense = np.diag(d).astype("complex128") + U.astype("complex128") @ V.astype("complex128").T
        b, cond = np.ones((len(d), 1), dtype), np.linalg.cond(dense)
        if cond * eps * len(d) > 1e-2:
            continue
        inverse = np.linalg.inv(dense)
        due = inverse @ b, np.linalg.det(dense), np.diag(inverse)
        for got, x in zip(asked(d, U, V, b), due, strict=True):
            nans += bool(np.isnan(got).any())
            if not np.isnan(got).any():
                # LU has some n cond(A) roundings; a diagonal those of the whole inverse
                size = np.linalg.norm(x) + (np.linalg.norm(inverse) if x is due[2] else 0)
                assert np.linalg.norm(got - x) <= 100 * len(d) * eps * cond * size
    assert nans > 20  # so that there was something to find


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_what_c_would_accept_is_there(dtype):
    rng = np.random.default_rng(12)
    for _ in range(40):
        d, U, V = drawn(rng, dtype, 0)
        dense = np.diag(d).astype("complex128") + U.astype("complex128") @ V.astype("complex128").T
        if np.linalg.cond(dense) < 1e3:
            assert all(np.isfinite(x).all() for x in asked(d, U, V, np.ones((len(d), 2), dtype)))


def test_the_check_can_be_left_out():
    d, U = np.array([1e-20, 1.0, 2.0]), np.array([[1.0], [3.0], [-1.0]])
    b = np.ones((3, 1))
    due = np.linalg.solve(np.diag(d) + U @ U.T, b)
    with pl.config(check="none"):
        found = asked(d, U, U, b)[0]
    assert np.isfinite(found).all() and np.abs(found - due).max() > 1e-3
    assert np.isnan(asked(d, U, U, b)[0]).all()


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_the_check_holds_where_squares_leave_the_range(scale):
    """In single precision squares of the right side are 0 or inf: the test passed, or failed,
    whatever the solution."""
    U, b = np.array([[1.0], [3.0], [-1.0]], "f4"), np.full((3, 1), scale, "f4")
    assert np.isnan(asked(np.array([1e-20, 1.0, 2.0], "f4"), U, U, b)[0]).all()
    d = np.array([1.0, 1.5, 2.0], "f4")
    due = np.linalg.solve(np.diag(d.astype(float)) + U.astype(float) @ U.T, b.astype(float))
    found = asked(d, U, U, b)[0]
    assert np.abs(found - due).max() < 1e-5 * np.abs(due).max()


def test_a_batch_is_nan_where_an_element_fails():
    d = np.array([[1.0, 2.0, 3.0], [1e-20, 2.0, 3.0]])
    U, b = np.array([[1.0], [3.0], [-1.0]]), np.ones((3, 1))
    A = pa.Diag(xp.asarray(d)) + pa.LowRank(xp.asarray(U))
    found = np.asarray(pa.solve(A, xp.asarray(b)))
    np.testing.assert_allclose(found[0], np.linalg.solve(np.diag(d[0]) + U @ U.T, b), rtol=1e-12)
    due = np.linalg.solve(np.diag(d[1]) + U @ U.T, b)
    assert np.isnan(found[1]).all() or np.abs(found[1] - due).max() < 1e-12
