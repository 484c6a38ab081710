"""The notebook: its outputs are those of one run from top to bottom, and its code runs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BOOK = Path(__file__).resolve().parents[3] / "examples" / "pymc_factor_model.ipynb"
CELLS = json.loads(BOOK.read_text(encoding="utf-8"))["cells"]
CODE = [cell for cell in CELLS if cell["cell_type"] == "code"]


def outputs(kind):
    return [o for cell in CODE for o in cell["outputs"] if o["output_type"] == kind]


def test_outputs_are_of_one_run():
    assert [cell["execution_count"] for cell in CODE] == list(range(1, len(CODE) + 1))
    assert not outputs("error")
    [table] = outputs("execute_result")
    assert "sum(root, diagonal)" in "".join(table["data"]["text/html"])
    [picture] = outputs("display_data")
    assert "image/png" in picture["data"] and BOOK.stat().st_size < 100_000
    said = "".join(line for o in outputs("stream") for line in o["text"])
    assert "without" in said and "within their 90 %" in said


@pytest.mark.slow
def test_code_runs():
    for name in ("pymc", "nutpie", "matplotlib"):
        pytest.importorskip(name)
    code = "\n".join("".join(cell["source"]) for cell in CODE)
    head = "import matplotlib\nmatplotlib.use('agg')\n"
    done = subprocess.run(
        [sys.executable, "-c", head + code], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr
    assert "log-density" in done.stdout
