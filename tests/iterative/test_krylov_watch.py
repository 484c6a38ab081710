"""callback=, progress=, ^C and the memory limit in every solver of linear systems and of least
squares, by each of its names."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import pylinop as pl

N = 40
D = np.linspace(1, 9, N)
B = np.random.default_rng(2).standard_normal(N)

SCIPYS = {
    "cg": lambda A, b, **how: pl.cg(A, b, rtol=1e-8, **how)[0],
    "bicgstab": lambda A, b, **how: pl.bicgstab(A, b, rtol=1e-8, **how)[0],
    "minres": lambda A, b, **how: pl.minres(A, b, rtol=1e-9, **how)[0],
    "gmres": lambda A, b, **how: pl.gmres(
        A, b, rtol=1e-8, restart=5, **how, **({"callback_type": "x"} if "callback" in how else {})
    )[0],
    "lsqr": lambda A, b, **how: pl.lsqr(A, b, atol=1e-9, btol=1e-9, **how)[0],
    "lsmr": lambda A, b, **how: pl.lsmr(A, b, atol=1e-9, btol=1e-9, **how)[0],
}
SOLVE = ("cg", "block_cg", "minres", "gmres", "fgmres", "bicgstab", "lsqr", "lsmr", "iterative")
LSTSQ = ("lsmr", "lsqr", "block_kaczmarz", "sgd")
ALL = {
    **SCIPYS,
    **{f"solve {m}": lambda A, b, m=m, **how: pl.solve(A, b, method=m, **how) for m in SOLVE},
    **{
        f"lstsq {m}": lambda A, b, m=m, **how: pl.lstsq(A, b, method=m, rng=0, **how)[0]
        for m in LSTSQ
    },
}


def rows_are_read(name):
    return name in ("lstsq block_kaczmarz", "lstsq sgd")


def matrix(name):
    return pl.Dense(np.diag(D)) if rows_are_read(name) else pl.Diag(D)


@pytest.mark.parametrize("name", ALL)
def test_everybody_tells(name):
    told, shown = [], []
    quiet = ALL[name](matrix(name), B)
    x = ALL[name](matrix(name), B, callback=told.append, progress=lambda k, r: shown.append((k, r)))
    np.testing.assert_allclose(x, quiet, rtol=1e-6)
    assert told and all(v.shape == (N,) for v in told)
    np.testing.assert_allclose(told[-1], x, rtol=0, atol=1e-5)
    if name.startswith("lstsq"):  # each pass is told of, the others ten times a second
        assert shown and shown[-1][1] <= 1e-6
    told[0][:] = np.nan  # a copy of theirs
    np.testing.assert_allclose(ALL[name](matrix(name), B), quiet)


@pytest.mark.parametrize("name", ALL)
def test_progress_is_told_while_it_lasts(name):
    shown, calls = [], []

    def slow(v):
        calls.append(None)
        if len(calls) < 9:  # it is told ten times a second
            time.sleep(0.03)
        return (D * v.T).T

    if rows_are_read(name):
        return  # of callables there are no rows
    A = pl.MatVec((N, N), slow, rmatvec=slow, matmat=slow, rmatmat=slow, dtype=float)
    ALL[name](A, B, progress=lambda k, r: shown.append((k, r)))
    assert shown and all(k > 0 and r >= 0 for k, r in shown)


@pytest.mark.parametrize("name", ALL)
def test_an_exception_in_a_callback_comes_out_and_all_is_usable(name):
    A, b = matrix(name), B.copy()
    want = ALL[name](A, b)

    def stop(*args):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ALL[name](A, b, callback=stop)
    np.testing.assert_array_equal(b, B)
    np.testing.assert_array_equal(ALL[name](A, b), want)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs an interval timer")
@pytest.mark.parametrize("name", [n for n in ALL if not n.startswith("lstsq")])
def test_an_interrupt_in_c_ends_the_run(name):
    n = 3000
    A = pl.Tridiagonal(-np.ones(n - 1), np.full(n, 2.0), -np.ones(n - 1))
    A = A @ A  # of condition 1e13: no end for a while
    b = np.random.default_rng(0).standard_normal(n)
    kin = name.removeprefix("solve ")
    how = {"iter_lim" if name == "lsqr" else "maxiter": 10**8}
    if name.startswith("solve"):
        run = lambda: pl.solve(A, b, method=kin, rtol=0, **how)  # noqa: E731
    elif name in ("lsqr", "lsmr"):
        run = lambda: getattr(pl, name)(A, b, atol=0, btol=0, conlim=0, **how)  # noqa: E731
    else:
        run = lambda: getattr(pl, name)(A, b, rtol=0, **how)  # noqa: E731

    def stop(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        begin = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            run()
        assert time.monotonic() - begin < 5
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_allclose(pl.cg(pl.Diag(D), B, rtol=1e-10)[0], B / D, rtol=1e-8)


# -- memory --


@pytest.mark.parametrize("name", SCIPYS)
def test_scipys_names_honour_the_memory_limit(name):
    n = 20_000
    A, b = pl.Diag(np.linspace(1, 2, n)), np.ones(n)
    with pl.config(memory_limit=2 * b.nbytes):
        with pytest.raises(pl.MaterializationError, match=f"{name} .* needs .* bytes"):
            SCIPYS[name](A, b)
    with pl.config(memory_limit=12 * b.nbytes):
        np.testing.assert_allclose(A @ SCIPYS[name](A, b), b, rtol=1e-6)


_STATUS = """
import sys, numpy as np, pylinop as pl

