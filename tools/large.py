"""Run every routine of BLAS and LAPACK that we call once, large, each in a process of its own.

    python tools/large.py PROGRAM [--threads 1,2] [part of a name, as "trsm float64" ...]

PROGRAM is the built tests/c/test_large. It knows the cases and their sizes, where products of
sizes pass 32 bits and the library's buffers and blocks change; complex ones run at three quarters,
for memory. NumPy's own routines, which pylinop calls too, follow. A crash is told by name. The
environment's OPENBLAS_CORETYPE names the core. Exits with 1 if any crashes or is wrong.
"""

import argparse
import os
import subprocess
import sys
import time

NUMPY = {  # code, n
    "numpy.cholesky": ("c = np.linalg.cholesky(a); ok = np.allclose(c @ (c.T @ x), 2 * x)", 12000),
    "numpy.solve": ("ok = np.allclose(np.linalg.solve(a, x), x / 2)", 12000),
    "numpy.slogdet": ("ok = np.isclose(np.linalg.slogdet(a)[1], n * np.log(2))", 12000),
    "numpy.inv": ("ok = np.linalg.inv(a)[0, 0] == 0.5", 8000),
    "numpy.matmul": ("ok = np.allclose(a @ np.ones((n, 512)), 2)", 12000),
    "numpy.qr": ("q, r = np.linalg.qr(a[:, :2000]); ok = np.allclose(np.abs(r[0, 0]), 2)", 12000),
    "numpy.eigh": ("ok = np.allclose(np.linalg.eigh(a)[0], 2)", 3000),
    "numpy.svd": ("ok = np.allclose(np.linalg.svd(a)[1], 2)", 2500),
    "numpy.eigvals": ("ok = np.allclose(np.linalg.eigvals(a), 2)", 2000),
    "pylinop.cholesky": (
        "import pylinop as pl; A = pl.Dense(a, 'pos'); "
        "ok = np.allclose(pl.solve(A, x), x / 2) and np.isclose(pl.logdet(A), n * np.log(2))",
        12000,
    ),
}
HEAD = (
    "import numpy as np; n = {n}; a = np.zeros((n, n)); a[range(n), range(n)] = 2; x = np.ones(n); "
)


def cases(program: str) -> list[tuple[str, list[str]]]:
    listed = subprocess.run([program, "list"], capture_output=True, text=True, check=False).stdout
    found = []
    for line in listed.splitlines():
        name, dtype, n = line.split()
        size = int(n) * 3 // 4 if dtype.startswith("complex") else int(n)
        found.append((f"{name} {dtype} n = {size}", [program, name, dtype, str(size)]))
    for name, (code, n) in NUMPY.items():
        whole = HEAD.format(n=n) + code + "; raise SystemExit(not ok)"
        found.append((f"{name} float64 n = {n}", [sys.executable, "-c", whole]))
    return found


def verdict(status: int) -> str:
    if status == 0:
        return "ok"
    return f"CRASHED (signal {-status})" if status < 0 else f"WRONG (exit {status})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("names", nargs="*")
    args = parser.parse_intermixed_args()
    bad, count = [], 0
    for threads in args.threads.split(","):
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads}
        for name, command in cases(os.path.abspath(args.program)):
            if args.names and not any(part in name for part in args.names):
                continue
            start = time.perf_counter()
            done = subprocess.run(
                command, capture_output=True, text=True, env=environment, check=False
            )
            seconds, count = time.perf_counter() - start, count + 1
            said = f"{name}, {threads} thread(s): {verdict(done.returncode)}, {seconds:.0f} s"
            print(said, flush=True)
            if done.returncode:
                bad.append(said)
                print(done.stdout[-1000:] + done.stderr[-1000:], flush=True)
    print(f"{count - len(bad)} of {count} large calls right", *bad, sep="\n")
    return bool(bad) or not count


if __name__ == "__main__":
    sys.exit(main())
