"""``op / s`` where s is a LazyArray: what is divided stays an operator, and s has a derivative."""

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl

rng = np.random.default_rng(5)
N = 40
KINDS = {
    "Diag": pl.Diag(rng.uniform(1, 2, N)),
    "Toeplitz": pl.Toeplitz(0.5 ** np.arange(N)),
    "Kron": pl.Kron(rng.standard_normal((5, 5)), rng.standard_normal((8, 8))),
    "LowRank": pl.LowRank(rng.standard_normal((N, 3)), rng.standard_normal((N, 3))),
    "Sparse": pl.Sparse(sp.random_array((N, N), density=0.2, rng=rng, format="csr")),
    "Dense": pl.Dense(rng.standard_normal((N, N)).astype(np.float32)),
    "complex": pl.Circulant(rng.standard_normal(N) + 1j * rng.standard_normal(N)),
    "integers": pl.Diag(rng.integers(1, 9, N)),
    "Sum": pl.Diag(rng.uniform(1, 2, N)) + pl.Identity(N),
    "stack": pl.Diag(rng.uniform(1, 2, (3, N))),
}
SPELLINGS = {
    "/": lambda op, s: op / s,
    "np.divide": lambda op, s: np.divide(op, s),
    "np.true_divide of a LazyArray": lambda op, s: np.true_divide(pl.lazy(op), s),
    "of a LazyArray": lambda op, s: pl.lazy(op) / s,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_values(kind, spelling):
    op, over = KINDS[kind], SPELLINGS[spelling]
    dense = op.toarray()
    for s in (np.array(0.3), np.array(-4.0 + 1j), np.array(3), np.array(0.7, "f"), np.array(2)):
        expected = dense / s
        found = over(op, pl.lazy(s))
        assert found.shape == expected.shape and found.dtype == expected.dtype
        eps = 4 * np.finfo(expected.dtype).eps
        np.testing.assert_allclose(np.asarray(found), expected, rtol=eps, atol=4 * eps)
        x = rng.standard_normal(N)
        np.testing.assert_allclose(
            np.asarray(found @ x), expected @ x, rtol=1e3 * eps, atol=1e3 * eps
        )


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_structure_stays(spelling):
    s = pl.lazy(np.array(0.3))
    with pl.explaining() as e:
        np.asarray(pl.solve(SPELLINGS[spelling](KINDS["Toeplitz"], s), np.ones(N)))
    assert "Toeplitz factors" in str(e), e


@pytest.mark.parametrize("kind", ["Diag", "Toeplitz", "Kron", "Sparse", "Dense", "Sum"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_derivatives(kind, spelling):
    op, over, x = KINDS[kind], SPELLINGS[spelling], rng.standard_normal(N)

    def f(s):
        A = over(op.T @ op, s) + pl.Identity(N)
        return x @ pl.solve(A, x) + pl.logdet(A) + pl.trace(over(op, s))

    g = pl.grad(f)(np.array(0.7))
    h = 1e-4
    assert abs(g - (float(f(np.array(0.7 + h))) - float(f(np.array(0.7 - h)))) / (2 * h)) < (
        1e-5 * max(1, abs(g))
    )


def test_what_is_no_number_is_refused():
    for other in (np.ones((N, N)), pl.lazy(np.ones((N, N))), pl.lazy(np.ones(N))):
        with pytest.raises(ValueError, match="Can only divide a linear operator by a scalar"):
            KINDS["Diag"] / other


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_what_has_no_dtype_of_its_own_takes_that_of_the_number(spelling):
    """Single precision was declared to be double."""
    for s, dtype in ((np.float32(3), "f"), (np.complex64(2j), "F"), (np.array(3), "d")):
        found = SPELLINGS[spelling](pl.Identity(3), pl.lazy(s))
        assert found.dtype == (pl.lazy(pl.Identity(3)) / s).dtype == np.dtype(dtype)
        np.testing.assert_array_equal(np.asarray(found), np.eye(3, dtype=dtype) / s)
