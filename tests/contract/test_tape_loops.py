"""NumPy's functions on tapes: the bits of the program in Python, whatever the layout and the
numbers; where NumPy warns, so does the call."""

import threading
import warnings

import numpy as np
import pytest

import pylinop as pl
from pylinop import _core
from pylinop._base import config
from pylinop._gradients.functions import ELEMENTWISE
from pylinop._programs import freezing, loops
from pylinop._programs.freezing import Freezable
from pylinop._programs.programs import Written
from pylinop._programs.tape_words import What

pytestmark = pytest.mark.skipif(config.get("verify"), reason="there are no tapes under verify=")


def special():
    return pytest.importorskip("scipy.special")


def ufunc_of(name):
    f = getattr(np, name, None)
    return f if f is not None else getattr(special(), name, None)


def tape_of(f, arrays):
    """A tape of f, and the program."""
    program = Written(lambda leaves: [f(*leaves)], f, len(arrays))
    outs = [np.empty(s, t) for s, t in program.kinds(tuple((a.shape, a.dtype) for a in arrays))]
    tape, _ = freezing._frozen(Freezable(program, False), arrays, outs)
    return tape, program, outs


@pytest.fixture(autouse=True)
def silent():
    """Tapes are tried on numbers of which some functions warn."""
    with np.errstate(all="ignore"):
        yield


def gives_the_same(tape, program, outs, arrays):
    due = np.asarray(program(arrays)[0])
    assert _core._tape_run(tape, tuple(arrays), tuple(outs))
    np.testing.assert_array_equal(outs[0], due)
    assert bits(outs[0]) == bits(due.astype(outs[0].dtype))


def bits(a):
    """Which of two NaN a sum of them is, processors choose by the order of the operands."""
    return np.where(np.isnan(a), np.nan, a).tobytes()


COMPLEX_TOO = {"exp", "log", "sqrt", "square", "sin", "cos", "tan", "tanh", "reciprocal", "add"}
COMPLEX_TOO |= {"divide", "multiply", "power", "subtract", "negative", "conjugate", "expm1"}
NEVER = {"positive"}  # which gives its argument
CASES = [(n, t) for n in sorted(set(ELEMENTWISE) - NEVER) for t in "dfDF"]
CASES = [(n, t) for n, t in CASES if t in "df" or n in COMPLEX_TOO]


@pytest.mark.parametrize("name, dtype", CASES)
def test_a_ufunc_gives_its_own_bits(name, dtype, rng):
    f = ufunc_of(name)
    if not isinstance(f, np.ufunc):
        pytest.skip("no ufunc of this NumPy or SciPy")

    def some(*shape):
        x = rng.uniform(0.1, 0.9, shape)
        return (x + (1j * rng.uniform(0.1, 0.9, shape) if dtype in "DF" else 0)).astype(dtype)

    shapes = [(7, 13)] if f.nin == 1 else [(7, 13), (13,)]
    arrays = [some(*s) for s in shapes]
    try:
        tape, program, outs = tape_of(f, arrays)
    except freezing.Unfit as why:  # integers; the conjugate of a real number is itself
        assert (name == "conjugate" and dtype in "df") or f.resolve_dtypes(
            (*[a.dtype for a in arrays], None)
        )[-1].char not in "fdFD", why
        return
    for _ in range(2):
        gives_the_same(tape, program, outs, [some(*s) for s in shapes])


@pytest.mark.parametrize("layout", ["C", "F", "turned"])
@pytest.mark.parametrize("function", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1), (1, 2), (0, 2)])
def test_reductions_give_numpys_bits(axis, function, layout, rng):
    f = getattr(np, function)

    def formula(x):
        return f(np.transpose(np.exp(x), (2, 0, 1)) if layout == "turned" else x, axis=axis)

    def some(shape, dtype):
        return np.asarray(rng.standard_normal(shape), dtype, order="F" if layout == "F" else "C")

    made = 0
    for shape in ((3, 8, 130), (2, 9, 5), (1, 7, 300), (129, 1, 2), (4, 128, 1)):
        for dtype in "df":
            arrays = [some(shape, dtype)]
            try:
                tape, program, outs = tape_of(formula, arrays)
            except freezing.Unfit:
                # a plan's product with ones is not for all; axes that are no neighbours
                continue
            made += 1
            gives_the_same(tape, program, outs, [some(shape, dtype)])
    assert made


