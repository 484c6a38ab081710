"""Faults measured in other libraries, each as a test of what is right here.

The comment names the library and its fault; a peer's own version may have mended it since."""

import copy
import pickle
import warnings

import mpmath
import numpy as np
import pytest
import scipy.linalg as sl
import scipy.sparse as sp
import scipy.sparse.linalg as sla
from samples import values

import pylinop as pl

FLOATS = "float32 float64 complex64 complex128".split()


def eta(a, x, b):
    """The backward error of a solve, in the largest row sum."""

    def norm(v):
        return np.linalg.norm(v, np.inf)

    return norm(b - a @ x) / (norm(a) * norm(x) + norm(b))


# -- wrong answers without an error: solves --------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
def test_solve_of_a_matrix_that_is_not_symmetric(dtype, rng):
    # linear_operator: solve took every matrix for a symmetric positive definite one
    a = np.array([[1, 2], [0, 1]], dtype)
    np.testing.assert_array_equal(pl.solve(pl.Dense(a), np.array([1, 1], dtype)), [-1, 1])
    a, b = values(rng, (6, 6), dtype), values(rng, (6, 2), dtype)
    assert eta(a, pl.solve(pl.Dense(a), b), b) < 20 * np.finfo(dtype).eps


def test_solve_of_complex_matrices(rng):
    # linear_operator: complex solves were wrong
    a, b = values(rng, (7, 7), "complex128"), values(rng, 7, "complex128")
    for A in (pl.Dense(a), pl.Dense(a) @ pl.Dense(a.T), pl.Kron(a[:2, :2], a[:3, :3])):
        b = values(rng, A.shape[0], "complex128")
        assert eta(A.toarray(), pl.solve(A, b), b) < 1e-15


@pytest.mark.parametrize("n", [790, 900])
def test_solve_does_not_loosen_with_the_size(n, rng):
    # linear_operator: above n = 800 CG at tolerance 1, residual 0.05 at a condition number of 40
    v = rng.standard_normal(n)
    q = np.eye(n) - 2 * np.outer(v, v) / (v @ v)
    a = q * np.linspace(1, 40, n) @ q.T
    b = rng.standard_normal(n)
    assert eta(a, pl.solve(pl.Dense(a), b), b) < 1e-14
    assert eta(a, pl.solve(pl.Dense(a, "pos"), b), b) < 1e-14


def test_solve_of_an_exponential_toeplitz_matrix(rng):
    # linear_operator: relative residual 0.81, by default
    n = 1000
    c, b = np.exp(-np.arange(n) / 50), rng.standard_normal(n)
    assert eta(sl.toeplitz(c), pl.solve(pl.Toeplitz(c), b), b) < 1e-14


def test_solve_of_a_toeplitz_matrix_with_singular_corners():
    # scipy.linalg.solve_toeplitz (Levinson): raises where a leading block is singular
    c, b = np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 4.0])
    np.testing.assert_allclose(sl.toeplitz(c) @ pl.solve(pl.Toeplitz(c), b), b, atol=1e-14)


def test_solve_of_a_kron_with_many_right_hand_sides(rng):
    # scipy.linalg.solve_toeplitz and several Kronecker libraries: vectors only, or a loop
    a, b = rng.standard_normal((3, 3)), rng.standard_normal((4, 4))
    X = rng.standard_normal((2, 12, 5))
    K = np.kron(a, b)
    np.testing.assert_allclose(pl.solve(pl.Kron(a, b), X), np.linalg.solve(K, X), rtol=1e-10)


def test_solve_of_a_product_reverses_it(rng):
    # CoLA reverses inverses of products of square factors only; rectangular ones must not be
    a, b = rng.standard_normal((3, 4)), rng.standard_normal((4, 3))
    A = pl.Dense(a) @ pl.Dense(b)
    np.testing.assert_allclose(pl.solve(A, np.ones(3)), np.linalg.solve(a @ b, np.ones(3)))
    np.testing.assert_allclose(pl.inv(A).toarray(), np.linalg.inv(a @ b), rtol=1e-9)


