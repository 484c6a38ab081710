"""What a LazyArray is assumed to be (assume_a) reaches determinants and solves."""

import numpy as np
import pytest

import pylinop as pl

NOT_POSITIVE = np.diag([1.0, 2.0, -3.0, -4.0])


def assumed():
    return pl.lazy(NOT_POSITIVE, assume_a="pos")


def value(x):
    if isinstance(x, tuple):
        return pl.evaluate(*x)
    return x.toarray() if isinstance(x, pl.LazyArray) else x


@pytest.mark.parametrize(
    "f",
    [
        pl.slogdet,
        pl.logdet,
        pl.det,
        np.linalg.slogdet,
        np.linalg.det,
        lambda a: pl.inv_quad_logdet(a, np.ones(4)),
        lambda a: pl.logdet(pl.Kron(a, np.eye(2))),
        lambda a: pl.logdet(pl.aslinearoperator(a)),
        lambda a: pl.slogdet(a.T),
        lambda a: pl.slogdet(pl.inv(a)),
    ],
)
def test_determinants_of_what_is_not_positive(f):
    with pytest.raises(np.linalg.LinAlgError, match="assumed positive definite"):
        value(f(assumed()))
    with pl.config(check="none"), pytest.warns(pl.FallbackWarning):
        value(f(assumed()))


@pytest.mark.parametrize(
    "f",
    [
        lambda a, b: pl.solve(a, b),
        lambda a, b: pl.inv(a) @ b,
        lambda a, b: pl.inv(pl.aslinearoperator(a)) @ b,
        lambda a, b: pl.inv(pl.Kron(a, np.eye(1))) @ b,
        lambda a, b: np.linalg.solve(a, b),
    ],
)
def test_solves_with_what_is_not_positive(f):
    with pytest.warns(pl.FallbackWarning, match="assumed positive definite"):
        x = value(f(assumed(), np.ones(4)))
    np.testing.assert_allclose(x, 1 / np.diagonal(NOT_POSITIVE))


def test_slogdet_is_numpys(rng):
    a = rng.standard_normal((3, 5, 5))
    for given in (a, a[0], a + 1j * a.mT):
        A = pl.lazy(given)
        for form, want in (
            (A, given),
            (A.mT @ A, given.mT @ given),
            (pl.inv(A), np.linalg.inv(given)),
        ):
            found, wanted = pl.slogdet(form), np.linalg.slogdet(want)
            assert type(found) is type(wanted) and found.sign.dtype == wanted.sign.dtype
            np.testing.assert_allclose(found.sign, wanted.sign, rtol=1e-9)
            np.testing.assert_allclose(found.logabsdet, wanted.logabsdet, rtol=1e-9)
    deep = pl.lazy(np.broadcast_to(2 * np.eye(3), (1, 2, 1, 1, 1, 1, 1, 1, 3, 3)))
    assert pl.slogdet(deep).sign.shape == deep.shape[:-2]
    np.testing.assert_allclose(pl.slogdet(deep).logabsdet, 3 * np.log(2))
    with pytest.raises(np.linalg.LinAlgError, match="square"):
        pl.slogdet(pl.lazy(np.ones((2, 3))))
