"""Lists of matrices given to constructors mean these matrices; a vector is a column or an error."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

import pylinop as pl

A, B, C = 2 * np.eye(3), np.arange(9.0).reshape(3, 3), np.ones((2, 4))
LISTS = {
    "equal": [A, B],
    "unequal": [A, np.ones((2, 2))],
    "one": [B],
    "three": [A, B, np.eye(2)],
    "operators": [pl.Diag([1.0, 2]), pl.Dense(B)],
    "sparse": [sp.csr_array(A), B],
    "nested lists": [[[1.0, 2], [3, 4]], [[0.0, 1], [1, 0]]],
    "mixed": [pl.Identity(2), [[1.0, 2], [3, 4]]],
    "lazy": [pl.lazy(A), B],
}
MANY = {
    "Kron": pl.Kron,
    "KronSum": pl.KronSum,
    "BlockDiag": pl.BlockDiag,
    "block_diag": pl.block_diag,
}


@pytest.mark.parametrize("as_list", [list, tuple])
@pytest.mark.parametrize("kind", MANY)
@pytest.mark.parametrize("name", LISTS)
def test_a_list_means_the_matrices(kind, name, as_list):
    ops = LISTS[name]
    M, want = MANY[kind](as_list(ops)), MANY[kind](*ops)
    assert type(M) is type(want) and M.shape == want.shape
    assert name == "lazy" or len(M.ops) == len(ops)  # a kind of LazyArrays is one
    np.testing.assert_array_equal(M.toarray(), want.toarray())


def test_the_determinant_is_one_number():
    assert pl.logdet(pl.Kron([2 * np.eye(3), 3 * np.eye(3)])) == pytest.approx(9 * np.log(6))
    np.testing.assert_array_equal(pl.block_diag([A, C]).toarray(), scipy.linalg.block_diag(A, C))


@pytest.mark.parametrize("kind", [pl.KhatriRao, pl.HadamardProduct, pl.Congruence])
def test_of_two_operands(kind):
    np.testing.assert_array_equal(kind([A, B]).toarray(), kind(A, B).toarray())
    np.testing.assert_array_equal(kind((A, pl.Dense(B))).toarray(), kind(A, B).toarray())
    with pytest.raises(TypeError):
        kind([A, B, A])


@pytest.mark.parametrize("kind", [*MANY.values(), pl.KhatriRao, pl.HadamardProduct, pl.Congruence])
def test_a_list_among_operands_is_an_error(kind):
    for bad in ([A, B], (A, pl.Identity(3)), [A, C], [[[1.0]], [[2.0]]]):
        with pytest.raises(ValueError, match=f"is a list of {len(bad)} matrices: .*numpy.stack"):
            kind(bad, A)
        with pytest.raises(ValueError, match=f"is a list of {len(bad)} matrices: .*numpy.stack"):
            kind(A, bad)


@pytest.mark.parametrize("kind", MANY.values())
def test_a_list_of_rows_is_a_matrix_and_an_array_a_batch(kind):
    rows = [[1.0, 2], [3, 4]]
    np.testing.assert_array_equal(kind(rows).toarray(), kind(np.array(rows)).toarray())
    np.testing.assert_array_equal(kind(rows, rows).toarray(), kind(*[np.array(rows)] * 2).toarray())
    blocks = kind in (pl.BlockDiag, pl.block_diag)  # an array of matrices has its blocks
    assert kind(np.stack([A, B])).shape == ((6, 6) if blocks else (2, 3, 3))
    assert kind(np.stack([A, B]), np.eye(2)).ndim == 3
    with pytest.raises(TypeError, match="at least one"):
        kind([])


def test_a_copy_of_a_list():
    a = np.eye(2)
    K = pl.Kron([a, a], copy=True)
    a[0, 0] = 9
    np.testing.assert_array_equal(K.toarray(), np.eye(4))


@pytest.mark.parametrize("kind", [*MANY.values(), pl.KhatriRao, pl.HadamardProduct])
@pytest.mark.parametrize("u", [np.ones(5), [1.0, 2.0], (1, 2), pl.lazy(np.ones(3))])
def test_a_vector_is_an_error(kind, u):
    with pytest.raises(ValueError, match=rf"is a vector of shape \({len(u)},\), not a matrix"):
        kind(u, u)
    with pytest.raises(ValueError, match=r"is a vector of shape .*a\[:, None\]"):
        kind([np.ones(5), np.ones(5)])


@pytest.mark.parametrize("blocks", [[A, B], (A, B), [A], [A, [B]], [pl.Dense(A), B], [A[0], B[0]]])
def test_one_level_of_blocks_is_an_error(blocks):
    with pytest.raises(
        TypeError, match=r"row 0 is a .*: \[\[A, B\]\] puts blocks side by side, \[\[A\]"
    ):
        pl.Block(blocks)


def test_rows_of_blocks_in_arrays_of_objects():
    row = np.empty(2, object)
    row[:] = pl.Dense(A), pl.Dense(B)
    np.testing.assert_array_equal(pl.Block([row]).toarray(), np.hstack([A, B]))


def test_vectors_are_columns_of_low_rank():
    u, v = np.arange(5.0), np.ones(4) + 1j
    np.testing.assert_array_equal(pl.LowRank(u).toarray(), np.outer(u, u))
    np.testing.assert_array_equal(pl.LowRank(list(u)).toarray(), np.outer(u, u))
    np.testing.assert_array_equal(pl.LowRank(u, v).toarray(), np.outer(u, v.conj()))
    np.testing.assert_array_equal(pl.LowRank(u, v, [[2.0]]).toarray(), 2 * np.outer(u, v.conj()))
    np.testing.assert_array_equal(pl.LowRank(u[:, None], v).toarray(), np.outer(u, v.conj()))
    np.testing.assert_array_equal(pl.LowRank(pl.lazy(u)).toarray(), np.outer(u, u))
    np.testing.assert_array_equal(pl.LowRank(sp.coo_array(u)).toarray(), np.outer(u, u))
    update = pl.LowRankUpdate(pl.Identity(5), u)
    np.testing.assert_array_equal(update.toarray(), np.eye(5) + np.outer(u, u))
    np.testing.assert_allclose(pl.solve(update, u), np.linalg.solve(update.toarray(), u))
    np.testing.assert_array_equal(pl.Root(u).toarray(), np.outer(u, u))
    u[0] = 3  # borrowed, not copied
    np.testing.assert_array_equal(update.toarray(), np.eye(5) + np.outer(u, u))
    for bad in (lambda: pl.LowRank(A, None, u), lambda: pl.LowRankUpdate(u, A)):
        with pytest.raises(ValueError, match=r"(C|base) is a vector of shape \(5,\)"):
            bad()


@pytest.mark.parametrize("run", [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: b + a, lambda a, b: b - a,
])  # fmt: skip
def test_the_sum_with_a_vector_says_its_shape(run):
    for b in (np.ones(3), [1.0, 2, 3], np.ones(7)):
        with pytest.raises(ValueError, match=rf"vector of shape \({len(b)},\).*\(3, 3\): Diag"):
            run(pl.Dense(A), b)
    row = pl.Dense(np.ones((1, 3)))
    np.testing.assert_array_equal(run(row, np.ones(3)).toarray(), run(np.ones((1, 3)), np.ones(3)))
