"""pylinop.dask: the kernel, blocks of all sources, products, memory, the pages."""

import doctest
import inspect
import os
import pickle

import numpy as np
import pytest
from block_problems import close, python, solution, sparse, write_problem

import pylinop as pl
import pylinop.dask as pld
from pylinop.dask import blocks as sources

sp = pytest.importorskip("scipy.sparse")
sl = pytest.importorskip("scipy.sparse.linalg")


@pytest.fixture
def folder(tmp_path, rng):
    return write_problem(tmp_path, rng)


# -- the kernel ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("index", "iq")
def test_step(rng, dtype, index):
    A = sparse(rng, 3000, 500, 0.05, dtype)  # more entries than one piece takes
    m, n = A.shape
    kind = np.int32 if index == "i" else np.int64
    ptr, ix = A.indptr.astype(kind), A.indices.astype(kind)
    v, u, w = (rng.standard_normal(k).astype(dtype) for k in (n, m, n))
    eps = np.finfo(dtype).eps
    new, w_new = u.copy(), w.copy()
    got = pl._core._csr_step(dtype, index, dtype, m, n, ptr, ix, A.data, 0.7, v, new, w_new)
    want = A.astype("D") @ v - 0.7 * u
    assert np.abs(new - want).max() <= 50 * eps * np.abs(want).max()
    want = w + A.astype("D").conj().T @ new.astype("D")
    assert np.abs(w_new - want).max() <= 500 * eps * np.abs(want).max()
    assert got == pytest.approx(np.linalg.norm(new.astype("D")) ** 2, rel=1e-12)
    # parts of it alone; with alpha = 0 u is not read
    alone = np.full(m, np.nan, dtype)
    pl._core._csr_step(dtype, index, dtype, m, n, ptr, ix, A.data, 0.0, v, alone, None)
    assert np.abs(alone - A @ v).max() <= 50 * eps * np.abs(v).max() * n
    w_new[...] = 0
    pl._core._csr_step(dtype, index, dtype, m, n, ptr, ix, A.data, 0.0, None, u, w_new)
    assert np.abs(w_new - A.conj().T @ u).max() <= 500 * eps * m


