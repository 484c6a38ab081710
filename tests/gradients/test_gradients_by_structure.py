"""Gradients of few numbers by the form of the cotangent: no dense form, whatever the size."""

import numpy as np
import pytest
from gradients.differences import check

import pylinop as pl

RNG = np.random.default_rng(21)


def run(f, *args):
    """The gradients, and the steps that ran outside of fallbacks, by name."""
    made = pl.value_and_grad(f, tuple(range(len(args))))
    with pl.explaining() as record:
        made(*args)
    return [s["name"] for plan in record.plans for s in plan.steps if not s["conditional"]]


def first(n, dtype):
    x = RNG.standard_normal(n)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * RNG.standard_normal(n)
    return x / n + 4.0 * (np.arange(n) == 0)


@pytest.mark.parametrize("dtype", ["f", "D"])
@pytest.mark.parametrize("n", [63, 64, 99, 101, 130, 300])
def test_toeplitz_likelihoods_on_both_sides_of_thresholds(n, dtype):
    dtype = "float64" if dtype == "f" else "complex128"
    c, r, b = first(n, dtype), first(n, dtype), RNG.standard_normal(n)

    def f(c, r):
        T = pl.Toeplitz(c, r)
        return np.real(np.vdot(b, pl.solve(T, b))) + pl.slogdet(T)[1]

    def own(c):
        quad, log = pl.inv_quad_logdet(pl.Toeplitz(c), b)
        return np.real(quad) + log

    check(f, c, r)
    check(own, first(n, "f") if dtype == "float64" else np.r_[5.0 + 0j, c[1:]])


@pytest.mark.no_verify  # whose own plans would be counted
def test_a_toeplitz_likelihood_makes_no_square():
    n = 1500
    c, b = np.exp(-np.arange(n) / 20.0) + 0.5 * (np.arange(n) == 0), RNG.standard_normal(n)

    def f(c):
        quad, log = pl.inv_quad_logdet(pl.Toeplitz(c), b)
        return quad + log

    names = run(f, c)
    assert "toeplitz_inverse_sums" in names
    assert names.count("toeplitz-factor") == 1
    dense = {"toeplitz-dense", "diagonal-sums", "getrf", "potrf", "eye"}
    assert not dense & set(names), names


@pytest.mark.no_verify
def test_sums_of_a_wide_pair_go_by_fft():
    n, k = 1500, 12
    c, X, W = RNG.standard_normal(n), RNG.standard_normal((n, k)), RNG.standard_normal((n, k))
    names = run(lambda c: np.sum((pl.Toeplitz(c) @ X) * W), c)
    assert "diagonal-sums-fft" in names
    assert not {"toeplitz-dense", "diagonal-sums"} & set(names), names


@pytest.mark.no_verify
def test_numbers_at_places_make_no_square():
    n = 1200
    k, X, W = RNG.standard_normal(5), RNG.standard_normal((n, 3)), RNG.standard_normal((n, 3))
    names = run(lambda k: np.sum((pl.Convolution(k, n, mode="same") @ X) * W), k)
    assert "entry-sums-pair" in names and "entry-sums" not in names, names
    names = run(lambda k: pl.trace(pl.Convolution(k, n, mode="same")), k)
    assert "entry-sums-band" in names and "entry-sums" not in names, names
    D, L = RNG.standard_normal((n // 4, 4, 4)), RNG.standard_normal((n // 4 - 1, 4, 4))
    D += 20 * np.eye(4)
    names = run(lambda L, D: W[:, 0] @ pl.solve(pl.BlockTridiagonal(L, D), X[:, 0]), L, D)
    assert "entry-sums-pair" in names and "entry-sums" not in names, names


@pytest.mark.parametrize("n", [1, 2, 7, 90])
def test_circulant_and_hankel_determinants(n):
    c = first(n, "f")
    check(lambda c: pl.slogdet(pl.Circulant(c))[1], c)
    h = RNG.standard_normal(2 * n - 1) / n + 4.0 * (np.arange(2 * n - 1) == n - 1)
    check(lambda c, r: pl.slogdet(pl.Hankel(c, r))[1], h[:n], h[n - 1 :])


def test_no_rows_or_no_columns():
    for m, n in ((0, 3), (3, 0), (1, 1)):
        by_c, by_r = pl.grad(lambda c, r, n=n: np.sum(pl.Toeplitz(c, r) @ np.ones(n)), (0, 1))(
            np.ones(m), np.ones(n)
        )
        assert by_c.shape == (m,) and by_r.shape == (n,)


def _squares(f, *args):
    """Steps of the plans of value and gradient that write as many rows as columns, by name."""
    with pl.explaining() as record:
        found = pl.grad(f, tuple(range(len(args))))(*args)
    n = int(np.prod([len(a) for a in args]))
    run = [s for p in record.plans for s in p.steps if not s["conditional"]]
    return found, [s["name"] for s in run if f"({n}, {n})" in s["writes"]]


@pytest.mark.no_verify
@pytest.mark.parametrize("sizes", [(3, 4), (4, 3, 5), (2, 3, 2, 4)])
@pytest.mark.parametrize("dtype", ["f", "c"])
def test_determinants_of_krons_make_no_kron(sizes, dtype):
    """log|det A (x) B|: the cotangent is the Kron of the inverses."""
    r = np.random.default_rng(61)
    factors = [r.standard_normal((k, k)) + 3 * k * np.eye(k) for k in sizes]
    if dtype == "c":
        factors = [a + 1j * r.standard_normal(a.shape) for a in factors]
    n = int(np.prod(sizes))
    found, square = _squares(lambda *p: pl.slogdet(pl.Kron(*p))[1], *factors)
    assert not square, square
    for g, a in zip(found, factors, strict=True):
        np.testing.assert_allclose(g, n / len(a) * np.linalg.inv(a).conj().T, rtol=1e-12)


def test_traces_of_krons_of_rectangles():
    r = np.random.default_rng(62)
    a, b, c, d = (r.standard_normal(shape) for shape in [(2, 3), (4, 2), (2, 3), (4, 2)])
    for f in (
        lambda a, b: pl.trace(pl.Kron(a, b) @ pl.Kron(c, d).T),
        lambda a, b: pl.trace(pl.Kron(a, b).T @ pl.Kron(c, d)),
    ):
        by_a, by_b = pl.grad(f, (0, 1))(a, b)
        np.testing.assert_allclose(by_a, c * np.sum(b * d), rtol=1e-12)
        np.testing.assert_allclose(by_b, d * np.sum(a * c), rtol=1e-12)


@pytest.mark.no_verify
@pytest.mark.parametrize("dtype", ["f", "c"])
def test_determinants_of_circulants_take_one_column(dtype):
    r = np.random.default_rng(63)
    c = r.standard_normal(9) + 30 * (np.arange(9) == 0)
    c = c + 1j * r.standard_normal(9) if dtype == "c" else c
    found, square = _squares(lambda c: pl.slogdet(pl.Circulant(c))[1], c)
    assert not square, square
    G = np.linalg.inv(pl.Circulant(c).toarray()).conj().T
    wanted = [sum(G[(j + k) % 9, j] for j in range(9)) for k in range(9)]
    np.testing.assert_allclose(found[0], wanted, rtol=1e-12)
