"""What users of opt_einsum ask of it: networks of many arrays, orders that are given, labels of any
alphabet, shapes without arrays, formulas kept for other arrays, results in an order."""

import itertools

import numpy as np
import pytest

import pylinop as pl


def network(rng, nodes, degree, out, everywhere):
    """A random equation: each array has some edges to others, `out` of them stay open; an axis that
    all arrays have."""
    terms = [[] for _ in range(nodes)]
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    for k in range(nodes):
        for _ in range(degree if k else 0):
            x = next(letters)
            terms[k].append(x)
            terms[int(rng.integers(k))].append(x)
    used = sorted(set(itertools.chain.from_iterable(terms)))
    kept = list(rng.permutation(used)[:out])
    if everywhere:
        for t in terms:
            t.insert(int(rng.integers(len(t) + 1)), "z")
        kept.insert(0, "z")
    return ["".join(t) for t in terms], "".join(kept)


def close(got, want, size):
    assert got.shape == want.shape
    np.testing.assert_array_less(np.abs(got - want), 1e-12 * (1 + size))


def drawn_path(rng, n):
    """Of one, two or three arrays at a step."""
    steps = []
    while n > 1:
        count = min(n, int(rng.integers(1, 4)))
        steps.append(tuple(int(i) for i in rng.choice(n, count, replace=False)))
        n -= count - 1
    return ["einsum_path", *steps]


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize(
    "nodes, degree, out", [(3, 2, 2), (5, 2, 0), (5, 1, 4), (7, 2, 3), (9, 1, 1)]
)
def test_random_networks_in_every_order(nodes, degree, out, everywhere):
    rng = np.random.default_rng(nodes * 100 + degree * 10 + out)
    terms, result = network(rng, nodes, degree, out, everywhere)
    text = ",".join(terms) + "->" + result
    sizes = {x: int(rng.choice([1, 2, 3])) for x in "abcdefghijklmnopqrstuvwxyz"}
    arrays = [rng.standard_normal([sizes[x] for x in t]) for t in terms]
    want = np.einsum(text, *arrays, optimize="greedy")
    size = np.einsum(text, *map(np.abs, arrays), optimize="greedy")
    close(np.asarray(pl.einsum(text, *arrays)), want, size)
    for path in [drawn_path(rng, nodes) for _ in range(3)]:
        close(np.asarray(pl.einsum(text, *arrays, optimize=path)), want, size)
    close(np.asarray(pl.einsum(text, *map(pl.lazy, arrays))), want, size)
    other = {x: chr(ord("α") + k) for k, x in enumerate("abcdefghijklmnopqrstuvwxyz")}
    greek = "".join(other.get(c, c) for c in text)
    close(np.asarray(pl.einsum(greek, *arrays)), want, size)
    lists = [y for a, t in zip(arrays, terms) for y in (a, [1000 + ord(x) for x in t])]
    close(np.asarray(pl.einsum(*lists, [1000 + ord(x) for x in result])), want, size)


def test_labels_of_any_alphabet_keep_their_order(rng):
    x = rng.standard_normal((2, 3, 4))
    np.testing.assert_array_equal(pl.einsum("cβa", x), x.transpose(2, 0, 1))
    np.testing.assert_array_equal(pl.einsum("語ßa->aß語", x), x.T)


def test_sizes_of_one_meet_longer_ones_along_the_way(rng):
    a, b, c, d = (rng.standard_normal(s) for s in ((1, 1, 5, 4), (4, 1, 6), (5, 6), (7, 7)))
    wide = np.broadcast_to(a, (7, 7, 5, 4)), np.broadcast_to(b, (4, 7, 6))
    want = np.einsum("abjk,kbl,jl,ab->ab", *wide, c, d)
    for path in (True, ["einsum_path", (0, 3), (0, 2), (0, 1)], ["einsum_path", (0, 1, 2, 3)]):
        got = pl.einsum("abjk,kbl,jl,ab->ab", a, b, c, d, optimize=path)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
