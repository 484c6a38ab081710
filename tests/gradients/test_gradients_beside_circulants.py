"""What stands beside circulant matrices in products counts by its sums along diagonals alone."""

import numpy as np
import pytest
from scipy.linalg import circulant, toeplitz

import pylinop as pl


def drawn(rng, n, dtype):
    def vector():
        a = rng.standard_normal(n) / (1 + np.arange(n)) ** 2
        if np.dtype(dtype).kind == "c":
            a = a + 0.5j * rng.standard_normal(n) / (1 + np.arange(n)) ** 2
        a[0] = 4
        return a.astype(dtype)

    return vector(), vector(), vector()


def real(x):
    return np.real(x * (0.6 - 0.8j)) if x.dtype.kind == "c" else x


# of the circulant C and the Toeplitz T
LOSSES = {
    "inverse": lambda C, T: real(pl.trace(pl.inv(C) @ T)),
    "product": lambda C, T: real(pl.trace(C.T @ T)),
    "other side": lambda C, T: real(pl.trace(2 * T.H @ C)),
    "both sides": lambda C, T: real(pl.trace(pl.inv(C) @ T @ C.H)),
    "inverse of both": lambda C, T: real(pl.trace(pl.inv(T) @ C)),
    "squared": lambda C, T: real(pl.trace(pl.inv(C) @ T)) ** 2 + real(pl.trace(C @ T)),
}


def dense(c, r):
    """The matrix of first column c and first row r, by its entries."""
    n = c.shape[0]
    i, j = np.indices((n, n))
    return np.where(i >= j, c[(i - j) % n], r[(j - i) % n])


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n", [1, 2, 5, 16, 65])
def test_beside_the_dense_form(rng, n, loss, dtype):
    args, f = drawn(rng, n, dtype), LOSSES[loss]
    along, every = drawn(rng, n, dtype), (0, 1, 2)
    ours = lambda c, t, r: f(pl.Circulant(c), pl.Toeplitz(t, r))
    other = lambda c, t, r: f(dense(c, c[-np.arange(n) % n]), dense(t, r))
    got, due = pl.value_and_grad(ours, every)(*args), pl.value_and_grad(other, every)(*args)
    np.testing.assert_allclose(got[0], due[0], rtol=1e-12)
    for a, b in zip(got[1], due[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-11 * n)
    for a, b in zip(*(pl.hvp(g, every)(*args, along) for g in (ours, other)), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-10 * n)


def test_in_single_precision_beside_double(rng):
    c, t, r = drawn(rng, 40, np.float64)
    C, T = circulant(c.astype(np.float32)).astype(float), toeplitz(t, r)
    got = pl.trace(pl.inv(pl.Circulant(c.astype(np.float32))) @ pl.Toeplitz(t, r))
    np.testing.assert_allclose(got, np.trace(np.linalg.inv(C) @ T), rtol=1e-13)
    one = pl.trace(pl.inv(pl.Circulant(c)) @ pl.Toeplitz(t.astype(np.float32)))
    due = np.trace(np.linalg.inv(circulant(c)) @ toeplitz(t.astype(np.float32)).astype(float))
    np.testing.assert_allclose(one, due, rtol=1e-13)


def test_what_is_not_of_one_level_goes_another_way(rng):
    c = rng.standard_normal((4, 6))
    c[0, 0] = 9
    L, t = pl.Circulant(c, levels=2), rng.standard_normal(24)
    T = pl.Toeplitz(t)
    due = np.trace(np.linalg.inv(L.toarray()) @ T.toarray())
    np.testing.assert_allclose((pl.inv(L) @ T).trace(), due, rtol=1e-12)
    B = pl.Circulant(rng.standard_normal((3, 24)))
    due = np.trace(B.toarray() @ T.toarray(), axis1=-2, axis2=-1)
    np.testing.assert_allclose((B @ T).trace(), due, rtol=1e-12)
    R = pl.Toeplitz(t, t[:5])
    S = pl.Toeplitz(t[:5], t)
    np.testing.assert_allclose((R @ S).trace(), np.trace(R.toarray() @ S.toarray()), rtol=1e-12)


def test_a_singular_one_raises():
    c = np.zeros(8)
    c[0], c[1] = 1.0, -1.0
    with pytest.raises(np.linalg.LinAlgError):
        pl.trace(pl.inv(pl.Circulant(c)) @ pl.Toeplitz(np.arange(1.0, 9)))


@pytest.mark.no_verify  # whose own dense forms would be counted
@pytest.mark.parametrize("loss", [x for x in LOSSES if x != "inverse of both"])
def test_nothing_of_the_size_of_the_matrix(rng, loss):
    n = 400
    args = drawn(rng, n, np.float64)
    f = lambda c, t, r: LOSSES[loss](pl.Circulant(c), pl.Toeplitz(t, r))
    with pl.config(memory_limit=n * n * 8 // 2):  # half of a dense form
        pl.grad(f, (0, 1, 2))(*args)
