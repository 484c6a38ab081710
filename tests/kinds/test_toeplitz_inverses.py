"""The inverses of Toeplitz and Hankel matrices in all their numbers: columns and rows have the
backward error of solves, or the dense form is taken; symmetric ones are so to the last bit."""

import numpy as np
import pytest
import scipy.linalg

import pylinop as pl

DTYPES = ["float32", "float64", "complex64", "complex128"]


def numbers(rng, n, dtype):
    x = rng.standard_normal(n)
    return (x + 1j * rng.standard_normal(n) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def drawn(name, n, dtype, rng):
    """(operator, dense)"""
    k, c, r = np.arange(n), numbers(rng, n, dtype), numbers(rng, n, dtype)
    if name == "Hankel":
        r[0] = c[-1]
        return pl.Hankel(c, r), scipy.linalg.hankel(c, r)
    if name == "general":
        r[0] = c[0]
    elif name == "small pivots":
        c[0] = r[0] = 1e-9
    elif name == "own":
        c[0] = c[0].real + 2
        return pl.Toeplitz(c), scipy.linalg.toeplitz(c)
    elif name == "not quite own":
        c[0] += 2
        r = c.conj()
        r[0] = c[0]
    else:  # smooth, and nearly singular
        c = (np.exp(-((k / 5.0) ** 2)) + 1e-10 * (k == 0)).astype(dtype)
        r = c
    return pl.Toeplitz(c, r), scipy.linalg.toeplitz(c, r)


def backward_errors(inverse, dense):
    wide = dense.astype(np.result_type(dense, np.longdouble))
    size, eye = np.linalg.norm(dense.astype(complex), 2), np.eye(len(dense))
    for a, b in ((wide, inverse.astype(wide.dtype)), (wide.T, inverse.T.astype(wide.dtype))):
        left = np.sqrt((np.abs(a @ b - eye) ** 2).sum(0))
        yield (left / (size * np.sqrt((np.abs(b) ** 2).sum(0)) + 1)).max()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [40, 63, 96, 97, 150])
@pytest.mark.parametrize(
    "name", ["own", "not quite own", "general", "Hankel", "small pivots", "nearly singular"]
)
def test_columns_and_rows_are_as_good_as_solves(name, n, dtype):
    op, dense = drawn(name, n, dtype, np.random.default_rng())
    with pl.config(check_plans=True), pl.explaining() as e:
        inverse = pl.inv(op).toarray()
    took = {s["name"] for p in e.plans for s in p.steps if s["took"] is not None}
    assert inverse.dtype == dense.dtype
    unit, errors = np.finfo(dtype).eps, list(backward_errors(inverse, dense))
    assert errors[0] <= 10 * n * unit
    if not took & {"potrf", "getrf"}:  # from both sides
        assert errors[1] <= 10 * n * unit
        if name == "own":
            np.testing.assert_array_equal(inverse, inverse.conj().T)
        if name == "Hankel":
            np.testing.assert_array_equal(inverse, inverse.T)
    if name == "own" and n >= 96:
        assert "toeplitz_inverse" in took


def test_views_multiples_batches_and_parts(rng):
    n = 128
    c, r = rng.standard_normal((2, 3, n)), rng.standard_normal((2, 3, n))
    c[..., 0] = r[..., 0] = 30
    T = pl.Toeplitz(c, r)
    dense = np.linalg.inv(T.toarray())
    close = {"rtol": 0, "atol": 1e-12}
    np.testing.assert_allclose(pl.inv(T).toarray(), dense, **close)
    np.testing.assert_allclose(pl.inv(T.T).toarray(), dense.swapaxes(-1, -2), **close)
    np.testing.assert_allclose((2 * pl.inv(T)).toarray(), 2 * dense, **close)
    one, own = pl.Toeplitz(c[0, 0], r[0, 0]), pl.Toeplitz(c[0, 1])
    for op in (one, own, one.T, -2 * own, own + 3 * pl.Identity(n), one + one.T):
        dense = np.linalg.inv(op.toarray())
        inverse = pl.inv(op)
        with pl.config(verify=True):
            np.testing.assert_allclose(inverse.toarray(), dense, **close)
        np.testing.assert_allclose(inverse[3], dense[3], **close)
        np.testing.assert_allclose(inverse[5, 7], dense[5, 7], **close)
        np.testing.assert_allclose(inverse[4:60, 10:80].toarray(), dense[4:60, 10:80], **close)


def test_singular_and_what_is_no_number(rng):
    c = np.ones(100)
    with pytest.raises(np.linalg.LinAlgError):
        pl.inv(pl.Toeplitz(c)).toarray()
    c = rng.standard_normal(100)
    c[0], c[7] = 30, np.nan
    try:
        assert np.isnan(pl.inv(pl.Toeplitz(c)).toarray()).any()
    except np.linalg.LinAlgError:
        pass
    for scale in (1e-200, 1e200):
        c[7] = 0.5
        got = pl.inv(pl.Toeplitz(scale * c)).toarray() * scale
        np.testing.assert_allclose(got, np.linalg.inv(pl.Toeplitz(c).toarray()), rtol=0, atol=1e-13)
