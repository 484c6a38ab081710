"""Spectra of Toeplitz matrices by halves, factors of bands that stay within the band."""

import numpy as np
import pytest

import pylinop as pl


def _column(n, dtype, seed=0):
    rng = np.random.default_rng(seed)
    c = rng.standard_normal(n)
    if dtype[0] == "c":
        c = c + 1j * rng.standard_normal(n)
        c[0] = c[0].real
    return c.astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 9, 40])
def test_hermitian_toeplitz(n, dtype):
    T = pl.Toeplitz(_column(n, dtype))
    dense = T.toarray()
    eps = 20 * n * np.finfo(dtype).eps * np.abs(dense).sum()
    want = np.linalg.eigvalsh(dense)
    w = pl.eigvalsh(T)
    assert w.dtype == want.dtype
    np.testing.assert_allclose(w, want, atol=eps)
    np.testing.assert_allclose(pl.eigvalsh(T.T), want, atol=eps)
    w, Q = pl.eigh(T)
    assert w.dtype == want.dtype and Q.dtype == dense.dtype
    q = Q.toarray()
    np.testing.assert_allclose(w, want, atol=eps)
    np.testing.assert_allclose(q.conj().T @ q, np.eye(n), atol=100 * n * np.finfo(dtype).eps)
    np.testing.assert_allclose(q * w @ q.conj().T, dense, atol=eps)
    np.testing.assert_allclose(pl.svdvals(T), np.linalg.svdvals(dense), atol=eps)


def test_other_toeplitz_and_hankel():
    c, r = _column(9, "f8"), _column(9, "f8", 1)
    r[0] = c[0]
    for A in (pl.Toeplitz(c, r), pl.Hankel(c, r), pl.Toeplitz(c[:5], r), pl.Toeplitz(1j * c, r)):
        np.testing.assert_allclose(pl.svdvals(A), np.linalg.svdvals(A.toarray()), atol=1e-13)
    lower = pl.Toeplitz(c, r)  # one triangle is read of what is not Hermitian
    for uplo in "LU":
        np.testing.assert_allclose(
            pl.linalg.eigvalsh(lower, UPLO=uplo), np.linalg.eigvalsh(lower.toarray(), uplo)
        )
    stack = pl.Toeplitz(np.stack([_column(7, "c16", k) for k in range(3)]))
    np.testing.assert_allclose(pl.eigvalsh(stack), np.linalg.eigvalsh(stack.toarray()), atol=1e-13)
    bad = _column(6, "f8")
    bad[2] = np.nan
    with pytest.raises(np.linalg.LinAlgError):  # as NumPy does
        pl.eigvalsh(pl.Toeplitz(bad))


def test_levels():
    rng = np.random.default_rng(0)
    t = rng.standard_normal((5, 7))
    for both in (t + t[::-1, ::-1], t):
        M = pl.MultilevelToeplitz(both)
        w, Q = pl.eigh(M)
        np.testing.assert_allclose(w, np.linalg.eigvalsh(M.toarray()), atol=1e-12)
        np.testing.assert_allclose(pl.eigvalsh(M), np.linalg.eigvalsh(M.toarray()), atol=1e-12)


def _banded(n, low, up, dtype, shift, seed=0):
    rng = np.random.default_rng(seed)
    ab = rng.standard_normal((low + up + 1, n))
    if dtype[0] == "c":
        ab = ab + 1j * rng.standard_normal(ab.shape)
    ab[up] += shift
    return pl.Banded((low, up), ab.astype(dtype))


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "i8"])
@pytest.mark.parametrize("shift", [0.0, 20.0])
@pytest.mark.parametrize(
    ("n", "low", "up"), [(1, 0, 0), (5, 0, 2), (9, 2, 1), (30, 3, 4), (4, 5, 7)]
)
def test_lu_of_a_band(n, low, up, shift, dtype):
    pytest.importorskip("scipy")
    A = _banded(n, low, up, dtype if dtype != "i8" else "f8", shift)
    if dtype == "i8":
        A = pl.Banded((low, up), np.rint(3 * A.ab).astype("i8"))
    P, L, U = pl.lu(A)
    dense = A.toarray()
    assert type(U) is pl.Banded and type(P) is pl.Permutation
    assert type(L) is pl.Banded or (shift == 0 and type(L) is pl.SparseTriangular)
    inner, most = L.toarray(), 50 * np.finfo(U.dtype).eps * np.abs(dense).sum()
    np.testing.assert_array_equal(np.triu(inner), np.eye(n))
    assert np.abs(inner).max() <= np.sqrt(2) + most  # of complex pivots the parts are compared
    np.testing.assert_allclose(P @ (inner @ U.toarray()), dense, atol=most)


