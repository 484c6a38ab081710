"""Preconditioners of pylinop.dask: columns scaled, blocks on the diagonal, made in one sweep."""

import os
import sys

import numpy as np
import pytest
from block_problems import TIGHT, close, sparse
from test_dask_split import on_ranks

import pylinop as pl
import pylinop.dask as pld

sp = pytest.importorskip("scipy.sparse")
sla = pytest.importorskip("scipy.linalg")


def cut(A, axis=0, pieces=4, **settings):
    """Blocks, one of them dense, one with entries of one place and rows out of order."""
    edges = np.linspace(0, A.shape[axis], pieces + 1).astype(int)
    pairs = zip(edges[:-1], edges[1:], strict=True)
    blocks = [A[lo:hi] if axis == 0 else A[:, lo:hi] for lo, hi in pairs]
    blocks[1] = blocks[1].toarray()
    c = blocks[2].tocoo()
    twice = sp.coo_array((np.repeat(c.data / 2, 2), [np.repeat(i, 2) for i in c.coords]), c.shape)
    rows = [np.flatnonzero(np.repeat(c.coords[0], 2) == i)[::-1] for i in range(c.shape[0])]
    ptr = np.cumsum([0, *(len(r) for r in rows)])
    order = np.concatenate([*rows, np.zeros(0, int)]).astype(int)
    blocks[2] = sp.csr_array((twice.data[order], twice.coords[1][order], ptr), c.shape)
    return pld.BlockOperator(blocks, axis=axis, **settings)


def badly_scaled(rng, m, n, dtype=float, mixed=False):
    A = sparse(rng, m, n, 0.3, dtype)
    A = sp.csr_array(A * np.logspace(0, 4, n))
    if mixed:  # columns next to each other nearly alike
        A = sp.csr_array(A @ (np.eye(n) + 0.999 * np.eye(n, k=1)))
    return A


def best(A, b, damp=0.0, x0=0.0):
    a = np.vstack([A.toarray(), damp * np.eye(A.shape[1])])
    x0 = np.zeros(A.shape[1]) + x0
    return x0 + np.linalg.lstsq(a, np.concatenate([b - A @ x0, 0 * x0]), rcond=None)[0]


@pytest.mark.parametrize("dtype, damp", [("d", 0.0), ("f", 0.5), ("D", 0.5)])
@pytest.mark.parametrize("axis, m, n", [(0, 200, 33), (1, 90, 38)])
@pytest.mark.parametrize("M", ["jacobi", "block_jacobi", ("block_jacobi", 5), ("block_jacobi", 99)])
def test_lsmr(rng, M, axis, m, n, dtype, damp):
    """The same solution in fewer iterations, on ranks and after a resumption too."""
    A = badly_scaled(rng, m, n, dtype)
    b, x0 = rng.standard_normal(m), rng.standard_normal(n)
    want = best(A, b, damp, x0)
    op = cut(A, axis, workers=3)
    plain = pld.lsmr(op, b, damp=damp, x0=x0, maxiter=2000, **TIGHT)
    got = pld.lsmr(op, b, damp=damp, x0=x0, M=M, maxiter=2000, **TIGHT)
    close(got[0], want, 1e-7)
    assert got[1] in (1, 2, 4, 5) and got.record.restarts == 0 and got[2] < plain[2] / 2
    r = b - A @ got[0]
    assert got[3] == pytest.approx(np.hypot(np.linalg.norm(r), damp * np.linalg.norm(got[0] - x0)))
    F = pld.precondition.of_least_squares(
        op, pld.precondition.parsed(M, n, "lsmr"), op._held(1), damp
    )
    size = np.linalg.norm(np.vstack([A.toarray(), damp * np.eye(n)]) @ F.right(np.eye(n)[0]))
    assert size == pytest.approx(1, rel=1e-5)  # columns of norm one
    y = rng.standard_normal(n)
    close(F.back(F.right(y)), y, 1e-10)
    assert np.vdot(F.left(x0), y) == pytest.approx(np.vdot(x0, F.right(y)))


