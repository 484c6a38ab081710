"""Second derivatives of functions of Hermitian matrices by their eigenvalues, against divided
differences of a hundred digits, whether eigenvalues are apart, near or the same; of other matrices
against differences; and what they are differentiated to once more."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from gradients.differences import check_second

import pylinop as pl
from pylinop._structured import function_second_derivatives as second
from pylinop._structured.function_second_derivatives import NEAR, second_derivative

POWERS = {"sqrtm": 0.5, "fractional_matrix_power": -0.3}
FUNCTIONS = {
    "expm": pl.expm,
    "logm": pl.logm,
    "sqrtm": pl.sqrtm,
    "fractional_matrix_power": pl.fractional_matrix_power,
}
SPECTRA = {
    "apart": [0.3, 1.0, 2.5, 4.0],
    "near": [1.0, 1.01, 1.02, 3.0],
    "same": [2.0, 2.0, 2.0, 0.5],
    "all the same": [1.5] * 5,
    "nearly the same": [1.0, 1.0 + 2e-16, 1.0 + 1e-9, 1.0 + 1e-5],
    "about the bound": [1.0, 1 - 1.001 * NEAR, 1 + 0.999 * NEAR, 1 + 2 * NEAR, 1 + 2.002 * NEAR],
    "wide": [1e-6, 1.1e-6, 1e-3, 1.0, 30.0],
    "one": [0.7],
}


def value(of, x):
    return x.exp() if of == "expm" else x.ln() if of == "logm" else x ** Decimal(str(POWERS[of]))


def exact(of, w, u, v):
    """The second derivative at diag(w), along u and v."""
    n = len(w)
    with localcontext() as digits:
        digits.prec = 130
        x = [Decimal(float(a)) * (1 + Decimal(k) * Decimal("1e-40")) for k, a in enumerate(w)]
        twin = [[a * (1 + Decimal(k + 7) * Decimal("1e-37")) for k, a in enumerate(x)]] * 2
        twin[1] = [a * (1 + Decimal(k + 3) * Decimal("1e-36")) for k, a in enumerate(x)]
        made = np.zeros((n, n))
        for k in range(n):
            for j in range(n):
                total = Decimal(0)
                for m in range(n):
                    a, b, c = x[k], twin[0][m], twin[1][j]
                    fa, fb, fc = (value(of, y) for y in (a, b, c))
                    f = ((fa - fb) / (a - b) - (fb - fc) / (b - c)) / (a - c)
                    by = Decimal(float(u[k, m])) * Decimal(float(v[m, j]))
                    total += f * (by + Decimal(float(v[k, m])) * Decimal(float(u[m, j])))
                made[k, j] = float(total)
    return made


def kwargs_of(of):
    return {"t": -0.3} if of == "fractional_matrix_power" else {}


@pytest.mark.parametrize("clustered", [0.0, 2.0])
@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("of", FUNCTIONS)
def test_by_eigenvalues_to_all_digits(of, spectrum, clustered, rng, monkeypatch):
    """Sums for all, and blocks where eigenvalues are near; a square root needs neither."""
    monkeypatch.setattr(second, "_CLUSTERED", clustered)
    w = np.array(SPECTRA[spectrum])
    u, v = rng.standard_normal((2, len(w), len(w)))
    form = pl.Dense(np.diag(w), assume_a="sym")
    found = second_derivative(form, u, v.T, FUNCTIONS[of], of, **kwargs_of(of))
    due = exact(of, w, u, v)
    tol = 2e-13 if clustered or of == "sqrtm" else 1e-6 if spectrum == "wide" else 1e-11
    assert np.abs(found - due).max() <= tol * np.abs(due).max()


def test_clusters_are_told():
    spread, near = np.linspace(0, 4, 50), np.full(50, 2.0)
    assert not second._is_clustered(spread, "expm") and second._is_clustered(near, "logm")
    assert second._is_clustered(np.r_[near, spread[:8]], "expm")
    assert not second._is_clustered(np.r_[near, spread], "expm")
    assert not second._is_clustered(np.zeros(0), "expm")


@pytest.mark.parametrize("of", FUNCTIONS)
def test_the_pieces_of_a_sum_are_the_sum(of, rng, monkeypatch):
    w = np.sort(1 + rng.random(23))
    q, _ = np.linalg.qr(rng.standard_normal((23, 23)))
    form = pl.Dense((q * w) @ q.T, assume_a="sym")
    u, v = rng.standard_normal((2, 23, 23))
    args = form, u, v, FUNCTIONS[of], of
    whole = second_derivative(*args, **kwargs_of(of))
    monkeypatch.setattr(second, "_AT_ONCE", 50)
    np.testing.assert_allclose(second_derivative(*args, **kwargs_of(of)), whole, rtol=1e-12)
    blocks = second._by_blocks  # the other way, of matrices that are not Hermitian
    a, kw = form.toarray(), kwargs_of(of)
    due = blocks(a, u, v.T, args[3], kw) + blocks(a, v.T, u, args[3], kw)
    np.testing.assert_allclose(whole, due, atol=1e-10 * np.abs(due).max())


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
@pytest.mark.parametrize("of", FUNCTIONS)
def test_a_stack_is_each_of_it(of, dtype, rng):
    a = rng.standard_normal((3, 1, 4, 4)) + (1j * rng.standard_normal((3, 1, 4, 4)))
    a = (a if dtype in "FD" else a.real).astype(dtype)
    a = (a @ a.conj().swapaxes(-1, -2) + 3 * np.eye(4)).astype(dtype)
    g, h = (rng.standard_normal((2, 4, 4)).astype(dtype) for _ in range(2))
    args = FUNCTIONS[of], of
    found = second_derivative(pl.Dense(a, assume_a="her"), g, h, *args, **kwargs_of(of))
    assert found.shape == (3, 2, 4, 4)
    tol = 1e-4 if dtype in "fF" else 1e-12
    for i in range(3):
        for j in range(2):
            form = pl.Dense(a[i, 0], assume_a="her")
            one = second_derivative(form, g[j], h[j], *args, **kwargs_of(of))
            assert np.abs(found[i, j] - one).max() <= tol * np.abs(one).max()


@pytest.mark.parametrize("dtype", ["d", "D"])
@pytest.mark.parametrize("of", FUNCTIONS)
def test_matrices_that_are_not_hermitian(of, dtype, rng):
    a = 3 * np.eye(5) + 0.4 * rng.standard_normal((5, 5))
    w = rng.standard_normal((5, 5))
    if dtype == "D":
        a = a + 0.3j * rng.standard_normal((5, 5))

    def loss(a):
        F = FUNCTIONS[of](a, **kwargs_of(of))
        return np.sum(np.abs(w @ F) ** 2) if dtype == "D" else np.sum((w @ F) ** 2 * w)

    check_second(loss, a, rtol=1e-6)


def test_zero_eigenvalues_of_a_high_power(rng):
    """A^2.5 has two derivatives where A is singular; their differences are those of blocks."""
    a = np.diag([0.0, 1.0, 2.0, 2.0])
    u, v = rng.standard_normal((2, 4, 4))
    power = pl.fractional_matrix_power
    form = pl.Dense(a + 1e-9 * np.eye(4), assume_a="sym")
    near = second_derivative(form, u, v, power, "fractional_matrix_power", t=2.5)
    assert np.isfinite(near).all()


def test_third_derivatives_of_a_hermitian_matrix(rng):
    b = rng.standard_normal((4, 4))
    s, t = (x + x.T for x in rng.standard_normal((2, 4, 4)))
    w = rng.standard_normal((4, 4))
    w = w + w.T

    def f(a):
        return np.sum(w * pl.expm(pl.lazy(a) if isinstance(a, np.ndarray) else a))

    a = (b + b.T) / 4
    third = pl.grad(lambda a: np.sum(pl.hvp(f)(a, s) * t))(a)
    step = 1e-4
    up, down = (np.sum(pl.hvp(f)(a + d * w, s) * t) for d in (step, -step))
    assert abs(np.sum(third * w) - (up - down) / (2 * step)) < 1e-6 * abs(np.sum(third * w))
