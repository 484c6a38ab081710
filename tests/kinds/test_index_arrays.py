"""Permutation and Selection with an index that is none: the same error on every road."""

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl

ROADS = {
    "product": lambda A: A @ np.ones(A.shape[1]),
    "toarray": lambda A: A.toarray(),
    "diagonal": lambda A: A.diagonal(),
    "trace": lambda A: (A.T @ A).trace(),
    "norm": lambda A: np.linalg.norm(A, 1),
    "frobenius": lambda A: np.linalg.norm(A),
    "svdvals": lambda A: pl.svdvals(A),
    "tosparse": lambda A: A.tosparse(),
    "transposed": lambda A: A.T.tosparse("csc"),
    "scaled": lambda A: (2 * A).tosparse(),
    "gram": lambda A: (A.T @ A).tosparse(),
    "kron": lambda A: pl.Kron(A, np.eye(2)).tosparse(),
    "blocks": lambda A: pl.BlockDiag(A, A).tosparse(),
    "power": lambda A: (A @ A.T).tosparse(),
    "sparse_matmul": lambda A: pl.sparse_matmul(A, A.T),
    "scipy": lambda A: (A @ sp.eye_array(A.shape[1])).tosparse(),
    "longdouble": lambda A: A.astype(np.longdouble).toarray(),
}


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("index, n, error, match", [
    ([0, 3, 1], None, IndexError, "index 3 at position 1 is out of bounds for size 3"),
    ([0, -4, 1], None, IndexError, "index -4 at position 1"),
    ([0, 2, -1], None, ValueError, "holds each index once; -1 at position 2"),
    ([0, 1, 5, 2], 3, IndexError, "index 5 at position 2"),
    ([0, -4], 3, IndexError, "index -4 at position 1"),
])  # fmt: skip
def test_is_an_error(road, index, n, error, match):
    A = pl.Permutation(index) if n is None else pl.Selection(index, n)
    with pytest.raises(error, match=match):
        ROADS[road](A)


@pytest.mark.parametrize("road", ["tosparse", "product", "toarray"])
def test_an_index_overwritten(road):
    index = np.arange(5)
    A = pl.Permutation(index)
    ROADS[road](A)
    index[3] = 5
    with pytest.raises(IndexError, match="index 5 at position 3"):
        ROADS[road](A)


def test_of_no_columns():
    with pytest.raises(IndexError, match="size 0"):
        pl.Selection([0, 1], 0).tosparse()


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32, np.uint64, np.int64])
def test_indices_of_any_dtype(dtype):
    index = np.array([3, 0, 2, 120], dtype)
    for A in (pl.Selection(index, 300), pl.Selection(index, 300).astype(np.longdouble)):
        np.testing.assert_array_equal(A.toarray().astype(float), np.eye(300)[index])
    np.testing.assert_array_equal(pl.Selection(index, 300).tosparse().toarray(), np.eye(300)[index])
