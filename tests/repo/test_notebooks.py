"""The tutorial's notebooks run from top to bottom, and raise where they are to."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "tutorial").glob("*.md"))
RUN = """
import json, sys
names = {"__name__": "__main__"}
for number, cell in enumerate(json.load(open(sys.argv[1]))["cells"]):
    if cell["cell_type"] != "code":
        continue
    source, raises = "".join(cell["source"]), "tags" in cell["metadata"]
    try:
        exec(compile(source, f"cell {number}", "single" if "\\n" not in source else "exec"), names)
    except Exception as error:
        if not raises:
            raise
    else:
        assert not raises, f"cell {number} was to raise"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("notebooks")
    subprocess.run([sys.executable, ROOT / "tools" / "notebooks.py", place], check=True)
    return place


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_notebook_runs(page, folder):
    path = folder / f"{page.stem}.ipynb"
    made = json.loads(path.read_text(encoding="utf-8"))
    text = "".join(line for cell in made["cells"] for line in cell["source"])
    assert ">>> " not in text and made["nbformat"] == 4
    assert len({cell["id"] for cell in made["cells"]}) == len(made["cells"])
    done = subprocess.run(
        [sys.executable, "-c", RUN, path], capture_output=True, text=True, timeout=300, cwd=folder
    )
    assert done.returncode == 0, done.stderr
