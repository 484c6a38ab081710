"""What a constructor was given is read by the names in the table of kinds, whatever a subclass does
with those names, and only of what a constructor made."""

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl

C = np.array([4.0, 1, 2])
A = np.array([[4.0, 1, 2], [1, 5, 0], [2, 0, 6]])
ARGUMENTS = {
    "Dense": (A, "sym"),
    "Identity": (3, "float32"),
    "Zeros": ((3, 4), "float32"),
    "Diag": (C, 1, (3, 5)),
    "Selection": ([0, 2], 3, "float32"),
    "Kron": (A, np.eye(2)),
    "Toeplitz": (C, C[:2]),
    "LowRank": (A[:, :2], A[:, 1:], np.eye(2)),
    "Sparse": (sp.csr_array(A),),
    "Permutation": ([1, 0, 2], "float32"),
    "Tridiagonal": (C[:2], C, C[1:], "her"),
    "Banded": ((1, 0), np.ones((2, 3)), "gen"),
    "Triangular": (A, False, True),
    "Full": ((3, 4), 2.5),
    "Householder": (C, np.array(0.5)),
    "FiniteDifference": (6, 2, "central", "periodic", "float32"),
    "Laplacian": ((3, 2), "dirichlet", "float32"),
    "Circulant": (A, 2),
    "Hankel": (C, C[::-1]),
    "MultilevelToeplitz": (np.ones((3, 5)), (2, 3)),
    "Convolution": (C, 5, "same"),
    "DFT": (4, "ortho", "complex64"),
    "DCT": (4, 3, "forward", "float32"),
    "Hadamard": (4, "float32"),
    "BlockDiag": (A, np.eye(2)),
    "Block": ([[A, np.eye(3)], [np.eye(3), A]],),
    "LowRankUpdate": (pl.Identity(3), A[:, :2], A[:, 1:], np.eye(2)),
    "KronSum": (A, np.eye(2)),
    "Congruence": (A, np.eye(3)),
    "Root": (A,),
    "Eigen": (np.eye(3), C),
    "HadamardProduct": (A, np.eye(3)),
    "KhatriRao": (A, np.eye(3)),
    "SparseTriangular": (pl.Sparse(sp.csr_array(A)), False, True),
    "QuasiSeparable": (C, np.ones((3, 2)), np.ones((3, 2)), np.ones((3, 2)), True),
    "Kernel": ("rbf", A, A[:2], 2.0, 0.5, None, None, None, None),
    "BlockTridiagonal": (np.ones((1, 2, 2)), np.ones((2, 2, 2)), np.ones((1, 2, 2)), "gen"),
    "Reflections": (A[:2], 3),
}
TABLE = {row["name"]: [p["name"] for p in row["params"]] for row in pl.kinds() if row["params"]}


def test_all_kinds_are_here():
    assert set(ARGUMENTS) == set(TABLE)


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_each_name_gives_what_was_given(kind):
    op = getattr(pl, kind)(*ARGUMENTS[kind])
    names = TABLE[kind]
    if names == ["ops"]:
        assert op._given("ops") is op._init
    elif names == ["blocks"]:
        assert [f for row in op._given("blocks") for f in row] == list(op._init)
        assert [len(row) for row in op._given("blocks")] == [2, 2]
    else:
        assert len(names) == len(op._init)
        for name, value in zip(names, op._init, strict=True):
            assert op._given(name) is value
        several = op._given(*names, names[0])
        assert all(a is b for a, b in zip(several, (*op._init, op._init[0]), strict=True))
    for name in set(names) - {"shape", "dtype"}:
        assert name == "blocks" or getattr(op, name) is op._given(name)


def test_defaults_are_given_too():
    assert pl.Toeplitz(C)._given("r") is None
    assert pl.Triangular(A)._given("lower", "unit_diagonal") == (True, False)
    assert pl.DFT(4)._given("n", "norm", "dtype") == (4, None, None)
    assert pl.Dense(A)._given("assume_a") is None
    assert pl.aslinearoperator(A)._given("a") is A


def test_of_a_dtype_that_c_does_not_know():
    c = C.astype(np.float16)
    assert pl.Toeplitz(c)._head == "opaque" and pl.Toeplitz(c)._given("c") is c
    assert pl.Diag(c, -1)._given("k") == -1


@pytest.mark.parametrize(
    "op",
    [
        2 * pl.Diag(C),
        pl.Toeplitz(C)[1:],
        pl.Dense(A).T,
        pl.Dense(A) + pl.Diag(C),
        pl.MatVec((3, 3), lambda x: x, dtype=float),
    ],
    ids=lambda op: op._by or "matvec",
)
def test_results_of_expressions_have_no_parameters(op):
    with pytest.raises(AttributeError, match=r"result of an expression.*\.args"):
        op._given("a")


@pytest.mark.parametrize("name", ["d", "", "cc", "dtype", 0, None])
def test_names_of_other_kinds_are_refused(name):
    with pytest.raises(AttributeError, match="Toeplitz has no parameter " + repr(name)):
        pl.Toeplitz(C)._given(name)
    with pytest.raises(AttributeError, match="Toeplitz has no parameter " + repr(name)):
        pl.Toeplitz(C)._given("c", name)


class Spring(pl.Diag):
    """A diagonal of stiffnesses; d is the damping of them all, and k their unit."""

    d = "none"
    k = 3.0


class Light(pl.Toeplitz):
    c = 299_792_458


class Grid(pl.Banded):
    @property
    def ab(self):
        raise NotImplementedError


def test_subclasses_may_use_the_names_for_their_own():
    s = Spring(np.array([3.0, 1, 2]), 0)
    assert s._given("d", "k")[1] == 0 and s.k == 3.0
    np.testing.assert_array_equal(pl.svdvals(s), [3, 2, 1])
    off = Spring(np.array([3.0, 1]), 1)
    np.testing.assert_allclose(pl.svdvals(off), [3, 1, 0])
    u, v, w = pl.svd(off)
    np.testing.assert_allclose(np.asarray(u) * v @ np.asarray(w), off.toarray(), atol=1e-14)
    t = Light(np.array([2.0, -1, 0]))
    np.testing.assert_allclose(np.linalg.norm(t, 1), 4)
    g = Grid((1, 1), np.array([[0.0, 1, 1], [4, 4, 4], [1, 1, 0]]))
    np.testing.assert_allclose(pl.eigvalsh(g), np.linalg.eigvalsh(g.toarray()), rtol=1e-13)


def test_a_factor_that_an_expression_closed_to_is_no_reflection():
    """Q known to be unitary is asked of its parts, which need not be as constructed."""

    class Mine(pl.Dense):
        pass

    y = np.linalg.qr(np.arange(15.0).reshape(5, 3) ** 1.5 + np.eye(5, 3))[0]
    part = Mine(y)[:, :2]
    assert part._head == "dense" and part._init is None
    q = pl.LowRankUpdate(pl.Identity(5), part, part, pl.Dense(-2 * np.eye(2)))
    s = pl.svdvals(pl.Eigen(q, np.arange(1.0, 6)))
    np.testing.assert_allclose(s, [5, 4, 3, 2, 1], rtol=1e-12)
