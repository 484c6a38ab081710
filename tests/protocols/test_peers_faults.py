"""Faults measured in other libraries, each as a test of what is right here: numbers and dtypes.

The comment names the library and its fault; a peer's own version may have mended it since."""

import warnings

import mpmath
import numpy as np
import pytest
import scipy.linalg as sl
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


def test_a_false_assumption_is_noticed(rng):
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
    # CoLA: the transpose of what is assumed self-adjoint is the operator itself
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