def test_lu_of_others():
    pytest.importorskip("scipy")
    rng = np.random.default_rng(0)
    for A in (
        pl.Tridiagonal(*(rng.standard_normal(k) for k in (6, 7, 6))),
        pl.BlockTridiagonal(*(rng.standard_normal((k, 2, 2)) for k in (3, 4, 3))),
        pl.Banded((1, 1), rng.standard_normal((2, 3, 6))),  # a stack goes by the dense form
        pl.Banded((1, 0), np.ones((2, 4))) - pl.Identity(4),  # singular
    ):
        P, L, U = pl.lu(A)
        np.testing.assert_allclose(P.toarray() @ L.toarray() @ U.toarray(), A.toarray(), atol=1e-13)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_ldl_of_a_band(dtype):
    pytest.importorskip("scipy")
    half = _banded(12, 2, 0, dtype, 0).toarray()
    for shift, kind in ((9.0, pl.Banded), (0.0, None)):
        a = half + half.conj().T + shift * np.eye(12)
        ab = np.zeros((5, 12), dtype)
        for k in range(-2, 3):
            ab[2 - k, max(k, 0) : 12 + min(k, 0)] = a.diagonal(k)
        L, D, perm = pl.ldl(pl.Banded((2, 2), ab))
        assert kind is None or (type(L) is kind and type(D) is pl.Diag)
        np.testing.assert_allclose(L.toarray() @ D.toarray() @ L.toarray().conj().T, a, atol=1e-12)
        np.testing.assert_array_equal(np.triu(L.toarray()[perm]), np.eye(12))


def test_vectors_of_three_diagonals():
    pytest.importorskip("scipy")
    ab = np.array([[0, 1, 2j, 3], [4, 5, 6, 7], [1, -2j, 3, 0]])
    w, Q = pl.eigh(pl.Banded((1, 1), ab))
    a, q = pl.Banded((1, 1), ab).toarray(), Q.toarray()
    np.testing.assert_allclose(q * w @ q.conj().T, a, atol=1e-13)
    w, Q = pl.eigh(pl.Banded((0, 0), np.array([[3.0, 1.0, 2.0]])))
    np.testing.assert_array_equal(w, [1, 2, 3])


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize(
    ("n", "low", "up"), [(1, 0, 0), (2, 1, 0), (9, 0, 2), (30, 3, 1), (4, 5, 7)]
)
def test_singular_values_of_bands(n, low, up, dtype):
    A = _banded(n, low, up, dtype, 0.0)
    want = np.linalg.svdvals(A.toarray())
    most = 20 * n * np.finfo(dtype).eps * want[0]
    s = pl.svdvals(A)
    assert s.dtype == want.dtype
    np.testing.assert_allclose(s, want, atol=most)
    np.testing.assert_allclose(pl.svdvals(A.T), want, atol=most)
    np.testing.assert_allclose(pl.matrix_norm(A, ord=2), want[0], rtol=1e-4)


def test_singular_values_of_others():
    rng = np.random.default_rng(0)
    for A in (
        pl.Tridiagonal(*(rng.standard_normal((2, k)) for k in (6, 7, 6))),
        pl.BlockTridiagonal(*(rng.standard_normal((k, 2, 2)) for k in (3, 4, 3))),
        pl.Banded((1, 0), np.arange(12).reshape(2, 6)),
        pl.Banded((1, 2), np.zeros((4, 3))),
    ):
        want = np.linalg.svdvals(A.toarray().astype(float))
        np.testing.assert_allclose(pl.svdvals(A), want, atol=1e-12)
        np.testing.assert_array_equal(
            pl.linalg.matrix_rank(A), np.linalg.matrix_rank(A.toarray().astype(float))
        )
    # small ones to high relative accuracy, where A^T A would have none
    A = pl.Banded((0, 1), np.stack([np.ones(20), 10.0 ** -np.arange(20)]))
    np.testing.assert_allclose(np.prod(pl.svdvals(A)), 1e-190, rtol=1e-12)
    bad = pl.Banded((0, 1), np.full((2, 4), np.nan))
    with pytest.raises(np.linalg.LinAlgError):
        pl.svdvals(bad)


