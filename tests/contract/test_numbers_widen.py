"""What one part of an expression makes wider, all parts are computed in, as
docs/tutorial/02-numbers.md says. int8 wraps at 127: a product in the wrong dtype shows."""

import numpy as np
import pytest

import pylinop as pl

A = np.array([[100, 50], [-3, 90]], np.int8)
B = np.array([[7, 100], [100, 2]], np.int8)
D = np.diag(np.array([100, 90], np.int8))
X = np.array([100, -90], np.int8)
F = np.array([[1.5, 2.0], [3.0, 4.25]])
NUMBERS = [np.int64(2), np.int16(3), 0.5, np.float32(0.5), 2j, 3]


def dense(a):
    return pl.Diag(np.diagonal(a).copy()) if a is D else pl.Dense(a)


# Each with operators made by `op`, and with arrays in the dtype of the result, where `op` casts.
FORMULAS = {
    "multiple": lambda c, op, kron: c * op(A),
    "product": lambda c, op, kron: (c * op(A)) @ op(B),
    "second": lambda c, op, kron: op(A) @ (c * op(B)),
    "outside": lambda c, op, kron: c * (op(A) @ op(B)),
    "three": lambda c, op, kron: op(B) @ (c * op(A)) @ op(B),
    "sum": lambda c, op, kron: op(A) + c * op(B),
    "difference": lambda c, op, kron: c * op(A) - op(B) @ op(A),
    "diagonal": lambda c, op, kron: c * op(D),
    "diagonals": lambda c, op, kron: (c * op(D)) @ op(D),
    "diagonal left": lambda c, op, kron: c * op(D) @ op(A),
    "kron": lambda c, op, kron: kron(c * op(A), op(B)),
    "kron outside": lambda c, op, kron: c * kron(op(A), op(B)),
    "power": lambda c, op, kron: (
        (c * op(A)) ** 2 if isinstance(op(A), pl.LinearOperator) else (c * op(A)) @ (c * op(A))
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("number", NUMBERS, ids=lambda c: f"{type(c).__name__} {c}")
def test_an_expression_is_computed_in_the_dtype_of_its_result(name, number):
    op = FORMULAS[name](number, dense, pl.Kron)
    dtype = np.result_type(A, number)
    want = FORMULAS[name](number, lambda a: a.astype(dtype), np.kron)
    x = np.resize(X, want.shape[1])
    assert op.dtype == want.dtype == dtype
    np.testing.assert_array_equal(op.toarray(), want)
    np.testing.assert_array_equal(op @ x, want @ x)
    np.testing.assert_array_equal(x @ op, x @ want)
    np.testing.assert_array_equal(op.T @ x, want.T @ x)
    columns = np.stack([x, x[::-1]], axis=1)
    np.testing.assert_array_equal(op @ columns, want @ columns)
    np.testing.assert_array_equal(op.diagonal(), np.diagonal(want))
    assert op[0, 1] == want[0, 1]


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", [np.int16, np.int64, np.float32, np.complex128])
def test_a_wider_array_widens_all_leaves(name, dtype):
    op = FORMULAS[name](3, dense, pl.Kron)
    want = FORMULAS[name](3, lambda a: a.astype(dtype), np.kron)
    x = np.resize(X, want.shape[1]).astype(dtype)
    got, size = op @ x, np.abs(want.astype(complex)) @ np.abs(x.astype(complex))
    assert got.dtype == dtype
    rounded = np.finfo(dtype).eps * 10 * size.real if dtype in (np.float32, np.complex128) else 0
    assert np.all(np.abs(got - want @ x) <= rounded)


@pytest.mark.parametrize("number", NUMBERS, ids=lambda c: f"{type(c).__name__} {c}")
def test_blocks_take_the_dtype_of_the_widest(number):
    op = pl.BlockDiag(number * pl.Dense(A), pl.Dense(B))
    np.testing.assert_array_equal(op @ np.r_[X, X], op.toarray() @ np.r_[X, X])
    op = pl.Block([[number * pl.Dense(A), pl.Dense(B) @ pl.Dense(A)]])
    np.testing.assert_array_equal(op @ np.r_[X, X], op.toarray() @ np.r_[X, X])


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_a_wider_term_leaves_no_digits_of_single_precision(dtype):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 40, 40))
    a, x = a.astype(dtype), rng.standard_normal(40).astype(dtype)
    wide = np.result_type(dtype, np.float64)
    for op, want in (
        (pl.Dense(a) + pl.Dense(b), a + b),
        (pl.Dense(b) @ pl.Dense(a), b @ a.astype(wide)),
        (pl.BlockDiag(pl.Dense(a), pl.Diag(b[0]))[:40, :40], a.astype(wide)),
        (np.float64(1 / 3) * pl.Diag(a[0]), np.diag(1 / 3 * a[0].astype(wide))),
        (pl.inv(pl.Diag(b[0]) @ pl.Diag(a[0])), np.diag(1 / (b[0] * a[0]))),
    ):
        got = op @ x
        size = np.abs(want) @ np.abs(x)
        assert got.dtype == wide and np.all(np.abs(got - want @ x) <= 80 * 2.3e-16 * size)


def test_a_number_times_i_leaves_real_products_real():
    """i A x is i times a real product: nothing is made complex, or copied, before it has to be."""
    op = 2j * pl.Dense(np.ones((50, 50)))
    text = str(op.explain("apply", np.ones(50)))
    assert "(50, 50) <-" not in text, text


# LazyArrays are NumPy's arrays, deferred: what NumPy would wrap before it is widened is wrapped.
LAZILY = {
    "sum within": lambda z: (z(F) + z(A) @ z(B)) @ z(X),
    "product within": lambda z: z(F) @ (z(A) @ z(B)),
    "vector within": lambda z: z(F) @ (z(A) @ z(X)),
    "multiple": lambda z: 0.5 * (z(A) @ z(B)),
    "determinant": lambda z: np.linalg.det(z(A) + z(B)),
    "of a multiple": lambda z: np.linalg.det(3 * z(A)),
    "logarithm": lambda z: np.linalg.slogdet(z(A) @ z(B))[1],
    "solve": lambda z: np.linalg.solve(z(A) + z(B), z(X)),
    "trace": lambda z: np.trace(z(A) @ z(B)),
    "in single precision": lambda z: np.linalg.solve(z(F.astype(np.float32)), z(X)),
    "columns in single precision": lambda z: np.linalg.solve(z(F.astype(np.float32)), z(A)),
}


@pytest.mark.parametrize("name", LAZILY)
def test_integers_of_lazy_arrays_wrap_where_numpys_do(name):
    got, want = np.asarray(LAZILY[name](pl.lazy)), np.asarray(LAZILY[name](np.asarray))
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-12)
