"""LazyArrays as objects: what builds them, lines in errors, deep chains, garbage, threads."""

import copy
import gc
import itertools
import pickle
import re
import sys
import threading
import weakref

import numpy as np
import pytest
from samples import values

import pylinop as pl
from pylinop import _core

DTYPES = ["float32", "float64", "complex64", "complex128", "int64", "uint8", "bool", ">f8", "f2"]
LINE = __file__.rsplit("/", 1)[-1]


def failing(f):
    with pytest.raises(Exception) as caught:
        f()
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])


# -- the same nodes as NumPy's arrays --------------------------------------------------------------

OPERANDS = {
    "matrix": lambda r, t: values(r, (3, 3), t),
    "row": lambda r, t: values(r, (1, 3), t),
    "one": lambda r, t: values(r, (1, 1), t),
    "vector": lambda r, t: values(r, 3, t),
    "zero": lambda r, t: values(r, (), t),
    "empty": lambda r, t: values(r, (0, 3), t),
    "stack": lambda r, t: values(r, (2, 3, 3), t),
}
NUMBERS = [2, -1.5, 2j, np.float32(3), np.float64(0.5), np.int8(2), np.complex64(1j), True]
ACTS = {
    "@": lambda a, b: a @ b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "**": lambda a, b: a ** abs(b),
    "//": lambda a, b: a // b,
    ">": lambda a, b: a > b,
    "==": lambda a, b: a == b,
    "&": lambda a, b: a & b,
}


def same(act, a, b, lazies):
    """act on arrays, and with some of them lazy: the same error, or shape, dtype and value."""
    with np.errstate(all="ignore"):
        try:
            want = np.asarray(act(a, b))
        except (TypeError, ValueError) as error:
            with pytest.raises((TypeError, ValueError)):
                np.asarray(act(*lazies))
            return type(error)
        got = act(*lazies)
        assert isinstance(got, pl.LazyArray)
        assert got.shape == want.shape and got.dtype == want.dtype, (got, want.shape, want.dtype)
        value = np.asarray(got)
    assert value.shape == want.shape and value.dtype == want.dtype
    finite = np.abs(want[np.isfinite(want)]).max(initial=1)
    atol = 20 * float(np.finfo(want.dtype).eps * finite) if want.dtype.kind in "fc" else 0
    np.testing.assert_allclose(value, want, rtol=0, atol=atol)
    return None


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_pair_of_operands(act, dtype, rng):
    f = ACTS[act]
    if act == "-" and dtype in ("bool", "uint8"):
        return  # NumPy has no minus of bools; -1 is no uint8
    for x, y in itertools.product(OPERANDS, repeat=2):
        a, b = (OPERANDS[name](rng, dtype) for name in (x, y))
        if dtype == ">f8" and act == "@":
            a, b = a.astype(float), b  # one side swapped
        pairs = [(pl.lazy(a), pl.lazy(b)), (pl.lazy(a), b), (a, pl.lazy(b))]
        if act == "**" and np.ndim(b) == 0 and np.lib.NumpyVersion(np.__version__) < "2.1.0":
            pairs.pop()  # it takes the exponent for a number
        for lazies in pairs:
            same(f, a, b, lazies)


@pytest.mark.parametrize("act", ["+", "*", "/", ">", "=="])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64", "int64"])
def test_numbers_on_either_side(act, dtype, rng):
    f = ACTS[act]
    for name in ("matrix", "vector", "zero", "empty", "one"):
        a = OPERANDS[name](rng, dtype)
        for c in NUMBERS:
            same(f, a, c, (pl.lazy(a), c))
            if act != "/" or name != "empty":
                same(f, c, a, (c, pl.lazy(a)))
            made, m = pl.lazy(a) + pl.lazy(a), a + a  # what a formula makes
            same(f, m, c, (made, c))


def test_dtypes_that_differ(rng):
    a = {t: values(rng, (3, 3), t) for t in ("float32", "float64", "complex64", "int64")}
    a["int64"][a["int64"] == 0] = 1
    for (s, x), (t, y) in itertools.product(a.items(), repeat=2):
        for act in ("@", "+", "*", "/"):
            want = ACTS[act](x, y)
            got = ACTS[act](pl.lazy(x), pl.lazy(y))
            assert got.dtype == want.dtype == np.asarray(got).dtype, (s, t, act)


