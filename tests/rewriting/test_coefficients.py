"""A plan is made for a class of coefficients: with another number the steps are the same, the
numbers in them are computed anew, and what is decided by a value is decided again."""

import pickle

import numpy as np
import pytest
import scipy.sparse

import pylinop as pl
from pylinop import _core

rng = np.random.default_rng(5)
N = 24
A, B = rng.standard_normal((2, N, N))
S = A @ A.T / N + np.eye(N)
U, V = rng.standard_normal((2, N, 3))
D = rng.random(N) + 1
X = rng.standard_normal(N)
C = 0.5 ** np.arange(N)
K = [a @ a.T + np.eye(len(a)) for a in (rng.standard_normal((4, 4)), rng.standard_normal((6, 6)))]


def identity():
    return pl.Identity(N)


FORMULAS = {
    "product": lambda c, d: (c * pl.Dense(A) @ pl.Dense(B)) @ X,
    "both factors": lambda c, d: ((c * pl.Dense(A)) @ (d * pl.Dense(B))) @ X,
    "quotient": lambda c, d: (pl.Dense(A) / c) @ X,
    "terms": lambda c, d: (c * pl.Dense(A) + d * pl.Dense(B) - c * pl.Dense(A)) @ X,
    "like terms": lambda c, d: (c * pl.Dense(A) + d * pl.Dense(A)) @ X,
    "common factor": lambda c, d: (c * pl.Dense(A) @ pl.Dense(B) + d * pl.Dense(A)).toarray(),
    "fused sum": lambda c, d: (pl.Dense(A) @ pl.Dense(B) - c * pl.Dense(B)).toarray(),
    "fused sum under views": lambda c, d: (
        c * pl.Dense(A + 1j * B).H @ pl.Dense(B) + d * pl.Dense(A).T @ pl.Dense(B).T + pl.Dense(S)
    ).toarray(),
    "view": lambda c, d: (c * pl.Dense(A)).T @ X,
    "complex": lambda c, d: (c * pl.Dense(A + 1j * B)).H @ X,
    "nested": lambda c, d: (c * (d * pl.Dense(A) + identity()) + d * pl.Dense(B)) @ X,
    "solve of a multiple": lambda c, d: pl.solve(c * pl.Dense(S, "pos"), X),
    "shift": lambda c, d: pl.solve(pl.Dense(S) + c * identity(), X),
    "positive or not": lambda c, d: pl.solve(pl.Dense(S, "pos") + c * pl.Dense(S, "pos"), X),
    "normal equations": lambda c, d: pl.solve(c * (pl.Dense(A).T @ pl.Dense(A)), X),
    "woodbury": lambda c, d: pl.solve(c * identity() + d * pl.LowRank(U), X),
    "woodbury, general": lambda c, d: pl.solve(pl.Diag(D) + c * pl.LowRank(U, V), X),
    "lemma": lambda c, d: pl.det(c * identity() + pl.LowRank(U)),
    "determinant": lambda c, d: pl.det(c * pl.Dense(A)),
    "spectra": lambda c, d: pl.solve(d * pl.Kron(*K) + c * identity(), X),
    "two Krons": lambda c, d: pl.logdet(c * pl.Kron(*K) + d * pl.Kron(*K)),
    "Sylvester": lambda c, d: pl.solve(
        pl.KronSum(c * pl.Dense(A[:4, :4]), d * pl.Dense(B[:6, :6])), X
    ),
    "Toeplitz": lambda c, d: pl.solve(c * pl.Toeplitz(C) + d * identity(), X),
    "bands": lambda c, d: pl.solve(
        c * pl.Tridiagonal(-np.ones(N - 1), 3 * D, -np.ones(N - 1)) + d * identity(), X
    ),
    "sparse": lambda c, d: pl.solve(
        c * pl.Sparse(scipy.sparse.diags_array(D).tocsr()) + d * identity(), X
    ),
    "Full": lambda c, d: (c * pl.Full((N, N), 2.0) + pl.Dense(A)) @ X,
    "trace": lambda c, d: np.trace(c * pl.Dense(A) @ pl.Dense(B)),
    "diagonal": lambda c, d: np.diagonal(c * pl.Dense(A) + d * pl.Dense(B)),
    "element": lambda c, d: (c * pl.Dense(A) @ pl.Dense(B))[2, 3],
    "single precision": lambda c, d: (c * pl.Dense(A.astype("f4"))) @ X.astype("f4"),
    "lazy": lambda c, d: np.asarray(c * pl.lazy(A) @ X + pl.inv(pl.lazy(S) + d * identity()) @ X),
    "joint": lambda c, d: np.hstack(pl.evaluate(*two(c, d))),
}


