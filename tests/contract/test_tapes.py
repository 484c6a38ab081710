"""Programs without Python: what a tape gives, from threads, after a fork, and where it is not
for the values that come."""

import ctypes
import os
import sys
import threading
import warnings

import numpy as np
import pytest
from contract.c_face import as_c, c_face, last_error, run_program

import pylinop as pl
from pylinop import _core
from pylinop._base import config
from pylinop._programs import entry, freezing
from pylinop._programs.freezing import Freezable
from pylinop._programs.programs import Pullback, WithGradients, Written

pytestmark = pytest.mark.skipif(config.get("verify"), reason="there are no tapes under verify=")


def low_rank(leaves):
    d, U, y = leaves
    quad, logdet = pl.inv_quad_logdet(pl.Diag(d) + pl.LowRank(U), y)
    return [quad + logdet]


def kron(leaves):
    a, b, s, y = leaves
    K = pl.Kron(pl.Dense(a, assume_a="sym"), pl.Dense(b, assume_a="sym"))
    quad, logdet = pl.inv_quad_logdet(K + s * pl.Identity(K.shape[0]), y)
    return [quad + logdet]


def dense(leaves):
    a, y = leaves
    quad, logdet = pl.inv_quad_logdet(pl.Dense(a, assume_a="pos"), y)
    return [quad + logdet]


def toeplitz(leaves):
    c, y = leaves
    quad, logdet = pl.inv_quad_logdet(pl.Toeplitz(c), y)
    return [quad + logdet]


def precision(leaves):
    """Its gradient is of diagonals of the inverse; where these are inaccurate, a sparse factor."""
    d, e = leaves
    return [pl.logdet(pl.Tridiagonal(e, d, e, "pos"))]


def solved(leaves):
    d, U, b = leaves
    return [pl.solve(pl.Diag(d) + pl.LowRank(U), b)]


def definite(rng, n):
    A = rng.standard_normal((n, n))
    return A @ A.T / n + np.eye(n)


def stationary(rng, n):
    c = np.exp(-rng.uniform(0.2, 1.0) * np.arange(n, dtype=float))
    c[0] += 0.5
    return c


def _low_rank(rng, n):
    k = max(1, n // 10)
    return [0.5 + rng.random(n), rng.standard_normal((n, k)), rng.standard_normal(n)]


PROGRAMS = {
    "low rank": (Written(low_rank, low_rank, 3), _low_rank),
    "low rank, gradients": (WithGradients(Written(low_rank, low_rank, 3), (0, 1)), _low_rank),
    "kron, gradients": (
        WithGradients(Written(kron, kron, 4), (0, 1, 2)),
        lambda rng, n: [
            definite(rng, n),
            definite(rng, 3),
            np.array(0.1 + rng.random()),
            rng.standard_normal(3 * n),
        ],
    ),
    "dense, gradients": (
        WithGradients(Written(dense, dense, 2), (0,)),
        lambda rng, n: [definite(rng, n), rng.standard_normal(n)],
    ),
    "toeplitz, gradients": (
        WithGradients(Written(toeplitz, toeplitz, 2), (0,)),
        lambda rng, n: [stationary(rng, n), rng.standard_normal(n)],
    ),
    "precision, gradients": (
        WithGradients(Written(precision, precision, 2), (0, 1)),
        lambda rng, n: [2.5 + rng.random(n), -rng.random(n - 1)],
    ),
    "solve, pulled back": (
        Pullback(Written(solved, solved, 3), (0, 1, 2), 1),
        lambda rng, n: [*_low_rank(rng, n), rng.standard_normal(n)],
    ),
}


class Owner:
    """Programs by their names."""

    runs = 0

    @classmethod
    def written_into(cls, name, arrays, outs):
        cls.runs += 1
        for out, value in zip(outs, PROGRAMS[name][0](arrays), strict=True):
            out[...] = value

    @staticmethod
    def freezable(name, arrays):
        return Freezable(PROGRAMS[name][0], False)


@pytest.fixture(autouse=True)
def owner(monkeypatch):
    module = "tapes_of_this_test"
    monkeypatch.setitem(sys.modules, module, Owner)
    monkeypatch.setitem(entry.OWNERS, "tapes", module)
    entry._owner.cache_clear()
    freezing._calls.clear()
    freezing._pinned.clear()
    yield
    entry._owner.cache_clear()


def text_of(name):
    return f"tapes\n{name}".encode()


def outs_of(name, arrays):
    avals = tuple((a.shape, a.dtype) for a in arrays)
    return [np.full(shape, 7, dtype) for shape, dtype in PROGRAMS[name][0].kinds(avals)]


def called(name, arrays, outs):
    text = text_of(name)
    return run_program()(text, len(text), len(arrays), as_c(arrays), len(outs), as_c(outs), 0)


def is_frozen(name, arrays, outs):
    size, some = ctypes.c_int64, ctypes.c_void_p
    ask = c_face("lop_capi_frozen", ctypes.c_int32, ctypes.c_char_p, size, size, some, size, some)
    text = text_of(name)
    return ask(text, len(text), len(arrays), as_c(arrays), len(outs), as_c(outs))


def frozen_again(name, arrays, outs):
    for _ in range(2):
        assert called(name, arrays, outs) == 0, last_error()
    assert is_frozen(name, arrays, outs)


def frozen(name, rng, n=20):
    """Arrays for which there is a tape."""
    arrays = PROGRAMS[name][1](rng, n)
    frozen_again(name, arrays, outs_of(name, arrays))
    return arrays


def without_python(name, arrays, outs):
    before = Owner.runs
    assert called(name, arrays, outs) == 0, last_error()
    return Owner.runs == before


def same_bits(found, due):
    return all(a.tobytes() == np.asarray(b).tobytes() for a, b in zip(found, due, strict=True))


def test_special_numbers_have_a_tape_of_their_own(rng):
    """The cotangent of the logarithm that cancels a factor of the plan's."""
    base = Written(dense, dense, 2)
    program = Pullback(base, (0,), 1)
    a = definite(rng, 8)
    a /= 2
    arrays, outs = [a, rng.standard_normal(8), np.array(-0.5)], [np.zeros((8, 8))]
    for number in (-0.5, 1.0, 0.5, 2.0, -1.0):
        arrays[2][...] = number
        tape, _ = freezing._frozen(Freezable(program, False), arrays, outs)
        assert _core._tape_run(tape, tuple(arrays), tuple(outs))
        assert same_bits(outs, program(arrays))


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 100])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_tape_gives_the_bits_of_the_program(name, n, rng):
    frozen(name, rng, n)
    for _ in range(3):
        arrays = PROGRAMS[name][1](rng, n)
        outs = outs_of(name, arrays)
        assert without_python(name, arrays, outs)
        assert same_bits(outs, PROGRAMS[name][0](arrays))


