"""Operators in every slot of an equation: as their dense forms, and as what they are made of where
that has fewer numbers."""

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl
from pylinop._base.checks import is_lazy
from pylinop._contractions import equations
from pylinop._lazy.contraction_operators import applied

N = 6


def spd(rng, n):
    a = rng.normal(size=(n, n))
    return a @ a.T + n * np.eye(n)


OPERATORS = {
    "diag": lambda r: pl.Diag(r.normal(size=N)),
    "diag above": lambda r: pl.Diag(r.normal(size=N - 1), 1),
    "identity": lambda r: pl.Identity(N),
    "identity of a dtype": lambda r: pl.Identity(N, np.float32),
    "permutation": lambda r: pl.Permutation(r.permutation(N) - N * (r.random(N) < 0.3)),
    "toeplitz": lambda r: pl.Toeplitz(r.normal(size=N), r.normal(size=N)),
    "low rank": lambda r: pl.LowRank(r.normal(size=(N, 2)), r.normal(size=(N, 2))),
    "complex low rank": lambda r: pl.LowRank(
        r.normal(size=(N, 2)) + 1j, r.normal(size=(N, 3)) + 2j, r.normal(size=(2, 3))
    ),
    "gram": lambda r: pl.LowRank(r.normal(size=(N, 2)) + 1j),
    "kron": lambda r: pl.Kron(r.normal(size=(2, 3)), r.normal(size=(3, 2))),
    "kron of kinds": lambda r: pl.Kron(pl.Diag(r.normal(size=2)), pl.Toeplitz(r.normal(size=3))),
    "khatri-rao": lambda r: pl.KhatriRao(r.normal(size=(2, N)), r.normal(size=(3, N))),
    "blocks": lambda r: pl.BlockDiag(r.normal(size=(2, 3)), r.normal(size=(4, 3))),
    "blocks alike": lambda r: pl.BlockDiag(*r.normal(size=(3, 2, 2))),
    "kron sum": lambda r: pl.KronSum(r.normal(size=(2, 2)), r.normal(size=(3, 3))),
    "sparse": lambda r: pl.Sparse(sp.random_array((N, N), density=0.3, rng=r, format="csr")),
    "inverse": lambda r: pl.inv(pl.Dense(spd(r, N))),
    "a product": lambda r: pl.Diag(r.normal(size=N)) @ pl.Toeplitz(r.normal(size=N)),
    "transposed": lambda r: pl.Kron(r.normal(size=(2, 3)), r.normal(size=(3, 2))).T,
}
SIZE = {"i": N, "j": N, "a": 3, "b": 1, "k": N}
TEXTS = [
    "ij,aij->a",
    "ij,aij->ai",
    "ij,aij->ija",
    "ij,aji->a",
    "ij,ai,bj->ab",
    "ij,ai,aj->aj",
    "ij,aj->ai",
    "ij,aj->aij",
    "ij,ai,aik->jk",
    "aij,ij->ja",
    "ii,aik->ak",
    "ii,aij->ij",
    "ij,jak,kia->a",
    "ij,iij->j",
    "ij,ajj->ia",
    "aj,ij,ik,aj->ak",
    "ij,a->a",
    "ij,ai->ja",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("lazily", [False, True])
def test_operators_are_as_their_dense_forms(name, text, lazily, rng):
    op = OPERATORS[name](rng)
    terms = text.split("->")[0].split(",")
    at = next(k for k, t in enumerate(terms) if t in ("ij", "ii"))
    arrays = [rng.normal(size=[SIZE[x] for x in t]) for t in terms]
    dense = [*arrays[:at], op.toarray(), *arrays[at + 1 :]]
    given = [pl.lazy(a) if lazily and k != at else a for k, a in enumerate(arrays)]
    given[at] = op
    with pl.config(verify=True, check_plans=True):
        made = pl.einsum(text, *given)
    assert is_lazy(made) or not lazily or isinstance(made, pl.LinearOperator)
    want = np.einsum(text, *dense)
    np.testing.assert_allclose(np.asarray(made), want, rtol=1e-9, atol=1e-9)


def test_two_operators_meet(rng):
    for _ in range(60):
        names = rng.choice(list(OPERATORS), 2)
        one, two = (OPERATORS[x](rng) for x in names)
        x = rng.normal(size=(3, N, N))
        text = str(rng.choice(["ij,jk,aik->a", "ij,ij,aij->a", "ij,ik,akj->aj", "ij,jk,aik->ak"]))
        want = np.einsum(text, one.toarray(), two.toarray(), x)
        made = np.asarray(pl.einsum(text, one, two, x))
        np.testing.assert_allclose(made, want, rtol=1e-9, atol=1e-9, err_msg=f"{text} {names}")


NEVER_DENSE = [
    ("diag", "ij,aij->a"),
    ("diag", "ij,ai,aik->jk"),
    ("identity", "ij,aij->ai"),
    ("permutation", "ij,aij->a"),
    ("permutation", "ij,ai,aik->jk"),
    ("toeplitz", "ij,aj->ai"),
    ("low rank", "ij,aij->a"),
    ("kron", "ij,aij->a"),
    ("kron of kinds", "ij,aij->ai"),
    ("khatri-rao", "ij,aij->ai"),
    ("blocks alike", "ij,aij->aj"),
    ("sparse", "ij,aij->a"),
    ("sparse", "ij,ai,aj->a"),
]


@pytest.mark.parametrize("name, text", NEVER_DENSE)
def test_no_dense_form_is_made(name, text, rng):
    op = OPERATORS[name](rng)
    shapes = [[SIZE[x] for x in t] for t in text.split("->")[0].split(",")[1:]]
    arrays = [rng.normal(size=s) for s in shapes]
    task, _ = equations.task_of((text, op, *arrays), None, None, None, "safe", True)
    _, left = applied(task, [op, *arrays])
    assert not any(isinstance(x, pl.LinearOperator) and x.shape == (N, N) for x in left)
    assert sum(x.size for x in left) < N * N + sum(a.size for a in arrays)


def test_sizes_that_do_not_fit_are_told(rng):
    for op in (pl.Diag(np.ones(4)), pl.Identity(4), pl.Permutation(np.arange(4)[::-1])):
        with pytest.raises(ValueError, match="axis 'j' has size"):
            pl.einsum("ij,aij->a", op, np.ones((2, 4, 5)))
    with pytest.raises(ValueError, match="axis"):
        pl.einsum("ij,aij->a", pl.Kron(np.eye(2), np.eye(2)), np.ones((2, 4, 5)))


def test_a_size_of_one_broadcasts(rng):
    for name in ("diag", "identity", "permutation", "kron", "sparse", "low rank"):
        op = OPERATORS[name](rng)
        for shape in ((3, N, 1), (3, 1, N), (3, 1, 1)):
            x = rng.normal(size=shape)
            for text in ("ij,aij->a", "ij,aij->ai", "ij,aij->aij"):
                want = np.einsum(text, op.toarray(), x)
                np.testing.assert_allclose(pl.einsum(text, op, x), want, atol=1e-12)


def test_integers_stay_exact(rng):
    d = rng.integers(-9, 9, 4)
    for text in ("ij,aij->a", "ij,aij->ai", "ij,aj->ai"):
        x = rng.integers(-9, 9, (3, 4, 4)[: len(text.split("->")[0]) - 3])
        made = pl.einsum(text, pl.Diag(d), x)
        np.testing.assert_array_equal(made, np.einsum(text, np.diag(d), x))
        assert made.dtype == x.dtype


@pytest.mark.parametrize("lazily", [False, True])
def test_arrays_are_cast_before_they_are_summed(lazily, rng):
    """In the dtype of the result, as NumPy casts all operands first."""
    op = pl.Dense(rng.normal(size=(5, 4)))
    x = rng.normal(size=(40, 4)).astype(np.float32)
    t = pl.Toeplitz(rng.normal(size=4).astype(np.float32))
    for text, args in (
        ("ij,lj->i", (op, x)),
        ("jk,ajl,k->al", (t, rng.normal(size=(3, 4, 2)).astype(np.float32), rng.normal(size=4))),
    ):
        dense = [a.toarray() if isinstance(a, pl.LinearOperator) else a for a in args]
        given = [pl.lazy(a) if lazily and isinstance(a, np.ndarray) else a for a in args]
        made = np.asarray(pl.einsum(text, *given))
        want = np.einsum(text, *(a.astype(float) for a in dense))
        assert made.dtype == np.float64
        np.testing.assert_allclose(made, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("text", ["ij,aij->a", "ij,aj->ai", "ij,jk->ik", "ij,jak,k->ai"])
@pytest.mark.parametrize("lazily", [False, True])
def test_operators_without_a_dtype_adopt_that_of_the_others(text, lazily):
    shapes = [(4,) * len(t) for t in text.split("->")[0].split(",")[1:]]
    arrays = [np.ones(shape, np.float32) for shape in shapes]
    for op in (pl.Identity(4), pl.Permutation([1, 0, 3, 2]), pl.Zeros((4, 4)), pl.DFT(4)):
        made = pl.einsum(text, op, *(pl.lazy(a) if lazily else a for a in arrays))
        assert made.dtype == (np.complex64 if op.dtype.kind == "c" else np.float32)
        want = np.einsum(text, op.toarray(), *arrays)
        np.testing.assert_allclose(np.asarray(made), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_in_a_contraction_with_a_missing_operand(name, rng):
    op = OPERATORS[name](rng)
    u, t = rng.normal(size=(3, N)), rng.normal(size=(N, N, 2))
    for text, arrays, rows, cols in (
        ("ij,aj->ija", (op, u), "i", "aj"),
        ("ij,jkb->ikb", (op, t), "ib", "k"),
        ("ik,ij,aj->ak", (rng.normal(size=(N, N)), op, u), "a", "k"),
        ("ij,kl->ijkl", (op, op), "ik", "jl"),
        ("ii,jkb->ijkb", (op, t), "ij", "kb"),
    ):
        dense = [a.toarray() if isinstance(a, pl.LinearOperator) else a for a in arrays]
        sizes = {"a": 3, "b": 2} | dict.fromkeys("ijkl", N)
        m, n = (int(np.prod([sizes[x] for x in side])) for side in (rows, cols))
        want = np.einsum(f"{text.split('->')[0]}->{rows}{cols}", *dense).reshape(m, n)
        with pl.config(verify=True, check_plans=True):
            made = pl.Contraction(text, *arrays, rows=rows, cols=cols)
            x, y = rng.normal(size=n), rng.normal(size=m)
            tol = {"rtol": 1e-9, "atol": 1e-9 * max(1.0, abs(want).max())}
            np.testing.assert_allclose(made @ x, want @ x, **tol)
            np.testing.assert_allclose(made.H @ y, want.conj().T @ y, **tol)
            np.testing.assert_allclose(made.toarray(), want, **tol)
            np.testing.assert_allclose(made.diagonal(), np.diagonal(want), **tol)


@pytest.mark.filterwarnings("error")
def test_no_dense_form_beside_several_arrays_and_index_equations(rng):
    """A Toeplitz of which the dense form would be 3 GB."""
    n = 20_000
    t, x = pl.Toeplitz(0.5 ** np.arange(n)), rng.normal(size=(2, n))
    tol = {"rtol": 1e-9, "atol": 1e-9}
    for wrap in (np.asarray, pl.lazy):
        made = pl.einsum("ij,aj,j->ai", t, wrap(x), wrap(x[0]))
        np.testing.assert_allclose(np.asarray(made), (t @ (x * x[0]).T).T, **tol)
        made = pl.einsum("i j, j (o + w), w -> i o", t, wrap(x.T), np.ones(2))
        np.testing.assert_allclose(np.asarray(made), (t @ x.sum(axis=0))[:, None], **tol)
    small, y = pl.Diag(rng.normal(size=3)), rng.normal(size=(3, 5, 4))
    made = pl.einsum("t s, t (t + 2*w) p -> s", small, wrap(y), sizes={"w": 2})
    want = np.einsum("ts,twp->s", small.toarray(), [y[k, [k, k + 2]] for k in range(3)])
    np.testing.assert_allclose(np.asarray(made), want, **tol)
    M = pl.Contraction("ij,aj->iaj", t, np.ones((1, n)), rows="i", cols="aj")
    np.testing.assert_allclose(M @ x[0], t @ x[0], **tol)
    assert type(pl.Contraction("ij,kl->ijkl", t, t, rows="ik", cols="jl")) is pl.Kron