def test_views_and_indices(rng):
    for shape in ((3, 4), (2, 3, 4), (5,), (), (0, 2)):
        a = values(rng, shape, "complex128")
        A = pl.lazy(a)
        assert A.size == a.size and A.ndim == a.ndim and A.shape == a.shape
        for name in ("T", "mT"):
            if name == "mT" and a.ndim < 2:
                with pytest.raises(ValueError, match="ndim"):
                    A.mT  # noqa: B018
                continue
            np.testing.assert_array_equal(getattr(A, name), getattr(a, name))
        np.testing.assert_array_equal(A.H, np.conj(a.mT if a.ndim >= 2 else a))
        if a.ndim >= 2:
            assert A.H.H is A and A.mT.conj().mT.conj() is A
    a = values(rng, (4, 5, 6), "float64")
    for key in (0, -1, (1, 2), slice(3, 0, -2), (slice(None), 1, slice(9, None)), (), (1, ..., 2),
                [0, 2], (None, 1), np.int64(2), (slice(-2, None), True), 2**70):  # fmt: skip
        A = pl.lazy(a) * 1.0
        try:
            want = a[key]
        except IndexError:
            with pytest.raises(IndexError):
                A[key]
            continue
        assert A[key].shape == want.shape
        np.testing.assert_array_equal(A[key], want)


def test_slices_that_fail_pass_their_error_on():
    class Bad:
        def __index__(self):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        pl.lazy(np.ones(3))[Bad() :]


def test_operators_beside_them(rng):
    a = values(rng, (3, 3), "float64")
    D, A = pl.Diag(np.arange(1.0, 4)), pl.lazy(a)
    assert (D @ A)._args[0]._args[0] is D and (A + D)._args[1]._args[0] is D
    np.testing.assert_allclose(pl.lazy(D), D.toarray())
    np.testing.assert_allclose(A - D, a - D.toarray())
    M = pl.MatVec((3, 3), lambda x: 2 * x, dtype=float)
    np.testing.assert_allclose(M @ A + M, 2 * a + 2 * np.eye(3))
    half = pl.Dense(a.astype("f2"))  # a dtype that is not C's
    assert pl.lazy(half).dtype == np.float16 and (half + A).dtype == np.float64
    np.testing.assert_allclose(half + A, a.astype("f2") + a)
    with pytest.raises(TypeError, match="dtype="):
        pl.lazy(_Untold())


class _Untold(pl.LinearOperator):
    def __init__(self):
        super().__init__(None, (3, 3))

    def _matvec(self, x):
        return x


def test_their_constructor_refuses_what_would_not_run():
    a = np.eye(2)
    A, f8 = pl.lazy(a), np.dtype(float)
    good = {
        "leaf": (a,), "matmul": (A, A), "add": (A, A), "view": (A,), "inverse": (A,),
        "index": (A,), "call": (a, A), "of form": (A,), "scale": (A, 2), "over": (A, 2.0),
    }  # fmt: skip
    more = {"view": 1, "index": 0, "call": (np.add, {}), "of form": (np.trace, {})}
    for head, args in good.items():
        shape = {"index": (2,), "of form": ()}.get(head, (2, 2))
        made = pl.LazyArray(head, args, shape, f8, more.get(head))
        assert np.asarray(made).shape == shape
        bad = [()] if head == "call" else [(), (a, a, a), (None,)]
        for wrong in bad if head in ("call", "scale", "over") else [*bad, (A, None)]:
            with pytest.raises((TypeError, ValueError)):
                pl.LazyArray(head, wrong, shape, f8, more.get(head))
    for wrong in (("gone", (A,), (2, 2), f8), ("leaf", (a,), (-1,), f8), ("leaf", (a,), (2,), 3),
                  ("view", (A,), (2, 2), f8, 4), ("view", (A,), (2, 2), f8, "x"),
                  ("call", (A,), (2, 2), f8, None), ("add", (A, A), (), f8),
                  ("leaf", (a,), (1,) * 65, f8)):  # fmt: skip
        with pytest.raises((TypeError, ValueError)):
            pl.LazyArray(*wrong)
    with pytest.raises(TypeError):
        A._value = 3
    with pytest.raises(TypeError):
        A._form = a
    with pytest.raises(TypeError):
        _core._lazy_run([a], None)


# -- lines -----------------------------------------------------------------------------------------


def line_here(back=0):
    """This file's name and the line of the caller, or so many before it, as errors show them."""
    return f"{LINE}:{sys._getframe(1).f_lineno - back}"


def says(text, what, line):
    """Does an error say that what was built at that line?"""
    return re.search(rf"{re.escape(what)} built at \S*{re.escape(line)}\b", text)


