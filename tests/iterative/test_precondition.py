"""Preconditioners: what they are, entry by entry, and that they bring iterations down."""

import pickle

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg

import pylinop as pl
from pylinop import _core
from pylinop._precondition import api

FLOATS = "float32 float64 complex64 complex128".split()


def iterations(A, M=None, rtol=1e-9):
    count = 0

    def step(x):
        nonlocal count
        count += 1

    b = np.random.default_rng(3).standard_normal(A.shape[0]).astype(A.dtype)
    x, info = scipy.sparse.linalg.cg(A, b, rtol=rtol, maxiter=3000, M=M, callback=step)
    assert info == 0
    assert np.linalg.norm(A @ x - b) <= 10 * rtol * np.linalg.norm(b)
    return count


def laplacian(n):
    one = sp.diags_array([np.full(n, 2.0), *2 * [np.full(n - 1, -1.0)]], offsets=[0, -1, 1])
    return (sp.kron(one, sp.eye_array(n)) + sp.kron(sp.eye_array(n), one)).tocsr()


def definite(rng, n, dtype="float64"):
    a = rng.standard_normal((n, n)).astype(dtype)
    a = a + 1j * rng.standard_normal((n, n)) if np.dtype(dtype).kind == "c" else a
    return (a @ a.conj().T + np.eye(n)).astype(dtype)


def sparse_definite(rng, n, dtype):
    S = sp.random_array((n, n), density=2 / n, rng=rng).tocsr()
    if np.dtype(dtype).kind == "c":
        S = S + 1j * sp.random_array((n, n), density=1 / n, rng=rng).tocsr()
    S = S + S.conj().T
    S = S + sp.diags_array(np.asarray(abs(S).sum(axis=1)).ravel() + 0.1)
    return S.tocsr().astype(dtype)


def is_positive(M):
    m = M.toarray()
    np.testing.assert_allclose(m, m.conj().T, atol=1e-5 * abs(m).max())
    return np.linalg.eigvalsh((m + m.conj().T) / 2).min() > 0


# -- each kind is what it says --


@pytest.mark.parametrize("dtype", FLOATS)
def test_jacobi(dtype):
    a = definite(np.random.default_rng(0), 9, dtype)
    M = pl.preconditioner(a, "jacobi")
    assert type(M) is pl.Diag and M.proposal.positive and M.dtype.kind == "f"
    np.testing.assert_allclose(M.toarray(), np.diag(1 / np.diag(a).real), rtol=1e-6)
    batch = pl.preconditioner(np.stack([a, 2 * a]), "jacobi")
    np.testing.assert_allclose(batch.toarray()[1], M.toarray() / 2, rtol=1e-6)
    assert not pl.preconditioner(-a, "jacobi").proposal.positive


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("block", [4, [3, 1, 6], None])
def test_block_jacobi(dtype, block):
    a = definite(np.random.default_rng(0), 10, dtype)
    ends = {4: [4, 4, 2], None: [10]}.get(block if block is None or block == 4 else 0, [3, 1, 6])
    at = np.cumsum([0, *ends])
    want = scipy.linalg.block_diag(*(np.linalg.inv(a[i:j, i:j]) for i, j in zip(at, at[1:])))
    tol = 3e-4 if dtype in ("float32", "complex64") else 1e-10
    for A in (pl.Dense(a), pl.Sparse(sp.csc_array(a)), pl.Dense(a / 2) + pl.Dense(a / 2)):
        M = pl.preconditioner(A, "block_jacobi", **({} if block is None else {"block": block}))
        np.testing.assert_allclose(M.toarray(), want, rtol=tol, atol=tol)
        assert M.proposal.positive and M.dtype == dtype and type(M) is pl.BlockDiag