def test_complex_a_times_its_transpose_is_not_positive_definite(rng):
    # PyTensor, CoLA: definiteness inferred from A @ A.T, which holds for real A only
    a = values(rng, (4, 4), "complex128")
    A = pl.Dense(a) @ pl.Dense(a).T
    b = values(rng, 4, "complex128")
    assert eta(a @ a.T, pl.solve(A, b), b) < 1e-14
    np.testing.assert_allclose(pl.det(A), np.linalg.det(a) ** 2, rtol=1e-12)


def test_a_false_promise_is_noticed(rng):
    # linear_operator: positive definiteness is assumed, never looked at
    a = np.diag([1.0, -2.0, 3.0])
    with pytest.warns(pl.FallbackWarning):
        x = pl.solve(pl.Dense(a, "pos"), np.ones(3))
    np.testing.assert_allclose(x, [1, -0.5, 1 / 3])


def test_singular_matrices_raise_where_they_are_solved_with():
    # CoLA, linear_operator: inf, NaN or a least-squares answer instead of an error
    for A in (
        pl.Diag([1.0, 0.0]),
        pl.Dense(np.ones((2, 2))),
        pl.Kron(np.ones((2, 2)), pl.Identity(2)),
        pl.Circulant([1.0, 1.0]),
        pl.BlockDiag(np.eye(2), np.zeros((1, 1))),
        pl.inv(pl.Diag([0.0])) @ pl.Diag([0.0]),
        pl.Triangular(np.diag([1.0, 0.0])),
        pl.Tridiagonal([1.0], [1.0, 1.0], [1.0]),
        pl.LowRank(np.ones((3, 1))),
    ):
        with pytest.raises(np.linalg.LinAlgError):
            pl.solve(A, np.ones(A.shape[1]))


@pytest.mark.parametrize("small", [1.0, 1e-4, 1e-8, 1e-12])
def test_woodbury_keeps_its_digits(small, rng):
    # linear_operator: Woodbury without a check loses all digits where the diagonal is small
    n, u = 30, rng.standard_normal((30, 2))
    b = rng.standard_normal(n)
    A = pl.Diag(np.full(n, small)) + pl.LowRank(u)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pl.FallbackWarning)
        x = pl.solve(A, b)
    a = small * np.eye(n) + u @ u.T
    assert eta(a, x, b) < 1e-13
    with mpmath.workdps(40):
        exact = mpmath.lu_solve(
            mpmath.eye(n) * mpmath.mpf(small) + mpmath.matrix(u) * mpmath.matrix(u).T,
            mpmath.matrix(b),
        )
    off = np.abs(x - np.array([float(v) for v in exact])).max() / np.abs(x).max()
    assert off < 1e-14 * np.linalg.cond(a)


# -- wrong answers: determinants -------------------------------------------------------------------


@pytest.mark.parametrize("c", [2.0, -0.5, 3j])
def test_determinant_of_a_multiple_of_the_identity(c):
    # CoLA: slogdet(c I) counts c once instead of n times, its sign too
    for n in (1, 2, 5):
        sign, log = pl.slogdet(c * pl.Identity(n))
        np.testing.assert_allclose(sign, (c / abs(c)) ** n, rtol=1e-14)
        np.testing.assert_allclose(log, n * np.log(abs(c)), rtol=1e-14)
        np.testing.assert_allclose(pl.det(c * pl.Identity(n)), c**n, rtol=1e-14)


def test_determinant_of_odd_permutations():
    # CoLA: slogdet of an odd permutation has the sign +1
    rng = np.random.default_rng(3)
    signs = set()
    for n in (1, 2, 3, 4, 9):
        for _ in range(4):
            p = rng.permutation(n)
            want = round(np.linalg.det(np.eye(n)[p]))
            signs.add(want)
            assert pl.det(pl.Permutation(p)) == want == pl.slogdet(pl.Permutation(p)).sign
    assert signs == {1, -1}


def test_log_determinants_below_zero_keep_their_sign():
    # CoLA: the iterative path gives |tr log A|
    assert pl.logdet(pl.Dense(0.5 * np.eye(3))) == pytest.approx(3 * np.log(0.5))
    n = 1100
    a = 0.9 * np.eye(n) + 0.001
    assert pl.logdet(pl.Dense(a, "pos")) == pytest.approx(np.linalg.slogdet(a)[1])


