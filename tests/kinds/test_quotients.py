"""Quotients and products with numbers of NumPy's: the dtype is NumPy's, and the digits are those of
double precision wherever the operands or the vector have them."""

import itertools

import numpy as np
import pytest

import pylinop as pl

NUMBERS = "bBhHiIlLefdgFDG?"
DTYPES = "bHlfdFD"


def number_of(char, value=3):
    return np.dtype(char).type(value)


@pytest.mark.parametrize("op", DTYPES)
@pytest.mark.parametrize("number", NUMBERS)
def test_a_quotient_has_the_dtype_of_numpy(op, number):
    a, c = np.arange(1, 10).reshape(3, 3).astype(op), number_of(number)
    assert (pl.Dense(a) / c).dtype == (a / c).dtype
    assert (pl.Dense(a) / np.array(c)).dtype == (a / c).dtype


@pytest.mark.parametrize("op", DTYPES)
@pytest.mark.parametrize("number", NUMBERS)
def test_a_quotient_has_the_digits_of_numpy(op, number):
    a, c = np.arange(1, 10).reshape(3, 3).astype(op), number_of(number)
    got, want = (pl.Dense(a) / c).toarray(), a / c
    assert got.dtype == want.dtype
    eps = np.finfo(want.dtype).eps
    np.testing.assert_allclose(got, want, rtol=2 * eps, atol=0)


@pytest.mark.parametrize("number", "efdFDbl")
@pytest.mark.parametrize("op", DTYPES)
def test_a_quotient_applied_to_doubles_has_their_digits(op, number):
    """Each leaf is cast to the promotion of operand and array: x / c in double precision."""
    a, c, x = np.arange(1, 10).reshape(3, 3).astype(op), number_of(number), np.ones(3)
    got, want = (pl.Dense(a) / c) @ x, (a @ x) / complex(3)
    np.testing.assert_allclose(got, want, rtol=1e-15, atol=0)


@pytest.mark.parametrize("number", "efdFD")
def test_quotients_of_operators_without_a_dtype_of_their_own(number):
    q = pl.Identity(3) / number_of(number)
    np.testing.assert_allclose(q @ np.ones(3), np.full(3, 1 / 3), rtol=1e-15, atol=0)


@pytest.mark.parametrize("kind", ["dense", "diag", "circulant", "kron", "kernel", "sum", "lazy"])
def test_quotients_of_every_kind(kind):
    d = np.array([3.0, 1, 2])
    op = {
        "dense": lambda: pl.Dense(np.outer(d, d)),
        "diag": lambda: pl.Diag(d),
        "circulant": lambda: pl.Circulant(d),
        "kron": lambda: pl.Kron(np.outer(d, d), np.eye(2)),
        "kernel": lambda: pl.Kernel("rbf", d[:, None]),
        "sum": lambda: pl.Diag(d) + pl.Circulant(d),
        "lazy": lambda: pl.lazy(np.outer(d, d)) + pl.lazy(np.eye(3)),
    }[kind]()
    c = np.float32(0.1)
    want = np.asarray(op.toarray()) / c
    np.testing.assert_allclose((op / c).toarray(), want, rtol=1e-14, atol=1e-15)
    assert (op / c).toarray().dtype == want.dtype


@pytest.mark.parametrize("c", [1e-310, 1.5e308, -1e-310, 1e-310j, 5e-324, np.float64(1e-310)])
def test_a_quotient_whose_reciprocal_is_out_of_range(c):
    a = np.array([[1.0, 2], [0, 3]]) * (1 if abs(c) < 1 else 0.25)
    phase = -1j if isinstance(c, complex) else 1 if c > 0 else -1
    got = (pl.Dense(a * abs(c)) / c).toarray()
    np.testing.assert_allclose(got, a * phase, rtol=1e-14, atol=0)


def test_a_single_quotient_whose_reciprocal_is_out_of_range():
    a, c = np.full((2, 2), 2e-40, "f4"), np.float32(1e-40)
    np.testing.assert_allclose((pl.Dense(a) / c).toarray(), a / c, rtol=1e-6, atol=0)


def test_a_quotient_by_zero_is_as_that_of_one():
    with pytest.raises(ZeroDivisionError):
        pl.Identity(2) / 0
    with np.errstate(divide="ignore", invalid="ignore"):
        assert np.isinf((pl.Dense(np.ones((2, 2))) / np.float64(0)).toarray()).all()
        assert np.isinf((pl.Dense(np.ones((2, 2))) / np.float32(0)).toarray()).all()