@pytest.mark.parametrize("dtype", ["fd", "FD"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_step_of_narrow_entries(rng, dtype, index):
    """Widened as they are read: the same bits as of entries that are wide already."""
    A = sparse(rng, 3000, 500, 0.05, dtype[0])
    ptr, ix, (m, n) = A.indptr.astype(index), A.indices.astype(index), A.shape
    char = np.dtype(index).char if index is np.int32 else "q"
    found = []
    for entries in dtype:
        v, u, w = (np.linspace(-1, 2, k).astype(dtype[1]) for k in (n, m, n))
        data = A.data.astype(entries)
        ssq = pl._core._csr_step(entries, char, dtype[1], m, n, ptr, ix, data, 0.7, v, u, w)
        found.append((ssq, u, w))
    assert found[0][0] == found[1][0]
    assert (found[0][1] == found[1][1]).all() and (found[0][2] == found[1][2]).all()
    with pytest.raises(ValueError, match="sizes named"):  # narrower vectors than entries
        args = (m, n, ptr, ix, A.data.astype(dtype[1]), 0.0, v.astype(dtype[0]), u, w)
        pl._core._csr_step(dtype[1], char, dtype[0], *args)
    for bad in ("fF", "dD", "fD", "df"):
        u, w = np.zeros(m, bad[1]), np.zeros(n, bad[1])
        with pytest.raises(ValueError, match="sizes named"):
            data = A.data.real.astype(bad[0])
            pl._core._csr_step(bad[0], char, bad[1], m, n, ptr, ix, data, 0.0, w, u, None)


def test_step_checks_memory(rng):
    A = sparse(rng, 5, 4, 0.5)
    step = pl._core._csr_step
    v, u, w = np.ones(4), np.ones(5), np.ones(4)
    ptr, ix, data = A.indptr, A.indices, A.data

    def run(letter="d", index="i", vectors="d", m=5, n=4, p=ptr, i=ix, d=data, v=v, u=u, w=w):
        return step(letter, index, vectors, m, n, p, i, d, 1.0, v, u, w)

    assert run() >= 0
    for bad in (
        {"letter": "i"},
        {"letter": "F"},
        {"index": "d"},
        {"index": "q"},
        {"m": 4},
        {"n": 5},
        {"m": -1},
        {"v": v[:3]},
        {"u": u[:4]},
        {"w": w[:3]},
        {"d": np.zeros(8 * data.size + 1, np.uint8)[1:].view(float)},
    ):
        with pytest.raises(ValueError, match="sizes named"):
            run(**bad)
    outside, before, back = ix.copy(), ix.copy(), ptr.copy()
    outside[-1], before[0] = 4, -1
    back[2] = back[-1] + 1
    for bad in ({"i": outside}, {"i": before}, {"p": back}, {"d": data[:-1]}, {"i": ix[:-1]}):
        with pytest.raises(ValueError, match="ascend"):
            run(**bad)
    for bad in ({"v": None, "i": outside}, {"w": None, "i": before}):
        with pytest.raises(ValueError, match="ascend"):
            run(**bad)
    with pytest.raises((ValueError, BufferError, TypeError)):
        run(u=np.broadcast_to(1.0, 5))


# -- blocks and products ---------------------------------------------------------------------------


def made(n, scale):
    return sp.csr_array(scale * np.arange(3.0 * n).reshape(3, n))


def test_sources(tmp_path, rng):
    a = rng.standard_normal((6, 4))
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "f.npy", np.asfortranarray(a))
    np.savez(tmp_path / "one.npz", a)
    np.savez(tmp_path / "two.npz", a=a, b=2 * a)
    for form in ("csr", "csc", "coo"):
        sp.save_npz(tmp_path / f"{form}.npz", sp.csr_array(a).asformat(form))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    blocks = [
        (tmp_path / "a.npy", a),
        (str(tmp_path / "f.npy"), a),
        (pld.Npy(tmp_path / "a.npy", 1, 4), a[1:4]),
        (tmp_path / "one.npz", a),
        (pld.Npz(tmp_path / "two.npz", "b"), 2 * a),
        *((tmp_path / f"{form}.npz", a) for form in ("csr", "csc", "coo")),
        (pld.Call(made, (3, 4), args=(4, 2.0)), made(4, 2.0).toarray()),
        (mapped[2:5], a[2:5]),
        (mapped[1:5][1:3], a[2:4]),
        (mapped[::2], a[::2]),
        (a.astype(np.int8), a.astype(np.int8)),
        (a.astype(">f4"), a.astype("f4")),
        (sp.bsr_array(a), a),
    ]
    full = np.vstack([values for _, values in blocks])
    A = pld.BlockOperator([block for block, _ in blocks], workers=2)
    assert A.shape == full.shape and A.dtype == float
    X = rng.standard_normal((4, 3))
    close(A @ X, full @ X, 1e-14)
    close(A.T @ (full @ X), full.T @ full @ X, 1e-14)
    close(A @ X[:, 0], full @ X[:, 0], 1e-14)
    assert isinstance(A.blocks[9], pld.Npy) and A.blocks[9].start == 2  # a path, not values
    assert isinstance(A.blocks[10], pld.Npy) and A.blocks[10].start == 2
    assert isinstance(A.blocks[11], pld.InMemory)
    for block, (_, values) in zip(A.blocks, blocks, strict=True):
        assert isinstance(block, pld.Block) and block.nbytes >= values.size and block.load().shape
        again = pickle.loads(pickle.dumps(block))
        assert again.shape == values.shape and again.dtype == block.dtype
    A.close()


def test_sources_that_are_none(tmp_path):
    np.savez(tmp_path / "two.npz", a=np.ones(3), b=np.ones(3))
    np.save(tmp_path / "number.npy", np.float64(3))
    np.save(tmp_path / "objects.npy", np.array([[None]]), allow_pickle=True)
    for bad, error, text in [
        (tmp_path / "two.npz", ValueError, "say which"),
        (tmp_path / "x.csv", ValueError, "neither in .npy"),
        (tmp_path / "number.npy", ValueError, "single number"),
        (tmp_path / "objects.npy", ValueError, "objects"),
        (tmp_path / "missing.npy", FileNotFoundError, "missing"),
        (3.0, TypeError, "float"),
    ]:
        with pytest.raises(error, match=text):
            pld.as_block(bad)
    with pytest.raises(ValueError, match="not 'c'"):
        pld.Npz(tmp_path / "two.npz", "c")
    with pytest.raises(ValueError, match="block 1 has shape"):
        pld.BlockOperator([np.ones((2, 3)), np.ones((2, 2))])
    with pytest.raises(ValueError, match="at least one block"):
        pld.BlockOperator([])
    with pytest.raises(ValueError, match="axis=2"):
        pld.BlockOperator([np.ones((2, 3))], axis=2)
    with pytest.raises(ValueError, match="engine="):
        pld.BlockOperator([np.ones((2, 3))], engine="gpu").matvec(np.ones(3))
    with pytest.raises(ValueError, match="workers=0"):
        pld.BlockOperator([np.ones((2, 3))], workers=0)
    lies = pld.BlockOperator([pld.Call(made, (3, 5), args=(4, 2.0))])
    with pytest.raises(ValueError, match=r"\(3, 4\) came where \(3, 5\)"):
        lies @ np.ones(5)


def test_zarr(tmp_path, rng):
    zarr = pytest.importorskip("zarr")
    a = rng.standard_normal((50, 4))
    z = zarr.open(str(tmp_path / "a.zarr"), mode="w", shape=a.shape, chunks=(8, 4), dtype="f8")
    z[...] = a
    A = pld.from_array(z, 600)
    assert len(A.blocks) > 2 and isinstance(A.blocks[0], pld.Zarr)
    close(A @ np.ones(4), a @ np.ones(4), 1e-14)
    x = pickle.loads(pickle.dumps(A)).T @ (a @ np.ones(4))  # a path travels, not values
    close(x, a.T @ a @ np.ones(4), 1e-14)
    group = zarr.open_group(str(tmp_path / "g.zarr"), mode="w")
    inner = group.create_array("deep/a", shape=a.shape, chunks=(50, 2), dtype="f4")
    inner[...] = a
    B = pld.from_array(inner, 300, engine="serial")
    assert B.dtype == np.float32 and [b.shape for b in B.blocks] == [(50, 4)]
    close(B @ np.ones(4, "f"), a @ np.ones(4), 1e-6)
    memory = pld.from_array(zarr.array(a, chunks=(8, 4)), 600)
    assert isinstance(memory.blocks[0], pld.InMemory)
    close(memory @ np.ones(4), a @ np.ones(4), 1e-14)
    with pytest.raises(ValueError, match="two dimensions"):
        pld.from_array(zarr.array(np.ones(3)))
    block = pld.Zarr(str(tmp_path / "a.zarr"), None, 40, 60)  # no more rows than there are
    assert block.shape == (10, 4) and (block.load() == a[40:]).all()
    with pytest.raises(FileNotFoundError):
        pld.Zarr(str(tmp_path / "none.zarr"))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", "fdFD")
def test_products(rng, axis, dtype):
    whole = sparse(rng, 60, 50, 0.2, dtype).toarray()
    cuts = [0, 7, 7, 30, 31, whole.shape[axis]]
    blocks = [
        np.take(whole, range(lo, hi), axis) for lo, hi in zip(cuts[:-1], cuts[1:], strict=True)
    ]
    blocks[3], blocks[4] = sp.csr_array(blocks[3]), sp.csc_array(blocks[4])
    A = pld.BlockOperator(blocks, axis=axis, workers=3)
    assert A.dtype == dtype and A.shape == whole.shape
    eps = 100 * float(np.finfo(dtype).eps)
    for x in (
        rng.standard_normal(50),
        rng.standard_normal(50) + 1j,
        rng.standard_normal((50, 3)).astype(dtype),
        rng.standard_normal((3, 50)).T + 2j,
        rng.standard_normal((2, 50, 3)),
        np.arange(50),
        np.zeros((50, 0)),
    ):
        got, want = A @ x, whole @ x
        assert got.dtype == np.result_type(A.dtype, x.dtype) and got.shape == want.shape
        assert np.linalg.norm(got - want) <= eps * np.linalg.norm(want)
    y = rng.standard_normal(60)
    close(A.H @ y, whole.conj().T @ y, eps)
    close(A.T @ y, whole.T @ y, eps)
    close((2 * A.H @ A) @ np.ones(50), 2 * whole.conj().T @ whole @ np.ones(50), eps)
    assert pl.check_adjoint(A, rng=rng) < eps
    assert pld.norm_squared(A) == pytest.approx(np.linalg.norm(whole) ** 2, rel=eps)
    with pytest.raises(TypeError, match="does not compute in"):
        A @ np.ones(50, np.longdouble)
    A.close()


def test_diagonal_and_trace(rng):
    a = rng.standard_normal((30, 30))
    A = pld.BlockOperator([a[:7], sp.csr_array(a[7:20]), a[20:]], workers=2)
    for k in (0, 3, -11, 29, -29):
        close(A.diagonal(k), np.diagonal(a, k), 1e-15)
    assert pl.trace(A) == pytest.approx(np.trace(a))


def test_written_and_opened(tmp_path, rng):
    A = sparse(rng, 500, 30)
    for what, blocks in [
        (A, 4),
        (A.tocsc(), 4),
        (A.toarray(), 4),
        ((A[i : i + 100] for i in range(0, 500, 100)), 5),
        ([A.toarray()[:1], A[1:]], 2),
        (A[:0], 1),
    ]:
        pld.write_blocks(what, tmp_path, 6000 if what is not None else 1)
        B = pld.open_blocks(tmp_path, workers=2)
        assert len(B.blocks) >= blocks and sum(b.shape[0] for b in B.blocks) == B.shape[0]
        want = A[: B.shape[0]]
        close(B @ np.ones(30), want @ np.ones(30), 1e-13)
        B.close()
    with pytest.raises(ValueError, match="no block"):
        pld.write_blocks([], tmp_path)
    with pytest.raises(FileNotFoundError):  # the old index is gone: nothing half new is opened
        pld.open_blocks(tmp_path)
    with pytest.raises(ValueError, match="block 1 has shape"):
        pld.write_blocks([np.ones((1, 2)), np.ones((1, 3))], tmp_path)
    with pytest.raises(ValueError, match="block_bytes"):
        pld.write_blocks(A, tmp_path, 0)
    with pytest.raises(ValueError, match="two dimensions"):
        pld.from_array(np.ones(3))


def test_as_an_operator(rng, folder):
    """In expressions, in SciPy's functions, pickled; later writes are seen."""
    _, A, b = folder
    op = pld.open_blocks(folder[0] / "A", workers=2)
    assert isinstance(op, sl.LinearOperator)
    close(sl.lsqr(op, b, atol=1e-12, btol=1e-12)[0], solution(A, b))
    D = pl.Diag(np.arange(1.0, 601))
    close((D @ op) @ np.ones(40), np.arange(1.0, 601) * (A @ np.ones(40)), 1e-13)
    again = pickle.loads(pickle.dumps(op))
    assert (again @ np.ones(40) == op @ np.ones(40)).all()
    a = np.ones((4, 2))
    B = pld.BlockOperator([a[:2], a[2:]])
    before = B @ np.ones(2)
    a[0, 0] = 5
    assert (B @ np.ones(2) - before).tolist() == [4, 0, 0, 0]


# -- memory ----------------------------------------------------------------------------------------


def test_plan(folder):
    path, A, _ = folder
    op = pld.open_blocks(path / "A", workers=2)
    plan = op.plan()
    assert [p["rows"] for p in plan.parts] == [
        sum(b.shape[0] for b in s.blocks) for s in (op @ np.ones(40), op._specs)[1]
    ]
    total = sum(b.nbytes for b in op.blocks)
    assert sum(p["bytes"] for p in plan.parts) == total == sum(p["kept"] for p in plan.parts)
    assert plan.bytes_per_iteration == 2 * 8 * 40 and "limit: none" in str(plan)
    small = pld.open_blocks(path / "A", workers=2, memory_limit=total // 2 + 17000)
    plan = small.plan()
    assert 0 < sum(p["kept"] for p in plan.parts) < total
    assert sum(p["memory"] for p in plan.parts) <= total // 2 + 17000
    close(small @ np.ones(40), A @ np.ones(40), 1e-14)
    assert sum(part._held for part in small.engine._parts) == sum(p["kept"] for p in plan.parts)
    with pytest.raises(MemoryError, match="memory_limit=9,000 bytes, but a worker needs"):
        pld.open_blocks(path / "A", workers=2, memory_limit=9000) @ np.ones(40)
    with pytest.raises(ValueError, match="memory_limit=0"):
        pld.open_blocks(path / "A", memory_limit=0)


LARGER = """
    import resource, sys, threading
    import numpy as np
    import pylinop.dask as pld

    def level(field):
        for line in open("/proc/self/status"):
            if line.startswith(field):
                return 1024 * int(line.split()[1])

    threading.stack_size(1 << 18)  # a second thread may come later than the limit
    limit = 40 << 20
    A = pld.open_blocks(sys.argv[1], engine="threads", workers=2, memory_limit=limit)
    size = sum(b.nbytes for b in A.blocks)
    A @ np.zeros(A.shape[1])  # threads and their stacks are there
    A.close()
    resource.setrlimit(resource.RLIMIT_AS, (level("VmSize") + limit,) * 2)
    open("/proc/self/clear_refs", "w").write("5")
    before = level("VmRSS")
    x, istop, itn, normr, *_ = pld.lsmr(A, sys.argv[2], atol=1e-10, btol=1e-10)
    print(size > 3 * limit, level("VmHWM") - before <= limit, istop, float(abs(x - 1).max()) < 1e-6)
"""


@pytest.mark.no_asan
@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="Linux")
def test_larger_than_the_limit(tmp_path, rng):
    """160 MB on disk with 40 MB of address space beyond what Python has when it begins."""
    m, n, k = 20_000, 20_000, 16

    def rows(m):
        index = np.sort(rng.integers(0, n, (m, k)).astype(np.int32), axis=1)
        ptr = np.arange(0, m * k + 1, k, dtype=np.int32)
        return sp.csr_array((rng.standard_normal(m * k), index.ravel(), ptr), shape=(m, n))

    b = []

    def blocks():
        for _ in range(40):
            A = rows(m)
            b.append(A @ np.ones(n))
            yield A

    pld.write_blocks(blocks(), tmp_path / "A")
    np.save(tmp_path / "b.npy", np.concatenate(b))
    done = python(LARGER, tmp_path / "A", tmp_path / "b.npy")
    assert done.split() == ["True", "True", "1", "True"], done


# -- the pages -------------------------------------------------------------------------------------


def test_import_is_light():
    text = "import sys, pylinop; print('pylinop.dask' in sys.modules);"
    text += (
        "import pylinop.dask; print([m for m in ('dask', 'scipy', 'pandas') if m in sys.modules])"
    )
    assert python(text).split() == ["False", "[]"]


@pytest.mark.parametrize("name", pld.__all__)
def test_docstrings(name):
    thing = getattr(pld, name)
    assert thing.__doc__ and thing.__doc__.strip()
    found = doctest.DocTestParser().get_doctest(thing.__doc__, {}, name, name, 0)
    said = []
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(found, out=said.append)
    assert not runner.failures, "".join(said)
    if inspect.isfunction(thing) and name != "as_block":
        for part in ("Parameters", "Returns" if name != "write_blocks" else "Raises"):
            assert f"\n{part}\n" in inspect.cleandoc(thing.__doc__), f"{name} lacks {part}"


def test_sources_module_lists_all():
    for name in sources.__all__:
        assert getattr(pld, name) is getattr(sources, name)
