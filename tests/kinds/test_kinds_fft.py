"""Kinds of convolution and transform type against SciPy and NumPy."""

import pickle

import numpy as np
import pytest
import ref
import scipy.fft
import scipy.linalg
import scipy.signal
from samples import leaf, values

import pylinop as pl

FLOATS = ["float32", "float64", "complex64", "complex128"]
INTS = ["int8", "uint8", "int64", "bool"]


def near(got, want, *sizes, factor=30):
    """Within factor u of the product of norms; integers are equal."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype, (got.dtype, want.dtype)
    if want.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want)
        return
    scale = np.prod([np.linalg.norm(np.ravel(s)) for s in sizes]) if sizes else 1
    u = max(np.finfo(s.dtype).eps for s in (got, *sizes) if s.dtype.kind in "fc")
    assert np.all(np.abs(got - want) <= factor * u * scale), np.max(np.abs(got - want)) / scale / u


def four(A, a):
    return [(A, a), (A.T, a.T), (A.H, a.conj().T), (A.conj(), a.conj())]


def checked(A, a, rng, c, dtypes):
    """Products in four modes from both sides with the arrays `c` behind them."""
    np.testing.assert_array_equal(A.toarray(), a)
    for B, b in four(A, a):
        assert B.shape == b.shape
        for dt in dtypes:
            x, y = values(rng, (b.shape[1], 2), dt), values(rng, (b.shape[0],), dt)
            w = b @ x
            near(B @ x, w, c, x)
            near(y @ B, y @ b, c, y)
            near(B @ x[:, 0], w[:, 0], c, x)
    for k in (0, 1, -2, a.shape[1], 7 - a.shape[0]):
        np.testing.assert_array_equal(A.diagonal(k), np.diagonal(a, k))
    for i, j in [(0, 0), (-1, 0), (0, -1), (a.shape[0] // 2, a.shape[1] // 3)] if a.size else []:
        assert A[i, j] == a[i, j]


# -- Circulant


@pytest.mark.parametrize("dtype", FLOATS + INTS)
@pytest.mark.parametrize("n", [1, 2, 7, 64, 210, 251])
def test_circulant(n, dtype, rng):
    c = values(rng, (n,), dtype)
    checked(pl.Circulant(c), scipy.linalg.circulant(c), rng, c, {dtype, "complex128"})


def bccb(c, levels):
    n = c.shape[-levels:]
    eye = np.eye(int(np.prod(n))).reshape(-1, *n)
    axes = tuple(range(-levels, 0))
    out = np.fft.ifftn(np.fft.fftn(eye, axes=axes) * np.fft.fftn(c), axes=axes)
    out = out.reshape(len(eye), -1).T
    return out if np.iscomplexobj(c) else out.real


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [(1, 1), (3, 4), (16, 17), (2, 3, 5), (5, 6, 7)])
def test_circulant_of_levels(n, dtype, rng):
    c = values(rng, n, dtype)
    C, a = pl.Circulant(c, levels=len(n)), bccb(c.astype("complex128"), len(n))
    a = (a if c.dtype.kind == "c" else a.real).astype(dtype)
    near(C.toarray(), a, c)
    for B, b in four(C, a):
        x = values(rng, (b.shape[1], 2), dtype)
        near(B @ x, b @ x, c, x)
    F = pl.Circulant(np.asfortranarray(c), len(n))
    np.testing.assert_array_equal(F.toarray(), C.toarray())
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(F)).toarray(), C.toarray())


def test_circulant_products_close(rng):
    a, b, x = (values(rng, (300,), "float64") for _ in range(3))
    A, B = pl.Circulant(a), pl.Circulant(b)
    da, db = scipy.linalg.circulant(a), scipy.linalg.circulant(b)
    for C, d in [
        (A @ B, da @ db),
        (A + B, da + db),
        (A.T @ B, da.T @ db),
        (2 * A - B.T, 2 * da - db.T),
        ((A @ B).T @ A, (da @ db).T @ da),
    ]:
        assert type(C) is pl.Circulant
        np.testing.assert_allclose(C.toarray(), d, atol=1e-9)
        np.testing.assert_allclose(C @ x, d @ x, atol=1e-8)
    assert type(pl.Circulant(a.reshape(30, 10), 2) @ A) is pl.Product
    i8, wide = np.full(5, 100, "int8"), np.ones(5)
    S = pl.Circulant(i8) @ pl.Circulant(i8)  # wraps in int8, not under a float
    np.testing.assert_array_equal(S @ wide, np.full(5, 250000.0))
    np.testing.assert_array_equal(S.toarray(), np.full((5, 5), 50000).astype("int8"))


@pytest.mark.sweep(4)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("cond", [1, 1e4, 1e10])
@pytest.mark.parametrize("n", [(1,), (7,), (64,), (251,), (8, 9)])
def test_circulant_solves_are_backward_stable(n, cond, dtype, rng):
    cond = min(cond, 0.01 / np.finfo(dtype).eps)
    s = np.fft.fftn(values(rng, n, "float64"))
    s *= np.abs(np.fft.fftfreq(n[0])).reshape([-1] + [1] * (len(n) - 1)) ** 2 + 1 / cond
    c = np.fft.ifftn(s)
    c = (c if dtype.startswith("c") else c.real).astype(dtype)
    C, a = pl.Circulant(c, len(n)), bccb(c.astype("complex128"), len(n))
    norm = np.linalg.norm(a, 2)  # of all four
    for A, d in four(C, a):
        b = values(rng, (c.size, 2), dtype)
        x = pl.inv(A) @ b
        assert x.dtype == dtype
        r = np.linalg.norm(b - d @ x) / (norm * np.linalg.norm(x) + np.linalg.norm(b))
        assert r <= 10 * max(c.size, 4) * np.finfo(dtype).eps
    assert np.allclose((pl.inv(C @ C) @ (C @ (C @ b))), b, atol=1e-2) or cond > 1e2


def test_circulant_singular():
    for c in ([1.0, -1.0, 0, 0], [0.0, 0.0]):
        with pytest.raises(np.linalg.LinAlgError, match="eigenvalue"):
            pl.inv(pl.Circulant(c)) @ np.ones(len(c))
    assert (pl.inv(pl.Circulant(np.zeros(0))) @ np.zeros((0, 2))).shape == (0, 2)


def test_circulant_follows_its_column(rng):
    c, x = values(rng, (400,), "float64"), values(rng, (400,), "float64")
    C, I, T = pl.Circulant(c), pl.inv(pl.Circulant(c)), pl.Circulant(c).T
    for _ in range(2):
        np.testing.assert_array_equal(C @ x, pl.Circulant(c.copy()) @ x)
        np.testing.assert_array_equal(T @ x, pl.Circulant(c.copy()).T @ x)
        np.testing.assert_array_equal(I @ x, pl.inv(pl.Circulant(c.copy())) @ x)
        c[:] = rng.standard_normal(400)


def test_circulant_batches(rng):
    c, x = values(rng, (3, 1, 200), "float64"), values(rng, (2, 200, 2), "float64")
    C = pl.Circulant(c)
    a = np.stack([scipy.linalg.circulant(v) for v in c[:, 0]])[:, None]
    assert C.shape == (3, 1, 200, 200)
    np.testing.assert_allclose(C @ x, a @ x, atol=1e-10)
    np.testing.assert_allclose(pl.inv(C) @ x, np.linalg.solve(a, x), atol=1e-8)
    b = values(rng, (2, 4, 5), "float64")
    L = pl.Circulant(b, levels=2)
    np.testing.assert_allclose(L @ x[0, :20], np.stack([bccb(v, 2) for v in b]) @ x[0, :20])


@pytest.mark.parametrize(
    "make",
    [
        pl.Circulant,
        pl.Hankel,
        lambda c: pl.Convolution(c, 300),
        lambda c: pl.Convolution(c, 300, "circular"),
        lambda c: pl.MultilevelToeplitz(c, (1,)),
    ],
)
def test_without_fft_the_bound_is_componentwise(make, rng):
    c = np.concatenate([[1e12], 1e-6 * values(rng, (299,), "float64")])
    x = np.zeros(make(c).shape[1])
    x[-1] = 1
    with pl.config(fft=False):
        np.testing.assert_allclose(make(c) @ x, make(c).toarray() @ x, rtol=1e-14)


def test_circulant_bad_arguments():
    for bad in (lambda: pl.Circulant(1.0), lambda: pl.Circulant(np.ones(3), levels=2)):
        with pytest.raises(ValueError):
            bad()
    for levels in (0, -1, 6):
        with pytest.raises(ValueError):
            pl.Circulant(np.ones((2, 2)), levels=levels)
    with pytest.raises(TypeError):
        pl.Circulant(np.ones(3), levels=1.5)


# -- Hankel


@pytest.mark.parametrize("dtype", FLOATS + INTS)
@pytest.mark.parametrize("m,n", [(1, 1), (1, 5), (5, 1), (6, 6), (40, 90), (300, 170), (251, 251)])
def test_hankel(m, n, dtype, rng):
    c, r = values(rng, (m,), dtype), values(rng, (n,), dtype)
    checked(
        pl.Hankel(c, r), scipy.linalg.hankel(c, r), rng, np.concatenate([c, r]), {dtype, "float64"}
    )
    square = pl.Hankel(c)
    np.testing.assert_array_equal(square.toarray(), scipy.linalg.hankel(c))
    x = values(rng, (m,), dtype)
    near(square @ x, scipy.linalg.hankel(c) @ x, c, x)
    S = 2 * (pl.Hankel(c, r) + pl.Hankel(c, r))
    assert type(S) is pl.Hankel
    if dtype not in ("bool", "uint8", "int8"):
        np.testing.assert_array_equal(S.toarray(), 4 * scipy.linalg.hankel(c, r))


def test_hankel_batches_and_follows(rng):
    c, r = values(rng, (3, 1, 100), "float64"), values(rng, (2, 150), "float64")
    H, x = pl.Hankel(c, r), values(rng, (150, 2), "float64")
    for _ in range(2):
        a = np.stack([[scipy.linalg.hankel(u, v) for v in r] for u in c[:, 0]])
        np.testing.assert_allclose(H @ x, a @ x, atol=1e-11)
        c[:], r[:] = c[::-1].copy(), 2 * r


# -- MultilevelToeplitz


def bttb(t, n):
    """By SciPy's convolution: the valid part of t * x."""
    eye = np.eye(int(np.prod(n)), dtype=t.dtype).reshape(-1, *n)
    return np.stack([scipy.signal.convolve(t, e, "valid", "direct").ravel() for e in eye], 1)


