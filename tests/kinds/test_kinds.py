"""Every kind alone, against dense NumPy: products, forms, dtypes, batches, layouts, copies."""

import copy
import pickle

import bands
import numpy as np
import pytest
import ref
import scipy.sparse as sp
from samples import LAYOUTS, arrange, leaf, values

import pylinop as pl

DTYPES = ref.FLOATS + ref.INTS
ALL = [(k, t) for k in ref.KINDS for t in DTYPES]
each = pytest.mark.parametrize("kind,dtype", ALL)
each_float = pytest.mark.parametrize("kind,dtype", [(k, t) for k in ref.KINDS for t in ref.FLOATS])
each_kind = pytest.mark.parametrize("kind", ref.KINDS)
SHAPES = [(6, 6), (4, 6), (6, 4)]


def instances(kind, rng, dtype, shapes=SHAPES, **kw):
    found = [d for d in (leaf(kind, rng, m, n, dtype, **kw) for m, n in shapes) if d]
    assert found or kw.get("batch")
    return [(d, ref.build(d), ref.dense(d)) for d in found]


def close(got, d, want, x=None, side="left"):
    """A product of d with x (or, x None, its dense form) is `want` within the promised error."""
    tol = ref.tolerance(d) if x is None else None
    if x is not None:
        b, ax = ref.tolerance(d, x), np.abs(x).astype(float)
        tol = {"left": lambda: b @ ax, "right": lambda: ax @ b, "adjoint": lambda: ref.adj(b) @ ax}[
            side
        ]()
    ref.check(got, want, ref.dtype(d, *([] if x is None else [x])), tol)


def matvec(a, x):
    return (a @ x[..., None])[..., 0]


def wide(x, dt):
    return x.astype({"f": "f8", "c": "c16"}.get(dt.kind, dt))


@each
def test_products(kind, dtype, rng):
    for d, A, a in instances(kind, rng, dtype):
        m, n = a.shape
        assert A.shape == (m, n) and A.ndim == 2 and A.dtype == ref.dtype(d)
        for x in (values(rng, (n,), dtype), values(rng, (n, 3), dtype), values(rng, (n, 1), dtype)):
            dt = ref.dtype(d, x)
            want = ref.dense(d, dt) @ wide(x, dt)
            for got in (A @ x, A.dot(x), A(x), A * x, A.matvec(x) if x.ndim == 1 else A.matmat(x)):
                close(got, d, want, x)
        for y in (values(rng, (m,), dtype), values(rng, (3, m), dtype), values(rng, (1, m), dtype)):
            dt = ref.dtype(d, y)
            want = wide(y, dt) @ ref.dense(d, dt)
            for got in (y @ A, A.rdot(y), y * A):
                close(got, d, want, y, "right")
            yt = y.T
            want = ref.adj(ref.dense(d, dt)) @ wide(yt, dt)
            close(A.rmatvec(yt) if y.ndim == 1 else A.rmatmat(yt), d, want, yt, "adjoint")
        assert isinstance(A @ values(rng, (n,), dtype), np.ndarray)


@each_kind
def test_lists_and_scalars_are_arrays(kind, rng):
    for d, A, a in instances(kind, rng, "float64"):
        x = values(rng, (a.shape[1],), "float64")
        close(A @ x.tolist(), d, a @ x, x)
        close(A @ [[v] for v in x.tolist()], d, a @ x[:, None], x[:, None])


@each
def test_turned(kind, dtype, rng):
    for d, A, a in instances(kind, rng, dtype):
        m, n = a.shape
        for head, B in (
            ("T", A.T),
            ("T", A.transpose()),
            ("H", A.H),
            ("H", A.adjoint()),
            ("Conj", A.conj()),
        ):
            e = (head, d)
            b = ref.dense(e)
            assert B.shape == b.shape and B.dtype == ref.dtype(d)
            close(B.toarray(), e, b)
            for x in (values(rng, (b.shape[1],), dtype), values(rng, (b.shape[1], 2), dtype)):
                close(B @ x, e, ref.dense(e, ref.dtype(d, x)) @ x, x)
            y = values(rng, (b.shape[0],), dtype)
            close(y @ B, e, y @ ref.dense(e, ref.dtype(d, y)), y, "right")
            close(B.rmatvec(y), e, ref.adj(ref.dense(e, ref.dtype(d, y))) @ y, y, "adjoint")
        for B in (A.T.T, A.H.H, A.conj().conj(), A.T.H.conj(), A.H.T.conj()):
            close(B.toarray(), d, a)