def two(c, d):
    a = pl.lazy(A)
    return c * a @ X, d * a.T @ X


# both signs, sizes on both sides of every bound in the code, ones, twos and equal pairs
NUMBERS = [
    (0.3, 0.7),
    (0.7, 0.3),
    (0.7, 0.7),
    (-0.3, 0.7),
    (0.3, -0.7),
    (1.0, 0.7),
    (0.3, -1.0),
    (2.0, 0.5),
    (0.5, 2.0),
    (3, 2),
    (1e-7, 3.0),
    (3e6, 0.25),
    (1e-40, 2.0),
    (1e40, 2.0),
    (0.9, 0.0),
    (np.float64(0.3), np.float64(0.9)),
    (np.float32(0.3), 0.7),
]


# i, its square and its conjugate, real and imaginary among complex, equal and conjugated pairs
COMPLEX = [
    (0.3 + 0.7j, 0.7),
    (0.7, 0.3 + 0.7j),
    (0.3 + 0.7j, 0.3 + 0.7j),
    (0.3 + 0.7j, 0.3 - 0.7j),
    (-0.2 + 1.1j, 0.9 - 0.4j),
    (1j, -1j),
    (1j, 1j),
    (2.5j, 0.5j),
    (1.5 + 0j, 0.5j),
    (3e6 + 1j, 0.25j),
    (1e-40j, 2.0 + 1j),
    (np.complex128(0.4 - 2j), np.complex64(0.9 + 1j)),
    (np.array(0.2 + 2j), np.array(0.7)),
]


def fresh(formula, c, d):
    """The same, planned for these numbers alone: nothing is found by its structure."""
    _core._clear_store()
    try:
        return formula(c, d)
    except np.linalg.LinAlgError as e:
        return type(e)


@pytest.mark.filterwarnings("ignore::pylinop.IllConditionedWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("numbers", [NUMBERS, COMPLEX], ids=["real", "complex"])
@pytest.mark.parametrize("name", FORMULAS)
def test_a_plan_for_another_number_gives_what_its_own_would(name, numbers):
    formula = FORMULAS[name]
    want = [fresh(formula, c, d) for c, d in numbers]
    _core._clear_store()
    order = np.random.default_rng().permutation(2 * len(numbers)) % len(numbers)
    for i in order:
        try:
            got = formula(*numbers[i])
        except np.linalg.LinAlgError as e:
            assert want[i] is type(e), (numbers[i], e)
            continue
        np.testing.assert_array_equal(got, want[i], err_msg=f"{numbers[i]} in the order {order}")


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 100])
def test_a_resolvent_at_many_frequencies(n):
    """(z I - A)^-1 b, its multiples and adjoints: one plan each, values as NumPy's."""
    r = np.random.default_rng()
    a, u, b = r.standard_normal((n, n)), r.standard_normal((n, 1)), r.standard_normal(n)
    d = 1 + r.random(n)
    eye = pl.Identity(n)
    made = []
    _core._clear_store()  # a full one lets go of plans at any time
    for z in (0.4 + 2j * n, -0.7 - 3j * n, 5j * n, 1.0 - 7j * n):
        got = [
            pl.solve(z * eye - pl.Dense(a), b),
            pl.solve((z * eye - pl.Dense(a)).H, b),
            pl.solve(z * pl.Diag(d) + pl.LowRank(pl.Dense(u)), b),
            (z * pl.Dense(a) @ (z * pl.Dense(a)).H) @ b,
            np.asarray((z * pl.lazy(a) + eye) @ b),
            pl.det(z * eye + pl.LowRank(pl.Dense(u))) / z**n,
        ]
        plain = z * np.eye(n) - a
        want = [
            np.linalg.solve(plain, b),
            np.linalg.solve(plain.conj().T, b),
            np.linalg.solve(np.diag(z * d) + u @ u.T, b),
            abs(z) ** 2 * (a @ (a.T @ b)),
            z * (a @ b) + b,
            1 + (u.T @ u)[0, 0] / z,
        ]
        for x, y in zip(got, want, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10 * np.max(np.abs(y)))
        made.append(_core._store()["plans_made"])
    assert made[0] == made[-1]


