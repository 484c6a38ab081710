import os
import signal
import subprocess
import sys

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
