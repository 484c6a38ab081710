"""Contractions of what nobody should give: too many labels, too large results, objects, NaN;
strides of every sort; ^C in the midst of a long one."""

import signal
import time

import numpy as np
import pytest

import pylinop as pl

MILLION = 10**6


@pytest.mark.parametrize(
    "text",
    [
        "a" * MILLION + "->",
        ",".join("i" for _ in range(MILLION)) + "->i",
        " ".join(f"n{k}" for k in range(MILLION)) + " ->",
        "i -> " + " ".join(f"n{k}" for k in range(MILLION)),
        "(" + " + ".join(f"n{k}" for k in range(MILLION)) + ") ->",
        "(" * MILLION,
        "a(" * MILLION,
    ],
    ids=lambda text: text[:12],
)
def test_a_million_labels_are_refused_at_once(text):
    start = time.process_time()
    with pytest.raises(ValueError) as said:
        pl.einsum(text, np.ones((2, 2)))
    assert time.process_time() - start < 60
    assert "einsum" in str(said.value)


@pytest.mark.parametrize(
    "sizes, error, match",
    [
        ({"w": -1}, ValueError, "w = -1 is negative"),
        ({"w": 2.5}, TypeError, "w = 2.5 is no integer"),
        ({"w": "2"}, TypeError, "w = '2' is no integer"),
        ({"w": 2, "v": 3}, ValueError, "'v', which is none of its axes"),
        ([("w", 2)], TypeError, "a mapping of names to sizes, not list"),
    ],
)
def test_sizes_that_are_none(sizes, error, match):
    with pytest.raises(error, match=match):
        pl.einsum("(o + w) -> o w", np.ones(5), sizes=sizes)
    with pytest.raises(error, match=match):
        pl.einsum("(o + w), w -> o", pl.lazy(np.ones(5)), np.ones(2), sizes=sizes)
    with pytest.raises(error, match=match):
        pl.view(np.ones(5), "(o + w) -> o w", sizes=sizes)
    with pytest.raises(error, match=match):
        pl.einsum_path("(o + w), w -> o", np.ones(5), np.ones(2), sizes=sizes)
    with pytest.raises(error, match=match):
        pl.Contraction("(o + w)", np.ones(5), rows="o", cols="w", sizes=sizes)


@pytest.mark.parametrize(
    "args, error, match",
    [
        ((np.ones(2), 3), TypeError, "a list of its labels"),
        ((np.ones(2), [0.5]), TypeError, "a list of its labels"),
        ((3, np.ones(3)), TypeError, "a list of its labels"),
        ((np.ones(2), ["i"]), TypeError, "a list of its labels"),
        ((np.ones(2), [-1]), ValueError, "labels are 0 or more"),
        (("(9999999999999999999*i)", np.ones(2)), ValueError, "a number of 19 digits"),
        (("(i + " + "9" * 5000 + ")", np.ones(2)), ValueError, "a number of 5000 digits"),
        (("(...) c -> c", np.ones((2, 2))), ValueError, r"\(...\) is for a result"),
        (("a ... -> ... (...)", np.ones((2, 2))), ValueError, "an ellipsis is there twice"),
        (("i,i", np.ma.masked_array(np.ones(2), [0, 1]), np.ones(2)), TypeError, "fill them first"),
    ],
    ids=lambda x: str(x)[:20] if isinstance(x, tuple) else "",
)
def test_what_is_no_equation_or_operand(args, error, match):
    with pytest.raises(error, match=match):
        pl.einsum(*args)


def test_masked_arrays_beside_formulas_and_as_out():
    masked = np.ma.masked_array(np.ones(2), [0, 1])
    with pytest.raises(TypeError, match="fill them first"):
        np.einsum("i,i", pl.lazy(np.ones(2)), masked)
    with pytest.raises(TypeError, match="out must be an ndarray, not MaskedArray"):
        pl.einsum("i,j->i", np.ones(2), np.ones(2), out=masked)


@pytest.mark.parametrize("count", [257, 300])
def test_more_labels_than_there_may_be(count):
    args = [x for k in range(count) for x in (np.ones((1, 1)), [k, k + 1])]
    with pytest.raises(NotImplementedError, match="labels"):
        pl.einsum(*args, [0])


def test_results_that_no_memory_holds():
    long = np.broadcast_to(1.0, (1 << 40,))
    for text in ("i,j->ij", "i,j->ji", "i,j->(i j)"):
        spaced = text.replace(",", " , ").replace("ij", "i j").replace("ji", "j i")
        with pytest.raises((ValueError, MemoryError, OverflowError)):
            pl.einsum(spaced, long, long)
    with pytest.raises((ValueError, MemoryError, OverflowError)):
        pl.einsum("i,j,k,l->ijkl", *[np.broadcast_to(1.0, (1 << 20,))] * 4)
    with pytest.raises((ValueError, MemoryError, OverflowError)):
        pl.einsum("(o + w) -> o w", np.ones(5), sizes={"w": 1 << 70})
    with pytest.raises((ValueError, MemoryError, OverflowError)):
        pl.einsum("(o - w), w -> o", np.ones(5), np.ones(2), outside=0, sizes={"o": 1 << 62})
    with pytest.raises(ValueError):
        pl.einsum(f"({1 << 64}*o + w) -> o w", np.ones(5), sizes={"w": 2, "o": 2})
    with pytest.raises(ValueError, match="negative"):
        pl.einsum("(o + w) -> o w", np.ones(5), sizes={"w": -1})


