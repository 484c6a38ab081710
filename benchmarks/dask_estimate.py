"""What LSMR over blocks takes at a size that was not run: ``python benchmarks/dask_estimate.py``.

Memory a worker, bytes an iteration and seconds, reckoned from measured constants (dask_lsmr.py
prints them; the defaults are those of docs/larger_than_memory.md) and assumed bandwidths. The
default is the table of that page: 1e9 x 1e9 with ten nonzeros a row on 64 workers. Rows: blocks of
rows, each worker has its rows of u and b, and three vectors of the columns. Columns: blocks of
columns, each worker has two vectors of the rows and three of its own columns.
"""

import argparse
import sys


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rows", type=float, default=1e9)
    p.add_argument("--columns", type=float, default=1e9)
    p.add_argument("--each", type=float, default=10, help="nonzeros a row")
    p.add_argument("--workers", type=int, default=64)
    p.add_argument("--entry-bytes", type=float, default=12.4, help="measured: an entry")
    p.add_argument("--entry-ns", type=float, default=33, help="measured: a sweep, an entry")
    p.add_argument(
        "--number-ns", type=float, default=8, help="measured: the vectors here, a column"
    )
    p.add_argument("--network", type=float, default=1.25e9, help="assumed: bytes a second")
    return p.parse_args()


def estimate(a, by):
    """A dictionary: bytes and seconds by blocks of rows or of columns."""
    m, n, p, size = a.rows, a.columns, a.workers, 8
    entries = m * a.each
    blocks = entries * a.entry_bytes / p
    here = 6 * n * size  # x, v, h, hbar, g, the sum
    if by == "rows":
        kept, vectors = 2 * m / p * size, 3 * n * size
        there, back = n * size, n * size
        through = p * (there + back)
        whole = 2 * n * size  # v and the sum, while a sweep needs them
    else:
        kept, vectors = 0, (2 * m + 3 * n / p) * size
        there = back = (m + n / p) * size
        through = p * (there + back)
        here += 3 * m * size  # u, the sum of t, b
        whole = 2 * m * size  # u and the sum
    ring = whole  # Allgatherv of the one, Reduce_scatter of the other, less 1/p
    sweep = entries / p * a.entry_ns * 1e-9
    axpys = n * a.number_ns * 1e-9
    return {
        "blocks, a worker": blocks,
        "rows of u and b, a worker": kept,
        "vectors, a worker": vectors,
        "memory, a worker (dask)": blocks + kept + vectors,
        "memory here (dask), answers that wait apart": here,
        "answers that may wait here (dask)": p * back,
        "memory, a rank (MPI)": blocks + kept + whole + here / p,
        "a checkpoint": here - n * size + (m * size if by == "rows" else 0),
        "bytes to a worker, an iteration": there,
        "bytes from a worker, an iteration": back,
        "bytes through the client, an iteration (dask)": through,
        "bytes of a rank, an iteration (MPI)": ring,
        "s arithmetic of the blocks": sweep,
        "s vectors here": axpys,
        "s network (dask)": through / a.network,
        "s network (MPI)": ring / a.network,
        "s an iteration (dask)": sweep + axpys + through / a.network,
        "s an iteration (MPI)": sweep + axpys / p + ring / a.network,
    }


def main():
    a = arguments()
    print(f"{a.rows:g} x {a.columns:g}, {a.rows * a.each:g} entries, {a.workers} workers")
    rows, columns = estimate(a, "rows"), estimate(a, "columns")
    print(f"{'':48}{'rows':>14}{'columns':>14}")
    for name, value in rows.items():
        if name.startswith("s "):
            print(f"{name:48}{value:12.2f} s{columns[name]:12.2f} s")
        else:
            print(f"{name:48}{value / 1e9:11.2f} GB{columns[name] / 1e9:11.2f} GB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