def test_block_jacobi_of_many_blocks_and_of_a_block():
    S = laplacian(40)
    many = pl.preconditioner(pl.Sparse(S), "block_jacobi", block=3)
    assert type(many) is pl.Sparse and many.proposal.positive
    x = np.arange(1600.0)
    want = np.concatenate(
        [
            np.linalg.solve(S[i : i + 3, i : i + 3].toarray(), x[i : i + 3])
            for i in range(0, 1600, 3)
        ]
    )
    np.testing.assert_allclose(many @ x, want)
    rng = np.random.default_rng(0)
    a, b, c = definite(rng, 4), definite(rng, 3), rng.standard_normal((4, 3))
    M = pl.preconditioner(pl.Block([[a, c], [c.T, b]]))
    assert M.proposal.kind == "block_jacobi"
    np.testing.assert_allclose(
        M.toarray(), scipy.linalg.block_diag(np.linalg.inv(a), np.linalg.inv(b))
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("omega", [1.0, 0.7, 1.5])
def test_ssor(dtype, omega):
    S = sparse_definite(np.random.default_rng(0), 30, dtype)
    a = S.toarray()
    d, low = np.diag(np.diag(a)), np.tril(a, -1)
    left = d / omega + low
    want = np.linalg.inv(omega / (2 - omega) * left @ np.linalg.inv(d) @ left.conj().T)
    before = S.copy()
    for A in (pl.Sparse(S), pl.Sparse(S.tocsc()), pl.Sparse(S.tocoo())):
        M = pl.preconditioner(A, "ssor", omega=omega)
        tol = 1e-4 if dtype in ("float32", "complex64") else 1e-11
        np.testing.assert_allclose(M.toarray(), want, rtol=tol, atol=tol)
        assert M.proposal.positive and M.dtype == dtype
    assert (before != S).nnz == 0


def ic0(a):
    """Incomplete Cholesky on a's pattern, as the textbooks write it."""
    l, n = np.tril(a).astype(np.result_type(a, np.float64)), len(a)
    pattern = np.tril(a) != 0
    for k in range(n):
        l[k, k] = np.sqrt(l[k, k])
        l[k + 1 :, k] /= l[k, k]
        for j in range(k + 1, n):
            l[j:, j] -= np.where(pattern[j:, j], l[j:, k] * l[j, k].conj(), 0)
    return l


@pytest.mark.parametrize("dtype", FLOATS)
def test_incomplete_cholesky_on_the_pattern(dtype):
    S = sparse_definite(np.random.default_rng(0), 40, dtype)
    l = ic0(S.toarray())
    M = pl.preconditioner(pl.Sparse(S), "ic")
    tol = 1e-4 if dtype in ("float32", "complex64") else 1e-11
    np.testing.assert_allclose(M.toarray(), np.linalg.inv(l @ l.conj().T), rtol=tol, atol=tol)
    assert M.proposal.details["shift"] == 0 and M.dtype == dtype and M.proposal.positive
    assert M.proposal.details["nnz"] == sp.tril(S).nnz


@pytest.mark.parametrize("dtype", FLOATS)
def test_incomplete_cholesky_that_drops_nothing_is_cholesky(dtype):
    S = sparse_definite(np.random.default_rng(0), 40, dtype)
    M = pl.preconditioner(pl.Sparse(S), "ict", drop=0.0, fill=40)
    tol = 1e-4 if dtype in ("float32", "complex64") else 1e-11
    np.testing.assert_allclose(M.toarray(), np.linalg.inv(S.toarray()), rtol=tol, atol=tol)


def test_fill_and_drop_bound_the_factor():
    A = pl.Sparse(laplacian(20))
    own = sp.tril(laplacian(20)).nnz
    counts = [
        pl.preconditioner(A, "ict", drop=0, fill=f).proposal.details["nnz"] for f in (0, 2, 9)
    ]
    assert counts[0] <= own < counts[1] <= own + 2 * 400 and counts[1] < counts[2] <= own + 9 * 400
    drops = [pl.preconditioner(A, "ict", drop=t, fill=99) for t in (1e-1, 1e-2, 1e-4)]
    sizes = [M.proposal.details["nnz"] for M in drops]
    assert sizes == sorted(sizes) and sizes[0] < sizes[2]
    steps = [iterations(A, M) for M in drops]
    assert steps[0] > steps[1] > steps[2]


def test_a_pivot_that_is_not_positive_shifts():
    # Kershaw 1978: definite, but its incomplete factor on the pattern has a negative pivot
    a = np.array([[3.0, -2, 0, 2], [-2, 3, -2, 0], [0, -2, 3, -2], [2, 0, -2, 3]])
    assert np.linalg.eigvalsh(a).min() > 0
    M = pl.preconditioner(pl.Sparse(sp.csr_array(a)), "ic")
    assert M.proposal.details["shift"] >= 1e-3 and "pivot 3 was not positive" in M.proposal.reason
    assert is_positive(M) and iterations(pl.Dense(a), M) <= 4
    l = ic0(a + M.proposal.details["shift"] * np.diag(np.diag(a)))
    np.testing.assert_allclose(M.toarray(), np.linalg.inv(l @ l.T), atol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 7, 8])
