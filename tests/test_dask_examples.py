"""The examples on data larger than memory: they check themselves, and say so by their status."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("scipy.sparse")

EXAMPLES = Path(__file__).parent.parent / "examples"


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