@pytest.mark.parametrize(
    "name", ["product", "woodbury", "shift", "spectra", "Toeplitz", "bands", "lazy"]
)
@pytest.mark.parametrize("by", [1.0, 1j, 0.4 - 2j, np.array(1.0), np.array(1 + 1j)])
def test_a_new_number_finds_the_plan(name, by):
    _core._clear_store()
    FORMULAS[name](by * 0.31, 0.77)
    before = _core._store()
    for c in (0.4, 0.5, 0.6):
        FORMULAS[name](by * c, 1.3 * c)
    after = _core._store()
    assert after["plans_made"] == before["plans_made"]
    assert after["plans_found"] > before["plans_found"]


def test_a_fused_product_keeps_its_view():
    """What says how a product's operand is seen lies beside the number in its step."""
    a, b = A + 1j * B, B - 1j * A
    for c in (0.3, 0.7, -2.5):
        got = (c * pl.Dense(a).H @ pl.Dense(b) + pl.Dense(S)).toarray()
        np.testing.assert_allclose(got, c * a.conj().T @ b + S, atol=1e-12)


def test_integers_keep_their_numbers():
    a = np.arange(9, dtype=np.int8).reshape(3, 3)
    for c in (2, 3, 5, 2):
        np.testing.assert_array_equal((c * pl.Dense(a)) @ np.ones(3, "i1"), (c * a).sum(1))
        closed = c * pl.LowRank(a, a)
        x = np.ones(3, np.int8)
        np.testing.assert_array_equal(closed @ x, np.int8(c) * (a @ (a.T @ x)))


def test_an_operator_with_its_number_is_pickled():
    op = 0.3 * pl.Dense(A) + 0.7 * identity()
    other = 0.4 * pl.Dense(A) + 0.9 * identity()
    want = op @ X, other @ X
    again = pickle.loads(pickle.dumps((op, other)))
    np.testing.assert_array_equal([o @ X for o in again], want)
    np.testing.assert_array_equal([op @ X, other @ X], want)


SUMS_OF_WHOLE_NUMBERS = {
    "A - c A twice": lambda a, c: (a - c * a) + (a - c * a),
    "A - c A - c A": lambda a, c: a - c * a - c * a,
    "c A + c A - A": lambda a, c: c * a + c * a - a,
    "A - c A": lambda a, c: a - c * a,
    "c c A": lambda a, c: c * (c * a),
}


@pytest.mark.parametrize("dtype", ["i8", "f8", "f4"])
@pytest.mark.parametrize("form", SUMS_OF_WHOLE_NUMBERS)
def test_a_plan_for_numbers_that_cancel_is_not_that_of_others(form, dtype, rng):
    """What rules decide by a number that they made of others, such as that it is -1, is a
    condition of the plan."""
    a = rng.integers(1, 9, (6, 6)).astype(dtype)
    make, x = SUMS_OF_WHOLE_NUMBERS[form], rng.standard_normal(6)
    for first in (0.5, 0.25, 1e-200, 2.0, 1.0):
        for c in (first, 0.3, 0.5, 0.25, 4.0, 1e-3, -0.5):
            op, want = make(pl.Dense(a), c), make(a.astype("f8"), c)
            near = {"rtol": 1e-5, "atol": 1e-5 * np.abs(want).max()}
            with pl.config(check_plans=True, verify=c != first):
                np.testing.assert_allclose(op.diagonal(), want.diagonal(), **near)
                np.testing.assert_allclose(op.toarray(), want, **near)
                np.testing.assert_allclose(op @ x, want @ x, **near)
                np.testing.assert_allclose(pl.trace(op), np.trace(want), **near)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_a_sum_within_an_inverse_is_not_compared_with_what_is_read_of_that_one(dtype, rng):
    """B + C stands within B + (B + C) X, of which its first terms alone are there by then: of the
    others what an earlier plan had left was looked at, and made a condition."""
    a, b, c, d, e = (rng.standard_normal((9, 9)).astype(dtype) + 9 * np.eye(9) for _ in range(5))
    A, B, C, D, E = map(pl.Dense, (a, b, c, d, e))
    x = rng.standard_normal(9)
    for k in (2.0, 3.5, -0.5, 1e-3):
        want = a @ x + np.linalg.solve(b + (b + c) @ (k * d + e), x)
        with pl.config(check_plans=True):
            got = (A + pl.inv(B + (B + C) @ (k * D + E))) @ x
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * np.abs(want).max())
