"""What the site is made of: every public name under one subject, every note of changes in its
page. The built site is looked at by `make site-test`."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import pylinop as pl

pytest.importorskip("scipy")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs"))
import known_as  # noqa: E402
import site_pages  # noqa: E402

sys.path.remove(str(ROOT / "docs"))


def test_every_public_name_has_one_place():
    found = [name for names in site_pages.by_subject().values() for name in names]
    wanted = {name for name in pl.__all__ if not inspect.ismodule(getattr(pl, name))}
    assert len(found) == len(set(found))
    assert set(found) == wanted | set(site_pages.CLASSES.split())


def test_words_of_the_index_are_of_public_names():
    words = known_as.words()
    assert set(words) <= {name for names in site_pages.by_subject().values() for name in names}
    assert all(
        word and "!" not in word and ";" not in word for row in words.values() for word in row
    )


def test_kinds_are_shown_as_they_are():
    for name, op in site_pages.shown().items():
        made = type(op).__name__
        assert made == name or (name, made) == ("LowRankUpdate", "Sum"), f"{name} shows a {made}"


def test_a_function_says_its_cost():
    lines = []
    site_pages.with_cost(None, "function", "pylinop.cholesky", pl.cholesky, None, lines)
    assert any(line.startswith("* Diag:") and "O(n)" in line for line in lines)
    assert any(line.startswith("* all others, by their dense form") for line in lines)
    untouched = []
    site_pages.with_cost(None, "function", "pylinop.config", pl.config, None, untouched)
    assert untouched == []


def test_bars_are_no_substitutions():
    lines = ["|b - A x| and ``|r|``", "Examples", ">>> a | b"]
    site_pages.with_bars(None, "function", "f", None, None, lines)
    assert lines == [r"\|b - A x\| and ``|r|``", "Examples", ">>> a | b"]


def test_the_notes_gather_into_one_page():
    command = [sys.executable, ROOT / "tools" / "changelog.py"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    notes = [p for p in (ROOT / "docs" / "changes").glob("*.md") if p.stem.isdigit()]
    entries = sum(line.startswith(": ") for p in notes for line in p.read_text().splitlines())
    assert sum(line.startswith("- ") for line in text.splitlines()) == entries > 100
