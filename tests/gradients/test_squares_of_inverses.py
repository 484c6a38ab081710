"""Gradients of traces of inverses read inv(A) @ inv(A), of Markov processes by two sweeps."""

import numpy as np
import pytest

import pylinop as pl

SIZES = (1, 2, 15, 16, 17, 100)


def generators(n, J, dtype, rng, full):
    def drawn(*shape):
        a = rng.standard_normal(shape)
        return a + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else a

    moved = 0.5 * drawn(n, J * J if full else J) / J
    return [a.astype(dtype) for a in (np.full(n, 4.0 * J), drawn(n, J) / 2, drawn(n, J) / 2, moved)]


@pytest.mark.parametrize("dtype", ["f8", "c16", "f4"])
@pytest.mark.parametrize("full", [False, True], ids=["diagonal", "full"])
@pytest.mark.parametrize("n", SIZES)
def test_trace_of_an_inverse(n, full, dtype):
    rng = np.random.default_rng(n)
    d, *rest = generators(n, 2, dtype, rng, full)
    c, w = 0.5, rng.uniform(1, 2, n)

    def f(d, p, q, a, c):
        K = pl.QuasiSeparable(d, p, q, a) + c * pl.Identity(n)
        return np.trace(pl.inv(K)).real + pl.slogdet(K)[1] + np.sum(w * pl.inv(K).diagonal()).real

    with pl.config(check_plans=True, verify=dtype != "f4"):
        value, found = pl.value_and_grad(f, tuple(range(5)))(d, *rest, c)

    def dense(d, p, q, a, c):
        K = pl.QuasiSeparable(d, p, q, a).toarray().astype(complex) + c * np.eye(n)
        inverse = np.linalg.inv(K)
        return np.sum((1 + w) * np.diagonal(inverse)).real + np.linalg.slogdet(K)[1]

    wide = [x.astype("c16" if np.dtype(dtype).kind == "c" else "f8") for x in (d, *rest)]
    tolerance = 1e-3 if dtype == "f4" else 1e-8
    assert abs(value - dense(*wide, c)) <= tolerance * abs(value)
    along = [rng.standard_normal(x.shape).astype(x.dtype) for x in wide] + [1.0]
    if np.dtype(dtype).kind == "c":
        along = [t if t is along[0] or k == 4 else t * (1 + 1j) for k, t in enumerate(along)]
    got = sum(np.sum(np.conj(g) * t).real for g, t in zip(found, along, strict=True))
    h, total = 1e-3, 0.0
    for k, weight in {1: 45 / 60, 2: -9 / 60, 3: 1 / 60}.items():
        for sign in (1, -1):
            moved = [x + sign * k * h * t for x, t in zip([*wide, c], along, strict=True)]
            total += sign * weight * dense(*moved)
    scale = 1 + abs(total / h)
    assert abs(got - total / h) <= tolerance * scale


def test_no_matrix_of_n_rows_is_made():
    n = 3000
    t = np.sort(np.random.default_rng(1).random(n)) * n / 10

    def f(length, noise):
        K = pl.quasiseparable("matern32", t, length_scale=length) + noise * pl.Identity(n)
        return np.trace(pl.inv(K)) + pl.slogdet(K)[1]

    with pl.config(memory_limit=4 * n * n):
        value, slopes = pl.value_and_grad(f, (0, 1))(1.0, 0.5)
    h = 1e-3
    for k in range(2):
        x = np.array([1.0, 0.5])
        e = np.eye(2)[k] * h
        at = [f(*map(pl.lazy, x + s * e)) for s in (1, -1, 2, -2)]
        a, b, c, d = map(float, at)
        assert abs(slopes[k] - (8 * (a - b) - (c - d)) / (12 * h)) < 1e-6 * abs(slopes[k]) + 1e-4


def test_of_a_matrix_that_is_not_definite():
    """The safer way, by a dense form."""
    rng = np.random.default_rng(2)
    d, *rest = generators(20, 2, "f8", rng, False)
    d = d * np.where(np.arange(20) % 2, 1.0, -1.0)
    D = pl.lazy(d)
    K = pl.QuasiSeparable(D, *rest)
    g = pl.gradients(np.trace(pl.inv(K)), D).toarray()
    inverse = np.linalg.inv(pl.QuasiSeparable(d, *rest).toarray())
    np.testing.assert_allclose(g, -np.diagonal(inverse @ inverse), rtol=1e-10)