@pytest.mark.parametrize("dtype", FLOATS + ["int64", "int8"])
@pytest.mark.parametrize(
    "m,n",
    [
        ((5,), (3,)),
        ((3, 4), (5, 2)),
        ((20, 18), (18, 20)),
        ((2, 3, 4), (4, 3, 2)),
        ((1, 7), (7, 1)),
    ],
)
def test_multilevel_toeplitz(m, n, dtype, rng):
    t = values(rng, tuple(a + b - 1 for a, b in zip(m, n)), dtype)
    a = bttb(t, n)
    checked(pl.MultilevelToeplitz(t, n), a, rng, t, {dtype, "complex128"})
    T = pl.MultilevelToeplitz(t, n) + 3 * pl.MultilevelToeplitz(t, n)
    assert type(T) is pl.MultilevelToeplitz
    np.testing.assert_allclose(T.toarray(), 4 * a, rtol=1e-5)


def test_multilevel_toeplitz_one_level_is_toeplitz(rng):
    c, r, x = (values(rng, (300,), "float64") for _ in range(3))
    t = np.concatenate([r[:0:-1], c])
    a = pl.Toeplitz(c, r)
    np.testing.assert_array_equal(pl.MultilevelToeplitz(t).toarray(), a.toarray())
    near(pl.MultilevelToeplitz(t) @ x, a @ x, t, x)


