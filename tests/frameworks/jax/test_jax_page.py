"""docs/jax.md and the docstrings of pylinop.jax say what is so."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

jax = pytest.importorskip("jax")

import pylinop.jax as pj

PAGE = Path(__file__).parents[3] / "docs" / "jax.md"
BLOCK = re.compile(r"^<!-- session with JAX -->\n```python\n(.*?)^```$", re.M | re.S)


@pytest.fixture(autouse=True)
def narrow():
    """JAX as it comes: other files of the same run set 64 bits."""
    was = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", False)
    yield
    jax.config.update("jax_enable_x64", was)


def run(text, name):
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    runner.run(doctest.DocTestParser().get_doctest(text, {}, name, name, 0), out=said.append)
    assert not runner.failures, "".join(said)
    return runner.tries


def test_page():
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert len(blocks) == 3
    assert run("\n".join(blocks), "jax.md") > 10


def test_docstrings():
    tried = 0
    for found in pkgutil.iter_modules(pj.__path__):
        if found.name == "lineax":
            pytest.importorskip("lineax")
        module = importlib.import_module(f"pylinop.jax.{found.name}")
        for test in doctest.DocTestFinder(exclude_empty=True).find(module):
            if test.examples:
                tried += run(test.docstring, test.name)
    assert tried >= 5


def test_names_are_pylinops():
    import pylinop as pl

    own = {"EighResult", "InvQuadLogdet", "Operator", "SVDResult", "SlogdetResult", "program"}
    assert not [name for name in pj.__all__ if name not in own and not hasattr(pl, name)]
    for name in pj.__all__:
        assert getattr(pj, name).__doc__
