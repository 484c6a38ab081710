"""What the core knows of an operator as it is written, against its entries: an answer that is not
None holds, of real and complex operands, and what C and Python ask is one."""

import numpy as np
import pytest
import ref
from samples import leaf

import pylinop as pl
from pylinop import _core
from pylinop._structured import properties, questions, unitary

PROPERTIES = {
    "hermitian": lambda a: np.allclose(a, a.conj().T, atol=1e-12),
    "semidefinite": lambda a: (
        np.allclose(a, a.conj().T, atol=1e-12)
        and np.linalg.eigvalsh(a).min(initial=0) >= -1e-10 * np.abs(a).max(initial=0)
    ),
    "unitary": lambda a: np.allclose(a.conj().T @ a, np.eye(len(a)), atol=1e-10),
    "regular": lambda a: np.linalg.matrix_rank(a) == len(a),
    "real": np.isrealobj,
    "diagonal": lambda a: not (a - np.diag(np.diagonal(a))).any(),
}


def composed(rng, dtype):
    """Operators whose properties follow from how they are written; and some of which none do."""

    def array(*shape):
        a = rng.standard_normal(shape)
        return a + 1j * rng.standard_normal(shape) if dtype == "complex128" else a

    X, Y, S = pl.Dense(array(6, 4)), pl.Dense(array(4, 4)), pl.Dense(array(4, 4))
    q = np.linalg.qr(array(4, 4))[0]
    Q = pl.Dense(q, "orthogonal")
    D = pl.Diag(rng.uniform(1, 2, 4))
    yield from (X.H @ X, X.T @ X, X @ X.H, X.H @ X + D, Y + Y.H, Y - Y.H, Y.H @ D @ Y, Y @ D @ Y)
    yield from (2j * (Y + Y.H), -2 * (X.H @ X), Q, Q.T @ Q, Q @ D @ Q.H, 2 * Q, Q.conj(), X, Y @ S)
    yield from (pl.Kron(X.H @ X, Y + Y.H), pl.Kron(Y, S), pl.BlockDiag(X.H @ X, D), D, 1j * D)
    yield from (pl.KronSum(Y + Y.H, D), pl.inv(X.H @ X), (Y + Y.H) ** 2, pl.LowRank(X, None))
    yield from (pl.LowRank(array(5, 2), array(5, 2)), pl.Identity(4), -pl.Identity(4))
    yield from (pl.Hadamard(4), pl.Hadamard(4) * 0.5, pl.Permutation([1, 2, 0]), pl.DFT(4, "ortho"))


def check(op):
    a, met = op.toarray(), 0
    for name, holds in PROPERTIES.items():
        known = op._known(name)
        assert known in (True, False, None)
        if known is True:
            assert holds(a), f"{op!r} is not {name}"
        if known is False:
            assert a.shape[0] != a.shape[1] or not holds(a), f"{op!r} is {name}"
        met += known is True
    assert op._known("rank") >= np.linalg.matrix_rank(a)
    below, above = op._known("band")
    assert not np.tril(a, -below - 1).any() and not np.triu(a, above + 1).any()
    return met


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_what_is_known_holds(dtype, rng):
    assert sum(check(op) for op in composed(rng, dtype)) > 30
    for kind in ref.LEAVES:
        d = None if kind == "MatVec" else leaf(kind, rng, 6, 6, dtype)
        if d is not None:
            check(ref.build(d))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_the_questions_say_the_same(dtype, rng):
    """`hermitian` and `is_unitary` are true where the core says so, and never where it is not."""
    for op in composed(rng, dtype):
        a = op.toarray()
        if op._known("hermitian"):
            assert questions.hermitian(op)
        if questions.hermitian(op):
            assert PROPERTIES["hermitian"](a), repr(op)
        if unitary.is_unitary(op):
            assert PROPERTIES["unitary"](a), repr(op)


