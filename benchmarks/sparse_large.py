"""One honest large case: A, 200,000 x 100,000 of density 0.002, times its own transpose.

    python benchmarks/sparse_large.py [--scale 1.0] [--limit 4e9] [--threads 1] [--blocks 4]

The product has about 1.3e10 entries, 158 GB. Under a memory limit: the size is announced, the whole
refused, and what can be had without it computed: diagonal, trace, products with a vector, the ten
largest entries a row for some blocks of rows, and one block to disk. Prints seconds and the peak of
the process's memory. `--scale 0.01` is a trial of a second.
"""

import argparse
import itertools
import resource
import tempfile
import time

import numpy as np
import scipy.sparse as sp

import pylinop as pl


def random_rows(m, n, each, rng):
    """CSR with `each` columns a row drawn at random, those drawn twice once."""
    columns = np.sort(rng.integers(0, n, (m, each), dtype=np.int32), axis=1)
    stays = np.ones(columns.shape, bool)
    stays[:, 1:] = columns[:, 1:] != columns[:, :-1]
    ptr = np.concatenate([[0], stays.sum(axis=1).cumsum()]).astype(np.int32)
    return sp.csr_array((rng.standard_normal(ptr[-1]), columns[stays], ptr), shape=(m, n))


def timed(what, f):
    start, cpu = time.perf_counter(), time.process_time()
    value = f()
    wall, used = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{what:46} {wall:8.2f} s  {used:8.2f} s CPU   peak {peak:5.2f} GiB", flush=True)
    return value


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--scale", type=float, default=1.0, help="of rows, columns and entries a row")
    p.add_argument("--limit", type=float, default=4e9, help="pl.config(memory_limit=...)")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--blocks", type=int, default=4, help="blocks of 500 rows for the largest")
    args = p.parse_args()
    pl.config(memory_limit=int(args.limit), threads=args.threads)
    root = args.scale**0.5
    m, n, each = int(200_000 * root), int(100_000 * root), max(2, int(200 * root))
    rng = np.random.default_rng(0)
    A = timed("making A", lambda: random_rows(m, n, each, rng))
    print(f"A: {m:,} x {n:,}, {A.nnz:,} entries, density {A.nnz / m / n:.4f}")
    size = timed("size, from 64 rows", lambda: pl.sparse_product_size(A, A.T, exact=False))
    print(" ", size)
    try:
        with pl.config(memory_limit=min(int(args.limit), size.nbytes // 2)):
            timed("the whole", lambda: pl.sparse_matmul(A, A.T))
    except pl.MaterializationError as error:
        print(f"  refused: {error}")
    S = pl.Sparse(A)
    G = S @ S.T
    x = rng.standard_normal(m)
    d = timed("diagonal(A @ A.T)", G.diagonal)
    t = timed("trace(A @ A.T)", G.trace)
    y = timed("A (A.T x)", lambda: G @ x)
    assert abs(t - d.sum()) <= 1e-12 * d.sum() and abs(t - (A.data**2).sum()) <= 1e-10 * t
    i = m // 3
    row = (A[[i]] @ A.T).toarray()[0]
    assert abs(y[i] - row @ x) <= 1e-9 * np.abs(row) @ np.abs(x) and abs(d[i] - row[i]) < 1e-9

    def largest():
        blocks = pl.sparse_row_blocks(A, A.T, topk=10, block_rows=500)
        return list(itertools.islice(blocks, args.blocks))

    found = timed(f"ten largest of {500 * args.blocks:,} rows", largest)
    start, block = found[-1]
    row = (A[[start]] @ A.T).toarray()[0]
    want = np.sort(np.argsort(-np.abs(row), kind="stable")[:10])
    assert np.array_equal(block[[0]].indices, want)
    some = A[: max(1, m // 100)]
    with tempfile.TemporaryDirectory() as folder:
        C = timed(
            f"{some.shape[0]:,} rows to disk", lambda: pl.sparse_matmul(some, A.T, out=folder)
        )
        print(f"  {C.nnz:,} entries, {C.data.nbytes + C.indices.nbytes:,} bytes")
        assert np.array_equal(C[[0]].toarray(), (A[[0]] @ A.T).toarray())
    pl.config(memory_limit=None, threads=None)


if __name__ == "__main__":
    main()
