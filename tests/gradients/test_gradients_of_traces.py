"""Gradients of traces and Frobenius norms: what they say of a factor of a Kron or of a KronSum
goes by forms as small as the factors."""

import numpy as np
import pytest

import pylinop as pl


def square(rng, n, dtype):
    a = rng.standard_normal((n, n))
    return a + 1j * rng.standard_normal((n, n)) if np.dtype(dtype).kind == "c" else a


def slope(f, args, away, step=1e-6):
    up, down = (f(*(x + k * step * h for x, h in zip(args, away, strict=True))) for k in (1, -1))
    return (up - down) / (2 * step)


def real(value):
    return np.real(value * (0.6 - 0.8j))


def eye(x):
    return pl.Identity(np.prod([a.shape[0] for a in x]))


CASES = {
    "kron": lambda *x: real(pl.trace(pl.Kron(*x))),
    "kron and a multiple": lambda *x: real(pl.trace(2 * pl.Kron(*x) + 0.5 * eye(x))) ** 2,
    "adjoint": lambda *x: real(pl.trace(pl.Kron(*x).H)),
    "two": lambda a, b, c: real(pl.trace(pl.Kron(a, b, c) - pl.Kron(a @ a, b, c))),
    "sum": lambda *x: real(pl.trace(pl.KronSum(*x))),
    "norm of a sum": lambda *x: pl.matrix_norm(pl.KronSum(*x), "fro"),
    "norm of its adjoint": lambda *x: pl.matrix_norm(3 * pl.KronSum(*x).H, "fro"),
}


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("case", CASES)
def test_factors(case, dtype):
    rng = np.random.default_rng(len(case))
    args = [square(rng, n, dtype) for n in (4, 3, 2)]
    away = [square(rng, n, dtype) for n in (4, 3, 2)]
    f = CASES[case]
    found = pl.grad(f, (0, 1, 2))(*args)
    got = sum(np.sum(np.real(np.conj(g) * h)) for g, h in zip(found, away, strict=True))
    value = lambda *x: float(np.asarray(f(*map(pl.lazy, x))))  # noqa: E731
    np.testing.assert_allclose(got, slope(value, args, away), rtol=1e-6, atol=1e-6)
    assert all(g.shape == x.shape and g.dtype == x.dtype for g, x in zip(found, args, strict=True))


def test_factors_that_are_not_square():
    """The trace of their product is no number times another trace."""
    rng = np.random.default_rng(5)
    args = [rng.standard_normal(s) for s in ((2, 3), (3, 2))]
    got = pl.grad(lambda a, b: pl.trace(pl.Kron(a, b)), (0, 1))(*args)
    eye = np.eye(6).reshape(2, 3, 3, 2)  # rows of a, of b, columns of a, of b
    np.testing.assert_allclose(got[0], np.einsum("ikjl,kl->ij", eye, args[1]), atol=1e-14)
    np.testing.assert_allclose(got[1], np.einsum("ikjl,ij->kl", eye, args[0]), atol=1e-14)


@pytest.mark.no_verify  # whose own dense forms would be counted
@pytest.mark.parametrize("case", CASES)
def test_nothing_of_the_size_of_the_matrix(case):
    rng = np.random.default_rng(3)
    args = [rng.standard_normal((k, k)) for k in (30, 20, 4)]
    with pl.config(memory_limit=2400 * 2400 * 4):  # half of a dense form
        pl.grad(CASES[case], (0, 1, 2))(*args)
