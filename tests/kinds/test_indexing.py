"""op[...] against NumPy's a[...]: every kind, composites, batches; freshness, structure, errors."""

import copy
import pickle

import numpy as np
import pytest
import ref
import samples
from hypothesis import assume, given
from hypothesis import strategies as st
from test_properties import expressions

import pylinop as pl

sizes = st.integers(0, 6)


# -- keys --


@st.composite
def slices(draw, n):
    end = st.none() | st.integers(-n - 2, n + 2)
    return slice(draw(end), draw(end), draw(st.sampled_from([None, 1, 2, 3, -1, -2])))


@st.composite
def vectors(draw, n):
    """One axis by indices: a list, an array of some integer dtype, a mask."""
    how = draw(st.sampled_from(["list", "int64", "int8", "uint8", "mask", "masklist"]))
    if how.startswith("mask"):
        mask = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool)
        return mask.tolist() if how == "masklist" and n else mask
    low = 0 if how == "uint8" else -n
    index = draw(st.lists(st.integers(low, n - 1), max_size=5)) if n else []
    return index if how == "list" else np.array(index, how)


def axis(n, kinds):
    ways = {"slice": slices(n), "array": vectors(n)}
    if n:
        ways["int"] = st.integers(-n, n - 1) | st.integers(-n, n - 1).map(np.int64)
    return st.one_of(*[ways[k] for k in kinds if k in ways])


@st.composite
def keys(draw, shape):
    """A key NumPy takes for an array of this shape."""
    how = draw(st.sampled_from(["plain"] * 4 + ["array"] * 2 + ["mesh", "points", "mask", "grid"]))
    m, n = shape[-2:]
    if how == "mask":
        return np.array(
            draw(st.lists(st.booleans(), min_size=m * n, max_size=m * n)), bool
        ).reshape(m, n), "points"
    kinds = ("int", "slice", "array") if how == "array" else ("int", "slice")
    key = [draw(axis(d, kinds)) for d in shape]
    if how == "mesh":
        r, c = draw(vectors(m)), draw(vectors(n))
        key[-2:] = np.ix_(r, c)
    if how in ("points", "grid") and m and n:
        size = draw(st.sampled_from([(), (3,), (1,), (0,)])) if how == "points" else (2, 3)
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        key[-2:] = rng.integers(-m, m, size), rng.integers(-n, n, size[-1:])
    if how in ("plain", "array"):
        at = draw(st.integers(0, len(key)))
        drop = draw(st.integers(0, len(key) - at)) if draw(st.booleans()) else None
        if drop is not None:
            key = key[:at] + [Ellipsis] + key[at + drop :]
        elif draw(st.booleans()):
            key = key[:at] or [Ellipsis]
    return tuple(key) if len(key) != 1 or draw(st.booleans()) else key[0], how


def must_work(shape, key):
    """Whether ours may not refuse: no batch, and no index arrays of several dimensions."""
    key = key if isinstance(key, tuple) else (key,)
    arrays = [np.asarray(k) for k in key if isinstance(k, (list, np.ndarray))]
    return len(shape) == 2 and all(k.ndim <= 1 for k in arrays)


def compare(A, a, tol, key, how, dt):
    try:
        want, bound = a[key], np.broadcast_to(tol, a.shape)[key]
    except IndexError:  # index arrays that do not broadcast
        with pytest.raises((IndexError, NotImplementedError)):
            A[key]
        return
    try:
        got = A[key]
    except NotImplementedError:
        assert not must_work(A.shape, key)
        return
    if isinstance(got, pl.LinearOperator):
        assert got.shape == want.shape and got.dtype == dt
        ref.check(got.toarray(), want, dt, bound)
        check_as_operator(got, want, bound)
        B = pickle.loads(pickle.dumps(got))
        assert repr(B) == repr(got) and type(B) is type(got)
        np.testing.assert_array_equal(B.toarray(), got.toarray())
    else:
        ref.check(got, want, dt, bound)
        assert isinstance(got, np.ndarray) == (np.ndim(want) > 0)
    if len(A.shape) == 2 and how not in ("points", "grid"):
        assert isinstance(got, pl.LinearOperator) == (np.ndim(want) == 2)


