"""A matrix that is assumed diagonal or tridiagonal is that kind to every action: products, solves,
determinants, diagonals, inverses, sums and views read these diagonals alone, at their cost."""

import numpy as np
import pytest

import pylinop as pl

SIZES = [0, 1, 2, 15, 16, 17, 100]
WORDS = {"diagonal": 0, "tridiagonal": 1}


def drawn(word, shape, dtype, garbage=np.nan):
    """The matrix that is meant, and the array that is given: `garbage` beside the diagonals."""
    rng = np.random.default_rng([shape[-1], WORDS[word]])
    a = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal(shape)
    k, n = WORDS[word], shape[-1]
    meant = (np.triu(np.tril(a, k), -k) + 4 * np.eye(n)).astype(dtype)
    inside = np.triu(np.tril(np.ones((n, n), bool), k), -k)
    return meant, np.where(inside, meant, np.asarray(garbage, dtype))


def close(found, wanted, dtype):
    found, tol = np.asarray(found), 2e-4 if np.dtype(dtype) == np.float32 else 1e-11
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=tol, atol=tol)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.float32])
@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("word", WORDS)
def test_every_action_reads_the_named_diagonals_alone(word, n, batch, dtype):
    meant, given = drawn(word, (*batch, n, n), dtype)
    A = pl.Dense(given, assume_a=word)
    B = np.random.default_rng(n).standard_normal((*batch, n, 3)).astype(dtype)
    turned = np.swapaxes(meant, -1, -2)
    for op, a in [
        (A, meant),
        (A.T, turned),
        (A.H, turned.conj()),
        (2 * A + A.T, 2 * meant + turned),
    ]:
        close(op @ B, a @ B, dtype)
        close(pl.solve(op, B), np.linalg.solve(a, B), dtype)
        close(pl.slogdet(op)[1], np.linalg.slogdet(a)[1], dtype)
        close(op.toarray(), a, dtype)
        close(pl.diagonal(op), np.diagonal(a, 0, -2, -1), dtype)
        close(pl.trace(op), np.trace(a, axis1=-2, axis2=-1), dtype)
        close(pl.diagonal(pl.inv(op)), np.diagonal(np.linalg.inv(a), 0, -2, -1), dtype)
    close((A + pl.Identity(n)) @ B, meant @ B + B, dtype)
    close((pl.Diag(np.ones(n, dtype)) @ A).toarray(), meant, dtype)
    close(pl.svdvals(A), np.linalg.svd(meant, compute_uv=False), dtype)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("word", WORDS)
def test_lazy_arrays_too(word, n):
    meant, given = drawn(word, (n, n), float)
    A, B = pl.lazy(given, assume_a=word), np.random.default_rng(n).standard_normal((n, 3))
    close(A @ B, meant @ B, float)
    close(B.T @ A, B.T @ meant, float)
    close(A.T @ A @ B, meant.T @ meant @ B, float)
    close(pl.inv(A) @ B, np.linalg.solve(meant, B), float)
    close(pl.solve(A.T, B), np.linalg.solve(meant.T, B), float)
    close(pl.trace(A), np.trace(meant), float)
    close(pl.logdet(A.T @ A), np.linalg.slogdet(meant.T @ meant)[1], float)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, bool])
def test_integers_are_exact(dtype):
    given = np.arange(25).reshape(5, 5).astype(dtype)
    A, x = pl.Dense(given, assume_a="tridiagonal"), np.arange(5).astype(dtype)
    found = A @ x
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.triu(np.tril(given, 1), -1) @ x)


@pytest.mark.parametrize("word", WORDS)
def test_it_costs_what_the_kind_costs(word):
    n = 400
    meant, _ = drawn(word, (n, n), float)
    A, view = pl.Dense(meant, assume_a=word), [np.diagonal(meant, k) for k in (-1, 0, 1)]
    K = pl.Diag(view[1]) if word == "diagonal" else pl.Tridiagonal(*view)
    b = np.ones((n, 8))

    def flops(op, action, *args):
        return op.explain(action, *args).flops

    for mine, kind in [(A, K), (A.T, K.T), (A + A, K + K), (2 * A, 2 * K), (A @ A, K @ K)]:
        assert flops(mine, "apply", b) <= 1.3 * flops(kind, "apply", b)
        assert flops(mine, "solve", b) <= 1.3 * flops(kind, "solve", b)
        assert flops(mine, "logdet") <= 1.3 * flops(kind, "logdet")


def test_later_writes_are_seen():
    a = np.diag([1.0, 2.0])
    A = pl.Dense(a, assume_a="diagonal")
    assert pl.logdet(A) == np.log(2.0)
    a[0, 0] = 3.0
    np.testing.assert_allclose(pl.solve(A, np.ones(2)), [1 / 3, 1 / 2])
    np.testing.assert_allclose(pl.logdet(A), np.log(6.0))


@pytest.mark.parametrize("word", WORDS)
def test_a_full_check_shows_what_lies_beside(word):
    _, given = drawn(word, (6, 6), float, garbage=0.0)
    given[1, 4] = 7.0
    A = pl.Dense(given, assume_a=word)
    with pl.config(check="full"):
        with pytest.raises(ValueError, match=rf"assumed {word}, but element \(1, 4\) is 7"):
            A @ np.ones(6)
        with pytest.raises(ValueError, match="element"):
            pl.svdvals(A)
        given[1, 4] = 0.0
        A @ np.ones(6)


def test_other_kinds_keep_their_own_structure():
    d = np.arange(1.0, 5.0)
    T = pl.Tridiagonal(d[1:], d, d[1:], assume_a="diagonal")
    assert T.toarray()[0, 1] == 2.0