def test_log_determinant_of_a_matrix_that_is_not_symmetric():
    # linear_operator: logdet and svd took every matrix for a symmetric positive definite one
    a = np.array([[1.0, 5.0], [-3.0, 2.0]])
    assert pl.logdet(pl.Dense(a)) == pytest.approx(np.log(17))
    np.testing.assert_allclose(pl.svdvals(pl.Dense(a)), np.linalg.svdvals(a))
    assert np.isnan(pl.logdet(pl.Diag([1.0, -1.0])))


def test_determinant_of_a_kron_of_unlike_sizes(rng):
    # probnum: det(A (x) B) with the two exponents exchanged
    a, b = rng.standard_normal((2, 2)), rng.standard_normal((3, 3))
    want = np.linalg.det(np.kron(a, b))
    assert pl.det(pl.Kron(a, b)) == pytest.approx(want)
    r, s = rng.standard_normal((2, 3)), rng.standard_normal((3, 2))
    assert pl.det(pl.Kron(r, s)) == pytest.approx(np.linalg.det(np.kron(r, s)), abs=1e-12)


@pytest.mark.parametrize("c", [1e-300, 1e300])
def test_determinants_neither_overflow_nor_underflow_early(c):
    # NumPy, TensorFlow: the product of the pivots leaves the range before its end
    n = 500
    for A in (pl.Diag(np.full(n, c)), c * pl.Identity(n), pl.Kron(c * np.eye(2), pl.Identity(250))):
        sign, log = pl.slogdet(A)
        assert sign == 1 and log == pytest.approx(n * np.log(c), rel=1e-14)
        assert pl.det(A @ ((1 / c) * pl.Identity(n))) == pytest.approx(1, rel=1e-10)


def test_determinant_of_a_negative_diagonal():
    # CoLA: LU of a Diag takes square roots, NaN for negative entries
    assert pl.det(pl.Diag([-2.0, 3.0, 1.0])) == -6
    assert pl.slogdet(pl.Diag([-2.0, -3.0])) == (1, pytest.approx(np.log(6)))
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(pl.Diag([-2.0, 3.0]))


# -- wrong answers: other functions ----------------------------------------------------------------


def test_pseudo_inverse_of_zeros_is_zero():
    # CoLA: pinv of a Diag with a zero has inf
    np.testing.assert_array_equal(pl.pinv(pl.Diag([0.0, 4.0])).diagonal(), [0, 0.25])
    np.testing.assert_array_equal(pl.pinv(pl.Zeros((2, 3))).toarray(), np.zeros((3, 2)))


def test_a_number_over_an_operator_is_refused():
    # CoLA: c / A gives A / c
    A = pl.Diag([2.0, 4.0])
    for divide in (lambda: 1.0 / A, lambda: np.float64(1) / A, lambda: np.ones(2) / A):
        with pytest.raises((TypeError, ValueError)):
            divide()
    np.testing.assert_array_equal((A / 2).diagonal(), [1, 2])


def test_largest_in_magnitude_is_by_magnitude():
    # CoLA: which="LM" of a self-adjoint operator sorts by value
    A = pl.Diag(np.array([1.0, -5.0, 2.0, 0.5, 0.1]))
    np.testing.assert_allclose(sla.eigsh(A, 1, which="LM")[0], [-5])
    np.testing.assert_array_equal(pl.eigvalsh(A), [-5, 0.1, 0.5, 1, 2])


def test_transpose_of_a_complex_self_adjoint_operator_is_its_conjugate():
    # CoLA: the transpose of what is declared self-adjoint is the operator itself
    a = np.array([[1, 1j], [-1j, 2]])
    for A in (pl.Dense(a, "her"), pl.Root(a), pl.Congruence(a, pl.Identity(2))):
        np.testing.assert_array_equal(A.T.toarray(), A.toarray().T)
        assert np.abs(A.T.toarray() - A.toarray()).max() > 1
        np.testing.assert_array_equal(A.H.toarray(), A.toarray())


def test_exp_is_element_wise():
    # linear_operator, CoLA: exp of an operator is one time the entries', one time the matrix's
    d = np.array([0.0, 1.0])
    with pytest.warns(pl.MaterializationWarning):
        np.testing.assert_array_equal(np.exp(pl.Diag(d)), np.exp(np.diag(d)))


