"""What `import pylinop` costs over NumPy's, and what it does not bring along."""

import json
import os
import subprocess
import sys

# CPU time of both imports, which other processes of the machine do not add to.
CODE = """
import json, sys, time
t = time.process_time()
import numpy
u = time.process_time()
import pylinop
v = time.process_time()
print(json.dumps([u - t, v - u, sorted(sys.modules)]))
"""
# Of NumPy's own import in the same process, the best of five: 0.5 on a quiet machine, 0.6 to 0.8 on
# one with 15 processes on two cores, where both are slow but not equally so.
OF_NUMPYS = 1.0
HEAVY = {"scipy", "matplotlib", "pandas", "dask", "torch", "jax", "IPython", "tqdm", "pytest"}


def measured():
    env = {k: v for k, v in os.environ.items() if not k.startswith(("COV", "PYLINOP_"))}
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=env, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_import_is_short_and_brings_nothing_heavy():
    runs = [measured() for _ in range(5)]
    loaded = {name.partition(".")[0] for name in runs[0][2]}
    assert not HEAVY & loaded
    numpys, ours, _ = min(runs, key=lambda run: run[1] / run[0])
    assert ours <= OF_NUMPYS * numpys, f"{1e3 * ours:.0f} ms of CPU over NumPy's {1e3 * numpys:.0f}"