@pytest.mark.parametrize("layout", ["C", "F", "flipped"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("function", ["cumsum", "cumprod", "prod"])
def test_running_sums_and_products_give_numpys_bits(function, axis, layout, rng):
    f = getattr(np, function)

    def formula(x):
        return f(np.flip(x, 1) if layout == "flipped" else x, axis=axis)

    def some(shape, dtype):
        x = rng.uniform(-1.2, 1.2, shape)
        x.flat[:1] *= 0
        return np.asarray(x, dtype, order="F" if layout == "F" else "C")

    made = 0
    for shape in ((3, 8, 13), (2, 9, 5), (1, 7, 30), (12, 1, 2), (1, 1, 1), (0, 3, 2)):
        for dtype in "df":
            try:
                tape, program, outs = tape_of(formula, [some(shape, dtype)])
            except freezing.Unfit:  # axes that are no neighbours; the bits of no elements
                continue
            made += 1
            for _ in range(2):
                gives_the_same(tape, program, outs, [some(shape, dtype)])
    assert made >= (2 if layout == "F" and axis is None else 4)  # which reshape copies


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("ord", [None, 1, 2, np.inf, -np.inf])
def test_norms_along_an_axis_give_numpys_bits(ord, axis, keepdims, rng):
    def formula(x):
        return np.linalg.norm(x, ord=ord, axis=axis, keepdims=keepdims)

    for dtype in "df":
        for shape in ((5, 300), (130, 9), (1, 7)):
            tape, program, outs = tape_of(formula, [rng.standard_normal(shape).astype(dtype)])
            x = rng.standard_normal(shape).astype(dtype)
            gives_the_same(tape, program, outs, [x])
            gives_the_same(tape, program, outs, [0 * x])
            x.flat[:3] = np.nan, np.inf, 0
            gives_the_same(tape, program, outs, [x])


def test_gradients_of_products_and_norms_run_without_python(rng):
    W = rng.standard_normal(9)
    for f in (
        lambda x: np.prod(x) + np.sum(W * np.cumsum(x)),
        lambda x: np.linalg.norm(x, 2) * np.linalg.norm(x, 1),
    ):
        both = pl.value_and_grad(pl.program(f))
        for k in range(5):
            before = _core._tape_counts()
            x = rng.uniform(0.5, 1.5, 9)
            x[k] = 0
            value, gradient = both(x)
        assert _core._tape_counts() != before
        assert value == f(x)
        t = rng.standard_normal(9)
        slope = (f(x + 1e-6 * t) - f(x - 1e-6 * t)) / 2e-6
        assert gradient @ t == pytest.approx(slope, rel=1e-6) or not x.all()
    x = rng.uniform(0.5, 1.5, 9)
    x[3] = 0
    both = pl.value_and_grad(pl.program(np.prod))
    for _ in range(5):
        value, gradient = both(x)
        assert value == 0 and np.count_nonzero(gradient) == 1
        assert gradient[3] == pytest.approx(np.prod(np.delete(x, 3)))
        x[3], x = 0, np.where(np.arange(9) == 3, 0, rng.uniform(0.5, 1.5, 9))


@pytest.mark.parametrize("n", [1, 7, 8, 9, 128, 129, 136, 1000])
@pytest.mark.parametrize("axis", [0, 1])
def test_extremes_and_means_of_rows_and_columns(n, axis, rng):
    shape = (n, 5) if axis == 0 else (5, n)

    def formula(x):
        y = np.exp(x - np.max(x, axis=axis, keepdims=True))
        y = y / np.sum(y, axis=axis, keepdims=True)
        return np.mean(np.log(y), axis=axis) * np.min(x, axis=axis)

    arrays = [rng.standard_normal(shape)]
    tape, program, outs = tape_of(formula, arrays)
    for _ in range(3):
        gives_the_same(tape, program, outs, [rng.standard_normal(shape)])


def test_signed_zeros_and_nans(rng):
    """Of a row of zeros of both signs, of NaN among numbers; NumPy's order tells which."""

    def formula(x):
        return np.max(x, axis=1) + np.maximum(x[:, 0], x[:, 1])

    tape, program, outs = tape_of(formula, [rng.standard_normal((6, 4))])
    rows = [[0.0, -0.0, 0.0, -0.0], [-0.0, 0.0, -0.0, 0.0], [np.nan, 1, 2, 3]]
    rows += [[1, 2, np.nan, np.inf], [-np.inf, -np.inf, -0.0, 0.0], [np.inf, -np.inf, 1, 0]]
    gives_the_same(tape, program, outs, [np.array(rows)])

    def sums(x):
        return np.sum(x * 1.0, axis=0) + np.where(x[0] > 0, x[1], x[2])

    tape, program, outs = tape_of(sums, [rng.standard_normal((6, 4, 2))])
    gives_the_same(tape, program, outs, [np.full((6, 4, 2), -0.0)])


@pytest.mark.parametrize(
    "name, bad", [("log", 0.0), ("log", -1.0), ("exp", 1e3), ("sqrt", -1.0), ("divide", 0.0)]
)
def test_numpy_warns_as_it_does(name, bad, rng):
    """What NumPy would warn of is no call for a tape."""

    def formula(x):
        return np.sum(1.0 / x) if name == "divide" else np.sum(getattr(np, name)(x))

    program = pl.program(formula)
    x = 1 + rng.random(50)
    for _ in range(4):
        program(x)
    with warnings.catch_warnings(), np.errstate(all="warn"):
        warnings.simplefilter("error")
        program(x)
    before = x.copy()
    x[17] = bad
    with pytest.warns(RuntimeWarning), np.errstate(all="warn"):
        found = program(x)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, formula(x))
        np.testing.assert_array_equal(program(x), formula(x))
    with warnings.catch_warnings(), np.errstate(all="warn"):
        warnings.simplefilter("error")
        np.testing.assert_allclose(program(before), formula(before), rtol=1e-12)


@pytest.mark.parametrize(
    "name, formula, bad",
    [
        ("overflow", lambda x: x + x, 1.7e308),
        ("overflow", lambda x: x * x, 1e200),
        ("overflow", lambda x: x.astype(np.float32), 1e200),
        ("invalid", lambda x: x - x[::-1], np.inf),
        ("underflow", lambda x: np.exp(-x) * 1.0, 740.0),
        ("underflow", lambda x: x * x, 1e-200),
    ],
)
def test_sums_products_casts_and_underflow_are_told_too(name, formula, bad, rng):
    program = pl.program(formula)
    x = 1 + rng.random(4)
    for _ in range(4):
        program(x)
    before = _core._tape_counts()
    program(x)
    assert _core._tape_counts() != before  # a tape ran
    x[:] = bad
    due = formula(x)
    with pytest.raises(FloatingPointError, match=name), np.errstate(all="raise"):
        program(x)
    with pytest.warns(RuntimeWarning, match=name), np.errstate(all="warn"):
        np.testing.assert_array_equal(program(x), due)
    np.testing.assert_array_equal(program(x), due)


def test_functions_of_scipy_raise_if_asked_to(rng):
    sp = special()
    program = pl.program(lambda x: 2 * sp.gammaln(x))
    x = 1 + rng.random(5)
    for _ in range(4):
        program(x)
    bad = np.where(np.arange(5) == 3, 0.0, x)
    with sp.errstate(all="raise"):
        program(x)
        with pytest.raises(sp.SpecialFunctionError):
            program(bad)
    np.testing.assert_array_equal(program(bad), 2 * sp.gammaln(bad))


def test_infinities_and_nans_pass(rng):
    """Where NumPy says nothing, neither is the tape left."""

    def formula(x):
        return np.where(x > 2, np.tanh(x), np.maximum(x, 0.0)) + np.exp(-np.abs(x))

    tape, program, outs = tape_of(formula, [rng.standard_normal(9)])
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 5e-324, 1e308, 3.0, -3.0])
    gives_the_same(tape, program, outs, [x])


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0), (1, 1, 1), (2, 3, 4, 5)])
def test_any_number_of_dimensions(shape, rng):
    def formula(x):
        return np.where(x > 0.5, np.sqrt(x), np.log1p(x)) / (1 + x)

    tape, program, outs = tape_of(formula, [rng.random(shape)])
    gives_the_same(tape, program, outs, [rng.random(shape)])


