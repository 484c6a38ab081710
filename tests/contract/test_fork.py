"""A child forked after use computes and ends; a parent goes on."""

import os

import pytest

CODE = """
import os, signal, sys, threading, warnings
import numpy as np, pylinop as pl
warnings.simplefilter("ignore", DeprecationWarning)
rng = np.random.default_rng(0)
a = rng.standard_normal((400, 400)) + 50 * np.eye(400)
T, A, x = pl.Toeplitz(rng.standard_normal(400)), pl.Dense(a), np.ones(400)
E = A @ T + 2 * A

def compute():
    return [T @ x, A @ a, E @ x, pl.inv(A) @ x, (A.H @ A) @ x, E.trace()]

want = compute()
used = threading.Thread(target=compute)
used.start(); used.join()
for turn in range(4):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(60)
            code = 0 if all(np.array_equal(p, q) for p, q in zip(compute(), want)) else 2
        finally:
            os._exit(code)
    assert all(np.array_equal(p, q) for p, q in zip(compute(), want))
    status = os.waitpid(pid, 0)[1]
    assert status == 0, status
print("done")
"""

POOL = """
import multiprocessing as mp, warnings
import numpy as np, pylinop as pl
warnings.simplefilter("ignore", DeprecationWarning)
A = pl.Dense(np.eye(200)) + pl.Toeplitz(np.ones(200))

def work(k):
    return float((A @ np.full(200, k))[0]), A

if __name__ == "__main__":
    A @ np.ones(200)
    with mp.get_context("fork").Pool(2) as pool:
        got = pool.map_async(work, range(20)).get(100)
    assert [g for g, _ in got] == [201.0 * k for k in range(20)]
    assert np.array_equal(got[-1][1].toarray(), A.toarray())
    print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("code", [CODE, POOL])
def test_fork_after_use(python, code):
    assert python(code).strip() == "done"


def test_spawned_workers_unpickle(python, tmp_path):
    (tmp_path / "work_.py").write_text(
        "import multiprocessing as mp, numpy as np, pylinop as pl\n"
        "def work(A):\n    return (A @ np.ones(3)).tolist(), A\n"
        "if __name__ == '__main__':\n"
        "    with mp.get_context('spawn').Pool(1) as pool:\n"
        "        A = pl.Diag(np.arange(3.0)) + pl.Dense(np.eye(3))\n"
        "        v, B = pool.map_async(work, [A]).get(100)[0]\n"
        "    assert v == [1.0, 2.0, 3.0] and B.trace() == 6.0\n    print('done')\n"
    )
    assert (
        python(
            "import subprocess, sys; print(subprocess.run([sys.executable, sys.argv[1]], "
            "capture_output=True, "
            "text=True, check=True, timeout=120).stdout)",
            tmp_path / "work_.py",
        ).strip()
        == "done"
    )
