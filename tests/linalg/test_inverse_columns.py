"""Each column of an inverse solves its system as accurately as a solve: the promise on solves.

LAPACK's getri keeps X A near to I row by row, and leaves residuals A x - e of some u cond(A) in
columns that are smaller than others."""

import numpy as np
import pytest

import pylinop as pl


def draw(rng, dtype, *shape):
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x


def triangle_and_more(rng, dtype, n, lower=True):
    """A triangle beside a matrix of rank one: the columns of the inverse differ by orders."""
    cut = np.tril if lower else np.triu
    return (cut(draw(rng, dtype, n, n)) + draw(rng, dtype, n, 1) @ draw(rng, dtype, 1, n)).astype(
        dtype
    )


def worst(A, X):
    """The largest backward error of a column, over 10 n u. The residual, taken in double precision,
    is off by n u at the most itself."""
    wide, u = np.dtype(complex if A.dtype.kind == "c" else float), np.finfo(A.dtype).eps / 2
    left = A.astype(wide) @ X.astype(wide) - np.eye(len(A))
    size = np.linalg.norm(A.astype(wide), 2) * np.linalg.norm(X.astype(wide), axis=0) + 1
    return (np.linalg.norm(left, axis=0) / size).max() / (10 * len(A) * u)


@pytest.mark.filterwarnings("ignore::pylinop.IllConditionedWarning")
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("n", [2, 17, 32, 33, 34, 63, 100])
def test_each_column_is_a_solution(n, lower, dtype):
    A = triangle_and_more(np.random.default_rng(n), dtype, n, lower)
    for order in "CF":
        op = pl.Dense(np.array(A, order=order))
        for view, dense in ((op, A), (op.T, A.T), (op.H, A.conj().T)):
            assert worst(dense, pl.inv(view).toarray()) < 1
    assert worst(A.T, pl.inv(op).T.toarray()) < 1
    assert worst(A.conj(), pl.inv(op).conj().toarray()) < 1
    assert worst(A, pl.solve(op, np.eye(n, dtype=dtype))) < 1
    assert worst(2 * A.T, np.asarray(pl.inv(2 * pl.lazy(A).T))) < 1


@pytest.mark.filterwarnings("ignore::pylinop.IllConditionedWarning")
@pytest.mark.parametrize("n", [511, 520, 600])
def test_where_blocks_of_columns_grow(n):
    """They have n / 8 columns from 520 rows on."""
    A = triangle_and_more(np.random.default_rng(n), "float32", n)
    assert worst(A, pl.inv(pl.Dense(A)).toarray()) < 1
    for view, dense in ((pl.Dense(A).T, A.T), (pl.Dense(A).conj(), A.conj())):
        assert worst(dense, pl.inv(view).toarray()) < 1


@pytest.mark.parametrize("n", [33, 100, 521])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_views_have_one_factor(n, dtype):
    """The inverse of what is seen through a mode, beside solves and the determinant: one getrf."""
    rng = np.random.default_rng(n)
    A = draw(rng, dtype, n, n).astype(dtype)
    y = draw(rng, dtype, n).astype(dtype)
    for i, f in enumerate((np.transpose, np.conj, lambda x: np.conj(x).T)):
        op = pl.lazy(A) + 0.5 * pl.Identity(n)
        seen = (op.T, op.conj(), op.conj().T)[i]
        with pl.explaining() as e:
            found, x, log = pl.evaluate(pl.inv(seen), pl.solve(op, y), pl.slogdet(op)[1])
        assert str(e).count(" getrf ") == 1, e
        dense = A + np.asarray(0.5 * np.eye(n), dtype)
        assert worst(f(dense), found) < 1
        size = np.linalg.norm(dense) * np.linalg.norm(x)
        assert np.linalg.norm(dense @ x - y) < 10 * np.finfo(dtype).eps * size
        np.testing.assert_allclose(np.real(log), np.linalg.slogdet(dense)[1], rtol=1e-4)


@pytest.mark.parametrize("n", [33, 40, 64, 100, 129])
def test_by_cholesky_and_where_it_fails(n):
    rng = np.random.default_rng(n)
    q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    for sizes in (
        10.0 ** -rng.uniform(0, 12, n),
        10.0 ** -rng.uniform(0, 9, n) * (-1.0) ** np.arange(n),
    ):
        A = (q * sizes) @ q.T
        A = (A + A.T) / 2
        assert worst(A, pl.inv(pl.Dense(A, assume_a="her")).toarray()) < 1
        both = pl.Dense(A) + pl.Dense(A.T.copy())
        assert worst(2 * A, pl.inv(both).toarray()) < 1
    A = (q * np.abs(sizes)) @ q.T
    assert worst((A + A.T) / 2, pl.inv(pl.Dense((A + A.T) / 2, assume_a="pos")).toarray()) < 1


def test_a_zero_pivot_is_said():
    A = np.random.default_rng(0).standard_normal((70, 70))
    A[:, 3] = 0
    with pytest.raises(np.linalg.LinAlgError, match="pivot 4 of 70"):
        pl.inv(pl.Dense(A)).toarray()
