"""Our own kernels on several threads: the same bits, after a fork, interrupted in their midst."""

import os
import threading

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl
from pylinop import _core


@pytest.fixture
def threads():
    """Sets the number of threads of the process for one test."""
    before = _core._blas()["threads"]
    yield lambda n: pl.config(threads=n)
    pl.config(threads=before)


def on_each(threads, work):
    """work() on 1 to 5 threads: the same bits."""
    threads(1)
    want = work()
    for n in (2, 3, 5):
        threads(n)
        for got, one in zip(work(), want, strict=True):
            assert got.dtype == one.dtype and np.array_equal(got, one)
    return want


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_kernel_bits(rng, threads, dtype):
    x, y = (rng.standard_normal((n, 3)).astype(dtype) for n in (1_700, 1_100))
    K, S = pl.Kernel("matern32", x, y), pl.Kernel("rbf", x)
    P = pl.multiply(S, pl.Kernel("periodic", x[:, :1], period=0.7))
    v, V = rng.standard_normal(1_100).astype(dtype), rng.standard_normal((1_100, 3)).astype(dtype)
    u, U = rng.standard_normal(1_700).astype(dtype), rng.standard_normal((1_700, 2)).astype(dtype)

    def work():
        return [K @ v, K @ V, K.T @ u, S @ u, S @ (U + 1j * U), P @ U, K.toarray(), P.diagonal()]

    got = on_each(threads, work)
    R = got[6]
    D, eps = S.toarray(), np.finfo(dtype).eps
    for y, A, b in ((got[0], R, v), (got[2], R.T, u), (got[3], D, u), (got[4], D, U + 1j * U)):
        assert np.all(np.abs(y - A @ b) <= 50 * eps * (np.abs(A) @ np.abs(b)))


def test_kernel_batches_and_strides(rng, threads):
    x = rng.standard_normal((2, 900, 2))
    K, v = pl.Kernel("matern52", x), rng.standard_normal((900, 4))[::-1, ::2]
    (got,) = on_each(threads, lambda: [K @ v])
    assert np.allclose(got, K.toarray() @ v)


def test_many_callers_at_once(rng, threads):
    threads(3)
    x, v = rng.standard_normal((1_500, 2)), rng.standard_normal(1_500)
    K = pl.Kernel("rbf", x)
    want, got = K @ v, [None] * 6

    def work(i):
        got[i] = [K @ v for _ in range(5)]

    callers = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in callers:
        t.start()
    for t in callers:
        t.join(120)
    assert all(np.array_equal(y, want) for found in got for y in found)


FORKED = """
import os, signal, warnings
import numpy as np, pylinop as pl
warnings.simplefilter("ignore", DeprecationWarning)
pl.config(threads=3)
rng = np.random.default_rng(0)
K, v = pl.Kernel("rbf", rng.random((1500, 3))), rng.standard_normal(1500)
want = K @ v
for turn in range(3):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(60)
            code = 0 if np.array_equal(K @ v, want) else 2
        finally:
            os._exit(code)
    assert np.array_equal(K @ v, want)
    assert os.waitpid(pid, 0)[1] == 0
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_threads_too(python):
    assert python(FORKED).strip() == "done"


INTERRUPTED = """
import os, signal, sys, threading
import numpy as np, pylinop as pl
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where it was ignored
pl.config(threads=int(sys.argv[1]))
rng = np.random.default_rng(0)
x = rng.random((600_000, 3))  # products of minutes
b = rng.standard_normal(600_000)
few, c = x[:700], b[:700]
S, K, small = pl.Kernel("rbf", x), pl.Kernel("matern32", x, x.copy()), pl.Kernel("rbf", few)
many = pl.Kernel("rbf", x[:40_000].reshape(80, 500, 3))  # a batch of many that are short
want = small @ c
calls = {
    "symmetric": lambda: S @ b,
    "rows": lambda: K @ b,
    "columns": lambda: K @ np.stack([b, b], 1),
    "out": lambda: np.matmul(S, b, out=np.empty(600_000)),
    "sum": lambda: (S + 2 * K + pl.Identity(600_000)) @ b,
    "cg": lambda: pl.cg(S + pl.Identity(600_000), b),
    "lazy": lambda: np.asarray(pl.lazy(b) @ (S @ pl.lazy(b))),
    "batch": lambda: [many @ c[:500] for _ in iter(int, 1)],
}
for name, call in calls.items():
    alarm = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    alarm.start()
    try:
        call()
    except KeyboardInterrupt:
        assert np.array_equal(small @ c, want)
        print(name, end=" ")
    alarm.join()
