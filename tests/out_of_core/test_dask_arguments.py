"""pylinop.dask: what users try: wrong types, wide dtypes, shared engines, broken files."""

import os
import threading

import numpy as np
import pytest
from block_problems import TIGHT, close, problem, sparse, write_problem

import pylinop as pl
import pylinop.dask as pld

sp = pytest.importorskip("scipy.sparse")


@pytest.fixture
def folder(tmp_path, rng):
    return write_problem(tmp_path, rng)


def test_operators_that_are_none(rng):
    A, b = problem(rng)
    for other in (A, A.toarray(), pl.lazy(A.toarray()), pl.Sparse(A), None):
        for call in (pld.lsmr, pld.cgls, pld.cg):
            with pytest.raises(TypeError, match=f"{call.__name__} takes a BlockOperator, got"):
                call(other, b)
        for call in (pld.gram, pld.qr, pld.norm_squared):
            with pytest.raises(TypeError, match=f"{call.__name__} takes a BlockOperator, got"):
                call(other)
    want = pld.trace_estimate(pld.from_array(A), 4, rng=0, normal=True)
    got = pld.trace_estimate(A, 4, rng=0, normal=True)
    assert got.value == pytest.approx(want.value)


def test_right_sides_and_starts(rng):
    A, b = problem(rng)
    op = pld.from_array(A, 3000)
    want = pld.lsmr(op, b, **TIGHT)[0]
    for same in (
        sp.csr_array(b[:, np.newaxis]),
        b[np.newaxis],
        pl.lazy(b),
        b.tolist(),
        b[::-1][::-1],
    ):
        close(pld.lsmr(op, same, **TIGHT)[0], want, 1e-12)
        close(pld.cgls(op, same, rtol=1e-10)[0], want)
    x0 = sp.csr_array(want[:, np.newaxis])
    assert pld.lsmr(op, b, x0=x0).record.iterations <= 1
    S = pld.BlockOperator([np.diag([1.0, 2.0])])
    x, info = pld.cg(S, [1.0, 1.0], x0=[1j, 1j], rtol=1e-12)  # no part of x0 is dropped
    close(x, [1.0, 0.5])
    assert x.dtype == complex and info == 0
    refused = [
        (lambda: pld.lsmr(op, b.astype(object)), TypeError, "b has dtype object"),
        (lambda: pld.lsmr(op, b.astype(np.longdouble)), TypeError, "b has dtype"),
        (lambda: pld.lsmr(op, np.ma.masked_array(b, b > 0)), TypeError, "b is masked"),
        (lambda: pld.cgls(op, b, x0="no"), FileNotFoundError, "no"),
        (lambda: pld.lsmr(op, np.stack([b, b])), ValueError, r"b has shape \(2, 600\)"),
        (lambda: pld.lsmr(op, b, damp=np.nan), ValueError, "damp=nan"),
        (lambda: pld.cgls(op, b, damp=np.inf), ValueError, "damp=inf"),
        (lambda: pld.lsmr(op, b, x0=np.full(40, np.nan)), pl.LinAlgError, "x0 hold NaN"),
        (lambda: pld.lsmr(op, b, progress="yes"), TypeError, "progress is True"),
    ]
    for call, error, text in refused:
        with pytest.raises(error, match=text):
            call()


def test_dtypes_of_blocks(tmp_path):
    a = np.ones((3, 2))
    for bad, dtype, text in [
        (a.astype(np.longdouble), None, "block 0 has dtype"),
        (a.astype(object), None, "dtype object"),
        (a.astype(str), None, "dtype <U"),
        (a + 1j, float, "which dtype=float64 does not hold"),
        (np.ma.masked_array(a, a > 0), None, "masked"),
        (a, "M8[s]", "dtype=datetime"),
    ]:
        with pytest.raises(TypeError, match=text):
            pld.BlockOperator([bad], dtype=dtype)
    wide = pld.BlockOperator([a.astype(np.longdouble)], dtype=float)
    assert (wide @ np.ones(2)).tolist() == [2.0] * 3
    for bad in (np.ma.masked_array(a, a > 0), a.astype(object)):
        with pytest.raises(TypeError, match="masked|not one of numbers"):
            pld.write_blocks(bad, tmp_path)
        with pytest.raises(TypeError, match="masked|not one of numbers"):
            pld.write_blocks(iter([bad]), tmp_path)
    with pytest.raises(ValueError, match="not two dimensions"):
        pld.BlockOperator([np.ones(3)])
    close(pld.from_array([[1, 2], [3, 4]]) @ np.ones(2), [3.0, 7.0], 0)
    close(pld.from_array(pl.lazy(a)) @ np.ones(2), [2.0] * 3, 0)


