"""A determinant of what was assumed positive definite and is not is an error, not a number."""

import warnings

import numpy as np
import pytest

import pylinop as pl


def kinds(n):
    """Two negative eigenvalues: the determinant is positive, and looks as if it were meant."""
    d = np.r_[-1.0, -2.0, np.ones(n - 2)]
    p = pl.Dense(np.diag(d), "pos")
    zero = np.zeros(n - 1)
    return {
        "dense": p,
        "tridiagonal": pl.Tridiagonal(zero, d, zero, "pos"),
        "banded": pl.Banded((1, 1), np.array([np.zeros(n), d, np.zeros(n)]), "pos"),
        "blocks": pl.BlockTridiagonal(
            np.zeros((1, 2, 2)), np.array([-np.eye(2), np.eye(2)]), np.zeros((1, 2, 2)), "pos"
        ),
        "multiple": 2 * p,
        "kron": pl.Kron(p, np.eye(2)),
        "blockdiag": pl.BlockDiag(p, np.eye(2)),
        "product": p @ pl.Diag(np.ones(n) * 2),
        "power": p**2,
        "batch": pl.Dense(np.stack([np.eye(n), np.diag(d)]), "pos"),
        "complex": pl.Dense(np.diag(d).astype(complex), "pos"),
        "single": pl.Dense(np.diag(d).astype("f"), "pos"),
        "lazy": pl.lazy(np.diag(d), "pos"),
    }


ASKED = {
    "logdet": pl.logdet,
    "slogdet": lambda a: pl.slogdet(a).logabsdet,
    "det": pl.det,
    "quad": lambda a: pl.inv_quad_logdet(a, np.ones(a.shape[-1])).logdet,
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("n", [5, 33, 40])
def test_a_determinant_is_an_error(asked, n):
    for name, a in kinds(n).items():
        if (name, asked) in (("lazy", "quad"), ("batch", "quad"), ("lazy", "slogdet")):
            continue  # slogdet of a LazyArray reads its value alone
        with warnings.catch_warnings(), pytest.raises(np.linalg.LinAlgError, match="assumed"):
            warnings.simplefilter("ignore", pl.FallbackWarning)
            np.asarray(ASKED[asked](a))
            pytest.fail(name)


@pytest.mark.parametrize("n", [5, 40])
def test_again_with_what_is_kept(n):
    a = kinds(n)["dense"]
    with pytest.warns(pl.FallbackWarning):
        pl.solve(a, np.ones(n))
    for _ in range(3):
        with pytest.raises(np.linalg.LinAlgError, match="check='none'"):
            pl.logdet(a)


@pytest.mark.parametrize("n", [5, 40])
def test_check_none_gives_the_number_of_lu(n):
    a = kinds(n)["dense"]
    with pl.config(check="none"), pytest.warns(pl.FallbackWarning):
        assert pl.det(a) == pytest.approx(2)
    with pytest.raises(np.linalg.LinAlgError):
        pl.cholesky(a)
    with pytest.raises(np.linalg.LinAlgError):
        pl.sample(a, rng=0)


@pytest.mark.parametrize("n", [5, 40])
def test_solves_go_on_and_nan_passes(n):
    a = kinds(n)["dense"]
    with pytest.warns(pl.FallbackWarning):
        np.testing.assert_allclose(pl.solve(a, np.ones(n))[:2], [-1, -0.5])
    bad = np.eye(n)
    bad[1, 1] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isnan(pl.logdet(pl.Dense(bad, "pos")))