@each_float
def test_real_and_imag(kind, dtype, rng):
    for d, A, a in instances(kind, rng, dtype):
        real = np.empty(0, ref.dtype(d)).real.dtype
        x = values(rng, (a.shape[1],), real)
        for B, b in ((A.real, a.real), (A.imag, a.imag)):
            assert B.shape == A.shape and B.dtype == real
            tol = 2 * ref.tolerance(d)
            ref.check(B.toarray(), b, real, tol)
            ref.check(B @ x, b @ x, real, tol @ np.abs(x))


@each
def test_dense_forms(kind, dtype, rng):
    for d, A, a in instances(kind, rng, dtype):
        close(A.toarray(), d, a)
        close(np.asarray(A), d, a)
        assert type(A.toarray()) is np.ndarray
        close(np.asarray(A.todense()), d, a)
        out = A.toarray()
        out[...] = 0  # what comes out is the caller's own
        close(A.toarray(), d, a)
        S = A.tosparse()
        assert S.format == "csr" and S.shape == A.shape and S.dtype == A.dtype
        close(S.toarray(), d, a)
        assert A.tosparse(format="coo").format == "coo"


@each
def test_diagonals_and_trace(kind, dtype, rng):
    for d, A, a in instances(kind, rng, dtype):
        tol = ref.tolerance(d)
        for k in range(-a.shape[0] - 1, a.shape[1] + 2):
            for got in (A.diagonal(k), pl.diagonal(A, offset=k)):
                ref.check(got, np.diagonal(a, k), A.dtype, np.diagonal(tol, k))
        ref.check(A.diagonal(), np.diagonal(a), A.dtype, np.diagonal(tol))
        for got in (A.trace(), pl.trace(A)):
            dt = np.trace(np.zeros((1, 1), A.dtype)).dtype  # NumPy sums small integers in int64
            ref.check(got, np.trace(a), dt, (1 + len(a)) * np.trace(tol))
            assert np.ndim(got) == 0 and isinstance(got, np.generic)


@each
def test_elements(kind, dtype, rng):
    for d, A, a in instances(kind, rng, dtype):
        m, n = a.shape
        tol = ref.tolerance(d)
        for i in range(-m, m):
            for j in range(-n, n):
                got = A[i, j]
                assert isinstance(got, np.generic)
                ref.check(got, a[i, j], A.dtype, tol[i, j])
        ref.check(A[np.int64(m - 1), np.uint8(n - 1)], a[m - 1, n - 1], A.dtype, tol[-1, -1])
        for bad in ((m, 0), (0, n), (-m - 1, 0), (0, -n - 1), (10**12, 0), (0, 10**30)):
            with pytest.raises(IndexError):
                A[bad]
        for bad in ((1.5, 0), ("a", 0)):
            with pytest.raises((TypeError, IndexError)):
                A[bad]


@each
def test_out(kind, dtype, rng):
    for d, A, a in instances(kind, rng, dtype):
        m, n = a.shape
        for x, y in (
            (values(rng, (n,), dtype), values(rng, (m,), dtype)),
            (values(rng, (n, 3), dtype), values(rng, (m, 3), dtype)),
        ):
            vec = x.ndim == 1
            calls = [
                (lambda o: np.matmul(A, x, out=o), A @ x),
                (lambda o: A.dot(x, out=o), A @ x),
                (lambda o: A.matvec(x, out=o) if vec else A.matmat(x, out=o), A @ x),
                (lambda o: A.rmatvec(y, out=o) if vec else A.rmatmat(y, out=o), A.H @ y),
            ]
            for call, want in calls:
                for layout in ("C", "F", "strided", "negative", "misaligned", "swapped"):
                    out = arrange(np.zeros(want.shape, want.dtype), layout)
                    out[...] = 7
                    got = call(out)
                    assert got is out
                    u = np.finfo(want.dtype if want.dtype.kind in "fc" else float).eps
                    ref.check(
                        np.array(out, want.dtype),
                        want,
                        want.dtype,
                        200 * u * (1 + np.abs(want).max()),
                    )


