"""BlockTridiagonal: products, solves by block sweeps, determinants, parts of the inverse."""

import numpy as np
import pytest

import pylinop as pl


def _blocks(N, m, dtype="f8", batch=(), seed=0):
    rng = np.random.default_rng(seed)

    def draw(count):
        a = rng.standard_normal((*batch, count, m, m)).astype(dtype)
        return a + 1j * rng.standard_normal(a.shape).astype(dtype) if dtype[0] == "c" else a

    return draw(max(N - 1, 0)), draw(N) + 6 * m * np.eye(m, dtype=dtype), draw(max(N - 1, 0))


def _dense(low, d, up):
    N, m = d.shape[-3], d.shape[-1]
    a = np.zeros((*d.shape[:-3], N * m, N * m), d.dtype)
    for k in range(N):
        here = slice(k * m, (k + 1) * m)
        a[..., here, here] = d[..., k, :, :]
        if k + 1 < N:
            after = slice((k + 1) * m, (k + 2) * m)
            a[..., after, here] = low[..., k, :, :]
            a[..., here, after] = up[..., k, :, :]
    return a


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize(("N", "m"), [(1, 3), (2, 1), (7, 1), (9, 4), (30, 2), (3, 0), (0, 2)])
def test_general(N, m, dtype):
    low, d, up = _blocks(N, m, dtype)
    A, dense = pl.block_tridiag(low, d, up), _dense(low, d, up)
    np.testing.assert_array_equal(A.toarray(), dense)
    b = np.ones((N * m, 2), dense.real.dtype)
    rtol = 1e-4 if dtype in ("f4", "c8") else 1e-11
    np.testing.assert_allclose(A @ b, dense @ b, rtol=rtol)
    np.testing.assert_allclose(A.H @ b, dense.conj().T @ b, rtol=rtol, atol=10 * rtol)
    if N * m:
        np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(dense, b), rtol=rtol, atol=rtol)
        np.testing.assert_allclose(pl.slogdet(A)[1], np.linalg.slogdet(dense)[1], rtol=rtol)


def test_hermitian_without_upper_blocks():
    low, d, _ = _blocks(20, 3, "c16")
    d = d + d.conj().swapaxes(-1, -2)
    A = pl.block_tridiag(low, d, assume_a="pos")
    dense = _dense(low, d, low.conj().swapaxes(-1, -2))
    np.testing.assert_array_equal(A.toarray(), dense)
    L = pl.cholesky(A)
    assert type(A) is pl.BlockTridiagonal and type(L) is pl.Banded
    np.testing.assert_allclose((L @ L.H).toarray(), dense, atol=1e-12)
    b = np.ones(60)
    np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(dense, b), rtol=1e-11)
    np.testing.assert_allclose(
        pl.inv(A).diagonal(), np.linalg.inv(dense).diagonal(), rtol=1e-11, atol=1e-14
    )


def test_stacks():
    low, d, up = _blocks(6, 2, batch=(3,))
    A = pl.block_tridiag(low[0], d, up)
    dense = _dense(np.broadcast_to(low[0], low.shape), d, up)
    np.testing.assert_array_equal(A.toarray(), dense)
    b = np.ones((12, 1))
    np.testing.assert_allclose(pl.solve(A, b), np.linalg.solve(dense, b), rtol=1e-11)


def test_no_square_is_held():
    low, d, up = _blocks(20_000, 3)
    with pl.config(memory_limit=64 << 20):
        A = pl.block_tridiag(low, d, up)
        x = pl.solve(A, np.ones(60_000))
    assert np.max(np.abs(A @ x - 1)) < 1e-12


# -- sweeps by block --


def _conditioned(N, m, seed=0, dtype="f8", shift=6.0):
    low, d, up = _blocks(N, m, dtype, seed=seed)
    return low, d + (shift - 6) * m * np.eye(m, dtype=dtype), up


