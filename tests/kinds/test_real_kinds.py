"""Kinds whose parameters are real beside complex neighbours, and casts of any kind: entries are
cast, never points or factors whose products the entries are."""

import numpy as np
import pytest
import test_closed_results

import pylinop as pl


def kernel(x, y):
    return np.exp(-((x[:, None] - y[None]) ** 2).sum(-1))


def instances(rng):
    x, y = rng.standard_normal((6, 2)), rng.standard_normal((5, 2))
    yield "Kernel", pl.Kernel("rbf", x)
    yield "Kernel of two", pl.Kernel("matern32", x, y, variance=2.0, length_scale=[1.0, 3.0])
    yield "Kernel f4", pl.Kernel("rational_quadratic", x.astype("f4"), alpha=2.0)
    yield "products", pl.multiply(pl.Kernel("rbf", x), pl.Kernel("linear", x))
    yield "batch", pl.Kernel("rbf", rng.standard_normal((2, 6, 2)))[1]
    yield "CallableKernel", pl.CallableKernel(kernel, x)
    yield "Difference", pl.FiniteDifference(6)
    yield "Laplacian", pl.Laplacian((3, 2))
    yield "QuasiSeparable", pl.quasiseparable("matern32", np.sort(rng.random(6)))
    yield "Hadamard", pl.Hadamard(8)
    yield "DCT", pl.DCT(6)
    yield "Permutation", pl.Permutation(rng.permutation(6))


USES = {
    "K z": lambda K, z: K @ z,
    "K[1:] z": lambda K, z: K[1:] @ z,
    "K[:, 1:] z": lambda K, z: K[:, 1:] @ z[1:],
    "K[idx] z": lambda K, z: K[[0, 2, 2]] @ z,
    "z K[1:]": lambda K, z: np.resize(z, K.shape[0] - 1) @ K[1:],
    "(iK)[0]": lambda K, z: (1j * K)[0],
    "(iK)[:, 0]": lambda K, z: (1j * K)[:, 0],
    "(iK)[1:, 1:]": lambda K, z: (1j * K)[1:, 1:],
    "i K[1:]": lambda K, z: 1j * K[1:],
    "(iK)[0, 1]": lambda K, z: (1j * K)[0, 1],
    "K.astype": lambda K, z: K.astype(complex),
    "K.astype[0]": lambda K, z: K.astype(complex)[0],
    "K[1:].astype": lambda K, z: K[1:].astype(complex),
    "sum": lambda K, z: (K + 1j * np.ones(K.shape))[1:] @ z,
    "product": lambda K, z: (K @ np.diag(z))[1:],
    "diagonal": lambda K, z: (1j * K[1:] @ K.T[:, 1:]).diagonal(),
}


@pytest.mark.parametrize("use", USES)
def test_complex_neighbours(use, rng):
    for name, K in instances(rng):
        k = K.toarray()
        z = rng.standard_normal(k.shape[1]) + 1j * rng.standard_normal(k.shape[1])
        got, want = USES[use](K, z), USES[use](k, z)
        got = got.toarray() if hasattr(got, "toarray") else got
        tol = 1e-5 if K.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(got, want, rtol=tol, atol=tol, err_msg=name)
        assert np.asarray(got).dtype == np.asarray(want).dtype, name


def test_complex_factors(rng):
    for _, K in instances(rng):
        if K.dtype == np.float32:
            continue
        k, c = K.toarray(), 1j * np.eye(2)
        np.testing.assert_allclose(pl.Kron(K, c)[0], np.kron(k, c)[0])
        np.testing.assert_allclose(pl.Kron(c, K)[1:4].toarray(), np.kron(c, k)[1:4])
        np.testing.assert_allclose(pl.BlockDiag(K, c)[0], [*k[0], 0, 0])


CASTS = [("float64", int), ("complex128", float), ("float64", "f4"), ("float64", complex),
         ("float64", "F")]  # fmt: skip


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("kind", test_closed_results.KINDS)
def test_casts(kind, rng):
    """As NumPy casts the dense form, to integers and real parts too, which products do not keep."""
    for dtype, to in CASTS:
        A = test_closed_results.leaves(kind, rng, dtype)
        for B in (A, A.T, A[:4]):
            got, want = B.astype(to), B.toarray().astype(to)
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got.toarray(), want, rtol=1e-4, atol=1e-4)
