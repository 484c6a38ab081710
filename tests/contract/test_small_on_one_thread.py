"""Small routines leave BLAS's other threads asleep: waking one costs more than there is to do, and
a slice of time where the CPUs have other work. What is counted is how often the other threads of a
process were given a CPU (schedstat of Linux), not what anything takes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pylinop as pl
from pylinop import _core

COUNTED = Path("/proc/self/task")

# In a process of its own, whose BLAS has two threads that sleep soon after a call.
PROGRAM = """
import os, sys, time, warnings
from pathlib import Path
import numpy as np
import pylinop as pl

def others():
    me, found = os.getpid(), 0
    for task in os.listdir("/proc/self/task"):
        if int(task) != me:
            found += int(Path(f"/proc/self/task/{task}/schedstat").read_text().split()[2])
    return found

def asleep():
    before = None
    for _ in range(500):
        now = others()
        if now == before:
            return now
        before = now
        time.sleep(0.02)

def wakes(run):
    found = []
    for _ in range(2):
        before = asleep()
        run()
        found.append(asleep() - before)
    return min(found)

big = np.ones((700, 700))
print("large", wakes(lambda: pl.Dense(big) @ big))
dtype, rng = sys.argv[1], np.random.default_rng(0)
for n in map(int, sys.argv[2:]):
    a = rng.standard_normal((n, n)).astype(dtype)
    if a.dtype.kind == "c":
        a = a + 1j * rng.standard_normal((n, n)).astype(a.real.dtype)
    g, p = a + 4 * n**0.5 * np.eye(n, dtype=dtype), a @ a.conj().T + n * np.eye(n, dtype=dtype)
    h, t, few = a + a.conj().T, np.tril(g), np.ones((n, 4), dtype)
    wide = np.ones((n, min(4000, 2**18 // n**2)), dtype)
    new = lambda x, kind=None: pl.Dense(x.copy(), kind)
    if n > 144:
        run = lambda: (pl.cholesky(new(p, "pos")), pl.slogdet(new(g)), pl.lu(new(g)))
        print(n, "factors", wakes(run), sep="|")
        continue
    for name, run in {
        "products": lambda: (pl.Dense(a) @ few, pl.Dense(a) @ few[:, 0]),
        "Cholesky": lambda: (pl.solve(new(p, "pos"), few), pl.logdet(new(p, "pos"))),
        "inverse by Cholesky": lambda: pl.inv(new(p, "pos")).toarray(),
        "diagonal of an inverse": lambda: pl.inv(new(p, "pos")).diagonal(),
        "quadratic form": lambda: pl.inv_quad_logdet(new(p, "pos"), few[:, 0]),
        "LU": lambda: (pl.solve(new(g), few), pl.slogdet(new(g)), pl.lu(new(g))),
        "L D L^H": lambda: (pl.solve(new(h, "her"), few), pl.slogdet(new(h, "her"))),
        "triangles": lambda: (pl.solve(pl.Triangular(t), few), pl.Triangular(t) @ few),
        "triangle times matrix": lambda: pl.Triangular(t) @ np.ones((n, 20), dtype),
        "wide right sides": lambda: pl.solve(pl.Triangular(t), wide),
    }.items():
        print(n, name, wakes(run), sep="|")
"""


def old_library():
    """Older ones wake them for less: 0.3.27 in L D L^H, 0.3.21 in most. The sizes are 0.3.31's."""
    number = re.match(r"OpenBLAS 0\.3\.(\d+)", _core._blas()["config"])
    return number is None or int(number[1]) < 31


@pytest.mark.skipif(not COUNTED.exists(), reason="counts what Linux says of threads")
@pytest.mark.skipif(old_library(), reason="the sizes are those of OpenBLAS 0.3.31")
@pytest.mark.parametrize(
    "dtype, sizes",
    [
        ("float32", (1, 3, 5, 20, 64, 112, 128, 145, 448)),
        ("float64", (1, 3, 5, 20, 64, 112, 128, 145, 448)),
        ("complex64", (1, 3, 5, 20, 49, 60, 145, 312)),
        ("complex128", (1, 3, 5, 20, 49, 60, 145, 312)),
    ],
)
def test_other_threads_sleep(dtype, sizes):
    env = {k: v for k, v in os.environ.items() if k not in ("PYLINOP_VERIFY", "OPENBLAS_VERBOSE")}
    env |= {"OPENBLAS_NUM_THREADS": "2", "OPENBLAS_THREAD_TIMEOUT": "4"}
    before = str(Path(pl.__file__).absolute().parent.parent)
    env["PYTHONPATH"] = os.pathsep.join(p for p in (before, env.get("PYTHONPATH")) if p)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, dtype, *map(str, sizes)],
        capture_output=True,
        text=True,
        env=env,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    first, *lines = done.stdout.splitlines()
    if first == "large 0":
        pytest.skip("no other thread is seen at work: one CPU, or no counts")
    assert len(lines) == sum(10 if n <= 144 else 1 for n in sizes)
    assert [s for s in lines if not s.endswith("|0")] == []


@pytest.fixture
def two_threads():
    before = _core._blas()["threads"]
    pl.config(threads=2)
    yield
    pl.config(threads=before)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize(
    "n", [47, 48, 49, 64, 65, 112, 113, 128, 144, 145, 256, 312, 313, 448, 449]
)
def test_factors_in_block_columns(n, dtype, two_threads, rng):
    """On both sides of the sizes between which LAPACK would wake the others."""
    a = rng.standard_normal((n, n)).astype(dtype)
    if a.dtype.kind == "c":
        a = a + 1j * rng.standard_normal((n, n)).astype(a.real.dtype)
    u = np.finfo(dtype).eps
    p = a @ a.conj().T + n * np.eye(n, dtype=dtype)
    low = pl.cholesky(pl.Dense(p, "pos")).toarray()
    assert np.linalg.norm(low @ low.conj().T - p) <= n * u * np.linalg.norm(p)
    inverse = pl.inv(pl.Dense(p, "pos")).toarray()
    assert n < 64 or np.array_equal(inverse, inverse.conj().T)
    assert np.linalg.norm(inverse @ p - np.eye(n)) <= n * u * np.linalg.cond(p)
    order, low, up = (f.toarray() for f in pl.lu(pl.Dense(a)))
    assert np.abs(low).max() <= 2**0.5 + n * u  # LAPACK takes |re| + |im| for the size of a pivot
    assert np.linalg.norm(order @ low @ up - a) <= n * u * np.linalg.norm(low) * np.linalg.norm(up)
    found, want = pl.slogdet(pl.Dense(a)), np.linalg.slogdet(a.astype("c16"))
    np.testing.assert_allclose(found.logabsdet, want[1], rtol=100 * n * u)
    np.testing.assert_allclose(found.sign, want[0], atol=100 * n * u * np.linalg.cond(a))
    for bad in (0, 31, 32, n - 1):
        q = p.copy()
        q[bad, bad] = -1
        with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
            pl.cholesky(pl.Dense(q, "pos"))
        s = np.triu(a) + 4 * np.eye(n, dtype=dtype)
        s[bad, bad] = 0
        with pytest.raises(np.linalg.LinAlgError, match=f"pivot {bad + 1} of {n} is exactly zero"):
            pl.solve(pl.Dense(s) @ pl.Identity(n), np.ones(n, dtype))
