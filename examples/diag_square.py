"""The diagonal of D @ D for a diagonal matrix D, as one writes it.

In dense NumPy, ``np.diagonal(np.diag(d) @ np.diag(d))`` takes n^3 multiplications and three n x n
matrices for n numbers. In pylinop ``(pl.Diag(d) @ pl.Diag(d)).diagonal()`` is the same formula, and
what runs is ``d * d``: the product of two diagonal operators is again one, and nothing is computed
before the diagonal is asked for.

Run ``python examples/diag_square.py``; ``--full`` does the dense product at full size too (for
n = 10,000: 2.4 GB, half a minute or more on two cores), ``--quick`` takes small sizes. The exit
status is 1 when a result differs.
"""

import argparse
import sys
import timeit

import numpy as np
from _meter import Checks, Meter, size

import pylinop as pl


def lazy(d):
    """Return the diagonal of D @ D by pylinop, from the array to the answer."""
    D = pl.Diag(d)
    return (D @ D).diagonal()


def dense(d):
    """Return the diagonal of D @ D by dense matrices."""
    return np.diagonal(np.diag(d) @ np.diag(d))


def best_time(function, d):
    """Return the seconds of one call, the best of five series long enough to be timed."""
    timer = timeit.Timer(lambda: function(d))
    count, _ = timer.autorange()
    return min(timer.repeat(5, count)) / count


def report(name, d, seconds, memory):
    """Print one line of the table."""
    shown = f"{1e6 * seconds:10.2f} us" if seconds < 1e-2 else f"{seconds:10.2f} s "
    print(f"  {name:28} n = {len(d):6}  {shown}  {memory:>10}")


def main(argv=None):
    """Time the three ways, compare what they give, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, about ten seconds")
    parser.add_argument("--full", action="store_true", help="dense at full size as well")
    options = parser.parse_args(argv)
    n = 1000 if options.quick else 10_000
    n_dense = 200 if options.quick else n if options.full else 2000
    d = np.random.default_rng(0).standard_normal(n)
    part, checks, D = d[:n_dense], Checks(), pl.Diag(d)

    print(f"D @ D is {D @ D!r}, {size((D @ D).nbytes)}")
    report("d * d", d, best_time(lambda d: d * d, d), size(d.nbytes))
    report("(D @ D).diagonal(), pylinop", d, best_time(lazy, d), size(d.nbytes))
    with Meter() as meter:
        by_dense = dense(part)
    seconds = meter.seconds if options.full else best_time(dense, part)
    report("the same, dense NumPy", part, seconds, size(meter.peak))
    if n_dense < n:
        grown = seconds * (n / n_dense) ** 3
        report("dense, extrapolated", d, grown, size(3 * 8 * n**2))
    checks.at_most("largest difference from d * d", np.abs(lazy(d) - d * d).max(), 0)
    checks.at_most("largest difference from dense", np.abs(lazy(part) - by_dense).max(), 0)
    return checks.exit_status()


if __name__ == "__main__":
    sys.exit(main())
