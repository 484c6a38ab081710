"""The layer check holds on the tree and finds each breach that is planted; the version is one."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "tools" / "check_layers.py"

CLEAN = {
    "core/base.h": "#ifndef B\n#define B\n#include <stdio.h>\n#endif\n",
    "core/status.def": 'LOP_STATUS(OK, 0, NULL, "success")\n',
    "core/node.h": '#include "base.h"\n',
    "core/plan.h": '#include "core/node.h"\n',
    "core/plan.c": '#include "plan.h"\n#include "../kernels/kernels.h"\n',
    "kernels/kernels.h": '#include "../core/base.h"\n',
    "kernels/k_blas.c": '#include "blas_table.h"\n#include "kernels.h"\n',
    "kernels/blas_table.h": '#include "../core/base.h"\n',
    "kernels/blas_load.c": '#include "blas_table.h"\n#include <dlfcn.h>\n',
    "ops/op_diag.c": '#include "core/node.h"\nint f(int a) {\n    return a; /* exit(1) */\n}\n',
    "py/py_array.c": "#include <Python.h>\n#include <numpy/arrayobject.h>\n",
    "py/py_op.c": '#include <Python.h>\n#include "core/plan.h"\n',
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
        ("core/base.h", '#include "plan.h"\n', 1, "layer base.*core/plan.h.*layer plan.*above"),
        ("kernels/k_new.c", '\n#include "core/node.h"\n', 2, "kernels.*node.h.*above"),
        ("ops/op_new.c", '#include "core/plan.h"\n', 1, "layer ops.*layer plan"),
        ("ops/op_new.c", '# include "../py/py.h"\n', 1, "neither beside"),
        ("ops/op_new.c", "#include <Python.h>\n", 1, "Python.h is included outside py"),
        ("core/plan.c", "#include <numpy/arrayobject.h>\n", 1, "NumPy's headers"),
        ("py/py_op.c", "#include <numpy/arrayobject.h>\n", 1, "NumPy's headers"),
        ("kernels/k_new.c", "#include <cblas.h>\n", 1, "cblas.h"),
        ("kernels/k_blas.c", "#include <lapacke.h>\n", 1, "the table"),
        ("kernels/k_blas.c", "#include <dlfcn.h>\n", 1, "dynamic linker"),
        ("core/plan.c", '#include "lapacke.h"\n', 1, "lapacke.h"),
        ("core/novel.c", "int x;\n", 1, "no layer"),
        ("ops/op_new.c", 'void f(void) {\n    printf ("x");\n}\n', 2, r"printf\(\)"),
        ("core/plan.c", "void f(void) {\n\n    abort();\n}\n", 3, r"abort\(\)"),
        ("kernels/k_new.c", "void f(char *a) {\n    sprintf(a, a);\n}\n", 2, r"sprintf\(\)"),
        ("ops/op_new.c", "/* a */ int a;\n" * 601, 601, "601 lines"),
        ("ops/op_new.c", "/*" + "a" * 97 + "*/\n", 1, "101 columns"),
        (
            "ops/op_new.c",
            "struct s {\n    int a;\n};\n\nstatic int\nlong_one(int a) {\n"
            + "    a++;\n" * 80
            + "}\n",
            5,
            "long_one: 83 lines",
        ),
        ("ops/op_new.c", "int f(void) {\n", 1, "braces do not pair"),
    ],
)
def test_breach_is_found(tree, name, text, line, message):
    (tree / "src" / "c" / name).write_text(text)
    done = check(tree)
    assert done.returncode == 1
    assert re.search(rf"src/c/{re.escape(name)}:{line}: .*{message}", done.stdout), done.stdout
    assert len(done.stdout.splitlines()) == 1, done.stdout


def test_long_table_and_short_functions_pass(tree):
    table = "static const int t[] = {\n" + "    1,\n" * 200 + "};\n"
    many = "".join(f"int f{i}(void) {{\n    return '}}' + \"{{\"[0];\n}}\n" for i in range(60))
    (tree / "src" / "c" / "ops" / "op_new.c").write_text(table + many)
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
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    import pylinop

    assert pylinop.__version__ == project["version"]