@each_kind
def test_out_that_does_not_fit(kind, rng):
    for d, A, a in instances(kind, rng, "float64"):
        m, n = a.shape
        x = values(rng, (n,), "float64")
        for out, error in (
            (np.zeros(m + 1), ValueError),
            (np.zeros((m, 1)), ValueError),
            (np.zeros(m, "int64"), TypeError),
            ([0.0] * m, TypeError),
        ):
            with pytest.raises(error):
                A.matvec(x, out=out)
        wide = np.zeros(m, complex)  # safe to cast into
        assert A.matvec(x, out=wide) is wide
        close(wide.real, d, a @ x, x)


@each
def test_text_and_bytes(kind, dtype, rng):
    for d, A, a in instances(kind, rng, dtype):
        m, n = a.shape
        assert repr(A) == f"<{m}x{n} {bands.CLASSES.get(kind, kind)} with dtype={A.dtype}>"
        html = A._repr_html_()
        assert (
            bands.CLASSES.get(kind, kind) in html
            and f"{m}" in html
            and f"{n}" in html
            and html.count("<") == html.count(">")
        )
        assert isinstance(A.nbytes, int) and A.nbytes >= 0
    d, A, a = instances("Dense", rng, "float32")[0]
    assert A.nbytes >= a.size * 4


@each
def test_pickle_and_copy(kind, dtype, rng):
    for d, A, a in instances(kind, rng, dtype):
        again = [pickle.loads(pickle.dumps(A, p)) for p in range(pickle.HIGHEST_PROTOCOL + 1)]
        for B in again + [copy.copy(A), copy.deepcopy(A), A.copy()]:
            assert type(B) is type(A) and B.shape == A.shape and B.dtype == A.dtype
            np.testing.assert_array_equal(B.toarray(), A.toarray())
            close(pickle.loads(pickle.dumps(B.T)).toarray(), ("T", d), a.T)
            close(copy.deepcopy(B.H).toarray(), ("H", d), a.conj().T)
        weak = [pickle.loads(pickle.dumps(A)), copy.copy(A), A.copy()]
        x = np.ones(a.shape[1], "float32")
        for B in weak:
            assert (B @ x).dtype == (A @ x).dtype  # adopting dtypes survive


@each_kind
def test_deep_copies_do_not_follow(kind, rng):
    for d, A, a in instances(kind, rng, "float64"):
        held = [p for p in d[1:] if isinstance(p, np.ndarray) and p.dtype.kind == "f"]
        held += [q for p in d[1:] if isinstance(p, tuple) for q in p if isinstance(q, np.ndarray)]
        held += [p.data for p in d[1:] if hasattr(p, "data") and hasattr(p, "format")]
        B, C = copy.deepcopy(A), A.copy() if kind != "MatVec" else copy.deepcopy(A)
        for h in held:
            h *= 2
        close(B.toarray(), d, a)
        close(C.toarray(), d, a)


@each
def test_astype(kind, dtype, rng):
    for d, A, a in instances(kind, rng, dtype):
        if A.dtype.kind in "iu" and not np.array_equal(a, ref.dense(d, np.dtype(float))):
            continue  # wraps: casting before or after differs
        for to in ("float32", "float64", "complex64", "complex128"):
            if np.dtype(dtype).kind == "c" and np.dtype(to).kind != "c":
                continue
            B = A.astype(to)
            assert B.shape == A.shape and B.dtype == to
            u = max(np.finfo(to).eps, np.finfo(A.dtype).eps if A.dtype.kind in "fc" else 0)
            tol = (ref.tolerance(d) + np.abs(a)) * u / np.finfo(float).eps
            ref.check(B.toarray(), a, np.dtype(to), tol + ref.tolerance(d))
            x = values(rng, (a.shape[1],), to)
            ref.check(B @ x, a @ x, np.dtype(to), (tol + ref.tolerance(d)) @ np.abs(x))
        assert A.astype(A.dtype).dtype == A.dtype