def _eta(dense, x, b):
    r = dense @ x - b
    return np.abs(r).max() / (np.abs(dense).sum(-1).max() * np.abs(x).max() + np.abs(b).max())


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("kind", ["general", "adjoint", "pos"])
@pytest.mark.parametrize("shift", [6.0, 0.0])
@pytest.mark.parametrize(("N", "m"), [(1, 9), (2, 8), (6, 11)])
def test_sweeps(N, m, shift, kind, dtype):
    low, d, up = _conditioned(N, m, dtype=dtype, shift=shift)
    if kind != "general":
        up, d = None, d + d.conj().swapaxes(-1, -2)
    if kind == "pos":
        d = d + 8 * m * np.eye(m, dtype=dtype)
    A = pl.BlockTridiagonal(low, d, up, assume_a="pos" if kind == "pos" else None)
    whole = _dense(low, d, low.conj().swapaxes(-1, -2) if up is None else up)
    wide = whole.astype("c16" if dtype[0] == "c" else "f8")
    eps = np.finfo(dtype).eps
    b = np.random.default_rng(1).standard_normal((N * m, 3)).astype(whole.real.dtype)
    views = ((A, wide), (A.T, wide.T), (A.H, wide.conj().T), (A.conj(), wide.conj()))
    for op, same in views:
        np.testing.assert_allclose(op @ b, same @ b, rtol=50 * m * eps, atol=500 * m * eps)
        assert _eta(same, pl.solve(op, b), b) < 5 * N * m * eps
        assert _eta(same, pl.solve(op, b[:, 0]), b[:, 0]) < 5 * N * m * eps
    sign, logdet = pl.slogdet(A)
    want, size = np.linalg.slogdet(wide)
    loss = 50 * N * m * eps * np.linalg.cond(wide)
    assert abs(sign - want) < loss and abs(logdet - size) < loss
    inverse = np.linalg.inv(wide)
    most = loss * np.abs(inverse).max()
    np.testing.assert_allclose(pl.inv(A).diagonal(), inverse.diagonal(), atol=most)
    for other in (up, None):
        B = pl.BlockTridiagonal(low, d, other)
        for both in (pl.inv(A) @ B, B @ pl.inv(A)):
            want = np.trace(inverse @ B.toarray())
            assert abs(both.trace() - want) < most * np.abs(B.toarray()).sum()


def test_growth_is_seen_and_mended():
    # rows are not exchanged between blocks: the first pivot block is all but singular
    low, d, up = _blocks(6, 8)
    d[0] = 1e-9 * np.eye(8)
    dense, b = _dense(low, d, up), np.ones(48)
    for tiny in (1e-9, 1e-14, 0.0):
        d[0] = tiny * np.eye(8)
        dense = _dense(low, d, up)
        A = pl.BlockTridiagonal(low, d, up)
        for op, same in ((A, dense), (A.T, dense.T)):
            assert _eta(same, pl.solve(op, b), b) < 1e-15 * 48
        np.testing.assert_allclose(pl.slogdet(A)[1], np.linalg.slogdet(dense)[1], rtol=1e-12)
        np.testing.assert_allclose(
            pl.inv(A).diagonal(), np.linalg.inv(dense).diagonal(), rtol=1e-9, atol=1e-12
        )


def test_what_is_not_definite_falls_back():
    low, d, _ = _blocks(4, 8)
    d = -(d + d.swapaxes(-1, -2))
    A = pl.BlockTridiagonal(low, d, assume_a="pos")
    dense, b = _dense(low, d, low.swapaxes(-1, -2)), np.ones(32)
    with pytest.warns(pl.FallbackWarning):
        x = pl.solve(A, b)
    assert _eta(dense, x, b) < 1e-14


def test_singular_raises():
    A = pl.BlockTridiagonal(np.zeros((2, 8, 8)), np.zeros((3, 8, 8)), np.zeros((2, 8, 8)))
    with pytest.raises(np.linalg.LinAlgError, match="ingular"):
        pl.solve(A, np.ones(24))
    assert pl.linalg.det(A) == 0


