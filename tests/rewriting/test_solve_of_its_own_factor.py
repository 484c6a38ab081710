"""(B + U C U^H)^-1 U W is B^-1 U (I + C U^H B^-1 U)^-1 W: nothing of U's size is subtracted."""

import numpy as np
import pytest

import pylinop as pl

SIZES = ((2, 1), (15, 3), (16, 4), (17, 2), (100, 10), (700, 16), (700, 20))
BASES = ("diagonal", "multiple", "toeplitz")


def base_of(kind, n, rng):
    if kind == "diagonal":
        return pl.Diag(rng.uniform(1, 2, n))
    if kind == "multiple":
        return 1.7 * pl.Identity(n)
    return pl.Toeplitz(3.0 * 0.5 ** np.arange(n))


def middle_of(kind, k, rng):
    if kind == "none":
        return None
    return 2.5 * pl.Identity(k) if kind == "multiple" else pl.Diag(rng.uniform(1, 2, k))


@pytest.mark.parametrize("middle", ["none", "multiple", "diagonal"])
@pytest.mark.parametrize("kind", BASES)
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_a_large_factor_loses_no_digits(kind, middle, dtype, rng):
    for n, k in SIZES:
        U = rng.standard_normal((n, k)).astype(dtype)
        if dtype == np.complex128:
            U = U + 1j * rng.standard_normal((n, k))
        U *= 1e5  # the answer is smaller than what Woodbury's formula subtracts by ten digits
        B, C = base_of(kind, n, rng), middle_of(middle, k, rng)
        W = rng.standard_normal((k, 3)).astype(dtype)
        low = pl.LowRank(U) if C is None else pl.LowRank(U, U, C)
        by = np.linalg.solve(B.toarray(), U)
        inner = U.conj().T @ by
        cap = np.eye(k) + (inner if C is None else C.toarray() @ inner)
        A = pl.inv(pl.lazy(B + low))
        with pl.config(check_plans=True, verify=True):
            found = [(A @ pl.lazy(U)).toarray(), (A @ (pl.lazy(U) @ W)).toarray()]
        for got, due in zip(found, (np.linalg.inv(cap), np.linalg.solve(cap, W)), strict=True):
            due = by @ due
            assert np.abs(got - due).max() <= 1e-11 * np.abs(due).max(), (n, k)


def test_it_is_one_solve_with_a_small_matrix(rng):
    n, k = 3000, 20
    U, d = rng.standard_normal((n, k)), rng.uniform(1, 2, n)
    e = (pl.inv(pl.lazy(pl.Diag(d) + pl.LowRank(U))) @ pl.lazy(U)).explain()
    run = [s["name"] for s in e.steps if not s["conditional"]]
    assert run.count("gemm") + run.count("gemm-add") == 2, run
    with pl.explaining() as record:
        (pl.inv(pl.lazy(pl.Diag(d) + pl.LowRank(U))) @ pl.lazy(U)).toarray()
    assert record.plans


def test_another_array_is_no_factor(rng):
    n, k = 40, 3
    U, V = rng.standard_normal((2, n, k))
    A = pl.Diag(rng.uniform(1, 2, n)) + pl.LowRank(U)
    for x in (V, U.copy() + 1e-9, U[:, ::-1]):
        got = (pl.inv(pl.lazy(A)) @ pl.lazy(x)).toarray()
        np.testing.assert_allclose(got, np.linalg.solve(A.toarray(), x), rtol=1e-10, atol=1e-12)
    W = pl.Diag(rng.uniform(1, 2, n)) + pl.LowRank(U, V)  # not symmetric
    got = (pl.inv(pl.lazy(W)) @ pl.lazy(U)).toarray()
    np.testing.assert_allclose(got, np.linalg.solve(W.toarray(), U), rtol=1e-8, atol=1e-10)
    got = (pl.inv(pl.lazy(W)) @ pl.lazy(V)).toarray()
    np.testing.assert_allclose(got, np.linalg.solve(W.toarray(), V), rtol=1e-8, atol=1e-10)
