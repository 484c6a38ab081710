"""Solves in LazyArrays whose dense form would pass the memory limit: iterated on, to working
accuracy, and said so."""

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl

N = 600
LIMIT = 1 << 19  # a dense form takes 2.9 MB


def rng():
    return np.random.default_rng(8)


def matrix(skew=0.0):
    t = np.r_[1.0, 0.3, np.zeros(N - 2)]
    return pl.Toeplitz(t + skew * (t == 0.3), t) + pl.Diag(np.linspace(2, 5, N))


def eta(a, x, b):
    with pl.config(memory_limit=None):
        a = a.toarray() if hasattr(a, "toarray") else a
    size = np.sqrt(np.linalg.norm(a, 1) * np.linalg.norm(a, np.inf))  # not below |A|
    below = size * np.linalg.norm(x, axis=0) + np.linalg.norm(b, axis=0)
    return (np.linalg.norm(a @ x - b, axis=0) / below).max()


WORKING = 5 * np.sqrt(N) * 2.3e-16


@pytest.mark.parametrize("skew", [0.0, 0.4])
@pytest.mark.parametrize("shape", [(N,), (N, 3)])
def test_a_lazy_solve_iterates_where_its_dense_form_would_pass_the_limit(shape, skew):
    a, b = matrix(skew), rng().standard_normal(shape)
    with pl.config(memory_limit=LIMIT):
        for x in (
            pl.solve(pl.lazy(a), b),
            pl.solve(a, pl.lazy(b)),
            np.linalg.solve(pl.lazy(a), b) if len(shape) == 1 else pl.inv(pl.lazy(a)) @ b,
        ):
            value = np.asarray(x)
            assert value.shape == shape and value.dtype == np.float64
            assert eta(a, value, b) <= WORKING
            assert x._computed() is value or np.shares_memory(np.asarray(x), value)


def test_the_other_side_and_complex():
    a, g = matrix(0.4), rng()
    b = g.standard_normal(N) + 1j * g.standard_normal(N)
    with pl.config(memory_limit=LIMIT):
        left = np.asarray(pl.lazy(b) @ pl.inv(pl.lazy(a)))
        wide = np.asarray(pl.lazy(np.stack([b, 2 * b])) @ pl.inv(pl.lazy(a)))
    assert eta(a.T, left, b) <= WORKING
    np.testing.assert_allclose(wide, [left, 2 * left], rtol=1e-10)


def test_what_stands_around_a_solve_follows():
    a, g = matrix(), rng()
    x, c = g.standard_normal((N, 4)), g.standard_normal(N)
    dense, A, X = a.toarray(), pl.lazy(a), pl.lazy(x)
    with pl.config(memory_limit=LIMIT):
        small = np.asarray(X.T @ (pl.inv(A) @ X))
        deep = np.asarray(c - A @ (pl.inv(A) @ (A @ c)) * 0.5)
        twice = np.asarray(pl.inv(A) @ (X @ (X.T @ (pl.inv(A) @ c))))
        total = float(pl.solve(A, c).sum())
    inverse = np.linalg.inv(dense)
    np.testing.assert_allclose(small, x.T @ inverse @ x, rtol=1e-10)
    np.testing.assert_allclose(deep, c - dense @ c * 0.5, rtol=0, atol=1e-10)
    np.testing.assert_allclose(twice, inverse @ (x @ (x.T @ (inverse @ c))), rtol=1e-9)
    np.testing.assert_allclose(total, (inverse @ c).sum(), rtol=1e-9)


def test_it_is_said():
    a, b = matrix(), rng().standard_normal(N)
    x, X = pl.solve(pl.lazy(a), b), pl.lazy(rng().standard_normal((N, 2)))
    assert "iter" not in x.explain()
    with pl.config(memory_limit=LIMIT):
        said = x.explain()
        assert "would pass the memory limit" in said and "backward error" in said
        assert said.memory <= LIMIT
        assert "its solves first" in (X.T @ (pl.inv(pl.lazy(a)) @ X)).explain()
        assert "products" in x.explain(run=True)
        with pl.explaining() as e:
            np.asarray(x)
    assert [step["name"] for p in e.plans for step in p.steps] == ["cg"]


def test_what_does_not_get_there_is_an_error_with_both_texts():
    n = 160
    one = np.eye(n)
    hard = pl.Toeplitz(one[1], one[-1]) + pl.Diag(1e-3 * rng().standard_normal(n))  # a shift
    b = rng().standard_normal(n)
    x = pl.solve(pl.lazy(hard), b)
    with pl.config(memory_limit=1 << 17):
        with pytest.raises(pl.MaterializationError, match="Nor does an iterative"):
            np.asarray(x)
        with pytest.raises(pl.MaterializationError):  # nothing to iterate on
            np.asarray(pl.inv(pl.lazy(hard)))
    assert eta(hard, np.asarray(x), b) <= 1e-13  # and it is as it was before


def test_an_assumption_is_read_where_auto_iterates():
    a = sp.diags_array([-np.ones(N - 1), np.linspace(2, 5, N), -np.ones(N - 1)], offsets=[-1, 0, 1])
    b = rng().standard_normal(N)
    with pl.config(memory_limit=LIMIT), pl.explaining() as e:
        x = pl.solve(a.tocsr(), b, assume_a="pos")
    assert eta(a, x, b) <= WORKING
    assert "cg (A is said to be 'pos')" in str(e)
