"""Second derivatives of determinants by the numbers of Toeplitz and Hankel matrices and by the
generators of quasi-separable ones: what they read off S^-1 X S^-1, without a dense form."""

import numpy as np
import pytest
from gradients.differences import check, check_second

import pylinop as pl

RNG = np.random.default_rng(53)
SIZES = [1, 2, 3, 15, 16, 17, 100]
DTYPES = ["float64", "complex128"]


def drawn(*shape, dtype="float64"):
    a = RNG.standard_normal(shape)
    return a + 1j * RNG.standard_normal(shape) if np.dtype(dtype).kind == "c" else a


def steps(f, *args):
    """The names of the steps that run where nothing fails."""
    with pl.explaining() as record:
        f(*args)
    return {s["name"] for plan in record.plans for s in plan.steps if not s["conditional"]}


# -- Toeplitz and Hankel


def column(n, dtype):
    c = np.exp(-np.arange(n) / 3.0) * (1 + 0.2 * drawn(n, dtype=dtype))
    c[0] = 3.0
    return c


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_determinants_of_toeplitz_matrices(n, dtype):
    def general(c, r):
        return pl.slogdet(pl.Toeplitz(c, r))[1]

    def turned(c, r):
        return pl.slogdet(pl.Toeplitz(c, r).T + 0.5 * pl.Identity(n))[1]

    with pl.config(check_plans=True, verify=True):
        check_second(general, column(n, dtype), column(n, dtype))
        check_second(turned, column(n, dtype), column(n, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_likelihoods_of_toeplitz_matrices(n, dtype):
    y = drawn(n, dtype=dtype)

    def f(c):
        A = pl.Toeplitz(c)
        return np.real(np.conj(y) @ pl.solve(A, y)) + pl.slogdet(A)[1]

    with pl.config(check_plans=True, verify=True):
        check_second(f, column(n, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_determinants_of_hankel_matrices(n, dtype):
    def f(c, r):
        return pl.slogdet(pl.Hankel(c[::-1], r))[1]

    with pl.config(check_plans=True, verify=True):
        check_second(f, column(n, dtype), column(n, dtype))


@pytest.mark.no_verify  # whose own plans would be counted
@pytest.mark.parametrize("n", [200, 1000])
def test_no_square_of_a_toeplitz_matrix(n):
    c, y = column(n, "float64"), drawn(n)

    def f(c):
        return sum(pl.inv_quad_logdet(pl.Toeplitz(c), y))

    names = steps(pl.hvp(f), c, drawn(n))
    assert "toeplitz_between_sums" in names
    assert not {"toeplitz-dense", "diagonal-sums", "getrf", "potrf", "eye"} & names, names


@pytest.mark.parametrize("first", [0.0, 1e-12, 1e-4])
def test_where_the_first_number_of_the_inverse_vanishes(first):
    """Gohberg and Semencul's formula fails there; the matrix does not."""
    c, r = np.array([first, 1.0, 0.3]), np.array([first, 1.0, -0.4])
    T, X = pl.Toeplitz(c, r), pl.Toeplitz(np.arange(3.0), np.arange(3.0) * 2)
    inverse = np.linalg.inv(T.toarray())
    between = inverse @ X.toarray() @ inverse
    h = np.array([0.0, 1.0, 2.0]), np.array([0.0, 2.0, 4.0])
    f = lambda c, r: pl.slogdet(pl.Toeplitz(c, r))[1]  # noqa: E731
    by_c, by_r = pl.hvp(f, (0, 1))(c, r, h)
    sums = [np.trace(between, k) for k in range(-2, 3)]
    np.testing.assert_allclose(by_c, [-sums[2], -sums[3], -sums[4]], rtol=1e-9)
    np.testing.assert_allclose(by_r[1:], [-sums[1], -sums[0]], rtol=1e-9)


# -- quasi-separable


def generators(n, J, full, dtype):
    """Diagonally dominant in effect: near singular ones are too steep for differences."""
    p, q, moves = (drawn(n, k, dtype=dtype) for k in (J, J, J * J if full else J))
    return RNG.random(n) + 6 * J, p / 2, q / 2, moves * (0.4 / J)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("J", "full"), [(1, False), (2, True), (3, False)])
@pytest.mark.parametrize("n", [1, 2, 3, 16, 17, 60])
def test_likelihoods_of_quasi_separable_matrices(n, J, full, dtype):
    y = drawn(n, dtype=dtype)

    def f(d, p, q, a, c):
        K = pl.QuasiSeparable(d, p, q, a) + c * pl.Identity(n)
        return np.real(sum(pl.inv_quad_logdet(K, y)))

    with pl.config(check_plans=True, verify=True):
        check_second(f, *generators(n, J, full, dtype), np.array(0.7))


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 16, 33])
def test_what_lies_between_two_inverses(n, dtype, full):
    """The diagonal and the trace of it, of matrices of other sizes of states and dtypes."""
    K = pl.QuasiSeparable(*generators(n, 2, full, dtype))
    for other in DTYPES:
        X = pl.QuasiSeparable(*generators(n, 3, not full, other))
        inverse = np.linalg.inv(K.toarray())
        expected = inverse @ X.toarray() @ inverse
        between = pl.inv(pl.lazy(K)) @ X @ pl.inv(pl.lazy(K))
        with pl.config(check_plans=True, verify=True):
            np.testing.assert_allclose(
                pl.diagonal(between), expected.diagonal(), rtol=1e-12, atol=1e-14
            )
            np.testing.assert_allclose(pl.trace(between), np.trace(expected), rtol=1e-12)


def test_indefinite_ones_go_by_the_dense_form():
    d, p, q, a = generators(15, 2, False, "float64")
    d = d * np.where(np.arange(15) % 3, 1, -1)
    assert np.linalg.eigvalsh(pl.QuasiSeparable(d, p, q, a).toarray())[0] < 0
    with pl.config(check_plans=True):
        check_second(lambda *x: pl.slogdet(pl.QuasiSeparable(*x))[1], d, p, q, a)


def test_elements_that_are_not_read():
    d, p, q, a = generators(10, 2, True, "float64")
    ways = tuple(drawn(*x.shape) for x in (d, p, q, a))
    wanted = pl.hvp(lambda *x: pl.logdet(pl.QuasiSeparable(*x)), (0, 1, 2, 3))(d, p, q, a, ways)
    p[0], q[-1], a[0], a[-1] = np.nan, np.inf, np.nan, np.nan
    found = pl.hvp(lambda *x: pl.logdet(pl.QuasiSeparable(*x)), (0, 1, 2, 3))(d, p, q, a, ways)
    for g, h in zip(found, wanted, strict=True):
        np.testing.assert_allclose(g, h, rtol=1e-13, atol=1e-15)


def process(n, kernel="matern32"):
    t = np.sort(RNG.random(n)) * n / 10
    y = np.sin(t)

    def f(p):
        K = pl.quasiseparable(kernel, t, variance=p[0], length_scale=p[1])
        return sum(pl.inv_quad_logdet(K + p[2] * pl.Identity(n), y))

    return f, np.array([1.3, 0.8, 0.2])


@pytest.mark.parametrize("kernel", ["matern12", "matern32", "matern52"])
@pytest.mark.parametrize("n", [2, 17, 200])
def test_markov_processes(n, kernel):
    f, p = process(n, kernel)
    with pl.config(check_plans=True):
        check_second(f, p, rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 16, 40])