def test_objects_go_by_numpys_loops():
    a = np.array([[1, 10**30], [2, 3]], dtype=object)
    got = pl.einsum("ij,jk->ik", a, a)
    assert got.dtype == object and (got == np.einsum("ij,jk->ik", a, a)).all()
    with pytest.raises(TypeError):
        pl.einsum("i,i->", np.array(["x", "y"]), np.ones(2))


@pytest.mark.parametrize("char", "fdFD")
def test_nan_and_infinity_go_where_numpys_go(char, rng):
    size = dict(zip("abcd", (3, 17, 16, 5)))
    for text in ("ab,bc->ac", "ab,bc,cd->ad", "dab,dbc->dac", "ab,ab->a", "ab,cb->ac", "a,b->ab"):
        terms = text.split("->")[0].split(",")
        arrays = [rng.normal(size=[size[x] for x in t]).astype(char) for t in terms]
        where = arrays[0].reshape(-1)
        where[rng.integers(where.size)] = rng.choice([np.nan, np.inf])
        arrays[-1].reshape(-1)[:2] = 0
        with np.errstate(all="ignore"):
            got, want = pl.einsum(text, *arrays), np.einsum(text, *arrays)
        bad = ~np.isfinite(want)
        assert bad.any()
        np.testing.assert_array_equal(~np.isfinite(got), bad, err_msg=text)
        np.testing.assert_allclose(got[~bad], want[~bad], rtol=1e-3, atol=1e-3)


def strided(rng, shape):
    """Any strides: negative, zero, over each other, with gaps, axes in any order."""
    item = np.dtype(float).itemsize
    strides = [int(rng.choice([-3, -1, 0, 1, 1, 2, 7, 33])) for _ in shape]
    low = sum(min(0, s * (n - 1)) for s, n in zip(strides, shape) if n)
    high = sum(max(0, s * (n - 1)) for s, n in zip(strides, shape) if n)
    whole = rng.normal(size=high - low + 1)
    return np.lib.stride_tricks.as_strided(whole[-low:], shape, [item * s for s in strides])


@pytest.mark.sweep(4)
@pytest.mark.parametrize("part", range(8))
def test_any_strides(part):
    rng = np.random.default_rng()  # anew each time
    seed = int(rng.integers(1 << 62)) + part
    rng = np.random.default_rng(seed)
    for _ in range(40):
        labels = "abcde"[: rng.integers(1, 6)]
        size = {x: int(rng.choice([0, 1, 2, 3, 8, 16, 17])) for x in labels}
        terms = [
            "".join(rng.choice(list(labels), rng.integers(0, 4)))
            for _ in range(int(rng.integers(1, 4)))
        ]
        known = sorted(set("".join(terms)))
        out = "".join(rng.permutation(known)[: rng.integers(0, len(known) + 1)])
        arrays = [strided(rng, [size[x] for x in t]) for t in terms]
        text = ",".join(terms) + "->" + out
        got, want = pl.einsum(text, *arrays), np.einsum(text, *arrays)
        bound = np.einsum(text, *map(np.abs, arrays))
        said = f"{text} {size} strides {[a.strides for a in arrays]} seed {seed}"
        assert np.shape(got) == np.shape(want), said
        assert np.all(np.abs(got - want) <= 1e-12 * bound + 1e-300), said


@pytest.mark.parametrize(
    "text, shapes",
    [
        ("i->", ((1 << 40,),)),
        ("i,i->", ((1 << 40,), (1 << 40,))),
        ("ij->j", ((1 << 36, 3),)),
        ("ij,ij->i", ((3, 1 << 36), (3, 1 << 36))),
    ],
)
def test_an_interrupt_ends_a_long_one(text, shapes):
    class Enough(Exception):
        pass

    def stop(number, frame):
        raise Enough

    long = [np.broadcast_to(1.0, s) for s in shapes]
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        start = time.perf_counter()
        with pytest.raises(Enough):
            pl.einsum(text, *long)
        assert time.perf_counter() - start < 60
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_allclose(pl.einsum("i,i->", np.ones(5), np.ones(5)), 5)


@pytest.mark.parametrize("lazily", [False, True])
@pytest.mark.parametrize(
    "text, shapes, said",
    [
        (
            "bi,b",
            ((3, 2), (5,)),
            "axis 'b' has size 3 .* and 5 in operand 1 .*'bi' is read as 2 lab",
        ),
        ("bi j,bi", ((3, 2), (5,)), "axis 'bi' has size 3 .* and 5 .*read as names.* each letter"),
        ("i 5, i -> i", ((3, 4), (3,)), "an axis written 5 has size 4 in operand 0"),
        ("(h 5) i -> h", ((12, 4),), r"\(h 5\) of operand 0 of shape \(12, 4\) has size 12"),
        ("(2 3) i -> i", ((5, 3),), r"\(2 3\) of operand 0"),
        ("(h 5 o) -> h", ((10,),), r"\(h 5 o\) of .* say the size of 'h'"),
    ],
)
def test_sizes_that_differ_say_how_the_text_was_read(text, shapes, said, lazily):
    operands = [np.ones(s) for s in shapes]
    with pytest.raises(ValueError, match=said) as error:
        pl.einsum(text, *(map(pl.lazy, operands) if lazily else operands))
    assert "#" not in str(error.value)
