"""Each fault that was found by trying the library, as it was met first; its kin have tests of their
own, by subject."""

import numpy as np
import pytest
import scipy.linalg as sla
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import pylinop as pl


def near(found, want, **options):
    np.testing.assert_allclose(found, want, **{"rtol": 1e-10, "atol": 1e-12} | options)


@pytest.fixture
def three(rng):
    return rng.standard_normal((3, 16, 16))


def test_sums_of_three_with_a_difference(three):
    a, b, c = three
    t = sla.toeplitz(c[0])
    near(np.asarray(pl.lazy(a) - pl.lazy(b) + pl.lazy(c)), a - b + c)
    near((pl.Dense(a) - pl.Diag(a[0]) + pl.Toeplitz(c[0])) @ np.eye(16), a - np.diag(a[0]) + t)
    op = pl.Diag(c[0]) + pl.Dense(a) @ (pl.Dense(b) - pl.Diag(a[0]))
    near(op.toarray(), np.diag(c[0]) + a @ (b - np.diag(a[0])))
    op = pl.Dense(a) - pl.Diag(a[0]) @ pl.Dense(b) + pl.Diag(5 + c[0])
    dense = a - a[0][:, None] * b + np.diag(5 + c[0])
    near(dense @ pl.solve(op, np.ones(16)), np.ones(16), atol=1e-8)
    near(pl.slogdet(op).logabsdet, np.linalg.slogdet(dense)[1])


@pytest.mark.parametrize("three", [np.float32(3), np.float16(3), np.complex64(3), np.array(3, "f")])
def test_quotients_by_numbers_of_numpy(three):
    found = (pl.Dense(np.ones((1, 1))) / three).toarray()[0, 0]
    near(found, 1 / 3, rtol=1e-16, atol=0)
    assert (pl.Dense(np.ones((2, 2), "f")) / np.int8(3)).dtype == np.float32
    tenth = np.float32(0.1)
    near(np.linalg.pinv(tenth * pl.Dense(np.eye(2))), np.eye(2) / np.float64(tenth), rtol=1e-15)


def test_invalid_permutations_as_sparse_matrices():
    for op in (pl.Permutation([0, 3, 1]), pl.Selection([0, 3, 1], 3)):
        with pytest.raises(IndexError, match="index 3 at position 1"):
            op.tosparse()


def test_long_doubles():
    assert pl.Dense(np.eye(2, dtype="g")).dtype == np.longdouble
    assert pl.Diag(np.ones(2, "G")).dtype == np.clongdouble
    found = spla.expm_multiply(pl.Dense(1j * np.eye(2, dtype="G")), np.ones(2, "G"), traceA=2j)
    near(found.astype(complex), np.exp(1j) * np.ones(2))


def test_lists_of_matrices():
    a, b = 2 * np.eye(3), 3 * np.eye(3)
    assert pl.Kron([a, b]).shape == pl.KronSum([a, b]).shape == (9, 9)
    assert pl.BlockDiag([a, b]).shape == pl.block_diag([a, b]).shape == (6, 6)
    near(pl.logdet(pl.Kron([a, b])), 9 * np.log(6))
    assert pl.LowRank(np.ones(5)).shape == (5, 5)
    with pytest.raises(TypeError, match=r"\[\[A, B\]\]"):
        pl.Block([a, b])


def test_singular_matrices_are_told():
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        pl.solve(pl.Laplacian((40, 40)), np.ones(1600))
    assert pl.det(pl.Laplacian((40, 40))) == 0
    with pytest.warns(pl.IllConditionedWarning):
        pl.solve(pl.Dense(sla.hilbert(15)), np.ones(15))
    with pytest.raises(np.linalg.LinAlgError, match="assumed positive definite"):
        pl.logdet(pl.Dense(np.diag([1.0, -1, -2, 3]), assume_a="pos"))


def test_dense_forms_are_told(rng):
    m = 800
    S = pl.Selection(np.sort(rng.permutation(900)[:m]), 900)
    k = sla.toeplitz(0.5 ** np.arange(30))
    op = S @ pl.Kron(k, k) @ S.T + 0.1 * pl.Identity(m)
    with pl.config(warn_limit=10**6), pytest.warns(pl.MaterializationWarning):
        pl.logdet(op)
    u, d = rng.standard_normal((1000, 5)), 1 + rng.random(1000)
    with pl.config(memory_limit=1_000_000):  # the inverse has 8
        found = pl.inv(pl.LowRank(u) + pl.Diag(d)).diagonal()
        G = pl.vstack([pl.Kron(k, k)] * 2)
        squares = (G.T @ G).diagonal()
    near(found, np.diag(np.linalg.inv(u @ u.T + np.diag(d))))
    near(squares, 2 * np.kron((k**2).sum(0), (k**2).sum(0)))


