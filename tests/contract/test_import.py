"""What `import pylinop` brings along, and what it does not."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pylinop as pl

CODE = """
import json, sys
import pylinop
print(json.dumps(sorted(sys.modules)))
"""
# 134 on 2026-11-26, by 0.35 to 0.55 of the CPU time of NumPy's own import. A time would be that of
# the machine and of what else it does.
MODULES = 140
HEAVY = {"scipy", "matplotlib", "pandas", "dask", "torch", "jax", "IPython", "tqdm", "pytest"}
# Folders whose functions are imported when one is first read.
LATE = (
    *("_api", "_gradients", "_symbols", "_stochastic", "_iterative", "_precondition", "_eigen"),
    *("_verify", "_programs", "_namespace", "linalg"),
)


def printed(code):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("COV", "PYLINOP_"))}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_import_is_short_and_brings_nothing_heavy():
    modules = printed(CODE)
    assert not HEAVY & {name.partition(".")[0] for name in modules}
    ours = [name for name in modules if name.partition(".")[0] == "pylinop"]
    early = [m for m in ours if m.startswith(tuple(f"pylinop.{name}" for name in LATE))]
    assert not early, "imported with the package: " + ", ".join(early)
    assert len(ours) <= MODULES, len(ours)


def test_names_are_there_before_they_are_imported():
    here = printed("import json, pylinop; print(json.dumps(dir(pylinop)))")
    assert set(pl.__all__) <= set(here)
    got = printed("import json; from pylinop import *; print(json.dumps(sorted(globals())))")
    assert set(pl.__all__) <= set(got)


def test_each_name_comes_from_the_module_that_type_checkers_see():
    source = Path(pl.__file__).read_text(encoding="utf-8")
    seen = {
        alias.name: node.module or ""
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "_TYPE_CHECKING"
        for node in block.body
        for alias in node.names
        if alias.name != "*"
    }
    assert pl._LATER == seen
    for name in seen:
        assert getattr(pl, name).__name__.endswith(name) and name in vars(pl)


def test_methods_become_the_functions_when_one_is_looked_at():
    code = """
import json, pickle, pylinop as pl
A = pl.Dense([[2.0, 0.0], [0.0, 3.0]])
class Mine(pl.Diag):
    def inv(self):
        return "mine"
late = type(vars(pl.LinearOperator)["solve"]).__name__
bound = A.solve
same = bound.__func__ is pl.solve and vars(pl.LinearOperator)["solve"] is pl.solve
own = Mine([1.0]).inv(), type(super(Mine, Mine([1.0])).inv()).__name__
again = pickle.loads(pickle.dumps(pl.solve)) is pl.solve
print(json.dumps([late, same, pl.LazyArray.det is pl.det, own, again]))
"""
    assert printed(code) == ["Method", True, True, ["mine", "Diag"], True]


def test_placeholders_have_the_rules_of_other_modules_at_once():
    code = """
import json, numpy as np, pylinop as pl
X = pl.placeholder((4, 3))
made = (X @ X.T).sum()
print(json.dumps(float(pl.function(X, made)(np.ones((4, 3))))))
"""
    assert printed(code) == 48.0
