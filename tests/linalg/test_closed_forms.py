"""Functions of DFT, Selection, Full and Root by closed forms, against the dense form."""

import numpy as np
import pytest
import scipy.linalg

import pylinop as pl


def by_rows(name, A):
    """The rows that a function goes by; none on the dense form."""
    return [s["name"] for s in A.explain(name).steps if s["name"].endswith("-dense")] == []


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 15, 16, 17, (4, 3), (2, 2, 3), (1, 5)])
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
def test_dft(n, norm):
    F = pl.DFT(n, norm)
    a = F.toarray()
    size = float(np.abs(np.linalg.eigvals(a)).max())
    w = pl.eigvals(F)
    np.testing.assert_allclose(np.poly(w / size), np.poly(a / size), atol=1e-10)
    assert by_rows("eigvals", F) and by_rows("expm", F)
    np.testing.assert_allclose(pl.expm(F / size).toarray(), scipy.linalg.expm(a / size), atol=1e-12)
    shifted = F.H + 9 * size * pl.Identity(len(a))
    got = pl.funm(shifted, lambda x: 1 / x).toarray()
    np.testing.assert_allclose(got, np.linalg.inv(shifted.toarray()), atol=1e-12 / size)
    root = pl.sqrtm(F).toarray()
    np.testing.assert_allclose(root @ root, a, atol=1e-12 * size * len(a))
    single = pl.expm(pl.DFT(n, norm, np.complex64) / size)
    assert (
        single.dtype == np.complex64
        and pl.eigvals(pl.DFT(n, norm, np.complex64)).dtype == np.complex64
    )


@pytest.mark.parametrize("m, n", [(1, 1), (3, 5), (5, 3), (16, 17), (17, 17), (30, 4)])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_selection_full_and_root(m, n, batch, rng):
    S = pl.Selection(rng.integers(-n, n, (*batch, m)), n)
    a = np.asarray(S.toarray()).astype(float)
    np.testing.assert_allclose(pl.svdvals(S), np.linalg.svd(a, compute_uv=False), atol=1e-12)
    np.testing.assert_allclose(pl.pinv(S).toarray(), np.linalg.pinv(a), atol=1e-12)
    if m == n and not batch:
        np.testing.assert_allclose(np.poly(pl.eigvals(S)), np.poly(a), atol=1e-8)
    b = rng.standard_normal((*batch, m, 2))
    F = pl.Full((*batch, m, n), 1.5 - 2j)
    np.testing.assert_allclose(pl.lstsq(F, b)[0], np.linalg.pinv(F.toarray()) @ b, atol=1e-12)
    N = np.asarray(pl.null_space(F).toarray())
    assert N.shape[-1] == n - 1 and pl.orth(F).shape[-1] == 1
    np.testing.assert_allclose(F.toarray() @ N, np.zeros((*batch, m, n - 1)), atol=1e-11)
    L = rng.standard_normal((*batch, m, min(m, n))) + 4 * np.eye(m, min(m, n))
    R = pl.Root(L)
    want = np.linalg.pinv(R.toarray(), rcond=1e-10)
    size = np.abs(want).max()
    np.testing.assert_allclose(pl.pinv(R, rcond=1e-10).toarray(), want, atol=1e-7 * size)
    x = pl.lstsq(R, b, rcond=1e-10)[0]
    np.testing.assert_allclose(x, want @ b, atol=1e-6 * size * np.abs(b).max())


def test_selections_out_of_range():
    for function in (pl.svdvals, pl.pinv, pl.eigvals):
        with pytest.raises(IndexError):
            function(pl.Selection([0, 1, 3], 3))


@pytest.mark.parametrize("n", [1, 2, 3, 16, 17, 100_000])
def test_selections_that_lead_far(n):
    """A chain of n steps to a cycle of one, and of two: found in few steps for all n."""
    chain = np.maximum(np.arange(n) - 1, 0)
    assert (pl.eigvals(pl.Selection(chain, n)) == np.eye(1, n)[0]).all()
    chain[0] = min(1, n - 1)
    due = [1.0] if n == 1 else [-1.0, *np.zeros(n - 2), 1.0]
    np.testing.assert_allclose(np.sort_complex(pl.eigvals(pl.Selection(chain, n))), due, atol=1e-15)


def test_ldl_of_zero_times_what_is_not_hermitian(rng):
    a = rng.standard_normal((4, 4)) + 1j * rng.standard_normal((4, 4))
    L, D, _ = pl.ldl(0.0 * pl.Dense(a))
    assert not np.asarray((L @ D).toarray() if hasattr(L @ D, "toarray") else L @ D).any()
