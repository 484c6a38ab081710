"""Programs by the C face: from numba, from C types, in threads, from another process's cache."""

import concurrent.futures
import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor")

import pytensor.tensor as pt
from contract.c_face import Array, as_c, c_face, last_error, run_program
from frameworks.pytensor import pytensor_graphs as graphs
from frameworks.pytensor.test_pytensor_rewrites import (  # noqa: F401
    PLAIN,
    compiled,
    same,
    small_sizes,
)

import pylinop.pytensor as pp
from pylinop._base import config
from pylinop._programs import entry
from pylinop.pytensor import (
    dispatch_numba,  # noqa: F401  (registers)
    ops,
)


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


TAPED = {
    graphs.root: "sum(root, diagonal)",
    graphs.blocks: "blocks(dense, diagonal)",
    graphs.toeplitz: "sum(toeplitz, identity)",
    graphs.kron: "sum(kron(symmetric, symmetric), identity)",
}


@pytest.mark.skipif(config.get("verify"), reason="there are no tapes under verify=")
@pytest.mark.parametrize("row", TAPED, ids=lambda row: row.__name__)
def test_explain_says_how_a_function_ran(row):
    entry._roads.clear()
    inputs, K, values = row(23)
    y = pt.dvector("y")
    rows = K.eval(dict(zip(inputs, values, strict=True))).shape[0]
    on, off = compiled([*inputs, y], graphs.by_cholesky(K, y), [*inputs, y], mode="NUMBA")
    found = pp.explain(on)
    assert [r.road for r in found] == ["not called yet"]
    assert {r.structure for r in found} == {TAPED[row]}
    rhs = np.random.default_rng(3).standard_normal(rows)
    for k in range(4):
        given = [v * (1 + k / 100) for v in values]
        found, due = on(*given, rhs), on(*given, rhs)
        assert all(np.array_equal(a, b) for a, b in zip(found, due, strict=True))
    assert [r.road for r in pp.explain(on)] == ["from C"], str(pp.explain(on))
    assert "from C" in str(pp.explain(on)) and "from C" in pp.explain(on)._repr_html_()
    assert "values and gradients of" in str(pp.explain(on)) and pp.explain(off) == []
    on(*(-v - 1 for v in values), rhs)
    # a tape for certain numbers alone is tried again, and then the matrix is found wanting
    why = ("its tape is not for these values", "its matrix is not definite for sure")
    assert all(r.road.startswith(tuple(f"in Python: {w}" for w in why)) for r in pp.explain(on))


@pytest.mark.skipif(config.get("verify"), reason="there are no tapes under verify=")
@pytest.mark.parametrize("row", graphs.ROWS, ids=lambda row: row.__name__)
def test_every_row_leaves_a_tape(row, monkeypatch, rng):
    """By the C face alone, as it is called from numba: with the bits that Python gives."""
    seen, run = [], ops.results

    def kept(text, arrays, dtypes):
        found = run(text, arrays, dtypes)
        seen.append((f"pytensor\n{text}".encode(), [np.array(a) for a in arrays], found))
        return found

    monkeypatch.setattr(ops, "results", kept)
    inputs, K, values = row(17)
    y = pt.dvector("y")
    rows = K.eval(dict(zip(inputs, values, strict=True))).shape[0]
    f = pp.rewrite(graphs.by_cholesky(K, y))
    g = pytensor.function([*inputs, y], [f, *pytensor.grad(f, [*inputs, y])], mode=PLAIN)
    g(*values, rng.standard_normal(rows))
    assert seen
    for text, arrays, due in seen:
        entry._roads.clear()
        for _ in range(4):
            outs = [np.zeros_like(a) for a in due]
            given = as_c(arrays), len(outs), as_c(outs)
            assert run_program()(text, len(text), len(arrays), *given, 0) == 0
            assert all(np.array_equal(a, b) for a, b in zip(outs, due, strict=True))
        assert entry.road(text.decode()) == "from C"


