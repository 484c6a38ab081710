"""NumPy's operators on ours: __array_ufunc__ from both sides, __array__, materialisation."""

import operator
import warnings

import numpy as np
import pytest
import ref
from samples import leaf, values

import pylinop as pl

KIND_DTYPE = [(k, t) for k in ref.KINDS for t in ("float64", "complex64", "int64")]
each = pytest.mark.parametrize("kind,dtype", KIND_DTYPE)


def made(kind, dtype, rng, m=4, n=4):
    A = ref.build(leaf(kind, rng, m, n, dtype))
    return A, A.toarray(), values(rng, (n,), dtype), values(rng, (n, n), dtype)


def near(got, want, dtype=None):
    """Equal up to rounding in `dtype`, in which the oracle was computed (default: that of want)."""
    got = got.toarray() if isinstance(got, pl.LinearOperator) else got
    assert np.shape(got) == np.shape(want) and got.dtype == want.dtype
    u = np.finfo(dtype or want.dtype).eps if want.dtype.kind in "fc" else 0
    np.testing.assert_allclose(got, want, rtol=0, atol=500 * u * (1 + np.abs(want).max(initial=0)))


@each
def test_products_are_arrays(kind, dtype, rng):
    A, a, x, X = made(kind, dtype, rng)
    for got, want in (
        (np.matmul(A, x), a @ x),
        (np.matmul(x, A), x @ a),
        (np.matmul(A, X), a @ X),
        (np.matmul(X, A), X @ a),
        (x @ A, x @ a),
        (X @ A, X @ a),
        (np.multiply(A, x), a @ x),
        (np.multiply(X, A), X @ a),
        (x * A, x @ a),
        (A * x, a @ x),
        (X * A, X @ a),
    ):
        assert type(got) is np.ndarray
        near(got, want)
    out = np.zeros(4, a.dtype)
    assert np.matmul(A, x, out=out) is out
    near(out, a @ x)
    assert np.matmul(x, A, out=out) is out
    near(out, x @ a)


@each
@pytest.mark.skipif(not hasattr(np, "matvec"), reason="NumPy 2.2 and later")
def test_matvec_and_vecmat(kind, dtype, rng):
    A, a, x, X = made(kind, dtype, rng)
    near(np.matvec(A, x), a @ x)
    near(np.matvec(A, X), (a @ X[..., None])[..., 0])
    near(np.vecmat(x, A), x.conj() @ a)
    near(np.vecmat(X, A), (X.conj()[:, None] @ a)[:, 0])


@each
def test_sums_and_scales_are_operators(kind, dtype, rng):
    A, a, x, X = made(kind, dtype, rng)
    cases = [
        (np.add(A, X), a + X),
        (np.add(X, A), X + a),
        (X + A, X + a),
        (A + X, a + X),
        (np.subtract(A, X), a - X),
        (np.subtract(X, A), X - a),
        (X - A, X - a),
        (A - X, a - X),
        (np.negative(A), -a),
        (-A, -a),
        (+A, a),
        (np.positive(A), a),
        (np.multiply(A, 2), a * 2),
        (np.multiply(2.5, A), a * 2.5),
        (np.float64(2) * A, np.float64(2) * a),
        (A * np.float64(2), a * np.float64(2)),
        (np.array(3.0) * A, a * np.array(3.0)),
        (A * np.array(3.0), a * np.array(3.0)),
        (np.divide(A, 2), a / 2),
        (np.true_divide(A, 2j), a / 2j),
        (A / np.float64(4), a / np.float64(4)),
        (A / np.array(4.0), a / np.array(4.0)),
        (np.conjugate(A), a.conj()),
        (np.conj(A), a.conj()),
        (np.add(A, A), a + a),
        (np.subtract(A, A.T), a - a.T),
        (np.matmul(A, A), a @ a),
        (np.multiply(A, A), a @ a),
    ]
    for i, (got, want) in enumerate(cases):
        assert isinstance(got, pl.LinearOperator), i
        near(
            got @ np.eye(4, dtype=want.dtype), want, dtype if np.dtype(dtype).kind in "fc" else None
        )
    for got in (np.float64(2) * A, np.array(2.0) * A, np.int8(2) * A):
        assert isinstance(got, pl.LinearOperator)