def test_multilevel_toeplitz_bad_arguments():
    for args in [(np.ones((3, 4)),), (np.ones((3, 3)), (5, 1)), (1.0,), (np.ones(3), (1, 1))]:
        with pytest.raises(ValueError):
            pl.MultilevelToeplitz(*args)


# -- Convolution


@pytest.mark.parametrize("dtype", FLOATS + INTS)
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(
    "k,n",
    [(1, 1), (3, 10), (10, 3), (4, 4), (300, 1000), (1000, 300)]
    + [((2, 3), (5, 4)), ((5, 4), (2, 3)), ((20, 30), (40, 50)), ((2, 3, 2), (4, 5, 6))],
)
def test_convolution(k, n, mode, dtype, rng):
    kernel, x = values(rng, k, dtype), values(rng, n, dtype)
    how = "direct" if dtype in INTS else "auto"
    if dtype == "bool":
        want = scipy.signal.convolve(x.astype(int), kernel.astype(int), mode, how) != 0
    else:
        want = scipy.signal.convolve(x, kernel, mode, how).astype(dtype)
    if mode == "same" and np.any(np.greater(k, n)):  # SciPy's is of the larger one's size there
        want = want.reshape(np.maximum(k, n) if np.size(want) > x.size else x.shape)
    K = pl.Convolution(kernel, n, mode)
    assert K.shape == (want.size, x.size)
    near(K @ x.ravel(), want.ravel(), kernel, x)
    y = values(rng, (want.size,), dtype)
    if K.shape[0] * K.shape[1] < 10**5:
        near(K.T @ y, K.toarray().T @ y, kernel, y)
        near(K.H @ y, K.toarray().conj().T @ y, kernel, y)