def test_by_the_diagonal_alone(n, dtype):
    """What lies between the inverses is diagonal."""
    K = pl.QuasiSeparable(*generators(n, 2, True, dtype))
    f = lambda d: np.real(pl.logdet(K + pl.Diag(d)))  # noqa: E731
    with pl.config(check_plans=True, verify=True):
        check_second(f, 1 + RNG.random(n))


@pytest.mark.no_verify  # whose own plans would be counted
def test_by_the_diagonal_of_many_rows():
    n = 3000
    K = pl.quasiseparable("matern32", np.sort(RNG.random(n)) * n / 10)
    f = lambda d: pl.logdet(K + pl.Diag(d))  # noqa: E731
    with pl.config(memory_limit=n * n):  # bytes: a dense form takes eight times as many
        names = steps(pl.hvp(f), 1 + RNG.random(n), drawn(n))
    assert "quasi_between_diagonal" in names


@pytest.mark.no_verify  # whose own plans would be counted
def test_no_matrix_of_the_size_of_a_markov_process():
    n = 4000
    t = np.sort(RNG.random(n)) * n / 10

    def f(p):  # of a kernel whose likelihood no sweep with derivatives finds
        K = pl.quasiseparable("celerite", t, a=p[0], c=p[1])
        return sum(pl.inv_quad_logdet(K + p[2] * pl.Identity(n), np.sin(t)))

    with pl.config(memory_limit=n * n):  # bytes: a dense form takes eight times as many
        names = steps(pl.hvp(f), np.array([1.3, 0.8, 0.2]), np.array([0.3, -0.2, 0.1]))
    assert "quasi_between_sums" in names
    assert not {"quasi-dense", "todense", "eye", "getrf"} & names, names


