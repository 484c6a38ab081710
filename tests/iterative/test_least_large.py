"""lstsq by iterative methods: the answers, what is read, what is said, and what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl

METHODS = ["lsmr", "lsqr", "block_kaczmarz", "sgd"]
FLOATS = "float32 float64 complex64 complex128".split()


def values(rng, shape, dtype):
    a = rng.standard_normal(shape)
    a = a + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else a
    return a.astype(dtype)


def slope(a, b, x):
    r = b - a @ x
    size = np.linalg.norm(r)
    return np.linalg.norm(a.conj().T @ r) / (np.linalg.norm(a, 2) * size) if size else 0.0


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("method", METHODS)
def test_answers(method, dtype):
    rng = np.random.default_rng(0)
    a, x = values(rng, (300, 20), dtype), values(rng, 20, dtype)
    single = dtype in ("float32", "complex64")
    for A in (pl.Dense(a), pl.Sparse(sp.csc_array(a)), pl.Dense(a / 2) * 2, a):
        found = pl.lstsq(A, a @ x, method=method, rng=1)
        got, residuals, rank, s = found
        assert got.dtype == dtype and found.problem == "consistent" and found.method == method
        np.testing.assert_allclose(got, x, atol=3e-3 if single else 1e-4)
        assert rank is None and s is None and residuals.shape == (1,)
        assert found.iterations >= 1
    b = a @ x + values(rng, 300, dtype)
    want = np.linalg.lstsq(a, b, rcond=None)[0]
    found = pl.lstsq(a, b, method=method, rng=1)
    assert found.problem == "least squares"
    np.testing.assert_allclose(found[0], want, atol=1e-3 if single else 1e-5)
    rtol = 1e-4 if single else 1e-6
    assert slope(a, b, found[0]) <= 1.5 * rtol and found.error <= rtol
    np.testing.assert_allclose(found.residual, np.linalg.norm(b - a @ found[0]), rtol=1e-4)
    np.testing.assert_allclose(found[1], [found.residual**2], rtol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_damping(method):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((200, 15)), rng.standard_normal(200)
    want = np.linalg.solve(a.T @ a + 9 * np.eye(15), a.T @ b)
    start = rng.standard_normal(15)
    for x0 in (None, start):
        found = pl.lstsq(a, b, method=method, damp=3.0, x0=x0, rng=0, rtol=1e-8)
        np.testing.assert_allclose(found[0], want, atol=1e-6)
        assert found.residual == pytest.approx(np.linalg.norm(b - a @ want))
    sparse = pl.lstsq(pl.Sparse(sp.csr_array(a)), sp.csc_array(b[:, None]), method=method, damp=3.0)
    np.testing.assert_allclose(sparse[0][:, 0], want, atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_sparse_right_sides_and_starts(method):
    rng = np.random.default_rng(0)
    S = sp.random_array((400, 30), density=0.2, rng=rng, format="csr")
    S = (S + sp.eye_array(400, 30)).tocsr()
    a = S.toarray()
    B = sp.random_array((400, 3), density=0.1, rng=rng)
    want = np.linalg.lstsq(a, B.toarray(), rcond=None)[0]
    for b in (B, B.tocsr(), B.tocsc(), B.toarray()):
        got = pl.lstsq(pl.Sparse(S), b, method=method, rng=0)
        assert got[0].shape == (30, 3) and len(got.error) == 3 and got[1].shape == (3,)
        np.testing.assert_allclose(got[0], want, atol=1e-4)
    one = sp.coo_array(B.toarray()[:, 0])
    start = sp.csc_array(want[:, :1])
    for x0 in (start, want[:, 0]):
        found = pl.lstsq(S, one, method=method, x0=x0, rng=0)
        assert found[0].shape == (30,) and found.iterations == 0
        np.testing.assert_allclose(found[0], want[:, 0], atol=1e-9)
    before = B.toarray()
    pl.lstsq(S, before, method=method, rng=0)
    np.testing.assert_array_equal(before, B.toarray())  # never written to


def test_a_memmap_is_read_block_by_block(tmp_path):
    rng = np.random.default_rng(0)
    a = np.memmap(tmp_path / "a", np.float64, "w+", shape=(5000, 40))
    a[...] = rng.standard_normal((5000, 40))
    a.flush()
    b = np.memmap(tmp_path / "b", np.float64, "w+", shape=(5000,))
    b[...] = a @ np.arange(40.0)
    for method in ("block_kaczmarz", "sgd"):
        with pl.config(memory_limit=100_000):  # the matrix has 1.6e6 bytes
            x = pl.lstsq(pl.Dense(a), b, method=method, rng=0)[0]
        np.testing.assert_allclose(x, np.arange(40.0), atol=1e-3)


def test_stacked_pieces_are_read_as_they_lie():
    rng = np.random.default_rng(0)
    parts = [sp.random_array((n, 30), density=0.4, rng=rng, format="csr") for n in (100, 7, 300)]
    dense = rng.standard_normal((50, 30))
    A = pl.vstack([*map(pl.Sparse, parts), pl.Dense(dense)])
    x = rng.standard_normal(30)
    b = np.concatenate([*(p @ x for p in parts), dense @ x])
    for method in METHODS:
        np.testing.assert_allclose(pl.lstsq(A, b, method=method, rng=0)[0], x, atol=1e-3)


def test_what_never_fits_in_memory():
    rng = np.random.default_rng(0)
    m, n = 1_000_000, 10_000  # 8e10 bytes as a dense matrix
    index = rng.integers(0, n, (m, 3), dtype=np.int32)
    index[:n, 0] = np.arange(n)
    data = rng.standard_normal(3 * m)
    S = sp.csr_array((data, index.ravel(), np.arange(0, 3 * m + 1, 3)), shape=(m, n))
    x = rng.standard_normal(n)
    b = S @ x + 0.01 * rng.standard_normal(m)
    A = pl.Sparse(S)
    with pl.config(memory_limit=50_000_000):
        with pytest.raises(pl.MaterializationError):
            pl.lstsq(A, b)
        found = pl.lstsq(A, b, method="lsmr")
        assert found.error <= 1e-6 and found.problem == "least squares"
        rough = pl.lstsq(A, b, method="sgd", rtol=1e-2, rng=0)
        assert rough.error <= 1e-2
    np.testing.assert_allclose(found[0], x, atol=0.02)
    np.testing.assert_allclose(rough[0], found[0], atol=0.1)


def test_memory_is_stated_beforehand():
    A = pl.Sparse(sp.eye_array(2000, 100, format="csr"))
    with pl.config(memory_limit=40_000):
        with pytest.raises(pl.MaterializationError, match="lstsq by lsmr.*allows 40,000"):
            pl.lstsq(A, np.ones(2000), method="lsmr")
        pl.lstsq(A, np.r_[np.ones(100), np.zeros(1900)], method="block_kaczmarz")
        with pytest.raises(pl.MaterializationError, match="extended block Kaczmarz"):
            pl.lstsq(A, np.ones(2000), method="block_kaczmarz", extended=True)
        with pytest.raises(pl.MaterializationError, match="CSR of a CSC matrix"):
            pl.lstsq(sp.random_array((2000, 100), format="csc"), np.ones(2000), method="sgd")


@pytest.mark.parametrize("method", METHODS)
def test_what_does_not_converge_says_so(method):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((100, 60)) * 10.0 ** np.linspace(0, -9, 60)
    b = rng.standard_normal(100)
    with pytest.raises(pl.ConvergenceError, match=rf"{method} came to .* rtol is 1e-12") as info:
        pl.lstsq(a, b, method=method, maxiter=3, rtol=1e-12, rng=0)
    best = info.value.x
    assert best.shape == (60,) and np.isfinite(best).all()
    record = info.value.record
    assert record.error == pytest.approx(slope(a, b, best), rel=0.5) and record.iterations == 3
    assert np.linalg.norm(b - a @ best) <= np.linalg.norm(b)


@pytest.mark.parametrize("method", METHODS)
def test_small_and_empty(method):
    for shape in ((0, 0), (3, 0), (0, 3), (1, 1), (3, 1), (1, 3)):
        a = np.ones(shape)
        x = pl.lstsq(a, np.zeros(shape[0]), method=method)[0]
        np.testing.assert_array_equal(x, np.zeros(shape[1]))
        if min(shape):
            x = pl.lstsq(a, np.ones(shape[0]), method=method, rng=0)[0]
            np.testing.assert_allclose(x, np.full(shape[1], 1 / shape[1]), atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_nan_is_no_answer(method):
    a = np.eye(5)
    with pytest.raises(pl.ConvergenceError):
        pl.lstsq(a, np.array([1.0, np.nan, 0, 0, 0]), method=method, maxiter=3)


@pytest.mark.parametrize("method", METHODS)
def test_zero_rows_columns_and_repeated_rows(method):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((60, 8))
    a[5:9] = 0
    a[20:30] = a[10:20]
    a[:, 3] = 0
    x = rng.standard_normal(8)
    x[3] = 0
    found = pl.lstsq(a, a @ x, method=method, rng=0, rtol=1e-9)
    np.testing.assert_allclose(found[0], x, atol=1e-5)


def test_seeds_make_the_same_bits_again():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((300, 10)), rng.standard_normal(300)
    for method in ("block_kaczmarz", "sgd"):
        x, y = (pl.lstsq(a, b, method=method, rng=7)[0] for _ in range(2))
        np.testing.assert_array_equal(x, y)


def test_callbacks():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((300, 10))
    for method in METHODS:
        seen, shown = [], []
        pl.lstsq(
            a,
            rng.standard_normal(300),
            method=method,
            rng=0,
            callback=lambda x: seen.append(x.copy()),
            progress=lambda k, error: shown.append((k, error)),
        )
        assert seen and all(x.shape == (10,) for x in seen) and shown[-1][1] <= 1e-6

        def stop(x):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            pl.lstsq(a, np.ones(300), method=method, callback=stop)
    assert pl.lstsq(a, np.ones(300), method="sgd", rng=0, progress=True).error <= 1e-6


def test_what_it_does_not_take():
    a, b = np.ones((3, 2)), np.ones(3)
    with pytest.raises(ValueError, match="did you mean lsmr"):
        pl.lstsq(a, b, method="lsmrr")
    with pytest.raises(TypeError, match=r"\['rtol'\] belong to an iterative method"):
        pl.lstsq(a, b, rtol=1e-3)
    with pytest.raises(TypeError, match=r"rcond= belongs to method=None"):
        pl.lstsq(a, b, 1e-3, method="lsmr")
    with pytest.raises(ValueError, match="takes one matrix, got a batch"):
        pl.lstsq(np.ones((2, 3, 2)), b, method="sgd")
    for method in METHODS:
        with pytest.raises(pl.LinAlgError, match=r"takes \(3,\) or \(3, k\)"):
            pl.lstsq(a, np.ones(4), method=method)
        with pytest.raises(pl.LinAlgError, match=r"takes \(3,\) or \(3, k\)"):
            pl.lstsq(a, sp.csr_array(np.ones((4, 2))), method=method)
        for bad in ({"damp": -1.0}, {"rtol": 0.0}, {"rtol": 2.0}, {"block": 0}, {"x0": b}):
            with pytest.raises(ValueError, match=next(iter(bad))):
                pl.lstsq(a, b, method=method, **bad)
    M = pl.MatVec((3, 2), lambda x: a @ x, rmatvec=lambda y: a.T @ y, dtype=float)
    with pytest.raises(ValueError, match="reads rows, and callables have none"):
        pl.lstsq(M, b, method="sgd")
    np.testing.assert_allclose(pl.lstsq(M, b, method="lsmr")[0], [0.5, 0.5])