def test_errors_name_the_line_that_built_the_failing_part():
    A, B = pl.lazy(np.zeros((3, 3))), pl.lazy(np.eye(3))
    S = A @ B
    built = line_here(1)
    y = pl.inv(S) @ np.ones(3) + 1.0
    line = line_here(1)
    text = failing(lambda: np.asarray(y))
    assert "exactly zero" in text and says(text, "Product (3, 3)", built)
    assert says(text, "Inverse (3, 3)", line)

    three = pl.lazy(np.ones((3, 3)))
    line = line_here(1)
    text = failing(lambda: three @ np.ones(4))
    assert "(3, 3) @ (4,): 3 and 4" in text and says(text, "LazyArray (3, 3)", line)
    text = failing(lambda: pl.lazy(np.ones((2, 3, 3))) @ np.ones((4, 3, 3)))
    assert "batch" in text and "(2, 3, 3) @ (4, 3, 3)" in text
    text = failing(lambda: three + np.ones((2, 2)))
    assert "(3, 3) and (2, 2)" in text and says(text, "LazyArray (3, 3)", line)
    wide = three[:2]
    line = line_here(1)
    for f in (pl.inv, pl.logdet):
        text = failing(lambda f=f: f(wide))
        assert "square" in text and says(text, "LazyArray (2, 3)", line)


def test_errors_of_functions_carry_the_line():
    x = pl.lazy(np.array([1, 2]))
    y, line = x**-1, line_here()
    text = failing(lambda: np.asarray(y + 1))
    assert "negative integer powers" in text and says(text, "LazyArray (2,)", line)
    assert "power(a0, -1)" in text


def test_lines_are_kept():
    A = pl.lazy(np.zeros((2, 2)))
    parts = A.T, A.T.T, -A, A * 2, A[0], np.exp(A), A.trace(), pl.inv(A), A / 2, A @ A, A + A
    assert all(p._origin[0].endswith(LINE) for p in parts)
    with pl.config(provenance=False):
        assert (A @ A)._origin is None
    S = A @ A.T
    np.asarray(S @ A)
    assert S._form._origin == S._origin and A._form._origin == A._origin  # its operators' too


# -- life ------------------------------------------------------------------------------------------

CHAINS = {
    "sums": lambda x, a: x + a,
    "products": lambda x, a: x @ a,
    "views": lambda x, a: -x.T,
    "calls": lambda x, a: np.sin(x),
    "three arguments": lambda x, a: np.where(True, x, 0.0),
    "parts": lambda x, a: x[::1],
}


@pytest.mark.parametrize("kind", CHAINS)
def test_long_chains_build_print_and_die(kind):
    a = x = pl.lazy(np.eye(2))
    n = 100_000 if kind in ("sums", "products") else 20_000
    before = _core.live()
    for _ in range(n):
        x = CHAINS[kind](x, a)
    assert len(repr(x)) < 300
    again = pickle.loads(pickle.dumps(x)) if kind == "sums" else None
    if kind in ("sums", "parts"):
        np.testing.assert_allclose(x, (n + 1 if kind == "sums" else 1) * np.eye(2))
    del x, again
    gc.collect()
    assert _core.live() - before < 50


def test_cycles_are_collected():
    class Holder:
        pass

    holder = Holder()
    holder.f = lambda x, holder=holder: x
    A = pl.lazy(np.eye(2))
    holder.y = pl.LazyArray("call", (A,), (2, 2), A.dtype, (holder.f, {}))
    seen, node = weakref.ref(holder), weakref.ref(holder.y)
    np.asarray(holder.y + A)
    del holder, A
    gc.collect()
    assert seen() is None and node() is None


def test_nothing_leaks(rng):
    a, x = values(rng, (4, 4), "float64"), values(rng, 4, "float64")

    def work():
        A, X = pl.lazy(a), pl.lazy(x)
        y = pl.inv(A.T @ A + 2.0 * A) @ (A / 3 @ X) - X * 2 + A[0]
        np.asarray(y), repr(y), pickle.loads(pickle.dumps(y)), copy.deepcopy(y)
        for bad in (lambda: A @ np.ones(3), lambda: A + np.ones(3), lambda: A * pl.Diag(x)):
            failing(bad)

    for _ in range(1000):  # what is kept up to a limit is there afterwards
        work()
    _core._clear_store()
    gc.collect()
    blocks, live, refs = sys.getallocatedblocks(), _core.live(), sys.getrefcount(a)
    for _ in range(1000):
        work()
    _core._clear_store()
    gc.collect()
    assert _core.live() <= live + 20 and sys.getrefcount(a) <= refs
    assert sys.getallocatedblocks() - blocks < 500


