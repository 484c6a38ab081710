"""Kinds whose operands are operators, against NumPy and SciPy."""

import copy
import pickle

import numpy as np
import pytest
import ref
import scipy.linalg as sl
import scipy.sparse as sp
from samples import values

import pylinop as pl

DTYPES = "float32 float64 complex64 complex128 int8 uint8 int64 bool".split()
each_dtype = pytest.mark.parametrize("dtype", DTYPES)


def same(got, want):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype, (got.dtype, want.dtype)
    if got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want)
    else:
        eps = np.finfo(got.dtype).eps
        scale = np.abs(want).max() if want.size else 0
        np.testing.assert_allclose(got, want, rtol=200 * eps, atol=200 * eps * scale)


def agrees(A, a, rng, dtype):
    """Products from both sides in all modes, forms, elements."""
    m, n = a.shape[-2:]
    assert A.shape == a.shape and A.dtype == a.dtype
    for shape in ((n,), (n, 1), (n, 3)):
        x = values(rng, shape, dtype)
        same(A @ x, a @ x)
        same(A.conj() @ x, a.conj() @ x)
        out = np.empty((*a.shape[:-2], m, *shape[1:]), a.dtype)
        assert np.matmul(A, x, out=out) is out
        same(out, a @ x)
    at = np.swapaxes(a, -1, -2)
    for shape in ((m,), (m, 2)):
        y = values(rng, shape, dtype)
        same(A.T @ y, at @ y)
        same(A.H @ y, at.conj() @ y)
    same(A.toarray(), a)
    for k in (0, 1, -1, n - 1, -m, n + 2):
        same(A.diagonal(k), np.diagonal(a, k, -2, -1))
    same(A.trace(), np.trace(a, axis1=-2, axis2=-1))
    for i in range(m):
        for j in range(n):
            same(A[..., i, j], a[..., i, j])
    for B in (pickle.loads(pickle.dumps(A)), copy.deepcopy(A)):
        assert type(B) is type(A)
        same(B.toarray(), a)


def callable_of(a):
    return ref.build(("MatVec", a, True))


# -- BlockDiag --


@each_dtype
@pytest.mark.parametrize(
    "shapes", [[(2, 2)], [(2, 3), (1, 2)], [(2, 2), (0, 3), (3, 3)], [(2, 0), (0, 2), (1, 1)]]
)
def test_block_diag(dtype, shapes, rng):
    blocks = [values(rng, s, dtype) for s in shapes]
    agrees(pl.BlockDiag(*blocks), sl.block_diag(*blocks).astype(dtype), rng, dtype)


def test_block_diag_solves_block_by_block(rng):
    for dtype in ("float32", "float64", "complex128"):
        a, d, b = values(rng, (3, 3), dtype), values(rng, (2,), dtype) + 3, values(rng, (5,), dtype)
        A = pl.inv(pl.BlockDiag(a, pl.Diag(d)))
        assert type(A) is pl.BlockDiag
        same(A @ b, np.concatenate([np.linalg.solve(a, b[:3]), b[3:] / d]))
    B = pl.BlockDiag(pl.Diag([1.0, 0.0]), np.eye(2))
    with pytest.raises(pl.LinAlgError, match=r"[Ss]ingular"):
        pl.inv(B) @ np.ones(4)
    crossed = pl.BlockDiag(np.ones((1, 2)), np.ones((2, 1)))  # square, of blocks that are not
    with pytest.raises(pl.LinAlgError):
        pl.inv(crossed) @ np.ones(3)


def test_block_diag_closes(rng):
    A, B = (pl.BlockDiag(values(rng, (2, 2), "float64"), pl.Diag([1.0, 2.0])) for _ in "ab")
    for C in (A @ B, A + B, A - B, 3 * A, A.T, pl.inv(A), A @ B @ A):
        assert type(C) is pl.BlockDiag, C
    a, b = A.toarray(), B.toarray()
    same((A @ B - A).T.toarray(), (a @ b - a).T)
    other = pl.BlockDiag(pl.Identity(1), np.eye(3))
    assert type(A @ other) is pl.Product and type(A + other) is pl.Sum
    same((A @ other).toarray(), a)
    assert A.args[1].args == () and len(A.args) == 2


