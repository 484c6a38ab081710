"""pylinop.dask on two workers of dask: what lies there, every solver, checkpoints, deaths."""

import os

import numpy as np
import pytest
from block_problems import TIGHT, close, problem, sparse

import pylinop as pl
import pylinop.dask as pld

sp = pytest.importorskip("scipy.sparse")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client():
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(processes=True, **settings) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def test_solvers(client, rng, tmp_path):
    """What threads give with these parts, bit by bit; begun on the cluster, ended in threads."""
    A, b = problem(rng)
    S, c = (A.T @ A + sp.eye_array(40)).tocsr(), rng.standard_normal(40)
    saved = tmp_path / "c.npz"
    for B, d, solve, options in [
        (A, b, pld.lsmr, {"M": "block_jacobi", **TIGHT}),
        (A, b, pld.cgls, {"M": "jacobi", "rtol": 1e-10}),
        (S, c, pld.cg, {"M": "block_jacobi", "rtol": 1e-10}),
    ]:
        here = pld.from_array(B, 3000, engine="serial", parts=2)
        want = solve(here, d, **options)
        seen = []
        with pld.from_array(B, 3000, engine=client) as op:
            got = solve(op, d, progress=lambda *said: seen.append(said[0]), **options)
            assert (got[0] == want[0]).all() and got[1:] == want[1:]
            assert seen == list(range(1, got.record.iterations + 1))
            solve(op, d, checkpoint=saved, checkpoint_every=4, maxiter=6, **options)
            again = solve(here, d, resume=saved, **options)
            assert again.record.resumed == 4 and (again[0] == want[0]).all()
            again = solve(op, d, resume=saved, **options)
            assert again.record.resumed == 4 and (again[0] == want[0]).all()


def test_the_rest(client, rng):
    """Gram matrices, QR by tree, traces, diagonals; and after a death they are the same."""
    A, _ = problem(rng)
    a = A.toarray()
    S = (A.T @ A).tocsr()
    with (
        pld.from_array(A, 3000, engine=client) as op,
        pld.from_array(S, 3000, engine=client) as square,
    ):
        for alive in (True, False):
            if not alive:
                op.engine
                os.kill(client.run(os.getpid)[op.engine._actors[1][1]], 9)
            close(pld.gram(op), a.T @ a, 1e-13)
            assert op.engine.losses == (not alive)
        for method in ("cholesky", "tsqr"):
            Q, R = pld.qr(op, method)
            close(Q @ R, a, 1e-12)
            close(np.abs(R), np.abs(np.linalg.qr(a)[1]), 1e-10)
        assert pld.norm_squared(op) == pytest.approx((a**2).sum())
        assert pl.trace(square) == pytest.approx((a**2).sum())
        close(square.diagonal(3), np.diagonal(S.toarray(), 3), 1e-13)
        got = pld.trace_estimate(square, 100, rng=1)
        assert abs(got.value - (a**2).sum()) < 5 * got.error


def test_frames_on_workers(client, rng):
    """A persisted frame of triplets: partitions go from worker to worker, none through here."""
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    A = sparse(rng, 80, 9, 0.3).tocoo()
    order = np.argsort(A.coords[0], kind="stable")
    frame = pd.DataFrame({"row": A.coords[0], "col": A.coords[1], "value": A.data}).iloc[order]
    cuts = np.flatnonzero(np.diff(frame["row"]))[[20, 40]] + 1
    pieces = [
        dd.from_pandas(frame.iloc[p], npartitions=1) for p in np.split(range(len(order)), cuts)
    ]
    with client.as_current():
        lies, indexed = (
            d.persist()
            for d in (dd.concat(pieces), dd.from_pandas(frame.set_index("row"), npartitions=3))
        )
    x, y = rng.standard_normal(9), rng.standard_normal(80)
    for d in (lies, indexed):
        for engine in ("threads", client):
            with pld.from_triplets(d, (80, 9), engine=engine, workers=2) as op:
                assert len(op.blocks) == d.npartitions
                close(op @ x, A @ x, 1e-13)
                close(op.T @ y, A.T @ y, 1e-13)
                if engine is client:
                    specs = op._specs
                    assert not any(b.__getstate__()["futures"] for s in specs for b in s.blocks)
    with client.as_current(), pytest.raises(ValueError, match="persist.. it too"):
        pld.from_triplets(lies.assign(value=2 * lies["value"]), (80, 9))
    for bad, text in [((80, 5), "'col' of a partition holds"), ((9, 9), "rows= is|share|holds")]:
        with pytest.raises(ValueError, match=text):
            pld.from_triplets(lies, bad, engine=client) @ np.ones(bad[1])


def counted(m, n, seed, home):
    """A block that notes each time it is read."""
    with open(os.path.join(home, f"{seed}"), "a") as f:
        f.write("x")
    return np.random.default_rng(seed).standard_normal((m, n))


@pytest.mark.parametrize("axis", [0, 1])
def test_one_question_and_one_reading_an_iteration(rng, tmp_path, axis):
    """Each block is read once an iteration, and once to begin, for b and for the true residual."""
    shape = (60, 20) if axis == 0 else (20, 60)
    home = str(tmp_path)
    blocks = [pld.Call(counted, shape, args=(*shape, seed, home)) for seed in range(3)]
    plan = pld.BlockOperator(blocks, axis, engine="serial").plan()
    need = max(p["vectors"] + p["largest"] for p in plan.parts)
    op = pld.BlockOperator(blocks, axis, engine="serial", memory_limit=need + 100)
    assert sum(p["kept"] for p in op.plan().parts) == 0
    asked, engine = [], op.engine
    gather = engine.gather
    engine.gather = lambda method, *a, **k: asked.append(method) or gather(method, *a, **k)
    reads = []
    for iterations in (3, 7):
        for name in os.listdir(home):
            os.unlink(os.path.join(home, name))
        asked.clear()
        b = np.ones(op.shape[0])
        assert pld.lsmr(op, b, maxiter=iterations, atol=0, btol=0, conlim=0)[2] == iterations
        sizes = {os.path.getsize(os.path.join(home, name)) for name in os.listdir(home)}
        assert len(sizes) == 1
        reads.append((sizes.pop(), len(asked)))
    assert reads[1][0] - reads[0][0] == 4 == reads[1][1] - reads[0][1]
    assert reads[0][0] - 3 <= 3
