"""The canonical expression, walked with NumPy, against C: all kinds and actions. The walk takes
the fast arm of each checked way, and computes everything else by other code than C does."""

import numpy as np
import pytest
import ref
import samples
import scipy.sparse

import pylinop as pl
from pylinop._namespace import arrays, walk

NS = arrays.namespace_of(np.zeros(1))
APPLY, DENSE, DIAGONAL, TRACE, ELEMENT, DET = 0, 8, 9, 10, 11, 12


def walked(op, action, x=None, i=0, j=0):
    canonical = walk.canonical(op, action, x, i, j)
    leaves = dict(canonical[1])
    if x is not None:
        leaves[canonical[2]] = x
    return walk.run(NS, canonical, leaves)


def close(got, due):
    got, due = np.asarray(got), np.asarray(due)
    assert got.shape == due.shape
    tolerance = 1e-9 if due.dtype.char in "dD" else 1e-3
    assert np.max(np.abs(got - due), initial=0) <= tolerance * max(
        1, np.max(np.abs(due), initial=0)
    )


def drawn(kind, dtype, invertible):
    rng = np.random.default_rng()
    for batch in ((), (2,)):
        for m, n in ((6, 6), (4, 6), (70, 70)):
            if n == 70 and (batch or dtype == "float32"):
                continue
            d = samples.leaf(kind, rng, m, n, dtype, batch, "C", invertible)
            if d is not None:
                A = ref.build(d)
                m, n = A.shape[-2:]
                yield A, *(samples.values(rng, (k, 2), dtype) for k in (n, m))


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("kind", [k for k in ref.LEAVES if k != "MatVec"])
def test_products_and_entries(kind, dtype):
    for A, x, y in drawn(kind, dtype, False):
        close(walked(A, APPLY, x), A @ x)
        close(walked(A, APPLY + 1, y), A.T @ y)
        close(walked(A, APPLY + 2, x), A.conj() @ x)
        close(walked(A, APPLY + 3, y), A.H @ y)
        close(walked(A, DENSE), A.toarray())
        close(walked(A, DIAGONAL, None, 1), A.diagonal(1))
        close(walked(A, DIAGONAL), A.diagonal())
        close(walked(A, ELEMENT, None, 1, 2), A.toarray()[..., 1, 2])
        if A.shape[-1] == A.shape[-2]:
            close(walked(A, TRACE), A.trace())


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("kind", [k for k in ref.LEAVES if k != "MatVec"])
def test_solves_and_determinants(kind, dtype):
    for A, x, _ in drawn(kind, dtype, True):
        if A.shape[-1] != A.shape[-2]:
            continue
        sign, logabs = pl.slogdet(A)
        if not np.all(np.isfinite(logabs)):  # a Laplacian without flux is singular
            continue
        close(walked(pl.inv(A), APPLY, x), pl.solve(A, x))
        got = walked(A, DET)
        close(got[0], sign)
        close(got[1], logabs)


@pytest.mark.parametrize("words", ["none", "pos", "sym", "her", "lower triangular"])
def test_sums_that_go_by_structure(words):
    rng = np.random.default_rng()
    n = 12
    U, d = rng.standard_normal((n, 2)), 1 + rng.random(n)
    G = rng.standard_normal((n, n))
    G = G @ G.T + n * np.eye(n)
    B = pl.Diag(d) if words == "none" else pl.Dense(G, assume_a=words)
    T = pl.Toeplitz(np.r_[8.0, rng.random(n - 1)])
    small = pl.Dense(np.diag([2.0, 3, 4]) + rng.random((3, 3)))
    for A in (
        B + pl.LowRank(U),
        2.5 * B + 0.5 * pl.Identity(n),
        T + pl.Diag(d),
        pl.Kron(small, pl.Diag(d[:4])) + 3 * pl.Identity(n),
        pl.Block([[B, pl.Dense(U)], [pl.Dense(U.T), -pl.Identity(2)]]),
        pl.inv(B) @ T,
    ):
        x = rng.standard_normal((A.shape[-1], 2))
        close(walked(A, APPLY, x), A @ x)
        close(walked(pl.inv(A), APPLY, x), pl.solve(A, x))
        close(walked(A, DET)[1], pl.slogdet(A)[1])
        close(walked(pl.inv(A), DIAGONAL), pl.diagonal(pl.inv(A)))


def test_the_fast_way_of_woodbury_is_refined_once():
    """Of a matrix that is bad enough for one step to tell, and not for the check to fail."""
    rng = np.random.default_rng(8)
    n = 40
    U = rng.standard_normal((n, 2)) * 1e4
    A = pl.Diag(1 + rng.random(n)) + pl.LowRank(U)
    b = rng.standard_normal((n, 1))
    x = walked(pl.inv(A), APPLY, b)
    D = A.toarray()
    assert np.linalg.norm(D @ x - b) <= 1e-13 * np.linalg.norm(D) * np.linalg.norm(x)
    rows = walk.rows_of(pl.inv(A)._canonical(APPLY, b, 0, 0)[0])
    need = walk._reads(rows, walk._arms(rows))
    asked = {r.head for r, wanted in zip(rows, need, strict=True) if wanted}
    assert "checked" in {r.head for r in rows} and "lu_solve" not in asked