def check_as_operator(B, b, tol):
    m, n = b.shape[-2:]
    rng = np.random.default_rng(0)
    x = samples.values(rng, (n, 2), "float64" if b.dtype.kind in "fc" else b.dtype)
    y = samples.values(rng, (m,), x.dtype)
    inexact = np.result_type(b.dtype, x.dtype).kind in "fc"
    more = 1e-13 * inexact

    def near(got, want, bound):
        ref.check(got, want, None, bound + more * (1 + np.abs(want)))

    near(B @ x, b @ x, tol @ np.abs(x))
    near(B @ x[:, 0], b @ x[:, 0], tol @ np.abs(x[:, 0]))
    near(y @ B, y @ b, np.abs(y) @ tol)
    near(
        B.H.matmat(y[:, None]),
        ref.adj(b) @ y[:, None],
        np.swapaxes(tol, -1, -2) @ np.abs(y)[:, None],
    )
    near(B.conj() @ x, b.conj() @ x, tol @ np.abs(x))
    near(B.T.toarray(), np.swapaxes(b, -1, -2), np.swapaxes(tol, -1, -2))
    for k in (0, 1, -1):
        near(B.diagonal(k), np.diagonal(b, k, -2, -1), np.diagonal(tol, k, -2, -1))
    if m and n:
        near(B[..., -1, 0], b[..., -1, 0], tol[..., -1, 0])


# -- kinds and composites --


@st.composite
def leaves(draw, dtypes, batches=((),)):
    m, n = draw(sizes), draw(sizes)
    kind, dtype = draw(st.sampled_from(ref.KINDS)), draw(st.sampled_from(dtypes))
    n = m if kind in ("Diag", "Identity") else n
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    d = samples.leaf(
        kind,
        rng,
        m,
        n,
        dtype,
        draw(st.sampled_from(batches)),
        draw(st.sampled_from(samples.LAYOUTS)),
    )
    assume(d is not None)
    return d


def run(data, d, dt=None):
    A, a = pl_of(d), ref.dense(d, dt)
    key, how = data.draw(keys(a.shape))
    tol = np.zeros(a.shape) if dt is not None else np.broadcast_to(ref.tolerance(d), a.shape)
    compare(A, a, tol, key, how, ref.dtype(d))


pl_of = ref.build


@given(st.data(), leaves(ref.FLOATS))
def test_kinds(data, d):
    run(data, d)


@given(st.data(), leaves(["int8", "int64", "uint8"]))
def test_kinds_of_integers(data, d):
    assume(ref.dtype(d).kind in "iu")
    run(data, d, ref.dtype(d))


@given(st.data(), leaves(["float64", "complex64"], ((2,), (3, 1), (2, 3))))
def test_batches(data, d):
    run(data, d)


@given(st.data(), st.integers(1, 6), st.integers(1, 6), st.sampled_from([(), (2,), (3, 1)]))
def test_composites(data, m, n, batch):
    n = data.draw(st.sampled_from([m, n]))
    d = data.draw(expressions(m, n, 3, ref.FLOATS, ((), batch)))
    run(data, d)


@given(st.data(), st.integers(1, 5), st.integers(1, 5))
def test_integer_composites(data, m, n):
    d = data.draw(expressions(m, n, 2, ["int8"]))
    assume(ref.dtype(d) == np.int8)
    run(data, d, np.dtype("int8"))


