"""LSMR over blocks on disk: ``python benchmarks/dask_lsmr.py [--quick] [--folder D] [--json F]``.

2e6 x 2e5 with 2e7 nonzeros in 16 blocks of files, on one thread, two threads, two processes, and
two workers of dask, beside SciPy's lsmr and pl.lsmr in memory. The ways take turns until --minutes
are over; each tells when an iteration ends (SciPy's: when it asks for A v), and the time of one is
the least and the median of what lies between, over all rounds; the ratio to one process is the
median of the rounds' medians. (The difference of a long and a short solve is not the time of an
iteration: where a solve's first vectors come from the system anew it comes out far too small.) All
must give the same x. Prints milliseconds an iteration,
and the constants that docs/larger_than_memory.md reckons with
(dask_estimate.py): bytes and nanoseconds an entry, and a round trip.

Not part of run.py: it starts processes and takes minutes and 300 MB of disk. Needs scipy, dask and
distributed.
"""

import argparse
import json
import os
import sys
import tempfile
import time


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--quick", action="store_true", help="a tenth of the size, two rounds")
    p.add_argument("--rows", type=int, default=2_000_000)
    p.add_argument("--columns", type=int, default=200_000)
    p.add_argument("--each", type=int, default=10, help="nonzeros a row")
    p.add_argument("--blocks", type=int, default=16)
    p.add_argument("--iterations", type=int, default=10)
    p.add_argument("--rounds", type=int, default=8, help="at most")
    p.add_argument("--minutes", type=float, default=4, help="no round begins after")
    p.add_argument("--constants", action="store_true", help="no solves")
    p.add_argument("--folder", help="where the blocks go; a temporary folder when not given")
    p.add_argument("--json", help="append one line with the figures")
    return p.parse_args()


def write(args, folder):
    """Blocks of random rows, and b = A 1 + noise."""
    import numpy as np
    import scipy.sparse

    import pylinop.dask as pld

    rng = np.random.default_rng(20261122)
    b = []

    def blocks():
        rows = args.rows // args.blocks
        for _ in range(args.blocks):
            index = rng.integers(0, args.columns, (rows, args.each)).astype(np.int32)
            index.sort(axis=1)
            ptr = np.arange(0, rows * args.each + 1, args.each, dtype=np.int32)
            data = rng.standard_normal(rows * args.each)
            A = scipy.sparse.csr_array((data, index.ravel(), ptr), shape=(rows, args.columns))
            b.append(A @ np.ones(args.columns) + 0.1 * rng.standard_normal(rows))
            yield A

    pld.write_blocks(blocks(), os.path.join(folder, "A"))
    np.save(os.path.join(folder, "b.npy"), np.concatenate(b))


def ways(folder, stack):
    """(name, solve(iterations, tell) -> x); tell is called once an iteration."""
    import distributed
    import numpy as np
    import scipy.sparse
    import scipy.sparse.linalg

    import pylinop as pl
    import pylinop.dask as pld

    A, b = os.path.join(folder, "A"), os.path.join(folder, "b.npy")
    free = {"atol": 0, "btol": 0, "conlim": 0}
    whole = scipy.sparse.vstack(
        [
            scipy.sparse.csr_array((c.data, c.indices, c.indptr), shape=c.shape)
            for c in (block.load() for block in pld.open_blocks(A).blocks)
        ],
        format="csr",
    )
    values = np.load(b)
    turned = whole.T  # as SciPy's own wrapper keeps it

    def scipys(k, tell):
        def product(v):
            tell()
            return whole @ v

        wrapped = scipy.sparse.linalg.LinearOperator(
            whole.shape, matvec=product, rmatvec=lambda u: turned @ u, dtype=whole.dtype
        )
        return scipy.sparse.linalg.lsmr(wrapped, values, maxiter=k, **free)[0]

    yield "scipy, in memory, 1 thread", scipys
    ours = pl.Sparse(whole)
    yield (
        "pl.lsmr, in memory, 1 thread",
        lambda k, tell: pl.lsmr(ours, values, maxiter=k, callback=lambda x: tell(), **free)[0],
    )
    engines = {
        "serial": ("serial", 1),
        "threads": ("threads", 2),
        "processes": ("processes", 2),
    }
    cluster = stack.enter_context(
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    )
    client = stack.enter_context(distributed.Client(cluster, direct_to_workers=True))
    for name, (engine, workers) in {**engines, "dask": (client, 2)}.items():
        op = stack.enter_context(pld.open_blocks(A, engine=engine, workers=workers, parts=2))
        yield (
            f"pylinop, {name}, {workers}",
            lambda k, tell, op=op: pld.lsmr(op, b, maxiter=k, callback=lambda x: tell(), **free)[0],
        )


