"""Gradients of factors, spectra and functions of stacks of matrices, by those of the matrices."""

import numpy as np
import pytest
from gradients.differences import check, check_second
from gradients.test_gradients_of_stacks import compare

import pylinop as pl

N, TALL, B = 4, 6, 3
C = np.random.default_rng(0).standard_normal((TALL, TALL))  # weights


def positive(x):
    return x @ x.mT.conj() + N * np.eye(N)


def hermitian(x):
    return x + x.mT.conj()


def moduli(*found):
    """A number that the phases of singular vectors do not move."""
    return sum(np.sum(np.abs(v) ** 3 * C[: v.shape[-2], : v.shape[-1]]) for v in found)


FUNCTIONS = {
    "np.linalg.cholesky": ("square", lambda x: moduli(np.linalg.cholesky(positive(x)))),
    "np.linalg.cholesky, upper": ("real", lambda x: moduli(pl.cholesky(positive(x), upper=True))),
    "np.linalg.eigvalsh": ("square", lambda x: np.linalg.eigvalsh(hermitian(x)) @ C[0, :N]),
    "np.linalg.eigh": ("square", lambda x: moduli(np.linalg.eigh(hermitian(x))[1])),
    "np.linalg.svdvals": ("tall", lambda x: np.linalg.svdvals(x) @ C[0, :N]),
    "np.linalg.svd": ("tall", lambda x: moduli(*np.linalg.svd(x, full_matrices=False)[::2])),
    "np.linalg.svd, wide": (
        "tall",
        lambda x: moduli(*np.linalg.svd(x.mT, full_matrices=False)[::2]),
    ),
    "np.linalg.pinv": ("tall", lambda x: moduli(np.linalg.pinv(x).mT)),
    "np.linalg.qr": ("tall", lambda x: moduli(*np.linalg.qr(x))),
    "np.linalg.qr, r": ("tall", lambda x: moduli(np.linalg.qr(x, mode="r"))),
    "pl.cholesky": ("square", lambda x: moduli(pl.cholesky(positive(x)))),
    "pl.eigvalsh": ("square", lambda x: pl.eigvalsh(hermitian(x)) @ C[0, :N]),
    "pl.eigh": ("square", lambda x: moduli(pl.eigh(hermitian(x))[1])),
    "pl.svdvals": ("tall", lambda x: pl.svdvals(x) @ C[0, :N]),
    "pl.svd": ("tall", lambda x: moduli(*pl.svd(x, full_matrices=False)[::2])),
    "pl.qr": ("tall", lambda x: moduli(*pl.qr(x))),
    "pl.pinv": ("tall", lambda x: moduli(pl.pinv(x) @ C)),
    "pl.expm": ("square", lambda x: moduli(pl.expm(x))),
    "pl.sqrtm": ("square", lambda x: moduli(pl.sqrtm(positive(x)))),
    "pl.logm": ("square", lambda x: moduli(pl.logm(positive(x)))),
}


def numbers(rng, dtype, *shape):
    x = rng.standard_normal(shape)
    return x + 1j * rng.standard_normal(shape) if dtype == "c" else x


def elements(kind, dtype, count=B):
    rng = np.random.default_rng(3)
    rows = TALL if kind == "tall" else N
    return [[numbers(rng, dtype, rows, N)] for _ in range(count)]


@pytest.mark.parametrize("dtype", ["f", "c"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_stacks_are_their_matrices(name, dtype):
    kind, f = FUNCTIONS[name]
    compare(f, elements(kind, "f" if kind == "real" else dtype), [True], rtol=1e-8)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_stacks_of_stacks_of_one_and_of_none(name):
    kind, f = FUNCTIONS[name]
    xs = np.array([x for (x,) in elements(kind, "f", 4)])
    g = pl.grad(lambda x: np.sum(f(x)))
    want = g(xs)
    assert np.allclose(g(xs.reshape(2, 2, *xs.shape[1:])).reshape(want.shape), want, rtol=1e-10)
    assert np.allclose(g(xs[:1]), want[:1], rtol=1e-10)
    assert g(xs[:0]).shape == xs[:0].shape


@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_order_of_stacks(name):
    kind, f = FUNCTIONS[name]
    check_second(lambda x: np.sum(f(x)), np.array([x for (x,) in elements(kind, "f")]))


@pytest.mark.parametrize("eigh", [np.linalg.eigh, pl.eigh])
def test_repeated_eigenvalues_of_one_matrix_of_a_stack(eigh):
    x = np.array([x for (x,) in elements("square", "f")])
    x[1] = np.eye(N)
    with pytest.raises(np.linalg.LinAlgError, match="repeated eigenvalues"):
        pl.grad(lambda x: np.sum(C[:N, :N] * eigh(x + x.mT)[1]))(x)

    rest = [0, 2]

    def of_the_others(x):
        w, q = eigh(x + x.mT)
        return np.sum(w**3) + np.sum(C[:N, :N] * (q * w[..., None, :] @ q.mT)[rest])

    found = pl.grad(of_the_others)(x)
    own = [6 * pl.evaluate((v + v.T) @ (v + v.T)) for v in x]
    own = [g + C[:N, :N] + C[:N, :N].T if i in rest else g for i, g in enumerate(own)]
    assert np.allclose(found, own, rtol=1e-10)


ORDERS = ["fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf]


def _stack(m, n, dtype):
    r = np.random.default_rng(21)
    a = r.standard_normal((2, 3, m, n))
    return (a + 1j * r.standard_normal(a.shape) if dtype == "c" else a), r.standard_normal((2, 3))


@pytest.mark.parametrize("dtype", ["f", "c"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("m, n", [(4, 4), (5, 3), (3, 5)])
def test_norms(m, n, order, dtype):
    a, w = _stack(m, n, dtype)
    for f in (
        lambda a: np.sum(w * np.linalg.norm(a, order, axis=(-2, -1))),
        lambda a: np.sum(w * np.linalg.norm(a, order, axis=(-1, -2), keepdims=True)[..., 0, 0]),
        lambda a: np.sum(w * np.linalg.matrix_norm(a, ord=order)),
        lambda a: np.sum(w * pl.matrix_norm(a, order)),
        lambda a: np.sum(np.linalg.norm(a, order, axis=(0, 2))),
        lambda a: np.sum(np.linalg.norm(a[0, 1], order, axis=(0, 1), keepdims=True)),
    ):
        assert np.isclose(check(f, a)[0], f(a))


@pytest.mark.parametrize("dtype", ["f", "c"])
@pytest.mark.parametrize("p", [None, 2, -2, "fro", 1, -1, np.inf, "nuc"])
def test_condition_numbers(p, dtype):
    a, w = _stack(4, 4, dtype)
    for f in (lambda a: np.sum(w * np.linalg.cond(a, p)), lambda a: np.sum(w * pl.cond(a, p))):
        assert np.isclose(check(f, a, rtol=1e-7)[0], np.sum(w * np.linalg.cond(a, p)))


@pytest.mark.parametrize("order", ORDERS)
def test_norms_of_stacks_of_a_kind(order):
    c = np.random.default_rng(22).standard_normal((3, 5))
    value = check(lambda c: np.sum(np.linalg.matrix_norm(pl.Toeplitz(c), ord=order)), c)[0]
    assert np.isclose(value, np.sum(np.linalg.matrix_norm(pl.Toeplitz(c).toarray(), ord=order)))