def test_difference_of_an_operator_and_itself_is_zero(rng):
    # several: A - A stays a sum, with rounding left over
    a = rng.standard_normal((4, 4))
    A = pl.Dense(a)
    np.testing.assert_array_equal((A @ A - A @ A) @ np.ones(4), np.zeros(4))
    np.testing.assert_array_equal((0 * A) @ np.full(4, np.inf), np.zeros(4))


def test_kron_of_rectangular_factors(rng):
    # GPJax: products with rectangular Kronecker factors are wrong
    a, b = rng.standard_normal((2, 3)), rng.standard_normal((4, 1))
    x, y = rng.standard_normal(3), rng.standard_normal((8, 2))
    K = pl.Kron(a, b)
    np.testing.assert_allclose(K @ x, np.kron(a, b) @ x, rtol=1e-13)
    np.testing.assert_allclose(K.T @ y, np.kron(a, b).T @ y, rtol=1e-13)


def test_kron_plus_a_diagonal_that_is_not_constant(rng):
    # linear_operator's ancestor: solves of Kron plus a diagonal took the diagonal for constant
    a, b, d = np.eye(2) + 0.3, np.eye(3) + 0.2, np.arange(1.0, 7)
    A, dense, x = pl.Kron(a, b) + pl.Diag(d), np.kron(a, b) + np.diag(d), rng.standard_normal(6)
    np.testing.assert_allclose(pl.solve(A, x), np.linalg.solve(dense, x), rtol=1e-12)
    assert pl.logdet(A) == pytest.approx(np.linalg.slogdet(dense)[1], rel=1e-13)
    np.testing.assert_allclose(A.diagonal(), np.diag(dense))


def test_norms_of_kron(rng):
    # curvlinops: trace, determinant and Frobenius norm of Kronecker products missing or formed
    a, b = rng.standard_normal((3, 2)), rng.standard_normal((2, 5))
    K, k = pl.Kron(a, b), np.kron(a, b)
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        np.testing.assert_allclose(
            np.linalg.norm(K, order), np.linalg.norm(k, order), rtol=1e-12, atol=1e-14
        )


# -- dtypes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [*FLOATS, "int8", "int64"])
@pytest.mark.parametrize("second", FLOATS)
def test_dtype_follows_all_operands(first, second):
    # CoLA: a sum has its first operand's dtype
    a, b = np.ones((2, 2), first), np.ones((2, 2), second)
    want = np.result_type(a, b)
    for A, B in ((pl.Dense(a), pl.Dense(b)), (pl.Diag(a[0]), pl.Diag(b[0]))):
        for E in (A + B, B + A, A @ B, pl.Kron(A, B), pl.BlockDiag(A, B)):
            assert E.dtype == want and E.toarray().dtype == want
        assert (A @ np.ones(2, second)).dtype == want


def test_float64_stays_float64(rng):
    # CoLA, pykronecker: float64 data come back rounded to float32 where JAX is installed
    fs = [rng.standard_normal((4, 4)) for _ in range(3)]
    x = rng.standard_normal(64)
    want = np.kron(np.kron(*fs[:2]), fs[2]) @ x
    got = pl.Kron(*fs) @ x
    assert got.dtype == np.float64 and type(got) is np.ndarray
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-13 * np.abs(want).max())


def test_a_small_imaginary_part_is_not_dropped():
    # several: complex right-hand sides cast to the operator's real dtype, with or without a warning
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for A in (pl.Diag([1.0, 2.0]), pl.Toeplitz([1.0, 0.5]), pl.Kron([[2.0]], np.eye(2))):
            y = A @ np.array([1 + 1e-9j, 1j])
            assert y.dtype == np.complex128 and y.imag[0] != 0
            assert pl.solve(A, np.array([1j, 0])).dtype == np.complex128


def test_integers_are_exact_and_wrap_as_numpy():
    # SciPy, pylops: integer operators go through floats, so that large values lose digits
    big = 2**62 + 1
    assert (pl.Diag([big, 1]) @ np.array([1, 1]))[0] == big
    assert (pl.Toeplitz(np.array([big, 0])) @ np.array([1, 0]))[0] == big
    a = np.int8([[100, 100], [0, 1]])
    np.testing.assert_array_equal(pl.Dense(a) @ np.int8([1, 1]), a @ np.int8([1, 1]))


# -- structure -------------------------------------------------------------------------------------