def test_block_diag_takes_batches_and_weak_kinds(rng):
    a, d = values(rng, (3, 1, 2, 2), "float32"), values(rng, (4, 2), "float32")
    A = pl.BlockDiag(a, pl.Identity(1), pl.Diag(d))
    assert A.shape == (3, 4, 5, 5) and A.dtype == np.float32
    want = np.zeros((3, 4, 5, 5), np.float32)
    want[..., :2, :2], want[..., 2, 2] = a, 1
    want[..., [3, 4], [3, 4]] = d
    same(A.toarray(), want)
    same(A.diagonal(), np.diagonal(want, 0, -2, -1))
    same(A[..., 2, 2], want[..., 2, 2])
    same(A[..., 0, 4], want[..., 0, 4])
    x = values(rng, (5,), "float32")
    same(A @ x, want @ x)
    assert pl.BlockDiag(pl.Identity(2), pl.Zeros((1, 1))).dtype == np.float64


def test_many_blocks(rng):
    blocks = [values(rng, (3, 3), "float64") for _ in range(1000)]
    A, x = pl.BlockDiag(*blocks), values(rng, (3000,), "float64")
    want = np.concatenate([b @ x[3 * i : 3 * i + 3] for i, b in enumerate(blocks)])
    same(A @ x, want)
    same(pl.inv(A) @ want, np.linalg.solve(np.array(blocks), want.reshape(-1, 3, 1)).ravel())
    assert len(A.explain().split("gemm")) > 20


def test_blocks_write_into_place(rng):
    """No copy: one step a block, on rows of x and y; also inside one another."""
    a = [values(rng, (3, 3), "float64") for _ in range(3)]
    A = pl.BlockDiag(pl.BlockDiag(a[0], a[1]), a[2])
    plan = A.explain()
    assert "steps     3" in plan and "0 bytes of workspace" in plan, plan
    x = values(rng, (9, 2), "float64")
    same(A @ np.asfortranarray(x), sl.block_diag(*a) @ x)


# -- Block --


@each_dtype
def test_block(dtype, rng):
    a, b, d = (values(rng, s, dtype) for s in ((2, 3), (2, 2), (4, 2)))
    want = np.block([[a, b], [np.zeros((4, 3), dtype), d]]).astype(dtype)
    agrees(pl.Block([[a, b], [None, d]]), want, rng, dtype)
    agrees(pl.block([[a, b], [None, d]]), want, rng, dtype)
    agrees(pl.hstack([a, b]), np.hstack([a, b]), rng, dtype)
    agrees(pl.vstack([b, d]), np.vstack([b, d]), rng, dtype)
    agrees(pl.Block([[None, b], [a, None]]), sp.block_array([[None, b], [a, None]]).toarray()
           .astype(dtype), rng, dtype)  # fmt: skip


def test_block_says_what_does_not_fit():
    a, b = np.ones((2, 2)), np.ones((3, 2))
    for blocks, words in (
        ([[a, b]], r"block \(0, 1\) of shape \(3, 2\) .* rows .*\(0, 0\) of shape \(2, 2\)"),
        ([[a], [np.ones((2, 3))]], r"block \(1, 0\) .* columns"),
        ([[a, None], [None, None]], r"row 1 of the blocks is None throughout"),
        ([[a, None]], r"column 1 of the blocks is None throughout"),
        ([[a, a], [a]], r"row 1 has 1 blocks, row 0 has 2"),
        ([], r"no block"),
        ([[]], r"no block"),
    ):
        with pytest.raises(ValueError, match=words):
            pl.Block(blocks)
    for blocks in (pl.Dense(a), "ab", 3, [pl.Dense(a)], [3]):
        with pytest.raises(TypeError, match="nested lists"):
            pl.Block(blocks)
    with pytest.raises(TypeError):
        pl.Block()


def test_block_keeps_its_blocks(rng):
    a = pl.Dense(values(rng, (2, 2), "complex128"))
    B = pl.Block([[a, None], [np.ones((1, 2)), pl.Identity(1)]])
    assert B.args[0] is a and B.blocks[0][0] is a and len(B.blocks) == 2
    assert type(B.T) is pl.Block and B.T.T is B and type(B.H) is pl.Block
    assert B.astype("complex64").dtype == np.complex64
    A = pl.Block([[a, pl.Identity(2)], [pl.Zeros((2, 2)), a]])
    x = values(rng, (4,), "complex128")
    same(pl.inv(A) @ x, np.linalg.solve(A.toarray(), x))


