"""Two threads against one, of ours alone: `python benchmarks/two_threads.py [--only PATTERN]`.

The works of the other benchmarks whose one call takes some 0.1 ms and more, and of the small ones
enough to see that nothing is lost. In each round pylinop's first row runs one batch on one thread
and one on two, by wall clock; so does what is written by hand, whose ratio is the library's own.
Minima over rounds in several passes over all works.
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

import factorisations  # noqa: E402
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
    *factorisations.MAKERS,
    *kernel_matrix.MAKERS,
    *spectra.MAKERS,
    *sparse_products.MAKERS,
)
BATCH, ROUNDS, PASSES = 4e-3, 12, 4


class Timed:
    """One way of one work: the least seconds on one thread and on two."""

    def __init__(self, contender):
        scope = {**contender.names, "np": harness.np}
        self.timer = timeit.Timer(contender.code, contender.setup, globals=scope)
        self.number, self.took = harness.batches(self.timer, BATCH)
        self.least = {1: float("inf"), 2: float("inf")}

    def run(self):
        """A pass of rounds, by turns on one thread and on two."""
        for _ in range(max(1, int(min(ROUNDS, 0.5 / self.took)))):
            for threads in self.least:
                with threadpool_limits(threads):
                    pl.config(threads=threads)
                    self.timer.timeit(1)  # wakes the threads
                    took = self.timer.timeit(self.number) / self.number
                    self.least[threads] = min(self.least[threads], took)

    @property
    def ratio(self):
        return self.least[2] / self.least[1]


def works(pattern):
    """(title, ours, by hand or None) of each work whose title fits the pattern."""
    for make in MAKERS:
        for title, build in make():
            if not fnmatch.fnmatch(title, f"*{pattern}*"):
                continue
            case = build()
            ours = next(c for c in case.contenders if c.role == "pylinop")
            hand = next((c for c in case.contenders if c.role == "hand"), None)
            if harness.problem(case, ours):
                print(title, harness.problem(case, ours), file=sys.stderr)
                continue
            yield title, Timed(ours), Timed(hand) if hand else None


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--only", default="*", metavar="PATTERN")
    args = p.parse_args()
    harness.use_peers, harness.threads = False, 2
    rows = list(works(args.only))
    for _ in range(PASSES):  # apart in time: for a second and more both threads may get one CPU
        for _title, *ways in rows:
            for way in ways:
                if way:
                    way.run()
    rows.sort(key=lambda row: -row[1].ratio)
    about = harness.machine()["machine"]
    blas = pl._core._blas()["config"].strip()
    print(f"{about['cpu']} ({about['vectors']}, {about['cpus']} CPUs). {blas}\n")
    print("| work | one thread | two | two / one | by hand, two / one |")
    print("|---|---|---|---|---|")
    for title, ours, hand in rows:
        times = f"{harness.human(ours.least[1])} | {harness.human(ours.least[2])}"
        print(f"| {title} | {times} | {ours.ratio:.2f} | {f'{hand.ratio:.2f}' if hand else ''} |")


if __name__ == "__main__":
    main()
