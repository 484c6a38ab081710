"""The layer check holds on the tree and finds each breach that is planted; the version is one."""

import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "check_layers.py"

CLEAN = {
    "base/base.h": "#ifndef B\n#define B\n#include <stdio.h>\n#endif\n",
    "base/status.def": 'LOP_STATUS(OK, 0, NULL, "success")\n',
    "expr/node.h": '#include "base/base.h"\n',
    "plan/plan.h": '#include "expr/node.h"\n',
    "plan/plan.c": '#include "plan.h"\n#include "../kernels/common/kernels.h"\n',
    "kernels/common/kernels.h": '#include "../../base/base.h"\n',
    "kernels/dense/k_blas.c": '#include "blas_table.h"\n#include "../common/kernels.h"\n',
    "kernels/dense/blas_table.h": '#include "../../base/base.h"\n',
    "kernels/dense/blas_load.c": '#include "blas_table.h"\n#include <dlfcn.h>\n',
    "ops/kinds/op_diag.c": '#include "expr/node.h"\n'
    "int f(int a) {\n    return a; /* exit(1) */\n}\n",
    "py/module/py_array.c": "#include <Python.h>\n#include <numpy/arrayobject.h>\n",
    "py/operator/py_operator.c": '#include <Python.h>\n#include "plan/plan.h"\n',
}


def check(root, *more):
    return subprocess.run(
        [sys.executable, SCRIPT, "--root", root, *map(str, more)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def tree(tmp_path):
    for name, text in CLEAN.items():
        path = tmp_path / "src" / "c" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_repository_keeps_the_rules():
    done = check(ROOT)
    assert done.returncode == 0, done.stdout


def test_clean_tree_passes(tree):
    done = check(tree)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    ("name", "text", "line", "message"),
    [
        (
            "base/base.h",
            '#include "plan/plan.h"\n',
            1,
            "layer base.*plan/plan.h.*layer plan.*above",
        ),
        ("kernels/dense/k_new.c", '\n#include "expr/node.h"\n', 2, "kernels.*node.h.*above"),
        ("ops/kinds/op_new.c", '#include "plan/plan.h"\n', 1, "layer ops.*layer plan"),
        ("ops/kinds/op_new.c", '# include "../py/py.h"\n', 1, "neither beside"),
        ("ops/kinds/op_new.c", "#include <Python.h>\n", 1, "Python.h is included outside py"),
        ("plan/plan.c", "#include <numpy/arrayobject.h>\n", 1, "NumPy's headers"),
        ("py/operator/py_operator.c", "#include <numpy/arrayobject.h>\n", 1, "NumPy's headers"),
        ("kernels/dense/k_new.c", "#include <cblas.h>\n", 1, "cblas.h"),
        ("kernels/dense/k_blas.c", "#include <lapacke.h>\n", 1, "the table"),
        ("kernels/dense/k_blas.c", "#include <dlfcn.h>\n", 1, "dynamic linker"),
        ("plan/plan.c", '#include "lapacke.h"\n', 1, "lapacke.h"),
        ("novel/novel.c", "int x;\n", 1, "no layer"),
        ("ops/kinds/op_new.c", 'void f(void) {\n    printf ("x");\n}\n', 2, r"printf\(\)"),
        ("plan/plan.c", "void f(void) {\n\n    abort();\n}\n", 3, r"abort\(\)"),
        ("kernels/dense/k_new.c", "void f(char *a) {\n    sprintf(a, a);\n}\n", 2, r"sprintf\(\)"),
        ("ops/kinds/op_new.c", "/* a */ int a;\n" * 601, 601, "601 lines"),
        ("ops/kinds/op_new.c", "/*" + "a" * 97 + "*/\n", 1, "101 columns"),
        (
            "ops/kinds/op_new.c",
            "struct s {\n    int a;\n};\n\nstatic int\nlong_one(int a) {\n"
            + "    a++;\n" * 80
            + "}\n",
            5,
            "long_one: 83 lines",
        ),
        ("ops/kinds/op_new.c", "int f(void) {\n", 1, "braces do not pair"),
        ("plan/plan.c", f"\nint a = f({'g(1),' * 13} 3);\n", 2, r"f\(\) with 14 arg"),
    ],
)
def test_breach_is_found(tree, name, text, line, message):
    path = tree / "src" / "c" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    done = check(tree)
    assert done.returncode == 1
    assert re.search(rf"src/c/{re.escape(name)}:{line}: .*{message}", done.stdout), done.stdout
    assert len(done.stdout.splitlines()) == 1, done.stdout


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("_base/new.py", "from .._lazy import array\n", "layer _base imports _lazy.array"),
        ("_base/new.py", "from .._lazy.array import lazy\n", "layer _base imports _lazy.array"),
        ("_base/new.py", "x = Later('_lazy.array')\n", "layer _base imports _lazy.array"),
        ("_base/new.py", "x = Later('_base.gone')\n", "no such module"),
        ("_lazy/new.py", "def f():\n    from .array import lazy\n", "imported in a function"),
        ("_lazy/new.py", "def f():\n    import json\n", "json is imported in a function"),
        ("_lazy/array.py", "from . import text\n", "each other: _lazy.array, _lazy.text"),
        ("_lazy/array.py", "x = Later('_lazy.text')\n", "each other: _lazy.array, _lazy.text"),
        ("_stray/new.py", "", "has no layer"),
    ],
)
def test_python_imports_point_down(tree, name, text, message):
    path = tree / "src" / "pylinop" / name
    path.parent.mkdir(parents=True)
    lower = tree / "src" / "pylinop" / "_lazy"
    lower.mkdir(exist_ok=True)
    (lower / "array.py").write_text("")
    (lower / "text.py").write_text("from .array import lazy\n")
    path.write_text(text)
    done = check(tree)
    assert done.returncode == 1
    assert message in done.stdout, done.stdout