def test_a_sparse_factor_that_is_not_needed_is_no_hindrance(rng):
    name, n = "precision, gradients", 1500
    d, e = frozen(name, rng, n)
    outs = outs_of(name, [d, e])
    assert without_python(name, [d, e], outs)
    K = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
    inverse = np.linalg.inv(K)
    np.testing.assert_allclose(outs[0], np.linalg.slogdet(K)[1], rtol=1e-12)
    np.testing.assert_allclose(outs[1], np.diag(inverse), rtol=1e-10)
    np.testing.assert_allclose(outs[2], 2 * np.diag(inverse, 1), rtol=1e-10)
    d[7] = -3  # not definite: for Python, which says so
    before = Owner.runs
    assert called(name, [d, e], outs) == 2 and Owner.runs == before + 1
    assert "positive definite" in last_error()[1]


def test_empty_arrays(rng):
    name = "low rank, gradients"
    for n, k in ((0, 0), (0, 2), (5, 0)):
        arrays = [1 + rng.random(n), rng.standard_normal((n, k)), rng.standard_normal(n)]
        outs = outs_of(name, arrays)
        for _ in range(4):
            assert called(name, arrays, outs) == 0, last_error()
        for a, b in zip(outs, PROGRAMS[name][0](arrays), strict=True):
            np.testing.assert_array_equal(a, b)
        assert is_frozen(name, arrays, outs), freezing._why


def test_the_answer_is_right(rng):
    d, U, y = frozen("low rank", rng, 30)
    d[:] = 1 + rng.random(30)
    value = [np.zeros(())]
    assert without_python("low rank", [d, U, y], value)
    K = np.diag(d) + U @ U.T
    due = y @ np.linalg.solve(K, y) + np.linalg.slogdet(K)[1]
    assert abs(value[0] - due) < 1e-12 * abs(due)


def test_other_shapes_have_their_own(rng):
    frozen("low rank", rng, 20)
    arrays = PROGRAMS["low rank"][1](rng, 21)
    assert not is_frozen("low rank", arrays, [np.zeros(())])
    assert not without_python("low rank", arrays, [np.zeros(())])