@pytest.mark.parametrize("dtype", FLOATS + ["int8"])
@pytest.mark.parametrize(
    "k,n", [(3, 7), (7, 3), (1, 1), (200, 200), (450, 200), ((3, 2), (5, 1)), ((9, 4), (4, 9))]
)
def test_circular_convolution(k, n, dtype, rng):
    kernel, x = values(rng, k, dtype), values(rng, n, dtype)
    wrapped = np.zeros(n, dtype)
    for at in np.ndindex(*kernel.shape):
        wrapped[tuple(np.mod(at, x.shape))] += kernel[at]
    C = pl.Circulant(wrapped, levels=x.ndim).toarray()
    K = pl.Convolution(kernel, n, "circular")
    near(K.toarray(), C, kernel)
    near(K @ x.ravel(), C @ x.ravel(), kernel, x)
    near(K.T @ x.ravel(), C.T @ x.ravel(), kernel, x)


def test_convolution_small_things(rng):
    with pytest.raises(ValueError, match="full same valid circular"):
        pl.Convolution(np.ones(3), 4, "wrap")
    for args in [(np.ones(0), 4), (np.ones(3), -1), (np.ones((2, 4)), (4, 2), "valid")]:
        with pytest.raises(ValueError):
            pl.Convolution(*args)
    assert pl.Convolution(np.ones(3), 0).shape == (0, 0)
    K = pl.Convolution(values(rng, (3, 2, 5), "float64"), 8)
    assert K.shape == (3, 2, 12, 8) and pickle.loads(pickle.dumps(K)).shape == K.shape
    x = rng.standard_normal(8)
    np.testing.assert_allclose((K @ x)[1, 1], np.convolve(K.kernel[1, 1], x))
    assert type(K + K) is type(2 * K) is pl.Convolution


# -- DFT, DCT, Hadamard