@pytest.mark.parametrize(
    "make, holds",
    [
        (lambda: -pl.Identity(3), True),
        (lambda: 1j * pl.DFT(4, "ortho"), True),
        (lambda: -1 * (pl.DFT(4, "ortho") @ pl.Permutation([1, 2, 3, 0])), True),
        (lambda: pl.Dense(np.eye(3), "orthogonal") @ -pl.Identity(3), True),
        (lambda: 2 * pl.Identity(3), False),
        (lambda: pl.DFT(4), False),
        (lambda: -1 * pl.Dense(np.ones((3, 4))), False),
    ],
)
def test_multiples_of_modulus_one_are_unitary(make, holds):
    assert unitary.is_unitary(make()) is holds
    a = make().toarray()
    assert a.shape[0] != a.shape[1] or PROPERTIES["unitary"](a) == holds


def long_product(n):
    Q = pl.Permutation([1, 2, 3, 0])
    for i in range(n):
        Q = pl.DFT(4, "ortho").H @ Q if i % 2 else Q @ pl.DCT(4, norm="ortho")
    return Q


@pytest.mark.parametrize(
    "make, holds",
    [
        (lambda: long_product(100), True),
        (
            lambda: pl.Kron(pl.DFT(2, "ortho"), pl.Kron(pl.Permutation([1, 0]), pl.Identity(2))),
            True,
        ),
        (lambda: pl.BlockDiag(1j * pl.Identity(2), pl.Dense(np.eye(2), "orthogonal")).H, True),
        (lambda: pl.Dense(np.eye(4)[::-1], "orthogonal") ** 3, True),
        (lambda: pl.inv(pl.DFT(4, "ortho") @ pl.Dense(np.eye(4), "orthogonal")), True),
        (lambda: (0.6 + 0.8j) * pl.DFT(3, "ortho"), True),
        (lambda: pl.DFT(5, "ortho").real - pl.DFT(5, "ortho").imag, True),
        (lambda: pl.DFT((2, 3), "ortho").real + pl.DFT((2, 3), "ortho").imag, True),
        (lambda: unitary.sine(6, np.float64) @ unitary.sine(6, np.float64), True),
        (lambda: unitary.sine(3, np.float32).T, True),
        (lambda: pl.DFT(5, "ortho").real - pl.DFT((5, 1), "ortho").real, False),
        (lambda: 2 * unitary.sine(6, np.float64), False),
        (lambda: -(0.5**0.5) * pl.DFT(8)[1:4, 1:4].real, False),
        (lambda: -(0.5**0.5) * pl.DFT((4, 2))[1:4, 1:4].imag, False),
        (lambda: pl.Kron(pl.Identity(2), pl.DFT(3)), False),
        (lambda: pl.Dense(np.eye(4), "orthogonal") + pl.Identity(4), False),
        (lambda: pl.Selection([0, 1], 3) @ pl.Identity(3), False),
    ],
)
def test_what_is_unitary_as_it_is_written(make, holds):
    op = make()
    assert unitary.is_unitary(op) is holds
    assert (op._known("unitary") is True) is holds
    a = op.toarray()
    square = a.shape[0] == a.shape[1]
    assert (square and np.allclose(a.conj().T @ a, np.eye(len(a)), atol=1e-6)) == holds


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_reflections_are_looked_at(rng, dtype):
    """I + Y C Y^H is unitary by its numbers: known to be where these are, and no longer then."""
    u = rng.standard_normal((9, 3)) + (1j * rng.standard_normal((9, 3)) if dtype[0] == "c" else 0)
    Q, _ = unitary.completed(u)
    y, c = Q._given("U", "C")
    for op in (Q, Q.H, Q @ pl.Kron(pl.Identity(3), pl.DFT(3, "ortho")).H, pl.Kron(Q, Q)):
        assert op._known("unitary") is not True
        assert unitary.is_unitary(op) == PROPERTIES["unitary"](op.toarray())
    assert unitary.is_unitary(Q) and unitary.is_unitary(pl.Kron(Q, Q.H))
    np.asarray(c._given("a"))[0, 0] *= 1.01
    assert not unitary.is_unitary(Q) and not unitary.is_unitary(pl.BlockDiag(pl.Identity(2), Q))
    assert not unitary.is_unitary(pl.LowRankUpdate(2 * pl.Identity(9), y, None, c))


