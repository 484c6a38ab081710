"""Random operands for tests of whole formulas."""

import numpy as np

import pylinop as pl

DTYPES = ["float64", "complex128", "float32", "complex64"]


def values(rng, shape, dtype):
    a = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal(shape)
    return a.astype(dtype)


def positive(rng, n, dtype, least=0.5):
    """Hermitian, its eigenvalues at least `least`."""
    a = values(rng, (n, 2 * n), dtype)
    return (a @ a.conj().T / (2 * n) + least * np.eye(n)).astype(dtype)


def figures(ask, *args):
    """The value, of a verified plan, and its flops."""
    with pl.config(check_plans=True, verify=True), pl.explaining() as e:
        value = ask(*args)
    return value, e.explanation.flops


class Wide(np.ndarray):
    """An array with .H."""

    @property
    def H(self):
        return self.conj().T


def close(got, want):
    """Within some thousand eps of what is wanted, as far as that is large."""
    got, want = np.asarray(got), np.asarray(want)
    eps = np.finfo(got.dtype).eps
    assert got.shape == want.shape
    assert np.abs(got - want).max(initial=0) <= 5000 * eps * max(np.abs(want).max(initial=0), 1)
