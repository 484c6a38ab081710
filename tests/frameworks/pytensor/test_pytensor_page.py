"""docs/pytensor.md says what is so."""

import doctest
import re
from pathlib import Path

import pytest

pytest.importorskip("pymc")

import pylinop.pytensor as pp

PAGE = Path(__file__).parents[3] / "docs" / "pytensor.md"
BLOCK = re.compile(r"^<!-- session with PyMC -->\n```python\n(.*?)^```$", re.M | re.S)


def test_page():
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert len(blocks) == 2
    said = []
    runner = doctest.DocTestRunner(verbose=False)
    text = "\n".join(blocks)
    runner.run(doctest.DocTestParser().get_doctest(text, {}, "page", "page", 0), out=said.append)
    assert not runner.failures, "".join(said)
    assert runner.tries > 8


@pytest.mark.parametrize("name", pp.__all__)
def test_docstrings(name):
    thing = getattr(pp, name)
    assert thing.__doc__
    for test in doctest.DocTestFinder(recurse=False).find(thing, name):
        runner = doctest.DocTestRunner(verbose=False)
        runner.run(test)
        assert not runner.failures
