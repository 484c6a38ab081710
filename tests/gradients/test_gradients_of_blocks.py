"""What is block diagonal by how it is written is read block by block: by gradients, slices,
diagonals and traces, with no array of the size of the whole."""

import numpy as np
import pytest

import pylinop as pl

SIZES = ([1], [3, 2], [1, 4, 1, 3], [3] * 7, [2] * 16, [2] * 17, [65, 3], [2] * 40)


def blocks(rng, sizes, dtype=np.float64):
    made = []
    for n in sizes:
        a = rng.standard_normal((n, n)) / n
        if np.dtype(dtype).kind == "c":
            a = a + 1j * rng.standard_normal((n, n)) / n
        made.append((a + 2 * np.eye(n)).astype(dtype))
    return made


def whole(B):
    """The same matrix by its entries."""
    rows = [
        [b if i == j else np.zeros((b.shape[0], c.shape[1])) for j, c in enumerate(B)]
        for i, b in enumerate(B)
    ]
    return np.block(rows)


def real(x):
    return np.real(x * (0.6 - 0.8j)) if x.dtype.kind == "c" else x


LOSSES = {
    "trace of the inverse": lambda A, n: real(pl.trace(pl.inv(A))),
    "determinant": lambda A, n: real(pl.slogdet(A)[1]),
    "its diagonal": lambda A, n: np.sum(real(pl.diagonal(pl.inv(A)) ** 2)),
    "twice": lambda A, n: real(pl.trace(pl.inv(A) @ pl.inv(A))),
    "beside a multiple": lambda A, n: real(pl.trace(pl.inv(A + 0.5 * pl.Identity(n)) @ A)),
    "of a view": lambda A, n: real(pl.trace(pl.inv(2 * A.T + pl.Diag(np.arange(1.0, n + 1))))),
    "of a product": lambda A, n: real(pl.trace(pl.inv(A @ A.H) @ A)),
}


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.float32])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_gradients_by_blocks(rng, sizes, loss, dtype):
    B, n, every = blocks(rng, sizes, dtype), sum(sizes), tuple(range(len(sizes)))
    f = LOSSES[loss]
    got = pl.grad(lambda *b: f(pl.BlockDiag(*b), n), every)(*B)
    due = pl.grad(lambda *b: f(whole(b), n), every)(*(b.astype(np.result_type(b, 1.0)) for b in B))
    scale = max(np.max(np.abs(g)) for g in due) * np.finfo(dtype).eps * n
    for a, b in zip(got, due, strict=True):
        assert a.dtype == dtype
        np.testing.assert_allclose(a, b, rtol=0, atol=1e3 * scale)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("sizes", [[3, 2], [3] * 7, [2] * 16], ids=str)
def test_second_derivatives_by_blocks(rng, sizes, loss, dtype):
    B, n, every = blocks(rng, sizes, dtype), sum(sizes), tuple(range(len(sizes)))
    along, f = tuple(blocks(rng, sizes, dtype)), LOSSES[loss]
    got = pl.hvp(lambda *b: f(pl.BlockDiag(*b), n), every)(*B, along)
    due = pl.hvp(lambda *b: f(whole(b), n), every)(*B, along)
    scale = max(np.max(np.abs(g)) for g in due)
    for a, b in zip(got, due, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-11 * scale)


@pytest.mark.no_verify  # whose own dense forms would be counted
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("of", [pl.grad, pl.hvp], ids=["gradient", "hvp"])
def test_nothing_of_the_size_of_the_whole(rng, of, loss):
    sizes = [12] * 20
    B, n, every = blocks(rng, sizes), sum(sizes), tuple(range(len(sizes)))
    more = (tuple(blocks(rng, sizes)),) if of is pl.hvp else ()
    with pl.explaining() as record:
        of(lambda *b: LOSSES[loss](pl.BlockDiag(*b), n), every)(*B, *more)
    slots = [s for p in record.plans for s in p.slots if s["kind"] in ("temporary", "result")]
    assert slots
    assert max(np.prod(s["shape"]) for s in slots) <= n * n // 2