def test_a_value_is_computed_once_by_many_threads(rng):
    a = values(rng, (60, 60), "float64")
    A = pl.lazy(a)
    for _ in range(20):
        S = A @ A.T
        y = pl.inv(S + 60 * A) @ S @ A + S
        found = []
        start = threading.Barrier(4)

        def run(y=y, found=found, start=start):
            start.wait()
            found.append(np.asarray(y))

        threads = [threading.Thread(target=run) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len({id(v) for v in found}) == 1
        first = found[0].tobytes()
        assert all(v.tobytes() == first for v in found)


def test_subclasses_build_plain_ones():
    class Mine(pl.LazyArray):
        pass

    m = Mine("leaf", (np.eye(2),), (2, 2), np.dtype(float))
    for made in (m @ m, m + 1, m.T, np.ones(2) @ m, m[0], pl.lazy(m) @ m):
        assert type(made) is pl.LazyArray
    np.testing.assert_array_equal(m + m, 2 * np.eye(2))


def test_values_are_cast_and_copied_on_the_way_out():
    a = np.arange(4.0).reshape(2, 2)
    y = pl.lazy(a) + pl.lazy(a)
    kept = np.asarray(y)
    assert np.array(y) is not kept and np.array(y, copy=True).flags.writeable
    assert np.asarray(y, dtype="f4").dtype == np.float32
    assert np.asarray(y, dtype=float) is kept
    with pytest.raises(ValueError, match="copy is needed"):
        np.array(y, dtype="f4", copy=False)
    np.testing.assert_array_equal(np.asarray(pl.lazy(a.T)), a.T)
    z = pl.lazy(np.ones(3)) * 2
    assert np.asarray(z[None]).shape == (1, 3) and np.asarray(z[None]).base is None


@pytest.mark.parametrize("kind", ["Identity", "Zeros", "FiniteDifference"])
@pytest.mark.parametrize(
    "number", [np.float32(0.1), np.complex64(0.1 + 0.2j), np.float64(0.1), 0.1]
)
def test_multiples_of_a_kind_without_a_dtype(kind, number):
    """They have the number's, as the operator's own multiples do; a Python number has none."""
    K = pl.Zeros((3, 3)) if kind == "Zeros" else getattr(pl, kind)(3)
    n, x = K.shape[1], np.full((K.shape[1], 2), 0.3, np.float32)
    given = [number] if type(number) is float else [number, pl.lazy(np.array(number))]
    for c in given:
        L = c * pl.lazy(K)
        plain = type(number) is float
        wanted = (number * K).dtype
        assert L.dtype == np.asarray(L).dtype == wanted
        assert (3.0 * L).dtype == np.asarray(3.0 * L).dtype == wanted
        assert np.allclose(np.asarray(3.0 * L), 3.0 * (number * K.toarray()), rtol=1e-7)
        product = L @ pl.lazy(x)
        promoted = np.float32 if plain else np.result_type(number, x)
        assert product.dtype == np.asarray(product).dtype == promoted
        beside = (c * pl.lazy(pl.Identity(n))) + pl.lazy(np.eye(n, dtype=np.float32))
        assert beside.dtype == np.asarray(beside).dtype == promoted


@pytest.mark.parametrize("right", [np.float32, np.float64, np.complex64, np.complex128])
def test_complex_kinds_without_a_dtype(right, rng):
    """They take the dtype of what they meet, made complex, as operators do."""
    a = rng.standard_normal((4, 4)).astype(right)
    made = np.result_type(right, np.complex64)
    F = pl.DFT(4, norm="ortho")
    for K in (F, F.H, 2 * F, F + pl.Identity(4), 1j * pl.Identity(4), pl.inv(F)):
        L, dense, x = pl.lazy(K), K.toarray(), pl.lazy(a)
        for got, wanted in (
            (K @ x, dense @ a),
            (x @ K, a @ dense),
            (L @ x[:, 0], dense @ a[:, 0]),
            (L + x, dense + a),
            (2 * L @ x, 2 * dense @ a),
            (np.float32(2) * L @ x, 2 * dense @ a),
        ):
            assert got.dtype == np.asarray(got).dtype == made
            tol = 16 * np.finfo(made).eps
            np.testing.assert_allclose(np.asarray(got), wanted, rtol=tol, atol=tol)
        assert (K @ a).dtype == made
    wide = np.float64(2) * pl.lazy(F) @ pl.lazy(a)
    assert wide.dtype == np.asarray(wide).dtype == np.complex128
    np.testing.assert_allclose(np.asarray(wide), 2 * F.toarray() @ a, rtol=1e-13, atol=1e-13)