def test_an_assumption_that_is_to_be_tested_is_no_property():
    with pl.config(check="full"):
        Q = pl.Dense(np.ones((3, 3)), "orthogonal")
        with pytest.raises(ValueError, match="assumed orthogonal"):
            pl.svdvals(Q)


@pytest.mark.parametrize(
    "make, holds",
    [
        (lambda a: a.H @ a, True),
        (lambda a: a + a.H, True),
        (lambda a: pl.inv(a).H @ pl.inv(a), True),
        (lambda a: pl.Kron(a.H @ a, pl.Diag([1.0, 2.0])), True),
        (lambda a: pl.Dense(a._given("a"), "her"), False),
        (lambda a: pl.inv(pl.Dense(a._given("a"), "pos")), False),
        (lambda a: a.H @ pl.Dense(a._given("a"), "her") @ a, False),
        (lambda a: pl.Kron(pl.Dense(a._given("a"), "pos"), pl.Identity(2)), False),
        (lambda a: pl.BlockDiag(pl.Identity(2), pl.Dense(a._given("a"), "her")), False),
        (lambda a: pl.Congruence(a, pl.Dense(a._given("a"), "her")), False),
        (lambda a: pl.KronSum(a.H @ a, pl.Dense(a._given("a"), "her")), False),
        (lambda a: pl.HadamardProduct(pl.Dense(a._given("a"), "her"), pl.Identity(4)), False),
        (lambda a: pl.Congruence(a, pl.Identity(4)), True),
    ],
)
def test_hermitian_whatever_is_assumed(make, holds, rng):
    a = pl.Dense(rng.standard_normal((4, 4)) + 1j * rng.standard_normal((4, 4)))
    op = make(a)
    assert op._known("hermitian") is True
    assert (op._known("hermitian as written") is True) is holds


def test_it_is_not_compared(rng, monkeypatch):
    """What is Hermitian as it is written needs no dense form; what is not, is looked at."""
    from pylinop._structured import dispatch

    made, plain = [], dispatch._made
    monkeypatch.setattr(dispatch, "_made", lambda op: made.append(op) or plain(op))
    X, Y = (pl.Dense(rng.standard_normal((5, 5))) for _ in range(2))
    assert questions.hermitian(pl.Kron(X.T @ X, Y + Y.T)) and not made
    assert not questions.hermitian(X @ Y) and len(made) == 1


def test_names_of_properties():
    with pytest.raises(ValueError, match="no property 'nice'"):
        pl.Identity(3)._known("nice")
    with pytest.raises(TypeError):
        pl.Identity(3)._known(3)
    assert pl.LinearOperator((3, 3), matvec=lambda x: x)._known("hermitian") is None


@pytest.mark.parametrize("n", [0, 1, 2, 15, 16, 17, 31, 32, 33, 100])
@pytest.mark.parametrize("char", "fdFD")
def test_mirrored_entries(rng, n, char):
    """Against NumPy's comparison: symmetric, Hermitian, one entry off, in any layout."""
    a = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if char in "FD" else 0)
    a = a.astype(char)
    for base in (a, a + a.T, a + a.conj().T):
        wide = np.zeros((2 * n, 3 * n), char)
        wide[::2, ::3] = base
        whole = [base, np.asfortranarray(base), wide[::2, ::3], base[::-1, ::-1]]
        if n:
            i, j = rng.integers(n, size=2)
            off = base.copy()
            off[i, j] += 1
            nan = base.copy()
            nan[i, i] = np.nan
            whole += [off, nan]
        for x in whole:
            assert _core._mirrored(x, False) is bool((x == x.T).all())
            assert _core._mirrored(x, True) is bool((x == x.conj().T).all())


def test_what_is_not_mirrored_here(rng):
    a = rng.standard_normal((3, 3))
    for other in (a[None], a[:2], a.astype(np.int64), a.astype(">f8"), a.astype(np.float16)):
        assert _core._mirrored(other, True) is None
    assert properties.measured((a + a.T).astype(">f8"), "hermitian")
    assert not properties.measured(a.astype(">f8"), "hermitian")
    with pytest.raises(TypeError):
        _core._mirrored(a)