@given(st.data(), st.integers(1, 6), st.integers(1, 6))
def test_slices_of_slices(data, m, n):
    d = data.draw(expressions(m, n, 2, ["float64"]))
    A, a, tol = ref.build(d), ref.dense(d), ref.tolerance(d)
    for _ in range(3):
        entry = st.sampled_from(["slice", "array"]).flatmap
        r, c = (data.draw(entry(lambda k, s=s: axis(s, (k,)))) for s in a.shape)
        if isinstance(r, slice) or isinstance(c, slice):
            A, a, tol = A[r, c], a[r, c], tol[r, c]
    ref.check(A.toarray(), a, None, tol)
    check_as_operator(A, a, tol)
    assert A._by != "sliced" or A._operands[0]._by != "sliced"  # merged


# -- later writes --


def test_follows_its_leaves():
    d, c, a = np.arange(6.0), np.arange(1.0, 7), np.arange(36.0).reshape(6, 6)
    u = np.arange(6.0)[:, None]
    whole = pl.Diag(d) @ pl.Toeplitz(c) + pl.Dense(a) @ pl.LowRank(u)
    index = np.array([0, 5, 2])
    keys = [
        (slice(1, 4), slice(None, None, 2)),
        (slice(None, None, -1), slice(4, 1, -1)),
        (index.copy(), slice(2, 3)),
        np.ix_(index, [1, 1]),
    ]
    made = [(key, whole[key]) for key in keys]
    for i in range(3):
        for key, part in made:
            np.testing.assert_allclose(part.toarray(), whole.toarray()[key])
            np.testing.assert_allclose(part @ np.ones(part.shape[1]), whole.toarray()[key].sum(1))
        d[i] += 1
        c[i] -= 2
        a[i] *= 3
        u[i] += 4


def test_every_kind_follows():
    rng = np.random.default_rng(3)
    for op, array in [
        (lambda v: pl.Dense(v), rng.standard_normal((4, 4))),
        (lambda v: pl.Diag(v), rng.standard_normal(4)),
        (lambda v: pl.Toeplitz(v), rng.standard_normal(4)),
        (lambda v: pl.Kron(v, np.ones((2, 2))), rng.standard_normal((2, 2))),
        (lambda v: pl.LowRank(v), rng.standard_normal((4, 2))),
        (lambda v: pl.inv(pl.Dense(v)), rng.standard_normal((4, 4)) + 5 * np.eye(4)),
    ]:
        for key in [(slice(1, 3), slice(1, 3)), ([0, 3],), (slice(None), slice(None, None, -1))]:
            A = op(array)
            part = A[key]
            part.toarray()
            array *= 2
            np.testing.assert_allclose(part.toarray(), A.toarray()[key], atol=1e-12)


def test_the_index_is_copied():
    index = np.array([0, 1])
    A = pl.Toeplitz([1.0, 2.0, 3.0])
    part = A[index]
    index[:] = 2
    np.testing.assert_array_equal(part.toarray(), A.toarray()[[0, 1]])


def test_a_slice_of_dense_shares_memory():
    a = np.arange(12.0).reshape(3, 4)
    part = pl.Dense(a)[::2, 1:]
    assert np.shares_memory(part.a, a)
    b = np.zeros((2, 3, 3))
    assert np.shares_memory(pl.Dense(b)[1].a, b)


# -- structure stays --

