"""Second derivatives by the operands of one list, in which a matrix is linear: all of them grow in
one tangent, so that there are as many products as operands, not as there are pairs of them."""

import numpy as np
import pytest
from gradients.differences import check_second

import pylinop as pl


def stack(rng, count, b, dtype=np.float64):
    a = rng.standard_normal((count, b, b))
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal((count, b, b))
    return (a + 3 * b * np.eye(b)).astype(dtype)


def real(x):
    return np.real(x * (0.6 - 0.8j)) if x.dtype.kind == "c" else x


KINDS = {
    "BlockDiag": lambda a: pl.BlockDiag(*(a[i] for i in range(len(a)))),
    "one block twice": lambda a: pl.BlockDiag(a[0], a[0], *(a[i] for i in range(1, len(a)))),
    "blocks of blocks": lambda a: pl.BlockDiag(pl.BlockDiag(a[0], a[1]), pl.BlockDiag(a[2], a[0])),
    "beside constants": lambda a: pl.BlockDiag(a[0], 3 * np.eye(2), a[1], pl.Identity(3), a[2]),
    "turned": lambda a: pl.BlockDiag(a[0].T, a[1].H, 2 * a[2]).T,
    "KronSum": lambda a: pl.KronSum(a[0], a[1] @ a[2]),
    "Block": lambda a: pl.Block([[a[0], a[1] / 9, None], [None, a[2], a[0]], [a[1], None, a[0]]]),
    "a part": lambda a: pl.BlockDiag(a[0], a[1], a[2])[:5, :5],
    "beside a low rank": lambda a: (
        pl.BlockDiag(a[0], a[1], a[2]) + pl.LowRank(np.reshape(a[:, 0], (-1, 1)))
    ),
}


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("name", KINDS)
def test_against_differences(rng, name, dtype):
    make, at = KINDS[name], stack(rng, 3, 3, dtype)

    def f(a):
        A = make(a)
        v = np.arange(1.0, A.shape[0] + 1)
        return pl.slogdet(A)[1] + real(v @ pl.solve(A, v)) + real(pl.trace(A @ A) / 99)

    check_second(f, at)


def test_lists_of_arrays_and_dtypes(rng):
    """A tuple, a dict and blocks of other dtypes beside each other."""
    B = stack(rng, 3, 4)
    p = {"a": (B[0], B[1].astype(np.float32)), "b": B[2] + 0.5j}
    t = {"a": (B[1], B[0].astype(np.float32)), "b": 1j * B[0]}

    def f(p, make=pl.BlockDiag):
        A = make(*p["a"], p["b"])
        return pl.slogdet(A)[1] + np.real(pl.trace(pl.inv(A) @ A.H))

    def one_by_one(*blocks):
        """The same matrix by products, whose tangents are made one by one."""
        n, total = 4, None
        for i, b in enumerate(blocks):
            E = pl.Dense(np.eye(3 * n)[:, i * n : (i + 1) * n])
            total = E @ b @ E.H if total is None else total + E @ b @ E.H
        return total

    got, due = pl.hvp(f)(p, t), pl.hvp(lambda p: f(p, one_by_one))(p, t)
    for a, b in zip((*got["a"], got["b"]), (*due["a"], due["b"]), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-5 if a.dtype == np.float32 else 1e-11, atol=1e-8)


@pytest.mark.parametrize("low", [False, True])
def test_by_blocks_that_an_operator_holds(rng, low):
    """By an operator, and by its arrays within an expression."""
    B, D = stack(rng, 4, 3), stack(rng, 4, 3)
    A, along = pl.BlockDiag(*B), pl.BlockDiag(*D)
    U = rng.standard_normal((12, 2))

    def f(A):
        A = A + pl.LowRank(U) if low else A
        return pl.logdet(A) + pl.trace(pl.inv(A))

    got = pl.hvp(f)(A, along)
    due = pl.hvp(lambda *b: f(pl.BlockDiag(*b)), (0, 1, 2, 3))(*B, tuple(D))
    assert type(got) is pl.BlockDiag
    for i, d in enumerate(due):
        np.testing.assert_allclose(got[3 * i : 3 * i + 3, 3 * i : 3 * i + 3].toarray(), d, 1e-9)


def steps(f, blocks, along):
    with pl.explaining() as record:
        pl.hvp(f)(blocks, along)
    return sum(len(p.steps) for p in record.plans)


@pytest.mark.no_verify
@pytest.mark.parametrize("low", [False, True])
def test_steps_are_few_for_many_blocks(rng, low):
    """Of each pair of blocks there were products: 40 took 9 s, beside a low rank 25 s."""
    counts = []
    for count in (12, 24, 48):
        B, D = stack(rng, count, 3), stack(rng, count, 3)
        y, U = rng.standard_normal(3 * count), rng.standard_normal((3 * count, 1))

        def f(b, y=y, U=U):
            A = pl.BlockDiag(*b)
            A = A + pl.LowRank(U) if low else A
            quadratic, logdet = pl.inv_quad_logdet(A, y)
            return quadratic + logdet

        counts.append(steps(f, tuple(B), tuple(D)))
    few = 4 * counts[0] if low else counts[1] + 3 * (counts[1] - counts[0])
    assert counts[2] <= few, counts
