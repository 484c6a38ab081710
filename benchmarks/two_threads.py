"""Two threads against one, of ours alone: `python benchmarks/two_threads.py [--only PATTERN]`.

The works of the other benchmarks whose one call takes some 0.1 ms and more, and of the small ones
enough to see that nothing is lost. In each round pylinop's first row runs one batch on one thread
and one on two, by wall clock; so does what is written by hand, whose ratio is the library's own.
A table, in order of the ratio: what gains least stands first.
"""

import argparse
import fnmatch
import os
import sys
import timeit

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "2"
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import formulas  # noqa: E402
import formulas_elsewhere  # noqa: E402
import harness  # noqa: E402
import kernel_matrix  # noqa: E402
import kind_solves  # noqa: E402
import sparse_products  # noqa: E402
import spectra  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

import pylinop as pl  # noqa: E402

MAKERS = (
    *formulas.MAKERS,
    *formulas_elsewhere.MAKERS,
    *kind_solves.MAKERS,
    *kernel_matrix.MAKERS,
    *spectra.MAKERS,
    *sparse_products.MAKERS,
)
BATCH, ROUNDS = 4e-3, 12


def ratio(contender):
    """(seconds on one thread, on two), minima over rounds by turns."""
    scope = {**contender.names, "np": harness.np}
    timer = timeit.Timer(contender.code, contender.setup, globals=scope)
    number, took = harness.batches(timer, BATCH)
    times = {1: [], 2: []}
    for _ in range(max(3, int(min(ROUNDS, 1.5 / took)))):
        for threads in times:
            with threadpool_limits(threads):
                pl.config(threads=threads)
                timer.timeit(1)  # wakes the threads
                times[threads].append(timer.timeit(number) / number)
    return min(times[1]), min(times[2])


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--only", default="*", metavar="PATTERN")
    args = p.parse_args()
    harness.use_peers, harness.threads = False, 2
    rows = []
    for make in MAKERS:
        for title, build in make():
            if not fnmatch.fnmatch(title, f"*{args.only}*"):
                continue
            case = build()
            ours = next(c for c in case.contenders if c.role == "pylinop")
            hand = next((c for c in case.contenders if c.role == "hand"), None)
            if harness.problem(case, ours):
                print(title, harness.problem(case, ours), file=sys.stderr)
                continue
            row = (title, *ratio(ours), *(ratio(hand) if hand else (0, 0)))
            rows.append(row)
            print(*row, file=sys.stderr, flush=True)
    rows.sort(key=lambda row: -row[2] / row[1])
    about = harness.machine()["machine"]
    blas = pl._core._blas()["config"].strip()
    print(f"{about['cpu']} ({about['vectors']}, {about['cpus']} CPUs). {blas}\n")
    print("| work | one thread | two | two / one | by hand, two / one |")
    print("|---|---|---|---|---|")
    for title, one, two, hand1, hand2 in rows:
        by_hand = f"{hand2 / hand1:.2f}" if hand1 else ""
        times = f"{harness.human(one)} | {harness.human(two)}"
        print(f"| {title} | {times} | {two / one:.2f} | {by_hand} |")


if __name__ == "__main__":
    main()
