"""The planted faults of tests/mutants still apply; `make mutants` builds and runs them."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PATCHES = sorted((ROOT / "tests" / "mutants").glob("*.patch"))


def test_there_are_some():
    assert len(PATCHES) >= 8


@pytest.mark.skipif(not shutil.which("patch"), reason="needs patch")
@pytest.mark.parametrize("patch", PATCHES, ids=lambda p: p.stem)
def test_a_mutant_applies_and_says_what_it_is(patch):
    text = patch.read_text(encoding="utf-8")
    assert text.splitlines()[0].endswith(".") and text.startswith(text[0].upper())
    done = subprocess.run(
        ["patch", "-p1", "--dry-run", "--force", "-i", str(patch)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
