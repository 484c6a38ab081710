"""An example whose package is missing says which to install; one that is not ours fails as ever."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
WITH = [path for path in sorted(EXAMPLES.glob("[a-z]*.py")) if "_needs" in path.read_text()]
BLOCK = """
import runpy, sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {module!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
sys.modules.pop({module!r}, None)
sys.path.insert(0, {folder!r})
sys.argv = [{script!r}]
runpy.run_path({script!r}, run_name="__main__")
"""


def first_of(path):
    """The first third-party module that an example imports beside NumPy."""
    text = path.read_text(encoding="utf-8")
    names = re.findall(r"^(?:import|from) (\w+)", text, re.M)
    known = re.findall(r'^    "(\w+)": \(', (EXAMPLES / "_needs.py").read_text(), re.M)
    return next((name for name in names if name in known), None)


def run(script, module):
    code = BLOCK.format(module=module, folder=str(EXAMPLES), script=str(script))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("path", WITH, ids=lambda path: path.name)
def test_a_missing_package_is_named(path):
    module = first_of(path)
    if module is None:
        pytest.skip("it imports NumPy alone, and matplotlib when it draws")
    done = run(path, module)
    assert done.returncode == 1
    assert re.fullmatch(
        r"\S+ needs \S+, which is not installed here: pip install [^\n]+\n", done.stderr
    ), done.stderr
    assert "pylinop[" in done.stderr or module in ("pymc", "nutpie")


def test_the_extras_exist():
    import tomllib

    extras = tomllib.loads((EXAMPLES.parent / "pyproject.toml").read_text())["project"]
    sys.path.insert(0, str(EXAMPLES))
    hook = sys.excepthook
    try:
        import _needs
    finally:
        sys.path.remove(str(EXAMPLES))
        sys.excepthook = hook
    for module, (package, extra) in _needs.PACKAGES.items():
        if extra:
            wanted = extras["optional-dependencies"][extra]
            assert any(line.startswith(package) for line in wanted), f"{extra} lacks {package}"
    assert _needs.said("own_module", "x.py") is None
    assert _needs.said(None, "x.py") is None