@pytest.mark.parametrize("dtype", FLOATS)
def test_circulants(n, dtype):
    k = np.arange(n)
    z = 0.6 * np.exp(0.4j) if np.dtype(dtype).kind == "c" else 0.6
    T = pl.Toeplitz((z**k).astype(dtype))
    t, best = T.toarray(), np.zeros(n, complex)
    for j in range(n):  # the nearest circulant: means along the wrapped diagonals
        best[j] = np.mean([t[i, (i - j) % n] for i in range(n)])
    tol = 1e-4 if dtype in ("float32", "complex64") else 1e-12
    M = pl.preconditioner(T, "chan")
    want = np.linalg.inv(scipy.linalg.circulant(best))
    np.testing.assert_allclose(M.toarray(), want, atol=tol)
    assert M.dtype == dtype and M.proposal.positive and is_positive(M)
    c = np.where(k <= n // 2, t[:, 0], np.r_[0, t[0, :0:-1]])
    if n % 2 == 0:
        c[n // 2] = (t[n // 2, 0] + t[0, n // 2]) / 2
    M = pl.preconditioner(T, "strang")
    np.testing.assert_allclose(M.toarray(), np.linalg.inv(scipy.linalg.circulant(c)), atol=tol)


def test_a_circulant_that_is_not_definite_is_refused():
    n = 64
    T = pl.Toeplitz(np.r_[2.0, -1.0, np.zeros(n - 2)])  # Strang's has the eigenvalue 0
    with pytest.raises(pl.LinAlgError, match="no definite circulant is near"):
        pl.preconditioner(T, "strang")
    M = pl.preconditioner(T)
    assert M.proposal.kind == "chan" and is_positive(M)
    N = pl.preconditioner(pl.Toeplitz([3.0, 1, 0, 0], [3.0, -1, 0, 0]))
    assert not N.proposal.positive and "not Hermitian" in N.proposal.reason
    with pytest.raises(pl.LinAlgError, match="it takes a square Toeplitz"):
        pl.preconditioner(np.eye(3), "circulant")


def test_multilevel_and_shifted_circulants():
    lag = np.abs(np.arange(-11, 12))
    A = pl.MultilevelToeplitz(np.exp(-0.5 * (lag[:, None] + lag)), (12, 12))
    M = pl.preconditioner(A, "chan")
    one = pl.preconditioner(pl.Toeplitz(np.exp(-0.5 * np.arange(12))), "chan").toarray()
    np.testing.assert_allclose(M.toarray(), np.kron(one, one), atol=1e-10)
    d = np.linspace(0.5, 1.5, 144)
    M = pl.preconditioner(A + pl.Diag(d))
    plain = pl.preconditioner(A, M.proposal.kind)
    want = np.linalg.inv(np.linalg.inv(plain.toarray()) + np.eye(144))
    np.testing.assert_allclose(M.toarray(), want, atol=1e-10)


@pytest.mark.parametrize("dtype", FLOATS)
def test_kronecker_is_exact_where_the_matrix_is_one(dtype):
    rng = np.random.default_rng(0)
    A, B = definite(rng, 5, dtype), definite(rng, 4, dtype)
    d = np.kron(rng.uniform(1, 2, 5), rng.uniform(1, 2, 4)).astype(dtype)
    tol = 3e-3 if dtype in ("float32", "complex64") else 1e-9
    cases = [
        pl.Kron(A, B) + pl.Diag(d.real),
        2 * pl.Kron(A, B) + pl.Kron(A, 3 * B),
        pl.Kron(A, B) - pl.Kron(0.2 * A, B),
    ]
    for K in cases:
        M = pl.preconditioner(K, "kronecker")
        assert M.dtype == dtype and M.proposal.positive and M.proposal.details["distance"] < tol
        np.testing.assert_allclose(M.toarray() @ K.toarray(), np.eye(20), atol=tol)


def test_kronecker_of_three_factors():
    rng = np.random.default_rng(0)
    A, B, C = definite(rng, 3), definite(rng, 4), definite(rng, 2)
    d = np.kron(np.kron([1.0, 2, 3], [1.0, 3, 1, 2]), [2.0, 1])
    K = pl.Kron(A, B, C) + pl.Diag(d)
    M = pl.preconditioner(K, "kronecker")
    np.testing.assert_allclose(M.toarray() @ K.toarray(), np.eye(24), atol=1e-9)


def test_what_kronecker_does_not_take():
    rng = np.random.default_rng(0)
    A, B = definite(rng, 3), definite(rng, 2)
    for K, text in (
        (pl.Kron(A, B) + pl.Kron(B, A), "sizes differ"),
        (pl.Kron(A, B) + pl.Diag(-np.ones(6)), "not positive"),
        (pl.Kron(A, B) + pl.Dense(np.eye(6)), "neither a Kron nor diagonal"),
        (pl.Diag(np.ones(6)) + pl.Dense(np.eye(6)), "it takes|neither"),
        (pl.Kron(np.triu(A), B) + pl.Diag(np.arange(1.0, 7)), "not Hermitian"),
    ):
        with pytest.raises(pl.LinAlgError, match=text):
            pl.preconditioner(K, "kronecker")


@pytest.mark.parametrize("dtype", FLOATS)
def test_pivoted_cholesky_is_the_inverse_of_what_it_says(dtype):
    rng = np.random.default_rng(0)
    low = rng.standard_normal((40, 6)) * 0.5 ** np.arange(6)
    low = low + 1j * rng.standard_normal((40, 6)) if np.dtype(dtype).kind == "c" else low
    X = (low @ low.conj().T).astype(dtype)
    d = rng.uniform(0.1, 0.2, 40).astype(np.dtype(dtype).char.lower())
    A = pl.Dense(X) + pl.Diag(d)
    tol = 1e-3 if dtype in ("float32", "complex64") else 1e-9
    whole = pl.preconditioner(A, "pivoted_cholesky", rank=20)
    assert type(whole) is pl.LowRankUpdate and whole.dtype == dtype
    assert whole.proposal.details["rank"] <= 8
    np.testing.assert_allclose(whole.toarray() @ A.toarray(), np.eye(40), atol=tol)
    part = pl.preconditioner(A, "pivoted_cholesky", rank=2)
    assert part.proposal.details["rank"] == 2 and is_positive(part)
    # two pivots, by hand
    rest, columns = X.astype(complex), []
    for _ in range(2):
        p = int(np.argmax(np.diag(rest).real))
        columns.append(rest[:, p] / np.sqrt(rest[p, p].real))
        rest = rest - np.outer(columns[-1], columns[-1].conj())
    L = np.stack(columns, 1)
    np.testing.assert_allclose(
        part.toarray() @ (np.diag(d) + L @ L.conj().T), np.eye(40), atol=tol * 10
    )
    left = np.trace(rest).real / np.trace(X).real
    assert part.proposal.details["trace_error"] == pytest.approx(left, rel=1e-2)


def test_pivoted_cholesky_refuses():
    rng = np.random.default_rng(0)
    A = definite(rng, 8)
    with pytest.raises(pl.LinAlgError, match="give noise="):
        pl.preconditioner(A, "pivoted_cholesky")
    M = pl.preconditioner(A + np.eye(8), "pivoted_cholesky", noise=1.0)
    np.testing.assert_allclose(M.toarray() @ (A + np.eye(8)), np.eye(8), atol=1e-9)
    bad = np.array([[1.0, 2], [2, 1]])
    with pytest.raises(pl.LinAlgError, match="not semidefinite"):
        pl.preconditioner(pl.Dense(bad) + pl.Identity(2), "pivoted_cholesky")
    with pytest.raises(ValueError, match="rank must be"):
        pl.preconditioner(pl.Dense(A) + pl.Identity(8), "pivoted_cholesky", rank=0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_nystrom(dtype):
    rng = np.random.default_rng(0)
    low = rng.standard_normal((50, 5))
    low = low + 1j * rng.standard_normal((50, 5)) if np.dtype(dtype).kind == "c" else low
    X = (low @ low.conj().T).astype(dtype)
    mu = 0.25
    A = pl.Dense(X) + mu * pl.Identity(50)
    tol = 1e-3 if dtype in ("float32", "complex64") else 1e-8
    M = pl.preconditioner(A, "nystrom", rank=8, rng=0)
    assert type(M) is pl.LowRankUpdate and M.dtype == dtype and is_positive(M)
    assert M.proposal.details["mu"] == mu
    # the sketch holds all of X, so that A M is mu + w_k on all of the space
    product = A.toarray() @ M.toarray()
    np.testing.assert_allclose(product, mu * np.eye(50), atol=tol * 50)
    again = pl.preconditioner(A, "nystrom", rank=8, rng=0)
    np.testing.assert_array_equal(M.toarray(), again.toarray())
    given = pl.preconditioner(A.toarray(), "nystrom", rank=8, rng=0, mu=mu)
    np.testing.assert_allclose(given.toarray(), M.toarray(), atol=tol)


# -- what structure proposes --


def test_proposals():
    rng = np.random.default_rng(0)
    A, B = definite(rng, 5), definite(rng, 4)
    L = pl.Sparse(laplacian(6))
    k = np.arange(30)
    cases = {
        "exact": [
            pl.Diag([1.0, 2]),
            pl.Tridiagonal(np.ones(3), 4 * np.ones(4), np.ones(3)),
            pl.Kron(A, B),
            pl.LowRankUpdate(pl.Diag(np.ones(9)), np.ones((9, 1))),
            pl.LowRank(np.ones((9, 1))) + pl.Diag(np.ones(9)),
        ],
        "ic": [L, 2 * L, L + pl.Identity(36), -pl.Laplacian((5, 5), "dirichlet"), L.T @ L],
        "strang": [pl.Toeplitz(0.5**k), pl.Toeplitz(0.5**k) + pl.Diag(1.0 + k)],
        "kronecker": [
            pl.Kron(A, B) + pl.Diag(np.arange(1.0, 21)),
            pl.Kron(A, B) + pl.Kron(A, A[:4, :4]),
        ],
        "pivoted_cholesky": [pl.Dense(A) + 0.1 * pl.Identity(5)],
        "jacobi": [pl.Dense(A), pl.Sparse(sp.csr_array(np.triu(A))), pl.Dense(A) @ pl.Dense(A)],
        "identity": [pl.MatVec((3, 3), lambda x: x, dtype=float)],
    }
    for kind, operators in cases.items():
        for A_ in operators:
            M = pl.preconditioner(A_)
            assert M.proposal.kind == kind, (A_, str(M.proposal))
            assert M.shape == A_.shape and M.proposal.reason
            assert kind in str(M.proposal)


def test_auto_says_what_spoke_against():
    S = sp.csr_array(np.array([[-2.0, 1], [1, 3]]))
    M = pl.preconditioner(pl.Sparse(S))
    assert M.proposal.kind == "jacobi" and not M.proposal.positive
    assert "element 0 of the diagonal, -2, is not positive" in M.proposal.reason
    Z = pl.preconditioner(pl.Dense([[0.0, 1], [1, 0]]))
    assert Z.proposal.kind == "identity" and "element 0 of the diagonal is 0.0" in Z.proposal.reason


def test_a_users_operator_is_left_alone():
    A = pl.Dense(definite(np.random.default_rng(0), 3))
    M = pl.preconditioner(pl.inv(A))
    assert M.proposal.kind == "exact" and not hasattr(A, "proposal")
    np.testing.assert_allclose(M.toarray(), A.toarray())
    M = pl.preconditioner(pl.Sparse(laplacian(5)))
    assert pickle.loads(pickle.dumps(M)).proposal == M.proposal
    assert api.make(A, A) is A and api.make(A, None) is None


# -- iterations drop --


def test_iterations_of_a_laplacian():
    A = pl.Sparse(laplacian(50))
    plain = iterations(A)
    got = {
        k: iterations(A, pl.preconditioner(A, k, **o))
        for k, o in {"ssor": {}, "ic": {}, "ict": {}, "block_jacobi": {"block": 50}}.items()
    }
    assert got["ic"] < 0.4 * plain and got["ssor"] < 0.5 * plain
    assert got["ict"] < 0.15 * plain and got["block_jacobi"] < 0.85 * plain
    assert iterations(A, pl.preconditioner(A, "ssor", omega=1.8)) < 0.5 * got["ssor"]


def test_iterations_of_toeplitz_matrices():
    k = np.arange(2000)
    kind = pl.Toeplitz(0.95**k)
    assert iterations(kind) > 100 and iterations(kind, pl.preconditioner(kind)) <= 5
    unkind = pl.Toeplitz(np.r_[2.0, -1.0, np.zeros(498)])  # its symbol has a zero
    assert iterations(unkind, pl.preconditioner(unkind)) < 0.2 * iterations(unkind)
    mixed = pl.Toeplitz(0.98**k) + pl.Diag(np.random.default_rng(0).uniform(0.5, 1.5, 2000))
    assert iterations(mixed, pl.preconditioner(mixed)) < 0.3 * iterations(mixed)


def test_iterations_of_a_kernel_matrix():
    x = np.random.default_rng(0).uniform(0, 1, (400, 2))
    k = np.exp(-((x[:, None] - x) ** 2).sum(-1) / (2 * 0.3**2))
    A = pl.Dense(k) + 1e-3 * pl.Identity(400)
    plain = iterations(A)
    assert plain > 200
    assert iterations(A, pl.preconditioner(A)) < 0.05 * plain
    assert iterations(A, pl.preconditioner(A, "nystrom", rng=0)) < 0.2 * plain


def test_iterations_of_kronecker_sums():
    rng = np.random.default_rng(0)
    A, B, C, D = (definite(rng, n) for n in (30, 20, 30, 20))
    for K in (
        pl.Kron(A, B) + pl.Diag(rng.uniform(1, 100, 600)),
        pl.Kron(A, B) + pl.Kron(C, D) + pl.Kron(A + C, B),
        pl.Kron(A, B) + pl.Kron(C, D) + 5 * pl.Identity(600),
    ):
        M = pl.preconditioner(K)
        assert M.proposal.kind == "kronecker" and M.proposal.positive and is_positive(M)
        assert iterations(K, M) < 0.5 * iterations(K)


# -- errors --


def test_errors():
    A = pl.Sparse(laplacian(4))
    with pytest.raises(pl.LinAlgError, match="takes a square matrix"):
        pl.preconditioner(np.ones((2, 3)))
    with pytest.raises(ValueError, match="did you mean jacobi"):
        pl.preconditioner(A, "jakobi")
    with pytest.raises(TypeError, match=r"ssor takes \['omega'\], got \['w'\]"):
        pl.preconditioner(A, "ssor", w=1)
    with pytest.raises(TypeError, match="'auto' takes no options"):
        pl.preconditioner(A, omega=1)
    for omega in (0, 2, np.nan):
        with pytest.raises(ValueError, match="omega must lie between 0 and 2"):
            pl.preconditioner(A, "ssor", omega=omega)
    for kind in ("ssor", "ic"):
        with pytest.raises(pl.LinAlgError, match="not Hermitian"):
            pl.preconditioner(sp.csr_array(np.array([[2.0, 1], [0, 2]])), kind)
        with pytest.raises(pl.LinAlgError, match="element 1 of the diagonal, 0"):
            pl.preconditioner(sp.csr_array(np.array([[2.0, 1], [1, 0]])), kind)
    with pytest.raises(pl.LinAlgError, match="element 1 of the diagonal is 0.0"):
        pl.preconditioner(pl.Diag([1.0, 0.0]), "jacobi")
    with pytest.raises(pl.LinAlgError, match="block 0, of 2 rows, is singular"):
        pl.preconditioner(np.ones((2, 2)), "block_jacobi")
    for block in (0, [1, 1]):
        with pytest.raises(ValueError, match="block"):
            pl.preconditioner(A, "block_jacobi", block=block)
    with pytest.raises(ValueError, match="takes one matrix, got a batch"):
        pl.preconditioner(np.ones((2, 2, 2)), "ssor")
    with pytest.raises(ValueError, match="must not be negative"):
        pl.preconditioner(A, "ict", drop=-1.0)


def test_memory_is_stated_beforehand():
    A = pl.Sparse(laplacian(30))
    K = pl.Dense(np.eye(300)) + pl.Identity(300)
    with pl.config(memory_limit=20_000):
        for op, kind, text in (
            (A, "ic", "incomplete Cholesky of"),
            (A, "block_jacobi", "block Jacobi of"),
            (K, "pivoted_cholesky", "pivoted Cholesky of"),
            (K, "nystrom", "nystrom of"),
        ):
            with pytest.raises(pl.MaterializationError, match=f"{text}.*allows 20,000"):
                pl.preconditioner(op, kind)
        assert pl.preconditioner(A, "jacobi").proposal.nbytes == 7200


def test_sizes_zero_and_one():
    empty, one = np.zeros((0, 0)), np.array([[2.0]])
    for kind in ("jacobi", "block_jacobi", "ssor", "ic", "ict", "auto", "identity", "exact"):
        assert pl.preconditioner(sp.csr_array(empty), kind).shape == (0, 0)
        assert (pl.preconditioner(sp.csr_array(one), kind) @ np.ones(1))[0] == pytest.approx(
            1.0 if kind == "identity" else 0.5
        )
    for kind in ("pivoted_cholesky", "nystrom"):
        for n in (0, 1):
            A = pl.Dense(np.eye(n)) + pl.Identity(n)
            assert pl.preconditioner(A, kind).shape == (n, n)


def test_the_kernel_checks_what_it_is_given():
    ptr, index, data = np.array([0, 1, 2]), np.array([0, 1]), np.ones(2)
    out = np.zeros(3, np.int64), np.zeros(2, np.int64), np.zeros(2)
    assert _core._ichol("d", 2, ptr, index, data, *out, 0.0, 0.0, -1) == -1
    for p, i in (
        ([0, 1, 3], [0, 1]),
        ([0, 0, 2], [0, 1]),
        ([0, 1, 2], [0, 5]),
        ([0, 1, 2], [1, 1]),
    ):
        with pytest.raises(ValueError, match="_ichol"):
            _core._ichol("d", 2, np.array(p), np.array(i), data, *out, 0.0, 0.0, -1)
    small = out[0], np.zeros(1, np.int64), np.zeros(1)
    with pytest.raises(ValueError, match="_ichol"):
        _core._ichol("d", 2, ptr, index, data, *small, 0.0, 0.0, -1)
    assert _core._ichol("d", 2, ptr, index, np.array([1.0, np.nan]), *out, 0.0, 0.0, -1) == 1
