"""Batches of operators in the iterative methods of solve: all systems in one run."""

import numpy as np
import pytest

import pylinop as pl
from pylinop._iterative import batches

METHODS = ("cg", "minres", "gmres", "fgmres", "bicgstab", "lsqr", "lsmr", "iterative", "block_cg")
DTYPES = ("float32", "float64", "complex64", "complex128")


def rng():
    return np.random.default_rng(4)


def matrices(shape, dtype="float64"):
    g = rng()
    a = g.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * g.standard_normal(shape)
    return (a @ a.conj().mT / shape[-1] + np.eye(shape[-1])).astype(dtype)


def residuals(a, x, b):
    x = x[..., None] if b.ndim == 1 else x
    b = b[:, None] if b.ndim == 1 else b
    return (np.linalg.norm(a @ x - b, axis=-2) / np.linalg.norm(b, axis=-2)).max()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", METHODS)
def test_each_system_is_solved(method, dtype):
    a = matrices((2, 3, 7, 7), dtype)
    g, tight = rng(), 1e-10 if np.finfo(dtype).eps < 1e-10 else 1e-5
    for shape in ((7,), (7, 2), (3, 7, 1), (2, 1, 7, 2), (4, 1, 1, 7, 1)):
        b = g.standard_normal(shape).astype(dtype)
        x = pl.solve(pl.Dense(a), b, method=method)
        want = np.linalg.solve(a, b)
        assert x.shape == want.shape and x.dtype == want.dtype
        assert residuals(a, x, b) <= 1.1 * tight
        np.testing.assert_allclose(x, want, rtol=0, atol=200 * tight)


def test_one_product_an_iteration_for_all():
    a, b = matrices((30, 12, 12)), rng().standard_normal((30, 12, 2))
    with pl.explaining() as e:
        pl.solve(pl.Dense(a), b, method="cg")
    (plan,) = e.plans
    assert "30, 12, 12" in plan and plan._data["iterations"] <= 40
    problem = batches.problem_of(
        pl.Dense(a), b, None, "cg", {"x0": None, "callback": None}, np.dtype(float)
    )
    assert problem.op.shape == (12, 12) and problem.b.shape == (12, 60)


def test_structured_batches_preconditioners_and_first_iterates():
    g = rng()
    d = np.geomspace(1, 1e6, 40) * (1 + g.random((5, 1)))
    a = pl.Diag(d) + pl.Dense(matrices((5, 40, 40)))
    b, dense = g.standard_normal((5, 40, 1)), a.toarray()
    want = np.linalg.solve(dense, b)
    for m in ("jacobi", pl.Diag(1 / d), pl.Diag(1 / d[0])):
        x = pl.solve(a, b, method="cg", M=m)
        assert residuals(dense, x, b) <= 1.1e-10
    x = pl.solve(a, b, method="gmres", M=pl.Diag(1 / d), x0=want)
    np.testing.assert_allclose(x, want, rtol=1e-8)
    x = pl.solve(a, b, method="cg", M=pl.Diag(1 / d), x0="Mb")
    np.testing.assert_allclose(x, want, rtol=1e-6)
    seen = []
    pl.solve(pl.Diag(d[:2, :3]), b[:2, :3], method="cg", callback=seen.append)
    assert {v.shape for v in seen} == {(3, 1)}  # one by one, then


def test_unlike_systems_stop_each_alone():
    g = rng()
    scale = np.array([1e-8, 1.0, 1e8])[:, None, None]
    a = matrices((3, 9, 9)) * scale
    b = g.standard_normal((3, 9, 2))
    b[1, :, 0] = 0
    for method in ("cg", "minres", "gmres", "bicgstab", "lsmr"):
        x = pl.solve(pl.Dense(a), b, method=method)
        assert not x[1, :, 0].any()
        r = np.linalg.norm(a @ x - b, axis=-2)
        assert (r <= 1.1e-10 * np.linalg.norm(b, axis=-2)).all()


def test_a_system_that_is_not_solved_raises_with_all_iterates():
    a = matrices((4, 6, 6))
    a[2] = -a[2]
    b = rng().standard_normal((4, 6))[..., None]
    with pytest.raises(pl.ConvergenceError, match="not positive") as caught:
        pl.solve(pl.Dense(a), b, method="cg")
    best = caught.value.best
    assert best.shape == b.shape
    good = [0, 1, 3]
    assert residuals(a[good], best[good], b[good]) <= 1e-9
    x = pl.solve(pl.Dense(a), b, method="iterative")  # minres then
    assert residuals(a, x, b) <= 1.1e-10


def test_memory_decides_and_is_stated():
    n = 64
    a, b = pl.Diag(1 + rng().random((50, n))), rng().standard_normal((50, n, 1))
    said = a.explain("solve", b, method="cg")
    assert said.memory >= 13 * b.nbytes
    with pl.config(memory_limit=4 * b.nbytes):
        assert a.explain("solve", b, method="cg").memory < b.nbytes * 4
        x = pl.solve(a, b, method="cg")
    np.testing.assert_allclose(x, b / a.diagonal()[..., None], rtol=1e-8)


def test_small_and_empty_batches():
    for shape in ((0, 3, 3), (1, 3, 3), (3, 1, 1), (2, 0, 0)):
        a = np.broadcast_to(np.eye(shape[-1]) * 2, shape)
        b = np.ones((*shape[:-1], 2))
        np.testing.assert_array_equal(pl.solve(pl.Dense(a), b, method="cg"), b / 2)
    a = np.broadcast_to(np.eye(3, dtype=int) * 2, (2, 3, 3))
    np.testing.assert_allclose(pl.solve(pl.Dense(a), np.ones(3, int), method="gmres"), 0.5)