print("done")
"""


@pytest.mark.parametrize("count", [1, 2])
def test_interrupted_in_the_midst(python, count):
    """A real SIGINT; what could not be interrupted would run into the time limit."""
    got = python(INTERRUPTED, count).split()
    assert got == ["symmetric", "rows", "columns", "out", "sum", "cg", "lazy", "batch", "done"]


SPARSE = """
import os, signal, sys, threading
import numpy as np, pylinop as pl, scipy.sparse as sp
signal.signal(signal.SIGINT, signal.default_int_handler)
pl.config(threads=int(sys.argv[1]))
rng = np.random.default_rng(0)
n = 60_000
G = sp.csr_array((np.ones(n * 100), rng.integers(0, n, n * 100), np.arange(n + 1) * 100), (n, n))
F = G.copy()
F.indices[:] = np.repeat(np.arange(n) % 7, 100)  # rows that meet in a few columns: counted first
calls = {
    "size": lambda: pl.sparse_product_size(G, G),  # 6e8 products each
    "whole": lambda: pl.sparse_matmul(F, G),
    "block": lambda: pl.sparse_matmul(G, G, topk=1),
}
few = G[:50] @ G
for name, call in calls.items():
    alarm = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    alarm.start()
    try:
        call()
    except KeyboardInterrupt:
        got = pl.sparse_matmul(G[:50], G)
        assert np.array_equal(got.data, few.sorted_indices().data)
        print(name, end=" ")
    alarm.join()
print("done")
"""


@pytest.mark.parametrize("count", [1, 2])
def test_sparse_products_are_interrupted(python, count):
    assert python(SPARSE, count).split() == ["size", "whole", "block", "done"]


def test_handlers_that_return_let_it_go_on(python):
    code = """
import os, signal, threading
import numpy as np, pylinop as pl
seen = []
signal.signal(signal.SIGUSR1, lambda *_: seen.append(small @ c))  # computes in the midst
x = np.random.default_rng(0).random((9_000, 3))
K, small, b, c = pl.Kernel("rbf", x), pl.Kernel("rbf", x[:50]), np.ones(9_000), np.ones(50)
want, quiet = K @ b, small @ c
over = threading.Event()

def nag():
    while not over.wait(0.02):
        os.kill(os.getpid(), signal.SIGUSR1)

t = threading.Thread(target=nag)
t.start()
while len(seen) < 3:
    assert np.array_equal(K @ b, want)
