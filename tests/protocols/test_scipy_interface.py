"""SciPy's own tests of its LinearOperator, run against pylinop.

The file is taken from the installed SciPy at test time: its one line that imports the
implementation is replaced, and nothing is kept. The same file runs on SciPy itself first: that says
how many tests there are, and that the harness works."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
import scipy
import scipy.sparse.linalg

IMPORT = "import scipy.sparse.linalg._interface as interface\n"
VERSION = tuple(int(part) for part in scipy.__version__.split(".")[:2])
AT_LEAST = (
    28 if VERSION < (1, 18) else 236
)  # tests that passed on SciPy 1.17.1 and 1.18.1 themselves

CONFTEST = """
import numpy as np
import pytest
def pytest_configure(config):
    for mark in ("skip_xp_backends", "xfail_xp_backends", "uses_xp_capabilities"):
        config.addinivalue_line("markers", mark + "(...): SciPy's")
@pytest.fixture
def xp():
    from scipy._lib._array_api import array_namespace
    return array_namespace(np.empty(0))
"""


def outcome(folder, implementation):
    source = pathlib.Path(scipy.sparse.linalg.__file__).parent / "tests" / "test_interface.py"
    text = source.read_text()
    assert text.count(IMPORT) == 1
    (folder / "test_generated.py").write_text(
        text.replace(IMPORT, f"import {implementation} as interface\n")
    )
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "on_scipy.py").write_text(
        "import scipy.sparse.linalg._interface as i\n"
        "globals().update({k: v for k, v in vars(i).items() "
        "if not k.startswith('__')})\n"
    )
    path = os.pathsep.join(
        [str(folder), os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
        + [p for p in [os.environ.get("PYTHONPATH")] if p]
    )
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "SCIPY_ARRAY_API"))}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-rfE",
            "--tb=short",
            "-p",
            "no:cacheprovider",
            "test_generated.py",
        ],
        cwd=folder,
        env={**env, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
    )
    numbers = {
        word.rstrip("s"): int(n)
        for n, word in re.findall(
            r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed)", done.stdout.splitlines()[-1]
        )
    }
    return numbers, done.stdout[-12000:] + done.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.skipif(VERSION < (1, 17), reason="1.17's file and later")
def test_scipys_interface_tests_pass(tmp_path):
    (tmp_path / "scipy").mkdir()
    (tmp_path / "pylinop").mkdir()
    theirs, text = outcome(tmp_path / "scipy", "on_scipy")
    assert not theirs.get("failed") and not theirs.get("error") and theirs["passed"] >= AT_LEAST, (
        text
    )
    ours, text = outcome(tmp_path / "pylinop", "scipy_shim")
    assert ours == theirs, text
