"""Sums of circulants that hold inverses: their own inverses, determinants and solutions are those
of a fraction without inverses, as good where one of them is next to singular."""

import os

import numpy as np
import pytest

import pylinop as pl

SEED = int(os.environ.get("PYLINOP_SEED", 7))
SIZES = [1, 2, 15, 16, 17, 64, 65, 100]


def circulant(r, n, complex_, least):
    """One of a spectrum with a small number in it, and its eigenvalues."""
    values = np.exp(r.standard_normal(n))
    if complex_:
        values = values * np.exp(2j * np.pi * r.random(n))
    else:
        values = (values + np.roll(values[::-1], 1)) / 2
    at = r.integers(n)
    values[at] = least
    if not complex_:
        values[-at % n] = least
    c = np.fft.ifft(values)
    c = c if complex_ else c.real
    return pl.Circulant(c), np.fft.fft(c)


SUMS = {
    "I + s inv(O)": lambda I, O, P, o, p: (I + 0.7 * pl.inv(O), 1 + 0.7 / o),
    "P + s inv(O)": lambda I, O, P, o, p: (P + 0.7 * pl.inv(O), p + 0.7 / o),
    "two alike": lambda I, O, P, o, p: (pl.inv(O) + 2 * pl.inv(O) + P, 3 / o + p),
    "P inv(O) + I": lambda I, O, P, o, p: (P @ pl.inv(O) + I, p / o + 1),
    "inv(O) + inv(P)": lambda I, O, P, o, p: (pl.inv(O) + pl.inv(P), 1 / o + 1 / p),
}


@pytest.mark.parametrize("least", [0.5, 1e-4, 1e-9, 1e-13])
@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("what", SUMS)
def test_of_a_circulant_next_to_singular(what, complex_, least):
    for n in SIZES:
        r = np.random.default_rng(SEED + n)
        O, o = circulant(r, n, complex_, least)
        P, p = circulant(r, n, complex_, 0.9)
        A, a = SUMS[what](pl.Identity(n), O, P, o, p)
        first = np.fft.ifft(1 / a)
        due = first[(np.arange(n)[:, None] - np.arange(n)) % n]
        allowed = 1e-13 * np.abs(1 / a).max() * (1 + np.abs(p).max() / np.abs(p).min())
        assert np.abs(pl.inv(A).toarray() - due).max() <= allowed
        assert np.abs(pl.diagonal(pl.inv(A)) - due.diagonal()).max() <= allowed
        assert abs(pl.trace(pl.inv(A)) - due.trace()) <= n * allowed
        error = 1e-12 + 1e-14 * n / least  # what the numbers of O leave open
        assert abs(pl.slogdet(A)[1] - np.log(np.abs(a)).sum()) <= error


@pytest.mark.parametrize("what", SUMS)
def test_solutions_and_verified_plans(what):
    for n in (17, 65):
        r = np.random.default_rng(SEED + n)
        O, o = circulant(r, n, False, 1e-3)
        P, p = circulant(r, n, False, 0.9)
        A, a = SUMS[what](pl.Identity(n), O, P, o, p)
        b = r.standard_normal((n, 3))
        due = np.fft.ifft(np.fft.fft(b, axis=0) / a[:, None], axis=0)
        with pl.config(verify=True):
            assert np.allclose(pl.solve(A, b), due, rtol=1e-10, atol=1e-11)
            assert np.allclose(pl.inv(A) @ b, due, rtol=1e-10, atol=1e-11)
            assert np.allclose(pl.diagonal(pl.inv(A)), np.mean(1 / a), rtol=1e-11)


def test_a_singular_circulant_within_is_said():
    O = pl.Circulant(np.ones(20))
    with pytest.raises(np.linalg.LinAlgError):
        pl.solve(pl.Identity(20) + pl.inv(O), np.ones(20))