def test_astype_drops_no_imaginary_part_silently(rng):
    A = pl.Dense(values(rng, (3, 3), "complex128"))
    with pytest.warns(np.exceptions.ComplexWarning):
        A.astype("float64").toarray()


@each_float
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (1, 1), (1, 4), (4, 1)])
def test_sizes_0_and_1(kind, dtype, shape, rng):
    d = leaf(kind, rng, *shape, dtype)
    if d is None:
        assert shape[0] != shape[1] or kind in ("Circulant", *bands.KINDS) or 0 in shape
        return
    A, a = ref.build(d), ref.dense(d)
    m, n = a.shape
    assert A.shape == shape
    for x in (values(rng, (n,), dtype), values(rng, (n, 0), dtype), values(rng, (n, 1), dtype)):
        close(A @ x, d, a @ x, x)
    for y in (values(rng, (m,), dtype), values(rng, (0, m), dtype)):
        close(y @ A, d, y @ a, y, "right")
    close(A.toarray(), d, a)
    close(A.H.toarray(), ("H", d), a.conj().T)
    for k in range(-m, n + 1):
        ref.check(A.diagonal(k), np.diagonal(a, k), A.dtype, np.diagonal(ref.tolerance(d), k))
    ref.check(A.trace(), np.trace(a), A.dtype, 4 * np.trace(ref.tolerance(d)))
    assert repr(A).startswith(f"<{m}x{n} ")
    assert pickle.loads(pickle.dumps(A)).shape == shape
    assert A.nbytes >= 0


WEAK = ("Identity", "Zeros", "Selection", *bands.WEAK)


@pytest.mark.parametrize("kind", [k for k in ref.KINDS if k not in WEAK])
@pytest.mark.parametrize("dtype", DTYPES + ["int16", "int32", "uint16", "uint32", "uint64"])
def test_promotion_with_arrays(kind, dtype, rng):
    d = leaf(kind, rng, 4, 4, dtype)
    A = ref.build(d)
    for other in DTYPES + ["int16", "int32", "uint16", "uint32", "uint64"]:
        x = values(rng, (4,), other)
        dt = np.result_type(np.dtype(dtype), np.dtype(other))
        assert (A @ x).dtype == dt and (x @ A).dtype == dt and (A @ x[:, None]).dtype == dt, other
        if dt.kind in "biu":
            want = ref.dense(d, dt) @ x.astype(dt)
            np.testing.assert_array_equal(A @ x, want)


@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.parametrize("right", DTYPES)
def test_promotion_of_operators(left, right, rng):
    a, b = values(rng, (3, 3), left), values(rng, (3, 3), right)
    dt = np.result_type(a.dtype, b.dtype)
    A, B = pl.Dense(a), pl.Dense(b)
    for C in (A + B, A @ B, pl.Kron(A, B), pl.Diag(a[0]) @ pl.Diag(b[0]), pl.Diag(a[0]) + B):
        assert C.dtype == dt and C.toarray().dtype == dt and C.diagonal().dtype == dt


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "scalar", [2, 0.5, 1j, np.float32(0.5), np.float64(2), np.int8(2), np.complex64(1j)]
)
def test_promotion_with_scalars(dtype, scalar, rng):
    a = values(rng, (3, 3), dtype)
    want = scalar * a
    for A in (scalar * pl.Dense(a), pl.Dense(a) * scalar):
        assert A.dtype == want.dtype
        ref.check(A.toarray(), want, want.dtype, 1e-6 * np.abs(want))
    D = scalar * pl.Diag(a[0])
    assert D.dtype == want.dtype and D.diagonal().dtype == want.dtype


