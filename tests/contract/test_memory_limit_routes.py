"""`pl.config(memory_limit=...)` on routes beside dense forms: values of LazyArrays, sparse
products, a few eigenpairs, SciPy's solvers, operands that no kernel takes as they lie. Each says
beforehand what it needs, and keeps to that."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl

N, LIMIT = 60_000, 1_000_000


def three(n=N):
    return pl.Tridiagonal(np.ones(n - 1), np.arange(1.0, n + 1), np.ones(n - 1))


def scattered(n, density):
    return sp.csr_array(sp.random_array((n, n), density=density, rng=0))


def grid(n, downwind=0.0):
    """The five-point Laplacian, of a symmetric pattern; or not."""
    line = sp.diags_array([-np.ones(n - 1), 4 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])
    a = sp.kron(line, sp.eye_array(n)) + sp.kron(sp.eye_array(n), line)
    return pl.Sparse(sp.csr_array(a + downwind * sp.eye_array(n * n, k=2)))


def as_far_as_it_gets(f, *args, **kwargs):
    """What does not converge has taken its memory too."""
    try:
        f(*args, **kwargs)
    except RuntimeError as error:
        assert "convergence" in str(error)


X, SMALL, WIDE = np.ones(1500), scattered(150, 0.05), scattered(4000, 4e-3)
BIG, ROW = np.ones((900, 900)), np.ones(900)
T, BLOCK = three(), np.random.default_rng(0).standard_normal((N, 3))
ROUTES = {
    "lazy sum": lambda: float((pl.lazy(X)[:, None] * pl.lazy(X)[None, :]).sum()),
    "lazy max": lambda: float(abs(pl.lazy(X)[:, None] - pl.lazy(X)[None, :]).max()),
    "lazy mean": lambda: ((pl.lazy(X)[:, None] - X) ** 2).mean(axis=1).toarray(),
    "lazy norm": lambda: float(np.linalg.norm(pl.lazy(X)[:, None] - X)),
    "lazy array": lambda: np.asarray(pl.lazy(X)[:, None] * X),
    "Kron tosparse": lambda: pl.Kron(pl.Sparse(SMALL), pl.Sparse(SMALL)).tosparse(),
    "KronSum tosparse": lambda: pl.KronSum(pl.Sparse(SMALL), pl.Sparse(SMALL)).tosparse(),
    "Sparse @ S": lambda: pl.Sparse(WIDE) @ WIDE,
    "S @ Sparse": lambda: WIDE @ pl.Sparse(WIDE),
    "lobpcg": lambda: pl.lobpcg(T, BLOCK, maxiter=5),
    "eigsh": lambda: as_far_as_it_gets(pl.eigsh, T, 3, maxiter=3),
    "eigsh sigma": lambda: as_far_as_it_gets(pl.eigsh, T, 3, sigma=0.5, maxiter=2),
    "eigsh pencil": lambda: pl.eigsh(T, 2, M=pl.Diag(np.arange(1.0, N + 1)), maxiter=4, tol=1),
    "eigs": lambda: as_far_as_it_gets(pl.eigs, T, 3, maxiter=3),
    "svds": lambda: as_far_as_it_gets(pl.svds, T, 3, maxiter=3),
    "expm_multiply": lambda: pl.expm_multiply(1e-6 * T, BLOCK),
    "expm_multiply grid": lambda: pl.expm_multiply(1e-6 * T, BLOCK[:, 0], start=0, stop=1, num=7),
    "broadcast": lambda: pl.Dense(np.broadcast_to(ROW, (900, 900))) @ ROW,
    "every other": lambda: pl.Dense(np.broadcast_to(BIG, (2, 900, 900))[0, ::2, ::2]) @ ROW[::2],
    "sparse LU": lambda: pl.factorized(grid(100)),
    "sparse LU, rows exchanged": lambda: pl.factorized(grid(70, 0.5)),
    "sparse determinant": lambda: pl.slogdet(grid(100)),
    "unaligned": lambda: pl.Dense(unaligned()) @ ROW[:500],
}


def unaligned(n=500):
    return np.zeros(8 * n * n + 1, np.uint8)[1:].view(np.float64).reshape(n, n)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ROUTES)
def test_what_passes_the_limit_is_refused(name):
    """With the bytes in the message, before they are taken."""
    with pl.config(memory_limit=LIMIT):
        with pytest.raises(pl.MaterializationError, match=r"needs? [\d,]+ bytes") as caught:
            ROUTES[name]()
    needed = int(re.search(r"needs? ([\d,]+) bytes", str(caught.value))[1].replace(",", ""))
    assert needed > LIMIT


def test_solves_go_by_products_where_a_factor_does_not_fit():
    """The limit is kept without an error where there is another way; and above it LU is taken."""
    A = grid(100)
    b = np.ones(10_000)
    with pl.config(memory_limit=5_000_000), pl.explaining() as seen:
        x = pl.solve(A, b)
    assert "SuperLU" not in str(seen)
    assert np.linalg.norm(A @ x - b) < 1e-6 * np.linalg.norm(b)
    with pl.config(memory_limit=30_000_000), pl.explaining() as seen:
        pl.solve(grid(100), b)
    assert "SuperLU" in str(seen) or "CHOLMOD" in str(seen)


@pytest.mark.parametrize("downwind", [0.0, 0.5])
@pytest.mark.parametrize("n", [2, 9, 30])
def test_the_fill_is_known_before(n, downwind):
    """Of symmetric patterns to the entry, with exchanges of rows from above and not by far."""
    from scipy.sparse.linalg import splu

    from pylinop._sparse import fill

    a = grid(n, downwind).tosparse("csc")
    how = {"permc_spec": "COLAMD", "diag_pivot_thresh": 1.0}
    if not downwind:
        how = {
            "permc_spec": "MMD_AT_PLUS_A",
            "diag_pivot_thresh": 0.0,
            "options": {"SymmetricMode": True},
        }
    made, most = splu(a, **how).nnz, fill.most_entries(a, how)
    assert most == made if not downwind else made <= most <= 3 * made


def test_a_smaller_basis_where_the_limit_says_so():
    """The basis is the user's or ours: ours shrinks before it is refused."""
    A = pl.Diag(np.r_[np.zeros(N - 3), 5.0, 7.0, 9.0]) + 0 * three()
    for limit in (50 * 8 * N, 24 * 8 * N):
        with pl.config(memory_limit=limit):
            w = pl.eigsh(A, 3, which="LA", return_eigenvectors=False)
        np.testing.assert_allclose(w, [5, 7, 9])
    with pl.config(memory_limit=24 * 8 * N):
        with pytest.raises(pl.MaterializationError, match="basis of 30"):
            pl.eigsh(A, 3, ncv=30)


