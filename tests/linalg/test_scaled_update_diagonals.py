"""Diagonals of inverses of c (D + U U^H) and D + c U U^H cost what that of D + U U^H does, and are
right whatever the signs."""

import numpy as np
import pytest

import pylinop as pl

N, K = 150, 3


def thin(rng, dtype, n=N):
    u = rng.standard_normal((n, K))
    return (u + 1j * rng.standard_normal((n, K)) if dtype == "complex128" else u).astype(dtype)


def asked(A):
    with pl.config(check_plans=True), pl.explaining() as log:
        got = pl.diagonal(pl.inv(A))
    return got, [s for p in log.plans for s in p.steps if s["took"] is not None]


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("c", [2.0, 0.3, -1.0, -7.5, 1e-9, 1e9])
def test_multiples_cost_what_the_matrix_does(c, dtype):
    rng = np.random.default_rng(2)
    d, U = (rng.random(N) + 0.5).astype(np.dtype(dtype).type(0).real.dtype), thin(rng, dtype)
    plain, steps = asked(pl.Diag(d) + pl.LowRank(U))
    price = sum(s["flops"] for s in steps)
    want = np.linalg.inv(np.diag(d) + U @ U.conj().T).diagonal() / c
    tol = 2e-4 if dtype == "float32" else 1e-11
    for A in (
        c * (pl.Diag(d) + pl.LowRank(U)),
        c * pl.LowRankUpdate(pl.Diag(d), U),
        pl.Diag((c * d).astype(d.dtype)) + c * pl.LowRank(U),
    ):
        got, steps = asked(A)
        np.testing.assert_allclose(got, want, rtol=0, atol=tol * np.abs(want).max())
        more = sum(s["flops"] for s in steps) - price
        assert more < 8 * N, [s["name"] for s in steps]  # a multiple or two of what is N long


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("c", [-0.001, -1e-5, -0.2, -1.0, -50.0, 3.0])
@pytest.mark.parametrize("signs", ["one", "minus", "two"])
def test_signs_that_differ(signs, c, dtype):
    """D - |c| U U^H is definite or not, singular nearly or far from it: the way is checked."""
    rng = np.random.default_rng(3)
    d, U = rng.random(N) + 0.5, thin(rng, dtype) / 10
    if signs == "minus":
        d = -d
    if signs == "two":
        d[::3] *= -1
    dense = np.diag(d) + c * U @ U.conj().T
    want = np.linalg.inv(dense).diagonal()
    got, _ = asked(pl.Diag(d) + c * pl.LowRank(U))
    near = 1e-12 * np.linalg.cond(dense) + 1e-12
    np.testing.assert_allclose(got, want, rtol=0, atol=near * np.abs(want).max())


@pytest.mark.parametrize("shift", [0.0, 1e-15, 1e-12, 1e-8, 1e-3])
def test_nearly_singular_where_the_signs_differ(shift):
    """1 - |u|^2 comes out at `shift`."""
    rng = np.random.default_rng(4)
    u = rng.standard_normal((N, 1))
    u *= np.sqrt(1 - shift) / np.linalg.norm(u)
    A = pl.Identity(N) - pl.LowRank(u)
    dense = np.eye(N) - u @ u.T
    left = 1 - float(u[:, 0] @ u[:, 0])
    if abs(left) < 1e-14:
        return
    got, _ = asked(A)
    want = 1 + u[:, 0] ** 2 / left
    np.testing.assert_allclose(got, want, rtol=4e-16 * N * np.linalg.cond(dense) + 1e-12)


def test_a_batch_of_both_signs():
    rng = np.random.default_rng(5)
    d, U = rng.random((4, N)) + 0.5, rng.standard_normal((4, N, K))
    d[1] *= -1
    d[2, ::2] *= -1
    A = -2.0 * (pl.Diag(d) + pl.LowRank(U))
    want = np.diagonal(np.linalg.inv(A.toarray()), 0, -2, -1)
    got, _ = asked(A)
    np.testing.assert_allclose(got, want, atol=1e-9 * np.abs(want).max())


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_the_inverse_of_an_orthogonal_matrix_is_its_adjoint(dtype):
    """All of it, its diagonal and its trace are read off, and what is not orthogonal is told of."""
    rng = np.random.default_rng(6)
    Q = np.linalg.qr(thin(rng, dtype) @ thin(rng, dtype).T + 9 * np.eye(N, dtype=dtype))[0]
    for A, own in ((pl.Dense(Q, "orthogonal"), Q), (pl.Dense(Q, "orthogonal").T, Q.T)):
        got, steps = asked(A)
        np.testing.assert_array_equal(got, own.diagonal().conj())
        assert sum(s["flops"] for s in steps) < 10 * N * N
        np.testing.assert_array_equal(pl.inv(A).toarray(), own.conj().T)
        np.testing.assert_allclose(pl.trace(pl.inv(A)), own.trace().conj(), rtol=1e-5)
    for wrong in (lambda A: pl.inv(A).toarray(), lambda A: pl.diagonal(pl.inv(A))):
        with pytest.raises(ValueError, match="assumed orthogonal"):
            wrong(pl.Dense(1.5 * Q, "orthogonal"))