def test_explanations_of_eigenvalues(rng):
    a = rng.standard_normal((40, 40))
    op = pl.Dense(a + a.T)
    said = op.explain("eigh")
    assert said.flops >= 40**3 / 3 and said.seconds > 0
    with pl.explaining() as found:
        pl.eigh(op, k=1, method="iterative")
    assert "method    iterative" in str(found)


def test_numbers_that_leave_the_range_on_the_way():
    eye = pl.Identity(2)
    near(pl.slogdet(1e200 * (1e200 * eye)).logabsdet, 800 * np.log(10))
    near((1e-200 * (1e-200 * eye)) @ np.full(2, 1e300), 1e-100, atol=0)
    near(pl.solve(pl.Triangular(1e-310 * np.eye(3)), np.full(3, 1e-300)), 1e10)
    near(pl.Circulant(1e-310 * np.eye(3)[0]) @ np.ones(3), 1e-310, atol=0)
    near(pl.Kron(1e200 * eye, 1e-200 * eye) @ np.full(4, 1e150), 1e150)
    near(pl.logdet(pl.LowRankUpdate(eye, 1e100 * np.ones((2, 1)))), np.log(2) + 200 * np.log(10))


def test_operators_of_zeros_have_no_dtype_of_their_own(three):
    A = pl.Dense(three[0])
    for Z, n in ((pl.Zeros((3, 3)), 3), (A - A, 16), (0 * A, 16), (pl.Zeros((16, 16)) @ A, 16)):
        Z @ np.ones(n, "f4")
        assert (Z @ np.ones(n)).dtype == np.float64
        with pytest.raises(TypeError):
            Z @ np.array(["a"] * n)
    for op in (pl.Identity(4), pl.Permutation([1, 0, 2, 3]), pl.Diag(np.ones(4, int))):
        assert pl.solve(op, np.arange(4)).dtype == np.float64
    for f in (pl.trace, pl.diagonal):
        with pytest.raises(ValueError, match="matrix"):
            f(np.ones(3))


def test_slices_of_a_kron(rng):
    a, b = rng.standard_normal((2, 3, 3)) + 3 * np.eye(3)
    K, k = pl.Kron(a, b), np.kron(a, b)
    Q, q = K[3:6, 3:6], k[3:6, 3:6]
    for f in (np.linalg.norm, np.linalg.svdvals, np.linalg.pinv, np.linalg.matrix_rank):
        near(f(K[:3]), f(k[:3]))
    near(np.linalg.cond(Q), np.linalg.cond(q))
    near(abs(np.asarray(np.linalg.qr(K[:3])[1])), abs(np.linalg.qr(k[:3])[1]))
    near(np.sort_complex(np.linalg.eigvals(Q)), np.sort_complex(np.linalg.eigvals(q)))
    near(pl.lstsq(K[:3], np.ones(3))[0], np.linalg.lstsq(k[:3], np.ones(3), rcond=None)[0])
    near(np.linalg.eigh(Q + Q.T)[0], np.linalg.eigvalsh(q + q.T))
    near(np.asarray(pl.expm(0.1 * Q)), sla.expm(0.1 * q))
    near(np.asarray(pl.cholesky(Q @ Q.T)), np.linalg.cholesky(q @ q.T))
    near((2 * K[:3]).toarray(), 2 * k[:3])


def test_products_of_unsorted_sparse_matrices():
    C = sp.random_array((200, 30), density=0.3, rng=0, format="csc")
    found = pl.sparse_matmul(C.T.tocsr(), C)
    near(found.toarray(), C.toarray().T @ C.toarray())


def test_kernels_beside_complex_numbers(rng):
    K = pl.Kernel("rbf", rng.standard_normal((20, 2)))
    k, z = K.toarray(), rng.standard_normal(20) + 1j * rng.standard_normal(20)
    near(K[1:] @ z, k[1:] @ z)
    near(np.asarray((1j * K)[0]), 1j * k[0])
    near(np.asarray(pl.Kron(K, 1j * np.eye(2))[0]), np.kron(k, 1j * np.eye(2))[0])
    near(K.astype(complex).toarray(), k)
    assert K.astype(complex).dtype == complex


@pytest.mark.no_verify("what is orthogonal to float32's rounding solves to that, not to double's")
def test_single_precision_that_is_orthogonal(rng):
    q = np.linalg.qr(rng.standard_normal((30, 30)))[0].astype("f4")
    near(q @ pl.solve(pl.Dense(q, "orthogonal"), np.ones(30)), np.ones(30), atol=1e-5)


