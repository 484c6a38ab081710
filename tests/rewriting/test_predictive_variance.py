"""A factor and its transpose are one matrix also where the transpose is another node of the kind:
a `Kernel` of the points exchanged, the other `Triangular`, a `Kron` of transposes."""

import numpy as np
import pytest

import pylinop as pl

N, M = 150, 20


def names(found):
    return [s["name"] for s in found.steps]


def points():
    rng = np.random.default_rng(0)
    return rng.random((N, 2)), rng.random((M, 2)), 0.1 + rng.random(N)


def noisy(which, x, noise):
    K = pl.Kernel("matern32", x, length_scale=0.4)
    return {
        "c I": lambda: K + 0.1 * pl.Identity(N),
        "c I first": lambda: 0.1 * pl.Identity(N) + K,
        "diagonal": lambda: K + pl.Diag(noise),
        "a multiple": lambda: 2.0 * K + pl.Diag(noise),
        "two kernels": lambda: K + pl.Kernel("rbf", x) + pl.Diag(noise),
        "dense": lambda: pl.Dense(K.toarray(), "pos") + pl.Diag(noise),
    }[which]()


@pytest.mark.parametrize(
    "which", ["c I", "c I first", "diagonal", "a multiple", "two kernels", "dense"]
)
@pytest.mark.parametrize("lazy", [False, True])
def test_predictive_variance_is_half_a_solve(which, lazy):
    x, xs, noise = points()
    A, K = noisy(which, x, noise), pl.Kernel("matern32", xs, x, length_scale=0.4)
    a, k = A.toarray(), K.toarray()
    wanted = np.einsum("ij,ij->i", k, np.linalg.solve(a, k.T).T)
    if lazy:
        A, K = pl.lazy(A), pl.lazy(K)
        formula = pl.diagonal(K @ pl.inv(A) @ K.T)
        found, plan = np.asarray(formula), pl.explain(pl.diagonal(K @ pl.inv(A) @ K.T))
    else:
        found = pl.diagonal(K @ pl.inv(A) @ K.T)
        plan = (K @ pl.inv(A) @ K.T).explain("diagonal")
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    assert "trsm-squares" in names(plan)
    assert names(plan).count("kernel-dense") == {"two kernels": 3, "dense": 1}.get(which, 2)


def test_the_covariance_too():
    x, xs, noise = points()
    A, K = noisy("diagonal", x, noise), pl.Kernel("matern32", xs, x, length_scale=0.4)
    S = K @ pl.inv(A) @ K.T
    k = K.toarray()
    np.testing.assert_allclose(S.toarray(), k @ np.linalg.solve(A.toarray(), k.T), rtol=1e-9)
    assert "trsm-syrk" in names(S.explain("dense"))
    assert "potrf" in names((S + pl.Identity(M)).explain("solve", np.ones(M)))


def test_an_indefinite_sum_falls_to_lu():
    x, xs, noise = points()
    A, K = pl.Kernel("rbf", x) - pl.Diag(noise), pl.Kernel("rbf", xs, x)
    k = K.toarray()
    wanted = np.einsum("ij,ij->i", k, np.linalg.solve(A.toarray(), k.T).T)
    np.testing.assert_allclose(pl.diagonal(K @ pl.inv(A) @ K.T), wanted, rtol=1e-8)


def test_kernels_of_other_points_are_other_matrices():
    x, xs, noise = points()
    A, K = noisy("diagonal", x, noise), pl.Kernel("rbf", xs, x)
    for other in (pl.Kernel("rbf", x, xs[::-1].copy()), pl.Kernel("rbf", x, xs, length_scale=2.0)):
        S, k, o = K @ pl.inv(A) @ other, K.toarray(), other.toarray()
        wanted = np.einsum("ij,ji->i", k, np.linalg.solve(A.toarray(), o))
        np.testing.assert_allclose(pl.diagonal(S), wanted, rtol=1e-9)
        assert "trsm-squares" not in names(S.explain("diagonal"))


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 100])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_triangles(n, dtype):
    rng = np.random.default_rng(n)
    a = rng.standard_normal((n, n)).astype(dtype)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal((n, n))
    for lower in (True, False):
        L, m = pl.Triangular(a, lower), np.tril(a) if lower else np.triu(a)
        np.testing.assert_allclose((L @ L.T).toarray(), m @ m.T, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose((L.T @ L).toarray(), m.T @ m, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose((L @ L.H).toarray(), m @ m.conj().T, rtol=1e-12, atol=1e-12)
        unit = pl.Triangular(a, lower, unit_diagonal=True)
        both = (L @ unit.T).toarray()
        np.testing.assert_allclose(both, m @ unit.toarray().T, rtol=1e-12, atol=1e-12)


def test_krons_of_transposes():
    rng = np.random.default_rng(3)
    K = pl.Kron(rng.standard_normal((6, 5)), rng.standard_normal((7, 4)))
    S = K.T @ K + pl.Identity(20)
    assert "potrf" in names(S.explain("solve", np.ones(20)))
    k = K.toarray()
    np.testing.assert_allclose(
        pl.solve(S, np.ones(20)), np.linalg.solve(k.T @ k + np.eye(20), np.ones(20))
    )


@pytest.mark.parametrize("spelled", ["sum", "update", "sum of two"])
@pytest.mark.parametrize("columns", [1, 5, 40])
def test_of_points_on_a_line_beside_a_thin_term(columns, spelled, rng):
    """A Matern kernel, noise and a few columns: by its states, as solves with it are."""
    n = 600
    x = np.sort(rng.uniform(0, n / 4, n))[:, None]
    K, U, d = pl.Kernel("matern32", x, length_scale=1.3), rng.standard_normal((n, 3)), rng.random(n)
    A = {
        "sum": lambda: K + pl.Identity(n) + pl.LowRank(U),
        "update": lambda: pl.LowRankUpdate(K + pl.Identity(n), U),
        "sum of two": lambda: 0.5 * K + pl.Diag(d + 1) + pl.LowRank(U),
    }[spelled]()
    B = rng.standard_normal((columns, n))
    with pl.explaining() as log:
        got = pl.diagonal(pl.Dense(B) @ pl.inv(A) @ pl.Dense(B).T)
    np.testing.assert_allclose(
        got, np.einsum("ij,ji->i", B, np.linalg.solve(A.toarray(), B.T)), rtol=1e-11
    )
    (plan,) = log.plans
    assert sum(s["flops"] for s in plan.steps if not s["conditional"]) < n**3 / 30