def test_structure_is_kept_by_products_and_sums():
    # CoLA: Diag @ Diag is a Product; linear_operator, linox: Kron @ Kron, sums of Toeplitz and
    # BlockDiag are not merged
    d, k = pl.Diag([1.0, 2.0]), pl.Kron(np.ones((2, 2)), np.ones((3, 3)))
    t, b = pl.Toeplitz([2.0, 1.0]), pl.BlockDiag(np.eye(2), np.eye(3))
    for E, kind in (
        (d @ d, pl.Diag),
        (d + d, pl.Diag),
        (pl.inv(d), pl.Diag),
        (k @ k, pl.Kron),
        (k.T, pl.Kron),
        (pl.inv(k), pl.Kron),
        (t + t, pl.Toeplitz),
        (b + b, pl.BlockDiag),
        (b @ b, pl.BlockDiag),
        (pl.Circulant([1.0, 2.0]) @ pl.Circulant([1.0, 2.0]), pl.Circulant),
        (pl.Permutation([1, 0]) @ pl.Permutation([1, 0]), pl.Permutation),
        (pl.LowRank(np.ones((2, 1))) + pl.LowRank(np.ones((2, 1))), pl.LowRank),
        (pl.LowRank(np.ones((2, 1))) + d, pl.LowRankUpdate),
        (pl.Kron(d, d), pl.Kron),
    ):
        assert type(E) is kind, f"{type(E).__name__}, not {kind.__name__}"


def test_identities_and_zeros_vanish_from_products(rng):
    # linear_operator: K @ I and K @ 0 are not simplified; SciPy: they stay lazy composites
    K = pl.Kron(rng.standard_normal((5, 5)), rng.standard_normal((5, 5)))
    x = rng.standard_normal(25)

    def steps(A):
        return A.explain().split("steps")[1].splitlines()[0]

    for E in (K @ pl.Identity(25), pl.Identity(25) @ K, K @ pl.Identity(25) @ pl.Identity(25)):
        assert steps(E) == steps(K)
        np.testing.assert_array_equal(E @ x, K @ x)
    np.testing.assert_array_equal((K @ pl.Zeros((25, 25))) @ np.full(25, np.nan), np.zeros(25))


def test_every_pair_of_kinds_adds_and_multiplies():
    # CoLA: `+` and kron raise AmbiguousLookupError for every pair
    kinds = [
        pl.Dense(np.full((4, 4), 0.5)),
        pl.Identity(4),
        pl.Zeros((4, 4)),
        pl.Diag(np.arange(4.0)),
        pl.Kron(np.eye(2), np.ones((2, 2))),
        pl.Toeplitz(np.arange(4.0)),
        pl.Circulant(np.arange(4.0)),
        pl.LowRank(np.ones((4, 1))),
        pl.BlockDiag(np.eye(1), np.ones((3, 3))),
        pl.Sparse(sp.eye_array(4, k=1)),
        pl.Permutation([3, 1, 0, 2]),
        pl.MatVec((4, 4), lambda x: 2 * x, rmatvec=lambda x: 2 * x, dtype=float),
        sla.aslinearoperator(np.eye(4)),
    ]
    for A in kinds:
        for B in kinds:
            if isinstance(A, pl.LinearOperator):
                a, b = (o @ np.eye(4) for o in (A, B))
                np.testing.assert_allclose((A + B) @ np.eye(4), a + b, atol=1e-12)
                np.testing.assert_allclose((A @ B) @ np.eye(4), a @ b, atol=1e-12)


def test_kron_of_sparse_factors_stays_sparse():
    # TensorFlow: Kronecker products of sparse factors make them dense
    n = 10_000
    s = sp.eye_array(n, k=1, format="csr")
    K = pl.Kron(pl.Sparse(s), pl.Sparse(s[:50, :50]))
    with pl.config(memory_limit=10**8):
        x = np.arange(50.0 * n)
        np.testing.assert_array_equal(K @ x, sp.kron(s, s[:50, :50], format="csr") @ x)
        assert K.nbytes < 10**6


# -- memory ----------------------------------------------------------------------------------------


