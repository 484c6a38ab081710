"""What made a small Gram matrix, of many rows maybe, does not run again where its Cholesky factor
is kept; where there is no such factor, LU takes the matrix that was kept in its place."""

import warnings

import numpy as np
import pytest

import pylinop as pl

SIZES = (1, 2, 15, 16, 17, 30, 31, 32, 33, 100)


def ran(call):
    """What a call gives, and the names of the steps that ran."""
    with pl.explaining() as e:
        value = call()
    return value, [s["name"] for p in e.explanation.plans for s in p.steps if s["took"] is not None]


@pytest.mark.parametrize(
    "rank", [30, 32, 40, 100]
)  # of lower rank it is made sooner than looked up
@pytest.mark.parametrize("n", [400, 1500])
def test_the_gram_matrix_of_an_update_is_made_once(rank, n, rng):
    U, d, y = rng.standard_normal((n, rank)), rng.uniform(1, 2, n), rng.standard_normal(n)
    A, F = pl.LowRank(U) + pl.Diag(d), U @ U.T + np.diag(d)
    with pl.config(check_plans=True):  # verified answers are computed twice
        _, first = ran(lambda: pl.solve(A, y))
        x, again = ran(lambda: pl.solve(A, 2 * y))
        found, names = ran(lambda: pl.logdet(A))
    assert "weighted-gram" in first
    assert "weighted-gram" not in again and "potrf" not in again
    assert "weighted-gram" not in names and "potrf" not in names
    np.testing.assert_allclose(F @ x, 2 * y, atol=1e-10 * np.abs(F).max())
    np.testing.assert_allclose(found, np.linalg.slogdet(F)[1], rtol=1e-10)
    d[0] *= 1000  # written to: made again
    F[0, 0] += d[0] * 0.999
    x, names = ran(lambda: pl.solve(A, y))
    assert "weighted-gram" in names
    np.testing.assert_allclose(F @ x, y, atol=1e-9 * np.abs(F).max())


@pytest.mark.parametrize("rank", [60, 100])  # where reading U costs less than its Gram matrix
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_large_updates_are_judged_by_what_is_kept(rank, dtype, rng):
    """Their determinants are judged by the small matrix: its triangle is kept with the bound."""
    n, unit = 500, np.finfo(dtype).eps / 2
    size = 3 * (1 / (100 * rank * unit) / (rank * n)) ** 0.5
    U = (size * rng.standard_normal((n, rank))).astype(dtype)
    d, y = rng.uniform(1, 2, n).astype(U.real.dtype), rng.standard_normal(n).astype(dtype)
    A = pl.LowRank(U) + pl.Diag(d)
    with pl.config(check_plans=True):
        pl.solve(A, y)
        found, names = ran(lambda: pl.logdet(A))
    assert not {"weighted-gram", "potrf", "probe"} & set(names)
    wide = U.astype(complex)
    small = np.eye(rank) + (wide.conj().T / d) @ wide
    want = np.linalg.slogdet(small)[1] + np.log(d.astype(float)).sum()
    assert abs(found - want) <= 100 * n * np.finfo(U.dtype).eps * abs(want)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [float, np.float32])
