"""Coefficients that go into a step's data, of a shifted Laplacian and of sums of sparse matrices,
are given at run time: one plan for all values, and each value its own factor."""

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl
from pylinop import _core

N = 600
VALUES = [5.0, 5.37, -40.0, 5.0]


def made():
    return _core._store()["plans_made"]


def laplacian(ends="dirichlet"):
    return pl.Laplacian((25, 24), ends)


def sparse():
    rng = np.random.default_rng(3)
    a = sp.random_array((N, N), density=3 / N, rng=rng) + 80 * sp.eye_array(N)
    return pl.Sparse(a.tocsr())


FORMS = {
    "L + c I": lambda c: laplacian() + c * pl.Identity(N),
    "c L - I": lambda c: c * laplacian() - pl.Identity(N),
    "2 L + c (I + c L)": lambda c: 2.0 * laplacian() + c * (pl.Identity(N) + c * laplacian()),
    "L + c I, no flux": lambda c: laplacian("neumann") + (c + 0.1) * pl.Identity(N),
    "L + c I, periodic": lambda c: laplacian("periodic") + (c + 0.1) * pl.Identity(N),
    "L + i c I": lambda c: laplacian() + 1j * c * pl.Identity(N),
    "S + c I": lambda c: sparse() + c * pl.Identity(N),
    "c S + D": lambda c: c * sparse() + pl.Diag(np.arange(1.0, N + 1)),
    "S + c (I + c S.T)": lambda c: sparse() + c * (pl.Identity(N) + 0.01 * c * sparse().T),
    "S + i c I": lambda c: sparse() + 1j * c * pl.Identity(N),
    "S + c I + U U^H": lambda c: sparse() + c * pl.Identity(N) + pl.LowRank(np.ones((N, 1))),
}


@pytest.mark.parametrize("form", FORMS)
def test_one_plan_for_all_numbers(form):
    y = np.random.default_rng(4).standard_normal(N)
    asked = {
        "solve": lambda a: pl.solve(a, y),
        "slogdet": lambda a: np.asarray(pl.slogdet(a)),
        "diagonal": lambda a: pl.diagonal(pl.inv(a)),
    }
    _core._clear_store()
    counts = {name: [] for name in asked}
    for c in VALUES:
        a = FORMS[form](c)
        dense = a.toarray()
        inverse = np.linalg.inv(dense)
        want = {
            "solve": inverse @ y,
            "slogdet": np.asarray(np.linalg.slogdet(dense)),
            "diagonal": inverse.diagonal(),
        }
        near = 1e-13 * np.linalg.norm(dense) * np.linalg.norm(inverse) + 1e-10
        for name, ask in asked.items():
            before = made()
            with pl.config(check_plans=c == VALUES[0]):
                got = ask(a)
            counts[name].append(made() - before)
            size = np.abs(want[name]).max()
            np.testing.assert_allclose(got, want[name], rtol=near, atol=near * size)
    # a class of its own where a sum is real, or the way that was tried first has failed
    assert all(sum(c[2:]) <= 1 for c in counts.values()), counts


def test_together_one_factor_serves_a_number():
    """The solution and the determinant of one value share it, also with the numbers at run time."""
    y = np.random.default_rng(4).standard_normal(N)
    S = sparse()
    for c in VALUES[:3]:
        a = pl.lazy(S + c * pl.Identity(N))
        _core._clear_store()
        with pl.explaining() as log:
            x, sign, log_det = pl.evaluate(np.linalg.solve(a, y), *np.linalg.slogdet(a))
        steps = [s for p in log.plans for s in p.steps if s["took"] is not None]
        assert sum(s["name"] in ("SuperLU", "CHOLMOD/SuperLU") for s in steps) == 1
        dense = S.toarray() + c * np.eye(N)
        np.testing.assert_allclose(dense @ x, y, atol=1e-9)
        np.testing.assert_allclose(log_det, np.linalg.slogdet(dense)[1], rtol=1e-10)


def test_a_number_at_which_it_is_singular():
    """-L of a ring has the eigenvalue 4: the plan made for other numbers says so."""
    L = pl.Laplacian((16, 16), "periodic")
    y = np.random.default_rng(5).standard_normal(256)
    for c in (1.5, 2.5, 3.25):
        np.testing.assert_allclose(
            (L.toarray() + c * np.eye(256)) @ pl.solve(L + c * pl.Identity(256), y), y, atol=1e-8
        )
    low = np.linalg.eigvalsh(L.toarray())
    assert np.any(np.abs(low + 4) < 1e-12)
    with pytest.raises(np.linalg.LinAlgError):
        pl.solve(L + 4.0 * pl.Identity(256), y)
