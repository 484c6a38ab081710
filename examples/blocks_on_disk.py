"""Least squares larger than the memory it may use, interrupted, resumed, and a worker killed.

    python examples/blocks_on_disk.py [--quick]

Rows of a random sparse matrix are written block by block; no moment has all of them in memory. Then
LSMR runs with a memory limit of a quarter of what is on disk: blocks beyond it are mapped, read
and given back in every sweep. It is stopped half-way and resumed from its checkpoint on two
processes, of which one is killed. Checked: the limit, the true residual, and that the resumed
iterates have the bits of an undisturbed run.
"""

import argparse
import os
import sys
import tempfile

import _needs  # noqa: F401
import numpy as np
import scipy.sparse
from _meter import Checks, Meter, size

import pylinop.dask as pld

TIGHT = {"atol": 1e-10, "btol": 1e-10}


class Stopped(Exception):
    pass


def write(folder, m, n, k, blocks):
    rng = np.random.default_rng(1958)
    b = []

    def rows():
        for _ in range(blocks):
            index = np.sort(rng.integers(0, n, (m // blocks, k)).astype(np.int32), axis=1)
            ptr = np.arange(0, index.size + 1, k, dtype=np.int32)
            data = rng.standard_normal(index.size)
            A = scipy.sparse.csr_array((data, index.ravel(), ptr), shape=(m // blocks, n))
            b.append(A @ np.ones(n) + 0.1 * rng.standard_normal(m // blocks))
            yield A

    pld.write_blocks(rows(), os.path.join(folder, "A"))
    np.save(os.path.join(folder, "b.npy"), np.concatenate(b))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--quick", action="store_true", help="a tenth of the size")
    quick = p.parse_args().quick
    m, n = (200_000, 20_000) if quick else (2_000_000, 200_000)
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        write(folder, m, n, 10, 40)
        path, b, saved = (os.path.join(folder, name) for name in ("A", "b.npy", "run.npz"))
        total = sum(block.nbytes for block in pld.open_blocks(path).blocks)
        limit = total // 4
        A = pld.open_blocks(path, workers=2, memory_limit=limit)
        print(f"{m} x {n}: {size(total)} on disk, may use {size(limit)}")
        print(A.plan())
        with Meter() as meter:
            whole = pld.lsmr(A, b, **TIGHT)
        print(f"  undisturbed, {whole[2]} iterations  {meter}")
        share = 1.25 if quick else 1  # of 6 MB what malloc itself keeps is a part
        checks.at_most("memory beside what Python has, of the limit", meter.peak / limit, share)
        A.close()

        seen = []

        def stop(x):
            seen.append(1)
            if len(seen) == whole[2] // 2:
                raise Stopped

        try:
            pld.lsmr(A, b, callback=stop, checkpoint=saved, checkpoint_every=3, **TIGHT)
        except Stopped:
            print(f"  stopped at {len(seen)}; checkpoint {size(os.path.getsize(saved))}")
        A.close()
        with pld.open_blocks(path, engine="processes", workers=2) as B:
            again = pld.lsmr(B, b, checkpoint=saved, resume=True, **TIGHT)
            print(f"  resumed at {again.record.resumed}, {again[2]} iterations in all")
            checks.at_most(
                "entries with other bits than undisturbed", (again[0] != whole[0]).sum(), 0
            )

            def kill(x):
                seen.append(1)
                if len(seen) == whole[2]:
                    os.kill(B.engine.pids[1], 9)

            again = pld.lsmr(B, b, callback=kill, **TIGHT)
            print(f"  a worker killed half-way: {again.record.losses} part read again")
        off = np.linalg.norm(again[0] - whole[0]) / np.linalg.norm(whole[0])
        checks.at_most("x after the death, relative", off, 1e-12)
        checks.at_most("true |A^H r| / (|A| |r|)", again[4] / (again[5] * again[3]), 1e-9)
        x = np.linalg.norm(whole[0] - 1) / np.sqrt(n)
        checks.between("error of x, of the noise's", x * np.sqrt(m * 10 / n) / 0.1, 0.5, 2)
    return checks.exit_status()


if __name__ == "__main__":
    sys.exit(main())