def test_layouts_that_change_between_calls(rng):
    """A program finds its tape by layouts; views with gaps and turned ones have the same values."""
    program = pl.program(lambda x, y: np.sum(np.exp(x) * y, axis=0) / np.cosh(y[0]))
    x, y = rng.standard_normal((2, 6, 10))
    due = np.sum(np.exp(x) * y, axis=0) / np.cosh(y[0])
    wide = np.zeros((12, 30))[::2, ::-3]
    wide[...] = x
    for _ in range(5):
        for a in (x, np.asfortranarray(x), wide):
            np.testing.assert_allclose(program(a, y), due, rtol=1e-13, atol=1e-14)


def test_softmax_runs_without_python(rng):
    X, Y = rng.standard_normal((30, 4)), np.eye(3)[rng.integers(0, 3, 30)]

    def loss(W):
        Z = pl.lazy(X) @ W
        Z = Z - np.max(Z, axis=1, keepdims=True)
        return np.mean(np.log(np.sum(np.exp(Z), axis=1)) - np.sum(Y * Z, axis=1))

    both = pl.value_and_grad(pl.program(loss))
    W = rng.standard_normal((4, 3))
    for _ in range(4):
        both(W)
    before = _core._tape_counts()
    value, gradient = both(W)
    assert not freezing._why.get(None) and _core._tape_counts() != before
    Z = X @ W
    P = np.exp(Z - np.log(np.sum(np.exp(Z), axis=1, keepdims=True)))
    np.testing.assert_allclose(gradient, X.T @ (P - Y) / 30, rtol=1e-11, atol=1e-13)
    assert abs(value + np.mean(np.sum(Y * np.log(P), axis=1))) < 1e-12


