"""The examples on data larger than memory: they check themselves, and say so by their status."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("scipy.sparse")

EXAMPLES = Path(__file__).parents[2] / "examples"
BENCHMARKS = EXAMPLES.parent / "benchmarks"


@pytest.mark.no_asan
@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="Linux")
@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="needs the checkout")
@pytest.mark.parametrize(
    "name, said",
    [
        ("blocks_on_disk", ["memory beside", "other bits than undisturbed", "after the death"]),
        ("blocks_public", ["workers lost: 1.000", "QR by tree", "memory beside", "dense form:"]),
    ],
)
def test_example(name, said, tmp_path):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), "--quick"],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for text in said:
        assert text in done.stdout
    assert not list(tmp_path.iterdir())  # nothing is left behind


@pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="needs the checkout")
@pytest.mark.parametrize("axis", [0, 1])
def test_estimate(axis, monkeypatch):
    """The estimate for sizes that were not run has the memory and the bytes that `plan` states."""
    import numpy as np

    import pylinop.dask as pld

    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setattr(sys, "argv", ["dask_estimate.py", "--entry-bytes", "8"])
    import dask_estimate

    a = dask_estimate.arguments()
    a.rows, a.columns, a.each, a.workers = (1200, 40, 40, 4) if axis == 0 else (40, 1200, 1200, 4)
    said = dask_estimate.estimate(a, ("rows", "columns")[axis])
    block = np.ones((300, 40) if axis == 0 else (40, 300))
    plan = pld.BlockOperator([block] * 4, axis=axis, engine="serial", parts=4).plan()
    vectors = said["rows of u and b, a worker"] + said["vectors, a worker"]
    assert [p["vectors"] for p in plan.parts] == [vectors] * 4
    assert [p["memory"] for p in plan.parts] == [said["memory, a worker (dask)"]] * 4
    moved = said["bytes to a worker, an iteration"] + said["bytes from a worker, an iteration"]
    assert plan.bytes_per_iteration == moved