NORMS = ["backward", "ortho", "forward"]
SIZES = [1, 2, 3, 8, 17, 64, 97, 210, 1009, (1, 1), (3, 4), (16, 18), (5, 2, 7)]
ALL = {"float32": "complex64", "complex64": "complex64"}


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "bool"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", SIZES)
def test_dft(n, norm, dtype, rng):
    F, x = pl.DFT(n, norm), values(rng, n, dtype)
    want = np.fft.fftn(x, norm=norm)
    scale = np.abs(pl.DFT(n, norm)[0, 0]) * np.sqrt(x.size)
    near((F @ x.ravel()) / scale, want.ravel() / scale, x)
    for A, w in [
        (F.T, want),
        (F.conj(), np.fft.fftn(x.conj(), norm=norm).conj()),
        (F.H, np.fft.fftn(x.conj(), norm=norm).conj()),
    ]:
        near((A @ x.ravel()) / scale, w.ravel() / scale, x)
    back = pl.inv(F) @ want.ravel()
    np.testing.assert_allclose(
        back, x.ravel(), atol=(1e-5 if dtype in ALL else 1e-12) * (1 + np.abs(x).max())
    )
    assert type(pl.inv(F)) is pl.Conj and type(F.T) is pl.DFT
    assert F.dtype == "complex128" and pl.DFT(n, dtype="complex64").dtype == "complex64"


@pytest.mark.parametrize("n", [1, 5, 12, (2, 3)])
def test_dft_entries(n):
    a = (
        scipy.linalg.dft(n)
        if np.ndim(n) == 0
        else np.kron(scipy.linalg.dft(2), scipy.linalg.dft(3))
    )
    F = pl.DFT(n)
    np.testing.assert_allclose(F.toarray(), a, atol=1e-14)
    np.testing.assert_allclose(F.diagonal(1), np.diagonal(a, 1), atol=1e-14)
    np.testing.assert_allclose((F @ pl.inv(F)).toarray(), np.eye(len(a)), atol=1e-14)
    np.testing.assert_allclose(pl.inv(F.H).toarray(), np.linalg.inv(a.conj().T), atol=1e-14)
    np.testing.assert_allclose(
        pl.inv(2 * F) @ np.ones(len(a)), np.linalg.solve(2 * a, np.ones(len(a))), atol=1e-14
    )
    C = values(np.random.default_rng(1), (len(a), 2), "complex128")
    np.testing.assert_allclose(C.T @ F, C.T @ a, atol=1e-13)