def test_diagonal_of_columns(rng):
    a = rng.standard_normal((30, 40))
    A = pld.BlockOperator([a[:, :7], sp.csr_array(a[:, 7:20]), a[:, 20:]], axis=1, workers=2)
    for k in (0, 3, -11, 39, -29):
        close(A.diagonal(k), np.diagonal(a, k), 1e-15)
    square = pld.BlockOperator([a[:, :7], a[:, 7:30]], axis=1)
    assert pl.trace(square) == pytest.approx(np.trace(a[:, :30]))


@pytest.mark.parametrize("make", [pld.Serial, pld.Threads])
def test_an_engine_for_two_operators(make):
    """An engine has the parts of one operator; the other one's are placed again when asked."""
    x = np.ones(3)
    with make(2) as engine:
        A = pld.BlockOperator([np.eye(3), np.eye(3)], engine=engine)
        B = pld.BlockOperator([2 * np.eye(3)], engine=engine)
        for _ in range(2):
            assert (A @ x).tolist() == [1.0] * 6 and (B @ x).tolist() == [2.0] * 3
        A.close()  # of no concern to B
        assert (B @ x).tolist() == [2.0] * 3
    assert (B @ x).tolist() == [2.0] * 3  # the engine was closed; it starts again
    engine.close()


def test_limit_of_the_configuration(folder):
    path, A, _ = folder
    total = sum(b.nbytes for b in pld.open_blocks(path / "A").blocks)
    with pl.config(memory_limit=total // 2 + 17000):
        op = pld.open_blocks(path / "A", workers=2)
        assert sum(p["kept"] for p in op.plan().parts) < total
        close(op @ np.ones(40), A @ np.ones(40), 1e-13)
    with pl.config(memory_limit=9000), pytest.raises(MemoryError, match="memory_limit=9,000"):
        pld.open_blocks(path / "A", workers=2) @ np.ones(40)


def test_broken_checkpoints(folder, tmp_path):
    path, A, b = folder
    op = pld.open_blocks(path / "A", workers=2)
    with pytest.raises(FileNotFoundError, match="there is no folder"):  # before anything is done
        pld.lsmr(op, b, checkpoint=tmp_path / "no" / "c.npz")
    saved = tmp_path / "c.npz"
    want = pld.lsmr(op, b, **TIGHT)
    pld.lsmr(op, b, checkpoint=saved, checkpoint_every=4, maxiter=9, **TIGHT)
    whole = saved.read_bytes()
    np.save(tmp_path / "x.npy", np.ones(3))
    for broken in (whole[: len(whole) // 2], b"", b"text", (tmp_path / "x.npy").read_bytes()):
        (tmp_path / "broken.npz").write_bytes(broken)
        with pytest.raises(ValueError, match="not a checkpoint"):
            pld.lsmr(op, b, resume=tmp_path / "broken.npz")
    # the same matrix in other blocks: u is cut anew
    other = pld.from_array(A, 9000, workers=3)
    assert len(other.blocks) != len(op.blocks)
    got = pld.lsmr(other, b, resume=saved, **TIGHT)
    assert got.record.resumed == 8 and got.record.restarts == 0
    close(got[0], want[0], 1e-9)
    # another matrix, another right side: the true residual does not confirm, and it begins anew
    twice = pld.from_array((2 * A).tocsr(), 4000, workers=2)
    close(pld.lsmr(twice, b, resume=saved, **TIGHT)[0], want[0] / 2, 1e-8)
    close(pld.lsmr(op, 3 * b, resume=saved, **TIGHT)[0], 3 * want[0], 1e-8)


def test_files_that_go(folder):
    """A block file that is gone, short or of other numbers half-way: an error that names it."""
    path, _, b = folder
    need = max(
        p["vectors"] + p["largest"]
        for p in pld.open_blocks(path / "A", engine="serial").plan().parts
    )
    op = pld.open_blocks(path / "A", engine="serial", memory_limit=need + 100)
    assert sum(p["kept"] for p in op.plan().parts) == 0
    victim = op.blocks[3].parts[2].path
    content = np.load(victim)
    count = []

    def change(x):
        count.append(1)
        if len(count) == 3:
            action()

    for action, error, text in [
        (lambda: os.unlink(victim), FileNotFoundError, "000003.data.npy"),
        (lambda: np.save(victim, content[:-5]), ValueError, "sizes named|ascend|shape"),
        (lambda: os.truncate(victim, 200), ValueError, "has 200 bytes; its header says float64"),
        (lambda: os.truncate(victim, 20), ValueError, "EOF"),
        (lambda: np.save(victim, content * np.nan), pl.LinAlgError, "not finite"),
    ]:
        count.clear()
        with pytest.raises(error, match=text):
            pld.lsmr(op, b, callback=change, **TIGHT)
        np.save(victim, content)
    good = pld.lsmr(op, b, **TIGHT)  # all is usable again
    assert good[1] == 2 and good.record.losses == 0


def test_empty_blocks(rng):
    A, b = problem(rng)
    blocks = [A[:0], A[:300], np.zeros((0, 40)), A[300:], A[:0]]
    for workers in (1, 3, 5):
        op = pld.BlockOperator(blocks, workers=workers)
        close(pld.lsmr(op, b, **TIGHT)[0], pld.lsmr(pld.from_array(A), b, **TIGHT)[0], 1e-9)
        close(pld.gram(op), (A.T @ A).toarray(), 1e-13)
        Q, R = pld.qr(op, "tsqr")
        close(Q @ R, A.toarray(), 1e-12)
    nan = A.toarray()
    nan[5, 5] = np.nan
    for method in ("auto", "cholesky", "tsqr"):
        with pytest.raises(pl.LinAlgError, match="not finite"):
            pld.qr(pld.BlockOperator([nan[:300], nan[300:]]), method)


def test_a_part_answers_one_question_at_a_time(rng):
    """Of an interrupted question a thread may still be at work when the next one comes."""
    busy = []

    class Slow:
        mapped, shape, dtype, nbytes = False, (2, 2), np.dtype(float), 10**18

        def load(self):
            busy.append(1)
            together.append(len(busy))
            threading.Event().wait(0.02)
            busy.pop()
            return np.eye(2)

    together = []
    op = pld.BlockOperator([Slow()], memory_limit=4 * 10**18, engine="serial")
    op.plan()
    part = (op @ np.ones(2), op.engine._parts[0])[1]
    part._kept.clear()
    part.spec = part.spec._replace(budget=0)
    threads = [threading.Thread(target=part.call, args=("squares", ())) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(together) == 4 and max(together) == 1


@pytest.mark.parametrize("kind", "fF")
def test_narrow_entries_stay_narrow(rng, tmp_path, kind):
    """float32 entries are widened as they are read; 32-bit indices stay too."""
    wide = "d" if kind == "f" else "D"
    A = sparse(rng, 200, 30, 0.2, kind)
    pld.write_blocks([A[:90], A[90:].toarray()], tmp_path)
    op = pld.open_blocks(tmp_path, engine="serial")
    assert op.dtype == kind
    b = A.astype(wide) @ np.ones(30)
    close(pld.lsmr(op, b, **TIGHT)[0], np.ones(30), 1e-10)  # not those of a float32 product
    kept = op.engine._parts[0]._kept
    assert kept[0].data.dtype == kind and kept[0].index == "i" and kept[1].a.dtype == kind
    both = pld.BlockOperator([A[:90], A[90:].astype(wide)])
    for X in (np.ones(30), rng.standard_normal((30, 3)), np.ones((30, 2), "f")):
        close(both @ X, A.astype(wide) @ X, 1e-14)
        close(op @ X, A.astype(np.result_type(kind, X)) @ X, 1e-6 if X.dtype == "f" else 1e-14)
        Y = A.astype(wide) @ X
        close(both.H @ Y, A.astype(wide).conj().T @ Y, 1e-14)
        close(op.H @ Y, A.astype(wide).conj().T @ Y, 1e-14)
    close(pld.gram(both), (A.astype(wide).conj().T @ A.astype(wide)).toarray(), 1e-14)
    exact = np.linalg.norm(A.astype(wide).toarray()) ** 2
    assert pld.norm_squared(op) == pytest.approx(exact, rel=1e-14)


@pytest.mark.parametrize("dtype", ["f8", "i4", ">f8"])
def test_later_writes_are_seen(dtype):
    a = np.ones((4, 3), dtype)
    s = sp.csr_array(a.astype(np.dtype(dtype).newbyteorder("=")))
    op = pld.BlockOperator([a, s], workers=2)
    assert (op @ np.ones(3)).tolist() == [3.0] * 8
    a[1, 1], s.data[0] = 5, 7
    assert (op @ np.ones(3)).tolist() == [3, 7, 3, 3, 9, 3, 3, 3]
    assert (op.T @ np.ones(8)).tolist() == [14, 12, 8]
