"""QR of bands within the band, its Q as a kind, least squares by it."""

import numpy as np
import pytest

import pylinop as pl

DTYPES = ["f4", "f8", "c8", "c16"]


def _values(rng, shape, dtype):
    a = rng.standard_normal(shape)
    return (a + 1j * rng.standard_normal(shape) if dtype[0] == "c" else a).astype(dtype)


def _banded(n, low, up, dtype="f8", batch=(), seed=0):
    rng = np.random.default_rng(seed)
    return pl.Banded((low, up), _values(rng, (*batch, low + up + 1, n), dtype))


def _adjoint(a):
    return np.swapaxes(a, -1, -2).conj()


def _check(A, mode="reduced"):
    """Q and R are what they should be; returned."""
    a = A.toarray()
    Q, R = pl.qr(A, mode)
    q, r = Q.toarray(), R.toarray()
    want = np.linalg.qr(a, mode=mode)
    assert (q.shape, r.shape) == (want[0].shape, want[1].shape)
    assert q.dtype == r.dtype == want[0].dtype
    eps = 100 * max(a.shape) * np.finfo(q.dtype).eps
    np.testing.assert_allclose(q @ r, a, atol=eps * np.abs(a).max(initial=1))
    unit = np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], *q.shape[-1:] * 2))
    np.testing.assert_allclose(_adjoint(q) @ q, unit, atol=eps)
    assert not np.tril(r, -1).any()
    assert pl.qr(A, "r").shape == np.linalg.qr(a, mode="r").shape
    return Q, R


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize(
    ("n", "low", "up"), [(1, 0, 0), (5, 0, 2), (6, 2, 0), (9, 2, 1), (30, 3, 4), (4, 5, 7)]
)
def test_square(n, low, up, batch, dtype):
    A = _banded(n, low, up, dtype, batch)
    for op in (A, A.T, A.H, A.conj()):
        _, R = _check(op)
        assert not np.triu(R.toarray(), low + up + 1).any()
    Q, R = pl.qr(A)
    assert (type(Q), type(R)) == (pl.Reflections, pl.Banded)
    assert R.l_and_u == (0, min(low + up, n - 1))


@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_parts_that_are_tall_or_wide(mode):
    A = _banded(12, 2, 1, "c16")
    for op in (A[:, :7], A[:7], A[2:, 1:8], A.H[:, 3:], A[:, 3:].T, A[1:9, 2:]):
        Q, R = _check(op, mode)
        assert Q._head in ("reflections", "sliced") and R._head in ("banded", "sliced", "prod")
    stack = _banded(8, 1, 2, "f4", (2,))
    _check(stack[:, :, :5], mode)
    _check(stack[1], mode)
    deep = A
    for _ in range(2000):  # no recursion
        deep = deep[:-1].T if deep.shape[0] > 6 else deep.T.conj()
    _check(deep, mode)
    for op in (A[::2], A[[0, 2, 5]], A[6:, :3]):  # no bands: by the dense form
        _check(op, mode)


def test_other_bands():
    rng = np.random.default_rng(0)
    T = pl.Tridiagonal(*(rng.standard_normal(k) for k in (8, 9, 8)))
    B = pl.BlockTridiagonal(*(rng.standard_normal((k, 3, 3)) for k in (3, 4, 3)))
    whole = pl.Banded((1, 1), np.arange(15).reshape(3, 5))  # integers are float64
    for A in (T, B, whole, 2.5 * T):
        Q, R = _check(A)
        assert type(Q) is pl.Reflections


def test_nothing_square_is_held_and_the_factor_is_kept():
    n = 50_000
    ab = np.random.default_rng(0).standard_normal((4, n))
    A, b = pl.Banded((1, 2), ab), np.ones(n)
    with pl.config(memory_limit=64 << 20):
        Q, R = pl.qr(A)
        x = pl.solve(R, Q.H @ b)
        assert np.abs(A @ x - b).max() < 1e-13 * np.abs(x).max()
        again = pl.qr(A)
        assert again.Q is Q and again.R is R
        ab[2, 7] += 1  # seen
        x = pl.solve(pl.qr(A).R, pl.qr(A).Q.H @ b)
        assert np.abs(A @ x - b).max() < 1e-13 * np.abs(x).max()


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e300])
def test_sizes_out_of_range(size):
    ab = size * np.random.default_rng(0).standard_normal((4, 9))
    A = pl.Banded((2, 1), ab)
    Q, R = pl.qr(A)
    q = Q.toarray()
    np.testing.assert_allclose(q.T @ q, np.eye(9), atol=1e-14)
    np.testing.assert_allclose((q / 4) @ (R.toarray() / size), A.toarray() / size / 4, atol=1e-13)


def test_singular_and_not_finite():
    A = pl.Banded((1, 1), np.zeros((3, 5)))
    Q, R = pl.qr(A)
    np.testing.assert_array_equal(Q.toarray(), np.eye(5))
    assert not R.toarray().any()
    for bad in (np.nan, np.inf):
        ab = np.ones((3, 5))
        ab[1, 2] = bad
        assert np.isnan(pl.qr(pl.Banded((1, 1), ab), "r").toarray()).any()


# -- least squares --


