"""Programs by the C face: from numba, from C types, in threads, from another process's cache."""

import concurrent.futures
import os
import subprocess
import sys

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor")

import pytensor.tensor as pt
from contract.c_face import as_c, run_program
from frameworks.pytensor import pytensor_graphs as graphs
from frameworks.pytensor.test_pytensor_rewrites import compiled, same, small_sizes  # noqa: F401

import pylinop.pytensor as pp
from pylinop.pytensor import dispatch_numba  # noqa: F401  (registers)


@pytest.mark.parametrize("row", [graphs.root, graphs.kron_alone, graphs.toeplitz, graphs.dense])
def test_numba_runs_the_same(row):
    inputs, K, values = row(21)
    y = pt.dvector("y")
    on, off = compiled([*inputs, y], graphs.by_cholesky(K, y), [*inputs, y], mode="NUMBA")
    rhs = np.random.default_rng(1).standard_normal(63 if row is graphs.kron_alone else 21)
    same(on, off, *values, rhs)


def test_views_that_are_not_contiguous():
    """numba must not drop copies or views before the call is over."""
    W, d, y = pt.dmatrix("W"), pt.dvector("d"), pt.dvector("y")
    K = W[::2].T @ W[::2] + pt.diag(d[::-1])
    on, off = compiled([W, d, y], graphs.by_cholesky(K, y[1::2]), [W, d, y], mode="NUMBA")
    r = np.random.default_rng(2)
    for _ in range(20):
        W, d, y = r.standard_normal((40, 10)).T.copy().T, 1 + r.random(10), r.standard_normal(20)
        same(on, off, W, d, y)


def test_threads_get_the_same_bits():
    inputs, K, values = graphs.root(30)
    y = pt.dvector("y")
    on, _ = compiled([*inputs, y], graphs.by_cholesky(K, y), inputs, mode="NUMBA")
    call = on.vm.jit_fn if hasattr(on.vm, "jit_fn") else None
    if call is None:
        pytest.skip("this version shows no compiled function")
    args = [*values, np.ones(30)]
    due = call(*args)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: call(*args), range(40)):
            assert all(np.array_equal(a, b) for a, b in zip(found, due, strict=True))


def test_the_c_face_from_c_types():
    call = run_program()
    spec = ("values", ("sum", ("root", 0), ("diagonal", 1)), (("logdet",), ("solve", 2)), 3)
    text = f"pytensor\n{spec!r}".encode()
    r = np.random.default_rng(3)
    W, d, y = r.standard_normal((3, 12)).T[::2], 1 + r.random(6), r.standard_normal(12)[::-2]
    K = W @ W.T + np.diag(d)
    number, x = np.zeros(()), np.zeros(12)[::2]
    assert call(text, len(text), 3, as_c([W, d, y]), 2, as_c([number, x]), 0) == 0
    np.testing.assert_allclose(number, np.linalg.slogdet(K)[1], rtol=1e-12)
    np.testing.assert_allclose(x, np.linalg.solve(K, y), rtol=1e-10)
    for k in range(3):  # the same memory with other content
        d += 1 + k
        W[k] *= -2
        K = W @ W.T + np.diag(d)
        assert call(text, len(text), 3, as_c([W, d, y]), 2, as_c([number, x]), 0) == 0
        np.testing.assert_allclose(number, np.linalg.slogdet(K)[1], rtol=1e-12)
        np.testing.assert_allclose(x, np.linalg.solve(K, y), rtol=1e-10)


SCRIPT = """
import sys
import numpy as np, pytensor, pytensor.tensor as pt
import pylinop.pytensor as pp
pp.config(least=0)
W, d, y = pt.dmatrix("W"), pt.dvector("d"), pt.dvector("y")
L = pt.linalg.cholesky(W @ W.T + pt.diag(d))
f = pt.sum(pt.linalg.solve_triangular(L, y, lower=True) ** 2) + pt.sum(pt.log(pt.diag(L)))
f = pp.rewrite(f)
g = pytensor.function([W, d, y], [f, *pytensor.grad(f, [W, d])], mode="NUMBA")
r = np.random.default_rng(0)
found = g(r.standard_normal((9, 2)), 1 + r.random(9), r.standard_normal(9))
print(repr(float(found[0])), repr(float(np.sum(found[1] ** 2))))
"""


def test_a_second_process_takes_what_was_compiled(tmp_path):
    flags = f"base_compiledir={tmp_path}"
    env = {"PYTENSOR_FLAGS": flags, "NUMBA_CACHE_DIR": str(tmp_path / "numba")}
    said = [
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", SCRIPT],
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert said[0] == said[1] and "nan" not in said[0]
    assert list(tmp_path.rglob("*.nbc"))


def test_a_program_that_fails_says_so(monkeypatch):
    inputs, K, values = graphs.root(9)
    y = pt.dvector("y")
    on, _ = compiled([*inputs, y], graphs.by_cholesky(K, y), inputs, mode="NUMBA")

    def fails(*args):
        raise MemoryError("no room")

    from pylinop._programs import entry

    monkeypatch.setattr(pp.running, "written_into", fails)
    entry._owner.cache_clear()
    with pytest.raises(RuntimeError, match="a program failed"):
        on(*values, np.ones(9))
    entry._owner.cache_clear()