def test_where_the_fast_way_has_no_form_the_safe_one_is_taken():
    """Schur's forms of sums of Kronecker products of matrices that are not symmetric."""
    rng = np.random.default_rng(2)
    A, B, C = (pl.Dense(rng.standard_normal((n, n)) + 4 * np.eye(n)) for n in (8, 9, 8))
    for K in (pl.Identity(64) - 0.01 * pl.Kron(A, A), pl.Kron(A, B) + pl.Kron(C, pl.Identity(9))):
        x = rng.standard_normal((K.shape[-1], 2))
        heads = {row[0] for row in pl.inv(K)._canonical(APPLY, x, 0, 0)[0]}
        assert heads & {"stein_solve", "schur_solve"}
        close(walked(pl.inv(K), APPLY, x), pl.solve(K, x))
        close(walked(K, DET)[1], pl.slogdet(K)[1])
        close(walked(pl.inv(K), TRACE), pl.trace(pl.inv(K)))


def test_coefficients_are_named():
    A = 1.75 * pl.Identity(3) + pl.LowRank(np.ones((3, 1)))
    x = np.ones((3, 1))
    canonical = pl.inv(A)._canonical(APPLY, x, 0, 0, (1.75,))
    leaves = {**canonical[1], canonical[2]: x}
    for c in (1.75, 4.0):
        got = walk.run(NS, canonical, leaves, {1.75: lambda c=c: np.array(c)})
        close(got, np.linalg.solve(c * np.eye(3) + np.ones((3, 3)), x))
    with pytest.raises(NotImplementedError, match="4097 coefficients"):
        A._canonical(DENSE, None, 0, 0, tuple(1.5 + k / 64 for k in range(4097)))
    with pytest.raises(ValueError, match="no such action"):
        A._canonical(99, None, 0, 0)
    with pytest.raises(TypeError):
        A._canonical(DENSE, None, 0, 0, ("a",))


@pytest.mark.parametrize("name", ["matern12", "matern32", "matern52"])
def test_points_on_a_line_go_dense(name):
    """C sorts many of them and sweeps along: there is no such form elsewhere."""
    rng = np.random.default_rng()
    t = rng.random((200, 1))
    A = pl.Kernel(name, t, length_scale=0.2) + 0.1 * pl.Identity(200)
    b = rng.standard_normal((200, 1))
    assert "line_order" in {row[0] for row in pl.inv(A)._canonical(APPLY, b, 0, 0)[0]}
    close(walked(pl.inv(A), APPLY, b), pl.solve(A, b))
    close(walked(A, DET)[1], pl.slogdet(A)[1])
    close(walked(pl.inv(A), DIAGONAL), pl.diagonal(pl.inv(A)))
    assert "line_order" in {row[0] for row in pl.inv(A)._canonical(APPLY, b, 0, 0)[0]}


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_what_has_no_numbers(dtype):
    """Found by the batteries: diagonals beside the matrix, boxes of nothing, no reflector."""
    none = np.zeros(0, dtype)
    beside = pl.Diag(none, k=-2, shape=(1, 1))
    close(walked(beside, DENSE), np.zeros((1, 1)))
    close(walked(beside, DIAGONAL, None, 1), none)
    close(walked(pl.Householder(none), DET)[0], 1)
    C = pl.Circulant(np.ones(1, dtype))
    x = np.zeros((1, 0), dtype)
    close(walked(C, APPLY, x), x)
    close(walked(pl.inv(C), APPLY, x), x)


def test_many_blocks_alike():
    rng = np.random.default_rng()
    a = rng.standard_normal((40, 3, 3)) + 4 * np.eye(3)
    blocks = pl.BlockDiag(*map(pl.Dense, a))
    b = rng.standard_normal((120, 2))
    assert "cholesky_batch" in {row[0] for row in pl.inv(blocks)._canonical(APPLY, b, 0, 0)[0]}
    close(walked(blocks, APPLY, b), blocks @ b)
    close(walked(pl.inv(blocks), APPLY, b), pl.solve(blocks, b))
    close(walked(blocks, DET)[1], pl.slogdet(blocks)[1])


def test_what_has_no_form_says_so():
    A = pl.MatVec((5, 5), lambda x: x, dtype=float)  # the callable takes NumPy's arrays
    with pytest.raises(NotImplementedError, match="'opaque' of shape"):
        walked(A, APPLY, np.ones((5, 1)))


def narrow(dtype):
    """Operators of a narrow dtype whose dense forms wrap in it."""
    a = np.array([[1, 1], [1, 200]], "uint8").astype(dtype)
    rows, twice = np.array([0, 0, 1]), np.array([1, 1, 0])
    D = pl.Dense(a)
    yield pl.Hadamard(4, dtype=dtype)
    yield pl.Kron(D, D)
    yield pl.KronSum(D, D)
    yield pl.Kron(D @ D, D + D)
    yield pl.Sparse(scipy.sparse.coo_array((a.reshape(-1)[1:], (rows, twice)), shape=(4, 4)))
    yield pl.Householder(a.reshape(-1), tau=np.ones((), dtype))


@pytest.mark.parametrize("dtype", ["bool", "uint8"])
def test_what_narrow_integers_would_wrap(dtype):
    """Beside floats it does not: each leaf is cast first."""
    F = pl.Diag(np.arange(1.0, 5))
    for A in narrow(dtype):
        for op in (A + F, F @ A, pl.HadamardProduct(F, A)):
            close(walked(op, DENSE), op.toarray())
            close(walked(op, DIAGONAL), op.diagonal())
            close(walked(op, TRACE), op.trace())
            close(walked(op, ELEMENT, None, 1, 1), op.toarray()[1, 1])
        for x in (np.arange(1.0, 5)[:, None], 1j * np.arange(1.0, 5)[:, None]):
            close(walked(A, APPLY, x), A @ x)
            close(walked(A, APPLY + 3, x), A.H @ x)
