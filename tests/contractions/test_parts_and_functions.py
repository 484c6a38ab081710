"""Contractions beyond the memory limit, in halves; NumPy's products of stacks on LazyArrays."""

import itertools

import numpy as np
import pytest

import pylinop as pl
from pylinop._base.checks import is_lazy


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
@pytest.mark.parametrize(
    "text, shapes",
    [
        ("abc,bcd,def->aef", ((20, 21, 22), (21, 22, 23), (23, 24, 25))),
        ("ab,bc,cd->", ((40, 41), (41, 42), (42, 43))),
        ("ai,bi,ci->abc", ((17, 3), (18, 3), (19, 3))),
        ("ab,bc,cd,aa->d", ((30, 31), (1, 32), (32, 33), (30, 30))),
    ],
)
def test_temporaries_beyond_the_limit_are_made_in_parts(text, shapes, dtype, rng):
    arrays = [rng.normal(size=s).astype(dtype) for s in shapes]
    if dtype is np.complex128:
        arrays = [a + 1j * rng.normal(size=a.shape) for a in arrays]
    want = np.einsum(text, *(a.astype(np.complex128) for a in arrays), optimize=True)
    for limit in (10**9, 3000, 500):
        with pl.config(memory_limit=limit):
            got = pl.einsum(text, *arrays)
        assert got.dtype == dtype
        scale = np.abs(want).max()
        tolerance = 1e-4 if dtype is np.float32 else 1e-11
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale)


def test_what_no_part_makes_smaller_is_refused(rng):
    a = rng.normal(size=(1, 1, 1))
    with pl.config(memory_limit=0), pytest.raises(pl.MaterializationError, match="temporaries"):
        pl.einsum("abc,abc,abc->", a, a, a)
    b = rng.normal(size=(30, 20)).T  # two operands: a copy is all that there may be
    with pl.config(memory_limit=0):
        try:
            got = pl.einsum("ij,jk->ik", b, b.T)
        except pl.MaterializationError as error:
            assert "temporaries" in str(error)
        else:
            np.testing.assert_allclose(got, b @ b.T)


STACKS = [
    ("vecdot", (2, 3, 4), (3, 4)),
    ("matvec", (2, 1, 5, 4), (3, 4)),
    ("vecmat", (2, 3, 5), (3, 5, 4)),
    ("inner", (2, 3, 4), (5, 2, 4)),
    ("dot", (2, 3, 4), (5, 4, 2)),
    ("dot", (2, 3, 4), (4,)),
    ("vdot", (2, 3, 4), (2, 3, 4)),
    ("inner", (), (3, 4)),
]


@pytest.mark.parametrize("name, one, other", STACKS)
@pytest.mark.parametrize("dtype", [np.float64, np.complex64, np.int32])
def test_numpys_products_of_stacks_are_deferred(name, one, other, dtype, rng):
    f = getattr(np, name, None)
    if f is None:
        pytest.skip(f"this NumPy has no {name}")
    a, b = (
        (9 * rng.normal(size=s) + (9j * rng.normal(size=s) if dtype is np.complex64 else 0))
        for s in (one, other)
    )
    a, b = np.asarray(a).astype(dtype), np.asarray(b).astype(dtype)
    want = f(a, b)
    for got in (f(pl.lazy(a), b), f(a, pl.lazy(b))):
        assert isinstance(got, pl.LazyArray)
        assert (got.shape, got.dtype) == (np.shape(want), want.dtype)
        np.testing.assert_allclose(got, want, rtol=1e-4 if dtype is np.complex64 else 1e-12)


def test_stacks_that_do_not_fit():
    a = pl.lazy(np.ones((2, 3)))
    with pytest.raises(ValueError, match="3 and 4"):
        np.inner(a, np.ones((5, 2, 4)))
    with pytest.raises(ValueError):
        np.vdot(a, np.ones(5))


def grid(m, n, size, rng):
    """A lattice of arrays, each of which shares an axis with its neighbours."""
    labels, args = {}, []
    for i in range(m):
        for j in range(n):
            own = []
            for a, b in (
                ((i - 1, j), (i, j)),
                ((i, j), (i + 1, j)),
                ((i, j - 1), (i, j)),
                ((i, j), (i, j + 1)),
            ):
                if min(a) >= 0 and b[0] < m and b[1] < n:
                    own.append(labels.setdefault((a, b), len(labels)))
            args += [rng.normal(size=(size,) * len(own)), own]
    return args


@pytest.mark.parametrize("m, n, most", [(3, 4, 3e5), (4, 4, 6e6), (4, 5, 7e6)])
def test_the_order_of_many_operands(m, n, most, rng):
    """The greedy tree alone takes 3.4e5, 1.5e7 and 1.5e7 flops."""
    args = grid(m, n, 6, rng)
    path, text = pl.einsum_path(*args, [])
    assert float(text.rpartition(" flops, ")[0].split()[-1]) < most
    assert len(path) == m * n  # the word, and a pair for all operands but one
    small = grid(m, n, 2, rng)
    want = np.einsum(*small, [], optimize="greedy")
    np.testing.assert_allclose(pl.einsum(*small, []), want, rtol=1e-8)


