"""The planted faults of tests/mutants still apply; `make mutants` builds and runs them."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATCHES = sorted((ROOT / "tests" / "mutants").glob("*.patch"))
SPEC = importlib.util.spec_from_file_location("mutants", ROOT / "tools" / "mutants.py")
mutants = sys.modules["mutants"] = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(mutants)
ENTRIES = (ROOT / "tests" / "mutants" / "engine.txt").read_text()
ENGINE = mutants.engine(ENTRIES)


def test_there_are_some():
    assert len(PATCHES) >= 8


def test_every_entry_of_the_engines_list_is_read():
    assert len(ENGINE) == ENTRIES.count("\n- ") == ENTRIES.count("\n+ ") >= 100
    assert len({f.name for f in ENGINE}) == len(ENGINE)
    passes = {
        "plan/fuse_sums",
        "plan/emit",
        "plan/derived_keys",
        "exec/exec",
        "expr/properties",
        "plan/user_rule_search",
        "exec/derived_cache",
        "plan/lower",
        "rewrite/rewrite",
    }
    passes |= {"plan/plan_check", "plan/plan_check_flow", "plan/plan_check_memory"}
    assert passes < {f.name.split()[0] for f in ENGINE}


@pytest.mark.parametrize("fault", ENGINE, ids=lambda f: f.name.replace(" ", "-"))
def test_a_line_of_the_engine_is_there_once(fault, tmp_path):
    copy = tmp_path / "copy.c"
    shutil.copyfile(ROOT / fault.file, copy)
    assert mutants.turn(copy, fault.line, fault.turned) == ""
    assert copy.read_bytes() != (ROOT / fault.file).read_bytes()


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
