"""Derivatives of small matrices whose formulas are sums of many products by their structure: as
arrays. The same numbers as of dense arrays, at sizes on both sides of where that is so."""

import numpy as np
import pytest
import scipy.sparse
from gradients.differences import check, check_second

import pylinop as pl
from pylinop._gradients.dense_way import simplified

DTYPES = ("float64", "complex128", "float32", "complex64")


def drawn(rng, *shape, dtype="float64"):
    a = rng.standard_normal(shape)
    a = a + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else a
    return (a / max(shape[-1], 1) ** 0.5).astype(dtype)


def blocks(stack):
    """A BlockDiag as a dense array, of a LazyArray."""
    count, rows, columns = stack.shape
    on = np.kron(np.eye(count), np.ones((rows, columns)))
    wide = np.reshape(stack, (count * rows, columns)) @ np.tile(np.eye(columns), (1, count))
    return wide * on.astype(stack.dtype)


def squares(stack):
    return stack @ np.swapaxes(np.conj(stack), 1, 2)


def formula(kind, low_rank, eye):
    """|inv(B + U U^H) (X + Y) inv(B)|^2, a trace and entries of it."""

    def f(S, X, U):
        stack = squares(S) + np.eye(S.shape[1], dtype=S.dtype)
        B, Y = kind(stack), kind(X)
        A = B + low_rank(U) + 0.5 * eye(U)
        K = pl.inv(A) @ (Y + low_rank(U) - 2 * B) @ pl.inv(B)
        rest = np.real(np.conj(K[0, 1]) * K[1, 0]) + np.real(pl.trace(K @ Y))
        return np.sum(np.abs(K) ** 2) + rest + pl.slogdet(A)[1]

    return f


def eye_of(U):
    return pl.Identity(U.shape[0], dtype=U.dtype)


def given(rng, count, rows, dtype):
    n = count * rows
    return tuple(
        drawn(rng, *shape, dtype=dtype)
        for shape in ((count, rows, 2), (count, rows, rows), (n, min(2, n)))
    )


by_structure = formula(pl.BlockDiag, pl.LowRank, eye_of)
by_arrays = formula(blocks, lambda U: U @ np.conj(U).T, lambda U: np.eye(len(U), dtype=U.dtype))


def same(found, right, eps):
    for a, b in zip(found, right, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        assert np.abs(a - b).max() <= eps * max(np.abs(b).max(), 1)


def places(f, *arrays):
    leaves = [pl.lazy(a) for a in arrays]
    value = f(*leaves)
    return simplified(value, {id(x): x for x in leaves}) is not value


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("count", "rows"),
    [(2, 1), (1, 5), (2, 17), (5, 4), (17, 3), (64, 2), (43, 3), (4, 56), (5, 45)],
)
def test_as_of_dense_arrays(count, rows, dtype):
    rng = np.random.default_rng(count + 100 * rows)
    P, V = given(rng, count, rows, dtype), given(rng, count, rows, dtype)
    wide = "complex128" if np.dtype(dtype).kind == "c" else "float64"
    eps = 1e-9 if dtype == wide else 2e-3
    by = (0, 1, 2)
    value, gradient = pl.value_and_grad(by_arrays, by)(*(a.astype(wide) for a in P))
    second = pl.hvp(by_arrays, by)(*(a.astype(wide) for a in P), tuple(a.astype(wide) for a in V))
    for _ in range(3):  # what comes again is a program
        v, g = pl.value_and_grad(by_structure, by)(*P)
        h = pl.hvp(by_structure, by)(*P, V)
        assert v.dtype == np.zeros(0, dtype).real.dtype
        assert abs(v - value) <= eps * abs(value)
        same(g, [a.astype(dtype) for a in gradient], eps)
        same(h, [a.astype(dtype) for a in second], eps)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(("count", "rows"), [(2, 3), (7, 2), (3, 1)])
def test_differences(count, rows, dtype):
    P = given(np.random.default_rng(count), count, rows, dtype)
    with pl.config(check_plans=True):
        check(by_structure, *P)
        check_second(by_structure, *P)
    with pl.config(check_plans=True, verify=True):
        check(by_structure, *P)


def test_the_plan_does_not_grow_with_the_blocks():
    rng = np.random.default_rng(3)
    P, V = given(rng, 60, 2, "float64"), given(rng, 60, 2, "float64")
    assert places(by_structure, *P)
    with pl.explaining() as seen:
        pl.hvp(by_structure, (0, 1, 2))(*P, V)
    assert len(seen.steps) < 2500  # a million by the terms


def test_where_structure_is_kept():
    rng = np.random.default_rng(4)
    large = given(rng, 20, 18, "float64")
    assert not places(by_structure, *large)
    S, _, U = given(rng, 10, 3, "float64")
    y = drawn(rng, 30)

    def likelihood(S, U):
        A = pl.BlockDiag(squares(S) + np.eye(3)) + pl.LowRank(U)
        return pl.logdet(A) + y @ pl.solve(A, y)

    def one_inverse(S, U):
        return pl.trace(pl.inv(pl.BlockDiag(squares(S) + np.eye(3)) + pl.LowRank(U)))

    assert not places(likelihood, S, U)
    assert not places(one_inverse, S, U)
    assert not places(by_structure, *given(rng, 50, 4, "float64"))


