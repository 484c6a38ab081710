"""Memory: nothing leaks, cycles through operators are collected, plain ones need no collector."""

import gc
import os
import pickle
import weakref

import numpy as np
import pytest
import ref
from samples import leaf, values

import pylinop as pl
from pylinop import _core


@pytest.fixture(autouse=True)
def no_old_objects():
    """What the run has made so far is not looked through again at each collection."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


class Caching(pl.LinearOperator):
    """A user's operator that keeps its normal operator: a cycle through the expression."""

    def __init__(self, a):
        super().__init__(a.dtype, a.shape)
        self.a = a
        self.normal = self.H @ self

    def _matvec(self, x):
        return self.a @ x

    def _rmatvec(self, x):
        return self.a.conj().T @ x


def test_an_operator_that_caches_its_normal_operator_is_collected(rng):
    gc.collect()
    before = _core.live()
    refs = []
    for _ in range(20):
        A = Caching(values(rng, (5, 3), "complex128"))
        x = np.ones(3)
        np.testing.assert_allclose(A.normal @ x, A.a.conj().T @ (A.a @ x))
        refs += [weakref.ref(A), weakref.ref(A.normal), weakref.ref(A.a)]
    del A
    gc.collect()
    assert not any(r() is not None for r in refs)
    assert _core.live() <= before + 40  # plans of that structure may stay


@pytest.mark.parametrize(
    "make",
    [
        lambda a, keep: pl.MatVec((3, 3), lambda x: a @ x + 0 * len(keep), dtype=float),
        lambda a, keep: pl.MatVec(
            (3, 3), lambda x: a @ x, dtype=float, matmat=lambda x: keep and a @ x
        ),
        lambda a, keep: (
            pl.Dense(a) + pl.MatVec((3, 3), lambda x: a @ x + 0 * len(keep), dtype=float)
        ),
    ],
)
def test_cycles_through_callables(make):
    keep = []
    A = make(np.eye(3), keep)
    keep.append(A)
    A @ np.ones(3)
    r = weakref.ref(A)
    del A, keep
    gc.collect()
    assert r() is None


def test_cycles_through_attributes(rng):
    for kind in ref.KINDS:
        A = ref.build(leaf(kind, rng, 3, 3, "float64"))
        A.note = [A.T, A + A, 2 * A]
        A @ np.ones(3), (A + A) @ np.ones(3)
        r = weakref.ref(A)
        del A
        gc.collect()
        assert r() is None, kind


@pytest.mark.parametrize("kind", ref.KINDS)
def test_no_collector_needed(kind, rng):
    """Without user cycles, references alone free everything at once (as SciPy tests it)."""
    d = leaf(kind, rng, 4, 4, "float64")
    gc.collect()
    gc.disable()
    try:
        A = ref.build(d)
        x = np.ones(4)
        made = [
            A,
            A.T,
            A.H,
            A.conj(),
            A + A,
            A @ A,
            2 * A,
            A**2,
            A.real,
            A.astype("complex128"),
            A.T.T,
        ]
        for B in made:
            (
                B @ x,
                B.toarray(),
                B.T @ x,
                B.adjoint(),
                B.transpose(),
                repr(B),
                B.trace(),
                B.diagonal(),
            )
        refs = [weakref.ref(B) for B in made]
        del A, B, made
        assert not any(r() is not None for r in refs)
    finally:
        gc.enable()


def test_operators_hold_their_arrays_and_let_go(rng):
    a = values(rng, (4, 4), "float64")
    r = weakref.ref(a)
    A = pl.Dense(a) @ pl.Diag(np.ones(4))
    del a
    gc.collect()
    assert r() is not None
    A @ np.ones(4)
    A.toarray()
    pl.inv(A) @ np.ones(4)
    del A
    gc.collect()
    assert r() is None