def test_0d_arrays_scale_but_do_not_multiply():
    A = pl.Dense(np.eye(3))
    for c in (2, 2.0, np.float64(2), np.array(2.0)):
        for bad in (lambda: A @ c, lambda: c @ A, lambda: np.matmul(A, c), lambda: np.matmul(c, A)):
            with pytest.raises(ValueError):
                bad()
    with pytest.raises(ValueError, match="Can only divide a linear operator by a scalar"):
        A / np.array([1.0, 2.0])
    for bad in (
        lambda: 1 / A,
        lambda: np.ones(3) / A,
        lambda: A + 1,
        lambda: 1 + A,
        lambda: A - 2.0,
        lambda: np.ones((3, 3)) / A,
    ):
        with pytest.raises((TypeError, ValueError)):
            bad()


def test_in_place_operators_of_arrays(rng):
    A = pl.Diag(np.arange(1.0, 4))
    x = X = np.ones((3, 3))
    x = x @ A
    np.testing.assert_array_equal(x, np.tile(np.arange(1.0, 4), (3, 1)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pl.MaterializationWarning)
        Y = X
        Y += A  # into the array's own memory
    assert Y is X and type(X) is np.ndarray
    np.testing.assert_array_equal(X, np.ones((3, 3)) + A.toarray())
    B = A
    B += A
    assert isinstance(B, pl.LinearOperator) and B is not A
    B @= A
    np.testing.assert_array_equal(B.toarray(), np.diag(2 * np.arange(1.0, 4) ** 2))
    np.testing.assert_array_equal(A.toarray(), np.diag(np.arange(1.0, 4)))


def test_lists_and_tuples(rng):
    A = pl.Dense(np.arange(4.0).reshape(2, 2))
    np.testing.assert_array_equal([1, 2] @ A, np.array([1, 2]) @ A.toarray())
    np.testing.assert_array_equal(A @ (1, 2), A.toarray() @ np.array([1, 2]))


def test_other_ufuncs_work_on_the_dense_form_or_say_why(rng):
    """exp is element-wise in NumPy, never the exponential of the operator."""
    A, a, x, X = made("Toeplitz", "float64", rng)
    for f in (np.exp, np.abs, np.sqrt, np.isfinite):
        with np.errstate(all="ignore"):
            try:
                got = f(A)
            except TypeError as error:
                assert f.__name__ in str(error) or "element" in str(error)
            else:
                np.testing.assert_allclose(np.asarray(got), f(a))


@each
def test_array(kind, dtype, rng):
    A, a, x, X = made(kind, dtype, rng)
    for got in (
        np.asarray(A),
        np.array(A),
        np.asanyarray(A),
        np.array(A, copy=True),
        A.__array__(),
        A.__array__(copy=True),
    ):
        assert type(got) is np.ndarray
        near(got, a)
    assert np.asarray(A, dtype="complex128").dtype == np.complex128
    near(np.asarray(A, dtype="complex128"), a.astype("complex128"))
    with pytest.raises(ValueError):
        np.array(A, copy=False)
    with pytest.raises(ValueError):
        A.__array__(copy=False)
    fresh = np.asarray(A)
    fresh[...] = 0
    near(A.toarray(), a)


def test_materialising_warns_above_a_size_and_refuses_above_another(rng):
    A = pl.Identity(2000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.asarray(A)
    with pl.config(warn_limit=1000):
        with pytest.warns(pl.MaterializationWarning, match="2000") as seen:
            np.asarray(A)
        assert len(seen) == 1 and seen[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            A.toarray(), A.todense(), A @ np.ones(2000)  # asked for by name: no warning
    with pl.config(memory_limit=10**6):
        for dense in (
            np.asarray,
            np.array,
            lambda a: a.toarray(),
            lambda a: a.todense(),
            lambda a: (a + a.T).toarray(),
        ):
            with pytest.raises(pl.MaterializationError, match="2000"):
                dense(A)
        A @ np.ones(2000), A.trace(), A.diagonal()
    assert np.asarray(A).shape == (2000, 2000)
    assert issubclass(pl.MaterializationWarning, UserWarning) and issubclass(
        pl.MaterializationError, MemoryError
    )


@pytest.mark.no_verify("the comparison makes vectors, which these sizes have no room for")
@pytest.mark.parametrize("n", [10**6, 10**9, 2**40, 2**62])
def test_huge_operators_do_not_take_the_machine(n):
    A = pl.Identity(n)
    assert A.shape == (n, n) and f"{n}x{n}" in repr(A)
    for dense in (
        np.asarray,
        pl.LinearOperator.toarray,
        lambda a: a.T.toarray(),
        lambda a: (a + a).toarray(),
    ):
        with pytest.raises((pl.MaterializationError, ValueError, OverflowError)):
            dense(A)
    assert (A @ A).shape == (n, n) and A[n - 1, n - 1] == 1 and A[0, 1] == 0
    assert A.nbytes < 10**6


def test_config_is_process_wide_or_within_with():
    A = pl.Identity(50)
    with pl.config(memory_limit=1):
        with pytest.raises(pl.MaterializationError):
            np.asarray(A)
        with pl.config(memory_limit=10**9):
            np.asarray(A)
        with pytest.raises(pl.MaterializationError):
            np.asarray(A)
    np.asarray(A)
    with pytest.raises((TypeError, ValueError, KeyError)):
        pl.config(no_such_option=1)


@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.matmul, operator.mul])
def test_arrays_on_the_left_of_every_dtype(op, rng):
    for dtype in ref.FLOATS + ["int8", "int64", "uint8"]:
        b, a = values(rng, (3, 3), dtype), values(rng, (3, 3), "float32")
        got, want = op(b, pl.Dense(a)), op(b, a) if op is not operator.mul else b @ a
        got = got if op in (operator.matmul, operator.mul) else got.toarray()
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "op", ["__iadd__", "__mod__", "__floordiv__", "__lshift__", "__and__", "__lt__"]
)
def test_what_operators_do_not_have(op):
    A = pl.Identity(3)
    with pytest.raises((TypeError, AttributeError)):
        out = getattr(A, op)(A)
        if out is NotImplemented:
            raise TypeError


def test_equality_is_identity():
    A, B = pl.Identity(3), pl.Identity(3)
    assert A == A and A != B and hash(A) == hash(A) and len({A, B}) == 2
    assert A in [B, A]


def test_astype_of_sparse_matrices_stays_sparse():
    sp = pytest.importorskip("scipy.sparse")
    twice = sp.csr_array((np.array([0.6, 0.6, 2.7]), [0, 0, 2], [0, 2, 3, 3]), shape=(3, 3))
    for made in ("csr", "csc", "coo"):
        S = pl.Sparse(twice if made == "csr" else twice.asformat(made))
        for dtype in ("float32", "complex64", "int8", "bool", "complex128"):
            for op, kind in ((S, pl.Sparse), (S.T, type(S.T)), (S.H, type(S.H))):
                got = op.astype(dtype)
                assert type(got) is kind and got.dtype == dtype
                np.testing.assert_array_equal(got.toarray(), op.toarray().astype(dtype))
    T = pl.SparseTriangular(sp.csr_array(np.tril(np.arange(1.0, 10).reshape(3, 3))))
    got = T.astype("float32")
    assert type(got) is pl.SparseTriangular and got.dtype == "float32"
    np.testing.assert_array_equal(got.toarray(), T.toarray().astype("float32"))