def test_threads_give_the_same_bits(rng):
    program = pl.program(lambda x: np.sum(np.exp(x) / (1 + np.square(x)), axis=0))
    x = rng.standard_normal((40, 6))
    for _ in range(4):
        due = program(x)
    found = [[] for _ in range(4)]

    def run(to):
        for _ in range(50):
            to.append(program(x).tobytes())

    threads = [threading.Thread(target=run, args=(to,)) for to in found]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert {b for one in found for b in one} == {due.tobytes()}


def test_a_ufunc_that_may_go_is_refused(rng):
    mine = np.frompyfunc(lambda x: 2 * x, 1, 1)
    assert not loops._is_of_module(mine) and loops._is_of_module(np.exp)


def test_steps_that_do_not_fit_are_refused():
    def made(*step):
        view = (0, 0, "d", (2,), (1,))
        out = (1, 0, "d", (2,), (1,))
        what, by, letters, args = step
        rows = ((what, -1, by, letters, (view,) * args, (), out),)
        return _core._tape_new(1, (16, 16), rows, (out,), False, ())

    assert made(What.LOOP, np.exp, b"dd", 1)
    for step in (
        (What.LOOP, None, b"", 1),  # no loop
        (What.LOOP, np.exp, b"dq", 1),  # of dtypes that it has not
        (What.LOOP, np.exp, b"ddd", 1),
        (What.LOOP, np.divmod, b"dddd", 2),  # of two results
        (What.LOOP, np.matmul, b"ddd", 2),
        (What.LOOP, len, b"dd", 1),
        (What.LOOP, np.exp, b"dd", 4),
        (What.LOOP, np.add, b"ddd", 1),  # fewer arguments than it takes
        (What.RUN, None, b"", 1),
        (What.RUN, np.exp, b"dd", 1),  # of one argument
        (What.RUN, np.add, b"ddd", 2),
        (What.COPY, np.exp, b"dd", 1),  # a function that takes none
    ):
        with pytest.raises((TypeError, ValueError)):
            made(*step)
