"""Diagonals and traces of products whose factors have few entries, few columns, or are picked: n
numbers, not n products with unit vectors; right on both sides of each threshold."""

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl

inv = pl.inv


def factors(n, k, dtype, seed=0):
    """Light factors of n rows: name -> operator."""
    r = np.random.default_rng(seed)

    def draw(*shape):
        x = r.standard_normal(shape)
        return (x + 1j * r.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(
            dtype
        )

    e = draw(n - 1) / 4
    q = sp.random_array((n, n), density=min(1.0, 3 / n), rng=r, format="csr").astype(dtype)
    u, v, c = draw(n, k), draw(n, k), draw(k, k)
    d = pl.Diag(2 + abs(draw(n)))
    low = pl.Dense(u) @ pl.Dense(v).H
    return {
        "diag": d,
        "tridiagonal": pl.Tridiagonal(e, 3 + draw(n) / 9, e[::-1].copy()),
        "sparse": pl.Sparse((q + 3 * sp.eye_array(n)).tocsr()),
        "permutation": pl.Permutation(r.permutation(n)),
        "update": pl.LowRankUpdate(pl.Diag(draw(n)), u, v, c),
        "sum": d - 0.5 * low,
        "turned": (pl.LowRankUpdate(d, u) + pl.Identity(n)).T,
        "low": pl.LowRank(u, v),
        "sparse + I": pl.Sparse(q.tocsr()) + pl.Identity(n),
        "inverse": inv(pl.Tridiagonal(e, 3 + abs(draw(n)), e)),
        # not light, but with a diagonal at hand
        "dense": pl.Dense(draw(n, n)),
        "toeplitz and diagonal": pl.Toeplitz(draw(n)) @ d,
        "kernel": pl.Kernel("rbf", r.standard_normal((n, 2))),
    }


@pytest.mark.parametrize("dtype", [np.float64, complex, np.float32])
@pytest.mark.parametrize("n, k", [(40, 5), (40, 6), (12, 1), (7, 1)])
def test_values_of_products_of_two_and_three(n, k, dtype):
    made = factors(n, k, dtype)
    tol = 2e-4 if dtype == np.float32 else 1e-11
    middle = pl.Diag(np.linspace(1, 2, n).astype(dtype))
    for a, A in made.items():
        for b, B in made.items():
            for op in (A @ B, A @ middle @ B, A @ B @ A.H):
                dense = (op @ np.eye(n, dtype=dtype)).astype(complex)
                size = abs(dense).max() + 1
                got = op.diagonal()
                assert abs(got - np.diag(dense)).max() <= tol * size * n, (a, b)
                assert abs(op.trace() - np.trace(dense)) <= tol * size * n * n, (a, b)
                assert abs(op.diagonal(2) - np.diag(dense, 2)).max() <= tol * size * n, (a, b)


@pytest.mark.parametrize("what", ["Selection", "Permutation"])
def test_picked_entries(what):
    r = np.random.default_rng(1)
    n = 30
    index = r.integers(-n, n, 12) if what == "Selection" else r.permutation(n)
    S = pl.Selection(index, n) if what == "Selection" else pl.Permutation(index)
    c = np.exp(-np.arange(n) / 3.0)
    U = r.standard_normal((n, 3))
    middles = {
        "toeplitz": pl.Toeplitz(c),
        "sum": pl.Toeplitz(c) + pl.Diag(np.arange(n)),
        "kron": pl.Kron(r.standard_normal((5, 5)), r.standard_normal((6, 6))),
        "update": pl.LowRankUpdate(pl.Diag(c), U),
        "inverse": inv(pl.Tridiagonal(np.ones(n - 1), np.full(n, 3.0), np.ones(n - 1))),
        "dense": pl.Dense(r.standard_normal((n, n)) + 1j),
    }
    for name, A in middles.items():
        for op in (S @ A @ S.T, S @ A @ S.H):
            dense = S.toarray() @ A.toarray() @ S.toarray().T
            np.testing.assert_allclose(op.diagonal(), np.diag(dense), atol=1e-12, err_msg=name)
            np.testing.assert_allclose(op.trace(), np.trace(dense), atol=1e-11, err_msg=name)
            np.testing.assert_allclose(op.diagonal(1), np.diag(dense, 1), atol=1e-12)


def test_an_index_out_of_range_is_found():
    index = np.arange(4)
    op = (lambda S: S @ pl.Toeplitz(np.ones(9)) @ S.T)(pl.Selection(index, 9))
    index[2] = 9
    with pytest.raises(IndexError):
        op.diagonal()


@pytest.mark.parametrize("m, n", [(3, 40), (40, 3), (20, 40), (21, 40), (40, 21), (1, 9)])
def test_of_few_rows_or_columns(m, n):
    r = np.random.default_rng(2)
    k = max(m, n)
    W = pl.LowRankUpdate(pl.Diag(1 + r.random(k)), r.standard_normal((k, 2)))
    S = (lambda x: pl.Dense(x @ x.T + k * np.eye(k), "pos"))(r.standard_normal((k, k)))
    X = pl.Dense(r.standard_normal((m, n)))
    for A in (W, inv(W), inv(S), pl.Kron(np.eye(k), [[2.0]]), inv(S) @ W):
        op = X @ A if m < n else A @ X
        dense = X.toarray() @ A.toarray() if m < n else A.toarray() @ X.toarray()
        np.testing.assert_allclose(op.diagonal(), np.diag(dense), rtol=0, atol=1e-10)
        np.testing.assert_allclose(op.diagonal(-1), np.diag(dense, -1), rtol=0, atol=1e-10)


@pytest.mark.parametrize("m, n", [(0, 0), (0, 5), (5, 0)])
def test_of_no_rows_or_columns(m, n):
    op = pl.Block([[pl.Zeros((m, 4)), pl.Zeros((m, 1))]]) @ pl.LowRankUpdate(np.eye(5), np.ones(5))
    op = op @ pl.Kron(pl.Zeros((5, n)), [[1.0]])
    assert op.diagonal().shape == (0,)
    assert op.toarray().shape == (m, n)


def test_no_unit_vectors():
    n, k = 3000, 4
    made = factors(n, k, np.float64)
    few = ("diag", "tridiagonal", "sparse", "update", "sum", "turned")
    for a in ("update", "sum", "turned"):
        for b in few:
            for op in (made[a] @ made[b], made[b] @ made[a] @ made["diag"]):
                for what in ("diagonal", "trace"):
                    assert op.explain(what).flops < 400 * n, (a, b, what)
    assert (made["inverse"] @ made["update"]).explain("diagonal").flops < 400 * n
    assert (made["sparse + I"] @ made["sparse"]).explain("diagonal").flops < 100 * n
    S = pl.Selection(np.arange(0, n, 7), n)
    assert (S @ made["sparse"] @ S.T).explain("diagonal").flops < 3 * n
    U = pl.Dense(np.ones((n, k)))
    assert (U.T @ inv(made["diag"] + U @ U.T)).explain("diagonal").flops < 1000 * n
    assert (inv(made["diag"] + U @ U.T) @ U).explain("diagonal").flops < 1000 * n


def test_singular_and_integer_factors_are_as_before():
    n = 24
    low = pl.LowRank(np.ones((n, 1)))
    singular = inv(pl.Diag(np.r_[0.0, np.ones(n - 1)]))
    with pytest.raises(np.linalg.LinAlgError):
        (singular @ (pl.Diag(np.ones(n)) + low)).diagonal()
    d = np.full(n, 100, np.int8)
    op = pl.Diag(d) @ pl.LowRankUpdate(pl.Diag(d), np.ones((n, 1), np.int8))
    dense = pl.Diag(d).toarray() @ pl.LowRankUpdate(pl.Diag(d), np.ones((n, 1), np.int8)).toarray()
    np.testing.assert_array_equal(op.diagonal(), np.diag(dense))


@pytest.mark.parametrize("n", [40, 160])
def test_one_matrix_between_sums_of_pairs_is_not_formed(n):
    r = np.random.default_rng(n)
    K, D = pl.Kernel("matern32", r.standard_normal((n, 2))), pl.Diag(r.uniform(1, 2, n))
    low = pl.LowRank(*r.standard_normal((2, n, 2)))
    pairs = pl.Dense(r.standard_normal((n, 1))) @ pl.Dense(r.standard_normal((1, n)))
    for A in (
        (low + pl.Identity(n)) @ K,
        (low + pairs - 2 * D) @ D @ K @ D,
        D @ K @ (2 * low + D),
        (D @ K).T @ (low + pairs + pl.Identity(n)),
        (low + D) @ K @ (pairs + pl.Identity(n)),
    ):
        dense = A @ np.eye(n)
        for f, expected in ((pl.diagonal, np.diag(dense)), (pl.trace, np.trace(dense))):
            with pl.explaining() as e:
                found = f(A)
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-10)
            whole = [s["name"] for s in e.steps if f"{n}, {n}" in s["writes"] and s.get("took")]
            assert whole == []