def test_explain_makes_no_vector():
    """The plan needs the shape of a right side, not its norm."""
    for limit in (30_000_000, None):
        with pl.config(memory_limit=limit):
            said = pl.Identity(2**20).explain("solve", None)
    assert said.memory >= 0
    problem = []
    from pylinop._iterative import problem as its

    norms, its.norms = its.norms, lambda b: problem.append(b) or norms(b)
    try:
        with pl.config(memory_limit=30_000_000):
            pl.Identity(2**20).explain("solve", None)
    finally:
        its.norms = norms
    assert not problem


_PEAK = """
import ctypes, gc, re, sys, warnings
sys.path.insert(0, sys.argv[1])
import test_memory_limit_routes as t
import pylinop as pl

def status(key):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith(key))

def peak(f):
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    before = status("VmRSS")
    with open("/proc/self/clear_refs", "w") as out:
        out.write("5")
    f()
    return status("VmHWM") - before

def stated(f):
    limit = 1000
    for _ in range(20):
        try:
            with pl.config(memory_limit=limit):
                return limit, peak(f)
        except pl.MaterializationError as error:
            limit = int(re.search(r"needs? ([\\d,]+) bytes", str(error))[1].replace(",", ""))
    raise AssertionError("no limit is enough")

warnings.simplefilter("ignore")
pl.config(cache_limit=0)
for name, f in t.ROUTES.items():
    f()  # what is imported and kept once
    said, took = stated(f)
    kept = took <= said + 1_000_000
    print(f"{name}: {took / 1e6:.1f} of {said / 1e6:.1f} MB", "" if kept else "!")
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="needs Linux's /proc")
@pytest.mark.no_asan  # peaks of the process
def test_what_is_said_is_kept():
    here = os.path.dirname(os.path.abspath(__file__))
    env = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536", "OPENBLAS_NUM_THREADS": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", _PEAK, here], capture_output=True, text=True, env=env
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert len(re.findall("MB", ran.stdout)) == len(ROUTES)
    assert "!" not in ran.stdout, ran.stdout