def test_groups_are_inverted(rng):
    """A group as wide as A: one iteration or two. M is (A^H A + damp^2)^-1 then."""
    A = badly_scaled(rng, 120, 20, "D", mixed=True)
    b, whole = rng.standard_normal(120), ("block_jacobi", 20)
    for damp in (0.0, 2.0):
        op = cut(A)
        assert pld.lsmr(op, b, damp=damp, M=whole, atol=1e-8, btol=1e-8)[2] <= 2
        M = pld.precondition.of_least_squares(op, (*whole, None), op._held(1), damp)
        a, r = A.toarray(), rng.standard_normal(20)
        close((a.conj().T @ a + damp**2 * np.eye(20)) @ M.inverse(r), r, 1e-6)
        x, info = result = pld.cgls(op, b, damp, M=whole, rtol=1e-8)
        assert info == 0 and result.record.iterations <= 3
        close(x, best(A, b, damp), 1e-6)
    S = (A.conj().T @ A + sp.eye_array(20)).tocsr()
    for axis in (0, 1):
        op = cut(S, axis, pieces=5)
        M = pld.precondition.of_square(op, ("block_jacobi", 3, None), op._held(axis))
        blocks = [S.toarray()[i : i + k, i : i + k] for i, k in _cuts(4, 3, 20)]
        r = rng.standard_normal(20)
        close(M.inverse(r), np.linalg.solve(sla.block_diag(*blocks), r), 1e-6)


def _cuts(block, k, n):
    return [
        (i, min(k, lo + block - i)) for lo in range(0, n, block) for i in range(lo, lo + block, k)
    ]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", "dfD")
def test_cg(rng, axis, dtype):
    G = badly_scaled(rng, 90, 64, "D" if dtype == "D" else "d")
    S = (G.conj().T @ G + sp.diags_array(np.logspace(0, 8, 64))).tocsr().astype(dtype)
    S = ((S + S.conj().T) / 2).tocsr()
    b, op = rng.standard_normal(64), cut(S, axis)
    want = np.linalg.solve(S.toarray().astype(np.result_type(dtype, "d")), b)
    plain = pld.cg(op, b, rtol=1e-11, maxiter=300)
    d = 1 / S.diagonal().real
    for M in ("jacobi", "block_jacobi", ("block_jacobi", 5), d, pl.Diag(d), np.diag(d)):
        x, info = got = pld.cg(op, b, rtol=1e-11, M=M)
        assert info == 0 and got.record.iterations < plain.record.iterations / 2
        close(S @ x, b, 1e-10)
        close(x, want, 1e-4)
    three = [pld.cg(op, b, rtol=1e-11, M=M) for M in ("jacobi", d, np.diag(d))]
    assert np.ptp([got.record.iterations for got in three]) <= 2
    assert pld.cg(op, b, M=-np.eye(64))[1] == -1
    for size in (2, 3):
        ranks = on_ranks(
            size, lambda e: pld.cg(cut(S, axis, engine=e), b, rtol=1e-11, M="block_jacobi")
        )
        given = on_ranks(
            size, lambda e: pld.cg(cut(S, axis, engine=e), b, rtol=1e-11, M=pl.Diag(d))
        )
        for got in (*ranks, *given):
            close(S @ got[0], b, 1e-10)


@pytest.mark.parametrize("method", ["lsmr", "cgls"])
@pytest.mark.parametrize("axis", [0, 1])
def test_elsewhere(rng, tmp_path, axis, method):
    """The same bits on other engines and after a resumption; ranks hold whole groups; a death."""
    if method == "cgls" and axis == 1:
        return
    A = badly_scaled(rng, 120, 34)
    b, saved = rng.standard_normal(120), tmp_path / "c.npz"
    options = {"M": ("block_jacobi", 4), "damp": 0.1}
    options |= TIGHT if method == "lsmr" else {"rtol": 1e-10}
    solve = getattr(pld, method)
    want = solve(cut(A, axis, engine="serial", parts=2), b, **options)
    op = cut(A, axis, workers=2)
    solve(op, b, checkpoint=saved, checkpoint_every=4, maxiter=9, **options)
    again = solve(op, b, resume=saved, **options)
    assert again.record.resumed == 8 and (again[0] == want[0]).all()
    for other in ("jacobi", None, ("block_jacobi", 5)):
        with pytest.raises(ValueError, match="not a checkpoint of this problem: M"):
            solve(op, b, resume=saved, **{**options, "M": other})
    for size in (2, 7):
        first = on_ranks(size, lambda e: solve(cut(A, axis, engine=e), b, **options), pieces=True)
        then = on_ranks(size, lambda e: solve(cut(A, axis, engine=e), b, resume=saved, **options))
        close(np.concatenate([got[0] for got in first]), want[0], 1e-8)
        close(then[-1][0], want[0], 1e-8)
    if method == "lsmr":
        with cut(A, axis, engine="processes", workers=2) as op:
            count = []

            def kill(x):
                count.append(1)
                if len(count) == 4:
                    os.kill(op.engine.pids[1], 9)

            got = solve(op, b, callback=kill, **options)
        assert got.record.losses == 1 and got.record.restarts == 0
        close(got[0], want[0], 1e-9)


