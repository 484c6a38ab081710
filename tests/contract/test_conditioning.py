"""Solves with a matrix that is singular to working precision warn, once a call, with SciPy's
threshold; others do not."""

import warnings

import numpy as np
import pytest
import scipy.linalg

import pylinop as pl


def warned(f):
    """The reciprocal condition numbers that f warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f()
    texts = [str(w.message) for w in caught if issubclass(w.category, pl.IllConditionedWarning)]
    return [float(t.split("rcond=")[1].split(")")[0]) for t in texts]


def problem(n, rcond, dtype="d", seed=0):
    """A Hermitian positive definite matrix of about that reciprocal condition number."""
    rng = np.random.default_rng(seed)
    q = np.linalg.qr(rng.standard_normal((n, n)))[0].astype(dtype)
    if dtype in "FD":
        q = q @ np.diag(np.exp(1j * np.arange(n))).astype(dtype) @ q
    w = np.geomspace(1, rcond, n)
    a = (q * w.astype(dtype)) @ q.conj().T
    return (a + a.conj().T) / 2


ASSUMED = [None, "sym", "her", "pos"]


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("assume", ASSUMED)
@pytest.mark.parametrize("n", [3, 4, 31, 33, 64, 130])
def test_near_singular_dense_matrices(dtype, assume, n):
    if assume in ("sym", "her") and dtype in "FD" and assume == "sym":
        return
    a = problem(n, 1e-3, dtype)
    eps = np.finfo(dtype).eps
    assert warned(lambda: pl.solve(pl.Dense(a, assume), a[0])) == []
    assert warned(lambda: pl.solve(pl.Dense(a, assume), a)) == []
    assert warned(lambda: pl.inv(pl.Dense(a, assume)).toarray()) == []
    bad = a.copy()
    bad[-1] = bad[:, -1] = 0
    bad[-1, -1] = eps * eps  # A diagonal element stays definite, whatever is rounded.
    for f in (
        lambda op: pl.solve(op, a[0]),
        lambda op: pl.solve(op, a),
        lambda op: pl.inv(op).toarray(),
        lambda op: pl.inv(op) @ a[0],
        lambda op: np.asarray(pl.lazy(a) @ pl.inv(op)),
    ):
        found = warned(lambda f=f: f(pl.Dense(bad, assume)))
        assert len(found) == 1, found
        assert found[0] < eps


def test_hilbert_as_scipy():
    for n in range(2, 20):
        h = scipy.linalg.hilbert(n)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            scipy.linalg.solve(h, np.ones(n), assume_a="gen")
        ours = warned(lambda h=h: pl.solve(h, np.ones(len(h))))
        assert bool(ours) == bool(caught), n


def test_pivots_that_hide_it():
    """Every pivot is one; 2^-n is the condition all the same."""
    n = 70
    u = np.triu(-np.ones((n, n)), 1) + np.eye(n)
    assert warned(lambda: pl.solve(pl.Dense(u), np.ones(n)))
    assert warned(lambda: pl.solve(pl.Dense(u @ u.T, "pos"), np.ones(n)))
    assert not warned(lambda: pl.solve(pl.Dense(u[:40, :40]), np.ones(40)))


@pytest.mark.parametrize("n", [5, 40])
def test_every_direct_way(n):
    d = np.ones(n)
    d[n // 2] = 1e-20
    off = np.zeros(n - 1)
    ways = {
        "triangular": pl.Triangular(np.diag(d)),
        "tridiagonal": pl.Tridiagonal(off, d, off),
        "tridiagonal, pos": pl.Tridiagonal(off, d, off, "pos"),
        "banded": pl.Banded((2, 1), np.array([0 * d, d, 0 * d, 0 * d])),
        "product": pl.Dense(np.diag(d)) @ pl.Dense(np.eye(n)),
        "kron": pl.Kron(np.diag(d), np.eye(2)),
        "blockdiag": pl.BlockDiag(np.diag(d), np.eye(3)),
        "sum": pl.Dense(np.diag(d)) + pl.Dense(np.zeros((n, n))),
    }
    for name, op in ways.items():
        found = warned(lambda op=op: pl.solve(op, np.ones(op.shape[0])))
        assert len(found) == 1, name
        assert found[0] < 1e-15, name


def test_what_is_of_condition_one_does_not_warn():
    for op in (
        pl.Diag(np.full(20, 1e-300)),
        1e-30 * pl.Identity(20),
        pl.Permutation(np.arange(20)[::-1]),
    ):
        assert warned(lambda op=op: pl.solve(op, np.ones(20))) == []


def test_diagonals_as_scipy():
    """SciPy takes the range of a diagonal for its condition, though each component is right."""
    for last in (1e-30, 1e-17, 1e-13, 1.0):
        d = np.geomspace(1, last, 20)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            scipy.linalg.solve(np.diag(d), np.ones(20))
        ours = warned(lambda d=d: pl.solve(pl.Diag(d), np.ones(20)))
        assert bool(ours) == bool(caught), last


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("assume", [None, "pos", "sym"])
def test_nan_and_inf_are_no_matter_of_conditioning(value, assume):
    for n in (4, 40):
        a = np.eye(n)
        a[2, 2] = value
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", pl.FallbackWarning)
            warnings.simplefilter("error", pl.IllConditionedWarning)
            pl.solve(pl.Dense(a, assume), np.ones(n))


def test_kept_factors_warn_again():
    a = pl.Dense(scipy.linalg.hilbert(20))
    assert len(warned(lambda: pl.solve(a, np.ones(20)))) == 1
    assert len(warned(lambda: pl.solve(a, np.ones(20)))) == 1
    assert len(warned(lambda: pl.solve(a, np.ones((20, 3))))) == 1


def test_batches_warn_once_with_the_worst():
    a = np.stack([np.eye(40), scipy.linalg.hilbert(40), np.diag(np.r_[np.ones(39), 1e-30])])
    found = warned(lambda: pl.solve(pl.Dense(a), np.ones((3, 40, 1))))
    assert len(found) == 1
    assert found[0] == pytest.approx(1e-30, rel=0.1)


def test_the_class_and_the_words():
    assert issubclass(pl.IllConditionedWarning, RuntimeWarning)
    with pytest.warns(pl.IllConditionedWarning, match=r"rcond=.*lstsq(.|\n)*Dense \(20, 20\)") as w:
        pl.solve(pl.Dense(scipy.linalg.hilbert(20)), np.ones(20))
    assert w[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", pl.IllConditionedWarning)
        with pytest.raises(pl.IllConditionedWarning):
            pl.solve(pl.Dense(scipy.linalg.hilbert(20)), np.ones(20))
