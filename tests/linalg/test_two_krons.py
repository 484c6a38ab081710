"""Solves, determinants and diagonals of inverses of k Kron(A, C) + l Kron(B, D), the generalized
Sylvester equation, by two LU and two Schur forms, against the dense form. What users write with
arrays that are identities, Kron(np.eye(m), A) + Kron(B, np.eye(n)), is among them."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.linalg as sla
from drawn import DTYPES, values
from test_stein import VIEWS, taken

import pylinop as pl

# On both sides of where Schur forms pay, and of 16.
SIZES = [(1, 1), (1, 17), (3, 4), (7, 6), (15, 16), (16, 17), (17, 15), (33, 6)]


def square(rng, n, dtype):
    """No normal matrix, and not near a singular one."""
    a = values(rng, (n, n), dtype)
    return (a + 2 * np.triu(values(rng, (n, n), dtype), 1) + 3 * n * np.eye(n)).astype(dtype)


def singular(rng, n):
    a = square(rng, n, float)
    a[:, -1] = a[:, 0]
    return a


def check(A, D, X):
    """Backward errors as of a direct solve; the determinant within what they mean for it."""
    n, u = D.shape[0], float(np.finfo(X.dtype).eps) / 2
    exact = D.astype(np.result_type(D.dtype, np.float64))
    spectrum = np.linalg.svdvals(exact)
    for M, x in ((exact, pl.solve(A, X)), (exact.T, (X.T @ pl.inv(A)).T)):
        assert x.dtype == X.dtype
        left, size, given = (np.linalg.norm(v, axis=0) for v in (X - M @ x, x, X))
        assert np.max(left / (spectrum[0] * size + given)) <= 10 * n * u
    sign, log = pl.slogdet(A)
    exact_sign, exact_log = np.linalg.slogdet(exact)
    worst = 20 * n * u * spectrum[0] / spectrum[-1] + n * u * abs(exact_log)
    np.testing.assert_allclose(log, exact_log, rtol=0, atol=worst)
    np.testing.assert_allclose(sign, exact_sign, rtol=0, atol=20 * n * u * spectrum[0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_agrees_with_the_dense_form(sizes, dtype, rng):
    m, n = sizes
    a, b, c, d = (square(rng, k, dtype) for k in (m, m, n, n))
    X = values(rng, (m * n, 3), dtype)
    for k, s in ((1, 1), (0.5, -3.0)):
        A = k * pl.Kron(a, c) + s * pl.Kron(b, d)
        check(A, (k * np.kron(a, c) + s * np.kron(b, d)).astype(dtype), X)
        written = pl.Kron(a, np.eye(n, dtype=dtype)) + s * pl.Kron(np.eye(m, dtype=dtype), d)
        check(written, np.asarray(written), X)


def test_views_of_all(rng):
    m, n = 7, 9
    a, b, c, d = (square(rng, k, complex) for k in (m, m, n, n))
    X = values(rng, (m * n, 2), complex)
    for one, two, whole in itertools.product(VIEWS, VIEWS, VIEWS):
        A = VIEWS[whole](
            2 * pl.Kron(VIEWS[one](pl.Dense(a)), VIEWS[two](pl.Dense(c))) + 1j * pl.Kron(b, d)
        )
        D = VIEWS[whole](2 * np.kron(VIEWS[one](a), VIEWS[two](c)) + 1j * np.kron(b, d))
        check(A, D, X)


def test_sylvester_written_with_arrays_takes_no_dense_form(rng):
    p = 40
    a, b, f = square(rng, p, float), square(rng, p, float), values(rng, (p, p), float)
    spelled = (
        pl.Kron(np.eye(p), a) + pl.Kron(b, np.eye(p)),
        pl.Kron(b, np.eye(p)) + pl.Kron(pl.Identity(p), a),
        pl.Kron(b, pl.Identity(p)) + pl.Kron(np.eye(p), a),
    )
    want = sla.solve_sylvester(b, a.T, f).ravel()
    for A in spelled:
        names = taken(lambda A=A: pl.solve(A, f.ravel()))
        assert "trsyl" in names and not {"kronarray", "potrf"} & set(names)
        np.testing.assert_allclose(pl.solve(A, f.ravel()), want, rtol=0, atol=1e-12)
        assert "schur_det" in taken(lambda A=A: pl.slogdet(A))


def _read_only(a):
    a.flags.writeable = False
    return a


GIVEN = {
    "integers": lambda a: np.rint(a).astype(int),
    "Fortran's order": np.asfortranarray,
    "backwards": lambda a: a[::-1, ::-1],
    "read-only": lambda a: _read_only(a.copy()),
    "a batch": lambda a: np.stack([a, 2 * a, a.T]),
}


@pytest.mark.parametrize("given", GIVEN)
def test_arrays_as_they_come(given, rng):
    m, n = 19, 21
    a, b, c, d = (GIVEN[given](square(rng, k, float)) for k in (m, m, n, n))
    A = pl.Kron(a, c) + pl.Kron(b, d)
    D, X = A.toarray().astype(float), values(rng, (m * n, 3), float)
    x = pl.solve(A, X)
    left = np.linalg.norm(D @ x - X, axis=(-2, -1))
    size = np.linalg.norm(D, axis=(-2, -1)) * np.linalg.norm(x, axis=(-2, -1))
    assert (left <= 1e-13 * (size + np.linalg.norm(X))).all()
    np.testing.assert_allclose(pl.logdet(A), np.linalg.slogdet(D)[1], rtol=1e-13)
    assert pl.solve(A, X[:, :0]).shape == (*A.shape[:-1], 0)


def test_nan_passes_through(rng):
    a, b, c, d = (square(rng, k, float) for k in (19, 19, 21, 21))
    x = values(rng, (19 * 21, 2), float)
    x[3, 0] = np.nan
    A = pl.Kron(a, c) + pl.Kron(b, d)
    y = pl.solve(A, x)
    assert np.isnan(y[:, 0]).all()
    assert np.linalg.norm(A @ y[:, 1] - x[:, 1]) <= 1e-12 * np.linalg.norm(x[:, 1])
    a[0, 0] = np.nan
    assert np.isnan(pl.solve(pl.Kron(a, c) + pl.Kron(b, d), np.ones(19 * 21))).all()


def test_one_form_for_each_factor_whatever_is_asked(rng):
    a, b, c, d = (square(rng, 20, float) for _ in range(4))
    A = pl.Kron(a, c) + pl.Kron(b, d)
    x = values(rng, (400,), float)
    assert taken(lambda: pl.solve(A, x)).count("gees") == 2
    for call in (lambda: pl.solve(A, x + 1), lambda: pl.slogdet(A)):
        assert "gees" not in taken(call)


@pytest.mark.parametrize("which", [(0,), (3,), (1,), (2,), (0, 3), (0, 1), (0, 1, 2, 3)], ids=str)
def test_singular_factors(which, rng):
    """The other way where one fails, the dense form where both do; singular ones raise."""
    m, n = 12, 11
    f = [square(rng, m, float), square(rng, n, float), square(rng, m, float), square(rng, n, float)]
    for i in which:
        f[i] = singular(rng, f[i].shape[0])
    A = pl.Kron(f[0], f[1]) + 0.5 * pl.Kron(f[2], f[3])
    D = np.kron(f[0], f[1]) + 0.5 * np.kron(f[2], f[3])
    X = values(rng, (m * n, 2), float)
    if np.linalg.cond(D) < 1e12:
        check(A, D, X)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises((np.linalg.LinAlgError, pl.IllConditionedWarning)):
                pl.solve(A, X)


def test_graded_ones_are_checked(rng):
    """What is inverted is nearly singular, the whole is not: the residual decides."""
    m, n = 14, 13
    for small in (1e-4, 1e-9, 1e-14):
        a, b, c, d = (square(rng, k, float) for k in (m, m, n, n))
        a[:, 0] *= small
        d[:, -1] *= small
        c[:, 2] *= small
        A, D = pl.Kron(a, c) + pl.Kron(b, d), np.kron(a, c) + np.kron(b, d)
        x = values(rng, (m * n,), float)
        y = pl.solve(A, x)
        assert np.linalg.norm(x - D @ y) <= 1e-13 * (
            np.linalg.norm(D, 2) * np.linalg.norm(y) + np.linalg.norm(x)
        )


def test_diagonals_of_inverses(rng):
    a, b, c, d = (square(rng, k, float) for k in (9, 9, 8, 8))
    A = pl.Kron(a, c) + pl.Kron(b, d)
    want = np.diagonal(np.linalg.inv(np.asarray(A)))
    got = pl.diagonal(pl.inv(A))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * np.abs(want).max())