def test_any_layout(rng):
    name = "dense, gradients"
    a, y = frozen(name, rng, 12)
    due = PROGRAMS[name][0]([a, y])
    wide = np.zeros((24, 36))
    wide[::2, ::-3] = a
    long = np.zeros(24)[::-2]
    long[:] = y
    out = np.zeros((3, 12, 24))[1, :, ::2]
    value = np.zeros(())
    assert without_python(name, [wide[::2, ::-3], long], [value, out])
    np.testing.assert_allclose(value, due[0], rtol=1e-13)
    np.testing.assert_allclose(out, due[1], rtol=1e-10, atol=1e-12)
    fortran = np.asfortranarray(np.tril(a))  # its own key: neither symmetric nor in C order
    assert not is_frozen(name, [fortran, y], [value, out])


def test_four_threads_at_once_the_same_bits(rng):
    name = "kron, gradients"
    frozen(name, rng)
    sets = [PROGRAMS[name][1](rng, 20) for _ in range(4)]
    due = [PROGRAMS[name][0](arrays) for arrays in sets]
    wrong, start = [], threading.Barrier(4)

    def work(k):
        outs = outs_of(name, sets[k])
        start.wait()
        for _ in range(200):
            if called(name, sets[k], outs) != 0 or not same_bits(outs, due[k]):
                wrong.append(k)

    before = Owner.runs
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and Owner.runs == before


def test_it_runs_while_another_thread_has_the_gil(rng):
    """The call is made on a thread of the C library, which Python knows nothing of; this thread
    holds the GIL until that one has ended."""
    name = "low rank"
    arrays = frozen(name, rng)
    value = np.zeros(())
    text = text_of(name)
    args, outs = as_c(arrays), as_c([value])
    run = run_program()
    libc = ctypes.PyDLL(None)  # keeps the GIL
    if not hasattr(libc, "pthread_create"):
        pytest.skip("no pthread_create to call")
    made = _native_call(run, text, args, len(arrays), outs)
    if made is None:
        pytest.skip("no compiler for a function of one argument")
    thread = ctypes.c_void_p()
    library, block = made
    libc.pthread_create.argtypes = [ctypes.c_void_p] * 4
    libc.pthread_join.argtypes = [ctypes.c_void_p] * 2
    function = ctypes.cast(library.call_it, ctypes.c_void_p)
    assert libc.pthread_create(ctypes.byref(thread), None, function, ctypes.addressof(block)) == 0
    assert libc.pthread_join(thread, None) == 0  # for ever, were the GIL needed there
    assert block.status == 0 and same_bits([value], PROGRAMS[name][0](arrays))


class _Block(ctypes.Structure):
    _fields_ = [
        ("call", ctypes.c_void_p),
        ("text", ctypes.c_char_p),
        ("size", ctypes.c_int64),
        ("nargs", ctypes.c_int64),
        ("args", ctypes.c_void_p),
        ("outs", ctypes.c_void_p),
        ("status", ctypes.c_int32),
    ]


_SOURCE = """
#include <stdint.h>
typedef struct { int32_t (*call)(const char *, int64_t, int64_t, void *, int64_t, void *, int32_t);
    const char *text; int64_t size, nargs; void *args, *outs; int32_t status; } block;
void *call_it(void *p) {
    block *b = p;
    b->status = b->call(b->text, b->size, b->nargs, b->args, 1, b->outs, 0);
    return 0;
}
"""


