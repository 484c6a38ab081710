"""inv_quad_logdet takes one factor for its two numbers, as evaluate does."""

import numpy as np
import pytest

import pylinop as pl
from pylinop import _core

FACTORS = {"toeplitz-factor", "potrf", "getrf", "spectrum", "gbtrf", "pbtrf"}


def cases(rng, n, dtype):
    U = rng.standard_normal((n, 3)).astype(dtype)
    c = 0.9 ** np.arange(n)
    d = (rng.random(n) + 1).astype(dtype)
    r = (0.1 * rng.standard_normal((2, n))).astype(dtype)
    r[:, 0] = 9
    yield "Toeplitz", pl.Toeplitz(c.astype(dtype)), 1
    yield "Toeplitz + c I", pl.Toeplitz(c.astype(dtype)) + 0.1 * pl.Identity(n), 1
    yield "Toeplitz(c, r)", pl.Toeplitz(*r), 1
    yield "Dense", pl.Dense(U @ U.T + np.eye(n, dtype=dtype), "pos"), 1
    yield "Diag + U U^T", pl.Diag(d) + pl.LowRank(U), 1
    yield "Tridiagonal", pl.Tridiagonal(r[0][:-1], d + 9, r[1][:-1]), 1


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("columns", [0, 1, 3])
@pytest.mark.parametrize("n", [127, 128, 300])
def test_one_factor(n, columns, dtype):
    rng = np.random.default_rng(n)
    y = rng.standard_normal((n, columns) if columns else n).astype(dtype)
    for name, A, most in cases(rng, n, dtype):
        _core._clear_store()
        with pl.config(check_plans=True), pl.explaining() as log:
            quad, det = pl.inv_quad_logdet(A, y)
        steps = [s for p in log.plans for s in p.steps if s["took"] is not None]
        made = [s["name"] for s in steps if s["kept"] and s["name"] in FACTORS]
        if n >= 128:
            assert len(made) <= most, (name, made)
        dense = A.toarray().astype(float)
        want = (y * np.linalg.solve(dense, y)).sum(axis=-2 if columns else -1)
        tol = 1e-3 if dtype == "float32" else 1e-9
        np.testing.assert_allclose(quad, want, rtol=tol, err_msg=name)
        np.testing.assert_allclose(det, np.linalg.slogdet(dense)[1], rtol=tol, atol=tol)
        assert np.asarray(quad).dtype == dtype and np.asarray(det).dtype == dtype
        assert np.shape(quad) == y.shape[1:] and np.shape(det) == ()
        assert isinstance(det, np.generic)


def test_singular_and_negative():
    d = np.ones(200)
    d[3] = 0
    with pytest.raises(np.linalg.LinAlgError):
        pl.inv_quad_logdet(pl.Diag(d), d)
    d[3] = -1
    quad, det = pl.inv_quad_logdet(pl.Diag(d), np.ones(200))
    assert quad == 198 and np.isnan(det)


def test_a_batch_of_right_sides_is_no_batch_of_matrices():
    """An error names no element of a batch that A has not."""
    with pytest.raises(np.linalg.LinAlgError) as e:
        pl.inv_quad_logdet(pl.Dense(np.zeros((200, 200))), np.ones((3, 200, 2)))
    assert "batch" not in str(e.value)


def test_where_estimates_are_allowed_each_goes_its_own_way():
    """No dense factor is made for both where the determinant may be an estimate."""
    rng = np.random.default_rng(5)
    n = 4000
    A = pl.Toeplitz(np.exp(-np.arange(n) / 3.0)) + pl.Diag(rng.random(n) + 1)
    y = rng.standard_normal(n)
    with pl.config(accuracy="estimate"), pl.explaining() as log:
        quad, det = pl.inv_quad_logdet(A, y)
        assert type(det) is type(pl.logdet(A)) is pl.Estimate
    steps = [s["name"] for p in log.plans for s in p.steps if s["took"] is not None]
    assert not {"potrf", "getrf"} & set(steps)
    np.testing.assert_allclose(quad, y @ pl.solve(A, y), rtol=1e-8)
