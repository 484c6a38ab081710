"""Solves for many columns with sparse matrices whose factors fill in go by the dense form."""

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl
from pylinop._sparse import fill, solver


def graph(n, entries, dtype=float):
    r = np.random.default_rng(n)
    a = sp.random(n, n, entries / n, random_state=r, format="csr")
    a = a + 10 * sp.eye(n)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * sp.random(n, n, entries / n, random_state=r, format="csr")
    return sp.csr_array(a.astype(dtype))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("columns", [1, 199, 200, 201, 800])
def test_the_same_solutions(columns, dtype):
    a = graph(800, 6, dtype)
    b = np.random.default_rng(1).standard_normal((800, columns))
    due = np.linalg.solve(a.toarray(), b)
    assert np.allclose(pl.solve(pl.Sparse(a), b), due, rtol=1e-11, atol=1e-13)
    assert np.allclose(pl.solve(pl.Sparse(a).T, b), np.linalg.solve(a.toarray().T, b), atol=1e-13)


@pytest.mark.parametrize("entries,declined", [(6, True), (0.5, False)])
def test_what_fills_in_is_declined(entries, declined, monkeypatch):
    seen = []
    asked = fill.dense_is_sooner

    def watched(factor, columns):
        seen.append(asked(factor, columns))
        return seen[-1]

    monkeypatch.setattr(solver.fill, "dense_is_sooner", watched)
    a = graph(800, entries)
    found = pl.inv(pl.Sparse(a)).toarray()
    assert seen == [declined]
    assert np.allclose(found, np.linalg.inv(a.toarray()), rtol=1e-11, atol=1e-13)


def test_a_limit_that_leaves_no_room_keeps_the_factor():
    a = graph(800, 6)
    b = np.ones((800, 210))
    with pl.config(memory_limit=3 * 800 * 800 * 8):
        found = pl.solve(pl.Sparse(a), b)
    assert np.allclose(found, np.linalg.solve(a.toarray(), b), rtol=1e-11)
