"""mypy --strict on a user's file: it passes, and finds mistakes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pylinop

HERE = Path(__file__).resolve().parent / "typing"
pytest.importorskip("mypy")


def mypy(name, cache):
    site = Path(pylinop.__file__).parent.parent
    env = {k: v for k, v in os.environ.items() if k != "MYPYPATH"}
    if site.name != "site-packages":  # mypy looks there by itself, and refuses it as a path
        env["MYPYPATH"] = str(site)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent",
         "--no-error-summary", "--cache-dir", str(cache), name],
        cwd=HERE, env=env, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert not done.stderr, done.stderr
    return done.stdout


@pytest.mark.slow
def test_strict_typing_of_ordinary_code(tmp_path):
    assert mypy("user.py", tmp_path) == ""
    found = {int(n) for n in re.findall(r"wrong\.py:(\d+): error", mypy("wrong.py", tmp_path))}
    lines = (HERE / "wrong.py").read_text().splitlines()
    assert found == {i for i, line in enumerate(lines, 1) if line.endswith("# wrong")}


def test_the_file_runs():
    pytest.importorskip("scipy")
    code = f"import runpy; runpy.run_path({str(HERE / 'user.py')!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