c6, r5 = np.arange(1.0, 7), np.arange(5.0) + 10
KEPT = [
    (pl.Dense(np.ones((6, 5))), np.s_[1:3], "Dense"),
    (pl.Dense(np.ones((6, 5))), np.s_[[1, 3], ::2], "Dense"),
    (pl.Diag(c6), np.s_[1:4, 1:4], "Diag"),
    (pl.Diag(c6), np.s_[::-1, ::-1], "Diag"),
    (pl.Diag(c6), np.s_[1:4], "Sliced"),
    (pl.Diag(c6) @ pl.Diag(c6), np.s_[::2, ::2], "Diag"),
    (pl.Toeplitz(c6, r5), np.s_[1:4], "Toeplitz"),
    (pl.Toeplitz(c6, r5), np.s_[1:4, 2:], "Toeplitz"),
    (pl.Toeplitz(c6, r5), np.s_[::2, 1::2], "Toeplitz"),
    (pl.Toeplitz(c6, r5), np.s_[::-1, ::-1], "Toeplitz"),
    (pl.Toeplitz(c6, r5), np.s_[::2], "Sliced"),
    (pl.Identity(5), np.s_[1:4, 1:4], "Identity"),
    (pl.Identity(5), np.s_[[3, 1, 1]], "Selection"),
    (pl.Zeros((5, 4)), np.s_[1:4, ::2], "Zeros"),
    (pl.Selection([2, 0, 1, -1], 4), np.s_[::2], "Selection"),
    (pl.LowRank(np.ones((5, 2))), np.s_[1:, [0, 3]], "LowRank"),
    (pl.Kron(np.ones((3, 2)), np.ones((2, 2))), np.s_[2:], "Kron"),
    (pl.Kron(np.ones((3, 2)), np.ones((2, 2))), np.s_[:, 2:4], "Kron"),
    (pl.Kron(np.ones((3, 2)), np.ones((2, 2))), np.s_[1:3], "Sliced"),
    (pl.Diag(np.ones((3, 4))), np.s_[1], "Diag"),
    (pl.Toeplitz(np.ones((3, 4))), np.s_[1:], "Toeplitz"),
    (pl.Kron(np.ones((3, 2, 2)), np.ones((2, 2))), np.s_[[0, 2]], "Kron"),
    (pl.Diag(c6) + pl.Toeplitz(c6), np.s_[1:], "Sliced"),
    (pl.inv(pl.Toeplitz(c6)), np.s_[1:], "Sliced"),
]


@pytest.mark.parametrize(("A", "key", "kind"), KEPT)
def test_kinds_are_kept(A, key, kind):
    B = A[key]
    assert type(B).__name__ == kind
    if kind != "Sliced" or np.linalg.matrix_rank(A.toarray()).min() == A.shape[-1]:
        np.testing.assert_allclose(B.toarray(), A.toarray()[key], atol=1e-13)


def test_all_of_it_is_itself():
    A = pl.Toeplitz([1.0, 2.0])
    assert A[:] is A and A[...] is A and A[:, :] is A and A[::1, 0:2] is A


def test_args_and_copies():
    A = pl.Toeplitz(c6)
    B = A[::2]
    assert B.args[0] is A and repr(B) == "<3x6 Sliced with dtype=float64>"
    assert copy.copy(B) is B
    C = B.copy()
    np.testing.assert_array_equal(C.toarray(), B.toarray())
    assert type(C) is type(B) and C.args[0] is not A
    assert (B.T).shape == (6, 3) and B.T.T is B
    assert B[1:][:, 1:].args[0] is A  # a slice of a slice is one slice


def test_assumptions_stay_with_principal_parts():
    a = np.array([[4.0, 1, 0], [1, 5, 2], [0, 2, 6]])
    assert pl.Dense(a, "pos")[1:, 1:].assume_a == "pos"
    assert pl.Dense(a, "pos")[1:, 1:][:1, 1:].assume_a is None
    assert type(pl.Dense(a, "pos")[1:, :2]).__name__ == "Sliced"  # the upper triangle is read alone
    assert pl.Dense(np.eye(3), "orthogonal")[1:, 1:].assume_a is None


def steps_of(op, action="apply"):
    text = op.explain(action)
    return [line.split()[1] for line in text.splitlines() if line[:4].strip().isdigit()]


def test_products_stay_small():
    """Parts go down to the factors: nothing of the size of the whole is touched."""
    n = 400
    A = pl.Dense(np.ones((n, n))) @ pl.Dense(np.ones((n, n)))
    assert "gemm" in steps_of(A[:2, :3]) and float(flops(A[:2, :3])) <= 12 * n + 10
    K = pl.Kron(np.ones((20, 20)), np.ones((20, 20)))
    assert flops(K[7:8]) <= 3 * n
    S = pl.inv(pl.Toeplitz(np.r_[4.0, np.ones(n - 1) / n]))
    assert "swap" not in steps_of(S[:, :2], "dense")