@pytest.mark.parametrize("kind", WEAK)
@pytest.mark.parametrize("dtype", DTYPES)
def test_weak_kinds_adopt(kind, dtype, rng):
    A = {
        "Identity": lambda: pl.Identity(3),
        "Zeros": lambda: pl.Zeros((3, 3)),
        "Selection": lambda: pl.Selection([2, 0, -2], 3),
        "Permutation": lambda: pl.Permutation([2, 0, -2]),
        "FiniteDifference": lambda: pl.FiniteDifference(3, boundary="zero"),
        "Laplacian": lambda: pl.Laplacian(3, dtype=None),
    }[kind]()
    a = A.toarray()
    assert A.dtype == a.dtype == np.float64
    b = values(rng, (3, 3), dtype)
    # -1 is no bool, so what has it adopts as a Python integer does
    want = np.result_type(b.dtype, 1) if kind in ("FiniteDifference", "Laplacian") else b.dtype
    assert (A @ b).dtype == want and (b @ A).dtype == want and (A @ b[0]).dtype == want
    np.testing.assert_array_equal(A @ b, a.astype(want) @ b)
    B = pl.Dense(b)
    for C in (A @ B, B @ A, A + B, B + A, pl.Kron(A, B), A.T @ B, A.H + B):
        assert C.dtype == want and C.toarray().dtype == want
    assert ((2 * A) @ b).dtype == (2 * b).dtype
    assert ((0.5 * A) @ b).dtype == (0.5 * b).dtype
    assert ((1j * A) @ b).dtype == (1j * b).dtype
    assert (A.astype("float32") @ b).dtype == np.result_type(np.float32, b.dtype)
    strong = {
        "Identity": lambda: pl.Identity(3, "complex64"),
        "Zeros": lambda: pl.Zeros((3, 3), "complex64"),
        "Selection": lambda: pl.Selection([2, 0, -2], 3, "complex64"),
        "Permutation": lambda: pl.Permutation([2, 0, -2], "complex64"),
        "FiniteDifference": lambda: pl.FiniteDifference(3, boundary="zero", dtype="complex64"),
        "Laplacian": lambda: pl.Laplacian(3, dtype="complex64"),
    }[kind]()
    assert strong.dtype == np.complex64 and (strong @ b).dtype == np.result_type(
        np.complex64, b.dtype
    )


@each_kind
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int64", "uint64"])
def test_integers_wrap_as_numpys(kind, dtype, rng):
    def big(*shape):
        return values(rng, shape, dtype, wide=True)

    d = {
        "Dense": lambda: ("Dense", big(5, 5)),
        "MatVec": lambda: ("MatVec", big(5, 5), True),
        "Diag": lambda: ("Diag", big(5)),
        "Toeplitz": lambda: ("Toeplitz", big(5), big(5)),
        "Kron": lambda: ("Kron", ("Dense", big(2, 2)), ("Dense", big(3, 3))),
        "LowRank": lambda: ("LowRank", big(5, 2), big(5, 2), big(2, 2)),
        "Sparse": lambda: ("Sparse", sp.csr_array(big(5, 5))),
    }.get(kind, lambda: leaf(kind, rng, 5, 5, dtype))()
    A, a = ref.build(d), ref.dense(d, np.dtype(dtype))
    x = big(a.shape[1], 2)
    np.testing.assert_array_equal(A @ x, a @ x)
    np.testing.assert_array_equal(x.T @ A, x.T @ a)
    if A.dtype == dtype:
        np.testing.assert_array_equal(A.toarray(), a)
        np.testing.assert_array_equal((A @ A).toarray(), a @ a)
        np.testing.assert_array_equal((A + A).toarray(), a + a)
        np.testing.assert_array_equal((A - 2 * A).toarray(), a - 2 * a)
        np.testing.assert_array_equal((-A).toarray(), -a)
        np.testing.assert_array_equal((A**3) @ x, a @ (a @ (a @ x)))


def test_integers_beyond_doubles():
    n = 2**53
    T = pl.Toeplitz(np.array([n + 1, 1, 3]), np.array([0, 2**40 + 1, 5]))
    t = np.array([[n + 1, 2**40 + 1, 5], [1, n + 1, 2**40 + 1], [3, 1, n + 1]])
    x = np.array([1, 3, -7])
    np.testing.assert_array_equal(T @ x, t @ x)
    c = np.arange(300, dtype="int64") * 2**40 + 1  # long enough for the FFT, were it allowed
    full = np.array([[c[abs(i - j)] for j in range(300)] for i in range(300)])
    np.testing.assert_array_equal(pl.Toeplitz(c) @ np.arange(300), full @ np.arange(300))