@pytest.mark.parametrize("number", "efdFDbl")
def test_pinv_of_a_multiple(number):
    c = number_of(number) if number in "bl" else number_of(number, 0.1)
    for op in (pl.Dense(np.eye(2)), pl.Diag([1.0, 2]), pl.Kron(np.eye(2), np.eye(2))):
        want = np.linalg.pinv(op.toarray() * c)
        np.testing.assert_allclose(pl.pinv(c * op).toarray(), want, rtol=1e-14, atol=1e-15)


# -- multiples of multiples --

COEFFICIENTS = [
    *(np.float32(0.1), np.float32(3e-30), np.float16(0.1), np.complex64(0.1 + 0.7j)),
    *(np.int8(100), np.int8(-3), np.uint8(200), np.int64(2**40), 2**40, 0.1, -1, 1e200, 1e-200),
]


@pytest.mark.parametrize("head", ["dense", "diag", "full", "identity", "circulant"])
@pytest.mark.parametrize(
    "a, b", list(itertools.product(COEFFICIENTS, COEFFICIENTS)), ids=lambda c: f"{c!r}"
)
def test_multiples_of_multiples(head, a, b):
    """Coefficients become one only where that loses nothing: neither digits, nor bits of integers,
    nor the range of numbers."""
    op = {
        "dense": lambda: pl.Dense(np.array([[1.0, 2], [3, 4]])),
        "diag": lambda: pl.Diag([1.0, 2]),
        "full": lambda: pl.Full((2, 2), 3.0),
        "identity": lambda: pl.Identity(2, np.float64),
        "circulant": lambda: pl.Circulant([1.0, 2]),
    }[head]()
    x = np.array([1.0, 2.0])
    value = complex(a) * complex(b)
    if not 1e-300 < abs(value) < 1e300:
        return
    want = value * (op.toarray() @ x)
    np.testing.assert_allclose((a * (b * op)) @ x, want, rtol=1e-14, atol=0)
    own = np.finfo((a * (b * op)).dtype)  # float32 where only the numbers have a dtype
    if 100 * float(own.tiny) < abs(value) < float(own.max) / 100:
        np.testing.assert_allclose((a * (b * op)).toarray() @ x, want, rtol=8 * own.eps, atol=0)


def test_coefficients_still_merge():
    a = pl.Dense(np.eye(2))
    for c, d in ((2.0, 3.0), (2, 3), (1000, 1000), (-1, np.float32(0.1)), (1j, 2.0)):
        both = d * (c * a)
        assert both.args[0] is a
        assert both.args[1] == c * d


def test_a_multiple_keeps_its_digits_through_pickle():
    import pickle

    q = pickle.loads(pickle.dumps(pl.Dense(np.eye(2)) / np.float32(3)))
    assert abs((q @ np.ones(2))[0] - 1 / 3) < 1e-16


@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64"])
@pytest.mark.parametrize(
    "first", [2, 2.0, 1 - 2j, np.float32(2), np.float64(1.5), np.complex64(1j)]
)
@pytest.mark.parametrize(
    "second", [3, 0.5, 2 + 1j, np.float32(4), np.float64(0.5), np.complex128(2j)]
)
def test_two_coefficients_have_numpys_dtype(dtype, first, second):
    a = np.ones((2, 2), dtype)
    want = second * (first * a)
    for got in (second * (first * pl.Dense(a)), (pl.Dense(a) * first) * second):
        assert got.dtype == want.dtype and got.toarray().dtype == want.dtype
        np.testing.assert_allclose(got.toarray(), want, rtol=1e-6)


@pytest.mark.parametrize("number", [np.int64(2), np.int16(3), np.float32(0.5), 0.5, 2j])
@pytest.mark.parametrize("side", ["left", "right", "transposed", "columns"])
def test_a_number_that_widens_small_integers_widens_them_before_the_product(number, side):
    """int8 wraps at 127; (c A) x has the dtype of c A, and so have the products before c."""
    a = np.array([[100, 50], [-3, 90]], np.int8)
    x, op = np.array([100, -90], np.int8), number * pl.Dense(a)
    got, want = {
        "left": lambda: (op @ x, (number * a) @ x),
        "right": lambda: (x @ op, x @ (number * a)),
        "transposed": lambda: (op.T @ x, (number * a).T @ x),
        "columns": lambda: (op @ np.outer(x, [1, 1]), (number * a) @ np.outer(x, [1, 1])),
    }[side]()
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def test_a_number_that_widens_single_precision_leaves_no_digits_of_it():
    """The same with floats: s (A x), where A x is computed in double precision, for both faces."""
    rng = np.random.default_rng(0)
    a, x = rng.standard_normal((2, 5, 5)).astype(np.float32)
    s = np.float64(1 / 3)
    want = s * a.astype(np.float64) @ x
    for got in ((s * pl.Dense(a)) @ x, np.asarray((s * pl.lazy(a)) @ x)):
        assert got.dtype == np.float64
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-14 * np.abs(want).max())
