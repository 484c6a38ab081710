"""One sparse matrix in several spellings has one factor, and one inverse on its pattern, for all
that asks for it; what is kept is what would be made anew, bit by bit, never of other numbers."""

import gc

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl
from pylinop._sparse import factor as _factor
from pylinop._sparse import selected_inverse


def grid(k, shift=0.5):
    d = sp.diags_array([-np.ones(k - 1), 2 * np.ones(k), -np.ones(k - 1)], offsets=[-1, 0, 1])
    eye = sp.eye_array(k)
    return sp.csr_array(sp.kron(d, eye) + sp.kron(eye, d) + shift * sp.eye_array(k * k))


def points(rng, m, n):
    at, w = rng.integers(0, n - 1, m), rng.random(m)
    rows = np.tile(np.arange(m), 2)
    return sp.csr_array((np.r_[w, 1 - w], (rows, np.r_[at, at + 1])), shape=(m, n))


@pytest.fixture
def counted(monkeypatch):
    """How many factors and inverses are made."""
    counts = {"factors": 0, "inverses": 0}
    made, inverted = _factor.Factor._factor, selected_inverse._Pattern.invert

    def factor(self):
        counts["factors"] += 1
        return made(self)

    def invert(self):
        counts["inverses"] += 1
        return inverted(self)

    monkeypatch.setattr(_factor.Factor, "_factor", factor)
    monkeypatch.setattr(selected_inverse._Pattern, "invert", invert)
    return counts


@pytest.mark.no_verify
@pytest.mark.parametrize(("power", "factors"), [(1, 2), (2, 3)])
def test_a_field_and_its_gradient(rng, counted, power, factors):
    """Of Q and of Q + A^T A / s one inverse each; of S S its determinant may go by S."""
    k = 25
    L, A = grid(k, 0.0), points(rng, 150, k * k)
    S, B, y = pl.Sparse(L), pl.Sparse(A), rng.standard_normal(150)

    def f(p):
        Q = S + p[1] * pl.Identity(k * k)
        Q = p[0] * (Q @ Q if power == 2 else Q)
        V = B @ pl.inv(Q) @ B.T + p[2] * pl.Identity(150)
        return y @ pl.solve(V, y) + pl.logdet(V)

    def dense(p):
        Q = L.toarray() + p[1] * np.eye(k * k)
        Q = p[0] * np.linalg.matrix_power(Q, power)
        V = A @ np.linalg.solve(Q, A.T.toarray()) + p[2] * np.eye(150)
        return y @ np.linalg.solve(V, y) + np.linalg.slogdet(V)[1]

    p = np.array([1.1, 0.4, 0.3])
    value, slopes = pl.value_and_grad(f)(p)
    assert counted["inverses"] == 2
    assert counted["factors"] <= factors
    assert value == pytest.approx(dense(p), rel=1e-10)
    for i in range(3):
        h = 1e-5 * np.eye(3)[i]
        assert slopes[i] == pytest.approx((dense(p + h) - dense(p - h)) / 2e-5, rel=1e-6)


@pytest.mark.no_verify
def test_diagonal_trace_and_entries_of_one_matrix(rng, counted):
    a = grid(21)
    op, other = pl.Sparse(a), pl.Sparse(a)
    inverse = np.linalg.inv(a.toarray())
    np.testing.assert_allclose(pl.inv(op).diagonal(), inverse.diagonal(), rtol=1e-12)
    assert pl.trace(pl.inv(op.T)) == pytest.approx(np.trace(inverse), rel=1e-12)
    assert pl.trace(pl.inv(op) @ other) == pytest.approx(441, rel=1e-12)
    near = a.copy()
    near.data = rng.random(a.nnz)
    got = pl.trace(pl.inv(op) @ pl.Sparse(near))
    assert got == pytest.approx(np.trace(inverse @ near.toarray()), rel=1e-11)
    assert counted == {"factors": 1, "inverses": 1}


def test_other_numbers_have_their_own(rng, counted):
    """Written to in place, or one bit off: a factor and an inverse of its own."""
    a = grid(21)
    op = pl.Sparse(a)
    for shift in (0.0, 0.25, 1e-15):
        a.data[a.indices == np.repeat(np.arange(441), np.diff(a.indptr))] += shift
        due = np.linalg.inv(a.toarray()).diagonal()
        np.testing.assert_allclose(pl.inv(op).diagonal(), due, rtol=1e-12)
    b = grid(21).astype(np.complex128)
    np.testing.assert_allclose(
        pl.inv(pl.Sparse(b)).diagonal(), np.linalg.inv(b.toarray()).diagonal(), rtol=1e-12
    )


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("pivoted", [False, True])
def test_the_same_bits_whatever_was_asked_before(rng, dtype, pivoted):
    a = grid(21).astype(dtype)
    if pivoted:
        a = sp.csr_array(a + sp.random_array((441, 441), density=0.002, rng=rng))
    at, far = np.arange(441), rng.integers(0, 441, (2, 50))
    asked = [(at, at), a.nonzero(), tuple(far), (at[:-1], at[1:])]

    def answers(order):
        factor = _factor.Factor(a)
        found = {k: factor.entries(*asked[k]) for k in order}
        return [found[k] for k in range(len(asked))]

    first = answers([0, 1, 2, 3])
    for order in ([3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]):
        for x, y in zip(first, answers(order), strict=True):
            assert np.array_equal(x, y)
    inverse = np.linalg.inv(a.toarray())
    for x, (i, j) in zip(first, asked, strict=True):
        np.testing.assert_allclose(x, inverse[i, j], rtol=1e-9, atol=1e-13)


def test_what_is_kept_is_counted(rng):
    factor = _factor.Factor(grid(30))
    before = factor.nbytes
    factor.entries(np.arange(900), np.arange(900))
    kept = factor.inverse
    assert kept is not None
    held = sum(x.nbytes for x in vars(kept).values() if isinstance(x, np.ndarray))
    assert held - kept.d.nbytes - kept.at.nbytes <= selected_inverse.room(factor) * 24
    assert before == factor.nbytes > held


def test_factors_die_with_what_holds_them():
    a = grid(21, 0.875)  # of no other test: plans keep theirs
    made = _factor.factor_of_matrix(a)
    assert _factor.factor_of_matrix(a.copy()) is made
    assert _factor.factor_of_matrix(a) is made
    count = len(_factor._living)
    del made
    gc.collect()
    assert len(_factor._living) == count - 1