def _native_call(run, text, args, nargs, outs):
    import shutil
    import subprocess
    import tempfile
    from pathlib import Path

    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform == "win32":
        return None
    folder = Path(tempfile.mkdtemp())
    (folder / "call.c").write_text(_SOURCE)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", str(folder / "call.so"), str(folder / "call.c")],
        check=True,
    )
    library = ctypes.PyDLL(str(folder / "call.so"))
    shutil.rmtree(folder)
    at = ctypes.cast(run, ctypes.c_void_p).value
    block = _Block(at, text, len(text), nargs, ctypes.addressof(args), ctypes.addressof(outs), 99)
    return library, block


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_after_a_fork(rng):
    name = "low rank"
    arrays = frozen(name, rng)
    due = PROGRAMS[name][0](arrays)
    stop = threading.Event()

    band = "precision, gradients"  # not of BLAS, which leaves its lock taken in a child
    bands = frozen(band, rng)

    def busy():  # takes the table's lock again and again, also while the process is copied
        out = outs_of(band, bands)
        while not stop.is_set():
            called(band, bands, out)

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(10):
            child = os.fork()
            if child == 0:
                value = np.zeros(())
                fine = without_python(name, arrays, [value]) and same_bits([value], due)
                os._exit(0 if fine else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        thread.join()


def test_a_singular_matrix_is_left_to_python(rng):
    name = "low rank"
    d, U, y = frozen(name, rng, 12)
    d[:] = 0
    U[:] = 0
    value = np.zeros(())
    before = Owner.runs
    status = called(name, [d, U, y], [value])
    assert Owner.runs == before + 1  # and it says what it says
    assert status == 2 or not np.isfinite(value)


def test_not_definite_is_left_to_python(rng):
    name = "dense, gradients"
    a, y = frozen(name, rng, 12)
    a -= 3 * np.eye(12)
    outs = outs_of(name, [a, y])
    before = Owner.runs
    with pytest.warns(pl.FallbackWarning):
        called(name, [a, y], outs)
    assert Owner.runs == before + 1


def test_numbers_that_plans_are_not_for_are_left_to_python(rng):
    name = "kron, gradients"
    a, b, s, y = frozen(name, rng, 5)
    for number in (0.0, np.nan, np.inf):
        s[...] = number
        outs = outs_of(name, [a, b, s, y])
        assert not without_python(name, [a, b, s, y], outs)
    s[...] = 1.0
    outs = outs_of(name, [a, b, s, y])
    assert called(name, [a, b, s, y], outs) == 0
    np.testing.assert_allclose(outs[0], PROGRAMS[name][0]([a, b, s, y])[0], rtol=1e-13)


def test_wrong_arrays_are_refused_as_before(rng):
    name = "low rank"
    arrays = frozen(name, rng)
    text, out = text_of(name), as_c([np.zeros(())])
    for field, wrong in (("typecode", 1000), ("ndim", -1), ("ndim", 99), ("data", None)):
        given = as_c(arrays)
        setattr(given[0], field, wrong)
        assert run_program()(text, len(text), 3, given, 1, out, 0) == 1
        assert "an array of" in last_error()[1]
    integers = [a.astype(int) if a.ndim == 1 else a for a in arrays]
    assert not is_frozen(name, integers, [np.zeros(())])


def test_options_of_the_process_are_part_of_a_tape(rng):
    name = "low rank"
    arrays = frozen(name, rng)
    out = [np.zeros(())]
    for given in ({"check_plans": True}, {"accuracy": "estimate"}):
        with pl.config(**given):  # a context's own: read by Python alone
            assert not is_frozen(name, arrays, out)
        freezing._calls.clear()
        frozen_again(name, arrays, out)
    with pl.config(not_definite="nan"):  # as programs of PyTensor have it while they run
        assert is_frozen(name, arrays, out)
    pl.config(fft=False)
    try:
        assert not is_frozen(name, arrays, out)
    finally:
        pl.config(fft=True)


def test_the_least_recently_used_goes(rng):
    name = "low rank"
    kept = frozen(name, rng, 9)
    out = [np.zeros(())]
    tape_of = PROGRAMS[name][0]
    for k in range(300):
        arrays = [np.ones(3), np.ones((3, 1)), np.ones(3)]
        first, second = freezing.moved(arrays, 2.0**-13), freezing.moved(arrays, 2.0**-11)
        tape, _, _ = freezing._tape(Freezable(tape_of, False), first, second)
        _core._tape_put(np.int64(10**9 + k).tobytes(), tape, _core._tape_counts()[3])
        assert k % 50 or without_python(name, kept, out)  # used now and then: it stays
    assert _core._tape_counts()[0] == 256
    assert is_frozen(name, kept, out)


def test_what_cannot_be_frozen_says_why(rng):
    def stepwise(arrays):
        return [np.asarray(float(arrays[0].sum()))]

    def random(arrays):
        return list(pl.evaluate(pl.lazy(arrays[0]) * rng.random(3)).reshape(1, 3))

    three = [np.arange(1.0, 4.0)]
    for run, out in ((stepwise, np.zeros(())), (random, np.zeros(3))):
        key = run.__name__.encode()
        for _ in range(2):
            why = freezing.consider(key, lambda run=run: Freezable(run, False), three, [out])
        assert why in ("a step that is not written down", "a view that is none")


def by_value(leaves):
    d, s, y = leaves
    x = pl.solve(pl.Diag(d), y)
    return [x] if float(s) > 0 else [-x]


def test_a_value_that_decides(rng, monkeypatch):
    """Two runs on numbers nearby do not show it; that the formula asks for a value does."""
    monkeypatch.setitem(PROGRAMS, "by value", (Written(by_value, by_value, 3), None))
    d, y, out = 1 + rng.random(5), rng.random(5), [np.zeros(5)]
    for _ in range(4):
        assert called("by value", [d, np.array(0.7), y], out) == 0
    assert not is_frozen("by value", [d, np.array(0.7), y], out)
    assert called("by value", [d, np.array(-0.7), y], out) == 0
    np.testing.assert_allclose(out[0], -y / d)


def test_large_arrays_leave_no_tape():
    a = np.ones((1500, 1500))
    why = [freezing.consider(b"large", lambda: Freezable(None, False), [a], [a]) for _ in range(2)]
    assert "so large" in why[1]


def test_several_results_of_what_is_nearly_singular(rng):
    """Each is computed by itself then, also where nothing is said of it."""
    n = 8
    program = WithGradients(Written(low_rank, low_rank, 3), (0, 1))
    arrays = [0.5 + rng.random(n), rng.standard_normal((n, 3)), rng.standard_normal(n)]
    outs = [
        np.zeros(shape) for shape, _ in program.kinds(tuple((a.shape, a.dtype) for a in arrays))
    ]
    tape, _ = freezing._frozen(Freezable(program, True), arrays, outs)
    assert _core._tape_run(tape, tuple(arrays), tuple(outs))
    arrays[1] = arrays[1] * 1e12
    with pl.config(not_definite="nan"):
        due = program(arrays)
    if _core._tape_run(tape, tuple(arrays), tuple(outs)):  # else Python has it
        for a, b in zip(outs, due, strict=True):
            np.testing.assert_array_equal(a, b)


def test_only_arrays_are_run():
    """A scalar of NumPy has no memory of an array: it is refused, as is what is none at all."""
    given, outs = [np.ones(3), np.ones((3, 1)), np.ones(3)], (np.zeros(()),)
    first, second = freezing.moved(given, 2.0**-13), freezing.moved(given, 2.0**-11)
    tape, _, _ = freezing._tape(Freezable(PROGRAMS["low rank"][0], False), first, second)
    assert _core._tape_run(tape, tuple(given), outs)
    for other in (np.float64(3.0), 3.0, None, [1.0, 1.0, 1.0]):
        for k in range(3):
            with pytest.raises(TypeError, match="arrays of NumPy"):
                _core._tape_run(tape, (*given[:k], other, *given[k + 1 :]), outs)
        with pytest.raises(TypeError, match="arrays of NumPy"):
            _core._tape_run(tape, tuple(given), (other,))


def test_a_tape_of_options_that_have_changed_is_not_there(rng):
    name, out = "low rank", [np.zeros(())]
    arrays = [np.ones(3), np.ones((3, 1)), np.ones(3)]
    first, second = freezing.moved(arrays, 2.0**-13), freezing.moved(arrays, 2.0**-11)
    tape, _, _ = freezing._tape(Freezable(PROGRAMS[name][0], False), first, second)
    before = _core._tape_counts()[3]
    pl.config(fft=False)
    try:
        key = np.int64(7).tobytes()
        _core._tape_put(key, tape, before)  # made while another thread changed them
        assert not _core._tape_there(key)
    finally:
        pl.config(fft=True)
    assert called(name, arrays, out) == 0


def test_tapes_are_looked_through():
    put = _core._tape_new
    view = (0, 0, "d", (4,), (1,))
    with pytest.raises(ValueError, match="lies in no slot"):
        put(1, (32, 32), ((1, -1, None, b"", ((0, 8, "d", (4,), (1,)),), (), view),), (), False, ())
    with pytest.raises(ValueError, match="no slot of its own"):
        put(1, (32,), ((1, -1, None, b"", (view,), (), view),), (), False, ())
    with pytest.raises(ValueError, match="no such function"):
        put(1, (32, 32), ((99, -1, None, b"", (view,), (), view),), (), False, ())
    with pytest.raises(ValueError, match="a result of no slot"):
        put(1, (32,), (), ((3, 0, "d", (4,), (1,)),), False, ())
    with pytest.raises(ValueError, match="a proof of that form"):
        put(1, (32,), (), (view,), False, ((1, 9, (0,), (0,)),))


def test_the_tries_do_not_warn_again(rng):
    def wary(arrays):
        warnings.warn("seen", stacklevel=2)
        return [2 * arrays[0]]

    key = np.int64(10**9 + 7).tobytes()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            why = freezing.consider(
                key, lambda: Freezable(wary, False), [rng.random(3)], [np.zeros(3)]
            )
    assert seen == []
    assert why == "a step that is not written down"  # it was tried