def flops(op):
    total = next(line for line in op.explain().splitlines() if line.startswith("total"))
    return float(total.split()[1])


def test_one_row_of_a_large_product_is_cheap():
    n = 200_000
    A = pl.Toeplitz(np.r_[2.0, -1.0, np.zeros(n - 2)]) + pl.Diag(np.ones(n))
    row = A[5]
    assert row.shape == (n,) and row[4] == -1 and row[5] == 3
    assert A[5:7, 5:7].toarray().tolist() == [[3, -1], [-1, 3]]
    assert A[[5, 6, n - 1], [5, 5, 0]].tolist() == [3, -1, 0]


# -- callables, subclasses, foreign dtypes: the plain walk --


def test_matvec():
    a = np.arange(12.0).reshape(3, 4)
    seen = []

    def matvec(x):
        seen.append(x.shape)
        return a @ x

    A = pl.MatVec((3, 4), matvec, rmatvec=lambda y: a.T @ y, dtype=float)
    assert type(A[1:]).__name__ == "Sliced" and not seen
    for key in [
        np.s_[1:],
        np.s_[:, ::-2],
        np.s_[[2, 0], 1:3],
        np.ix_([0, 0], [1, 3]),
        np.s_[1],
        np.s_[:, -1],
        np.s_[1, [0, 2]],
        np.s_[2, 3],
        a > 4,
        np.s_[[0, 1], [2, 2]],
        np.s_[..., 1:, 2],
    ]:
        got = A[key]
        if isinstance(got, pl.LinearOperator):
            assert pl.aslinearoperator(got) is got
            np.testing.assert_array_equal(
                got @ np.ones(got.shape[1]), a[key] @ np.ones(got.shape[1])
            )
            np.testing.assert_array_equal(got.T @ np.ones(got.shape[0]), a[key].T.sum(1))
            np.testing.assert_array_equal((2 * got + got).toarray(), 3 * a[key])
            assert all(len(s) == 1 for s in seen)
            got = got.toarray()
        np.testing.assert_array_equal(got, a[key])


def test_matvec_without_adjoint_gives_rows():
    a = np.arange(6.0).reshape(2, 3)
    A = pl.MatVec((2, 3), lambda x: a @ x, dtype=float)
    np.testing.assert_array_equal(A[1], a[1])
    np.testing.assert_array_equal(A[1, ::2], a[1, ::2])
    with pytest.raises(NotImplementedError):
        A[1:].T @ np.ones(1)


def test_subclass_and_foreign_dtype():
    class Twice(pl.LinearOperator):
        def _matvec(self, x):
            return 2 * x

        def _rmatvec(self, x):
            return 2 * x

    A = Twice(float, (3, 3))
    np.testing.assert_array_equal(A[1:, ::-1].toarray(), (2 * np.eye(3))[1:, ::-1])
    np.testing.assert_array_equal(A[0], [2, 0, 0])
    h = np.arange(6, dtype=np.longdouble).reshape(2, 3)
    H = pl.Dense(h)
    assert H[1:].toarray().dtype == np.longdouble and H[0, 1] == 1
    np.testing.assert_array_equal(H[[1, 0]].toarray(), h[[1, 0]])
    np.testing.assert_array_equal(H[:, 1], h[:, 1])
    D = pl.Diag(np.arange(3, dtype=np.longdouble))
    np.testing.assert_array_equal(D[1:].toarray(), D.toarray()[1:])
    F = pl.Dense(h) @ pl.Dense(np.ones((3, 2)))
    np.testing.assert_array_equal(F[:, [1, 0, 0]].toarray(), h @ np.ones((3, 3)))


