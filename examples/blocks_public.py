"""A public matrix in blocks on disk, and a kernel matrix that the memory limit does not hold.

    python examples/blocks_public.py [--quick]

The first part is ILLC1850 of the Harwell-Boeing collection, 1850 x 712 with 8,636 nonzeros, a
surveying problem that is a standard trial of least-squares solvers; SciPy's wheel has it (in the
test data of PROPACK). Its rows go into six blocks on disk, two processes of 60 kB read them anew
in every sweep, and one is killed half-way. Checked against the dense solution.

The second part is Gaussian-process regression: the kernel matrix of points in a box, dense some
twenty times the memory limit set for the run, solved by conjugate gradients without ever being
formed. Checked: the limit, the true residual, and that a dense form is refused.
"""

import argparse
import os
import sys
import tempfile

import _needs  # noqa: F401
import numpy as np
import scipy.sparse.linalg
from _meter import Checks, Meter, size

import pylinop as pl
import pylinop.dask as pld


def illc1850():
    """The matrix, or None where SciPy was installed without its tests."""
    home = os.path.dirname(scipy.sparse.linalg.__file__)
    path = os.path.join(home, "tests", "propack_test_data.npz")
    if not os.path.exists(path):
        return None
    with np.load(path, allow_pickle=True) as data:  # SciPy's own file
        return data["A_real"].item().tocsr()


def least_squares(A, checks):
    rng = np.random.default_rng(1850)
    m, n = A.shape
    b = A @ np.ones(n) + 1e-3 * rng.standard_normal(m)
    best = np.linalg.lstsq(A.toarray(), b, rcond=None)[0]
    with tempfile.TemporaryDirectory() as folder:
        pld.write_blocks(A, folder, block_bytes=20_000)
        settings = {"engine": "processes", "workers": 2, "memory_limit": 60_000}
        with pld.open_blocks(folder, **settings) as op:
            total = sum(block.nbytes for block in op.blocks)
            print(f"ILLC1850, {m} x {n}: {size(total)} in {len(op.blocks)} blocks")
            print(op.plan())
            seen = []

            def kill(x):
                seen.append(1)
                if len(seen) == 300:
                    os.kill(op.engine.pids[1], 9)

            x, istop, itn, normr, *_ = found = pld.lsmr(
                op, b, atol=1e-11, btol=1e-11, conlim=0, maxiter=10 * n, callback=kill
            )
            print(f"  istop {istop} after {itn} iterations, {found.record.losses} worker lost")
            checks.between("workers lost", found.record.losses, 1, 1)
            off = np.linalg.norm(x - best) / np.linalg.norm(best)
            checks.at_most("x, beside the dense solution", off, 1e-6)
            dense = np.linalg.norm(b - A @ best)
            checks.at_most("|r|, beside the dense one", abs(normr - dense) / dense, 1e-12)
        with pld.open_blocks(folder) as op:
            R = pld.qr(op, "tsqr")[1]  # of dense blocks: not within 60 kB
            G = (A.T @ A).toarray()
            off = np.linalg.norm(R.T @ R - G) / np.linalg.norm(G)
            checks.at_most("QR by tree, R^T R beside A^T A", off, 1e-13)


def regression(n, checks):
    rng = np.random.default_rng(n)
    x = rng.uniform(0, 12, (n, 3))
    y = np.sin(x[:, 0]) * np.cos(x[:, 1]) + 0.3 * rng.standard_normal(n)
    limit = 8 * n * n // 20
    with pl.config(memory_limit=limit):
        A = pl.Kernel("matern32", x, length_scale=2.0) + pl.Identity(n)
        print(f"{n} x {n} kernel matrix: {size(8 * n * n)} if dense, may use {size(limit)}")
        A @ y  # buffers of BLAS and threads are there
        steps = []
        with Meter() as meter:
            found = pl.solve(A, y, method="cg", rtol=1e-10, callback=lambda x: steps.append(1))
        print(f"  conjugate gradients, {len(steps)} steps  {meter}")
        checks.at_most("memory beside what Python has, of the limit", meter.peak / limit, 1)
        r = np.linalg.norm(y - A @ found) / np.linalg.norm(y)
        checks.at_most("true |b - A x| / |b|", r, 1e-10)
        try:
            A.toarray()
        except pl.MaterializationError as error:
            print(f"  the dense form: {str(error).splitlines()[0]}")
        else:
            checks.at_most("dense forms made", 1, 0)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--quick", action="store_true", help="3,000 points instead of 20,000")
    quick = p.parse_args().quick
    checks = Checks()
    A = illc1850()
    if A is None:
        print("SciPy was installed without its test data: no ILLC1850")
    else:
        least_squares(A, checks)
    regression(3_000 if quick else 20_000, checks)
    return checks.exit_status()


if __name__ == "__main__":
    sys.exit(main())
