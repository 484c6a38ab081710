"""Operators without numbers of their own: each call's dtype is that of its own vector."""

import numpy as np
import pytest

import pylinop as pl

ZERO = {
    "Zeros": lambda: pl.Zeros((3, 3)),
    "difference": lambda: (lambda A: A - A)(pl.Dense(np.ones((3, 3), "f4"))),
    "multiple": lambda: 0 * pl.Dense(np.ones((3, 3), "f4")),
    "product": lambda: pl.Zeros((3, 3)) @ pl.Dense(np.ones((3, 3), "f4")),
}


@pytest.mark.parametrize("kind", ZERO)
def test_the_dtype_follows_each_vector(kind):
    Z = ZERO[kind]()
    for dtype in ("f4", "f8", "c8", "f4", "c16", "f8"):
        for _ in range(3):
            y = Z @ np.ones(3, dtype)
            assert y.dtype == np.result_type("f4", dtype), dtype
            assert not y.any()


@pytest.mark.parametrize("kind", ZERO)
def test_what_is_no_number_is_refused_after_numbers_too(kind):
    Z = ZERO[kind]()
    for _ in range(3):
        Z @ np.ones(3)
    with pytest.raises(TypeError):
        Z @ np.array(["a", "b", "c"])
    swapped = np.ones(3).astype(">f8")
    assert (Z @ swapped).dtype == np.float64


WEAK = [
    pl.Identity(4),
    pl.Permutation([1, 0, 3, 2]),
    pl.Kron(pl.Identity(2), pl.Permutation([1, 0])),
    pl.BlockDiag(pl.Identity(2), pl.Permutation([1, 0])),
    2 * pl.Identity(4),
    pl.Identity(4) @ pl.Permutation([1, 0, 3, 2]),
]


@pytest.mark.parametrize("dtype", [int, bool, "int8", "uint16"])
@pytest.mark.parametrize("i", range(len(WEAK)))
def test_solutions_are_floats(i, dtype):
    A = WEAK[i]
    b = np.array([1, 0, 1, 1]).astype(dtype)
    for x in (b, np.stack([b, b], axis=1)):
        want = np.linalg.solve(A.toarray(), x.astype(float))
        for got in (pl.solve(A, x), pl.solve(A, x.tolist()), np.linalg.solve(A, x)):
            assert got.dtype == np.float64
            np.testing.assert_allclose(got, want)
    assert pl.solve(pl.Identity(4), np.ones(4, "f4")).dtype == np.float32


@pytest.mark.parametrize("function", [pl.trace, pl.diagonal])
@pytest.mark.parametrize("x", [np.ones(3), [1.0, 2.0], 3.0, pl.lazy(np.ones(3))], ids=str)
def test_vectors_are_no_matrices(function, x):
    with pytest.raises((ValueError, TypeError), match="matrix|no array|two dim"):
        function(x)