def test_the_result_in_an_order(order, rng):
    a, b = rng.standard_normal((4, 3, 5)), rng.standard_normal((5, 6))
    want = np.einsum("ijk,kl->lij", a, b, order=order)
    got = pl.einsum("ijk,kl->lij", a, b, order=order)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-13)
    if order != "K":
        assert got.flags.c_contiguous == want.flags.c_contiguous
        made = pl.einsum("ijk,kl->lij", pl.lazy(a), b, order=order)
        assert type(made) is np.ndarray and made.flags.f_contiguous == (order == "F")
    f = pl.einsum("ij->ji", np.asfortranarray(a[0]), order="A")
    assert f.flags.f_contiguous
    with pytest.raises(ValueError, match="order must be"):
        pl.einsum("ij->ji", a[0], order="W")


def test_paths_of_shapes_alone(rng):
    shapes = [(60, 50), (50, 40), (40, 3)]
    due = pl.einsum_path("ab,bc,cd", *(np.ones(s) for s in shapes))
    assert due[0] == ["einsum_path", (1, 2), (0, 1)]
    assert pl.einsum_path("ab,bc,cd", *(pl.placeholder(s, float) for s in shapes)) == due
    unasked = [pl.lazy(np.ones(s)) + 1 for s in shapes]
    assert pl.einsum_path("ab,bc,cd", *unasked) == due
    assert all(x._value is None for x in unasked)
    n = pl.symbols("N")
    with pytest.raises(TypeError, match="no value"):
        pl.einsum_path("ab,bc", pl.placeholder((n, 50), float), np.ones((50, 2)))


def test_a_formula_is_kept_for_other_arrays_and_holds_constants(rng):
    core, m, n = rng.standard_normal((3, 4, 5)), *pl.symbols("M N")
    x, y = pl.placeholder((m, 3), float), pl.placeholder((n, 4), float)
    f = pl.function((x, y), pl.einsum("abc,ia,jb->ijc", core, x, y))
    for i, j in ((2, 6), (1, 1), (7, 3), (2, 6)):
        given = rng.standard_normal((i, 3)), rng.standard_normal((j, 4))
        got, want = np.asarray(f(*given)), np.einsum("abc,ia,jb->ijc", core, *given)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)
    with pytest.raises(ValueError):
        f(np.ones((2, 3)), np.ones((2, 5)))
    with pytest.raises(TypeError):
        f(np.ones((2, 3)))


@pytest.mark.parametrize("char", "fdFD")
@pytest.mark.parametrize("n", [3, 5, 9, 12, 20, 33])
def test_columns_beside_what_is_no_number(n, char, rng):
    """Products whose columns fill no vector: what lies behind them counts for nothing."""
    for m, k in ((12, 40), (5, 3), (2, 200)):
        beside = np.full((4, k, n + 7), np.nan, char)
        beside[:, :, 2 : n + 2] = rng.integers(-3, 4, (4, k, n))
        a, b = rng.integers(-3, 4, (4, k, m)).astype(char), beside[:, :, 2 : n + 2]
        for x in (b, b[:, ::-1], np.ascontiguousarray(b), b[:, :1].repeat(k, 1)):
            want = np.matmul(a.transpose(0, 2, 1), x)
            np.testing.assert_array_equal(pl.einsum("qti,qtj->qij", a, x), want)
            same = np.broadcast_to(x[:, :1], x.shape)  # rows on each other
            want = np.matmul(a.transpose(0, 2, 1), same)
            np.testing.assert_array_equal(pl.einsum("qti,qtj->qij", a, same), want)


def test_explain_shows_the_plan_of_a_contraction(rng):
    """As it will be computed, of the leaves as they lie; of one leaf twice a Gram matrix."""
    x, w = pl.lazy(rng.normal(size=(8, 12, 12, 5, 5, 3))), pl.lazy(rng.normal(size=(5, 5, 3, 32)))
    y = np.einsum("abcijk,ijkd->abcd", x, w)
    said = str(pl.explain(y + 1))
    assert "gemm m1152 n32 k75, 1 call" in said and "nothing packed" in said
    assert y._value is None
    turned = pl.lazy(rng.normal(size=(3, 32, 5, 5)).T)
    assert "a1: i j d k" in str(pl.explain(np.einsum("aijk,ijdk->ad", x[:, 0, 0], turned)))
    inner = np.einsum("abcijk,ijkd->abcd", x, w)
    assert "einsum abcd,abcd->" in str(pl.explain(np.einsum("abcd,abcd->", inner, inner)))
    said = str(pl.explain(pl.einsum("(o + w), w -> o", pl.lazy(np.ones(5000)), np.ones(100))))
    assert "recognised: the product with a Toeplitz matrix" in said
