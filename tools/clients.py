"""Clients' own tests with `pylinop.pytensor` and without: the same outcomes, test by test.

    python tools/clients.py fetch                    ptgp's sdist, by pip, into build/clients
    python tools/clients.py compare ptgp             runs its tests twice, and lists what differs
    python tools/clients.py compare FOLDER tests/gp  those of a checkout of PyTensor or PyMC
    python tools/clients.py compare ... --least 0    every matrix is rewritten, whatever its size

PyTensor's and PyMC's sdists leave out their tests of linear algebra, processes and distributions:
these come from checkouts. Tests run in a copy of the folder's tests, so that the installed packages
are tried. PyTensor's flags are the environment's: `PYTENSOR_FLAGS=linker=py` spares an hour of
compiling, and the graphs are the same. What differs (samplers have tests without seeds) is run
again, twice each, and told as unstable where it differs from itself. Exits with 1 where anything
else differs.

The file is its own pytest plugin: `-p clients` with `tools` on the path imports `pylinop.pytensor`,
sets `least`, and counts what fired.
"""

import argparse
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "build" / "clients"
PTGP = "ptgp==0.2.0"
FIRED = "PYLINOP_CLIENTS_FIRED"
LEAST = "PYLINOP_CLIENTS_LEAST"


def pytest_configure(config):
    """With `-p clients`: what `-p pylinop.pytensor` does, and sizes, and a count."""
    import pylinop.pytensor as pp
    from pylinop.pytensor import report, rewrites

    if os.environ.get(LEAST):
        least = int(os.environ[LEAST])
        pp.config(least=least, least_dense=least)
    replaced = rewrites._replaced

    def counted(fgraph, K, tree, *rest):
        replaced(fgraph, K, tree, *rest)
        with open(os.environ[FIRED], "a") as file:
            file.write(f"{report.shown(tree)}\n")

    rewrites._replaced = counted


def fetch():
    """ptgp's sdist, unpacked."""
    HOME.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--no-binary", "ptgp", "--dest", HOME, PTGP], check=True)
    (archive,) = HOME.glob("ptgp-*.tar.gz")
    shutil.unpack_archive(archive, HOME, filter="data")


def copied(folder):
    """A copy of the tests of a folder, without the package beside them."""
    there = HOME / "run" / folder.resolve().name
    shutil.rmtree(there, ignore_errors=True)
    shutil.copytree(folder / "tests", there / "tests")
    for name in ("conftest.py", "pyproject.toml"):
        if (folder / name).exists():
            shutil.copy(folder / name, there / name)
    return there


def outcomes(there, tests, is_on, least, timeout):
    """{test: outcome}, and what fired."""
    log, fired = there / "outcomes.xml", there / "fired.txt"
    log.unlink(missing_ok=True)
    fired.write_text("")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += ["-o", "addopts=", f"--junitxml={log}", *(["-p", "clients"] if is_on else [])]
    paths = os.pathsep.join([str(ROOT / "tools"), os.environ.get("PYTHONPATH", "")])
    env = os.environ | {"PYTHONPATH": paths, FIRED: str(fired), LEAST: least}
    with open(there / f"{'on' if is_on else 'off'}.log", "w") as out:
        subprocess.run(
            [*command, *tests], cwd=there, env=env, stdout=out, stderr=out, timeout=timeout
        )
    if not log.exists():
        raise SystemExit(f"clients: pytest left no outcomes: see {there}")
    found = {}
    for case in ET.parse(log).getroot().iter("testcase"):
        bad = [k for k in ("failure", "error", "skipped") if case.find(k) is not None]
        found[f"{case.get('classname')}::{case.get('name')}"] = bad[0] if bad else "passed"
    return found, fired.read_text().split("\n")[:-1]


def counted(values):
    """`3 passed, 1 failure` of outcomes."""
    return ", ".join(f"{sum(v == k for v in values)} {k}" for k in sorted(set(values)))


def compare(folder, tests, least, timeout):
    """Prints what differs; how many tests do."""
    there = copied(folder)
    off, _ = outcomes(there, tests, False, least, timeout)
    on, fired = outcomes(there, tests, True, least, timeout)
    differ = sorted(t for t in off.keys() | on.keys() if off.get(t) != on.get(t))
    print(f"{folder.name} {' '.join(tests)}: without {counted(off.values())};")
    print(f"  with {counted(on.values())}; {len(fired)} matrices fired ({counted(fired)})")
    faults = 0
    for test in differ:
        name = test.split("::")[1].split("[")[0]
        again = [
            [
                outcomes(there, [*tests, "-k", name], is_on, least, timeout)[0].get(test)
                for _ in "12"
            ]
            for is_on in (False, True)
        ]
        unstable = len({off.get(test), *again[0]}) > 1 or len({on.get(test), *again[1]}) > 1
        faults += not unstable
        what = "differs from itself" if unstable else "differs"
        print(f"  {what}: {test}: {off.get(test)} without, {on.get(test)} with; again {again}")
    return faults


def main():
    """Runs a command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("command", choices=("fetch", "compare"))
    parser.add_argument("folder", nargs="?", default="ptgp")
    parser.add_argument("tests", nargs="*", default=["tests"])
    parser.add_argument("--least", default="", help="rows from which matrices are rewritten")
    parser.add_argument("--timeout", type=float, default=7200)
    given = parser.parse_args()
    if given.command == "fetch":
        return fetch()
    folder = HOME / PTGP.replace("==", "-") if given.folder == "ptgp" else Path(given.folder)
    if not (folder / "tests").is_dir():
        raise SystemExit(f"clients: {folder} has no tests: run fetch, or name a checkout")
    sys.exit(compare(folder, given.tests or ["tests"], given.least, given.timeout) > 0)


if __name__ == "__main__":
    main()