def constants(folder):
    """Bytes and nanoseconds an entry of a sweep, and of SciPy's two products with the same blocks.

    The three take turns in this process, some 0.1 s each, and it is its own time that counts."""
    import numpy as np
    import scipy.sparse

    import pylinop.dask as pld
    from pylinop import _core

    op = pld.open_blocks(os.path.join(folder, "A"), engine="serial")
    blocks = [block.load() for block in op.blocks]
    there = [tuple(np.array(a) for a in c[:3]) for c in blocks]
    n, entries = op.shape[1], sum(len(c.data) for c in blocks)
    v, w, us = np.ones(n), np.zeros(n), [np.zeros(c.shape[0]) for c in blocks]

    def sweep(arrays):
        for c, three, u in zip(blocks, arrays, us, strict=True):
            _core._csr_step("d", "i", "d", *c.shape, *three, 0.5, v, u, w)

    def products():
        for c, (ptr, index, data) in zip(blocks, there, strict=True):
            A = scipy.sparse.csr_array((data, index, ptr), shape=c.shape)
            A.T @ (A @ v)

    ways = {
        "ns_per_entry": lambda: sweep([c[:3] for c in blocks]),
        "ns_per_entry_in_memory": lambda: sweep(there),
        "ns_per_entry_scipy": products,
    }
    best = dict.fromkeys(ways, np.inf)
    for _ in range(15):
        for name, way in ways.items():
            start = time.process_time()
            way()
            best[name] = min(best[name], time.process_time() - start)
    size = sum(block.nbytes for block in op.blocks)
    return {
        "bytes_per_entry": size / entries,
        **{name: float(1e9 * took / entries) for name, took in best.items()},
        "ns_per_number": float(1e9 * vectors_here(4_000_000) / 4_000_000),
    }


def vectors_here(n):
    """Seconds of a step's work on the vectors of n numbers that are kept here."""
    import numpy as np

    import pylinop.dask as pld

    class Still(pld.Serial):
        """An engine that answers at once, as a step's first part would."""

        def gather(self, method, *common, each=None):
            return [(1.0, w.copy())] if method == "begin" else [(1.0, w)]

    w = np.random.default_rng(0).standard_normal(n) / n
    op = pld.BlockOperator([pld.Call(np.zeros, (1, n))], engine=Still(1))
    times = []

    def tell(x):
        times.append(time.process_time())
        if len(times) == 8:
            raise StopIteration

    try:
        pld.lsmr(op, np.ones(1), atol=0, btol=0, conlim=0, maxiter=9, callback=tell)
    except StopIteration:
        pass
    return min(np.diff(times))


def trips(folder):
    """Milliseconds of a call to both workers with a vector there and one back: by dask, by plain
    processes, for three lengths of it."""
    import distributed
    import numpy as np

    import pylinop.dask as pld

    found = {}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as c,
        distributed.Client(c, direct_to_workers=True) as client,
    ):
        for n in (1, 200_000, 4_000_000):
            empty = np.zeros((1, n)) if n == 1 else pld.Call(np.zeros, (0, n), args=((0, n),))
            x, best = np.ones(n), {}
            with (
                pld.BlockOperator([empty, empty], engine=client) as dask,
                pld.BlockOperator([empty, empty], engine="processes", workers=2) as plain,
            ):
                for _ in range(8):
                    for name, op in (("dask", dask), ("processes", plain)):
                        start = time.perf_counter()
                        op.engine.total("normal", x)
                        took = 1e3 * (time.perf_counter() - start)
                        best[name] = min(best.get(name, np.inf), took)
            found[n] = best
    return found


def main():
    args = arguments()
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = "1"
    if args.quick:
        args.rows, args.columns, args.rounds = args.rows // 10, args.columns // 10, 2
    begun = time.monotonic()
    import contextlib

    import numpy as np

    with tempfile.TemporaryDirectory() as temporary, contextlib.ExitStack() as stack:
        folder = args.folder or temporary
        write(args, folder)
        figures = constants(folder)
        print(figures)
        if args.constants:
            return 0
        figures["round_trip_ms"] = trips(folder)
        print(figures["round_trip_ms"])
        todo = list(ways(folder, stack))
        xs, wall, own, rounds = {}, {}, {}, []
        for _ in range(args.rounds):
            if rounds and time.monotonic() - begun > 60 * args.minutes:
                break
            rounds.append({})
            for name, solve in todo:
                marks = []
                xs[name] = solve(
                    2 + args.iterations,
                    lambda marks=marks: marks.append((time.perf_counter(), time.process_time())),
                )
                between = np.diff(np.array(marks), axis=0)[1:]  # the first pays for its memory
                wall.setdefault(name, []).extend(between[:, 0])
                own.setdefault(name, []).extend(between[:, 1])
                rounds[-1][name] = np.median(between[:, 0])
        first, one = xs[todo[0][0]], "pylinop, serial, 1"
        for name, took in wall.items():
            ratio = np.median([r[name] / r[one] for r in rounds])
            off = np.linalg.norm(xs[name] - first) / np.linalg.norm(first)
            print(
                f"{name:30} {1e3 * min(took):8.1f} ms an iteration, median "
                f"{1e3 * np.median(took):8.1f}  {ratio:5.2f}  this process's own time "
                f"{1e3 * min(own[name]):8.1f} ms  off {off:.1e}"
            )
            assert off < 1e-8, name
        if args.json:
            figures["ms"] = {name: 1e3 * min(took) for name, took in wall.items()}
            figures["median_ms"] = {name: 1e3 * np.median(took) for name, took in wall.items()}
            figures["own_ms"] = {name: 1e3 * min(took) for name, took in own.items()}
            figures["rounds"], figures["load"] = len(rounds), os.getloadavg()
            figures["shape"] = [args.rows, args.columns, args.each]
            with open(args.json, "a", encoding="utf-8") as f:
                print(json.dumps(figures), file=f)
    return 0


if __name__ == "__main__":
    sys.exit(main())
