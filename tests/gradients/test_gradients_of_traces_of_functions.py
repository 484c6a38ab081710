"""Gradients of traces of functions of matrices: f'(A) commutes with the cotangent, a multiple of
the identity, so that what has structure keeps it."""

import numpy as np
import pytest
from gradients.differences import check, check_second

import pylinop as pl

FUNCTIONS = {"expm": pl.expm, "logm": pl.logm, "sqrtm": pl.sqrtm}
N = 12
rng = np.random.default_rng(7)
SYM = [a @ a.T / len(a) + np.eye(len(a)) for a in map(rng.standard_normal, ((3, 3), (4, 4)))]
U, V = rng.standard_normal((2, N, 2)) / N**0.5
C = np.array([[0.4, 0.1], [-0.2, 0.5]])
D, E = 3 + rng.random(N), rng.random(N - 1)
TOEP = np.r_[5.0, rng.uniform(-0.3, 0.3, N - 1)]

MODELS = {
    "LowRank": ([U, np.array(1.5)], lambda U, s: s * pl.Identity(N) + pl.LowRank(U)),
    "LowRank of two": ([U, V], lambda U, V: pl.LowRank(U, V) + 2 * pl.Identity(N)),
    "multiple of a LowRank": (
        [U, V, C, np.array(0.7)],
        lambda U, V, C, t: t * pl.LowRank(U, V, C) + (1 + t) * pl.Identity(N),
    ),
    "LowRankUpdate": ([D, U], lambda d, U: pl.LowRankUpdate(pl.Diag(d), U)),
    "Kron": ([*SYM, np.array(0.8)], lambda a, b, t: t * pl.Kron(a, b)),
    "Kron seen": (SYM, lambda a, b: pl.Kron(a, b).T),
    "KronSum": (SYM, lambda a, b: pl.KronSum(a, b) + 0.5 * pl.Identity(N)),
    "Tridiagonal": ([E, D, -E], lambda l, d, u: pl.Tridiagonal(l, d, u)),
    "Toeplitz": ([TOEP], lambda c: pl.Toeplitz(c)),
    "Toeplitz of two": ([TOEP, 0.7 * TOEP], lambda c, r: 2 * pl.Toeplitz(c, r) + pl.Identity(N)),
    "BlockDiag and Diag": ([*SYM, D[:7]], lambda a, b, d: pl.BlockDiag(a, b) + pl.Diag(d)),
}


def loss(f, A):
    return 0.7 * pl.trace(f(A)) + 0.1 * np.square(pl.trace(f(2 * A)))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_differences(name, model):
    args, made = MODELS[model]
    check(lambda *p: loss(FUNCTIONS[name], made(*p)), *args, rtol=2e-8)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("model", ["LowRank", "LowRank of two", "Kron", "KronSum", "Tridiagonal"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_derivatives(name, model):
    args, made = MODELS[model]
    check_second(lambda *p: loss(FUNCTIONS[name], made(*p)), *args, rtol=1e-6)


def test_of_dense_and_of_complex_matrices():
    a = rng.standard_normal((5, 5)) / 2
    z = a + 0.3j * rng.standard_normal((5, 5))
    check(lambda a: pl.trace(pl.expm(a)), a)
    check(lambda z: np.real((1 - 2j) * pl.trace(pl.expm(z))), z)
    check(lambda z: np.real((1 - 2j) * pl.trace(pl.logm(z + 4 * pl.Identity(5)))), z)
    W = U + 0.2j * V
    for f in FUNCTIONS.values():
        check(
            lambda W, f=f: np.real((1 - 2j) * pl.trace(f(2 * pl.Identity(N) + pl.LowRank(W, V)))),
            W,
        )
    G = pl.grad(lambda a: pl.trace(pl.expm(a)))(a)
    np.testing.assert_allclose(G, pl.expm(a).toarray().T, rtol=1e-12)


def test_in_single_precision():
    args, made = MODELS["LowRank of two"]
    f = lambda U, V: pl.trace(pl.logm(made(U, V)))
    due = pl.grad(f, (0, 1))(*args)
    got = pl.grad(f, (0, 1))(*(a.astype(np.float32) for a in args))
    for a, b in zip(got, due, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["logm", "sqrtm"])
def test_where_the_function_is_complex_or_not_there(name):
    f = FUNCTIONS[name]
    for s in (-1.5, 0.0):
        with pytest.raises(np.linalg.LinAlgError):
            pl.grad(lambda U: pl.trace(f(s * pl.Identity(N) + pl.LowRank(U))))(U)  # noqa: B023
    A = np.diag([-1.0, 2.0, 3.0]) + 0j
    with pytest.raises(np.linalg.LinAlgError, match="branch cut"):
        pl.grad(lambda A: np.real(pl.trace(f(A))))(A)


@pytest.mark.no_verify  # whose own dense forms would be counted
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_nothing_of_the_size_of_the_matrix(name):
    n = 400
    f = lambda U, s: pl.trace(FUNCTIONS[name](s * pl.Identity(n) + pl.LowRank(U)))
    with pl.config(memory_limit=n * n * 8 // 2):  # half of a dense form
        pl.grad(f, (0, 1))(rng.standard_normal((n, 3)) / n**0.5, np.array(1.5))
    factors = [SYM[0], *(np.kron(a, np.eye(8)) for a in SYM)]
    if name != "expm":
        with pl.config(memory_limit=(3 * 24 * 32) ** 2 * 8 // 2):
            pl.grad(lambda *a: pl.trace(FUNCTIONS[name](pl.Kron(*a))), (0, 1, 2))(*factors)