LEAKS = """
import gc, pickle, sys, copy
import numpy as np, pylinop as pl, ref
from pylinop import _core
from samples import leaf, values

def turn(seed):
    rng = np.random.default_rng(seed)
    for kind in ref.KINDS:
        for dtype in ("float64", "complex64", "int64"):
            d = leaf(kind, rng, 6, 6, dtype)
            A = ref.build(d)
            x = values(rng, (6,), dtype)
            E = (A.H @ A + 2 * A - A.T) @ A.conj()
            for B in (A, E):
                B @ x, B @ x[:, None], x @ B, B.toarray(), B.diagonal(), B.trace(), B[1, 2]
                repr(B), B._repr_html_(), pickle.loads(pickle.dumps(B)), copy.deepcopy(B)
                B.astype("complex128").toarray(), B.tosparse()
            for bad in (
                lambda: A @ np.ones(5), lambda: A @ pl.Identity(5), lambda: A[9, 9],
                lambda: A.matvec("x"), lambda: A.matvec(x, out=np.ones(2)),
                lambda: pl.Dense(np.ones((2, 2), object)),
                lambda: pl.Selection([9], 3) @ np.ones(3),
                lambda: pl.inv(pl.Zeros((6, 6))) @ np.ones(6),
                lambda: pl.MatVec((6, 6), lambda x: 1 / 0, dtype=float) @ np.ones(6),
            ):
                try:
                    bad()
                except Exception:
                    pass
    S = pl.Diag(np.full(5, 2.0))
    inv = pl.inv(S + pl.Dense(np.eye(5)))
    inv @ np.ones(5)
    T = pl.Toeplitz(np.arange(500.0))
    T @ np.ones(500)

def counts():
    _core._clear_store()  # derived values, bounded in bytes, may outlive their operators
    gc.collect()
    return _core.live(), sys.getallocatedblocks()

N = 3
for k in range(N):
    turn(0)
windows = [counts()]
for w in range(6):
    for k in range(N):
        turn(0)
    windows.append(counts())
# The tables that are bounded and filed by address fill up first; a leak would never stop.
assert len({live for live, _ in windows[-3:]}) == 1, windows
grown = [b[1] - a[1] for a, b in zip(windows, windows[1:])]  # the interpreter warms up for a while
assert min(grown) < 20 * N, grown
print("done")
"""


@pytest.mark.slow
def test_nothing_leaks(python):
    assert python(LEAKS).strip() == "done"


BOUNDED = """
import gc, resource
import numpy as np, pylinop as pl
rng = np.random.default_rng(0)
n = 100_000

def turn(many):
    for k in range(many):  # ever new operators: what they derive must not pile up
        T = pl.Toeplitz(rng.random(n))
        T @ np.ones(n)
        A = pl.inv(pl.Dense(rng.random((150, 150)) + 50 * np.eye(150)))
        A @ np.ones(150)
        D = pl.Dense(np.ones((k % 40 + 2, k % 37 + 2))) @ pl.Dense(np.ones((k % 37 + 2, 3)))
        D @ np.ones(3)

def resident():
    gc.collect()
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()

pl.config(cache_limit=32 << 20)
turn(20)
before = resident()
turn(80)
grown = resident() - before
assert grown < 80e6, grown  # 80 spectra are 170 MB; the table of derived values is bounded
print("done")
"""


EXIT = """
import threading
import numpy as np, pylinop as pl

class Mine(pl.LinearOperator):
    everything = []

    def _matvec(self, x):
        return x

A, D, T = pl.Dense(np.eye(3)), pl.Diag(np.ones(3)), pl.Toeplitz(np.ones(400))
M = Mine(float, (3, 3))
E = pl.inv(A + D @ M)
Mine.everything += [M, E, A]   # cycles through a type, a module, an instance
A.self = A
M.note = [E, Mine]
pl.kept = [A, E, T.T]
E @ np.ones(3), T @ np.ones(400)
F = pl.MatVec((3, 3), lambda x: (E @ x, F)[0], dtype=float)
threading.Thread(target=lambda: F @ np.ones(3)).start()
print("done")
"""


@pytest.mark.parametrize(
    "more",
    [
        "",
        "import scipy.sparse.linalg as s; s.aslinearoperator(E)",
        "import sys; sys.kept = [A, E]",
        "raise SystemExit(0)",
    ],
)
def test_the_interpreter_ends_well_with_operators_alive(python, more):
    assert python(EXIT + more).strip() == "done"


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
@pytest.mark.slow
@pytest.mark.no_asan
def test_derived_values_go_with_their_operators(python):
    assert python(BOUNDED).strip() == "done"


def test_errors_hold_nothing(rng):
    a = values(rng, (4, 4), "float64")
    A = pl.Dense(a)
    r = weakref.ref(A)
    with pytest.raises(ValueError):
        A @ np.ones(5)
    with pytest.raises(ValueError):
        A @ pl.Identity(5)
    del A
    gc.collect()
    assert r() is None


def test_pickles_hold_nothing(rng):
    A = pl.Dense(values(rng, (4, 4), "float64")) + pl.Identity(4)
    B = pickle.loads(pickle.dumps(A))
    r = weakref.ref(B)
    B @ np.ones(4)
    del B
    gc.collect()
    assert r() is None