def test_factor_is_kept_and_fresh():
    low, d, up = _blocks(5, 9)
    A, b = pl.BlockTridiagonal(low, d, up), np.ones(45)
    first = pl.solve(A, b)
    np.testing.assert_array_equal(pl.solve(A, b), first)
    for part in (low, d, up):
        part[1, 2, 3] += 7
        np.testing.assert_allclose(
            pl.solve(A, b), np.linalg.solve(_dense(low, d, up), b), rtol=1e-11
        )
    again = pl.BlockTridiagonal(low.copy(), d.copy(), up.copy())
    np.testing.assert_array_equal(pl.solve(again, b), pl.solve(A, b))


@pytest.mark.parametrize("m", [2, 9])
def test_sums_and_multiples_stay_of_the_kind(m):
    low, d, up = _blocks(4, m)
    A, n = pl.BlockTridiagonal(low, d, up), 4 * m
    B = pl.BlockTridiagonal(up, d, low)
    a = A.toarray()
    for op, want in (
        (A + B, a + B.toarray()),
        (A - 2 * B, a - 2 * B.toarray()),
        (A + 3 * pl.Identity(n), a + 3 * np.eye(n)),
        (pl.Diag(np.arange(1.0, n + 1)) + A, a + np.diag(np.arange(1.0, n + 1))),
        (pl.Identity(n) + A, a + np.eye(n)),
        (2j * A, 2j * a),
    ):
        assert type(op) is pl.BlockTridiagonal
        np.testing.assert_allclose(op.toarray(), want)
        np.testing.assert_allclose(pl.solve(op, np.ones(n)), np.linalg.solve(want, np.ones(n)))
    half = pl.BlockTridiagonal(low, d)
    np.testing.assert_allclose((2j * half).toarray(), 2j * half.toarray())
    with pytest.raises(ValueError, match="blocks of 1 x 1"):
        pl.BlockTridiagonal(low[:, :1, :1], d, up)


def test_integers_bools_and_layouts():
    rng = np.random.default_rng(0)
    low, d, up = (rng.integers(-3, 4, (k, 3, 3)) for k in (4, 5, 4))
    A, dense = pl.BlockTridiagonal(low, d, up), _dense(low, d, up)
    x = rng.integers(-5, 6, (15, 2))
    assert (A @ x).dtype == dense.dtype and np.array_equal(A @ x, dense @ x)
    assert np.array_equal(A.T @ x, dense.T @ x)
    i8 = pl.BlockTridiagonal(*(v.astype("i1") for v in (low, d, up)))
    assert np.array_equal(i8 @ x.astype("i1"), dense.astype("i1") @ x.astype("i1"))
    np.testing.assert_allclose(A @ np.ones(15), dense @ np.ones(15))
    np.testing.assert_allclose(pl.slogdet(A)[1], np.linalg.slogdet(dense.astype(float))[1])
    turned = [np.asfortranarray(v)[::-1, ::-1] for v in (low, d, up)]
    for v in turned:
        v.flags.writeable = False
    B = pl.BlockTridiagonal(*turned)
    want = _dense(*turned).astype(float)
    np.testing.assert_allclose(pl.solve(B, np.ones(15)), np.linalg.solve(want, np.ones(15)))
    np.testing.assert_array_equal(B.diagonal(4), want.diagonal(4))
    np.testing.assert_array_equal(B[7, 9], want[7, 9])
    half = pl.BlockTridiagonal(low.astype("f2"), d.astype("f2"))  # float16: the plain walk
    np.testing.assert_allclose(
        half.toarray(), _dense(low, d, low.swapaxes(-1, -2)).astype("f2"), rtol=1e-3
    )


def test_spectra_and_sparse_form():
    low, d, _ = _blocks(5, 3, "c16")
    d = d + d.conj().swapaxes(-1, -2)
    A = pl.BlockTridiagonal(low, d)
    dense = A.toarray()
    np.testing.assert_allclose(pl.eigvalsh(A), np.linalg.eigvalsh(dense))
    np.testing.assert_allclose(pl.svdvals(A), np.linalg.svdvals(dense))
    for order in (1, np.inf, "fro", 2):
        np.testing.assert_allclose(pl.matrix_norm(A, ord=order), np.linalg.norm(dense, order))
    np.testing.assert_array_equal(A.tosparse().toarray(), dense)
    np.testing.assert_allclose(np.linalg.cholesky(dense), pl.cholesky(A).toarray(), atol=1e-13)