@pytest.mark.parametrize("n", [11, 14, 25])
def test_a_long_chain_meets_its_vector_first(n):
    args = [x for i in range(n) for x in (np.ones((100, 100)), [i, i + 1])]
    path, text = pl.einsum_path(*args, np.ones(100), [n], [0])
    assert float(text.rpartition(" flops, ")[0].split()[-1]) <= 2e4 * n * 1.01


@pytest.mark.parametrize(
    "name, one, other",
    [
        ("vecdot", (2, 1), (3,)),
        ("vecdot", (3,), (2, 1)),
        ("matvec", (2, 2, 1), (3,)),
        ("vecmat", (2, 1), (2, 3, 4)),
        ("inner", (2, 3, 1), (5, 4)),
        ("dot", (2, 3, 1), (4, 5)),
        ("dot", (2, 3), (2, 1, 5)),
    ],
)
def test_a_size_of_one_is_not_summed_with_another(name, one, other):
    f = getattr(np, name, None)
    if f is None:
        pytest.skip(f"this NumPy has no {name}")
    a, b = np.ones(one), np.ones(other)
    for args in ((a, b), (pl.lazy(a), b), (a, pl.lazy(b))):
        with pytest.raises(ValueError):
            f(*args)
    if name in ("vecdot", "matvec", "vecmat"):
        with pytest.raises(ValueError, match="no sizes fit"):
            f(pl.placeholder(one), b)


WEIGHTED = [
    ("i,i,ijk,ilk->ijl", (3, 3, 3)),
    ("i,ijk,ikl->ilj", (2, 3, 4)),
    ("ijk,i,ilk,il->ij", (4, 2, 5)),
    ("ij,ijk,ikl->il", (3, 8, 2)),
]


@pytest.mark.parametrize("text, sizes", WEIGHTED)
@pytest.mark.parametrize("n", [8000, 7919, 8001])  # 7919 is prime
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
def test_weighted_batches_go_in_parts(text, sizes, n, dtype, rng):
    size = dict(zip("ijkl", (n, *sizes)))

    def drawn(term):
        a = rng.standard_normal([size[x] for x in term])
        a = a + 1j * rng.standard_normal(a.shape) if dtype is np.complex128 else a
        return np.ascontiguousarray(a.T.astype(dtype)).T if rng.random() < 0.5 else a.astype(dtype)

    arrays = [drawn(term) for term in text.partition("->")[0].split(",")]
    arrays[0] = arrays[0][::-1]
    want = np.einsum(text, *arrays)
    close = {"rtol": 1e-3, "atol": 1e-4} if dtype is np.float32 else {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose(pl.einsum(text, *arrays), want, **close)
    out = np.empty(want.T.shape, dtype).T
    assert pl.einsum(text, *arrays, out=out) is out
    np.testing.assert_allclose(out, want, **close)
    np.testing.assert_allclose(pl.einsum(text, *map(pl.lazy, arrays)), want, **close)


def test_parts_of_weighted_batches_are_said(rng):
    a, A = rng.standard_normal(20000), rng.standard_normal((20000, 3, 3))
    text = pl.einsum_path("i,i,ijk,ilk->ijl", a, a, A, A)[1]
    assert "in 8 parts, each:" in text
    assert "in 8 parts" not in pl.einsum_path("i,ijk->ijk", a, A)[1]  # there is nothing in between


def test_outer_products_of_any_dimensions_are_deferred(rng):
    for one, other in itertools.product([(), (3,), (2, 3), (0, 2)], repeat=2):
        a, b = rng.normal(size=one), rng.integers(-4, 5, other)
        for x, y in ((pl.lazy(a), b), (a, pl.lazy(b)), (pl.lazy(a), pl.lazy(b))):
            made = np.outer(x, y)
            assert is_lazy(made)
            np.testing.assert_allclose(np.asarray(made), np.outer(a, b), rtol=1e-14)
    with pytest.raises(ValueError, match="one-dimensional"):
        np.linalg.outer(pl.lazy(np.ones((2, 2))), np.ones(2))


@pytest.mark.parametrize("function", [np.vecdot, getattr(np, "vecmat", np.vecdot)])
def test_products_of_stacks_of_truths_are_truths(function, rng):
    a, b = rng.random((3, 2, 4)) < 0.4, rng.random((3, 4, 4)) < 0.4
    a = a[:, 0] if function is not np.vecdot else a[:, :1]
    made = function(pl.lazy(a), b)
    want = function(a, b)
    assert made.dtype == want.dtype
    np.testing.assert_array_equal(np.asarray(made), want)


def test_a_number_among_operands_goes_into_the_parts(rng):
    """Indexed, an array of no dimensions became a scalar, which was handed back as no array."""
    arrays = [rng.normal(size=s) for s in ((), (17, 2, 5), (17, 17, 17), (17, 17))]
    want = np.einsum(",fab,fee,dd->fdbea", *arrays)
    with pl.config(memory_limit=20000):
        got = pl.einsum(",fab,fee,dd->fdbea", *arrays)
    assert abs(got - want).max() <= 1e-13 * abs(want).max()


@pytest.mark.parametrize("text, shapes", [("a,->", ((0,), ())), (",bc->b", ((), (3, 0)))])
def test_a_sum_of_nothing_is_zero_whatever_multiplies_it(text, shapes):
    arrays = [np.full(s, np.nan) for s in shapes]
    for made in (pl.einsum(text, *arrays), pl.einsum(text, *map(pl.lazy, arrays))):
        assert not np.asarray(made).any()
