"""Sizes as expressions; `unify` against enumeration of all sizes up to 12; conflicts that are
really ones, the smallest; loop_tool's programs."""

import itertools
import pickle
import random

import numpy as np
import pytest

import pylinop as pl
from pylinop._symbols.bounds import Work
from pylinop._symbols.expressions import Size, atoms, product, quotient, value
from pylinop._symbols.provenance import at_least, equal
from pylinop._symbols.unify import conflict, solved


def symbol(size):
    return next(iter(atoms(size)))


# -- expressions -----------------------------------------------------------------------------------


def drawn(r, sizes, depth=3):
    """A size and the function of numbers that it is."""
    if depth == 0 or r.random() < 0.2:
        k = r.randrange(len(sizes))
        c = r.randint(-4, 9)
        return r.choice([(sizes[k], lambda v: v[k]), (c, lambda v: c)])
    a, f = drawn(r, sizes, depth - 1)
    b, g = drawn(r, sizes, depth - 1)
    by = r.randint(1, 5)
    return r.choice(
        [
            (a + b, lambda v: f(v) + g(v)),
            (a - b, lambda v: f(v) - g(v)),
            (product([a, b]), lambda v: f(v) * g(v)),
            (quotient(a, by), lambda v: f(v) // by),
        ]
    )


@pytest.mark.parametrize("seed", range(60))
def test_expressions_are_the_functions_that_they_are_written_as(seed, rng):
    r = random.Random(int(rng.integers(1 << 40)) + seed)
    sizes = pl.symbols("a b c")
    size, f = drawn(r, sizes)
    for _ in range(8):
        v = [r.randint(1, 30) for _ in sizes]
        assert value(size, {symbol(s): n for s, n in zip(sizes, v)}) == f(v)


def test_expressions_print_as_python_writes_them():
    n, k = pl.symbols("n k")
    for text in ("2*n + 1", "n - k", "22 - 2*n", "(n - k) // 2 + 1", "n // 3", "3*(n // 2)"):
        assert str(eval(text, {"n": n, "k": k})) == text
    assert (2 * n + 4) // 2 == n + 2
    assert n - n == 0
    assert n + 1 == 1 + n
    assert hash(n * k) == hash(k * n)
    assert pickle.loads(pickle.dumps(n * k // 2)) == n * k // 2


def test_a_size_is_no_number():
    n = pl.symbols("n")
    for f in (int, float, bool, lambda x: x < 3, lambda x: range(x), lambda x: x / 2):
        with pytest.raises(TypeError, match="the size n is not a number yet"):
            f(n)
    with pytest.raises(ValueError, match="positive integers, not by 0"):
        n // 0
    with pytest.raises(TypeError):
        n + 0.5
    with pytest.raises(ValueError, match="names of symbols are wanted"):
        pl.symbols("2n")
    with pytest.raises(ValueError, match="least = -1"):
        pl.symbols("n", -1)
    assert pl.symbols("n") != n  # of the same name, and another


# -- against enumeration ---------------------------------------------------------------------------


def system(r):
    """Random equations over one to three symbols, in the box up to 12."""
    least = r.choice([0, 1])
    sizes = pl.symbols("a b c"[: 2 * r.randint(1, 3) - 1], least)
    sizes = sizes if isinstance(sizes, tuple) else (sizes,)
    hidden = {symbol(s): r.randint(least, 12) for s in sizes}
    equations = [equal(s, r.randint(least, 12), "given", None) for s in sizes if r.random() < 0.25]
    for _ in range(r.randint(1, 3)):
        e = r.randint(-5, 12)
        for s in sizes:
            if r.random() < 0.7:
                e = e + r.randint(-3, 3) * s
        kind = r.random()
        if kind < 0.25:
            inner = r.randint(1, 3) * r.choice(sizes) + r.randint(-2, 4)
            e = e + quotient(inner, r.randint(2, 3))
        elif kind < 0.4 and len(sizes) > 1:
            e = e + product(r.sample(sizes, 2))
        v = value(e, hidden) if r.random() < 0.7 else r.randint(0, 20)
        equations.append((at_least if r.random() < 0.3 else equal)(e, v, "drawn", None))
    return sizes, least, equations + [at_least(12, s, "box", None) for s in sizes]


def enumerated(sizes, least, equations, most):
    symbols = [symbol(s) for s in sizes]
    for v in itertools.product(range(least, most + 1), repeat=len(sizes)):
        known = dict(zip(symbols, v))
        if all(e.holds(value(e.left, known), value(e.right, known)) for e in equations):
            yield v


@pytest.mark.parametrize("seed", range(150))
def test_unify_is_enumeration(seed, rng):
    sizes, least, equations = system(random.Random(int(rng.integers(1 << 40)) + seed))
    taken = list(enumerated(sizes, least, equations, 12))
    try:
        found = solved(equations, [symbol(s) for s in sizes])
    except ValueError:
        assert not taken, [str(e) for e in equations]
        few = conflict(equations)
        assert not list(enumerated(sizes, least, few, 30)), [str(e) for e in few]
        if len(few) > 1:  # none can be left out
            for e in few:
                assert Work(10**6).possible([x for x in few if x is not e], 10**5)
        return
    assert taken, [str(e) for e in equations]
    for k, s in enumerate(sizes):
        low, high, exact = found[symbol(s)]
        assert exact
        assert (low, high) == (min(v[k] for v in taken), max(v[k] for v in taken))
    for choose, end in (("min", min), ("max", max)):
        chosen = solved(equations, [symbol(s) for s in sizes], choose)
        assert tuple(chosen[symbol(s)].low for s in sizes) in taken
        assert chosen[symbol(sizes[0])].low == end(v[0] for v in taken)


def test_what_divides_two_constants_may_be_negative():
    a, b, c, d = pl.symbols("a b c d")
    q = (a - b) // 2
    both = (q * c + 6, 0), (q * d + 4, 0)
    found = pl.unify(*both, (a, 1), (b, 5))
    assert dict(found) == {"a": 1, "b": 5, "c": 3, "d": 2}
    found = pl.unify(*both, choose="min")
    assert (found[c], found[d]) in ((6, 4), (3, 2)) and found[a] - found[b] in (-1, -2, -3, -4)


def test_products_with_a_smaller_size_are_decided():
    """Bounds leave open what is within it; sizes were given that do not fit."""
    K, N = pl.symbols("K N")
    k = np.linalg.svdvals(pl.placeholder((N, K))).shape[0]
    assert dict(pl.unify((K * k, 41))) == {"K": 41, "N": 1}
    assert dict(pl.unify((K * k, 12), (N, 3))) == {"K": 4, "N": 3}
    with pytest.raises(ValueError, match="no sizes fit"):
        pl.unify((K * k, 41), (N, 3))
    assert pl.unify((k * k, 9)).interval(K) == (3, None)
    for choose in ("min", "max"):
        found = pl.unify((N, 8), (K * k - 3 * K, 10), choose=choose)
        assert dict(found) == {"K": 5, "N": 8}


def test_elimination_and_bounds_are_one():
    a, b = pl.symbols("a b")
    found = pl.unify((a + b, 10), (a - b, 2))
    assert (found[a], found[b], found[a * b]) == (6, 4, 24)
    assert dict(found) == {"a": 6, "b": 4}


@pytest.mark.parametrize(
    "coefficients, total", [((6, 10, 15), 1), ((6, 10), 7), ((4, 6), 2), ((12, 18, 30), 60)]
)
def test_equations_without_a_coefficient_of_one(coefficients, total):
    sizes = pl.symbols("x y z"[: 2 * len(coefficients) - 1], 0)
    total += 60
    e = sum(c * s for c, s in zip(coefficients, sizes))
    exists = any(
        sum(c * v for c, v in zip(coefficients, vs)) == total
        for vs in itertools.product(range(total + 1), repeat=len(sizes))
    )
    if not exists:
        with pytest.raises(ValueError, match="no sizes fit"):
            pl.unify((e, total))
        return
    found = pl.unify((e, total), choose="max")
    assert found[e] == total


def test_what_goes_on_for_ever_ends():
    """o + k on both sides, bounds that push each other, products of themselves."""
    o, k, m = pl.symbols("o k m")
    found = pl.unify((o + k, o + k))
    with pytest.raises(ValueError, match="o may be any size from 1 on"):
        found[o]
    with pytest.raises(ValueError, match="no sizes fit"):  # k >= o m >= o >= k + 1
        solved([at_least(o, k + 1, "", None), at_least(k, o * m, "", None)], [])
    search = solved([equal(o * o * o + k * k * k, m * m * m, "Fermat", None)], [])
    assert all(not i.exact for i in search.values())
    with pytest.raises(ValueError, match="no sizes fit"):
        pl.unify((o * o, 2))
    with pytest.raises(ValueError, match=r"beyond 2\^63|no sizes fit"):
        pl.unify((o, 2**70))


# -- loop_tool -------------------------------------------------------------------------------------


def convolved(x, w):
    return pl.einsum("c (o + w), w -> c o", x, w)


def loop_tool():
    N, K = pl.symbols("N K")
    X, W, C = pl.placeholder(N), pl.placeholder(K), pl.placeholder((128, 20))
    return X, W, C, convolved(convolved(pl.einsum("c x, x -> c x", C, X), W), W)


def test_sizes_of_inputs_from_that_of_the_output():
    X, W, C, Y = loop_tool()
    sizes = pl.unify((Y, (128, 16)))
    assert (sizes[X], sizes[W], sizes[Y], sizes[C]) == ((20,), (3,), (128, 16), (128, 20))
    assert repr(sizes) == "<Sizes: K = 3, N = 20>"


def test_the_fewest_equations_are_shown_with_their_lines():
    X, W, C, Y = loop_tool()
    with pytest.raises(ValueError) as error:
        pl.unify((Y, (127, 16)))
    text = str(error.value)
    assert "c = 128: C (128, 20), line" in text
    assert "c = 127: Y (127, 16), line" in text
    assert text.count("\n") == 1
    with pytest.raises(ValueError, match=r"\(K would have to be 2\.5\)"):
        pl.unify((Y, (128, 17)))
    with pytest.raises(ValueError, match=r"\(K would have to be -4, and is at least 1\)"):
        pl.unify((Y, (128, 30)))


def test_a_convolution_before_a_product():
    """The program of loop_tool's tutorial: 8 numbers from a window of 3 are made of 10."""
    a, b, c = pl.placeholder(pl.symbols("unknown")), pl.placeholder(3), pl.placeholder(8)
    d = np.sum(pl.einsum("(o + k), k -> o", a, b) * c)
    assert pl.unify(d)[a] == (10,)


def test_a_product_with_a_vector():
    a, b = pl.placeholder(pl.symbols("M")), pl.placeholder((8, 5))
    c = pl.einsum("k, k n -> n", a, b)
    assert c.shape == (5,)
    assert pl.unify(c)[a] == (8,)


def test_a_step_leaves_an_interval():
    N = pl.symbols("N")
    X, W = pl.placeholder(N), pl.placeholder(7)
    Y = pl.einsum("(2*o + w), w -> o", X, W)
    sizes = pl.unify((Y, 112))
    with pytest.raises(ValueError, match="N is between 229 and 230: choose='min'"):
        sizes[X]
    assert sizes.interval(N) == (229, 230)
    with pytest.raises(KeyError, match="is no symbol in the equations"):
        sizes.interval(2 * N)
    assert pl.unify((Y, 112), choose="min")[X] == (229,)
    assert pl.unify((Y, 112), choose="max")[X] == (230,)
    for n in (229, 230):
        f = pl.function(X, pl.einsum("(2*o + w), w -> o", X, np.ones(7)))
        assert f(np.ones(n)).shape == (112,)


def test_wrong_pairs():
    N = pl.symbols("N")
    X = pl.placeholder((N, 3))
    with pytest.raises(ValueError, match="has 2 dimensions"):
        pl.unify((X, (1, 2, 3)))
    with pytest.raises(TypeError, match="a placeholder, formula or size is due, not a ndarray"):
        pl.unify((np.ones(3), (3,)))
    with pytest.raises(ValueError, match="not negative"):
        pl.unify((N, -1))
    with pytest.raises(ValueError, match="choose must be"):
        pl.unify((N, 1), choose="least")
    with pytest.raises(KeyError, match="in none of the equations"):
        pl.unify((N, 1))[pl.symbols("M")]
    assert pl.unify((X, (None, 3)), (N, 4))[X] == (4, 3)
    with pytest.raises(ValueError, match="there is no greatest one"):
        pl.unify(X, choose="max")
    assert isinstance(2 * N, Size)


def test_squares_and_smaller_sizes_have_ends():
    N, K, M = pl.symbols("N K M", least=0)
    sizes = pl.unify((N * N, 16), (N * K, 12), ((M * M - M) // 2 + 1, 11))
    assert (sizes[N], sizes[K], sizes[M]) == (4, 3, 5)
    P, Q = pl.symbols("P Q")
    A = pl.placeholder((P, P * Q))
    s = np.linalg.svd(A, compute_uv=False)  # min(P, P * Q), which is P
    assert pl.unify((s, 5))[P] == 5
    with pytest.raises(ValueError, match="Q may be any size from 1 on"):
        pl.unify((s, 5))[Q]
    with pytest.raises(ValueError, match="Q may be any size from 1 on: there is no greatest one"):
        pl.unify((s, 5), choose="max")


@pytest.mark.parametrize("choose, which", [("min", "least"), ("max", "greatest")])
def test_what_is_not_found_is_not_said_to_be_none(choose, which):
    """Sums of two cubes are no cubes, which no count decides."""
    a, b, c = pl.symbols("a b c")
    with pytest.raises(ValueError, match=f"{which} size was") as found:
        pl.unify((a * a * a + b * b * b - c * c * c, 0), choose=choose)
    assert "no sizes fit" not in str(found.value)


def test_a_greatest_size_that_was_not_found_is_not_offered():
    a, b, c = pl.symbols("a b c")
    sizes = pl.unify((a * b - c * c, 3))
    assert sizes.interval(a) == (1, None)
    with pytest.raises(ValueError, match="no greatest size was found: choose='min' takes the l"):
        sizes[a]
    with pytest.raises(ValueError, match="no greatest size was found"):
        pl.unify((a * b - c * c, 3), choose="max")


def test_ends_that_no_single_equation_gives():
    a, b, c = pl.symbols("a b c", least=0)
    found = solved([at_least(b + 3, a, "", None), at_least(a + 4, 2 * b, "", None)], [])
    assert [i[:2] for i in found.values()] == [(0, 7), (0, 10)]  # of b and a
    sizes = pl.unify((a - ((b - c) + c * c), 23), choose="min")  # c squared is c or more
    assert (sizes[a], sizes[b], sizes[c]) == (23, 0, 0)
    with pytest.raises(ValueError, match="a may be any size from 23 on"):
        pl.unify((a - ((b - c) + c * c), 23))[a]
    found = solved([equal(b * b - 3 * a * b, 16, "", None)], [])  # b divides 16
    assert sorted(i[:2] for i in found.values()) == [(0, 5), (4, 16)]


@pytest.mark.parametrize("seed", range(40))
def test_systems_without_bounds(seed, rng):
    """No size has a bound: what fits up to 15 lies between the ends, and the least ones fit."""
    r = random.Random(int(rng.integers(1 << 40)) + seed)
    least = r.choice([0, 1])
    sizes = pl.symbols("a b", least)
    hidden = {symbol(s): r.randint(least, 8) for s in sizes}
    equations = []
    for _ in range(r.randint(1, 2)):
        e, _function = drawn(r, sizes)
        if isinstance(e, Size):
            equations.append(r.choice([equal, equal, at_least])(e, value(e, hidden), "", None))
    taken = list(enumerated(sizes, least, equations, 15))
    found = solved(equations, [symbol(s) for s in sizes])
    for k, s in enumerate(sizes):
        low, high, _exact = found[symbol(s)]
        assert low <= min(v[k] for v in taken)
        assert high is None or high >= max(v[k] for v in taken)
    try:
        chosen = solved(equations, [symbol(s) for s in sizes], "min")
    except ValueError as error:  # within the counts
        assert "least size was not found" in str(error)
        return
    known = {symbol(s): chosen[symbol(s)].low for s in sizes}
    assert all(e.holds(value(e.left, known), value(e.right, known)) for e in equations)
    assert known[symbol(sizes[0])] <= min(v[0] for v in taken)


def test_a_size_of_zero_in_products():
    N, K = pl.symbols("N K", least=0)
    sizes = pl.unify((N * K, 0), (N, 0))
    assert sizes[N] == 0
    for k in (0, 4):
        assert pl.unify((N * K, 0), (N, 0), (K, k))[K] == k
    with pytest.raises(ValueError, match="no sizes fit"):
        pl.unify((N * K, 3), (N, 0))
    X, Y = pl.placeholder((N, K)), pl.placeholder(K * N)
    f = pl.function((X, Y), np.ravel(X) + Y)
    assert f(np.ones((0, 3)), np.ones(0)).shape == (0,)


@pytest.mark.parametrize("least", [0, 1])
def test_drawn_systems_against_every_size(least, rng):
    """Products, quotients and smaller sizes, with all sizes up to 8 tried."""
    for _ in range(60):
        N, K = pl.symbols("N K", least=least)
        a, b, c, d = (int(x) for x in rng.integers(1, 4, 4))
        draw = [
            a * N + b * K,
            N * K + c,
            (a * N + d) // 2 + K,
            (N + a) * (K + b),
            N * N,
            a * N - b * K + 3 * c,
        ]
        chosen = [draw[i] for i in rng.choice(len(draw), 2, replace=False)]
        n, k = (int(x) for x in rng.integers(least, 6, 2))
        pairs = [(x, _at(x, N, K, n, k) + int(rng.random() < 0.2)) for x in chosen]
        pairs = [(x, v) for x, v in pairs if v >= 0]
        every = [(i, j) for i in range(least, 9) for j in range(least, 9)]
        fits = [p for p in every if all(_at(x, N, K, *p) == v for x, v in pairs)]
        try:
            sizes = pl.unify(*pairs, (N, N), (K, K))
        except ValueError:
            assert not fits, (pairs, fits)
            continue
        for place, symbol in enumerate((N, K)):
            low, high = sizes.interval(symbol)
            found = {p[place] for p in fits}
            assert all(low <= x and (high is None or x <= high) for x in found), (pairs, fits)
            if low == high <= 8 and fits:
                assert found == {low}, (pairs, fits)


def _at(size, N, K, n, k):
    """The number that a size is at N = n, K = k."""
    if not isinstance(size, Size):
        return size
    return value(size, {a: x for s, x in ((N, n), (K, k)) for a in atoms(s)})