def test_zeros_are_structural():
    nan = np.full((2, 2), np.nan)
    B = pl.Block([[np.eye(2), None], [None, nan]])
    np.testing.assert_array_equal((B @ np.ones(4))[:2], [1, 1])
    x = np.array([1.0, 1.0, np.nan, np.nan])
    np.testing.assert_array_equal((B @ x)[:2], [1, 1])
    np.testing.assert_array_equal((pl.BlockDiag(np.eye(2), nan) @ x)[:2], [1, 1])


# -- LowRankUpdate --


@each_dtype
def test_low_rank_update(dtype, rng):
    b, u, v, c = (values(rng, s, dtype) for s in ((4, 3), (4, 2), (3, 2), (2, 2)))
    agrees(pl.LowRankUpdate(b, u, v), b + u @ v.conj().T, rng, dtype)
    agrees(pl.LowRankUpdate(b, u, v, c), b + u @ c @ v.conj().T, rng, dtype)
    d = values(rng, (4,), dtype)
    agrees(pl.LowRankUpdate(pl.Diag(d), u), np.diag(d) + u @ u.conj().T, rng, dtype)
    agrees(pl.LowRankUpdate(pl.Identity(4), u, C=c), np.eye(4, dtype=dtype) + u @ c @ u.conj().T,
           rng, dtype)  # fmt: skip


