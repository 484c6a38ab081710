"""LazyArray against NumPy: the same formulas on arrays and lazy arrays: value, shape, dtype."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import values

import pylinop as pl


def compare(f, *arrays, rtol=1e-10):
    """f on arrays and on lazy arrays: shape and dtype known before the value; same value."""
    want = f(*arrays)
    got = f(*(pl.lazy(a) for a in arrays))
    assert isinstance(got, pl.LazyArray)
    want = np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype, (got, want.shape, want.dtype)
    assert got._value is None
    value = np.asarray(got)
    assert value.shape == want.shape and value.dtype == want.dtype
    u = np.finfo(want.dtype).eps if want.dtype.kind in "fc" else 0
    scale = np.abs(want).max(initial=1) if want.dtype.kind != "b" else 1
    np.testing.assert_allclose(
        value, want, rtol=0, atol=max(rtol if u > 1e-10 else 0, 1e4 * u) * scale
    )
    return got


MATRICES = [
    lambda A, B, x, y: A @ B,
    lambda A, B, x, y: A @ B @ x,
    lambda A, B, x, y: A @ (B @ x),
    lambda A, B, x, y: x @ A,
    lambda A, B, x, y: x @ A @ B,
    lambda A, B, x, y: x @ A @ y,
    lambda A, B, x, y: x @ y,
    lambda A, B, x, y: A.T @ B + A.T @ B,
    lambda A, B, x, y: (A.T @ B).T @ (A.T @ B),
    lambda A, B, x, y: (A.T @ B).T @ A.T @ B,
    lambda A, B, x, y: A @ B - B @ A,
    lambda A, B, x, y: (A - B.T @ B) @ x,
    lambda A, B, x, y: A + B,
    lambda A, B, x, y: A - 2 * B,
    lambda A, B, x, y: -A,
    lambda A, B, x, y: +A,
    lambda A, B, x, y: A * B,
    lambda A, B, x, y: A / 3,
    lambda A, B, x, y: A / (1 + abs(B)),
    lambda A, B, x, y: 2.5 * A,
    lambda A, B, x, y: A * (x @ y),
    lambda A, B, x, y: (x @ y) * A @ B,
    lambda A, B, x, y: A + x,
    lambda A, B, x, y: 1 + A,
    lambda A, B, x, y: x + y * 2,
    lambda A, B, x, y: x - 1,
    lambda A, B, x, y: -x,
    lambda A, B, x, y: A.T,
    lambda A, B, x, y: A.conj().T @ B,
    lambda A, B, x, y: np.exp(A) @ x,
    lambda A, B, x, y: np.exp(A @ B),
    lambda A, B, x, y: np.tanh(A @ x) + np.sqrt(abs(y)),
    lambda A, B, x, y: abs(A),
    lambda A, B, x, y: abs(A) ** 2,
    lambda A, B, x, y: 2 ** abs(x),
    lambda A, B, x, y: abs(A) > 0.5,
    lambda A, B, x, y: x == y,
    lambda A, B, x, y: x != x,
    lambda A, B, x, y: (A @ B)[1, 2],
    lambda A, B, x, y: (A @ B)[-1],
    lambda A, B, x, y: (A + B)[2, 2],
    lambda A, B, x, y: (A @ B)[:, 1],
    lambda A, B, x, y: x[1:3],
    lambda A, B, x, y: x[[0, 2]],
    lambda A, B, x, y: np.exp(A)[1:, ::2],
    lambda A, B, x, y: x[:, None] * y,
    lambda A, B, x, y: np.outer(x, y) @ A,
    lambda A, B, x, y: A.trace(),
    lambda A, B, x, y: np.trace(A @ B),
    lambda A, B, x, y: np.trace(A, 1),
    lambda A, B, x, y: (A @ B).diagonal(),
    lambda A, B, x, y: np.diag(A @ B, -1),
    lambda A, B, x, y: A.sum(),
    lambda A, B, x, y: (A @ B).sum(axis=0),
    lambda A, B, x, y: np.sum(A, axis=1, keepdims=True),
    lambda A, B, x, y: x.sum(),
    lambda A, B, x, y: A.mean(axis=0),
    lambda A, B, x, y: np.max(abs(A), axis=1),
    lambda A, B, x, y: np.any(x == y),
    lambda A, B, x, y: np.all(abs(A) >= 0, axis=0),
    lambda A, B, x, y: np.prod(x),
    lambda A, B, x, y: np.where(abs(A) > 1, A, 0.0),
    lambda A, B, x, y: np.where(abs(A) > 1, A, x),
    lambda A, B, x, y: A.reshape(2, -1),
    lambda A, B, x, y: np.ravel(A @ B),
    lambda A, B, x, y: np.squeeze(A[None]),
    lambda A, B, x, y: np.expand_dims(x, 0) @ A,
    lambda A, B, x, y: np.dot(A, x) + np.inner(A, y),
    lambda A, B, x, y: np.vdot(x, y) + np.vdot(A, B),
    lambda A, B, x, y: np.linalg.multi_dot([A, B, x]),
    lambda A, B, x, y: np.linalg.matrix_power(A, 3),
    lambda A, B, x, y: np.real(A @ x),
    lambda A, B, x, y: np.imag(A) + 1,
    lambda A, B, x, y: A.astype("complex128") @ x,
    lambda A, B, x, y: A @ x.astype("float32").astype("float64") if x.dtype.kind == "f" else A @ x,
    lambda A, B, x, y: np.einsum("ij,j->i", A, x) if isinstance(A, np.ndarray) else A @ x,
]


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("i", range(len(MATRICES)))
def test_formulas(i, dtype, rng):
    if dtype == "complex128" and i in {j for j, f in enumerate(MATRICES) if _orders(f)}:
        pytest.skip("complex numbers have no order")
    A, B = (values(rng, (4, 4), dtype) for _ in range(2))
    x, y = (values(rng, 4, dtype) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        compare(MATRICES[i], A, B, x, y, rtol=2e-4)


def _orders(f):
    names = f.__code__.co_consts + f.__code__.co_names
    return "max" in names


@pytest.mark.parametrize("i", range(len(MATRICES)))
def test_formulas_of_integers(i, rng):
    A, B = (values(rng, (4, 4), "int64") for _ in range(2))
    x, y = (values(rng, 4, "int64") for _ in range(2))
    compare(MATRICES[i], A, B, x, y)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_solves(dtype, rng):
    a = values(rng, (5, 5), dtype) + 5 * np.eye(5)
    X, b, B = values(rng, (8, 5), dtype), values(rng, 5, dtype), values(rng, (5, 3), dtype)
    y = values(rng, 8, dtype)
    inv, solve = np.linalg.inv, np.linalg.solve
    compare(lambda a, b: inv(a) @ b, a, b)
    compare(lambda a, b: inv(a) @ b, a, B)
    compare(lambda a, b: b @ inv(a), a, b)
    compare(lambda a, b: b.T @ inv(a), a, B)
    compare(lambda a: inv(a), a)
    compare(lambda a: inv(a).T @ a, a)
    compare(lambda a, b: solve(a, b), a, b)
    compare(lambda a, b: solve(a.T, b), a, B)
    compare(lambda X, y: inv(X.T.conj() @ X) @ X.T.conj() @ y, X, y)
    compare(lambda a: np.trace(inv(a)), a)
    compare(lambda a: np.linalg.det(a.T @ a), a, rtol=1e-8)
    got = pl.logdet(pl.lazy(a) @ pl.lazy(a).H)
    assert got._value is None
    np.testing.assert_allclose(got, np.linalg.slogdet(a @ a.conj().T)[1])
    np.testing.assert_allclose(pl.solve(pl.lazy(a), b), solve(a, b))
    np.testing.assert_allclose(pl.solve(a, pl.lazy(b)), solve(a, b))
    np.testing.assert_allclose(
        pl.solve(pl.lazy(a @ a.conj().T), b, assume_a="pos"), solve(a @ a.conj().T, b), rtol=1e-8
    )
    np.testing.assert_allclose(pl.slogdet(pl.lazy(a))[1], np.linalg.slogdet(a)[1])
    np.testing.assert_allclose(pl.svdvals(pl.lazy(a)), np.linalg.svd(a)[1])
    s = pl.lazy(a @ a.conj().T, assume_a="pos")
    np.testing.assert_allclose(pl.inv(s) @ b, solve(a @ a.conj().T, b), rtol=1e-8)
    low = pl.lazy(a, assume_a="lower triangular")
    np.testing.assert_allclose(pl.inv(low) @ b, solve(np.tril(a), b), rtol=1e-8)
    with pytest.raises(np.linalg.LinAlgError):
        np.asarray(pl.inv(pl.lazy(np.zeros((3, 3)))) @ np.ones(3))
    with pytest.raises(np.linalg.LinAlgError, match="square"):
        pl.inv(pl.lazy(X))


def test_mixed_with_arrays_and_operators(rng):
    a, x = values(rng, (4, 4), "float64"), values(rng, 4, "float64")
    A, D = pl.lazy(a), pl.Diag(x)
    d = np.diag(x)
    for got, want in (
        (A @ a, a @ a),
        (a @ A, a @ a),
        (A + a, a + a),
        (a - A, a - a),
        (x @ A, x @ a),
        (A @ D, a @ d),
        (D @ A, d @ a),
        (D + A, d + a),
        (A - D, a - d),
        (D - A, d - a),
        (D @ A @ x, d @ a @ x),
        (A @ x.tolist(), a @ x),
        (pl.lazy(D) @ A @ x, d @ a @ x),
        (3 * (A @ D).T, 3 * (a @ d).T),
        (np.array(2.0) * A, 2 * a),
        (np.multiply(a, A), a * a),
        (D @ pl.lazy(x), d @ x),
    ):
        assert isinstance(got, pl.LazyArray)
        np.testing.assert_allclose(got, want, atol=1e-12)
    for bad in (lambda: A * D, lambda: D * A):
        with pytest.raises(TypeError, match="pl.multiply"):
            bad()
    with pytest.raises(ValueError, match="inner dimensions"):
        A @ np.ones(3)
    with pytest.raises(ValueError, match="scalar operands"):
        A @ 2.0
    with pytest.raises(ValueError):
        A + np.ones((3, 4))


def test_values_are_kept_and_read_only(rng):
    a = values(rng, (3, 3), "float64")
    A = pl.lazy(a)
    y = A @ A
    first = np.asarray(y)
    assert np.asarray(y) is first and not first.flags.writeable
    want = a @ a
    a[:] = 0  # the value is that of the first evaluation
    np.testing.assert_allclose(y, want)
    np.testing.assert_array_equal(A @ A, np.zeros((3, 3)))
    own = y.toarray()
    own[:] = 7
    np.testing.assert_allclose(y, want)
    for view in (A.T, A[1:], A.reshape(9), np.real(A), A):
        kept = np.asarray(view)
        assert not np.shares_memory(kept, a) and not kept.flags.writeable


def test_shared_parts_are_computed_once(rng):
    calls = []

    def counted(x):
        calls.append(1)
        return np.exp(x)

    from pylinop._lazy import array

    a = values(rng, (3, 3), "float64")
    A = pl.lazy(a)
    E = array.LazyArray("call", (A,), A.shape, A.dtype, (counted, {}))
    u, v = pl.evaluate(E @ E, E.sum())
    assert len(calls) == 1
    np.testing.assert_allclose(u, np.exp(a) @ np.exp(a))
    np.testing.assert_allclose(v, np.exp(a).sum())
    assert pl.evaluate(3.0) == 3


def test_numbers(rng):
    x = values(rng, 4, "float64")
    X = pl.lazy(x)
    n = X @ X
    assert n.shape == () and float(n) == pytest.approx(x @ x) and bool(n > 0)
    assert complex(n) == float(n) and int(n) == int(x @ x) and n.item() == float(n)
    assert [1, 2, 3][pl.lazy(np.array(2))] == 3
    with pytest.raises((TypeError, ValueError)):
        float(X)
    with pytest.raises(ValueError):
        bool(X)
    assert len(X) == 4 and [float(v) for v in X] == x.tolist()
    with pytest.raises(TypeError):
        len(n)


def test_printing_does_not_compute(rng):
    A = pl.lazy(values(rng, (3, 3), "float64"))
    x = pl.lazy(np.ones(3))
    y = pl.inv(A.T @ A + 2 * A) @ (A.T @ x) - np.exp(x[1:2])
    assert "inv(A0.T @ A0 + (2 * A0))" in repr(y)
    assert "computed" not in y.explain() and "plan" in y.explain() or y.explain()
    assert y._value is None and A._value is None
    deep = A
    for _ in range(5000):
        deep = deep @ A + A
    assert len(repr(deep)) < 250 and deep._value is None


def test_deep_formulas(rng):
    a = values(rng, (2, 2), "float64") / 2
    A = x = pl.lazy(a)
    want = a
    for _ in range(3000):
        x = x @ A + A
        want = want @ a + a
    np.testing.assert_allclose(x, want, rtol=1e-8, atol=1e-12)
    z = pl.lazy(np.ones(3))
    for _ in range(20000):
        z = z + 1
    np.testing.assert_array_equal(z, np.full(3, 20001.0))
    assert pickle.loads(pickle.dumps(z)).shape == (3,)


def test_pickle_and_copy(rng):
    A = pl.lazy(values(rng, (3, 3), "float64"), assume_a="sym")
    y = A @ A + np.exp(A)
    for again in (pickle.loads(pickle.dumps(y)), copy.copy(y), copy.deepcopy(y)):
        assert again._value is None and repr(again) == repr(y)
        np.testing.assert_array_equal(again, y.toarray()) if again._value else None
    np.asarray(y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(y)), y.toarray())


def test_what_has_no_lazy_form_runs_in_numpy(rng):
    a = values(rng, (4, 4), "float64")
    A = pl.lazy(a)
    for f in (
        lambda a: np.partition(a, 1, axis=0),
        lambda a: np.linalg.eigvals(a @ a.T),
        lambda a: np.add.reduceat(a, [0, 2], axis=1),
        lambda a: np.add.reduce(a, axis=1, initial=2.0),
        lambda a: np.modf(a)[1],
        lambda a: np.median(a),
        lambda a: np.cov(a),
    ):
        got, want = f(A), f(a)
        assert type(got) is type(want)
        np.testing.assert_allclose(got, want, rtol=1e-10)
    out = np.zeros((4, 4))
    assert np.add(A, 1, out=out) is out
    np.testing.assert_array_equal(out, a + 1)
    out += A
    np.testing.assert_array_equal(out, a + 1 + a)
    with pytest.raises(TypeError, match="never changes"):
        np.add(a, 1, out=A)


def test_bad_input():
    for bad in ("text", np.array(["a"]), np.array([None])):
        with pytest.raises(TypeError):
            pl.lazy(bad)
    with pytest.raises(ValueError, match="square"):
        pl.lazy(np.ones((2, 3)), assume_a="pos")
    with pytest.raises(ValueError, match="assume_a"):
        pl.lazy(np.eye(2), assume_a="nonsense")
    with pytest.raises(IndexError):
        pl.lazy(np.eye(2))[5]
    assert pl.lazy(np.eye(2)).__hash__ is None


STEPS = {
    "add": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "scale": lambda a, b: (2 - 1j) * a,
    "T": lambda a, b: a.T,
    "H": lambda a, b: a.conj().T,
    "sin": lambda a, b: np.sin(np.real(a)) + 1j,
    "index": lambda a, b: a[::-1],
    "matmul": lambda a, b: a @ b,
}


@given(st.data())
def test_random_formulas(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    size = st.sampled_from([data.draw(st.integers(0, 3)) for _ in range(3)])
    arrays = [values(rng, (data.draw(size), data.draw(size)), "complex128") for _ in range(4)]
    pool = [(a, pl.lazy(a)) for a in arrays]
    for name in data.draw(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=8)):
        (a, A), (b, B) = (pool[data.draw(st.integers(0, len(pool) - 1))] for _ in range(2))
        fits = a.shape[1] == b.shape[0] if name == "matmul" else a.shape == b.shape
        if fits or name not in ("add", "mul", "matmul"):
            pool.append((STEPS[name](a, b), STEPS[name](A, B)))
    for a, A in pool[4:]:
        value = np.asarray(A)
        assert value.shape == a.shape
        np.testing.assert_allclose(value, a, rtol=0, atol=1e-10 * (1 + np.abs(a).max(initial=0)))


@pytest.mark.parametrize(
    "c",
    [
        3,
        3.0,
        np.float32(3),
        np.array(3.0),
        np.array([[3.0]]),
        0.0,
        1e-300,
        2j,
        np.inf,
        np.nan,
        True,
    ],
)
def test_a_formula_divided_by_a_number(c):
    rng = np.random.default_rng(3)
    for dtype in ("f4", "f8", "c16", "i8"):
        a = (4 * rng.standard_normal((5, 2))).astype(dtype)
        with np.errstate(all="ignore"):
            got, want = np.asarray((pl.lazy(a) @ pl.lazy(a).T) / c), (a @ a.T) / c
            if dtype != "i8":  # in a formula all is computed in its dtype
                want = (a.astype(want.dtype) @ a.T.astype(want.dtype)) / c
        assert got.dtype == want.dtype == ((a @ a.T) / c).dtype
        np.testing.assert_allclose(got, want, rtol=4 * np.finfo(want.dtype).eps)


@pytest.mark.parametrize(
    "key", [0, -1, (1, 2), (slice(None), 1), slice(3, 0, -2), (0, slice(1, 9)), ...]
)
def test_shapes_of_plain_indices(key):
    a = np.arange(20.0).reshape(4, 5)
    part = (pl.lazy(a) + 0 * pl.lazy(a))[key]
    assert part.shape == a[key].shape
    np.testing.assert_array_equal(part, a[key])


@pytest.mark.parametrize("key", [4, (0, 5), (0, 0, 0), "x"])
def test_wrong_indices_raise_at_once(key):
    with pytest.raises(IndexError):
        pl.lazy(np.ones((4, 5)))[key]


@pytest.mark.parametrize("dtype", ["i1", "u1", "?"])
@pytest.mark.parametrize(
    "formula",
    [
        "(a @ a) * 2.5",
        "a @ a + f",
        "f - (a @ a).T",
        "a @ a @ f",
        "a @ a @ f[0]",
        "f[0] @ (a @ a)",
        "(a @ a) / 3.0",
        "(a @ a + a) @ (a @ f)",
        "a @ a * 2 @ f",
        "(a @ a).sum()",
        "(a @ a).mean(0)",
        "(a @ a).trace()",
        "(a @ a + a).sum(1)",
    ],
)
def test_integers_wrap_where_numpy_lets_them(rng, dtype, formula):
    a = (rng.integers(0, 100, (5, 5)) + 50).astype(dtype)
    f = rng.standard_normal((5, 5))
    want = eval(formula, {"a": a, "f": f})
    got = eval(formula, {"a": pl.lazy(a), "f": pl.lazy(f)})
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got.toarray(), want, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["i4", "f4", "f8", "c16"])
def test_other_byte_orders_come_out_native(rng, dtype):
    a = rng.integers(-9, 9, (4, 4)).astype(np.dtype(dtype).newbyteorder())
    L = pl.lazy(a)
    for got, want in ((L @ L, a @ a), (L + L, a + a), ((L @ L).T, (a @ a).T), (L @ L[0], a @ a[0])):
        assert got.dtype == got.toarray().dtype == want.dtype
        np.testing.assert_array_equal(got, want)


def test_one_array_wrapped_twice_is_one_operand():
    a = np.random.default_rng(0).standard_normal((30, 5))
    gram = pl.lazy(a).T @ pl.lazy(a)
    assert [s["name"] for s in pl.explain(gram).steps] == ["syrk"]
    assert pl.Dense(a) is not pl.Dense(a)
    both = pl.Dense(a) - pl.Dense(a)
    assert not both.toarray().any()
    a[:] += 1  # still read when it is needed
    np.testing.assert_allclose(np.asarray(gram), a.T @ a)
    b = a.copy()
    assert "syrk" not in [s["name"] for s in pl.explain(pl.lazy(a).T @ pl.lazy(b)).steps]


def test_an_array_that_changed_its_shape_is_another_operand():
    a = np.arange(12.0).reshape(3, 4)
    first = pl.Dense(a)
    a.shape = (4, 3)
    second = pl.Dense(a)
    assert second.shape == (4, 3)
    np.testing.assert_array_equal(second @ np.ones(3), a.sum(1))
    with pytest.raises(ValueError, match="shape"):
        first @ np.ones(4)