def test_lu_takes_the_matrix_that_is_kept(n, dtype, rng):
    B = rng.standard_normal((n, n + 3)).astype(dtype)
    A = pl.Dense(B) @ pl.Dense(B).T - dtype(n) * pl.Identity(n, dtype)  # Hermitian, indefinite
    F = (B @ B.T).astype(float) - n * np.eye(n)
    b = rng.standard_normal((n, 2)).astype(dtype)
    tol = 1e-9 if dtype is float else 1e-2
    sign, log = np.linalg.slogdet(F)
    with pl.config(check_plans=True, verify=dtype is float):
        for k in (1, 2, 3):  # the second and third time the factor is kept
            x = pl.solve(A, k * b)
            # by the residual: F may be near singular
            scale = np.abs(F).max() * np.abs(x).max() + np.abs(k * b).max()
            np.testing.assert_allclose(F @ x, k * b, atol=tol * scale)
            found = pl.slogdet(A)
            assert found.sign == sign and abs(found.logabsdet - log) < tol * n * max(1, abs(log))
        stack = pl.solve(A, np.stack([b, -b, 3 * b]))
    np.testing.assert_allclose(stack[2], 3 * pl.solve(A, b), rtol=tol, atol=tol * np.abs(x).max())
    B[0] *= 2
    F = (B @ B.T).astype(float) - n * np.eye(n)
    x = pl.solve(A, b)
    np.testing.assert_allclose(
        F @ x, b, atol=tol * (np.abs(F).max() * np.abs(x).max() + np.abs(b).max())
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1,), (2,), (3, 1), (4, 1), (1, 1), (1, 3)])
def test_batches_of_one_that_are_not_definite(shape, dtype):
    """What is kept of a matrix without a factor lies within its room; sanitizers see it."""
    for n in (1, 2, 3, 4, 5, 8):
        b = np.ones((*shape, n, 1), dtype)
        for k in range(8):
            a = -np.eye(n, dtype=dtype) * np.ones((*shape, 1, 1), dtype) * (1 + k)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", pl.FallbackWarning)
                x = pl.solve(pl.Dense(a, assume_a="pos"), b)
            np.testing.assert_allclose(x, -b / (1 + k), rtol=1e-6)


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("n", [1, 2, 10, 15, 16, 17, 32])
def test_columns_beside_each_other_have_the_bits_they_have_alone(n, dtype, rng):
    """Of one matrix they lie in the lanes that a batch's matrices would."""
    a = rng.standard_normal((n, n))
    a = (a @ a.T + n * np.eye(n)).astype(dtype)
    A = pl.Dense(a, assume_a="pos")
    for k in (2, 7, 8, 9, 15, 16, 17, 31, 32, 33):
        for b in (rng.standard_normal((n, k)), rng.standard_normal((k, n)).T):
            b = b.astype(dtype)
            with pl.config(check_plans=True):
                x = pl.solve(A, b)
            alone = np.stack([pl.solve(A, b[:, j].copy()) for j in range(k)], axis=1)
            assert x.tobytes() == np.ascontiguousarray(alone).tobytes()
            np.testing.assert_allclose(a @ x, b, atol=2e-3 if dtype == "f" else 1e-11)
    pair = np.stack([a, a * 2])
    b = rng.standard_normal((n, 9)).astype(dtype)
    both = pl.solve(pl.Dense(pair, assume_a="pos"), b)
    assert both[0].tobytes() == np.ascontiguousarray(pl.solve(A, b)).tobytes()


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("k", [2, 3, 10, 16, 32])
@pytest.mark.parametrize("sign", [1, -1])
def test_diagonals_of_inverses_of_small_updates(k, sign, dtype):
    """By half a solve, whose columns go side by side; where Cholesky fails by LU in blocks."""
    g = np.random.default_rng([k, sign + 1])
    eps = np.finfo(dtype).eps
    for n in (k + 7, 47, 48, 49, 63, 64, 65, 2049):
        d = (sign * g.uniform(1, 2, (2, n))).astype(dtype)
        U = g.standard_normal((2, n, k)).astype(dtype)
        found = []
        for i in (0, 1, slice(None)):
            with warnings.catch_warnings(), pl.config(check_plans=True), pl.explaining() as e:
                warnings.simplefilter("ignore", pl.FallbackWarning)
                found.append(pl.diagonal(pl.inv(pl.Diag(d[i]) + pl.LowRank(U[i]))))
        if n > 3 * k:
            assert {"trsm-squares", "gesv-squares"} <= {s["name"] for s in e.steps}, (n, e)
        assert found[2].dtype == dtype
        for i in (0, 1):
            wide, over = U[i].astype(float), 1 / d[i].astype(float)
            S = np.eye(k) + wide.T @ (wide * over[:, None])
            due = over - over**2 * np.sum(wide.T * np.linalg.solve(S, wide.T), 0)
            for x in (found[i], found[2][i]):
                bar = 200 * np.linalg.cond(S) * eps * np.max(np.abs(due))
                assert np.max(np.abs(x - due)) <= bar, (n, i)


@pytest.mark.parametrize("n", [60, 300])
def test_what_a_check_accepts_lies_where_it_was_computed_of_each_of_a_batch(n):
    """The middle one fails the check of Woodbury's formula: it is computed the safer way, and what
    was accepted of the others, which lies in the memory of what was computed, stays."""
    g = np.random.default_rng(n)
    U, d = g.standard_normal((3, n, 3)), g.uniform(1, 2, (3, n))
    B = g.standard_normal((3, n, 4))
    d[1] *= -1
    d[1, : n // 3] *= 1e-9

    def found(d, U, B):
        return np.asarray(pl.inv(pl.lazy(pl.Diag(d) + pl.LowRank(U))) @ pl.lazy(B))

    with warnings.catch_warnings(), pl.config(check_plans=True):
        warnings.simplefilter("ignore")
        whole = found(d, U, B)
        for i in range(3):
            one = found(d[i], U[i], B[i])
            assert whole[i].tobytes() == np.ascontiguousarray(one).tobytes()
            A = np.diag(d[i]) + U[i] @ U[i].T
            left = np.linalg.norm(A @ one - B[i])
            assert left <= 1e-13 * np.linalg.norm(A) * np.linalg.norm(one)