def test_booleans_are_logical(rng):
    a, b, x = (values(rng, s, "bool") for s in ((4, 4), (4, 4), (4,)))
    for got, want in (
        (pl.Dense(a) @ x, a @ x),
        ((pl.Dense(a) + pl.Dense(b)) @ x, (a + b) @ x),
        ((pl.Dense(a) @ pl.Dense(b)).toarray(), a @ b),
        (pl.Diag(a[0]) @ x, a[0] & x),
        ((pl.Diag(a[0]) + pl.Diag(b[0])).diagonal(), a[0] | b[0]),
        (pl.Toeplitz(a[0]).toarray() @ x, pl.Toeplitz(a[0]) @ x),
    ):
        assert got.dtype == bool
        np.testing.assert_array_equal(got, want)


@pytest.mark.sweep(4)
@each_kind
@pytest.mark.parametrize("dtype", ["float64", "complex64", "int64"])
@pytest.mark.parametrize("batch", [(), (3,), (2, 1), (0,), (1, 3)])
def test_batches(kind, dtype, batch, rng):
    for d, A, a in instances(kind, rng, dtype, [(4, 4), (2, 4), (4, 3)], batch=batch):
        *lead, m, n = a.shape
        assert A.shape == a.shape and A.ndim == a.ndim
        tol = ref.tolerance(d)
        ref.check(A.toarray(), a, A.dtype, tol)
        ref.check(A.T.toarray(), np.swapaxes(a, -1, -2), A.dtype, np.swapaxes(tol, -1, -2))
        ref.check(A.H.toarray(), ref.adj(a), A.dtype, np.swapaxes(tol, -1, -2))
        for k in (0, 1, -2):
            ref.check(
                A.diagonal(k), np.diagonal(a, k, -2, -1), A.dtype, np.diagonal(tol, k, -2, -1)
            )
        ref.check(
            A.trace(), np.trace(a, axis1=-2, axis2=-1), None, 9 * np.trace(tol, axis1=-2, axis2=-1)
        )
        ref.check(A[1, -1] if not lead else A[..., 1, -1], a[..., 1, -1], A.dtype, tol[..., 1, -1])
        for xb in ((), (3,), (2, 1), (4, 1, 1), (0,)):
            try:
                np.broadcast_shapes(tuple(lead), xb)
            except ValueError:
                with pytest.raises(ValueError):
                    A @ np.zeros(xb + (n, 2))
                continue
            X, Y = values(rng, xb + (n, 2), dtype), values(rng, xb + (2, m), dtype)
            close(A @ X, d, ref.dense(d, ref.dtype(d, X)) @ X, X)
            close(A.matmat(X), d, ref.dense(d, ref.dtype(d, X)) @ X, X)
            close(Y @ A, d, Y @ ref.dense(d, ref.dtype(d, Y)), Y, "right")
            v, w = X[..., 0], np.swapaxes(Y, -1, -2)[..., 0]
            if not (v.ndim == 2 and v.shape[1] == 1):
                ref.check(A.matvec(v), matvec(a, v), None, matvec(ref.tolerance(d, v), np.abs(v)))
            if not (w.ndim == 2 and w.shape[1] == 1):
                ref.check(
                    A.rmatvec(w),
                    matvec(ref.adj(a), w),
                    None,
                    matvec(ref.adj(ref.tolerance(d, w)), np.abs(w)),
                )
        x = values(rng, (n,), dtype)
        ref.check(A @ x, a @ x, None, ref.tolerance(d, x) @ np.abs(x))
        B = pickle.loads(pickle.dumps(A))
        np.testing.assert_array_equal(B.toarray(), A.toarray())
        assert repr(A).startswith(
            "<" + "x".join(map(str, a.shape)) + " " + bands.CLASSES.get(kind, kind)
        )


