import collections
import importlib
import os
import secrets
import signal
import subprocess
import sys
import zlib

import hypothesis
import numpy as np
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as where the tests run in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile(
    "pylinop",
    deadline=None,
    derandomize=True,
    print_blob=True,
    database=None,
    max_examples=int(os.environ.get("PYLINOP_EXAMPLES", "150")),
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large],
)
hypothesis.settings.load_profile("pylinop")

# Of random formulas: fresh at every run, the same in all workers; PYLINOP_SEED=... repeats a run.
os.environ.setdefault("PYLINOP_SEED", str(secrets.randbelow(1 << 40)))


def pytest_report_header(config):
    return f"random formulas: PYLINOP_SEED={os.environ['PYLINOP_SEED']}"


CHECKED = os.environ.get("PYLINOP_CHECK_PLANS", "0") != "0"
if CHECKED:  # workers and child processes inherit it
    import pylinop

    pylinop.config(check_plans=True)

if os.environ.get("PYLINOP_VERIFY") == "1":  # all answers are verified
    import pylinop

    pylinop.config(verify=True)
    importlib.import_module("pylinop._verify.compare").strict = True


# What neither plans nor computes much, or verifies its answers itself.
PLAIN = (
    "tests/out_of_core/",
    "tests/repo/",
    "tests/contract/test_costs.py",
    "tests/eigen/test_estimates_coverage.py",
    "tests/rewriting/test_formulas.py",
)


@pytest.fixture(autouse=True)
def _answers(request):
    """Verified answers (PYLINOP_VERIFY=1), but of what is `no_verify`, `slow` or PLAIN."""
    node = request.node
    marked = any(node.get_closest_marker(name) for name in ("no_verify", "slow"))
    if os.environ.get("PYLINOP_VERIFY") != "1" or not (marked or node.nodeid.startswith(PLAIN)):
        yield
        return
    import pylinop

    # Process-wide: the threads of a test do not see a `with` block's.
    pylinop.config(verify=False, check_plans=False)
    yield
    pylinop.config(verify=True, check_plans=CHECKED)


@pytest.fixture(autouse=True)
def _drawn_alone(request):
    """What a test draws from its module's RNG is the same whichever tests ran before it."""
    shared = getattr(request.module, "RNG", None)
    if isinstance(shared, np.random.Generator):
        own = np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))
        shared.bit_generator.state = own.bit_generator.state


MANY = 20


def pytest_collection_modifyitems(config, items):
    """Of a test marked `sweep(n)` about one in n of its cases are run, of others of MANY cases or
    more one in two, the same ones every time; every value of every parameter is met.
    PYLINOP_FULL=1 (`make long`) and tests named by themselves (`file::test`) run all."""
    if os.environ.get("PYLINOP_FULL") or any("::" in arg for arg in config.args):
        return
    part = int(os.environ.get("PYLINOP_PART", "1"))  # one in so many of all tests
    met = set()
    drawn = [zlib.crc32(item.nodeid.encode()) for item in items]
    cases = collections.Counter(item.nodeid.split("[")[0] for item in items)
    others = [2 if cases[item.nodeid.split("[")[0]] >= MANY else 1 for item in items]
    share = [
        next((m.args[0] for m in item.iter_markers("sweep")), other)
        for item, other in zip(items, others)
    ]
    values = [case_of(item) if n > 1 else set() for item, n in zip(items, share)]
    kept = [number % n == 0 for number, n in zip(drawn, share)]
    for values_here, keep in zip(values, kept):
        if keep:
            met |= values_here
    for i, values_here in enumerate(values):
        if values_here - met:
            kept[i] = True
            met |= values_here
    kept = [keep and (number >> 8) % part == 0 for keep, number in zip(kept, drawn)]
    left = [item for item, keep in zip(items, kept) if not keep]
    items[:] = [item for item, keep in zip(items, kept) if keep]
    config.hook.pytest_deselected(items=left)


def case_of(item):
    test = item.nodeid.split("[")[0]
    return {(test, name, repr(value)) for name, value in item.callspec.params.items()}


@pytest.fixture
def rng():
    return np.random.default_rng(20260)


@pytest.fixture
def python():
    """Run code in a fresh interpreter that finds the test helpers; give its output.

    The time limit only stops what hangs."""

    def run(code, *args, env=None, ok=True, stack=None, timeout=150):
        def limit():
            import resource

            resource.setrlimit(resource.RLIMIT_STACK, (stack, stack))

        path = os.pathsep.join([HERE] + [p for p in [os.environ.get("PYTHONPATH")] if p])
        done = subprocess.run(
            [sys.executable, "-c", code, *map(str, args)],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": path, **(env or {})},
            timeout=timeout,
            preexec_fn=limit if stack else None,
        )
        assert not ok or done.returncode == 0, (
            f"exit {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-6000:]}"
        )
        return done.stdout

    return run