over.set()
t.join()
assert all(np.array_equal(y, quiet) for y in seen)
print("done")
"""
    assert python(code).strip() == "done"


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_bits(rng, threads, index):
    A = sp.random_array((30_000, 20_000), density=2e-3, rng=rng, format="csr")
    A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
    assert A.nnz > 1_000_000
    O, x = pl.Sparse(A), rng.standard_normal((20_000, 3))
    C = pl.Sparse(A.T.tocsr())

    def work():
        z = x[:, 1:] + 1j * x[:, :2]
        return [O @ x[:, 0], O @ x, O @ np.asfortranarray(x), O @ x[::-1], O @ z, C.T @ x]

    got = on_each(threads, work)
    assert np.array_equal(got[0], A @ np.ascontiguousarray(x[:, 0]))
    assert np.allclose(got[5], A @ x)


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_scattered_sums(rng, threads, form, index):
    """Products by columns and triplets: in parts where there are many entries a row of y."""
    A = sp.random_array((30_000, 9_000), density=2e-3, rng=rng, format=form)
    if form == "coo":
        A.coords = tuple(at.astype(index) for at in A.coords)
    else:
        A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
    tall, wide = rng.standard_normal((30_000, 9)), rng.standard_normal((9_000, 9))
    O, Z = pl.Sparse(A), pl.Sparse(A * (1 + 2j))

    def work():
        some = [O.T @ tall[:, 0], O.T @ tall[:, :3], O.T @ tall, O.T @ np.asfortranarray(tall)]
        some += [O @ wide[:, 0], O @ wide, O.T @ tall[::-1, 1], Z.H @ tall[:, 0]]
        return some + [pl.Sparse(A.astype(np.float32)).T @ tall[:, 0].astype(np.float32)]

    got = on_each(threads, work)
    want = [A.T @ tall[:, 0], A.T @ tall[:, :3], A.T @ tall, A.T @ tall]
    want += [A @ wide[:, 0], A @ wide, A.T @ tall[::-1, 1], (1 - 2j) * (A.T @ tall[:, 0])]
    for y, z in zip(got, want, strict=False):
        np.testing.assert_allclose(y, z, rtol=1e-13, atol=1e-11)
    np.testing.assert_allclose(got[-1], want[0], rtol=1e-4, atol=1e-4)


def test_scattered_sums_of_uneven_columns(rng, threads):
    """All entries in one row, in the last one, and in none; integers wrap alike."""
    for rows in (np.zeros(600_000, int), np.full(600_000, 49), np.arange(600_000) % 50):
        at = np.sort(rows), rng.integers(0, 300, 600_000)
        A = sp.csr_array(sp.coo_array((rng.integers(-9, 9, 600_000), at), shape=(50, 300)))
        A = sp.csr_array((np.resize(A.data, 600_000), at[1], np.searchsorted(at[0], range(51))))
        x = rng.integers(-9, 9, 50)
        (got,) = on_each(threads, lambda A=A, x=x: [pl.Sparse(A).T @ x])
        assert np.array_equal(got, A.T @ x)
        batch = np.stack([x, x + 1, x - 1])[..., None]
        (many,) = on_each(threads, lambda A=A, b=batch: [pl.Sparse(A).T @ b])
        assert np.array_equal(many[0, :, 0], got)


def test_room_for_scattered_sums_is_stated():
    A = pl.Sparse(sp.random_array((20_000, 5_000), density=5e-3, format="csr", rng=0))
    x = np.ones(20_000)
    assert A.T.explain("apply", x).memory >= 2 * 5_000 * 8
    assert A.explain("apply", x[:5_000]).memory == 20_000 * 8


def test_sparse_of_other_shapes(rng, threads):
    threads(4)
    for shape in ((1, 400_000), (3, 400_000), (400_000, 1), (1_000_000, 2)):
        A = sp.random_array(shape, density=0.9, rng=rng, format="csr")
        x = rng.standard_normal((shape[1], 3))
        assert np.array_equal(pl.Sparse(A) @ x, A @ x)


def test_sparse_indices_are_checked_on_all_threads(rng, threads):
    threads(3)
    A = sp.random_array((10_000, 10_000), density=0.01, rng=rng, format="csr")
    O, x = pl.Sparse(A), rng.standard_normal(10_000)
    want = A @ x
    for array, at, value in (
        (A.indices, 0, 10_000),
        (A.indices, A.nnz - 1, -1),
        (A.indices, A.nnz // 2, 1 << 30),
        (A.indptr, 5_000, A.nnz + 1),
        (A.indptr, 0, -1),
        (A.indptr, 7_500, 0),
    ):
        kept = array[at]
        array[at] = value
        with pytest.raises(IndexError, match="out of bounds"):
            O @ x
        array[at] = kept
    assert np.array_equal(O @ x, want)