def test_batched_callable():
    a = np.arange(24.0).reshape(2, 3, 4)
    A = pl.MatVec((2, 3, 4), lambda x: (a @ x[..., None])[..., 0], dtype=float)
    for key in [np.s_[1], np.s_[:, 1:], np.s_[::-1, :, 2], np.s_[[1, 0, 1]], np.s_[1, 2, 3]]:
        got = A[key]
        got = got.toarray() if isinstance(got, pl.LinearOperator) else got
        np.testing.assert_array_equal(got, a[key])


# -- numbers --


def test_structure_does_not_smear_nan():
    a = np.ones((3, 3))
    a[:, 2] = np.nan
    a[2] = np.inf
    part = (pl.Dense(a) + pl.Diag(np.zeros(3)))[:2, :2]
    assert np.isfinite(part.toarray()).all() and np.isfinite(part @ np.ones(2)).all()


def test_repeated_columns_add_in_the_dtype_of_the_product():
    a = np.array([[0.5, 1.0]])
    A = pl.inv(pl.inv(pl.Dense(np.diag([0.5, 1.0]))))[:, [0, 0, 1]]
    np.testing.assert_array_equal(A @ np.array([True, True, False]), [1.0, 0])
    x = np.array([100, 100, 0], np.int8)
    np.testing.assert_array_equal(A @ x, [100.0, 0])
    np.testing.assert_array_equal(pl.Dense(a)[:, [0, 0, 1]] @ x, [100.0])


def test_sums_in_parameters_do_not_wrap():
    d = np.array([100, 100, 100], np.int8)
    D = (pl.Diag(d) + pl.Diag(d))[1:, 1:]
    assert type(D).__name__ == "Diag"
    np.testing.assert_array_equal(D @ np.ones(2), [200.0, 200.0])


# -- what NumPy refuses --

A34 = pl.Toeplitz(np.arange(3.0), np.arange(4.0))
BAD = [
    np.s_["a"], np.s_[1.0], np.s_[[1.0]], np.s_[0, 0, 0], np.s_[..., ...], np.s_[3], np.s_[-4],
    np.s_[0, 4], np.s_[[3]], np.s_[:, [-5]], np.s_[::0], np.s_[1.5:], np.s_[[True, False]],
    np.s_[np.zeros((3, 3), bool)], np.s_[[0, 1], [0, 1, 2]], np.s_[{}], np.s_[np.array([0.5])],
    np.s_[object()], np.s_[[0], [4]], np.s_[np.zeros((3, 4, 1), bool)], np.s_[["x"]],
]  # fmt: skip


@pytest.mark.parametrize("key", BAD, ids=range(len(BAD)))
def test_errors_are_numpys(key):
    with pytest.raises(Exception) as theirs:  # noqa: PT011
        A34.toarray()[key]
    with pytest.raises(theirs.type) as ours:
        A34[key]
    if theirs.type is IndexError and "equal dimension" not in str(theirs.value):
        assert str(ours.value).strip() == str(theirs.value).strip()


def test_indices_are_checked_again_on_each_call():
    S = pl.Sparse(__import__("scipy.sparse", fromlist=["x"]).eye_array(3, format="csr"))
    part = S[[0, 2]]
    key = part._operands[1]
    key[0][1][0] = 99
    with pytest.raises(IndexError, match="99"):
        part @ np.ones(3)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "i4", "f2"])
def test_elements_of_sums_are_read_where_they_lie(dtype):
    rng = np.random.default_rng(0)
    a, b, c = (np.asarray(rng.integers(-99, 99, (5, 7)) / 8).astype(dtype) for _ in range(3))
    b = np.asfortranarray(b)
    A = pl.Dense(a) + (pl.Dense(b) + pl.Dense(c[:, ::-1]))
    dense = a + (b + c[:, ::-1])
    for i, j in [(0, 0), (4, 6), (-1, -7), (np.int64(2), 3)]:
        got = A[i, j]
        assert type(got) is type(dense[i, j]) and got == dense[i, j]
        assert np.asarray((pl.lazy(a) + (pl.lazy(b) + pl.lazy(c[:, ::-1])))[i, j]) == dense[i, j]
    a[0, 0] += 1  # read at each call
    assert A[0, 0] == dense[0, 0] + 1
    for key in [(5, 0), (0, -8), (2**70, 0)]:
        with pytest.raises(IndexError):
            A[key]
    with pl.explaining() as told:
        A[1, 1]
    assert dtype == "f2" or told.steps