def test_beside_a_sparse_matrix():
    sp = pytest.importorskip("scipy.sparse")
    low, d, up = _blocks(210, 2)
    S = sp.random_array((420, 420), density=0.01, rng=np.random.default_rng(0)).tocsr()
    A = pl.BlockTridiagonal(low, d, up) + pl.Sparse(S)
    x = pl.solve(A, np.ones(420))
    np.testing.assert_allclose(_dense(low, d, up) @ x + S @ x, np.ones(420), rtol=1e-10)


@pytest.mark.parametrize(
    ("low", "d", "up", "name"),
    [
        ((2, 2, 2), (3, 2, 3), None, "diag"),
        ((3, 2, 2), (3, 2, 2), None, "lower"),
        ((2, 2, 2), (3, 2, 2), (2, 3, 3), "upper"),
        ((2, 2), (3, 2, 2), None, "lower"),
    ],
)
def test_blocks_that_do_not_fit_are_named(low, d, up, name):
    with pytest.raises(ValueError, match=name):
        pl.block_tridiag(np.ones(low), np.ones(d), up if up is None else np.ones(up))


@pytest.mark.parametrize(
    "make",
    [
        lambda a: pl.Circulant(a, levels=5),
        lambda a: pl.MultilevelToeplitz(a, (1,) * 5),
        lambda a: pl.BlockTridiagonal(a, a),
    ],
)
def test_too_many_dimensions_are_refused(make):
    with pytest.raises(ValueError, match="at most .* of batch"):
        make(np.ones((1,) * 10))


@pytest.mark.parametrize("word", ["her", "sym"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("b, N", [(8, 1), (8, 3), (10, 8)])
def test_what_is_assumed_hermitian_goes_by_cholesky_where_it_is_definite(b, N, dtype, word, rng):
    """And by LU where it is not; of a complex symmetric one Cholesky is not tried."""
    if word == "sym" and dtype == "complex128":
        pytest.skip("its adjoint is another matrix")
    m = rng.standard_normal((N, b, b)).astype(dtype)
    low = 0.5 * rng.standard_normal((N - 1, b, b)).astype(dtype)
    if dtype == "complex128":
        m, low = m + 1j * rng.standard_normal(m.shape), low * 1j
    mirror = np.swapaxes(m.conj(), -1, -2)
    x = rng.standard_normal((N * b, 2)).astype(dtype)
    for D, definite in ((m @ mirror + 4 * b * np.eye(b, dtype=dtype), True), (m + mirror, False)):
        D = (D + np.swapaxes(D.conj(), -1, -2)) / 2
        A = pl.BlockTridiagonal(low, D, np.swapaxes(low.conj(), -1, -2), assume_a=word)
        M = A.toarray().astype("complex128" if dtype == "complex128" else float)
        inverse, size = np.linalg.inv(M), np.abs(np.linalg.inv(M)).max()
        tol = 20 * N * b * np.finfo(dtype).eps * np.linalg.cond(M)
        with pl.config(check_plans=True, verify=True):
            for op, dense in ((A, M), (A.T, M.T), (A.conj(), M.conj()), (A.H, M.conj().T)):
                want = np.linalg.solve(dense, x)
                np.testing.assert_allclose(pl.solve(op, x), want, atol=tol * np.abs(want).max())
                np.testing.assert_allclose(pl.slogdet(op), np.linalg.slogdet(dense), atol=tol)
            np.testing.assert_allclose(pl.diagonal(pl.inv(A)), inverse.diagonal(), atol=tol * size)
            trace = pl.trace(pl.inv(A))
            np.testing.assert_allclose(trace, inverse.trace(), atol=tol * size * N * b)
            assert (np.linalg.eigvalsh(M)[0] > 0) == definite
        general = pl.BlockTridiagonal(low, D, np.swapaxes(low.conj(), -1, -2))
        assert A.explain("solve", x).flops < general.explain("solve", x).flops
