"""Second derivatives of A (x) B + C (x) D by what its factors are made of: in the basis of the two
pencils, beside the dense form; where that is no basis, by the dense form."""

import numpy as np
import pytest

import pylinop as pl

pytestmark = pytest.mark.filterwarnings("ignore:.*onditioned", "ignore:.*assumed")


def matrix(rng, n, dtype, shift=1.0):
    x = rng.standard_normal((n, n))
    x = x + 1j * rng.standard_normal((n, n)) if np.dtype(dtype).kind == "c" else x
    return (x @ x.conj().T / n + shift * np.eye(n)).astype(dtype)


def kron(a, b):
    p, q = a.shape[0], b.shape[0]
    return np.reshape(a[:, None, :, None] * b[None, :, None, :], (p * q, p * q))


def real(x):
    return np.real(x * (0.8 - 0.6j)) if x.dtype.kind == "c" else x


LOSSES = {
    "determinant": lambda M, y: real(pl.slogdet(M)[1]),
    "likelihood": lambda M, y: real(np.conj(y) @ pl.solve(M, y)) + real(pl.slogdet(M)[1]),
    "of the transpose": lambda M, y: real(pl.slogdet(M.T)[1]) + real(y @ pl.solve(M.T, y)),
    "trace": lambda M, y: real(pl.trace(pl.inv(M))),
}


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("p, q", [(4, 5), (7, 3), (12, 10)])
@pytest.mark.parametrize("second", ["definite", "diagonal", "indefinite", "nearly singular"])
def test_beside_dense(second, p, q, loss, dtype):
    rng = np.random.default_rng([p, q, len(second)])
    A, B, C, D = (matrix(rng, n, dtype) for n in (p, q, p, q))
    dA, dB, dC, dD = (matrix(rng, n, dtype) for n in (p, q, p, q))
    if second == "diagonal":
        C, dC, D, dD = (np.diag(np.diag(x)) for x in (C, dC, D, dD))
    if second == "indefinite":
        C, D = C - 1.7 * np.eye(p), D - 1.6 * np.eye(q)
    if second == "nearly singular":
        C, D = matrix(rng, p, dtype, 0)[:, :1] * np.ones((1, p)), D
        C = (C @ C.conj().T / p + 1e-9 * np.eye(p)).astype(dtype)
    y = rng.standard_normal(p * q).astype(dtype)

    def f(A, B, C, D):
        if second == "diagonal":
            two = pl.Kron(pl.Diag(np.diagonal(C)), pl.Diag(np.diagonal(D)))
        else:
            two = pl.Kron(C, D)
        return LOSSES[loss](pl.Kron(A, B) + two, y)

    def g(A, B, C, D):
        return LOSSES[loss](kron(A, B) + kron(C, D), y)

    at, along, every = (A, B, C, D), (dA, dB, dC, dD), (0, 1, 2, 3)
    got, due = pl.hvp(f, every)(*at, along), pl.hvp(g, every)(*at, along)
    a = np.kron(A, B) + np.kron(C, D)
    tol = 1e-11 * max(np.linalg.cond(a), 10)
    size = max(np.abs(x).max() for x in due)
    for x, z in zip(got, due, strict=True):
        if second == "diagonal" and x.shape == C.shape and x is got[2]:
            assert np.count_nonzero(x - np.diag(np.diag(x))) == 0
        if second == "diagonal" and (x is got[2] or x is got[3]):
            x, z = np.diag(x), np.diag(z)
        np.testing.assert_allclose(x, z, rtol=0, atol=tol * size)


@pytest.mark.no_verify  # whose own dense forms would be counted
def test_nothing_of_the_size_of_the_whole():
    rng = np.random.default_rng(0)
    p, q = 12, 40
    C, K, d = matrix(rng, p, float), matrix(rng, q, float), rng.random(p)
    y, n = rng.standard_normal(p * q), p * q

    def f(C, K, d):
        M = pl.Kron(pl.Dense(C, "pos"), pl.Dense(K, "pos")) + pl.Kron(
            pl.Diag(np.exp(d)), pl.Identity(q)
        )
        return y @ pl.solve(M, y) + pl.logdet(M)

    with pl.explaining() as record:
        pl.hvp(f, (0, 1, 2))(C, K, d, (C, K, d))
    ran = [s for e in record.plans for s in e.steps if s["took"] is not None]
    assert not [s["name"] for s in ran if f"({n}, {n})" in s["writes"]]
