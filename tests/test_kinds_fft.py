"""Kinds of convolution and transform type against SciPy and NumPy."""

import pickle

import numpy as np
import pytest
import scipy.linalg
import scipy.signal
from samples import values

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
    for A, d in four(C, a):
        b = values(rng, (c.size, 2), dtype)
        x = pl.inv(A) @ b
        assert x.dtype == dtype
        r = np.linalg.norm(b - d @ x) / (
            np.linalg.norm(d, 2) * np.linalg.norm(x) + np.linalg.norm(b)
        )
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


@pytest.mark.parametrize("make", [pl.Circulant])
def test_without_fft_the_bound_is_componentwise(make, rng):
    c = np.concatenate([[1e12], 1e-6 * values(rng, (299,), "float64")])
    x = np.concatenate([np.zeros(299), [1.0]])
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
