"""Products of sparse matrices: sparse_matmul and kin, and what the planner makes of them."""

import json
import threading

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl
from pylinop import _core
from pylinop._sparse import spgemm as products

DTYPES = sorted(products.DTYPES)
FORMATS = ("csr", "csc", "coo")


@pytest.fixture(params=[1, 2])
def threads(request, monkeypatch):
    monkeypatch.setattr(products, "_BLOCK", 4096)  # many blocks, even here
    pl.config(threads=request.param)
    yield request.param
    pl.config(threads=None)


def matrix(rng, m, n, density, dtype, format="csr"):
    """Small integers, so that every sum is exact; duplicates drawn twice are summed."""
    nnz = int(m * n * density)
    x = rng.integers(-4, 5, nnz)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.integers(-4, 5, nnz)
    with np.errstate(all="ignore"):
        x = x.astype(dtype)
    at = (rng.integers(0, max(m, 1), nnz), rng.integers(0, max(n, 1), nnz))
    return sp.coo_array((x, at), shape=(m, n)).asformat(format)


SHAPES = [
    (30, 40, 50, 0.1),  # dense rows
    (60, 50, 40, 0.9),
    (50, 60, 9000, 0.01),  # hashed rows, sorted by counting
    (20, 300, 60000, 0.02),  # hashed rows, sorted by digits
    (1, 1, 1, 1.0),
    (0, 4, 3, 0.5),
    (4, 0, 3, 0.5),
    (4, 3, 0, 0.5),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_products_are_scipys(dtype, shape, rng):
    m, k, n, density = shape
    for a, b in (("csr", "csr"), ("csc", "coo")):
        A, B = matrix(rng, m, k, density, dtype, a), matrix(rng, k, n, density, dtype, b)
        C = pl.sparse_matmul(A, B)
        want = sp.csr_array(A) @ sp.csr_array(B)
        assert C.format == "csr" and C.dtype == want.dtype and C.shape == want.shape
        assert (abs(C.astype(complex) - want.astype(complex))).max() == 0 if C.size else True
        assert C.has_sorted_indices
        assert all((np.diff(C.indices[i:j]) > 0).all() for i, j in zip(C.indptr, C.indptr[1:]))
        C.check_format(full_check=True)
        assert pl.sparse_product_size(A, B).nnz == C.nnz


def test_bits_do_not_depend_on_blocks_threads_or_scipy(threads, rng):
    A = sp.random_array((300, 200), density=0.1, format="csr", rng=rng)
    B = sp.random_array((200, 400), density=0.1, format="csr", rng=rng)
    want = A @ B
    want.sort_indices()
    for C in (
        pl.sparse_matmul(A, B),
        pl.sparse_matmul(A, B, block_rows=7),
        sp.vstack([block for _, block in pl.sparse_row_blocks(A, B, block_rows=64)]),
        (pl.Sparse(A) @ pl.Sparse(B)).tosparse(),
    ):
        np.testing.assert_array_equal(C.indices, want.indices)
        np.testing.assert_array_equal(C.data, want.data)


def test_dtypes_promote_and_indices_of_both_widths_meet(rng):
    A, B = matrix(rng, 20, 30, 0.2, "float32"), matrix(rng, 30, 10, 0.2, "int64")
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    C = pl.sparse_matmul(A, B)
    assert C.dtype == np.float64
    np.testing.assert_array_equal(C.toarray(), A.toarray() @ B.toarray())
    with pytest.raises(TypeError, match="not computed in"):
        pl.sparse_matmul(pl.Diag(np.ones(3, np.longdouble)), pl.Diag(np.ones(3, np.longdouble)))


def test_operators_are_written_out_sparsely():
    n = 100_000
    S = sp.eye_array(n, k=1, format="csr")
    with pl.config(memory_limit=10**8):
        for A, want in (
            (pl.Diag(np.arange(n)), sp.diags_array(np.arange(float(n))) @ S),
            (pl.Sparse(S).T, S.T @ S),
            (pl.Identity(n) + pl.Sparse(S), S + S @ S),
            (pl.Banded((0, 1), np.ones((2, n))), (sp.eye_array(n) + S) @ S),
        ):
            assert abs(pl.sparse_matmul(A, pl.Sparse(S)) - want).max() == 0


@pytest.mark.parametrize("kind", ["A A^T", "A A^H"])
def test_one_triangle_is_mirrored_where_that_pays(threads, kind, rng):
    A = matrix(rng, 30, 3000, 0.4, "complex128")
    A.data = A.data * rng.standard_normal(A.nnz)
    B = A.T if kind == "A A^T" else A.conj().T
    p = products.Product(A, B)
    assert p.symmetry() == (1 if kind == "A A^T" else 2)
    C = pl.sparse_matmul(A, B)
    want = A @ sp.csr_array(B)
    np.testing.assert_allclose(C.toarray(), want.toarray(), rtol=1e-12)
    np.testing.assert_array_equal(
        C.toarray(), C.T.toarray() if kind == "A A^T" else C.T.conj().toarray()
    )
    assert C.nnz == want.nnz
    B = sp.csr_array(B)
    B.data[5] += 1
    assert products.Product(A, B).symmetry() == 0
    np.testing.assert_allclose(pl.sparse_matmul(A, B).toarray(), (A @ B).toarray(), rtol=1e-12)


# -- parts of a product ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_masks_thresholds_and_largest(dtype, rng):
    for m, k, n, density in ((30, 40, 50, 0.2), (20, 50, 9000, 0.02), (0, 2, 2, 1.0)):
        A, B = matrix(rng, m, k, density, dtype), matrix(rng, k, n, density, dtype)
        C = pl.sparse_matmul(A, B)
        dense, size = C.toarray(), np.abs(C.toarray().astype(complex))
        for M in (matrix(rng, m, n, 0.01, int), sp.csr_array(np.ones((m, n), bool))):
            X = pl.sparse_matmul(A, B, mask=M)
            there = M.toarray() != 0
            np.testing.assert_array_equal(X.toarray(), np.where(there, dense, 0).astype(dtype))
            assert X.nnz == np.count_nonzero(there & (pattern(C) > 0))
        X = pl.sparse_matmul(A, B, threshold=3, block_rows=4)
        np.testing.assert_array_equal(X.toarray(), np.where(size >= 3, dense, 0).astype(dtype))
        X = pl.sparse_matmul(A, B, topk=3)
        for i in range(m):
            row = C[[i]]
            best = np.argsort(-np.abs(row.data.astype(complex)), kind="stable")[:3]
            np.testing.assert_array_equal(X[[i]].indices, np.sort(row.indices[best]))
        both = pl.sparse_matmul(A, B, threshold=2, topk=2, mask=np.ones((m, n)))
        assert m == 0 or np.diff(both.indptr).max() <= 2
        assert both.nnz == 0 or np.abs(both.data.astype(complex)).min() >= (
            1 if dtype == "bool" else 2
        )


def pattern(C):
    return sp.csr_array((np.ones(C.nnz), C.indices, C.indptr), shape=C.shape).toarray()


def test_largest_take_nan_first_and_ties_from_the_left():
    A = sp.csr_array([[1.0, -3.0, np.nan, 3.0, 3.0]])
    I = sp.eye_array(5, format="csr")
    np.testing.assert_array_equal(pl.sparse_matmul(A, I, topk=3).indices, [1, 2, 3])
    np.testing.assert_array_equal(pl.sparse_matmul(A, I, threshold=2).indices, [1, 2, 3, 4])
    assert pl.sparse_matmul(A, I, topk=0).nnz == 0
    assert pl.sparse_matmul(A, I, topk=99).nnz == 5


def test_explicit_zeros_of_a_mask_do_not_count():
    M = sp.csr_array((np.array([0.0, 1.0]), np.array([0, 1]), np.array([0, 2, 2])), shape=(2, 2))
    I = sp.csr_array(np.ones((2, 2)))
    np.testing.assert_array_equal(pl.sparse_matmul(I, I, mask=M).toarray(), [[0, 2], [0, 0]])


# -- in blocks, on disk, announced -----------------------------------------------------------------


def test_blocks_cover_all_rows_and_call_back(threads, rng):
    A = matrix(rng, 50, 60, 0.1, float)
    for block_rows in (None, 1, 7, 50, 1000):
        seen = []
        blocks = pl.sparse_row_blocks(
            A, A.T, block_rows=block_rows, callback=lambda done, rows: seen.append((done, rows))
        )
        starts, parts = zip(*blocks)
        assert starts == tuple(np.cumsum([0, *(p.shape[0] for p in parts)])[:-1])
        np.testing.assert_array_equal(sp.vstack(parts).toarray(), (A @ A.T).toarray())
        assert seen[-1] == (50, 50) and len(seen) == len(parts)


def test_an_iterator_left_early_leaves_no_thread(threads, rng):
    A = matrix(rng, 200, 100, 0.1, float)
    before = threading.active_count()
    blocks = pl.sparse_row_blocks(A, A.T, block_rows=5)
    next(blocks)
    blocks.close()
    assert threading.active_count() == before


def test_an_error_in_a_callback_comes_out(threads, rng):
    A = matrix(rng, 50, 60, 0.1, float)

    def stop(done, rows):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pl.sparse_matmul(A, A.T, block_rows=5, callback=stop)


@pytest.mark.parametrize("kept", [{}, {"topk": 2}, {"threshold": 5}])
def test_on_disk(threads, kept, rng, tmp_path):
    A = matrix(rng, 50, 60, 0.1, "float32")
    C = pl.sparse_matmul(A, A.T, out=tmp_path / "c", block_rows=9, **kept)
    want = pl.sparse_matmul(A, A.T, **kept)
    for S in (C, pl.load_sparse(tmp_path / "c"), pl.load_sparse(tmp_path / "c", mmap_mode="r")):
        np.testing.assert_array_equal(S.toarray(), want.toarray())
        assert S.dtype == np.float32 and S.nnz == want.nnz
    assert isinstance(C.data, np.memmap)
    np.testing.assert_array_equal(np.load(tmp_path / "c" / "data.npy"), want.data)
    np.testing.assert_array_equal(np.load(tmp_path / "c" / "indptr.npy"), want.indptr)
    about = json.loads((tmp_path / "c" / "sparse.json").read_text())
    assert about["shape"] == [50, 50] and about["nnz"] == want.nnz


def test_what_is_half_written_is_no_matrix(rng, tmp_path):
    A = matrix(rng, 50, 60, 0.1, float)
    pl.sparse_matmul(A, A.T, out=tmp_path)

    def stop(done, rows):
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        pl.sparse_matmul(A, A.T, out=tmp_path, block_rows=5, callback=stop)
    with pytest.raises(FileNotFoundError):
        pl.load_sparse(tmp_path)
    (tmp_path / "sparse.json").write_text('{"format": "something"}')
    with pytest.raises(ValueError, match="no matrix of this version"):
        pl.load_sparse(tmp_path)


def test_sizes_are_announced(rng):
    A = sp.random_array((3000, 500), density=0.01, format="csr", rng=rng)
    want = A @ A.T
    size = pl.sparse_product_size(A, A.T)
    assert size.exact and size.nnz == want.nnz and size.shape == want.shape
    assert size.nbytes == want.data.nbytes + want.indices.nbytes + want.indptr.nbytes
    guess = pl.sparse_product_size(A, A.T, exact=False)
    assert not guess.exact and abs(guess.nnz / want.nnz - 1) < 0.2
    assert f"about {guess.nnz:,} entries" in str(guess)


def test_what_does_not_fit_is_refused_with_the_ways_out(rng):
    A = sp.random_array((2000, 300), density=0.02, format="csr", rng=rng)
    nnz = (A @ A.T).nnz
    for limit in (10**5, nnz * 12 - 1):
        with pl.config(memory_limit=limit):
            with pytest.raises(pl.MaterializationError, match="sparse_row_blocks.*topk="):
                pl.sparse_matmul(A, A.T)
            with pytest.raises(pl.MaterializationError):
                (pl.Sparse(A) @ pl.Sparse(A).T).tosparse()
            with pytest.raises(pl.MaterializationError, match="memory_limit"):
                pl.sparse_matmul(A, A.T, threshold=1e-300)
            assert sum(b.nnz for _, b in pl.sparse_row_blocks(A, A.T)) == nnz


# -- what is wrong ---------------------------------------------------------------------------------


def test_arguments_that_do_not_fit():
    I = sp.eye_array(3, format="csr")
    for error, match, call in (
        (ValueError, "do not multiply", lambda: pl.sparse_matmul(I, sp.eye_array(4))),
        (ValueError, "mask has shape", lambda: pl.sparse_matmul(I, I, mask=sp.eye_array(4))),
        (ValueError, "threshold", lambda: pl.sparse_matmul(I, I, threshold=-1)),
        (ValueError, "threshold", lambda: pl.sparse_matmul(I, I, threshold=np.nan)),
        (ValueError, "topk", lambda: pl.sparse_matmul(I, I, topk=-1)),
        (TypeError, "topk", lambda: pl.sparse_row_blocks(I, I, topk=1.5)),
        (ValueError, "block_rows", lambda: list(pl.sparse_row_blocks(I, I, block_rows=0))),
        (ValueError, "do not multiply", lambda: pl.sparse_product_size(I, sp.eye_array(4))),
        (ValueError, "batches", lambda: pl.sparse_matmul(pl.Diag(np.ones((2, 3))), I)),
        (FileNotFoundError, "no such folder", lambda: pl.load_sparse("no such folder")),
    ):
        with pytest.raises(error, match=match):
            call()


def broken(what):
    S = sp.random_array((40, 30), density=0.3, format="csr", rng=np.random.default_rng(0))
    S.has_sorted_indices = S.has_canonical_format = True
    if what == "large":
        S.indices[7] = 30
    if what == "negative":
        S.indices[7] = -1
    if what == "ptr":
        S.indptr[3] = 10**6
    if what == "back":
        S.indptr[3] = -5
    return S


@pytest.mark.parametrize("what", ["large", "negative", "ptr", "back"])
def test_bad_indices_never_crash(what):
    B = sp.random_array((30, 40), density=0.3, format="csr", rng=np.random.default_rng(1))
    A = broken(what)
    bad, good = pl.Sparse(A), pl.Sparse(B)
    for call in (
        lambda: pl.sparse_matmul(A, B),
        lambda: pl.sparse_matmul(B, A),
        lambda: pl.sparse_matmul(A.T, B.T),
        lambda: pl.sparse_matmul(A, B, mask=sp.eye_array(40)),
        lambda: (bad @ good).diagonal(),
        lambda: (good @ bad).diagonal(2),
        lambda: (bad.T @ bad).trace(),
        lambda: (bad @ good).toarray(),
        lambda: (good @ bad).toarray(),
        lambda: (bad @ good.T.T).tosparse(),
    ):
        with pytest.raises((IndexError, ValueError)):
            call()


def test_kernels_refuse_memory_that_does_not_fit():
    a = products.as_csr(sp.eye_array(4, format="csr"), float, np.int32)
    four, index, data = np.full(4, 1), np.zeros(4, np.int32), np.zeros(4)
    at = np.arange(5)
    _core._spgemm_fill(a, a, False, 0, 4, four, at, index, data)
    for args in (
        (a, a, False, 0, 5, four, at, index, data),
        (a, a, False, -1, 4, four, at, index, data),
        (a, a, False, 0, 4, four[:3], at, index, data),
        (a, a, False, 0, 4, four, at + 1, index, data),
        (a, a, False, 0, 4, four, at[::-1].copy(), index, data),
        (a, a, False, 0, 4, four, at[:1], index[:3], data),
        (a, a, False, 0, 4, four, at, index, data.astype(np.float32)),
        (a, a, False, 0, 4, four * 0, at, index, data),
        ((*a[:3], 5, 4), a, False, 0, 4, four, at, index, data),
        (a, (*a[:3], 3, 4), False, 0, 4, four, at, index, data),
    ):
        with pytest.raises((IndexError, ValueError)):
            _core._spgemm_fill(*args)


@pytest.mark.parametrize("each", [2, 30])
@pytest.mark.parametrize("dtype", ["float64", "int16"])
def test_bits_on_any_number_of_threads(each, dtype, rng):
    """Held and copied in turn, counted first, and one triangle: enough for several threads."""
    A = sp.random_array((2000, 600), density=each / 600, format="csr", rng=rng) * 40
    A = A.astype(dtype)
    few = sp.csr_array((np.ones(50_000, dtype), np.tile(range(8), 6_250), range(0, 50_001, 100)))
    few.resize(2000, 2000)
    pairs = [(A.T.tocsr(), A), (A, A[:, ::-1].T.tocsr()), (A.T, A), (few, few), (few.T, A)]
    found = []
    before = _core._blas()["threads"]
    for count in (1, 2, 5):
        pl.config(threads=count)
        found.append([pl.sparse_matmul(a, b) for a, b in pairs])
    pl.config(threads=before)
    for made in found[1:]:
        for C, one in zip(made, found[0], strict=True):
            assert_same(C, one)
    for C, (a, b) in zip(found[0], pairs, strict=True):
        assert np.array_equal(C.toarray(), (a @ b).toarray())


def assert_same(C, D):
    assert np.array_equal(C.indptr, D.indptr) and np.array_equal(C.indices, D.indices)
    assert C.dtype == D.dtype and np.array_equal(C.data, D.data)


# -- what the planner makes of products ------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "complex128", "int8", "bool"])
@pytest.mark.parametrize("formats", [(a, b) for a in FORMATS for b in FORMATS])
def test_dense_forms_and_diagonals_of_products(dtype, formats, rng):
    views = (lambda s: s, lambda s: s.T, lambda s: s.H, lambda s: s.conj())
    D = pl.Diag(matrix(rng, 1, 9, 2.0, dtype).toarray()[0])
    for i in views:
        for j in views:
            A, B = matrix(rng, 7, 9, 0.15, dtype), matrix(rng, 9, 6, 0.15, dtype)
            A = pl.Sparse((A.T if i(pl.Sparse(A)).shape[0] == 9 else A).asformat(formats[0]))
            B = pl.Sparse((B.T if j(pl.Sparse(B)).shape[0] == 6 else B).asformat(formats[1]))
            a, b = i(A), j(B)
            for P, want in (
                (a @ b, a.toarray() @ b.toarray()),
                (a @ D @ b, a.toarray() @ D.toarray() @ b.toarray()),
                (a @ (D @ b), a.toarray() @ D.toarray() @ b.toarray()),
            ):
                np.testing.assert_array_equal(P.toarray(), want)
                assert P.trace() == np.trace(want)
                for k in range(-8, 8):
                    np.testing.assert_array_equal(P.diagonal(k), np.diagonal(want, k))


def test_the_planner_says_so():
    S = pl.Sparse(sp.eye_array(50, k=1, format="csr"))
    fired = [r["name"] for r in (S.T @ S).explain("diagonal").rules if r["outcome"] == "fired"]
    assert fired == ["diagonal-sparse-pair"]
    assert "spgemm" in str((S @ S.T).explain("dense"))
    assert "spgemm" in str((S @ pl.Diag(np.ones(50)) @ S.T).explain("trace"))


def test_writes_into_the_arrays_are_seen(rng):
    A = matrix(rng, 8, 9, 0.3, float)
    S = pl.Sparse(A)
    G = S @ S.T
    for _ in range(2):
        want = A @ A.T
        np.testing.assert_array_equal(G.diagonal(), want.diagonal())
        np.testing.assert_array_equal(G.toarray(), want.toarray())
        np.testing.assert_array_equal(G.tosparse().toarray(), want.toarray())
        A.data *= 3
        A.indices[0] = (A.indices[0] + 1) % 9


def test_values_of_large_products_need_no_dense_factor():
    n = 200_000
    S = pl.Sparse(sp.diags_array([np.ones(n), np.ones(n - 1)], offsets=[0, 1], format="csr"))
    D = pl.Diag(np.arange(n, dtype=float))
    with pl.config(memory_limit=10**8):
        np.testing.assert_array_equal((S.T @ S).diagonal(), np.append(1.0, np.full(n - 1, 2.0)))
        assert (S @ S.T).trace() == 2 * n - 1
        assert (S @ D @ S.T).trace() == n * (n - 1) / 2 + n * (n - 1) / 2
        np.testing.assert_array_equal(pl.diagonal(S.T @ S + D, 1), np.ones(n - 1))
        assert (S @ S.T)[5, 6] == 1.0
        assert (S.T @ S)[7].sum() == 4.0


@pytest.mark.parametrize("inf", [np.inf, np.nan])
def test_what_is_not_stored_meets_no_infinity(inf):
    A = sp.csr_array(np.diag([1.0, 1.0, 1.0, inf]))
    B = sp.csr_array(np.eye(4, k=1))
    P = pl.Sparse(A) @ pl.Sparse(B)
    np.testing.assert_array_equal(P.toarray(), np.eye(4, k=1))
    np.testing.assert_array_equal(P.diagonal(), np.zeros(4))
    assert pl.sparse_matmul(A, B).nnz == 3


# -- something like the real thing -----------------------------------------------------------------


def test_two_steps_on_a_road_network(rng):
    """Joined grid points as a stand-in for roads: what lies two steps apart."""
    k = 60
    at = np.arange(k * k).reshape(k, k)
    ends = np.concatenate(
        [
            np.stack([at[:, :-1], at[:, 1:]], -1).reshape(-1, 2),
            np.stack([at[:-1], at[1:]], -1).reshape(-1, 2),
        ]
    )
    ends = ends[rng.random(len(ends)) < 0.9]
    R = sp.coo_array((np.ones(len(ends)), ends.T), shape=(k * k, k * k)).tocsr()
    R = R + R.T
    two = pl.sparse_matmul(R, R)
    np.testing.assert_array_equal(two.diagonal(), R.sum(axis=1))  # back again over each road
    squares = pl.sparse_matmul(R, R, mask=R)
    assert squares.nnz == 0  # a grid has no triangles
    assert (abs(two - R @ R)).max() == 0


def test_a_scaled_down_large_case(threads, rng):
    """The 200,000 x 100,000 of docs/sparse.md at a hundredth: streamed under a tight limit."""
    A = sp.random_array((2000, 1000), density=0.02, format="csr", rng=rng)
    want = A @ A.T
    with pl.config(memory_limit=want.nnz * 12 // 4):
        with pytest.raises(pl.MaterializationError):
            pl.sparse_matmul(A, A.T)
        S = pl.Sparse(A)
        np.testing.assert_allclose((S @ S.T).diagonal(), want.diagonal(), rtol=1e-13)
        best = pl.sparse_matmul(A, A.T, topk=3)
        i = np.abs(want[[17]].toarray()[0]).argsort()[-3:]
        np.testing.assert_array_equal(best[[17]].indices, np.sort(i))


# -- diagonals of products with other kinds, where their dense forms do not fit --------------------


def other_kinds(n, rng):
    v = rng.standard_normal
    yield pl.Toeplitz(v(n), v(n))
    yield pl.Banded((1, 2), v((4, n)))
    yield pl.Permutation(rng.permutation(n))
    yield pl.Kron(v((n // 10, n // 10)), v((10, 10)))
    yield pl.LowRankUpdate(pl.Diag(v(n)), v((n, 2)))
    yield pl.Kernel("rbf", v((n, 2)))
    yield pl.DFT(n)
    yield pl.SparseTriangular(sp.eye_array(n, format="csr") * 2)


def test_diagonals_beside_other_kinds_fit(rng):
    n = 600
    S = pl.Sparse(sp.random_array((n, n), density=0.01, format="csr", rng=rng))
    for K in other_kinds(n, rng):
        for A in (S @ K, K @ S, S @ K @ S.T, 2 * (S @ K) + S):
            D = A.toarray()
            with pl.config(memory_limit=n * n):
                for k in (0, 3, -n + 1):
                    np.testing.assert_allclose(pl.diagonal(A, k), np.diag(D, k), atol=1e-10)
                np.testing.assert_allclose(pl.trace(A), np.trace(D), atol=1e-9)
                assert pl.diagonal(A, n).size == 0
        assert pl.diagonal(A).dtype == A.dtype


def test_diagonals_of_integers_and_batches_fit(rng):
    few = rng.random((600, 600)) < 0.02  # float64 products cast them all
    S = pl.Sparse(sp.csr_array(np.where(few, rng.integers(1, 3, few.shape), 0).astype(np.int8)))
    K = pl.Toeplitz(rng.integers(-9, 9, 600).astype(np.int8))
    T = pl.Toeplitz(rng.standard_normal((2, 600)))
    for A in (S @ K, S @ T):
        want, total = pl.diagonal(A), pl.trace(A)
        with pl.config(memory_limit=300_000):
            got = pl.diagonal(A)
            assert got.dtype == want.dtype and pl.trace(A).dtype == total.dtype
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(pl.trace(A), total, rtol=1e-12)


def test_what_does_not_fit_in_blocks_raises(rng):
    """The diagonal of an inverse that needs the dense form: as it was."""
    A = pl.Toeplitz(rng.standard_normal(300)) @ pl.Hankel(rng.standard_normal(300))
    with (
        pl.config(memory_limit=50_000),
        pytest.raises(pl.MaterializationError, match=r"90,000|72\d,"),
    ):
        pl.diagonal(pl.inv(A + pl.Identity(300)))


# -- element-wise products with other kinds -----------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "complex128", "int16"])
def test_element_wise_products_as_sparse_arrays(dtype, rng):
    n = 200
    A = matrix(rng, n, n, 0.03, dtype)
    S = pl.Sparse(A)
    v = lambda *shape: rng.integers(-4, 5, shape).astype(dtype)  # noqa: E731
    others = [pl.Toeplitz(v(n), v(n)), pl.Kron(v(10, 10), v(20, 20)), pl.Dense(v(n, n)).T, S.T]
    others += [S @ S, pl.Banded((1, 2), v(4, n)), pl.LowRank(v(n, 2)), pl.Diag(v(n)), 2 * S]
    for K in others:
        for H in (pl.multiply(S, K), pl.multiply(K, S), pl.multiply(pl.multiply(S, K), S.T)):
            want = H.toarray()
            with pl.config(memory_limit=want.nbytes - 1):
                got = H.tosparse()
            assert got.dtype == H.dtype and got.nnz <= A.nnz
            np.testing.assert_allclose(got.toarray(), want, rtol=1e-5, atol=1e-5)
    assert np.array_equal(S.toarray(), A.toarray())  # as it was


def test_element_wise_products_with_duplicates_and_none():
    twice = sp.csr_array((np.array([1.0, 2.0, 5.0]), [1, 1, 0], [0, 2, 3]), shape=(2, 2))
    got = pl.multiply(pl.Sparse(twice), pl.Toeplitz([1.0, 3.0])).tosparse()
    assert np.array_equal(got.toarray(), [[0, 9], [15, 0]])
    assert np.array_equal(twice.data, [1, 2, 5])
    none = pl.Sparse(sp.csr_array((0, 3)))
    assert pl.multiply(none, pl.Dense(np.ones((0, 3)))).tosparse().shape == (0, 3)
    with pl.config(memory_limit=1000), pytest.raises(pl.MaterializationError):
        pl.multiply(pl.Toeplitz(np.ones(99)), pl.Hankel(np.ones(99))).tosparse()