def big_ones():
    n = 100_000
    d, u = np.arange(1.0, n + 1), np.ones((n, 2))
    c = np.zeros(n)
    c[:2] = 4.0, 1.0
    band = np.ones((3, n))
    band[1] = 4
    yield "Diag", pl.Diag(d), True
    yield "product of diagonals", pl.Diag(d) @ pl.Diag(d), True
    yield "Kron", pl.Kron(np.eye(100) + 0.1, np.eye(1000) + 0.1), True
    yield "Diag + LowRank", pl.Diag(d) + pl.LowRank(u), True
    yield "Toeplitz", pl.Toeplitz(c), False
    yield "Circulant", pl.Circulant(c), True
    yield "Banded", pl.Banded((1, 1), band), True
    yield "BlockDiag", pl.BlockDiag(*[np.eye(100) + 0.1] * 1000), True
    yield "KronSum", pl.KronSum(np.eye(100), np.eye(1000)), False
    yield "selected Toeplitz", pl.Toeplitz(c)[::2, ::2] + pl.Identity(n // 2), False


@pytest.mark.parametrize(("what", "A", "solves"), [*big_ones()], ids=lambda v: str(v)[:20])
def test_no_hidden_square_array(what, A, solves):
    # CoLA: diag(D @ D) builds the product, a log-determinant wanted 80 GB; linear_operator: Kron
    # solves ran out of memory unless told
    n = A.shape[1]
    x = np.arange(n) % 3.0
    with pl.config(memory_limit=10**8):
        y = A @ x
        assert np.isfinite(y).all() and np.isfinite(A.T @ x).all()
        if solves:
            np.testing.assert_allclose(pl.solve(A, y), x, atol=1e-6)
        if "selected" not in what:
            assert np.isfinite(A.trace()) and A.diagonal().shape == (n,)
        with pytest.raises(pl.MaterializationError):
            np.linalg.qr(A)


def test_diagonal_of_a_product_of_diagonals_is_linear():
    # CoLA: 0.9 s at n = 10,000, by forming the product
    d = np.arange(1.0, 10**6)
    D = pl.Diag(d)
    with pl.config(memory_limit=10**8):
        np.testing.assert_array_equal((D @ D).diagonal(), d * d)
        assert (D @ D).trace() == pytest.approx((d * d).sum())


def test_an_unasked_dense_form_says_so():
    # linear_operator, SciPy: dense forms are made without a word
    with pytest.warns(pl.MaterializationWarning):
        np.sin(pl.Toeplitz(np.ones(2000)))


# -- shapes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [0, 1, 3, 5])
def test_vectors_of_a_wrong_length_are_refused(m):
    # pylops, KeOps, d * x by hand: a vector of one element is broadcast without an error
    for A in (
        pl.Diag(np.ones(4)),
        pl.Identity(4),
        pl.Zeros((4, 4)),
        pl.Toeplitz(np.ones(4)),
        pl.Kron(np.eye(2), np.eye(2)),
        pl.LowRank(np.ones((4, 1))),
        pl.Diag(np.ones(4)) + pl.Identity(4),
        pl.MatVec((4, 4), lambda x: x, dtype=float),
    ):
        for use in (
            lambda: A @ np.ones(m),
            lambda: A @ np.ones((m, 2)),
            lambda: A.matvec(np.ones(m)),
            lambda: np.ones(m) @ A,
            lambda: pl.solve(A, np.ones(m)),
        ):
            with pytest.raises(ValueError):
                use()


def test_joined_blocks_need_the_other_axis_to_agree():
    # CoLA: Concatenated compares the axis that is joined, and products along axis 1 fail
    a, b = np.ones((2, 3)), np.full((2, 2), 2.0)
    np.testing.assert_array_equal(pl.hstack([a, b]) @ np.arange(5.0), np.hstack([a, b]) @ range(5))
    np.testing.assert_array_equal(pl.vstack([a.T, b]) @ [1, 2], np.vstack([a.T, b]) @ [1, 2])
    for join in (pl.vstack, np.vstack):
        with pytest.raises(ValueError):
            join([pl.Dense(a), pl.Dense(b)])
    for join in (pl.hstack, np.hstack):
        with pytest.raises(ValueError):
            join([pl.Dense(a), pl.Dense(b.repeat(2, 0))])


def test_rows_columns_and_elements_of_matrices_that_are_not_square(rng):
    # CoLA: A[i] of a non-square operator raises; gpytorch: block sizes taken for block counts
    a, b = rng.standard_normal((2, 3)), rng.standard_normal((3, 5))
    for A in (
        pl.Kron(a, b),
        pl.BlockDiag(a, b, a),
        pl.Dense(a) @ pl.Dense(b),
        pl.LowRank(a, b.T),
    ):
        dense = A.toarray()
        for i in (0, 1, -1, len(dense) - 1):
            np.testing.assert_allclose(A[i], dense[i], atol=1e-14)
            np.testing.assert_allclose(A[i, 2], dense[i, 2], atol=1e-14)
            np.testing.assert_allclose(A[:, i % dense.shape[1]], dense[:, i % dense.shape[1]])
        np.testing.assert_allclose(A[[1, 0, 1]].toarray(), dense[[1, 0, 1]], atol=1e-14)
        np.testing.assert_allclose(A[1:, ::-2].toarray(), dense[1:, ::-2], atol=1e-14)
        with pytest.raises(IndexError):
            A[len(dense)]


def test_batches_are_taken(rng):
    # CoLA: data of shape (3, 2, 2) are refused; linear_operator: batches are expanded
    a, b = rng.standard_normal((3, 2, 2)), rng.standard_normal((2, 2))
    K = pl.Kron(a, b)
    np.testing.assert_allclose(K.toarray(), [np.kron(s, b) for s in a])
    np.testing.assert_allclose(pl.det(pl.Dense(a)), np.linalg.det(a))
    np.testing.assert_allclose(pl.solve(K, np.ones(4)), np.linalg.solve(K.toarray(), np.ones(4)))
    assert (pl.Diag(np.ones((0, 4))) @ np.ones(4)).shape == (0, 4)


# -- freshness -------------------------------------------------------------------------------------


def test_writes_in_place_are_seen(rng):
    # linear_operator, pylops: cached factors and spectra outlive a write into the operand
    n = 300
    a = np.eye(n) * 4 + rng.standard_normal((n, n)) / n
    c = np.exp(-np.arange(n) / 3.0)
    x = rng.standard_normal(n)
    A, T, P = pl.Dense(a), pl.Toeplitz(c), pl.Dense(a @ a.T, "pos")
    E = A @ A + 2 * pl.Identity(n)
    for _ in range(2):
        np.testing.assert_allclose(pl.solve(A, x), np.linalg.solve(a, x), rtol=1e-10)
        np.testing.assert_allclose(T @ x, sl.toeplitz(c) @ x, atol=1e-12)
        np.testing.assert_allclose(pl.logdet(A), np.linalg.slogdet(a)[1], rtol=1e-12)
        np.testing.assert_allclose(E @ x, a @ (a @ x) + 2 * x, rtol=1e-10)
        np.testing.assert_allclose(P @ pl.solve(P, x), x, atol=1e-9)
        a[0, 1] += 3
        c[1] *= 0.5
        P.a[0, 0] += 100


# -- NumPy and SciPy -------------------------------------------------------------------------------


def test_asarray_is_the_matrix():
    # SciPy, pylops, lazylinop, CoLA, linox, linear_operator: a 0-d object array
    for A in (pl.Diag([1.0, 2.0]), pl.Identity(2) + pl.Diag([0.0, 1.0])):
        got = np.asarray(A)
        assert got.dtype == float and got.shape == (2, 2)
        np.testing.assert_array_equal(got, np.diag([1.0, 2.0]))


@pytest.mark.parametrize(
    "name",
    "inv det slogdet trace norm cond matrix_rank pinv eigvalsh eigvals qr svd lstsq solve "
    "cholesky matrix_power".split(),
)
def test_numpy_linalg_takes_operators(name):
    # SciPy and all others: np.linalg.inv(op) raises; linear_operator: most of torch.linalg missing
    f = getattr(np.linalg, name)
    K = pl.Kron(np.array([[3.0, 1.0], [1.0, 2.0]]), np.diag([1.0, 4.0]))
    more = {"lstsq": (np.ones(4),), "solve": (np.ones(4),), "matrix_power": (3,)}.get(name, ())
    got, want = f(K, *more), f(K.toarray(), *more)
    for g, w in zip(*(v if isinstance(v, tuple) else (v,) for v in (got, want)), strict=True):
        np.testing.assert_allclose(np.asarray(g), w, atol=1e-12)


def test_array_on_the_left(rng):
    # pylops, linear_operator: ndarray @ op and ndarray + op fail; SciPy: np.matmul(a, op) raises
    a, d = rng.standard_normal((3, 3)), rng.standard_normal(3)
    D = pl.Diag(d)
    np.testing.assert_allclose(a @ D, a * d)
    np.testing.assert_allclose(np.matmul(a, D), a * d)
    np.testing.assert_allclose((a + D).toarray(), a + np.diag(d))
    np.testing.assert_allclose((a - D).toarray(), a - np.diag(d))
    np.testing.assert_allclose((D - a).toarray(), np.diag(d) - a)
    np.testing.assert_allclose((-D).diagonal(), -d)
    np.testing.assert_allclose((D**2).diagonal(), d * d)


def test_sparse_on_either_side_is_no_object_array():
    # SciPy: op @ sparse is an object array without an error
    s = sp.csr_array(np.array([[0.0, 2.0], [1.0, 0.0]]))
    D = pl.Diag([1.0, 3.0])
    for got, want in (
        (D @ s, [[0, 2], [3, 0]]),
        (s @ D, [[0, 6], [1, 0]]),
        (D + s, [[1, 2], [1, 3]]),
        (s + D, [[1, 2], [1, 3]]),
        (pl.Sparse(s) @ s, [[2, 0], [0, 2]]),
    ):
        dense = got.toarray()
        assert dense.dtype == float
        np.testing.assert_array_equal(dense, want)


def test_block_diag_of_scipy_is_no_object_array():
    # scipy.linalg.block_diag: an object array of operators without an error
    got = sl.block_diag(pl.Diag([1.0, 2.0]), pl.Diag([3.0]))
    assert got.dtype == float
    np.testing.assert_array_equal(got, np.diag([1.0, 2.0, 3.0]))


def test_matmat_of_wrapped_objects_is_used():
    # SciPy: aslinearoperator ignores an object's matmat and goes column by column
    class Thing:
        shape, dtype = (3, 3), np.dtype(float)
        calls = 0

        def matvec(self, x):
            raise AssertionError("column by column")

        def matmat(self, X):
            Thing.calls += 1
            return 2 * X

    np.testing.assert_array_equal(pl.aslinearoperator(Thing()) @ np.eye(3), 2 * np.eye(3))
    assert Thing.calls == 1


def test_scipy_takes_our_operators_as_its_own():
    # linear_operator, CoLA: "type not understood"; pylops: isinstance is False, expm_multiply fails
    A = pl.Diag([-1.0, -2.0]) @ pl.Identity(2)
    assert sla.aslinearoperator(A) is A and isinstance(A, sla.LinearOperator)
    got = sla.expm_multiply(A, np.ones(2), traceA=A.trace())
    np.testing.assert_allclose(got, np.exp([-1.0, -2.0]))
    assert sla.cg(-A, np.ones(2))[1] == 0


class Slotted(pl.LinearOperator):
    """A subclass that keeps a number in a slot."""

    __slots__ = ("c",)

    def __init__(self, c):
        super().__init__(float, (2, 2))
        self.c = c

    def _matvec(self, x):
        return self.c * x


def test_slots_of_subclasses_are_pickled():
    # SciPy 1.18: __getstate__ drops the slots of subclasses
    for A in (pickle.loads(pickle.dumps(Slotted(3.0))), copy.deepcopy(Slotted(3.0))):
        assert A.c == 3
        np.testing.assert_array_equal(A @ np.ones(2), [3, 3])


def test_operators_of_operators_are_pickled():
    # CoLA: parametric classes cannot be pickled; lazylinop: closures cannot
    A = pl.Kron(pl.Diag([1.0, 2.0]), pl.Toeplitz([2.0, 1.0]))
    A = pl.BlockDiag(A, pl.inv(A)) + pl.LowRank(np.ones((8, 1)))
    B = pickle.loads(pickle.dumps(A))
    assert type(B) is type(A)
    np.testing.assert_array_equal(B.toarray(), A.toarray())


def test_long_sums_are_no_problem():
    # SciPy, CoLA, pylops: RecursionError in long expressions
    A = E = pl.Diag([1.0, 2.0]) @ pl.Sparse(sp.eye_array(2))
    for _ in range(3000):
        E = E + A
    np.testing.assert_array_equal(E @ np.ones(2), [3001, 6002])