def test_elements_of_a_sum_whose_array_changed_shape_raise():
    a = np.ones((3, 4))
    A = pl.Dense(a) + pl.Dense(np.ones((3, 4)))
    assert A[2, 3] == 2
    a.shape = (4, 3)
    with pytest.raises(ValueError, match="shape"):
        A[2, 3]


def numbers(shape, dtype, seed=0):
    x = np.random.default_rng(seed).standard_normal((2, *shape)) @ np.eye(shape[-1])
    return (x[0] + 1j * x[1] if dtype in "FD" else x[0]).astype(dtype)


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
def test_elements_of_lazy_sums_are_read_where_they_lie(dtype):
    a, b = (numbers((5, 4), dtype, seed) for seed in range(2))
    x, y = pl.lazy(a), pl.lazy(np.asfortranarray(b))
    for i, j in [(0, 0), (4, 3), (-1, -4), (2, 1)]:
        got = np.asarray((x + y + x)[i, j])
        assert got.dtype == a.dtype and got.shape == () and not got.flags.writeable
        np.testing.assert_allclose(got, (a + b + a)[i, j], rtol=4 * np.finfo(got.dtype).eps)
    a[1, 2] = 7  # read at the evaluation, not before
    assert np.asarray((x + y)[1, 2]) == a[1, 2] + b[1, 2]
    with pytest.raises(IndexError, match="5"):
        (x + y)[5, 0]
    with pl.explaining() as seen:
        np.asarray((x + y)[1, 2])
    assert "element" in str(seen)


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_elements_and_lines_of_products_read_lines_in_place(dtype, order):
    a, b = (np.asarray(numbers((6, 6), dtype, seed), order=order) for seed in range(2))
    want = a.astype("D") @ b.astype("D")
    tol = 1e-5 if dtype in "fF" else 1e-13
    x, y = pl.lazy(a), pl.lazy(b)
    for e, w in [
        ((x @ y)[4, 2], want[4, 2]),
        ((x @ y)[:, 2], want[:, 2]),
        ((x @ y)[-1], want[-1]),
        ((x.T @ y)[1, 5], (a.astype("D").T @ b)[1, 5]),
    ]:
        np.testing.assert_allclose(np.asarray(e), w, rtol=tol, atol=tol)
    # Kernels that need C order take a copy of a column.
    k = pl.Kron(numbers((2, 2), dtype), numbers((3, 3), dtype))
    want = np.asarray(k.toarray(), "D") @ b
    np.testing.assert_allclose((k @ pl.Dense(b))[:, 3], want[:, 3], rtol=tol, atol=tol)
    np.testing.assert_allclose(np.asarray((k @ y)[:, 3]), want[:, 3], rtol=tol, atol=tol)
    np.testing.assert_allclose(
        (pl.Dense(b) @ k)[3], (b.astype("D") @ k.toarray())[3], rtol=tol, atol=tol
    )


@pytest.mark.parametrize("far", [1 << 62, -(1 << 62), 1 << 80])
def test_steps_beyond_the_matrix_are_multiplied(far):
    T = pl.Toeplitz(np.arange(7.0))
    for first, second in [(far, far), (far, 5), (-1, far)]:
        got = T[::first, 1::first][::second, ::second]
        np.testing.assert_array_equal(
            got.toarray(), T.toarray()[::first, 1::first][::second, ::second]
        )