def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

def reset():
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")
    return status("VmRSS")
"""
_PEAK = """
n = 60_000
d = np.linspace(1, 20, n)
g = np.random.default_rng(0)
for method in sys.argv[1:]:
    b = g.standard_normal((n, 3))
    name = method.removesuffix("+M")
    a, m = pl.Diag(d), None if name == method else pl.Diag(1 / np.sqrt(d))
    pl.solve(pl.Diag(d[:99]), np.ones((99, 3)), method=name)
    stated = a.explain("solve", b, method=name, M=m).memory
    before = reset()
    pl.solve(a, b, method=name, rtol=1e-4, M=m)
    peak = status("VmHWM") - before
    assert b.nbytes < peak <= stated, (method, peak, stated)
"""
_TALL = """
import scipy.sparse as sp
from pylinop._iterative import lstsq as _least
m, n = 400_000, 4_000
g = np.random.default_rng(0)
rows = np.arange(m)
a = sp.csr_array((np.ones(m), (rows, rows % n)), shape=(m, n))
b = g.standard_normal(m)
for method in sys.argv[1:]:
    A = pl.Sparse(a)
    pl.lstsq(pl.Sparse(a[:900, :100]), b[:900], method=method, rtol=1e-3)
    A @ np.zeros(n), A.H @ np.zeros(m)
    with pl.config(memory_limit=1 << 40):
        stated = _least._peak(A, method, np.dtype(float), 1) + _least._of_products(A, float)
    before = reset()
    with pl.config(memory_limit=stated):
        pl.lstsq(A, b, method=method, rtol=1e-3)
    peak = status("VmHWM") - before
    assert peak <= stated, (method, peak, stated)
"""
needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="Linux")


def kept(script, *methods):
    """What is freed is given back at once, so that the peak is what is held."""
    command = [sys.executable, "-c", _STATUS + script, *methods]
    exact = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}
    ran = subprocess.run(command, capture_output=True, text=True, env=exact)
    assert ran.returncode == 0, ran.stderr


@needs_proc
def test_the_stated_memory_is_kept_by_every_method():
    kept(_PEAK, "cg+M", "minres+M", "gmres", "fgmres+M", "bicgstab+M", "lsqr", "block_cg+M")


@needs_proc
def test_the_stated_memory_is_kept_by_least_squares():
    kept(_TALL, "lsmr", "lsqr")