@pytest.mark.sweep(4)
@each_kind
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int64"])
def test_layouts(kind, layout, dtype, rng):
    for d, A, a in instances(kind, rng, dtype, layout=layout):
        m, n = a.shape
        close(A.toarray(), d, a)
        ref.check(A.diagonal(), np.diagonal(a), A.dtype, np.diagonal(ref.tolerance(d)))
        for other in LAYOUTS:
            x, X, Y = (arrange(values(rng, s, dtype), other) for s in ((n,), (n, 3), (2, m)))
            dt = ref.dtype(d, x)
            close(A @ x, d, ref.dense(d, dt) @ x, x.astype(x.dtype.newbyteorder("=")))
            close(A @ X, d, ref.dense(d, dt) @ X, X.astype(X.dtype.newbyteorder("=")))
            close(Y @ A, d, Y @ ref.dense(d, dt), Y.astype(Y.dtype.newbyteorder("=")), "right")
            close(
                A.rmatmat(Y.T),
                d,
                ref.adj(ref.dense(d, dt)) @ Y.T,
                Y.T.astype(Y.dtype.newbyteorder("=")),
                "adjoint",
            )


def test_zero_strides(rng):
    row = np.broadcast_to(values(rng, (5,), "float64"), (4, 5))
    x = np.broadcast_to(np.float64(1.5), (5,))
    np.testing.assert_allclose(pl.Dense(row) @ x, row @ x, rtol=1e-14)
    np.testing.assert_allclose(pl.Diag(x) @ x, x * x)
    np.testing.assert_allclose(pl.Toeplitz(x) @ x, np.full(5, 5 * 2.25), rtol=1e-14)


@pytest.mark.parametrize("dtype", ref.FLOATS)
@pytest.mark.parametrize(
    "m,n", [(1, 1000), (1000, 1), (257, 300), (1024, 1024), (1531, 1021), (4099, 700)]
)
def test_long_toeplitz_is_accurate_normwise(dtype, m, n, rng):
    c, r = values(rng, (m,), dtype), values(rng, (n,), dtype)
    s = np.linalg.norm(np.concatenate([c, r[1:]]).astype(complex))
    x, y = values(rng, (n,), dtype), values(rng, (m, 2), dtype)
    wide = "c16" if np.dtype(dtype).kind == "c" else "f8"
    symbol = np.concatenate([r[:0:-1], c]).astype(wide)
    t = symbol[np.arange(m)[:, None] - np.arange(n) + n - 1]
    T = pl.Toeplitz(c, r)
    u = np.finfo(dtype).eps * 8 * np.log2(m + n + 2)
    ref.check(T @ x, t @ x, np.dtype(dtype), u * s * np.linalg.norm(x))
    ref.check(T.rmatmat(y), t.conj().T @ y, np.dtype(dtype), u * s * np.linalg.norm(y, axis=0))
    ref.check(T.T @ y, t.T @ y, np.dtype(dtype), u * s * np.linalg.norm(y, axis=0))
    with pl.config(fft=False):
        ref.check(
            T @ x,
            t @ x,
            np.dtype(dtype),
            4 * (n + 4) * np.finfo(dtype).eps * (np.abs(t) @ np.abs(x)),
        )


@pytest.mark.parametrize("dtype", ref.FLOATS)
def test_larger_sizes(dtype, rng):
    """Sizes at which BLAS, blocking and the release of the GIL take over."""
    for kind in ref.KINDS:
        m = n = 150 if kind not in ("Diag", "Identity") else 20000
        if kind in ("Diag", "Identity"):
            d = (
                ("Diag", values(rng, (n,), dtype))
                if kind == "Diag"
                else ("Identity", n, np.dtype(dtype))
            )
            x = values(rng, (n, 2), dtype)
            want = d[1][:, None] * x if kind == "Diag" else x
            ref.check(
                ref.build(d) @ x, want, np.dtype(dtype), 4 * np.finfo(dtype).eps * np.abs(want)
            )
            continue
        d = leaf(kind, rng, m, n, dtype)
        A, a = ref.build(d), ref.dense(d)
        for x in (values(rng, (n,), dtype), values(rng, (n, 40), dtype)):
            close(A @ x, d, a @ x, x)
            close(A.H @ x, ("H", d), ref.adj(a) @ x, x)
            close(x.T @ A, d, x.T @ a, x.T, "right")
