"""Benchmarks: ``python benchmarks/run.py [--quick] [--only PATTERN] [--json FILE] [--threads N]``.

pylinop beside NumPy by hand, SciPy and whatever other libraries are installed, and beside the
floor (the arithmetic alone), interleaved in one process. Prints a table; `--json` keeps one line a
result; `benchmarks/report.py` makes RESULTS.md and its plot of those lines. Peers are optional:
``pip install linear_operator cola-ml pylops pykronecker pyfastkron lazylinop``.
"""

import argparse
import os
import sys


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument(
        "--quick", action="store_true", help="few repeats: does it run, roughly how fast"
    )
    p.add_argument(
        "--only", default="*", metavar="PATTERN", help="cases whose name has this (fnmatch)"
    )
    p.add_argument("--json", metavar="FILE", help="keep one JSON line a result")
    p.add_argument("--threads", type=int, default=1, help="threads of BLAS, OpenMP and torch (1)")
    p.add_argument("--no-peers", action="store_true", help="only NumPy, SciPy and floors")
    p.add_argument("--list", action="store_true", help="print the names of the cases")
    return p.parse_args()


def main():
    args = arguments()
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(args.threads)  # read when NumPy, and later the peers, load
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

    import json

    import estimates
    import factorisations
    import formulas
    import formulas_elsewhere
    import gradients
    import harness
    import kept
    import kernel_matrix
    import kind_solves
    import kinds
    import krylov
    import laab
    import overhead
    import precondition
    import programs
    import quasi
    import recognised
    import sparse
    import sparse_products
    import spectra
    import strangers
    import thin
    import throughput

    harness.threads = args.threads
    harness.use_peers = not args.no_peers
    makers = [*overhead.MAKERS, *throughput.MAKERS, *kinds.MAKERS, *kind_solves.MAKERS]
    makers += [*formulas.MAKERS, *formulas_elsewhere.MAKERS, *strangers.MAKERS]
    makers += [*laab.MAKERS, *factorisations.MAKERS, *spectra.MAKERS]
    makers += krylov.MAKERS
    makers += precondition.MAKERS
    makers += estimates.MAKERS
    makers += [*sparse_products.MAKERS]
    makers += sparse.MAKERS
    makers += quasi.MAKERS
    makers += recognised.MAKERS
    makers += kernel_matrix.MAKERS
    makers += kept.MAKERS
    makers += programs.MAKERS
    makers += gradients.MAKERS
    makers += thin.MAKERS
    if args.list:
        for make in makers:
            for title, _ in make():
                print(title)
        return
    about = harness.machine()
    print(f"{about['machine']['cpu']}, {about['threads']} thread(s); {about['versions']}")
    if about["missing"]:
        print("not here:", ", ".join(about["missing"]))
    sink = None
    if args.json:
        os.makedirs(os.path.dirname(os.path.abspath(args.json)), exist_ok=True)
        sink = open(args.json, "w")
        print(json.dumps({"about": about}), file=sink)
    harness.run(makers, args.only, harness.QUICK if args.quick else harness.Budget(), sink)
    if sink:
        sink.close()


if __name__ == "__main__":
    main()