def expression(rng, n, kinds, depth):
    """A random expression and its dense form."""
    what = rng.integers(6) if depth else 6 + rng.integers(4)
    if what < 2:
        A, a = expression(rng, n, kinds, depth - 1)
        B, b = expression(rng, n, kinds, depth - 1)
        return (A + B, a + b) if what else (A @ B, a @ b)
    if what < 6:
        A, a = expression(rng, n, kinds, depth - 1)
        if what == 2:
            return A.T, a.T
        if what == 3:
            return A.H, a.conj().T
        if what == 4:
            return 1.5 * A, 1.5 * a
        a = a + 9 * np.eye(n)
        return pl.inv(A + 9 * pl.Identity(n)), np.linalg.inv(a)
    if what == 6:
        d = rng.standard_normal(n)
        return pl.Diag(d), np.diag(d)
    if what == 7:
        a = rng.standard_normal((n, n)) / n
        return pl.Dense(a), a
    sizes, dtype = kinds
    B = [0.3 * b for b in blocks(rng, sizes, dtype)]
    return pl.BlockDiag(*B), whole(B)


@pytest.mark.parametrize("number", range(60))
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_slices_of_random_expressions(rng, number, dtype):
    sizes = SIZES[1 + number % 4]
    n, ends = sum(sizes), np.cumsum([0, *sizes])
    A, a = expression(rng, n, (sizes, dtype), 1 + number % 4)
    scale = np.max(np.abs(a)) * 1e-11
    for _ in range(6):
        i, j = rng.integers(len(sizes), size=2)
        at = [slice(ends[k], ends[k + 1]) for k in (i, j)]
        if rng.integers(2):
            lo, hi = np.sort(rng.integers(n + 1, size=2))
            at[rng.integers(2)] = slice(lo, hi)
        part = A[at[0], at[1]]
        np.testing.assert_allclose(part.toarray(), a[at[0], at[1]], rtol=0, atol=scale)
        np.testing.assert_allclose(part.T.toarray(), a[at[0], at[1]].T, rtol=0, atol=scale)
        x = rng.standard_normal(part.shape[1])
        np.testing.assert_allclose(part @ x, a[at[0], at[1]] @ x, rtol=0, atol=10 * n * scale)
    np.testing.assert_allclose(A.trace(), np.trace(a), rtol=0, atol=n * scale)
    for k in (0, 1, -2):
        if abs(k) < n:
            due = np.diagonal(a, k)
            np.testing.assert_allclose(A.diagonal(k), due, rtol=0, atol=scale)


def test_blocks_of_other_dtypes_keep_the_digits_of_the_whole(rng):
    """A part of single precision is inverted in the precision that the whole has."""
    B = blocks(rng, [4, 3])
    mixed = pl.BlockDiag(B[0].astype(np.float32), B[1])
    due = np.linalg.inv(B[0].astype(np.float32).astype(float))
    got = (pl.inv(mixed) @ pl.Diag(np.ones(7)))[:4, :4].toarray()
    np.testing.assert_allclose(got, due, rtol=1e-12, atol=1e-13)
    assert got.dtype == np.float64


def test_stacks_of_blocks(rng):
    a, b = (
        rng.standard_normal((5, 3, 3)) + 3 * np.eye(3),
        rng.standard_normal((2, 2)) + 3 * np.eye(2),
    )
    A = pl.BlockDiag(pl.Dense(a), pl.Dense(b))
    assert A.shape == (5, 5, 5)
    P = pl.inv(A) @ A.T
    dense = np.linalg.inv(A.toarray()) @ np.swapaxes(A.toarray(), -1, -2)
    for at in (slice(0, 3), slice(3, 5), slice(1, 4)):
        np.testing.assert_allclose(P[..., at, at].toarray(), dense[:, at, at], atol=1e-12)
    np.testing.assert_allclose(P.trace(), np.trace(dense, axis1=-2, axis2=-1), rtol=1e-12)


def test_a_block_beside_a_singular_one_raises(rng):
    """The value needs the inverse of every block."""
    B = [np.eye(3), np.zeros((2, 2))]
    with pytest.raises(np.linalg.LinAlgError):
        pl.value_and_grad(lambda a, b: pl.trace(pl.inv(pl.BlockDiag(a, b))), (0, 1))(*B)
