"""What `make types` relies on: all of the package is checked by mypy, strictly, and said to be."""

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "pylinop"


def missing(text):
    """Names of the parameters and results without a type in a module's text, with their lines."""
    tree = ast.parse(text)
    inside = {id(f) for c in ast.walk(tree) if isinstance(c, ast.ClassDef) for f in c.body}
    for f in ast.walk(tree):
        if not isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        a = f.args
        given = [*a.posonlyargs, *a.args]
        static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in f.decorator_list)
        if id(f) in inside and not static:
            given = given[1:]
        given += [p for p in (*a.kwonlyargs, a.vararg, a.kwarg) if p is not None]
        yield from (f"{f.lineno}: {f.name}({p.arg})" for p in given if p.annotation is None)
        if f.returns is None:
            yield f"{f.lineno}: the result of {f.name}"


def test_missing_types_are_found():
    text = "class A:\n    def f(self, a, *b, c: int = 1): ...\n\n\ndef g(x: int) -> None: ...\n"
    assert list(missing(text)) == ["2: f(a)", "2: f(b)", "2: the result of f"]


def test_every_function_has_types():
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line in missing(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def test_no_module_is_let_off():
    mypy = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert mypy["strict"] is True
    assert "exclude" not in mypy
    assert not [key for key, value in mypy.items() if key.startswith("disallow_") and not value]
    ours = [o["module"] for o in mypy["overrides"] if "pylinop" in str(o["module"])]
    assert not ours, ours
    for path in PACKAGE.rglob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert not [line for line in lines if line.startswith("# mypy:")], path


def test_ci_runs_it():
    assert "make types" in (ROOT / ".ci" / "run").read_text()