def test_dependent_columns(rng):
    """A column of zeros keeps its number; a group with a column twice is scaled, not inverted."""
    a = badly_scaled(rng, 80, 12).toarray()
    a[:, 3] = 0
    a[:, 5] = a[:, 4]
    b, x0 = rng.standard_normal(80), np.zeros(12)
    x0[3] = 7
    op = pld.BlockOperator([a[:30], sp.csr_array(a[30:])])
    for M in ("jacobi", ("block_jacobi", 4)):
        x, istop, *_ = pld.lsmr(op, b, M=M, x0=x0, **TIGHT)
        assert x[3] == 7 and istop == 2
        close(a @ x, a @ best(sp.csr_array(a), b), 1e-9)
        assert x[4] == pytest.approx(x[5])


def test_true_residual_decides(rng, monkeypatch):
    A = badly_scaled(rng, 150, 20)
    b, module, lies = rng.standard_normal(150), sys.modules["pylinop.dask.lsmr"], []
    honest = module._Rules.stop

    def hasty(self, s, normx, normb, last):
        if len(lies) < 2 and s.normar < 1:
            lies.append(1)
            return 2
        return honest(self, s, normx, normb, last)

    monkeypatch.setattr(module._Rules, "stop", hasty)
    for axis in (0, 1):
        for damp in (0.0, 3.0):
            lies.clear()
            got = pld.lsmr(
                cut(A, axis), b, damp=damp, M="jacobi", x0=np.ones(20), maxiter=300, **TIGHT
            )
            assert got.record.restarts == len(lies) == 2
            close(got[0], best(A, b, damp, 1.0), 1e-7)


def test_refused(rng):
    A = badly_scaled(rng, 40, 40)
    op, wide = pld.from_array(A), pld.BlockOperator([A[:20]], axis=1)
    S = pld.BlockOperator([np.diag([1.0, -2.0])])
    b = np.ones(40)
    nan = pld.BlockOperator([A * np.nan])
    for call, error, text in [
        (lambda: pld.lsmr(op, b, M="ssor"), ValueError, "'jacobi', 'block_jacobi'"),
        (lambda: pld.lsmr(op, b, M=("jacobi", 3)), ValueError, "columns of a block"),
        (lambda: pld.lsmr(op, b, M=("block_jacobi", 0)), ValueError, "columns of a block"),
        (lambda: pld.lsmr(op, b, M=np.ones(3)), ValueError, r"float64\[3\]: a word, 40 real"),
        (lambda: pld.lsmr(op, b, M=np.eye(40)), ValueError, "a word, 40 real numbers$"),
        (lambda: pld.cg(op, b, M=np.eye(3)), ValueError, "real numbers, or an operator"),
        (lambda: pld.lsmr(op, b, M=-b), ValueError, r"M\[0\] is -1.0"),
        (lambda: pld.lsmr(op, b, M=b * 1j), ValueError, "complex128"),
        (lambda: pld.lsmr(wide, b[:20], M="jacobi"), ValueError, "least is meant"),
        (lambda: pld.cg(S, b[:2], M="jacobi"), pl.LinAlgError, "element 1 of A's diagonal is -2.0"),
        (lambda: pld.cg(S, b[:2], M="block_jacobi"), pl.LinAlgError, "element 1 of A's diagonal"),
        (lambda: pld.lsmr(nan, b, M="jacobi"), pl.LinAlgError, "not finite"),
        (lambda: pld.cg(S, 1e-170 * b[:2], rtol=1e-30), pl.LinAlgError, "underflows"),
    ]:
        with np.errstate(all="ignore"), pytest.raises(error, match=text):
            call()
    with pl.config(memory_limit=20_000), pytest.raises(pl.MaterializationError, match="40 x 40"):
        pld.lsmr(pld.from_array(A, memory_limit=10**6), b, M=("block_jacobi", 40))
    damped = pld.lsmr(wide, b[:20], M="jacobi", damp=1.0, maxiter=300, **TIGHT)
    close(damped[0], best(A[:20], b[:20], 1.0), 1e-8)
