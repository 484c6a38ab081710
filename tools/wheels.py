"""What a wheel must be: nothing in it but ours, and good for a machine without a compiler.

    python tools/wheels.py look dist/*.whl   what the modules ask of the system (needs auditwheel)
    python tools/wheels.py try dist          this Python's wheel, in a fresh environment

`look` fails where a module needs a library beside the C library's own: BLAS is found when the
package is imported, never linked. `try` makes an environment, hides every compiler, installs the
wheel with what it requires and nothing else, runs tests/repo/wheel_quick.py with NumPy alone,
states times, then brings pytest and mypy and runs quick tests and the user's file of
tests/contract/typing on it.
"""

import io
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SYSTEM = ("libc.so", "libm.so", "libpthread.so", "libdl.so", "ld-linux")
# The quick tests that ask for no SciPy, and some that do.
ALONE = """tests/contract/test_fork.py tests/contract/test_import.py tests/contract/test_methods.py
    tests/kinds/test_powers.py tests/kinds/test_tiny_batches.py
    tests/linalg/test_inverse_diagonals.py tests/linalg/test_kron_solves.py
    tests/rewriting/test_woodbury_sums.py""".split()
WITH_SCIPY = """tests/contract/test_threads.py tests/contract/test_typing.py tests/lazy/test_lazy.py
    tests/protocols/test_scipy_interface.py""".split()


def needed(wheel):
    """(module, libraries it needs, highest glibc version it asks for) of each in the wheel."""
    from elftools.elf.elffile import ELFFile

    with zipfile.ZipFile(wheel) as files:
        for name in files.namelist():
            if ".so" not in name:
                continue
            elf = ELFFile(io.BytesIO(files.read(name)))
            tags = elf.get_section_by_name(".dynamic").iter_tags()
            versions = elf.get_section_by_name(".gnu.version_r").iter_versions()
            asked = [v.name for _, parts in versions for v in parts if v.name.startswith("GLIBC_")]
            highest = max(asked, key=lambda v: [int(n) for n in v[6:].split(".")])
            yield name, [tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"], highest


def look(wheels):
    """Prints what each wheel asks for and how large it is; the number of faults."""
    faults = 0
    for wheel in map(Path, wheels):
        modules = list(needed(wheel))
        with zipfile.ZipFile(wheel) as files:
            inside = {name: files.getinfo(name).file_size for name in files.namelist()}
        packed, unpacked = wheel.stat().st_size / 1e6, sum(inside.values()) / 1e6
        print(f"{wheel.name}: {packed:.1f} MB, {unpacked:.1f} MB installed")
        for name, libraries, highest in modules:
            strange = [lib for lib in libraries if not lib.startswith(SYSTEM)]
            faults += bool(strange)
            print(f"  {name}: {highest}, {' '.join(libraries)}")
            if strange:
                print(
                    f"  FAULT: it needs {' '.join(strange)}, which is none of the C library's own"
                )
        if len(modules) != 1:
            faults += 1
            print(f"  FAULT: {len(modules)} shared libraries, where _core alone was meant")
        if "pylinop/py.typed" not in inside:
            faults += 1
            print("  FAULT: no pylinop/py.typed: type checkers would not look at its hints")
    return faults


def installed(python, env):
    """The names of what is installed, but for the tools that come with an environment."""
    code = "import importlib.metadata as m; print(*{d.name.lower() for d in m.distributions()})"
    said = subprocess.run([python, "-c", code], env=env, capture_output=True, text=True, check=True)
    return set(said.stdout.split()) - {"pip", "setuptools", "wheel"}


def trial(folder):
    """Installs the wheel of this Python in a fresh environment and runs on it what needs little."""
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    wheels = sorted(Path(folder).glob(f"pylinop-*-{tag}-*.whl"))
    if not wheels:
        raise SystemExit(f"{folder} has no wheel for {tag}: make wheel builds it")
    with tempfile.TemporaryDirectory() as place:
        venv.create(Path(place) / "env", with_pip=True)
        python = Path(place) / "env/bin/python"
        env = {k: v for k, v in os.environ.items() if k not in ("CC", "PYTHONPATH", "CFLAGS")}
        env["PATH"] = str(python.parent)
        found = [c for c in ("cc", "gcc", "clang", "cmake") if shutil.which(c, path=env["PATH"])]
        assert not found, f"{found} are on the PATH of the fresh environment"

        def run(*command):
            start = time.perf_counter()
            done = subprocess.run([python, *map(str, command)], env=env, cwd=place)
            if done.returncode:
                raise SystemExit(f"{wheels[-1].name}: {' '.join(map(str, command))} failed")
            return time.perf_counter() - start

        pip = ("-m", "pip", "install", "--quiet", "--only-binary=:all:")
        print(f"{wheels[-1].name}: installed in {run(*pip, wheels[-1].resolve()):.0f} s")
        have = installed(python, env)
        assert have == {"pylinop", "numpy", "scipy-openblas64"}, have
        run(ROOT / "tests/repo/wheel_quick.py")
        run(*pip, "pytest>=8", "hypothesis>=6.100", "mpmath>=1.3", "mypy==2.4.*")
        pytest = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", ROOT / "pyproject.toml")
        run(*pytest, *(ROOT / name for name in ALONE))
        run(*pip, "scipy>=1.13")
        run(*pytest, *(ROOT / name for name in WITH_SCIPY))
    print(f"{wheels[-1].name}: ok")


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("look", "try"):
        raise SystemExit(__doc__)
    if sys.argv[1] == "look":
        sys.exit(1 if look(sys.argv[2:]) else 0)
    trial(sys.argv[2])
