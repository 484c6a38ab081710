"""Mixed models of one factor: traces of their inverses are those of the small matrix."""

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl


def groups(r, n, k):
    return sp.csr_array((r.uniform(1, 2, n), (np.arange(n), r.integers(0, k, n))), shape=(n, k))


WRITTEN = {
    "c Z Z.T": lambda S, c, s, n: c * S @ S.T + s * pl.Identity(n),
    "c (Z Z.T)": lambda S, c, s, n: s * pl.Identity(n) + c * (S @ S.T),
    "Z (c Z.T)": lambda S, c, s, n: S @ (c * S.T) + s * pl.Identity(n),
    "no number": lambda S, c, s, n: S @ S.T + s * pl.Identity(n),
}


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("n,k", [(40, 3), (100, 17), (200, 60)])
@pytest.mark.parametrize("s", [1e-6, 0.5, 1e4])
def test_traces_beside_the_dense_form(written, n, k, s):
    r = np.random.default_rng(n)
    Z = groups(r, n, k)
    S = pl.Sparse(Z)
    A, c = WRITTEN[written](S, 1.3, s, n), 1.0 if written == "no number" else 1.3
    d = Z.toarray()
    w = np.linalg.eigvalsh(d.T @ d)  # A^-1 on the columns of Z, without what A's condition costs
    small = np.maximum(w, 0) / (s + c * np.maximum(w, 0))
    with pl.config(check_plans=True):
        assert pl.trace(S.T @ pl.inv(A) @ S) == pytest.approx(small.sum(), rel=1e-11)
        assert pl.trace(pl.inv(A) @ S @ S.T) == pytest.approx(small.sum(), rel=1e-11)
        due = (n - k) / s + (1 / (s + c * np.maximum(w, 0))).sum()
        assert pl.trace(pl.inv(A)) == pytest.approx(due, rel=1e-9)


@pytest.mark.parametrize("written", WRITTEN)
def test_nothing_of_n_rows_and_k_columns_is_solved_with(written):
    n, k = 5000, 200
    r = np.random.default_rng(1)
    S = pl.Sparse(groups(r, n, k))
    A = WRITTEN[written](S, 1.3, 0.5, n)
    assert (S.T @ pl.inv(A) @ S).explain("trace").flops < 4 * k**3
    assert pl.inv(A).explain("trace").flops < 4 * k**3
