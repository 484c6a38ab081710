"""docs/torch.md and the docstrings of pylinop.torch say what is so."""

import doctest
import importlib
import importlib.util
import pkgutil
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import pylinop.torch as pt

PAGE = Path(__file__).parents[3] / "docs" / "torch.md"
BLOCK = re.compile(r"^<!-- session with torch -->\n```python\n(.*?)^```$", re.M | re.S)


def run(text, name):
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    runner.run(doctest.DocTestParser().get_doctest(text, {}, name, name, 0), out=said.append)
    assert not runner.failures, "".join(said)
    return runner.tries


def test_page():
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert len(blocks) == 2
    assert run("\n".join(blocks), "torch.md") > 10


def test_docstrings():
    tried = 0
    for found in pkgutil.iter_modules(pt.__path__):
        if found.name in ("gpytorch", "linear_operator") and not importlib.util.find_spec(
            found.name
        ):
            continue
        module = importlib.import_module(f"pylinop.torch.{found.name}")
        for test in doctest.DocTestFinder(exclude_empty=True).find(module):
            if test.examples:
                tried += run(test.docstring, test.name)
    assert tried >= 4


def test_all_names_are_there():
    assert {"Diag", "Kron", "Toeplitz", "LowRank", "Kernel", "solve", "logdet"} <= set(pt.__all__)
    for name in pt.__all__:
        assert getattr(pt, name).__doc__
