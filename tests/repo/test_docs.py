"""README, docs and docstrings say what is so: their examples run, what is printed is fresh."""

import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pylinop as pl

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if not {"_build", "made"} & set(page.parts)]  # made by site_pages
FENCE = re.compile(
    r"^(?P<mark><!-- (?:session|new file|last line|before)[^\n]*-->\n)?"
    r"```(?P<language>\w*).*?\n(?P<code>.*?)^```$",
    re.M | re.S,
)
LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)\s]*)?\)")
FLAGS = doctest.ELLIPSIS
FRAMEWORKS = ("jax", "torch", "pytensor")  # which need not be installed


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def python_of(text):
    """The page with all but its Python blocks blank, so that line numbers stay. What pages on
    additions mark is followed by test_extend.py and test_extend_python.py."""
    keep = [""] * text.count("\n")
    for match in FENCE.finditer(text):
        if match["language"] == "python" and not match["mark"]:
            first = text.count("\n", 0, match.start("code"))
            lines = match["code"].splitlines()
            keep[first : first + len(lines)] = lines
    return keep


def run(test):
    said = []
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)
    return runner.tries


RUN = [page for page in PAGES if page.parent.name != "cookbook"]  # test_cookbook.py runs those


@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_page(page, recwarn):
    before = {name: pl._base.config.get(name) for name in pl._base.config._DEFAULTS}
    lines = python_of(page.read_text(encoding="utf-8"))
    if any(line.startswith(">>> ") for line in lines):
        parser = doctest.DocTestParser()
        run(parser.get_doctest("\n".join(lines) + "\n", {}, page.name, str(page), 0))
    elif any(lines):
        exec(compile("\n".join(lines), str(page), "exec"), {"__name__": page.stem})
    assert before == {name: pl._base.config.get(name) for name in before}, (
        "the page left options set"
    )
    assert not [w for w in recwarn if "pylinop" in str(w.category)], "the page warns"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links(page):
    for target, _ in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


def test_every_page_is_reached():
    """From the index, its folders' pages by glob."""
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    trees = "\n".join(re.findall(r"```\{toctree\}(.*?)```", index, re.S)).split()
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix("").as_posix()
        if page in PAGES and name != "index":
            assert name in trees or f"{Path(name).parent}/*" in trees, f"{name} is in no toctree"


def test_printed_pages_are_fresh():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "print_docs.py", "--check"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_blank_cell_has_its_reason(monkeypatch):
    """Told of once; what is left out shows, and what is told of and no longer blank."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    cells = importlib.import_module("blank_cells")
    text, untold = cells.blank_cells()
    assert not untold and all(why and why in text for _, _, why in cells.BLANK)
    whole = cells.BLANK
    for row in whole:
        if row[0] == "*":
            monkeypatch.setattr(cells, "BLANK", [other for other in whole if other is not row])
            assert {head for _, head in cells.blank_cells()[1]} >= {row[1].split()[0]}
    monkeypatch.setattr(cells, "BLANK", [*whole, ("svd", "kron", "of a cell that is not")])
    with pytest.raises(KeyError, match="svd of kron is no blank cell"):
        cells.blank_cells()


# -- docstrings ---------------------------------------------------------------------------------


def documented():
    """(name, docstring) of modules, public objects and their public methods."""
    found = {}
    for info in pkgutil.iter_modules(pl.__path__):
        if info.name in FRAMEWORKS and importlib.util.find_spec(info.name) is None:
            continue  # tests/frameworks has their tests
        found[info.name] = importlib.import_module(f"pylinop.{info.name}").__doc__
    for name in pl.__all__:
        thing = getattr(pl, name)
        if inspect.getmodule(thing).__name__.partition(".")[0] != "pylinop":
            continue  # NumPy's LinAlgError
        found[name] = thing.__doc__
        for method, value in vars(thing).items() if inspect.isclass(thing) else ():
            if not method.startswith("_"):
                found[f"{name}.{method}"] = getattr(value, "__doc__", None)
    return found


DOCS = documented()


@pytest.mark.parametrize("name", DOCS)
def test_docstring(name):
    assert DOCS[name] and DOCS[name].strip(), f"{name} has no docstring"
    run(doctest.DocTestParser().get_doctest(DOCS[name], {}, name, name, 0))


@pytest.mark.parametrize("row", pl.kinds(), ids=lambda row: row["name"])
def test_a_kind_says_all(row):
    cls = getattr(pl, row["name"])
    if not row["signature"]:
        assert cls.__doc__.strip()
        return
    signature = inspect.signature(cls)
    named = [name for name in signature.parameters if name != "copy"]
    assert named == [p["name"] for p in row["params"]]
    for part in ("Parameters", "Cost", "Examples"):
        assert f"\n{part}\n{'-' * len(part)}\n" in cls.__doc__, f"{row['name']} lacks {part}"
    for p in row["params"]:
        assert f"{p['name']} : " in cls.__doc__ and p["doc"] in cls.__doc__
        assert p["name"] in ("shape", "dtype") or getattr(cls, p["name"]).__doc__ == p["doc"]
    assert cls.__doc__.count(">>> ") >= 2, f"{row['name']}: its example was cut off"


@pytest.mark.parametrize("name", ["MultilevelToeplitz", "QuasiSeparable", "Kron"])
def test_a_kind_says_what_it_cannot(name):
    """In its docstring, between its cost and its notes, and so on its page."""
    doc = getattr(pl, name).__doc__
    limits = doc.partition("\nLimits\n------\n")[2].partition("\n\n")[0]
    assert "dense form" in limits and doc.index("\nCost\n") < doc.index("\nLimits\n")
    assert f"*Limits.* {limits}" in (ROOT / "docs" / "kinds.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name",
    [
        "aslinearoperator",
        "inv",
        "trace",
        "diagonal",
        "freeze",
        "config",
        *pl._api.determinants.__all__,
        *pl._api.norms.__all__,
        "solve",
    ],
)
def test_a_function_has_an_example(name):
    assert ">>> " in getattr(pl.linalg if name == "norm" else pl, name).__doc__


def test_rules_say_where_they_come_from():
    for row in pl.rules():
        assert row["source"], f"{row['name']} has no source"
