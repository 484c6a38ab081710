"""tools/site_check.py finds a dead link, a missing place in a page, and a page without headings."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "site_check.py"
PAGE = '<html><body><article><h1 id="top">A</h1>{}</article></body></html>'


def check(folder):
    command = [sys.executable, TOOL, folder, "--browser", ""]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout


@pytest.fixture
def site(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text(PAGE.format('<a href="sub/b.html#top">b</a>'))
    (tmp_path / "sub" / "b.html").write_text(
        PAGE.format('<a href="../index.html">a</a> <a href="https://example.org/no">elsewhere</a>')
    )
    return tmp_path


def test_a_sound_site_passes(site):
    assert check(site)[0] == 0


@pytest.mark.parametrize(
    "body, said",
    [
        ('<a href="c.html">c</a>', "c.html leads nowhere"),
        ('<a href="index.html#bottom">c</a>', "index.html#bottom leads nowhere"),
        ('<img src="no.png">', "no.png leads nowhere"),
        ("<p>" + "word " * 3000 + "</p>", "characters without a heading"),
    ],
)
def test_what_is_planted_is_found(site, body, said):
    (site / "planted.html").write_text(PAGE.format(body))
    status, text = check(site)
    assert status == 1
    assert f"planted.html: {said}" in text or said in text


def test_headings_divide_a_long_page(site):
    parts = "<h2>B</h2>".join(["<p>" + "word " * 1500 + "</p>"] * 4)
    (site / "long.html").write_text(PAGE.format(parts))
    assert check(site)[0] == 0


def test_an_empty_folder_is_no_site(tmp_path):
    assert check(tmp_path)[0] == 1