@pytest.mark.parametrize("dtype", [*FLOATS, "int8"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("n", SIZES)
def test_dct(n, kind, norm, dtype, rng):
    if kind == 1 and np.min(n) < 2:
        with pytest.raises(ValueError, match="at least 2"):
            pl.DCT(n, kind, norm)
        return
    D, x = pl.DCT(n, kind, norm), values(rng, n, dtype)
    want = scipy.fft.dctn(x, kind, norm=norm)
    scale = max(np.linalg.norm(want) / np.linalg.norm(x), 1e-300) if x.any() else 1
    near((D @ x.ravel()) / scale, want.ravel() / scale, x, factor=60 if kind != 1 else 300)
    near(
        pl.inv(D) @ x.ravel() * scale,
        scipy.fft.idctn(x, kind, norm=norm).ravel() * scale,
        x,
        factor=3000,
    )
    assert type(pl.inv(D)) is type(D.T) is pl.DCT
    y = values(rng, n, dtype)
    left, right = np.vdot(y, D @ x.ravel()), np.vdot(D.H @ y.ravel(), x.ravel())
    u = np.finfo(np.result_type(dtype, "float32") if dtype in FLOATS else float).eps
    assert abs(left - right) <= 200 * u * np.linalg.norm(y) * np.linalg.norm(want) + 200 * u * (
        np.linalg.norm(D.H @ y.ravel()) * np.linalg.norm(x)
    )


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [2, 5, 8, (3, 4)])
def test_dct_entries(n, kind, norm):
    N = int(np.prod(n))
    eye = np.eye(N).reshape(N, *np.atleast_1d(n))
    a = scipy.fft.dctn(eye, kind, axes=range(1, eye.ndim), norm=norm).reshape(N, N).T
    D = pl.DCT(n, kind, norm)
    for A, b in [
        (D, a),
        (D.T, a.T),
        (pl.inv(D), np.linalg.inv(a)),
        (pl.inv(D.T), np.linalg.inv(a).T),
    ]:
        np.testing.assert_allclose(A.toarray(), b, atol=1e-13)
        np.testing.assert_allclose(A @ np.arange(N), b @ np.arange(N), atol=1e-12)
        np.testing.assert_allclose(A.diagonal(-1), np.diagonal(b, -1), atol=1e-13)
    if norm == "ortho":
        np.testing.assert_allclose((D.T @ D).toarray(), np.eye(N), atol=1e-14)


@pytest.mark.parametrize("dtype", FLOATS + INTS)
@pytest.mark.parametrize("n", [1, 2, 8, 64, 512])
def test_hadamard(n, dtype, rng):
    H, a = pl.Hadamard(n, dtype), scipy.linalg.hadamard(n).astype(dtype)
    x = values(rng, (n, 3), dtype)
    np.testing.assert_array_equal(H.toarray(), a)
    for B in (H, H.T, H.H, H.conj()):
        assert type(B) is pl.Hadamard
        near(B @ x, a @ x, a[0], x)
        near(B @ x[:, 0], a @ x[:, 0], a[0], x)
        near(x[:, 1] @ B, x[:, 1] @ a, a[0], x)
    weak = pl.Hadamard(n) @ x
    near(weak, scipy.linalg.hadamard(n, np.int64 if dtype == "bool" else dtype) @ x, a[0], x)
    if n > 1:
        assert H[1, 1] == a[1, 1] and H.trace() == np.trace(a)
    if dtype in FLOATS:
        near(pl.inv(H) @ (H @ x), x, x)
    assert (pl.inv(pl.Hadamard(n)) @ np.ones(n, "int8")).dtype == "float64"


def test_transforms_bad_arguments():
    for bad in [
        lambda: pl.DFT(-1),
        lambda: pl.DFT(4, "unitary"),
        lambda: pl.DCT(4, 5),
        lambda: pl.DCT(4, 0),
        lambda: pl.Hadamard(3),
        lambda: pl.Hadamard(0),
        lambda: pl.DFT(()),
    ]:
        with pytest.raises(ValueError):
            bad()
    for bad in [
        lambda: pl.DFT(4, dtype="float64"),
        lambda: pl.DCT(4, dtype="int64"),
        lambda: pl.DFT(2.5),
    ]:
        with pytest.raises(TypeError):
            bad()
    assert (pl.DFT(0) @ np.zeros(0)).shape == (0,) and (pl.DCT(0) @ np.zeros(0)).shape == (0,)
    for A in (pl.DFT((2, 3), "ortho"), pl.DCT(6, 3), pl.Hadamard(8)):
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(A)).toarray(), A.toarray())


@pytest.mark.sweep(4)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("other", [*ref.LEAVES])
@pytest.mark.parametrize("kind", ["DFT", "DCT"])
def test_transforms_with_every_kind(kind, other, dtype, rng):
    for _ in range(4):
        d, e = leaf(kind, rng, 6, 6, dtype), leaf(other, rng, 6, 6, dtype)
        for f in (("Product", d, e), ("Sum", e, d), ("Product", ("H", e), ("Conj", d))):
            A, a, x = ref.build(f), ref.dense(f), values(rng, (6, 2), dtype)
            ref.check(A.toarray(), a, ref.dtype(f), 4 * ref.tolerance(f))
            ref.check(A @ x, a @ x, ref.dtype(f, x), 4 * ref.tolerance(f, x) @ np.abs(x))
