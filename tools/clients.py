"""Clients' own tests with `pylinop.pytensor` and without: the same outcomes, test by test.

    python tools/clients.py fetch                    ptgp's sdist, by pip, into build/clients
    python tools/clients.py compare ptgp             runs its tests twice, and lists what differs
    python tools/clients.py compare FOLDER tests/gp  those of a checkout of PyTensor or PyMC
    python tools/clients.py compare ... --least 0    every matrix is rewritten, whatever its size
    python tools/clients.py compare ... --each 60    what computes for longer is cut off: `late`
    python tools/clients.py compare ... --preload "pytensor.tensor pymc"    imported once for all

Goes file by file, and appends what it prints to build/clients/compared.txt. PyTensor's and PyMC's
sdists leave out their tests of linear algebra, processes and distributions: these come from
checkouts. Tests run in a copy of the folder's tests, so that the installed packages are tried.
PyTensor's flags are the environment's: `PYTENSOR_FLAGS=linker=vm,cxx=` spares an hour of compiling,
and the graphs are the same. What differs (samplers have tests without seeds) is run again, twice
each, and told as unstable where it differs from itself. Exits with 1 where anything else differs.

The file is its own pytest plugin: `-p clients` with `tools` on the path writes each outcome as it
comes, so that a run that is cut off still tells something, and on one side imports
`pylinop.pytensor`, sets `least`, and counts what fired.
"""

import argparse
import importlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "build" / "clients"
PTGP = "ptgp==0.2.0"
COMPARED = HOME / "compared.txt"
FIRED = "PYLINOP_CLIENTS_FIRED"
LEAST = "PYLINOP_CLIENTS_LEAST"
TOLD = "PYLINOP_CLIENTS_TOLD"
EACH = "PYLINOP_CLIENTS_EACH"
CUT = "clients: longer than --each seconds"


def pytest_configure(config):
    """With `-p clients` on its side: what `-p pylinop.pytensor` does, and sizes, and a count."""
    if not os.environ.get(FIRED):
        return
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


def pytest_runtest_logreport(report):
    """Writes an outcome: the worst of set-up, call and the end."""
    outcome = "error" if report.failed and report.when != "call" else report.outcome
    if report.failed and CUT in str(report.longrepr):
        outcome = "late"
    if report.when == "call" or outcome != "passed":
        with open(os.environ[TOLD], "a") as file:
            file.write(f"{outcome}\t{report.nodeid}\n")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    """Cuts off a test that computes for longer than `--each`, at the next line of Python.

    The processor's time of the process, so that a busy machine cuts off the same tests.
    """

    def late(*_):
        pytest.fail(CUT, pytrace=False)

    kept = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, int(os.environ[EACH]))
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, kept)


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


def run_tests(there, tests, env):
    """In a process of its own: pytest's status as that of the process."""
    os.chdir(there)
    os.environ |= env
    sys.path[:0] = [str(there), str(ROOT / "tools")]
    command = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts=", "-p", "clients"]
    with open("on.log" if env[FIRED] else "off.log", "a") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
        status = pytest.main([*command, *tests])
        sys.stdout.flush()
    os._exit(status)


def outcomes(there, tests, is_on, given):
    """{test: outcome}, and what fired: of a fork, which spares it the imports of `--preload`."""
    told, fired = there / "told.txt", there / "fired.txt"
    told.write_text("")
    fired.write_text("")
    env = {TOLD: str(told), EACH: str(given.each), LEAST: given.least}
    env |= {FIRED: str(fired) if is_on else ""}
    process = multiprocessing.get_context("fork").Process(
        target=run_tests, args=(there, tests, env)
    )
    process.start()
    process.join(given.timeout)
    if process.exitcode not in (0, 1, 5):
        process.kill()
        raise SystemExit(f"clients: pytest ended with {process.exitcode}: see {there}")
    found = {}
    for line in told.read_text().splitlines():
        outcome, test = line.split("\t")
        found[test] = outcome if found.get(test, "passed") == "passed" else found[test]
    return found, fired.read_text().splitlines()


def counted(values):
    """`3 passed, 1 failure` of outcomes."""
    return ", ".join(f"{sum(v == k for v in values)} {k}" for k in sorted(set(values)))


def say(text):
    """Prints a line, and keeps it."""
    print(text, flush=True)
    with open(COMPARED, "a") as file:
        file.write(f"{text}\n")


def compare_file(there, file, given):
    """Prints what differs in a file; how many tests do."""
    off, _ = outcomes(there, [file], False, given)
    on, fired = outcomes(there, [file], True, given)
    differ = sorted(t for t in off.keys() | on.keys() if off.get(t) != on.get(t))
    say(f"{there.name} {file}: without {counted(off.values())}; with {counted(on.values())}")
    say(f"  {len(fired)} matrices fired ({counted(fired)}); {len(differ)} outcomes differ")
    faults = 0
    for test in differ:
        again = [
            [outcomes(there, [test], is_on, given)[0].get(test) for _ in "12"]
            for is_on in (False, True)
        ]
        unstable = len({off.get(test), *again[0]}) > 1 or len({on.get(test), *again[1]}) > 1
        faults += not unstable
        what = "differs from itself" if unstable else "differs"
        say(f"  {what}: {test}: {off.get(test)} without, {on.get(test)} with; again {again}")
    return faults


def compare(folder, tests, given):
    """Prints what differs, file by file; how many tests do."""
    there = copied(folder)
    for name in given.preload.split():
        importlib.import_module(name)
    files = [f for t in tests for f in sorted((there / t).rglob("test_*.py")) or [there / t]]
    return sum(compare_file(there, str(f.relative_to(there)), given) for f in files)


def main():
    """Runs a command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("command", choices=("fetch", "compare"))
    parser.add_argument("folder", nargs="?", default="ptgp")
    parser.add_argument("tests", nargs="*", default=["tests"])
    parser.add_argument("--least", default="", help="rows from which matrices are rewritten")
    parser.add_argument("--each", type=int, default=600, help="seconds a test may compute")
    parser.add_argument("--preload", default="pytensor.tensor", help="modules, imported once")
    parser.add_argument("--timeout", type=float, default=7200, help="seconds a file may take")
    given = parser.parse_args()
    if given.command == "fetch":
        return fetch()
    folder = HOME / PTGP.replace("==", "-") if given.folder == "ptgp" else Path(given.folder)
    if not (folder / "tests").is_dir():
        raise SystemExit(f"clients: {folder} has no tests: run fetch, or name a checkout")
    sys.exit(compare(folder, given.tests or ["tests"], given) > 0)


if __name__ == "__main__":
    main()