@pytest.mark.parametrize(("rows", "small"), [(160, True), (164, False)])
def test_sizes(rows, small):
    rng = np.random.default_rng(rows)
    S, X, U = given(rng, rows // 4, 4, "float64")

    def sums(S, X, U):
        B, low = pl.BlockDiag(squares(S) + np.eye(4)), pl.LowRank(U)
        return pl.trace(pl.inv(B + low) @ (pl.BlockDiag(X) + low))

    def between(S, X, U):
        A = pl.BlockDiag(squares(S) + np.eye(4)) + pl.LowRank(U)
        return pl.trace(pl.inv(A) @ pl.BlockDiag(X) @ pl.inv(A))

    assert places(sums, S, X, U) is small
    assert places(between, S, X, U)


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("shape", [(3, 2, 4), (4, 1, 2), (9, 4, 3), (70, 3, 5), (300, 4, 1)])
def test_blocks_that_are_not_square(shape, dtype):
    rng = np.random.default_rng(shape[0])
    count, rows, columns = shape
    S, T = drawn(rng, *shape, dtype=dtype), drawn(rng, *shape, dtype=dtype)
    y = drawn(rng, count * rows, dtype=dtype)
    D = drawn(rng, count * columns, dtype=dtype)

    def of(kind, diag, solve):
        def f(S, D):
            K = kind(S) @ diag(D) @ np.conj(kind(S)).T
            A = K @ np.conj(K).T + 2 * np.eye(count * rows, dtype=dtype)
            return np.real(np.vdot(y, solve(A, y))) + np.sum(np.abs(K @ y) ** 2)

        return f

    mine = of(pl.BlockDiag, pl.Diag, pl.solve)
    dense = of(blocks, lambda d: d * np.eye(count * columns, dtype=dtype), pl.solve)
    eps = 2e-3 if dtype == "float32" else 1e-9
    same(pl.grad(mine, (0, 1))(S, D), pl.grad(dense, (0, 1))(S, D), eps)
    same(pl.hvp(mine, (0, 1))(S, D, (T, D)), pl.hvp(dense, (0, 1))(S, D, (T, D)), eps)


def test_kinds_beside_one_another():
    rng = np.random.default_rng(5)
    n = 24
    W = scipy.sparse.random(n, n, 0.1, format="csr", random_state=6)
    X, Y, d, U = drawn(rng, 4, 4), drawn(rng, 6, 6), 2 + rng.random(n), drawn(rng, n, 2)

    def of(kron, sparse, diag, low_rank):
        def f(X, Y, d, U):
            K = kron(X @ X.T, Y @ Y.T)
            A = K + diag(d) + sparse @ sparse.T + low_rank(U)
            C = pl.inv(A) @ (K + low_rank(U)) @ pl.inv(A) @ (K - diag(d))
            return pl.trace(C @ C.T) + np.sum(np.sin(C[2:5, ::3])) + pl.logdet(A)

        return f

    S = pl.Sparse(W)
    mine = of(pl.Kron, S, pl.Diag, pl.LowRank)
    dense = of(np.kron, pl.lazy(W.toarray()), lambda d: d * np.eye(n), lambda U: U @ U.T)
    P = (X, Y, d, U)
    assert places(mine, *P)
    by = (0, 1, 2, 3)
    same(pl.grad(mine, by)(*P), pl.grad(dense, by)(*P), 1e-9)
    same(pl.hvp(mine, by)(*P, P), pl.hvp(dense, by)(*P, P), 1e-9)
    leaves = [pl.lazy(x) for x in P]
    found = pl.evaluate(*pl.gradients(mine(*leaves), leaves))
    same(found, pl.grad(dense, by)(*P), 1e-9)


def test_by_operators():
    rng = np.random.default_rng(7)
    S, U = squares(drawn(rng, 6, 3, 3)) + np.eye(3), drawn(rng, 18, 2)

    def f(B, L):
        K = pl.inv(B + L) @ (B - L) @ pl.inv(B)
        return pl.trace(K @ K.T) + pl.trace(K)

    def g(S, U):
        return f(pl.BlockDiag(S), pl.LowRank(U))

    b, low = pl.grad(f, (0, 1))(pl.BlockDiag(list(S)), pl.LowRank(U))
    s, u = pl.grad(g, (0, 1))(S, U)
    assert isinstance(b, pl.BlockDiag) and isinstance(low, pl.LowRank)
    same([b.toarray()], [pl.BlockDiag(list(s)).toarray()], 1e-10)
    check(g, S, U)


def test_a_callable_stays_one():
    rng = np.random.default_rng(8)
    M, S, U = drawn(rng, 12, 12), drawn(rng, 4, 3, 2), drawn(rng, 12, 2)
    calls = []

    def matvec(x):
        calls.append(x.shape)
        return M @ x

    op = pl.MatVec((12, 12), matvec, rmatvec=lambda x: M.T @ x, dtype="float64")

    def f(S, U):
        B = pl.BlockDiag(squares(S) + np.eye(3))
        return np.sum((op @ ((pl.inv(B + pl.LowRank(U)) @ (B + pl.LowRank(U.copy()))) @ M)) ** 2)

    found = pl.grad(f, (0, 1))(S, U)
    assert calls
    assert all(np.isfinite(x).all() for x in found)


def test_singular_and_nan():
    rng = np.random.default_rng(9)
    S, X, U = given(rng, 3, 2, "float64")

    def f(S, U):
        B = pl.BlockDiag(S)
        return np.sum((pl.inv(B + 0 * pl.LowRank(U)) @ (B + pl.LowRank(U)) @ B) ** 2)

    with pytest.raises(np.linalg.LinAlgError):
        pl.grad(f, (0, 1))(np.zeros((3, 2, 2)), 0 * U)
    X[0, 0, 0] = np.nan
    assert np.isnan(pl.grad(by_structure, 0)(S, X, U)).any()


def test_long_sums_are_counted_once():
    S = drawn(np.random.default_rng(10), 3, 2, 2)

    def f(S):
        B = pl.BlockDiag(S)
        K = B
        for _ in range(3000):
            K = K + B
        return pl.trace(pl.inv(B) @ K)

    assert places(f, S)
