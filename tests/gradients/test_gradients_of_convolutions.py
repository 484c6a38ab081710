"""Gradients of determinants and solves of convolutions, and of their normal equations, by the
kernel: in the structure of the matrix, beside dense forms and differences."""

import numpy as np
import pytest
from gradients.differences import check, check_second

import pylinop as pl


def kernel(k, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    h = 0.3 * rng.standard_normal(k) / k
    if np.dtype(dtype).kind == "c":
        h = h + 0.3j * rng.standard_normal(k) / k
    h[(k - 1) // 2] += 2
    return h.astype(dtype)


def drawn(n, dtype="float64", seed=1):
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(n)
    return (y + 1j * rng.standard_normal(n) if np.dtype(dtype).kind == "c" else y).astype(dtype)


def steps(f, *args):
    held = [pl.lazy(a) for a in args]
    return "".join(g.explain() for g in pl.gradients(f(*held), held))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("mode", ["same", "circular"])
@pytest.mark.parametrize(("n", "k"), [(5, 3), (33, 4), (60, 5), (60, 1), (80, 20), (40, 39)])
def test_of_a_convolution(n, k, mode, dtype):
    y = drawn(n, dtype)
    h = kernel(k, dtype) if mode == "same" else np.roll(kernel(k, dtype), -((k - 1) // 2))

    def f(h):
        C = pl.Convolution(h, n, mode=mode)
        return np.real(pl.slogdet(C)[1] + np.conj(y) @ pl.solve(C, y))

    with pl.config(check_plans=True, verify=True):
        check(f, h)
        check_second(f, h)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("mode", ["same", "full", "valid"])
@pytest.mark.parametrize(("n", "k"), [(9, 3), (60, 4), (70, 5), (90, 1)])
def test_of_normal_equations(n, k, mode, dtype):
    w = 1 + np.random.default_rng(3).random(n)

    def f(h, s):
        C = pl.Convolution(h, n, mode=mode)
        K = C.H @ C + s * pl.Identity(n) + pl.Diag(w)
        y = drawn(n, dtype)
        return np.real(pl.slogdet(K)[1] + np.conj(y) @ pl.solve(K, y))

    with pl.config(check_plans=True, verify=True):
        check(f, kernel(k, dtype), np.array(0.7))


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_in_single_precision(dtype):
    n = 100
    h = kernel(5, dtype)

    def f(h):
        C = pl.Convolution(h, n, mode="full")
        return np.real(pl.slogdet(C.H @ C + pl.Identity(n))[1])

    got = pl.grad(f)(h)
    wanted = pl.grad(f)(h.astype("complex128" if h.dtype.kind == "c" else "float64"))
    assert got.dtype == h.dtype
    assert np.linalg.norm(got - wanted) <= 1e-4 * np.linalg.norm(wanted)


@pytest.mark.no_verify  # whose own plans would be counted
@pytest.mark.parametrize("mode", ["same", "full", "circular"])
def test_no_dense_form(mode):
    n = 1500
    y = drawn(n)

    def f(h):
        C = pl.Convolution(h, n, mode=mode)
        K = C if mode == "circular" else C.T @ C + pl.Identity(n)
        return pl.logdet(K) + y @ pl.solve(K, y)

    assert "(1500, 1500)" not in steps(f, kernel(7))


@pytest.mark.parametrize("small", [1e-3, 1e-9])
def test_where_elimination_grows(small):
    """Without exchanges of rows the band's factor is none: the dense one takes over."""
    n = 70
    h = np.array([1.0, small, -0.6])

    def f(h):
        return pl.slogdet(pl.Convolution(h, n, mode="same"))[1]

    C = pl.Convolution(h, n, mode="same").toarray()
    inverse = np.linalg.inv(C)
    wanted = np.array([np.trace(inverse, k) for k in (-1, 0, 1)])
    np.testing.assert_allclose(pl.grad(f)(h), wanted, rtol=1e-9, atol=1e-9 * abs(wanted).max())