def eta(a, x, b):
    a, x, b = (np.asarray(v, np.clongdouble) for v in (a, x, b))
    norm = np.linalg.norm(a.astype(complex), 2)
    return float(np.linalg.norm(b - a @ x) / (norm * np.linalg.norm(x) + np.linalg.norm(b)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_woodbury(dtype, rng):
    """Well and badly conditioned: eta <= 10 n u, the dense form where the formula is not enough."""
    n, r, u = 60, 4, np.finfo(dtype).eps / 2
    for spread, size in ((1, 1), (1e-3, 1e3), (1e-12, 1), (1e-7, 1e6), (1, 1e-9)):
        d = (spread ** rng.random(n)).astype(dtype)
        U, V = values(rng, (n, r), dtype) * np.float32(size), values(rng, (n, r), dtype)
        C, b = values(rng, (r, r), dtype), values(rng, (n, 3), dtype)
        for A in (pl.LowRankUpdate(pl.Diag(d), U), pl.LowRankUpdate(pl.Diag(d), U, V, C)):
            a = A.toarray()
            assert "accept" in pl.inv(A).explain()
            for B, want in ((A, a), (A.T, a.T), (A.H, a.conj().T), (A.conj(), a.conj())):
                x = pl.inv(B) @ b
                assert x.dtype == dtype and all(
                    eta(want, x[:, j], b[:, j]) <= 10 * n * u for j in range(3)
                )


def test_woodbury_with_a_base_that_is_singular(rng):
    d = np.array([0.0, 1, 2, 3, 4, 5])
    e = np.eye(6)[:, :1]
    A = pl.LowRankUpdate(pl.Diag(d), e)
    b = values(rng, (6, 2), "float64")
    same(pl.inv(A) @ b, np.linalg.solve(A.toarray(), b))
    d[0] = -1  # now base is regular and A is not
    with pytest.raises(pl.LinAlgError, match="[Ss]ingular"):
        pl.inv(A) @ b
    d[0] = 2
    same(pl.inv(A) @ b, np.linalg.solve(A.toarray(), b))


def test_woodbury_branches_alone_in_a_batch(rng):
    d = np.array([[0.0, 1, 2, 3], [1, 2, 3, 4], [1, 1e-30, 1, 1]])
    u, b = values(rng, (3, 4, 1), "float64"), values(rng, (3, 4, 2), "float64")
    A = pl.LowRankUpdate(pl.Diag(d), u)
    x = pl.inv(A) @ b
    for i in range(3):
        for j in range(2):
            assert eta(A.toarray()[i], x[i, :, j], b[i, :, j]) < 1e-14
    y = pl.inv(pl.LowRankUpdate(pl.Identity(4), u[0])) @ b
    same(y, np.linalg.solve(np.eye(4) + u[0] @ u[0].T, b))


def test_large_update_takes_no_dense_memory(rng):
    n = 200_000
    A = pl.LowRankUpdate(pl.Diag(1 + rng.random(n)), values(rng, (n, 5), "float64"))
    b = values(rng, (n,), "float64")
    x = pl.inv(A) @ b
    assert np.linalg.norm(A @ x - b) < 1e-10 * np.linalg.norm(b)


def test_low_rank_closes(rng):
    u, v, c = (values(rng, s, "complex128") for s in ((6, 2), (6, 2), (2, 2)))
    D, L, M = pl.Diag(values(rng, (6,), "complex128")), pl.LowRank(u, v), pl.LowRank(v, C=c)
    for A in (L + M, L - M, 2 * L, M * 2j, L + L, (L + M) + L):
        assert type(A) is pl.LowRank, A
    for A in (D + L, L + D, D - M, (D + L) + M, M + (D + L), 2j * (D + L), (D + L).H, (D + M).T):
        assert type(A) is pl.LowRankUpdate, A
    d, l, m = D.toarray(), L.toarray(), M.toarray()
    same((2j * (D + L) - M).H.toarray(), (2j * (d + l) - m).conj().T)
    same((L + M - L).T.toarray(), m.T + (l - l))
    x = values(rng, (6,), "complex128")
    same(pl.inv(3 * pl.Identity(6) + M) @ x, np.linalg.solve(3 * np.eye(6) + m, x))
    with pytest.raises(ValueError, match=r"base \(6, 6\), U \(5, 2\)"):
        pl.LowRankUpdate(D, u[:5])


# -- KronSum --


@each_dtype
def test_kron_sum(dtype, rng):
    a, b, c = (values(rng, (k, k), dtype) for k in (2, 3, 2))
    eye = [np.eye(k, dtype=dtype) for k in (2, 3)]
    two = np.kron(a, eye[1]) + np.kron(eye[0], b)
    agrees(pl.KronSum(a, b), two, rng, dtype)
    agrees(pl.KronSum(a, b, c), np.kron(two, eye[0]) + np.kron(np.eye(6, dtype=dtype), c), rng,
           dtype)  # fmt: skip
    agrees(pl.KronSum(a), a, rng, dtype)
    d, e = values(rng, (2,), dtype), values(rng, (3,), dtype)
    agrees(pl.KronSum(pl.Diag(d), pl.Diag(e)), np.diag(np.add.outer(d, e).ravel()), rng, dtype)


def test_kron_sum_against_scipy(rng):
    a, b = (sp.random_array((k, k), density=0.5, rng=rng) for k in (3, 4))
    same(pl.KronSum(a, b).toarray(), sp.kronsum(b, a).toarray())
    K = pl.KronSum(pl.Diag([1.0, 2.0]), pl.Diag([3.0, 4.0, 5.0]))
    x = values(rng, (6,), "float64")
    same(pl.inv(K) @ x, x / K.diagonal())
    assert type(K.T) is pl.KronSum and "kronsum-diag" in K.explain().fired
    with pytest.raises(ValueError, match=r"operand 1 has shape \(2, 3\)"):
        pl.KronSum(np.eye(2), np.ones((2, 3)))


# -- Congruence, Root, Eigen, HadamardProduct, KhatriRao --


@each_dtype
def test_congruence_root_eigen(dtype, rng):
    a, b, d = values(rng, (4, 3), dtype), values(rng, (3, 3), dtype), values(rng, (3,), dtype)
    agrees(pl.Congruence(a, b), a @ b @ a.conj().T, rng, dtype)
    agrees(pl.Root(a), a @ a.conj().T, rng, dtype)
    agrees(pl.Eigen(a, d), a @ np.diag(d) @ a.conj().T, rng, dtype)


@each_dtype
def test_hadamard_and_khatri_rao(dtype, rng):
    a, b, c = (values(rng, s, dtype) for s in ((3, 4), (3, 4), (2, 4)))
    agrees(pl.multiply(a, pl.Dense(b)), a * b, rng, dtype)
    agrees(pl.KhatriRao(a, c), sl.khatri_rao(a, c), rng, dtype)
    d, s = values(rng, (4,), dtype), values(rng, (4, 4), dtype)
    agrees(pl.HadamardProduct(pl.Diag(d), s), np.diag(d) * s, rng, dtype)
    agrees(pl.HadamardProduct(s, pl.Identity(4)), np.diag(np.diag(s)), rng, dtype)


def test_solves_use_the_form(rng):
    q = np.linalg.qr(values(rng, (5, 5), "complex128"))[0]
    d, b = 1 + rng.random(5), values(rng, (5, 2), "complex128")
    E = pl.Eigen(pl.Dense(q, assume_a="orthogonal"), d)
    same(pl.inv(E) @ b, np.linalg.solve(E.toarray(), b))
    assert "solve-orthogonal" in pl.inv(E).explain().fired and "getr" not in pl.inv(E).explain()
    same(pl.inv(E.T) @ b, np.linalg.solve(E.toarray().T, b))
    L = pl.Dense(np.tril(values(rng, (5, 5), "float64")) + 3 * np.eye(5), "lower triangular")
    same(pl.inv(pl.Root(L)) @ b, np.linalg.solve(pl.Root(L).toarray(), b))
    assert pl.inv(pl.Root(L)).explain().count("trsm") == 2
    with pytest.raises(pl.LinAlgError):
        pl.inv(pl.Root(pl.Zeros((3, 2)))) @ np.ones(3)


def test_forms_that_close(rng):
    a = pl.Dense(values(rng, (3, 3), "complex128"))
    for A in (pl.Congruence(a, a), pl.Root(a), pl.Eigen(a, [1j, 2, 3]), pl.HadamardProduct(a, a)):
        for B in (A.T, A.H, A.conj(), A.T.conj()):
            assert type(B) is type(A)
        same(A.H.toarray(), A.toarray().conj().T)
        same(A.T.toarray(), A.toarray().T)
    assert type(pl.multiply(2, a)) is pl.Scaled
    with pytest.raises(ValueError, match=r"\(3, 3\) and \(2, 3\)"):
        pl.multiply(a, np.ones((2, 3)))


# -- callables and dtypes C does not know run the plain walk --


def opaque_cases(rng):
    a, b = values(rng, (3, 3), "complex128"), values(rng, (2, 3), "complex128")
    A, B = callable_of(a), callable_of(b)
    yield pl.BlockDiag(A, pl.Diag([1.0, 2.0]), B), sl.block_diag(a, np.diag([1.0, 2.0]), b)
    u, v = values(rng, (3, 2), "complex128"), values(rng, (3, 2), "complex128")
    c = values(rng, (2, 2), "complex128")
    yield pl.LowRankUpdate(A, u, v, c), a + u @ c @ v.conj().T
    yield pl.LowRankUpdate(pl.Identity(3), callable_of(u)), np.eye(3) + u @ u.conj().T
    yield (
        pl.KronSum(A, pl.Diag([1.0, 2.0])),
        np.kron(a, np.eye(2)) + np.kron(np.eye(3), np.diag([1.0, 2.0])),
    )
    yield pl.Congruence(B, A), b @ a @ b.conj().T
    yield pl.Root(B), b @ b.conj().T
    yield pl.Eigen(B, v[:, 0]), b @ np.diag(v[:, 0]) @ b.conj().T
    yield pl.HadamardProduct(A, a), a * a
    yield pl.KhatriRao(B, a), sl.khatri_rao(b, a)
    yield (
        pl.Block([[A, None], [B, pl.Identity(2)]]),
        np.block([[a, np.zeros((3, 2))], [b, np.eye(2)]]),
    )


@pytest.mark.parametrize("which", range(10))
def test_callables_inside(which, rng):
    A, a = list(opaque_cases(rng))[which]
    m, n = a.shape
    for x in (values(rng, (n,), "complex128"), values(rng, (n, 2), "complex128")):
        same(A @ x, a @ x)
        same(A.conj() @ x, a.conj() @ x)
    for y in (values(rng, (m,), "complex128"), values(rng, (m, 2), "complex128")):
        same(A.T @ y, a.T @ y)
        same(A.H @ y, a.T.conj() @ y)
        same(y.T @ A, y.T @ a)
    same(A.toarray(), a)
    same(A.diagonal(), np.diagonal(a))


def test_foreign_dtypes(rng):
    x = np.arange(5, dtype=np.longdouble)
    A = pl.BlockDiag(np.ones((2, 2)), np.eye(3))
    for B in (A, A @ A, A.T, 2 * A):
        assert (B @ x).dtype == np.longdouble
        np.testing.assert_allclose((B @ x).astype(float), B.toarray() @ np.arange(5.0))
