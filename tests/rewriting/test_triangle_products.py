"""L L^H and L^H L of a triangle, by its kind or as it is assumed: a third of the product's work."""

import numpy as np
import pytest

import pylinop as pl

SIZES = [0, 1, 2, 15, 16, 17, 63, 64, 65, 130, 200]


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.float32])
@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("n", SIZES)
def test_by_kind_and_as_assumed(n, lower, batch, dtype):
    rng = np.random.default_rng(n)
    a = rng.standard_normal((*batch, n, n)).astype(dtype)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal(a.shape)
    meant = np.tril(a) if lower else np.triu(a)
    given = np.where(meant == 0, np.nan, meant).astype(dtype)  # a Triangular does not read it
    word = ("lower" if lower else "upper") + " triangular"
    turned = np.swapaxes(meant, -1, -2)
    size = np.abs(meant)
    bound = 2 * n * np.finfo(dtype).eps
    for L in (pl.Triangular(given, lower), pl.Dense(meant, assume_a=word)):
        for formula, wanted, terms in [
            (L @ L.T, meant @ turned, size @ np.swapaxes(size, -1, -2)),
            (L.T @ L, turned @ meant, np.swapaxes(size, -1, -2) @ size),
            (L @ L.H, meant @ turned.conj(), size @ np.swapaxes(size, -1, -2)),
            (L.H @ L, turned.conj() @ meant, np.swapaxes(size, -1, -2) @ size),
        ]:
            found = formula.toarray()
            assert found.dtype == dtype
            assert (np.abs(found - wanted) <= bound * terms).all()


@pytest.mark.parametrize("n", [100, 300])
def test_it_costs_less_than_half_of_syrk(n):
    a = np.tril(np.ones((n, n)))
    L, T = pl.lazy(a, assume_a="lower triangular"), pl.Triangular(a)
    for plan in (
        pl.explain(L @ L.T),
        pl.explain(L.T @ L),
        (T @ T.T).explain("dense"),
    ):
        assert plan.flops <= 0.5 * n**3


def test_a_factor_between():
    rng = np.random.default_rng(5)
    a, d = np.tril(rng.standard_normal((90, 90))) / 9 + 2 * np.eye(90), rng.random(90)
    L = pl.Triangular(a)
    np.testing.assert_allclose((L @ pl.Diag(d) @ L.T).toarray(), a * d @ a.T, atol=1e-12)
    np.testing.assert_allclose(
        (2 * (L @ L.T) + pl.Identity(90)).toarray(), 2 * a @ a.T + np.eye(90), atol=1e-12
    )
    b = rng.standard_normal((90, 4))
    np.testing.assert_allclose(pl.solve(L @ L.T, L @ (L.T @ b)), b, atol=1e-6)
