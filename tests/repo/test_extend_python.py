"""docs/add-function.md and docs/add-solver.md are true: done literally on a copy of the package,
which takes the core that is installed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from marked_pages import SESSION, blocks, follow, run, session

from pylinop import _core

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "docs" / name for name in ("add-function.md", "add-solver.md")]

pytestmark = pytest.mark.no_asan


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of package and tools with the pages' additions."""
    root = tmp_path_factory.mktemp("extend") / "pylinop"
    for name in ("src", "tools"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    core = Path(_core.__file__)
    shutil.copy(core, root / "src" / "pylinop" / core.name)
    (root / "touched").write_text("\n".join(follow(root, *b) or "" for b in blocks(PAGES)))
    return root


def python(tree, *args, **more):
    env = {**os.environ, "PYTHONPATH": str(tree / "src")}
    return run(sys.executable, *args, env=env, cwd=tree, **more)


def test_only_the_listed_places_changed(tree):
    assert set((tree / "touched").read_text().split()) == {
        "src/pylinop/__init__.py",
        "src/pylinop/_api/inertia.py",
        "src/pylinop/_iterative/cr.py",
        "src/pylinop/_iterative/loops.py",
        "src/pylinop/_structured/inertia.py",
        "src/pylinop/_structured/kinds/selection.py",
        "src/pylinop/_structured/table.py",
    }


def test_layers(tree):
    done = subprocess.run(
        [sys.executable, tree / "tools" / "check_layers.py", "--root", tree],
        capture_output=True,
        text=True,
    )
    for name in ("inertia", "cr.py", "loops.py"):
        assert name not in done.stdout, done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sessions(tree, page):
    python(tree, "-c", SESSION, input=session(page))


def test_printed_pages_know_them(tree, tmp_path):
    python(tree, "tools/print_docs.py", "--folder", tmp_path)
    text = (tmp_path / "factorisations.md").read_text("utf-8")
    assert "\n## inertia\n" in text and "roots of how often each row is taken" in text


FUNCTIONS = """
import doctest, pickle
import numpy as np
import pylinop as pl

rng = np.random.default_rng(2)
assert "inertia" in pl.__all__
found = doctest.DocTestFinder(recurse=False).find(pl.inertia, "inertia", globs={})
assert [tuple(doctest.DocTestRunner().run(t)) for t in found] == [(0, 2)]

def want(op):
    w = np.linalg.eigvalsh(op.toarray())
    least = 1e-10 * np.abs(w).max()
    return int((w > least).sum()), int((w < -least).sum()), int((np.abs(w) <= least).sum())

H = rng.standard_normal((5, 5)) + 1j * rng.standard_normal((5, 5))
H = H + H.conj().T
d = pl.Diag([1.0, -2.0, 0.0, 4.0])
for op in (
    pl.Dense(H), -3 * pl.Dense(H), 0.0 * pl.Dense(H), d, pl.Identity(3), pl.BlockDiag(H, d, -d),
    pl.Kron(H, d), -2 * pl.Kron(d, pl.BlockDiag(H, d), H), pl.Kron(1j * d, 1j * d),
    pl.Kron(np.ones((2, 3)), np.ones((3, 2))), pl.Toeplitz([1.0, 2.0, 3.0]),
):
    assert pl.inertia(op) == want(op) == pl.inertia(op), op
for bad in (np.ones((2, 3)), np.ones((2, 3, 3))):
    try:
        pl.inertia(bad)
    except ValueError:
        continue
    raise AssertionError(bad)

for index, n in (([0, 2, 2], 3), ([1], 4), ([0, 0, 0, 0, 1], 2), ([], 3)):
    for S in (pl.Selection(np.array(index, int), n), pl.Selection(np.array(index, int), n, "F")):
        for op in (S, S.T, 2j * S):
            same = np.linalg.svdvals(op.toarray())
            np.testing.assert_allclose(pl.svdvals(op), same, atol=1e-6 * n)
"""


def test_functions(tree):
    python(tree, "-c", FUNCTIONS)


SOLVERS = """
import numpy as np
import pylinop as pl

rng = np.random.default_rng(2)
for dtype in "fdFD":
    A = rng.standard_normal((40, 40)) + (1j * rng.standard_normal((40, 40)) if dtype in "FD" else 0)
    A = (A @ A.conj().T / 40 + np.eye(40)).astype(dtype)
    for shape in ((40,), (40, 3), (2, 40, 3)):
        b = rng.standard_normal(shape).astype(dtype)
        for M in (None, "jacobi"):
            seen = []
            x = pl.solve(A, b, method="cr", M=M, callback=seen.append)
            assert x.dtype == dtype and x.shape == shape and seen
            off = np.linalg.norm(A @ x - b, axis=-1 if b.ndim == 1 else -2)
            assert (off <= 2e-5 * np.linalg.norm(b)).all(), off.max()
try:
    pl.solve(A, np.ones(40), method="cg2")
except ValueError as error:
    assert "cr" in str(error)
with pl.explaining() as e:
    pl.solve(A, np.ones(40), method="cr")
assert e.plans[0].steps[0]["name"] == "cr"
"""


def test_solvers(tree):
    python(tree, "-c", SOLVERS)


def test_files_that_prose_names_are_there():
    """Of what no copy is built."""
    names = set()
    for page in PAGES:
        names |= set(
            re.findall(r"`((?:src|tests|tools|docs)/[\w/.]+\.\w+)`", page.read_text("utf-8"))
        )
    made = {"src/pylinop/_structured/inertia.py", "src/pylinop/_api/inertia.py"}
    made |= {"src/pylinop/_iterative/cr.py", "src/pylinop/_structured/kinds/selection.py"}
    assert len(names) > 15 and not [n for n in names - made if not (ROOT / n).exists()]
    for name in re.findall(r"`(\w+\.py)`", PAGES[0].read_text("utf-8")):
        places = [ROOT / "src/pylinop", ROOT / "src/pylinop/_structured"]
        places.append(ROOT / "src/pylinop/_structured/kinds")
        assert any((place / name).exists() for place in places), name