@pytest.mark.parametrize(
    "line",
    [
        "x = op._init[0]",
        "x = op._operands[0]._init[-2] == 'ortho'",
        "x = f(op._init[1:])",
        "x = (op._init or op._operands)[0]",
        "u, v, c = op._init",
        "u, v = (*op._init, None)[:2]",
        "u, v = op._init if op._init else (1, 2)",
        "given = op._init",
        "given: Any = op._init",
    ],
)
def test_parameters_by_position_are_found(tree, line):
    path = tree / "src" / "pylinop" / "_base" / "new.py"
    path.parent.mkdir(parents=True)
    path.write_text(f"\n{line}\n")
    done = check(tree)
    assert done.returncode == 1
    assert "_base/new.py:2: parameters are read by position" in done.stdout, done.stdout


def test_long_calls_of_python_are_found(tree):
    path = tree / "src" / "pylinop" / "_base" / "new.py"
    path.parent.mkdir(parents=True)
    path.write_text(f"f({'g(1, 2), ' * 13})\n\nf({'x, ' * 14})\n")
    done = check(tree)
    assert done.returncode == 1
    found = "_base/new.py:3: 14 positional arguments"
    assert found in done.stdout and len(done.stdout.splitlines()) == 1, done.stdout


def test_long_calls_of_others_signatures_pass(tree):
    path = tree / "src" / "c" / "ops" / "kinds" / "op_new.c"
    path.write_text(f"int a = CALL({'1,' * 19}2), b = f({'1,' * 12}2);\n")
    assert check(tree).returncode == 0


def test_parameters_by_name_and_all_alike_pass(tree):
    path = tree / "src" / "pylinop" / "_base" / "new.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "u, v = op._given('U', 'V')\n"
        "made, by = op._init is not None, op._by if op._init is None else ''\n"
        "below = [p for p in (*op._operands, *(op._init or ())) if hasattr(p, '_operands')]\n"
        "again, state = rebuilt(op._init), 1\n"
        "x = rebuilt(op._init)[0]\n"
    )
    done = check(tree)
    assert done.returncode == 0, done.stdout


def test_python_of_lower_layers_passes(tree):
    package = tree / "src" / "pylinop"
    for name, text in {
        "_base/errors.py": "if TYPE_CHECKING:\n    from .._api import explain\n",
        "_base/new.py": "def f():\n    import scipy.linalg\n",
        "_lazy/array.py": "how = Later('_api.explain')\n",
        "_api/explain.py": "from .. import _core\nfrom .._base import errors\nfrom . import up\n",
        "_api/up.py": "from .._lazy.array import lazy\n",
    }.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    done = check(tree)
    assert done.returncode == 0, done.stdout


def test_long_table_and_short_functions_pass(tree):
    table = "static const int t[] = {\n" + "    1,\n" * 200 + "};\n"
    many = "".join(f"int f{i}(void) {{\n    return '}}' + \"{{\"[0];\n}}\n" for i in range(60))
    (tree / "src" / "c" / "ops" / "kinds" / "op_new.c").write_text(table + many)
    assert check(tree).returncode == 0


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("int PyLong_Check(void); int lop_f(void) { return PyLong_Check(); }", "PyLong_Check"),
        ("void abort(void); void lop_f(void) { abort(); }", r"calls abort\(\)"),
        ("int scipy_cblas_x(void); int lop_f(void) { return scipy_cblas_x(); }", "past the table"),
        ("int stray(void) { return 1; }", "exports stray"),
    ],
)
def test_breach_in_the_library_is_found(tree, code, message):
    if not (shutil.which("gcc") and shutil.which("ar") and shutil.which("nm")):
        pytest.skip("needs gcc and binutils")
    (tree / "x.c").write_text(code + "\n")
    subprocess.run(["gcc", "-c", "x.c"], cwd=tree, check=True)
    subprocess.run(["ar", "rc", "liblopcore.a", "x.o"], cwd=tree, check=True)
    done = check(tree, "--lib", tree / "liblopcore.a")
    assert done.returncode == 1
    assert re.search(message, done.stdout), done.stdout


def test_version_is_said_once():
    """In the package; what must repeat it agrees."""
    import pylinop

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["dynamic"] == ["version"] and "version" not in project
    assert version("pylinop") == pylinop.__version__
    for name, line in (
        ("CITATION.cff", f'version: "{pylinop.__version__}"'),
        ("packaging/conda-forge/recipe.yaml", f'  version: "{pylinop.__version__}"'),
    ):
        assert line in (ROOT / name).read_text().splitlines(), f"{name} says another version"