def test_results_that_were_errors(rng):
    a = rng.standard_normal((3, 4, 4))
    a, x = a @ a.swapaxes(1, 2) + np.eye(4), rng.standard_normal((3, 4))
    found = pl.inv_quad_logdet(pl.Dense(a, "pos"), x)
    near(found.inv_quad, np.einsum("bi,bi->b", x, np.linalg.solve(a, x[..., None])[..., 0]))
    with pytest.raises(ValueError, match="4 columns for all"):
        pl.inv_quad_logdet(pl.Dense(np.concatenate([a, a[:1]]), "pos"), np.ones((4, 4)))
    assert (pl.lazy(np.ones((1,) * 9)) @ np.ones((1, 1))).toarray().shape == (1,) * 9
    assert np.isnan(np.linalg.norm(pl.KronSum(np.array([[np.nan, 1], [1, 2]]), np.eye(2))))
    assert callable(pl.multi_dot) and callable(pl.einsum) and callable(pl.PseudoInverse)
    assert pl.Kron(np.eye(3), np.eye(2))[[0, 1], None].shape == (2, 1, 6)


def test_what_was_slow_by_orders(rng):
    """Seconds and minutes before: by their flops."""
    op = pl.KhatriRao(np.ones((2, 320)), rng.standard_normal((320, 320)))
    assert (op @ rng.standard_normal((320, 320))).shape == (640, 320)
    assert op.explain("apply", np.ones((320, 320))).flops < 3e8
    a, b = rng.standard_normal((2, 300, 300))
    near(
        np.asarray(np.einsum("ij,jk,k->i", pl.lazy(a), pl.lazy(b), np.ones(300))),
        a @ (b @ np.ones(300)),
        atol=1e-9,
    )
    high = pl.Dense(np.eye(3)) ** 1_000_000
    assert np.array_equal(high.toarray(), np.eye(3)) and high.explain("dense").flops < 1e4


def test_a_sparse_matrix_that_was_overwritten():
    S = sp.csr_array(sp.random_array((60, 60), density=0.15, rng=0) + 10 * sp.eye_array(60))
    A = pl.Sparse(S)
    S.indices[5] = 2**30
    for f in (A.tosparse, lambda: (2 * A).tosparse(), lambda: pl.preconditioner(A), lambda: S @ A):
        with pytest.raises(IndexError):
            f()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: float((x[:, None] * x[None, :]).sum()),
        lambda x: float(abs(x[:, None] - x[None, :]).max()),
        lambda x: pl.Dense(np.broadcast_to(np.ones(4000), (4000, 4000))) @ np.ones(4000),
    ],
)
def test_the_memory_limit(f):
    with pl.config(memory_limit=30_000_000), pytest.raises(pl.MaterializationError):
        f(pl.lazy(np.ones(6000)))


def test_a_list_that_holds_itself():
    rows = []
    rows.append(rows)
    with pytest.raises(ValueError, match="sequence"):
        pl.Dense(rows)


def test_what_a_callable_raised_comes_out(rng):
    def fails(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        pl.lobpcg(pl.MatVec((50, 50), fails, fails, dtype=float), rng.standard_normal((50, 2)))


@pytest.mark.parametrize("letter", ["f4", "f8", "c8", "c16", "i2", "i4", "i8", "u8"])
@pytest.mark.parametrize("order", "<>")
def test_numbers_of_either_byte_order(letter, order):
    c = np.array(2, order + letter)
    for A in (pl.Diag([1.0, 2.0]), pl.Dense(np.eye(2)), pl.Kron(np.eye(1), np.eye(2))):
        a = A.toarray()
        for op, want in ((A * c, a * 2), (c * A, a * 2), (A / c, a / 2)):
            np.testing.assert_array_equal(op @ np.ones(2), want @ np.ones(2))
            np.testing.assert_array_equal(pl.solve(op, want @ np.ones(2)), np.ones(2))


@pytest.mark.parametrize("letter", ["f2", "g", "G"])
def test_numbers_that_no_kernel_takes(letter):
    c, A = np.array(2, letter), pl.Diag([1.0, 2.0])
    for op in (A * c, c * A, A / (1 / c)):
        np.testing.assert_array_equal(op @ np.ones(2), [2.0, 4.0])


def test_no_eigenvalues_of_nan():
    """LAPACK finds some of 2 x 2; larger ones it refuses."""
    for A in (pl.Toeplitz([np.nan, 1.0]), pl.Tridiagonal([1.0], [np.nan] * 2, [1.0])):
        for f in (pl.eigvalsh, pl.eigh, pl.svdvals, pl.svd, pl.cond):
            with pytest.raises(np.linalg.LinAlgError, match="did not converge"):
                f(A)