@pytest.mark.skipif(config.get("verify"), reason="there are no tapes under verify=")
def test_single_precision_runs_from_c():
    W, d, y = pt.fmatrix("W"), pt.fvector("d"), pt.fvector("y")
    K = W @ W.T + pt.diag(d)
    on, off = compiled([W, d, y], graphs.by_cholesky(K, y), [W, d, y], mode="NUMBA")
    r = np.random.default_rng(0)
    for _ in range(4):
        given = r.standard_normal((20, 3)), 0.5 + r.random(20), r.standard_normal(20)
        same(on, off, *(np.float32(v) for v in given), rtol=2e-5)
    assert [r.road for r in pp.explain(on)] == ["from C"], str(pp.explain(on))


def test_blocks_one_by_one():
    parts = [pt.dmatrix(f"A{k}") for k in range(5)]
    y, B = pt.dvector("y"), pt.dmatrix("B")
    K = pt.linalg.block_diag(*parts)
    x = pt.linalg.cho_solve((pt.linalg.cholesky(K), True), B, b_ndim=2)
    f = graphs.by_cholesky(K, y) + pt.sum(pt.sin(x))
    on, off = compiled([*parts, y, B], f, [*parts, y, B], mode="NUMBA")
    sizes = (1, 4, 16, 17, 4)
    values = [graphs.definite(n, k) for k, n in enumerate(sizes)]
    r = np.random.default_rng(5)
    for _ in range(4):
        y, B = r.standard_normal(42), r.standard_normal((42, 3))
        found, due = on(*values, y, B), off(*values, y, B)
        for k, (a, b) in enumerate(zip(found, due, strict=True)):
            if 1 <= k <= 5:  # of a free K all of the derivative is in one triangle there
                a, b = a + a.T, b + b.T
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(b).max())
    values[3] = values[3] - 9 * np.eye(17)
    assert np.isnan(on(*values, y, B)[0]) and np.isnan(off(*values, y, B)[0])


def test_shapes_of_results_from_c():
    arrays, size = ctypes.POINTER(Array), ctypes.c_int64
    sizes = ctypes.POINTER(size)
    given = (ctypes.c_char_p, size, size, arrays, size, sizes, sizes)
    ask = c_face("lop_capi_shapes", ctypes.c_int32, *given)
    spec = ("values", ("sum", ("root", 0), ("diagonal", 1)), (("logdet",), ("solve", 2)), 3)
    back = ("pullback", spec, (0, 1), 2)
    for n, k in ((4, 2), (7, 3)):
        held = [np.ones((n, k)), np.ones(n), np.ones((n, 5)), np.zeros(()), np.ones((n, 5))]
        for program, count, due in ((spec, 3, [(), (n, 5)]), (back, 5, [(n, k), (n,)])):
            text = f"pytensor\n{program!r}".encode()
            ndim, shape = (size * 2)(), (size * 128)()
            assert ask(text, len(text), count, as_c(held[:count]), 2, ndim, shape) == 0
            found = [tuple(shape[64 * j : 64 * j + ndim[j]]) for j in range(2)]
            assert found == due
            assert ask(text, len(text), count - 1, as_c(held[: count - 1]), 2, ndim, shape) == 2
            assert f"of {count} arrays was given {count - 1}" in last_error()[1]
            assert ask(text, len(text), count, as_c(held[:count]), 1, ndim, shape) == 2
            wrong = as_c(held[:count])
            wrong[0].ndim = -1
            assert ask(text, len(text), count, wrong, 2, ndim, shape) == 1


def test_a_program_that_fails_says_so(monkeypatch):
    inputs, K, values = graphs.root(9)
    y = pt.dvector("y")
    on, _ = compiled([*inputs, y], graphs.by_cholesky(K, y), inputs, mode="NUMBA")

    def fails(*args):
        raise MemoryError("no room")

    monkeypatch.setattr(pp.running, "written_into", fails)
    entry._owner.cache_clear()
    with pytest.raises(RuntimeError, match="a program failed"):
        on(*values, np.ones(9))
    entry._owner.cache_clear()
