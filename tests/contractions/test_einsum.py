"""`pl.einsum` on arrays: against numpy.einsum over random equations, NumPy's own tests of einsum,
opt_einsum's equations, dtypes, layouts, results, errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy._core.tests import test_einsum as numpys

import pylinop as pl

SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33)


@st.composite
def problems(draw):
    labels = draw(st.integers(1, 6))
    sizes = [draw(st.sampled_from(SIZES)) for _ in range(labels)]
    terms = draw(st.lists(st.lists(st.integers(0, labels - 1), max_size=4), min_size=1, max_size=5))
    known = sorted({x for t in terms for x in t})
    out = draw(st.permutations(known)) if known else []
    out = out[: draw(st.integers(0, len(out)))]
    return terms, out, sizes, draw(st.integers(0, 2**31)), draw(st.sampled_from("fdFDlib?"))


def array(rng, shape, char):
    """In a random layout: permuted, reversed, spread, broadcast."""
    order = rng.permutation(len(shape))
    spread = [int(rng.integers(1, 3)) for _ in shape]
    big = [shape[k] * spread[k] for k in order]
    a = rng.normal(size=big) if char in "fdFD" else rng.integers(0, 4, big)
    a = (a + 1j * rng.normal(size=big) if char in "FD" else a).astype(char)
    a = a.transpose(np.argsort(order)) if len(shape) else a
    a = a[tuple(slice(None, None, spread[k]) for k in range(len(shape)))]
    for k in range(len(shape)):
        way = rng.random()
        if way < 0.15:
            a = np.flip(a, k)
        elif way < 0.25 and shape[k]:
            a = np.broadcast_to(np.take(a, [0], k), a.shape)
    return a


def compare(got, terms, arrays, out, char):
    kind = "D" if char in "FD" else "d" if char in "fd" else char
    args = [x for a, t in zip(arrays, terms) for x in (a.astype(kind), t)]
    want = np.einsum(*args, out)
    assert got.shape == want.shape and got.dtype == np.dtype(char)
    if char not in "fdFD":
        np.testing.assert_array_equal(got, want)
        return
    bound = np.einsum(*(x if isinstance(x, list) else np.abs(x) for x in args), out)
    terms_of = float(np.prod([a.size for a in arrays], dtype=float)) + 8
    eps = np.finfo(char).eps
    assert np.all(np.abs(got - want) <= 4 * eps * min(terms_of, 4096) * bound + 1e-37)


def letters(terms, out):
    text = ",".join("".join("abcdef"[x] for x in t) for t in terms)
    return text + "->" + "".join("abcdef"[x] for x in out)


@given(problems())
@settings(max_examples=600, deadline=None)
def test_random_equations(problem):
    terms, out, sizes, seed, char = problem
    total = float(np.prod([sizes[x] for x in {x for t in terms for x in t}], dtype=float))
    shapes = [[sizes[x] for x in t] for t in terms]
    if total > 1e6 or any(np.prod(s, dtype=float) > 1e5 for s in shapes):
        return
    rng = np.random.default_rng(seed)
    arrays = [array(rng, shape, char) for shape in shapes]
    if len(arrays) > 1 and shapes[0] == shapes[1] and rng.random() < 0.5:
        arrays[1] = arrays[0]
    text = letters(terms, out)
    for _ in range(2):  # planned, found again
        compare(np.asarray(pl.einsum(text, *arrays)), terms, arrays, out, char)
    lists = [x for a, t in zip(arrays, terms) for x in (a, t)]
    compare(np.asarray(pl.einsum(*lists, out)), terms, arrays, out, char)
    named = ", ".join(" ".join("n" + "abcdef"[x] for x in t) for t in terms)
    named += " -> " + " ".join("n" + "abcdef"[x] for x in out)
    if any(len(t) > 1 for t in (*terms, out)):
        compare(np.asarray(pl.einsum(named, *arrays)), terms, arrays, out, char)
    into = np.full([sizes[x] for x in out], 7).astype(char)
    if np.asarray(pl.einsum(text, *arrays)).shape == into.shape:
        assert pl.einsum(text, *arrays, out=into) is into
        compare(into, terms, arrays, out, char)
    path = np.einsum_path(*lists, out, optimize="greedy")[0]
    compare(np.asarray(pl.einsum(text, *arrays, optimize=path)), terms, arrays, out, char)
    lazily = pl.einsum(text, *map(pl.lazy, arrays))
    assert isinstance(lazily, pl.LazyArray) and lazily.dtype == np.dtype(char)
    compare(np.asarray(lazily), terms, arrays, out, char)


# -- NumPy's own tests, with this einsum in place of theirs


OURS = {np.einsum: pl.einsum, np.einsum_path: pl.einsum_path}


class Np:
    """numpy with another einsum."""

    einsum = staticmethod(pl.einsum)

    def __getattr__(self, name):
        return getattr(np, name)


# What they ask of the C interface alone: messages, orders, warnings of their own.
NOT_OURS = {
    "test_einsum_0d_out": "floats are cast to integers where that is asked for",
    "test_subscript_range": "labels are not only 52",
}
TESTS = [
    (owner, name)
    for owner in (numpys.TestEinsum, numpys.TestEinsumPath)
    for name in dir(owner)
    if name.startswith("test_") and owner is numpys.TestEinsum
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("owner, name", TESTS, ids=[name for _, name in TESTS])
def test_numpys_own(owner, name, monkeypatch):
    if name in NOT_OURS:
        pytest.skip(NOT_OURS[name])
    monkeypatch.setattr(numpys, "np", Np())
    found = getattr(owner(), name)
    cases = [{}]
    for mark in getattr(found, "pytestmark", []):
        names = mark.args[0] if isinstance(mark.args[0], list | tuple) else [mark.args[0]]
        many = [dict(zip(names, v if len(names) > 1 else (v,))) for v in mark.args[1]]
        cases = [{**c, **v} for c in cases for v in many if mark.name == "parametrize"]
    for case in cases:
        found(**{k: OURS.get(v, v) if callable(v) else v for k, v in case.items()})


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_turned_copies_are_exact(dtype, rng):
    """In squares, tiles and what is left of them; rows a page apart too; NaN keeps its bits."""
    shapes = [(a, b) for a in (9, 31, 33, 64, 67) for b in (9, 36, 65)]
    shapes += [(40, 4096 // np.dtype(dtype).itemsize), (4096 // np.dtype(dtype).itemsize, 70)]
    for m, n in shapes:
        bits = rng.integers(0, 256, (3, m, n * np.dtype(dtype).itemsize), np.uint8)
        a = bits.view(dtype)
        for x in (a, a[:, ::-1], a[:, :, ::-1]):
            out = np.empty((3, n, m), dtype)
            pl.einsum("qij->qji", x, out=out)
            want = np.ascontiguousarray(x.transpose(0, 2, 1))
            assert np.array_equal(out.view(np.uint8), want.view(np.uint8)), (m, n)
        into = np.zeros((3, n + 1, m + 2), dtype)[:, 1:, 1:-1]
        pl.einsum("qij->qji", a, out=into)
        want = np.ascontiguousarray(a.transpose(0, 2, 1))
        assert np.array_equal(np.ascontiguousarray(into).view(np.uint8), want.view(np.uint8))
