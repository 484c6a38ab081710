"""Second derivatives of likelihoods with a diagonal plus thin products: without a matrix of n rows
and columns."""

import numpy as np
import pytest
from gradients.differences import check, check_second

import pylinop as pl

RNG = np.random.default_rng(41)


def drawn(*shape, dtype="float64"):
    a = RNG.standard_normal(shape)
    return (a + 1j * RNG.standard_normal(shape) if np.dtype(dtype).kind == "c" else a).astype(dtype)


def likelihood(y, matrix):
    return lambda *given: np.real(sum(pl.inv_quad_logdet(matrix(*given), y)))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 1), (8, 2), (15, 4), (16, 4), (17, 4), (100, 3)])
def test_diagonal_and_columns(n, k, dtype):
    f = likelihood(drawn(n, dtype=dtype), lambda d, U: pl.Diag(d) + pl.LowRank(U))
    with pl.config(check_plans=True, verify=True):
        check_second(f, RNG.uniform(1, 2, n), drawn(n, k, dtype=dtype))


@pytest.mark.parametrize("n", [3, 50])
def test_a_number_in_place_of_the_diagonal_and_a_middle(n):
    y = drawn(n)
    by_number = likelihood(y, lambda c, U: c * pl.Identity(n) + pl.LowRank(U))
    with_middle = likelihood(y, lambda d, U, c: pl.Diag(d) + pl.LowRank(U, U, pl.Diag(c)))
    product = likelihood(y, lambda d, U: pl.Diag(d) + U @ np.conj(U).T)
    d, U = RNG.uniform(1, 2, n), drawn(n, 2)
    with pl.config(check_plans=True):
        check_second(by_number, np.array(1.3), U)
        check_second(with_middle, d, U, np.array([0.5, 1.5]))
        check_second(product, d, U)


def test_two_factors_that_are_not_the_same():
    n = 60
    y, U, V = drawn(n), 0.2 * drawn(n, 3), 0.2 * drawn(n, 3)

    def f(d, U, V):
        K = pl.Diag(d) + pl.LowRank(U, V)
        return pl.slogdet(K)[1] + y @ pl.solve(K, y)

    with pl.config(check_plans=True):
        check_second(f, RNG.uniform(1, 2, n), U, V)


@pytest.mark.parametrize("d", [1e-9, 1e9])
def test_where_the_update_hides_the_base_or_vanishes_beside_it(d):
    """The result is checked: else it is the dense form's."""
    n = 40
    K, U = pl.Diag(np.full(n, d)), drawn(n, 2)
    X = RNG.standard_normal(n)
    A = pl.lazy(K) + pl.LowRank(U)
    found = pl.diagonal(pl.inv(A) @ pl.Diag(X) @ pl.inv(A))
    inverse = np.linalg.inv(d * np.eye(n) + U @ U.T)
    expected = (inverse @ np.diag(X) @ inverse).diagonal()
    scale = np.linalg.norm(inverse, 2) ** 2 * np.abs(X).max()
    condition = np.linalg.cond(d * np.eye(n) + U @ U.T)
    assert np.abs(found - expected).max() <= 1e-15 * n * condition * scale


@pytest.mark.parametrize("number", [2.0, -0.5])
@pytest.mark.parametrize("n", [8, 40])
def test_of_a_multiple_the_diagonal_keeps_its_numbers(n, number):
    """The vector of a multiple of a diagonal was once that of the same multiple of the identity."""
    r = np.random.default_rng(n)
    d, w = r.uniform(1, 2, (2, n))
    U = r.standard_normal((n, 2))
    inverse = np.linalg.inv(np.diag(d) + U @ U.T)
    for sum_of_both in (
        lambda d: number * (pl.Diag(d) + pl.LowRank(U)),
        lambda d: number * pl.LowRankUpdate(pl.Diag(d), U),
    ):
        found = pl.grad(lambda d, K=sum_of_both: w @ pl.diagonal(pl.inv(K(d))))(d)
        expected = -(inverse @ np.diag(w) @ inverse).diagonal() / number
        assert np.allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def flops(call):
    with pl.explaining() as record:
        call()
    return sum(p.flops for p in record.plans)


WRITTEN = {
    "LowRank": lambda d, U: pl.Diag(d) + pl.LowRank(U),
    "product": lambda d, U: pl.Diag(d) + U @ U.T,
    "LowRankUpdate": lambda d, U: pl.LowRankUpdate(pl.Diag(d), U),
    "c I + LowRank": lambda d, U: d[0] * pl.Identity(U.shape[0]) + pl.LowRank(U),
    "c I + product": lambda d, U: d[0] * pl.Identity(U.shape[0]) + U @ U.T,
}


@pytest.mark.parametrize("written", WRITTEN)
def test_solutions_that_several_terms_need_are_made_once(written):
    """inv(K) U and inv(K) dU stand in four terms: they were solved for once in each. Written as a
    sum, or with a multiple of the identity, a matrix of n rows and columns was made."""
    n, k = 1200, 10
    r = np.random.default_rng(4)  # one draw in eight takes the dense form of c I
    start, along = (
        (r.uniform(1, 2, n), r.standard_normal((n, k))),
        (r.standard_normal(n), r.standard_normal((n, k))),
    )
    f = likelihood(r.standard_normal(n), WRITTEN[written])
    gradient = flops(lambda: pl.value_and_grad(f, (0, 1))(*start))
    with pl.config(memory_limit=4 * n * n):
        assert flops(lambda: pl.hvp(f, (0, 1))(*start, along)) < 5.5 * gradient


@pytest.mark.parametrize("n", [3, 8, 15, 40, 100])
@pytest.mark.parametrize("written", WRITTEN)
def test_however_it_is_written(written, n):
    f = likelihood(drawn(n), WRITTEN[written])
    with pl.config(check_plans=True):
        check_second(f, RNG.uniform(1, 2, n), drawn(n, 2))


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("n", [4, 7, 8, 9, 60])
def test_the_square_of_an_inverse(n, dtype):
    """Its diagonal is the gradient of the inverse's trace."""
    d, U, V = RNG.uniform(1, 2, n), drawn(n, 2, dtype=dtype), 0.1 * drawn(n, 2, dtype=dtype)
    d = d.astype(U.real.dtype)
    for V_own in (None, V.astype(dtype)):
        A = pl.Diag(d) + pl.LowRank(U, V_own)
        inverse = np.linalg.inv(A.toarray().astype(complex))
        due = (inverse @ inverse).diagonal()
        found = pl.diagonal(pl.inv(A) @ pl.inv(A))
        tolerance = 50 * n * np.finfo(dtype).eps * np.linalg.cond(A.toarray()) ** 2
        assert np.abs(found - due).max() <= tolerance * np.abs(due).max()
        assert abs(pl.trace(pl.inv(A) @ pl.inv(A)) - due.sum()) <= tolerance * np.abs(due).sum()


def test_no_matrix_of_n_rows_and_columns():
    n = 3000
    f = likelihood(drawn(n), lambda d, U: pl.Diag(d) + pl.LowRank(U))
    with pl.config(memory_limit=4 * n * n):  # bytes: a dense form takes twice as many
        check_second(f, RNG.uniform(1, 2, n), drawn(n, 4))


@pytest.mark.parametrize("written", WRITTEN)
def test_gradients_of_traces_of_inverses_make_no_such_matrix_either(written):
    n = 1000
    f = lambda d, U: pl.trace(pl.inv(WRITTEN[written](d, U)))
    d, U = RNG.uniform(1, 2, n), drawn(n, 4)
    with pl.config(memory_limit=4 * n * n):
        check(f, d, U)
