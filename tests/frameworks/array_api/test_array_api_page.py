"""docs/array_api.md and the docstrings of pylinop.array_api say what is so."""

import doctest
import re
from pathlib import Path

import pytest

pytest.importorskip("array_api_strict")

import pylinop.array_api as pa
from pylinop.array_api import operators

PAGE = Path(__file__).parents[3] / "docs" / "array_api.md"
BLOCK = re.compile(r"^<!-- session with array_api_strict -->\n```python\n(.*?)^```$", re.M | re.S)


def run(text, name):
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    runner.run(doctest.DocTestParser().get_doctest(text, {}, name, name, 0), out=said.append)
    assert not runner.failures, "".join(said)
    return runner.tries


def test_page():
    (block,) = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert run(block, "array_api.md") == 6


def test_docstrings():
    assert run(operators.Operator.__doc__, "Operator") == 3


def test_all_names_are_there():
    assert {"Diag", "Kron", "Toeplitz", "LowRank", "Kernel", "solve", "logdet"} <= set(pa.__all__)
    for name in pa.__all__:
        assert getattr(pa, name).__doc__
