"""The examples of contractions check their own results; they are run on the smaller photographs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="needs the checkout")
@pytest.mark.parametrize("name", ["contractions", "symbolic_sizes", "tensor_networks"])
def test_an_example_checks_itself(name):
    quick = ["--quick"] if name != "symbolic_sizes" else []
    if quick:
        pytest.importorskip("skimage")
        pytest.importorskip("scipy")
    made = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *quick],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    assert "check" in made.stdout or name == "symbolic_sizes"