# -- some eigenvectors of a band --


def _hermitian(n, w, dtype, seed=0):
    rng = np.random.default_rng(seed)
    ab = rng.standard_normal((2 * w + 1, n))
    if dtype[0] == "c":
        ab = ab + 1j * rng.standard_normal(ab.shape)
        ab[w] = ab[w].real
    for k in range(1, w + 1):
        ab[w + k, : n - k] = ab[w - k, k:].conj()
    return pl.Banded((w, w), ab.astype(dtype))


def _pairs_hold(A, k, **how):
    a = A.toarray()
    w, Q = pl.linalg.eigh(A, k=k, method="direct", **how)
    q, eps = Q.toarray(), np.finfo(a.dtype).eps
    size = np.abs(a).sum(0).max()
    assert q.shape == (len(a), k) and q.dtype == a.dtype and w.dtype == a.real.dtype
    np.testing.assert_allclose(a @ q, q * w, atol=100 * eps * size)
    np.testing.assert_allclose(q.conj().T @ q, np.eye(k), atol=200 * eps)
    return w, np.linalg.eigvalsh(a), 100 * eps * size


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize(
    ("n", "width", "k"), [(2, 1, 1), (3, 2, 2), (60, 2, 59), (300, 5, 40), (300, 30, 10)]
)
def test_some_vectors_of_a_band(n, width, k, dtype):
    A = _hermitian(n, width, dtype)
    w, want, tol = _pairs_hold(A, k)
    np.testing.assert_allclose(w, want[-k:], atol=tol)
    w, want, tol = _pairs_hold(A, k, which="SA")
    np.testing.assert_allclose(w, want[:k], atol=tol)
    w, want, tol = _pairs_hold(A, 1, sigma=0.3)
    np.testing.assert_allclose(w, want[np.argmax(1 / (want - 0.3))], atol=tol)


def test_some_vectors_of_equal_and_close_values():
    n = 300
    close, same = np.zeros((5, n)), np.zeros((5, n))
    close[2] = np.abs(np.arange(n) - n // 2 + 0.5)  # Wilkinson's: pairs that agree to rounding
    close[0, 2:] = close[4, :-2] = 1
    same[2] = 1
    for ab in (close, same, 0 * same, 1e-200 * close, 1e200 * close):
        A = pl.Banded((2, 2), ab)
        for k in (1, 7, 90):
            w, want, tol = _pairs_hold(A, k)
            np.testing.assert_allclose(w, want[-k:], atol=tol)


def test_some_vectors_read_one_triangle_and_hold_no_square():
    pytest.importorskip("scipy")
    A, n = _hermitian(1500, 3, "c16"), 1500
    ab = A.ab.copy()
    ab[:3] = 7  # the upper triangle is not read
    B = pl.Banded((3, 3), ab)
    with pl.config(memory_limit=24 << 20):  # the square takes 36 MB
        w, Q = pl.linalg.eigh(B, k=20, method="direct")
        again, _ = pl.linalg.eigh(B, k=20, method="direct")
    np.testing.assert_array_equal(w, again)
    np.testing.assert_allclose(A @ Q.toarray(), Q.toarray() * w, atol=1e-11)
    blocks = pl.BlockTridiagonal(np.ones((n // 3 - 1, 3, 3)), np.ones((n // 3, 3, 3)))
    w, Q = pl.linalg.eigh(blocks, k=5, method="direct")
    np.testing.assert_allclose(blocks @ Q.toarray(), Q.toarray() * w, atol=1e-10)
    assert pl.linalg.eigh(blocks, k=5)[0] == pytest.approx(w)
    bad = A.ab.copy()
    bad[3, 4] = np.nan
    with pytest.raises(np.linalg.LinAlgError):
        pl.linalg.eigh(pl.Banded((3, 3), bad), k=2, method="direct")