# -- stacks of quasi-separable matrices


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "full"), [(1, True), (2, False), (16, True), (17, False)])
def test_stacks(n, full, dtype):
    """Each of the four with a dimension of its own, or shared by all."""
    many = [
        np.stack(x) for x in zip(*(generators(n, 2, full, dtype) for _ in range(3)), strict=True)
    ]
    one = generators(n, 2, full, dtype)
    y = drawn(n, 1)

    def f(d, p, q, a):
        K = pl.QuasiSeparable(d, p, q, a)
        return np.sum(np.real(pl.logdet(K))) + np.sum(np.real(pl.solve(K, y)) ** 2)

    with pl.config(check_plans=True, verify=True):
        for shared in ((), (1, 3), (0, 1, 2)):
            args = [one[i] if i in shared else many[i] for i in range(4)]
            check(f, *args)
            check_second(f, *args)


@pytest.mark.no_verify  # whose own plans would be counted
def test_no_matrices_of_the_size_of_those_of_a_stack():
    n, B = 1500, 3
    args = [
        np.stack(x)
        for x in zip(*(generators(n, 2, False, "float64") for _ in range(B)), strict=True)
    ]
    args[0] += 60  # definite, whatever was drawn
    f = lambda *x: np.sum(pl.logdet(pl.QuasiSeparable(*x)))  # noqa: E731
    every = (0, 1, 2, 3)
    with pl.config(memory_limit=B * n * n):  # bytes: a dense form takes eight times as many
        first = steps(pl.value_and_grad(f, every), *args)
        second = steps(pl.hvp(f, every), *args, tuple(drawn(*x.shape) for x in args))
    assert "quasi-inverse-own-sums" in first and "quasi_between_sums" in second


# -- several results of one plan, which lie one behind the other


@pytest.mark.parametrize(("n", "m"), [(8, 2), (16, 4)])
def test_values_that_are_folded_where_they_lie_among_other_results(n, m):
    """The columns that a gradient by the factors of a Kron folds were once read where the first of
    all results lies."""
    v, t = drawn(n) / n, np.array(0.4)
    A, B = drawn(m, m) / m + 2 * np.eye(m), drawn(n // m, n // m) / n + 2 * np.eye(n // m)
    f = lambda v, t, A, B: pl.logdet(pl.Householder(v, t) + pl.Kron(A, B))  # noqa: E731
    along = [drawn(n), np.array(0.0), np.zeros(A.shape), np.zeros(B.shape)]
    given = [pl.lazy(x) for x in (v, t, A, B)]
    slope = sum((g * d).sum() for g, d in zip(pl.gradients(f(*given), given), along, strict=True))
    second = pl.gradients(slope, given)
    with pl.config(check_plans=True):
        together = [x.copy() for x in pl.evaluate(*second)]
    given = [pl.lazy(x) for x in (v, t, A, B)]
    for i, x in enumerate(given):
        g = pl.gradients(f(*given), given)
        slope = sum((g * d).sum() for g, d in zip(g, along, strict=True))
        alone = pl.gradients(slope, x).toarray()
        np.testing.assert_allclose(together[i], alone, rtol=1e-10, atol=1e-12)
