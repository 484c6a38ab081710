"""Coefficients on tapes: a tape that is made where numbers are alike, keep a ratio or are zero
holds for all others. Values and gradients are those of NumPy's formulas, by complex steps."""

import itertools

import numpy as np
import pytest

import pylinop as pl
from pylinop import _core
from pylinop._programs import coefficients, freezing, marks
from pylinop._programs.freezing import Freezable
from pylinop._programs.programs import Written

Y = np.array([0.1, 0.2, 0.3, 0.4])
CALLS = 5  # by the last of them there is a tape, if any


def formula(c, y=Y):
    """y' (c Y + 1)^-1 y of a coefficient made of arrays, and the same by NumPy alone."""

    def ours(*args):
        return y @ pl.solve(pl.Diag(y) * c(*args) + pl.Identity(len(y)), y)

    def numpys(*args):
        return np.sum(y * y / (1 + c(*args) * y))

    return ours, numpys


def by_complex_steps(f, args):
    args = [np.asarray(a, float) for a in args]
    gradients = []
    for k, a in enumerate(args):
        g = np.zeros(a.shape)
        for at in np.ndindex(a.shape):
            x = a.astype(complex)
            x[at] += 1e-30j
            g[at] = f(*args[:k], x[()], *args[k + 1 :]).imag / 1e-30
        gradients.append(g)
    return f(*args), gradients


def as_value_and_grad(f, count):
    return pl.value_and_grad(f, tuple(range(count)))


def as_program(f, count):
    p, many = pl.program(f), tuple(range(count))
    found = pl.value_and_grad(p, many)
    return lambda *args: (p(*args), found(*args)[1])


def as_cut_program(f, count):
    p = pl.program(f)

    def run(*args):
        value, back = p.cut(*args)
        return value, back(np.ones((), np.asarray(value).dtype))

    return run


ROADS = {
    "value_and_grad": as_value_and_grad,
    "program": as_program,
    "cut": as_cut_program,
}


def assert_holds(c, alike, rng, road="value_and_grad", dtype=np.float64):
    ours, numpys = formula(c, Y.astype(dtype))
    run = ROADS[road](ours, len(alike))
    alike = [np.array(a, dtype)[()] for a in alike]
    others = [[a * rng.uniform(0.6, 1.6, np.shape(a)).astype(dtype) for a in alike]]
    others.append([np.asarray(rng.uniform(0.5, 2, np.shape(a)), dtype)[()] for a in alike])
    rtol = 1e-10 if dtype == np.float64 else 2e-4
    for args in (*[alike] * CALLS, *others, alike, others[1]):
        value, gradients = run(*args)
        due, due_gradients = by_complex_steps(numpys, args)
        np.testing.assert_allclose(value, due, rtol=rtol)
        for found, g in zip(gradients, due_gradients, strict=True):
            np.testing.assert_allclose(found, g, rtol=rtol, atol=rtol * max(1e-3, abs(g).max()))


