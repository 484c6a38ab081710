"""Kinds of nested lists that hold LazyArrays: a list is one array, as a list of numbers is."""

import numpy as np
import pytest
import scipy.sparse as sp
from gradients.differences import check, check_second

import pylinop as pl

ONES = np.ones(2)
KINDS = {
    "Diag": lambda a: pl.Diag([a[0] ** 2 + 1, a[1] ** 2 + 2]),
    "Diag of a tuple": lambda a: pl.Diag((a[0] ** 2 + 1, 2)),
    "Diag, one number twice": lambda a: pl.Diag([a[0] + 2, a[0] + 2]),
    "Diag of vectors": lambda a: pl.Diag([a[:2] + 1, a[1:] + 3]),
    "Toeplitz": lambda a: pl.Toeplitz([a[0] + 4, a[1]]),
    "Tridiagonal": lambda a: pl.Tridiagonal([a[0]], [a[0] + 4, a[1] + 5.0], [a[2]]),
    "LowRank of rows": lambda a: pl.LowRank([[a[0]], [a[1]]]) + pl.Identity(2),
    "LowRank of a list": lambda a: pl.LowRank([a[0], a[1]]) + pl.Identity(2),
    "LowRank of vectors": lambda a: pl.LowRank(a[:2], a[1:]) + 3 * pl.Identity(2),
    "LowRankUpdate": lambda a: pl.LowRankUpdate(pl.Diag([a[0] + 3, 2.0]), a[:2], V=[a[2], 1.0]),
    "Root of a vector": lambda a: pl.Root(a[1:]) + pl.Identity(2),
    "Dense": lambda a: pl.Dense([[a[0] + 4, a[1]], [1, a[2] + 3]]),
    "Dense of rows": lambda a: pl.Dense([a[:2], a[:0:-1]]),
    "Kernel": lambda a: (
        pl.Kernel("rbf", [[a[0], 1.0], [2.0, a[1]]], length_scale=[a[2], 2.0]) + pl.Identity(2)
    ),
    "Circulant": lambda a: pl.Circulant([a[0] + 5, a[2]]),
    "Banded": lambda a: pl.Banded((0, 1), [[0.0, a[0]], [a[1] + 3, a[2] + 3]]),
    "Householder": lambda a: pl.Householder([a[0], a[1]]) @ pl.Diag(a[1:]),
    "Sparse": lambda a: pl.Sparse(sp.eye_array(2, format="csr"), [a[0] + 2, a[1] + 2]),
    "Kron": lambda a: pl.Kron([[a[0] + 2]], [[a[1] + 1, a[2]], [0.5, 2.0]]),
    "Kron of one list": lambda a: pl.Kron([[[a[0] + 2]], pl.Diag(a[1:] + 1)]),
    "BlockDiag": lambda a: pl.BlockDiag([[a[0] + 2]], [[a[1] + 1]]),
    "Block": lambda a: pl.Block([[[[a[0] + 2]], [[a[1]]]], [None, [[a[2] + 3]]]]),
    "BlockTridiagonal": lambda a: pl.BlockTridiagonal([[[a[0]]]], [[[a[1] + 3]], [[a[2] + 4]]]),
    "Congruence": lambda a: pl.Congruence([[a[0] + 3, a[1]], [0.0, 2.0]], pl.Identity(2)),
    "QuasiSeparable": lambda a: pl.QuasiSeparable(
        [a[0] + 4, 5.0], [[a[0]], [1.0]], [[a[1]], [2.0]], [[a[2]], [0.5]]
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_list_is_an_array(name):
    make, at = KINDS[name], np.array([0.3, 0.7, 1.1])

    def f(a):
        K = make(a)
        return np.sum(pl.slogdet(K)[1]) + np.sum((K @ ONES) ** 2)

    check(f, at)
    check_second(f, at)
    K = make(pl.lazy(at))
    numbers = make(at)
    assert K.shape == numbers.shape
    assert np.array_equal(K.toarray(), numbers.toarray())


def test_parts_that_do_not_fit():
    with pytest.raises(ValueError, match="shape"):
        pl.grad(lambda a: pl.logdet(pl.Dense([a, a[:1]])))(ONES)


def test_masked_arrays():
    a = np.ma.array([1.0, 2.0], mask=[False, True])
    f = lambda x: np.sum(x * x)
    for ask in (
        lambda: pl.lazy(a),
        lambda: pl.grad(f)(a),
        lambda: pl.hvp(f)(ONES, a),
        lambda: pl.vjp(lambda x: 2 * x, ONES)[1](a),
        lambda: pl.program(lambda x: 2 * x).cut(ONES)[1](a),
        lambda: pl.gradients(2 * pl.lazy(ONES), ONES, cotangent=a),
        lambda: pl.Diag([pl.lazy(1.0), a[1]]),
        lambda: pl.Dense([pl.lazy(ONES), a]),
        lambda: pl.norm(a),
    ):
        with pytest.raises(TypeError, match="masked arrays are not taken"):
            ask()