@pytest.mark.parametrize("dtype", DTYPES)
def test_least_squares(dtype):
    A = _banded(15, 2, 1, dtype)
    rng = np.random.default_rng(1)
    tol = 1e-3 if dtype in ("f4", "c8") else 1e-10
    for op in (A, A[:, :9], A[:9], A.H[:, :9], A[:9].T):
        a = op.toarray()
        for b in (_values(rng, a.shape[:1], dtype), _values(rng, (a.shape[0], 2), dtype)):
            found, want = pl.lstsq(op, b), np.linalg.lstsq(a, b, rcond=None)
            for one, other in zip(found, want, strict=True):
                assert np.shape(one) == np.shape(other)
                np.testing.assert_allclose(one, other, rtol=tol, atol=tol)


def test_least_squares_of_lower_rank_and_with_a_cut():
    ab = np.random.default_rng(0).standard_normal((3, 8))
    ab[:, 3] = 0  # a column of zeros
    A, b = pl.Banded((1, 1), ab), np.arange(8.0)
    for rcond in (None, 0.3):
        found, want = pl.lstsq(A, b, rcond), np.linalg.lstsq(A.toarray(), b, rcond=rcond)
        for one, other in zip(found, want, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12)
    stack = _banded(6, 1, 1, batch=(2,))
    x, _, rank, s = pl.lstsq(stack, np.ones((2, 6, 1)))
    np.testing.assert_allclose(x, np.linalg.solve(stack.toarray(), np.ones((2, 6, 1))), rtol=1e-9)
    assert rank.tolist() == [6, 6] and s.shape == (2, 6)


def test_least_squares_without_the_square():
    A = _banded(3000, 1, 1)[:, :2000]
    with pl.config(memory_limit=16 << 20):
        x, _, rank, _ = pl.lstsq(A, np.ones(3000))
    assert rank == 2000
    # x is the least squares solution of A + E for |E| of a few u |A|, so that A^H r is
    # A^H E x - E^H r. NumPy's own leaves 3.4e-11 here, where this bound is 1.9e-10.
    r, size = A @ x - 1, pl.matrix_norm(A, 2)
    off = size * (np.linalg.norm(r) + size * np.linalg.norm(x))
    assert np.linalg.norm(A.T @ r) <= 10 * np.finfo(float).eps / 2 * off


# -- the kind --


def _reflections(v, n):
    q = np.eye(n, dtype=v.dtype)
    for j, row in enumerate(v):
        u = np.zeros(n, v.dtype)
        u[j : j + len(row)] = row[: n - j]
        if u.any():
            q = q @ (np.eye(n) - 2 * np.outer(u, u.conj()) / np.vdot(u, u))
    return q


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("k", "w", "n"), [(5, 3, 6), (6, 9, 6), (1, 1, 1), (0, 2, 3), (3, 0, 3)])
def test_reflections(k, w, n, dtype):
    rng = np.random.default_rng(0)
    v = _values(rng, (k, w), dtype)
    if k > 2:
        v[1] = 0  # no reflection
    Q, q = pl.Reflections(v, n), _reflections(v, n)
    tol = 1e-4 if dtype in ("f4", "c8") else 1e-12
    x = _values(rng, (n, 3), dtype)
    assert Q.dtype == np.dtype(dtype)
    for op, same in ((Q, q), (Q.T, q.T), (Q.H, q.conj().T), (Q.conj(), q.conj())):
        for b in (x, np.asfortranarray(x), x[:, 0], x[::-1, ::2]):
            np.testing.assert_allclose(op @ b, same @ b, atol=tol)
            np.testing.assert_allclose(pl.solve(op, b), np.linalg.solve(same, b), atol=tol)
        np.testing.assert_allclose(pl.det(op), np.linalg.det(same), atol=tol)
    np.testing.assert_allclose(Q.diagonal(), np.diagonal(q), atol=tol)
    np.testing.assert_allclose(pl.svdvals(Q), np.ones(n), atol=tol)
    assert pl.qr(Q).Q is Q and pl.inv(Q)._head == "view"


def test_reflections_in_a_stack_and_of_integers():
    rng = np.random.default_rng(0)
    v, x = rng.standard_normal((2, 3, 2)), rng.standard_normal((4, 2))
    Q = pl.Reflections(v, 4)
    want = np.stack([_reflections(one, 4) @ x for one in v])
    np.testing.assert_allclose(Q @ x, want, atol=1e-14)
    whole = pl.Reflections(np.array([[1, 2], [3, 4]]), 3)
    assert whole.dtype == np.float64
    np.testing.assert_allclose(whole @ np.ones(3), whole.toarray() @ np.ones(3))
    half = pl.Reflections(np.array([[1, 2], [3, 4]], "f2"), 3)  # the plain walk
    np.testing.assert_allclose(half.toarray(), whole.toarray(), rtol=1e-2)


def test_reflections_that_do_not_fit():
    with pytest.raises(ValueError, match="3 rows .* got 4"):
        pl.Reflections(np.ones((4, 2)), 3)
    with pytest.raises(ValueError):
        pl.Reflections(np.ones((2, 2)), -1)
    with pytest.raises(ValueError):
        pl.Reflections(np.ones(3), 3)