PLACES = [(1, 43, 50), (18, 92, 100), (57, 76, 100), (2, 11, 20), (0, 1, 2), (0, 2, 3)]
OF_TWO = {
    "ratio": lambda a, b: a / b,
    "product": lambda a, b: a * b,
    "sum": lambda a, b: a + b,
    "first": lambda a, b: a,
    "square of ratio": lambda a, b: (a / b) * (a / b),
    "power": lambda a, b: a * a * a / (b * b),
    "difference": lambda a, b: 2 * a - b,
    "half": lambda a, b: 0.5 * a + 0 * b,
    "with constants": lambda a, b: 2.0 * (a * 0.5) / (b * -1.0) * -1.0,
    "flat": lambda a, b: 1 + 1e-20 * a * b,
    "one and a product": lambda a, b: 1 + a * b,
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize("road", ROADS)
def test_ratios_of_elements(road, place, dtype, rng):
    i, j, n = place
    assert_holds(lambda p: p[i] / p[j], [np.ones(n)], rng, road, dtype)


@pytest.mark.parametrize("start", [1.0, -1.0, 0.5, 2.0, 0.0, 0.7])
@pytest.mark.parametrize("what", OF_TWO)
def test_what_is_made_of_two_elements(what, start, rng):
    if start == 0 and what not in (
        "product",
        "sum",
        "first",
        "difference",
        "half",
        "flat",
        "one and a product",
    ):
        start = 3.0
    n = int(rng.integers(2, 101))
    i, j = rng.choice(n, 2, replace=False)
    c = OF_TWO[what]
    assert_holds(lambda p: c(p[i], p[j]), [np.full(n, start)], rng)
    assert_holds(lambda p, q: c(p[i], q[j]), [np.full(n, start), np.full(n, start)], rng)
    assert_holds(lambda s, t: c(s, t), [start, start], rng, "program")


@pytest.mark.parametrize("what", ["one and a product", "sum", "first", "difference"])
@pytest.mark.parametrize("start", [1e-20, 1e-10, 1e-8, 1e6])
def test_a_sum_that_does_not_show_an_element(what, start, rng):
    """1 + 1e-20 is 1, for which there are plans of their own."""
    c = OF_TWO[what]
    assert_holds(lambda p: c(p[1], p[2]), [np.full(3, start)], rng)
    assert_holds(lambda p: 1 + c(p[1], p[2]), [np.full(3, start)], rng, "program")
    assert_holds(lambda s, t: 1 - c(s, t) * t, [start, start], rng, "cut")


@pytest.mark.parametrize("places", [(0, 3, 2, 1), (0, 4, 4, 0)])
def test_elements_of_several_arrays(places, rng):
    a, i, b, j = places
    five = [np.ones(5)] * 5
    assert_holds(lambda *p: p[a][i] / p[b][j], five, rng)
    assert_holds(lambda *p: p[a][i] * p[b][j] / (p[1][1] * p[3][2]), five, rng, "cut")


@pytest.mark.parametrize(
    "c",
    [
        lambda A: A[0, 1] / A[1, 0],
        lambda A: A[0, 1] * A[1, 2] / (A[0, 2] * A[1, 1]),
        lambda A: A[0, 1] * A[1, 0] - A[0, 0] * A[1, 1] + A[2, 2],
        lambda A: A[0, 1] * A[1, 0] * A[2, 2],
        lambda A: A[2, 1],
    ],
)
@pytest.mark.parametrize("road", ROADS)
def test_symmetric_matrices_of_elements(c, road, rng):
    S = rng.uniform(0.5, 1, (3, 3))
    for A in (np.ones((3, 3)), S + S.T):
        assert_holds(c, [A], rng, road)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_of_cotangents(dtype, rng):
    """The gradient by an element is a multiple by the element across."""
    g = pl.grad(lambda A, x: A[0, 1] * A[1, 0] * np.sum(x * x))
    S = rng.uniform(0.5, 1, (3, 3))
    for A in (np.ones((3, 3)), S + S.T):
        A, x = A.astype(dtype), np.ones(4, dtype)
        for _ in range(CALLS):
            g(A, x)
        A = A.copy()
        A[0, 1], A[1, 0] = 2, 5
        found = g(A, x)
        due = np.zeros((3, 3))
        due[0, 1], due[1, 0] = 20, 8
        np.testing.assert_allclose(found, due, rtol=1e-6)


@pytest.mark.parametrize("start", [1.0, 0.5, 2.0])
def test_hessians_along_vectors(start, rng):
    n = int(rng.integers(2, 60))
    i, j = rng.choice(n, 2, replace=False)
    ours, numpys = formula(lambda p: p[i] / p[j])
    h = pl.hvp(ours)

    def gradient(p):
        c, s = p[i] / p[j], -np.sum(Y**3 / (1 + p[i] / p[j] * Y) ** 2)
        g = np.zeros(n, complex)
        g[i], g[j] = s / p[j], -s * c / p[j]
        return g

    for k in range(8):
        p = np.full(n, start) if k < CALLS else rng.uniform(0.5, 2, n)
        v = np.ones(n) if k < CALLS else rng.standard_normal(n)
        due = gradient(p + 1e-30j * v).imag / 1e-30
        np.testing.assert_allclose(h(p, v), due, rtol=1e-8, atol=1e-12)


def test_complex_elements(rng):
    """Coefficients that are real because of what the elements are."""
    for start in (1.0, 1j, -1.0, 0.5 + 0.2j):
        f = pl.value_and_grad(lambda z: Y @ pl.solve(pl.Diag(Y) * np.real(z[1] * z[2]), Y))
        for k in range(8):
            z = np.full(4, start, complex)
            if k >= CALLS:
                z = z * rng.uniform(0.5, 2, 4)
            value, _ = f(z)
            np.testing.assert_allclose(value, np.sum(Y) / (z[1] * z[2]).real, rtol=1e-10)


@pytest.mark.parametrize("by", [0.0, 0.25])
def test_elements_that_are_moved_alike_are_found_out(by, rng, monkeypatch):
    """Whatever the random numbers are: those of all elements, or of each two, are alike here."""

    def alike(a, *_):
        return np.where(a == 0, 1e-13, a * (1 + by + 2.0**-13 * np.ones(a.shape)))

    monkeypatch.setattr(marks, "_near", alike)
    for c in OF_TWO.values():
        i, j = rng.choice(9, 2, replace=False)
        assert_holds(lambda p, c=c, i=i, j=j: c(p[i], p[j]), [np.ones(9)], rng)


def solved(leaves):
    p, y = leaves
    return [pl.solve(pl.Diag(y) * p[1] + pl.Identity(4), y)]


@pytest.mark.no_verify  # verified answers leave no tapes
@pytest.mark.parametrize("wrong", ["constants", "another factor"])
def test_a_tape_of_the_wrong_coefficients_is_refused_for_good(wrong, rng, monkeypatch):
    """Its trial on other numbers finds it out, whatever has been taken for what."""
    real = coefficients.Sources.of

    def of(self, first, second):
        if wrong == "constants":
            return [None] * len(first)
        found = real(self, first, second)
        return [s and (s[0], 2 * s[1], s[2]) for s in found]

    monkeypatch.setattr(coefficients.Sources, "of", of)
    monkeypatch.setattr(freezing, "_agrees", lazily(freezing._agrees))
    program = Written(solved, solved, 2)
    p = rng.uniform(1, 2, 3)
    outs, key = [np.zeros(4)], f"wrong {wrong} {next(_keys)}".encode()
    why = [
        freezing.consider(key, lambda: Freezable(program, False), [p, Y], outs) for _ in range(6)
    ]
    assert "on other numbers" in why[1]
    assert freezing._calls[key] > freezing._FIRST + freezing._TRIES and len(set(why[1:])) == 1
    assert not _core._tape_there(key)


_keys = itertools.count()


def lazily(agrees):
    """Says of the numbers that a tape is made of that all is well: the first two of each three."""
    asked = itertools.count()
    return lambda *args: True if next(asked) % 3 < 2 else agrees(*args)


@pytest.mark.no_verify  # verified answers leave no tapes
@pytest.mark.parametrize("n", [1, 2, 17, 100])
def test_there_still_are_tapes(n, rng):
    """Of coefficients that are elements, their products and ratios."""
    i, j = rng.permutation(max(n, 2))[:2] % n
    p = rng.uniform(1, 2, n)
    of_two = (lambda p: p[i] / p[j] + 1, lambda p: p[i] * p[j])
    for c in (lambda p: p[i], np.sum, *(of_two if n > 1 else ())):
        before = _core._tape_counts()[1]
        run = pl.value_and_grad(formula(c)[0])
        for _ in range(7):
            run(p)
        assert _core._tape_counts()[1] > before, list(freezing._why.values())[-1]


def test_arrays_that_a_proof_wants_alike_stay_so(rng):
    """A band's, above and below its diagonal; others that are alike by accident do not."""
    e = 1 + rng.random(16)
    given = [4 + rng.random(17), e, e.copy(), e.copy(), rng.random(15)]
    proof = ((8, 2, (), ()), (12, 1, (0, 1, 2, 4), (0, 1, -1, 2)))
    alike = marks.twins(proof, given)
    assert alike == ((2, 1),)
    assert marks.twins(proof, [*given[:2], e + 1, *given[3:]]) == ()
    assert marks.twins(((1, 1, (0, 1), (1, -1)),), [e, e]) == ()
    for made in (marks.moved(given, 2.0**-12, alike=alike), *marks.probes(given, (), alike)):
        np.testing.assert_array_equal(made[1], made[2])
        assert made[1] is not made[2] and (made[1] != given[1]).all()
        assert (made[3] != made[2]).any()
