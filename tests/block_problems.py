"""Least-squares problems for the tests of pylinop.dask, and Python in a process of its own."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

sp = pytest.importorskip("scipy.sparse")

TIGHT = {"atol": 1e-11, "btol": 1e-11, "conlim": 1e12}


def sparse(rng, m=600, n=40, density=0.1, dtype=float):
    A = sp.random_array((m, n), density=density, format="csr", rng=rng)
    A.data -= 0.5
    if np.dtype(dtype).kind == "c":
        A = A + 1j * sp.random_array((m, n), density=density, format="csr", rng=rng)
    return A.astype(dtype).tocsr()


def problem(rng, m=600, n=40, dtype=float):
    A = sparse(rng, m, n, dtype=dtype)
    b = A @ rng.standard_normal(n) + 0.1 * rng.standard_normal(m)
    return A, b


def solution(A, b, damp=0.0, x0=0.0):
    a = np.vstack([A.toarray(), damp * np.eye(A.shape[1])])
    x0 = np.zeros(A.shape[1]) + x0
    return x0 + np.linalg.lstsq(a, np.concatenate([b - A @ x0, 0 * x0]), rcond=None)[0]


def close(x, y, rtol=1e-8):
    assert np.linalg.norm(x - y) <= rtol * np.linalg.norm(y)


def python(text, *args, before=()):
    done = subprocess.run(
        [*before, sys.executable, "-c", textwrap.dedent(text), *map(str, args)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def write_problem(path, rng):
    """A sparse problem on disk: (folder, A, b)."""
    import pylinop.dask as pld

    A, b = problem(rng)
    pld.write_blocks(A, path / "A", 4000)
    np.save(path / "b.npy", b)
    return path, A, b
