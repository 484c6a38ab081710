"""Solves and determinants of what is sparse, by SuperLU behind the core, against dense NumPy."""

import gc
import threading
import weakref

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl
from pylinop import _core
from pylinop._sparse import assemble_program
from pylinop._sparse import factor as _factor
from pylinop._sparse import solver as _solver

SIDE = 22  # 484 rows: above the size from which the factor is made outside


def laplacian(side, dtype=float):
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    eye = sp.eye_array(side)
    return sp.csr_array(sp.kron(line, eye) + sp.kron(eye, line)).astype(dtype)


def scattered(rng, n, dtype=float):
    """Unsymmetric in values and pattern."""
    a = sp.random_array((n, n), density=4 / n, rng=rng) + sp.diags_array(rng.standard_normal(n))
    if np.dtype(dtype).kind == "c":
        a = a + 1j * sp.random_array((n, n), density=2 / n, rng=rng)
    return sp.csr_array(a).astype(dtype)


def uneven(rng, side):
    """A symmetric pattern with other values on both sides."""
    a = sp.csr_array(laplacian(side) + 0.3 * sp.eye_array(side * side))
    a.data *= 1 + 0.05 * rng.random(a.nnz)
    return a


def indefinite(side):
    return sp.csr_array(laplacian(side) - 1.7 * sp.eye_array(side * side))


def saddle(rng, side):
    """Zeros on the diagonal: a matrix with constraints."""
    a = laplacian(side)
    c = sp.random_array((40, a.shape[0]), density=0.02, rng=rng) + sp.eye_array(40, a.shape[0])
    return sp.csr_array(sp.block_array([[a, c.T], [c, None]]))


def eta(a, x, b):
    """The largest backward error of the columns."""
    x, b = (v.reshape(len(a), -1) for v in (x, b))
    size = np.linalg.norm(a, np.inf) * abs(x).max(axis=0) + abs(b).max(axis=0)
    return np.max(abs(b - a @ x).max(axis=0) / size)


def says(op, b):
    return str(op.explain("solve", b))


def agrees(op, b, tolerance=1e-13):
    a = op.toarray()
    assert "SuperLU" in says(op, b) or "band_from_products" in says(
        op, b
    )  # bands seen without SciPy
    x = pl.solve(op, b)
    assert eta(a, x, b) < tolerance
    assert np.array_equal(x, pl.inv(op) @ b)
    sign, log = np.linalg.slogdet(a)
    got = pl.slogdet(op)
    assert abs(got.sign - sign) < 1e-9
    assert abs(got.logabsdet - log) < 1e-9 * max(abs(log), 1)
    return x


@pytest.mark.parametrize("which", ["laplacian", "uneven", "scattered", "indefinite", "saddle"])
@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_matrices(which, layout, rng):
    a = {
        "laplacian": lambda: laplacian(SIDE),
        "uneven": lambda: uneven(rng, SIDE),
        "scattered": lambda: scattered(rng, 480),
        "indefinite": lambda: indefinite(SIDE),
        "saddle": lambda: saddle(rng, SIDE),
    }[which]()
    op = pl.Sparse(a.asformat(layout))
    for shape in ((), (3,)):
        agrees(op, rng.standard_normal((op.shape[0], *shape)))


def test_views_share_the_factor(rng):
    a = scattered(rng, 450, complex)
    op = pl.Sparse(a)
    b = rng.standard_normal((450, 2)) + 1j * rng.standard_normal((450, 2))
    _core._clear_store()
    pl.solve(op, b)
    kept = _core._store()["entries"]
    for view in (op.T, op.H, op.conj()):
        agrees(view, b)
    assert _core._store()["entries"] == kept


@pytest.mark.parametrize(
    ("matrix", "right"),
    [(np.float32, np.float32), (np.float32, float), (float, complex), (complex, np.complex64)],
)
def test_dtypes(matrix, right, rng):
    a = uneven(rng, SIDE).astype(matrix)
    if np.dtype(matrix).kind == "c":
        a = sp.csr_array(a + 0.5j * sp.eye_array(a.shape[0]))
    b = rng.standard_normal((a.shape[0], 2)).astype(right)
    x = pl.solve(pl.Sparse(a), b)
    assert x.dtype == np.result_type(matrix, right)
    unit = np.finfo(x.dtype).eps
    assert eta(a.toarray().astype(complex), x, b) < 10 * unit


def test_integers(rng):
    a = laplacian(SIDE).astype(np.int64)
    b = np.arange(a.shape[0])
    x = pl.solve(pl.Sparse(a), b)
    assert x.dtype == float
    assert eta(a.toarray(), x, b) < 1e-14


def operators(rng):
    n = SIDE * SIDE
    a, s = uneven(rng, SIDE), scattered(rng, n)
    S, D = pl.Sparse(a), pl.Diag(2 + rng.random(n))
    tall = pl.Sparse(sp.random_array((700, n), density=3 / n, rng=rng))
    band = pl.Banded((1, 2), 2 + rng.random((4, n)))
    p = sp.csr_array(sp.eye_array(n))[rng.permutation(n)]
    return {
        "plus diagonal": S + D,
        "diagonal plus": D + S,
        "shifted": S + 0.5 * pl.Identity(n),
        "multiple": -3 * S,
        "difference": 4 * S - pl.Sparse(s),
        "plus band": S + band,
        "complex shift": S + 2j * pl.Identity(n),
        "adjoint of a sum": (S + 1j * D).H,
        "normal": tall.T @ tall + pl.Identity(n),
        "laplacian": pl.Laplacian((SIDE, SIDE), "dirichlet") - D,
        "ring": pl.Laplacian((SIDE, SIDE), "periodic") - D,
        "no flux": pl.Laplacian((11, 44), "neumann") - D,
        "kron": pl.Kron(pl.Sparse(laplacian(11)), np.diag([1.0, 2.0, 3.0, 4.0])) + D,
        "kron sum": pl.KronSum(pl.Sparse(laplacian(11)), pl.Sparse(laplacian(2))) + D,
        "permuted": pl.Permutation(rng.permutation(n)) @ S + D,
        "sparse permutation": S + pl.Sparse(sp.csr_array(p)),
        "with zeros": S + pl.Zeros((n, n)),
    }


@pytest.mark.parametrize("name", list(operators(np.random.default_rng(0))))
def test_sums_and_products(name, rng):
    op = operators(rng)[name]
    agrees(op, rng.standard_normal((op.shape[0], 2)), 1e-12)


def test_products_go_factor_by_factor(rng):
    a, b = uneven(rng, SIDE), laplacian(SIDE)
    op = pl.Sparse(a) @ pl.Sparse(b)
    y = rng.standard_normal(op.shape[0])
    assert says(op, y).count("(sparse_solve") >= 2
    want = np.linalg.solve(b.toarray(), np.linalg.solve(a.toarray(), y))
    np.testing.assert_allclose(pl.solve(op, y), want, rtol=1e-9)


def test_low_rank_block_and_kron_profit(rng):
    n = SIDE * SIDE
    S = pl.Sparse(uneven(rng, SIDE))
    u = rng.standard_normal((n, 3))
    b = rng.standard_normal(n)
    update = S + pl.LowRank(u)
    assert "SuperLU" in says(update, b)
    assert eta(update.toarray(), pl.solve(update, b), b) < 1e-13
    border = pl.Block([[S, u], [u.T, -np.eye(3)]])
    c = rng.standard_normal(n + 3)
    assert "SuperLU" in says(border, c)
    assert eta(border.toarray(), pl.solve(border, c), c) < 1e-13
    assert abs(pl.slogdet(border)[1] - np.linalg.slogdet(border.toarray())[1]) < 1e-8
    kron = pl.Kron(pl.Diag([1.0, 2.0]), S)
    d = rng.standard_normal(2 * n)
    assert "SuperLU" in says(kron, d)
    assert eta(kron.toarray(), pl.solve(kron, d), d) < 1e-13


def test_formulas_and_lazy_arrays(rng):
    S = pl.Sparse(uneven(rng, SIDE))
    n = S.shape[0]
    h, y = rng.standard_normal((3, n)), rng.standard_normal(n)
    inverse = np.linalg.inv(S.toarray())
    gain = h @ pl.inv(S)
    np.testing.assert_allclose(gain @ y, h @ inverse @ y, rtol=1e-9)
    x = pl.lazy(y)
    np.testing.assert_allclose(np.asarray(x @ (pl.inv(S) @ x)), y @ inverse @ y, rtol=1e-9)
    quad, log = pl.inv_quad_logdet(S, y)
    np.testing.assert_allclose([quad, log], [y @ inverse @ y, np.linalg.slogdet(S.toarray())[1]])
    np.testing.assert_allclose(pl.inv(S).toarray(), inverse, atol=1e-12)


def test_writes_are_seen(rng):
    a = laplacian(SIDE)
    op = pl.Sparse(a)
    b = rng.standard_normal(a.shape[0])
    first = pl.solve(op, b)
    a.data[:] *= 4  # and the factor of Cholesky by 2
    np.testing.assert_array_equal(pl.solve(op, b), first / 4)
    a.indices[a.indptr[5] : a.indptr[6]] = a.indices[a.indptr[5] : a.indptr[6]][::-1].copy()
    assert eta(op.toarray(), pl.solve(op, b), b) < 1e-13
    log = pl.slogdet(op)[1]
    a.data[:] = 2 * a.data
    assert abs(pl.slogdet(op)[1] - log - a.shape[0] * np.log(2)) < 1e-8 * abs(log)
    a.indices[0] = a.shape[0]
    with pytest.raises(IndexError, match="out of bounds"):
        pl.solve(op, b)
    a.indices[0], a.indptr[1] = 0, -1
    with pytest.raises(IndexError, match="indptr"):
        pl.solve(op, b)


def test_the_factor_is_kept_and_bounded(rng):
    op = pl.Sparse(laplacian(SIDE))
    b = rng.standard_normal(op.shape[0])
    _core._clear_store()
    calls = []
    made, _solver.CALLS["factor"] = _solver.CALLS["factor"], None

    def counted(*args):
        calls.append(1)
        return made(*args)

    _solver.CALLS["factor"] = counted
    try:
        cold = pl.solve(op, b)
        assert np.array_equal(pl.solve(op, b), cold)
        pl.logdet(op)
        pl.solve(op.T, b)
        assert len(calls) == 1
        assert _core._store()["bytes"] > op.shape[0] * 100
        pl.config(cache_limit=1000)
        _core._clear_store()
        assert np.array_equal(pl.solve(op, b), cold)
        assert np.array_equal(pl.solve(op, b), cold)
        assert len(calls) == 3
    finally:
        _solver.CALLS["factor"] = made
        pl.config(cache_limit=256 << 20)


def test_singular_matrices(rng):
    a = laplacian(SIDE).tolil()
    a[7] = 0
    op = pl.Sparse(sp.csr_array(a))
    b = rng.standard_normal(op.shape[0])
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        pl.solve(op, b)
    assert pl.det(op) == 0
    assert pl.logdet(op) == -np.inf
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        pl.inv(op).diagonal()


def test_shapes_that_do_not_fit(rng):
    op = pl.Sparse(laplacian(SIDE))
    with pytest.raises(ValueError, match="483"):
        pl.solve(op, np.ones(483))
    with pytest.raises(np.linalg.LinAlgError, match="square"):
        pl.solve(pl.Sparse(sp.csr_array((500, 400))), np.ones(500))


def test_nan_and_inf_pass_through(rng):
    op = pl.Sparse(laplacian(SIDE))
    b = rng.standard_normal((op.shape[0], 3))
    clean = pl.solve(op, b)
    b[4, 1] = np.nan
    x = pl.solve(op, b)
    assert np.isnan(x[:, 1]).all()
    np.testing.assert_allclose(x[:, [0, 2]], clean[:, [0, 2]], rtol=1e-11)
    a = laplacian(SIDE)
    a.data[3] = np.nan
    assert np.isnan(pl.solve(pl.Sparse(a), b[:, 0])).any()


def test_an_inaccurate_factor_is_made_anew(rng):
    """Without pivots there is nothing left of b: full pivoting serves."""
    n = 450
    a = laplacian(21)[:n, :n] * 1e-9 if n < 441 else laplacian(22)[:n, :n] * 1e-9
    flip = sp.csr_array(sp.eye_array(n))[::-1]
    a = sp.csr_array(a + flip + 1e-18 * sp.eye_array(n))
    op = pl.Sparse(a)
    b = rng.standard_normal(n)
    assert eta(op.toarray(), pl.solve(op, b), b) < 1e-14
    sign, log = np.linalg.slogdet(op.toarray())
    got = pl.slogdet(op)
    assert got.sign == sign
    assert abs(got.logabsdet - log) < 1e-9


def test_a_factor_made_anew_leaves_later_calls_as_they_were():
    """Its one block has no stable factor without pivots, the other has: what is solved of that
    alone has the same bits whatever was asked before."""
    rng = np.random.default_rng(0)
    n = SIDE * SIDE
    r = sp.random_array((n, n), density=4 / n, rng=rng)
    r = sp.csr_array(r + r.T)
    r.setdiag(1e-14)
    a = sp.csr_array(sp.block_diag([r, laplacian(SIDE) + 0.1 * sp.eye_array(n)]))
    b = rng.standard_normal(2 * n)
    only = np.where(np.arange(2 * n) < n, 0, b)
    cold = pl.solve(pl.Sparse(a), only)
    assert eta(a.toarray(), cold, only) < 1e-15
    for ask in (lambda op: pl.solve(op, b), pl.slogdet, lambda op: pl.diagonal(pl.inv(op))):
        op = pl.Sparse(a.copy())
        first = np.asarray(ask(op))
        assert np.array_equal(pl.solve(op, only), cold)
        assert np.array_equal(np.asarray(ask(op)), first)
    x = pl.solve(op, b)
    assert eta(a.toarray(), x, b) < 1e-13
    want = np.linalg.slogdet(a.toarray())
    got = pl.slogdet(op)
    assert got.sign == want.sign
    assert abs(got.logabsdet - want.logabsdet) < 1e-8


def test_a_factor_that_is_dropped_goes_at_once(monkeypatch):
    """Not when the garbage collector finds a cycle."""
    made, first = [], _factor.Factor.__init__

    def noted(self, A, *more):
        first(self, A, *more)
        made.append(weakref.ref(self))

    monkeypatch.setattr(_factor.Factor, "__init__", noted)
    gc.disable()
    try:
        for ask in (pl.slogdet, lambda op: pl.diagonal(pl.inv(op))):
            op = pl.Sparse(laplacian(SIDE) + sp.eye_array(SIDE * SIDE) * 0.125)
            ask(op)
            assert made[-1]() is not None
            del op
            pl._core._clear_store()
            assert made[-1]() is None
    finally:
        gc.enable()


def test_no_room_for_the_dense_form(rng, monkeypatch):
    monkeypatch.setattr(_factor.Factor, "_solved", lambda self, b, mode: (b, 1.0))
    op = pl.Sparse(laplacian(SIDE))
    b = rng.standard_normal(op.shape[0])
    _core._clear_store()
    assert eta(op.toarray(), pl.solve(op, b), b) < 1e-14  # by LU of the dense form
    with pl.config(memory_limit=400_000):
        with pytest.raises(pl.MaterializationError, match="1,874,048"):
            pl.inv(op) @ b
        with pytest.raises(pl.MaterializationError, match="1,874,048"):
            pl.solve(op, b, method="direct")
        x = pl.solve(op, b)  # iterated instead
    assert eta(op.toarray(), x, b) < 1e-13


def test_narrow_bands_go_by_the_band(rng):
    n = 600
    line = sp.diags_array(
        [rng.random(n - 1), 3 + rng.random(n), rng.random(n - 1)], offsets=[-1, 0, 1]
    )
    order = rng.permutation(n)
    hidden = sp.csr_array(sp.csr_array(line)[order][:, order])
    for a, moved in ((sp.csr_array(line), False), (hidden, True)):
        factor = _factor.Factor(a)
        assert factor.band is not None
        assert (factor.order is not None) == moved
        assert factor.lu is None
        op = pl.Sparse(a)
        agrees(op, rng.standard_normal((n, 2)))
        agrees(op.T, rng.standard_normal(n))


def test_batches_of_right_sides(rng):
    op = pl.Sparse(laplacian(SIDE))
    b = rng.standard_normal((2, 3, op.shape[0], 2))
    x = pl.solve(op, b)
    want = np.linalg.solve(op.toarray(), b)
    np.testing.assert_allclose(x, want, rtol=1e-10, atol=1e-12)
    empty = pl.solve(op, np.ones((op.shape[0], 0)))
    assert empty.shape == (op.shape[0], 0)


def test_sparse_right_sides(rng):
    op = pl.Sparse(laplacian(SIDE))
    b = sp.csr_array(sp.random_array((op.shape[0], 5), density=0.01, rng=rng))
    x = pl.solve(op, b)
    np.testing.assert_allclose(
        x.toarray(), np.linalg.solve(op.toarray(), b.toarray()), rtol=1e-9, atol=1e-12
    )


def test_strided_arrays(rng):
    a = laplacian(SIDE)
    op = pl.Sparse(a)
    wide = rng.standard_normal((op.shape[0], 6))
    np.testing.assert_array_equal(pl.solve(op, wide[:, ::2]), pl.solve(op, wide[:, ::2].copy()))
    np.testing.assert_array_equal(pl.solve(op, wide[::-1, 0]), pl.solve(op, wide[::-1, 0].copy()))


def test_small_and_full_matrices_stay_dense(rng):
    small = pl.Sparse(laplacian(5))
    full = pl.Sparse(sp.csr_array(rng.standard_normal((450, 450))))
    for op in (small, full):
        b = rng.standard_normal(op.shape[0])
        assert "SuperLU" not in says(op, b)
        assert eta(op.toarray(), pl.solve(op, b), b) < 1e-13


def test_threads(rng):
    ops = [pl.Sparse(uneven(rng, SIDE)) for _ in range(3)]
    b = rng.standard_normal(ops[0].shape[0])
    want = [pl.solve(op, b) for op in ops]
    _core._clear_store()
    wrong = []

    def work():
        for _ in range(5):
            wrong.extend(
                1 for op, x in zip(ops, want, strict=True) if not np.array_equal(pl.solve(op, b), x)
            )

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_large_sizes_need_no_dense_form(rng):
    a = laplacian(150)
    op = pl.Sparse(a)
    b = rng.standard_normal(a.shape[0])
    with pl.config(memory_limit=1 << 25):
        x = pl.solve(op, b)
        pl.logdet(op)
    size = 8 * abs(x).max() + abs(b).max()
    assert abs(b - a @ x).max() / size < 1e-15 * 100


@pytest.mark.parametrize("boundary", ["dirichlet", "neumann", "periodic"])
@pytest.mark.parametrize("grid", [(1, 4), (2, 3), (5,), (3, 1, 2)])
def test_the_form_of_a_laplacian(boundary, grid, monkeypatch):
    op = pl.Laplacian(grid, boundary)
    names = {"dirichlet": 0, "neumann": 1, "periodic": 2}

    class Term:
        attr = (names[boundary],)
        shape = op.shape

    axes = [sp.eye_array(n) for n in grid]
    form = assemble_program._ROWS["laplacian"](Term, *axes)
    np.testing.assert_array_equal(form.toarray(), op.toarray())


def test_disabled_rules(rng):
    op = pl.Sparse(laplacian(SIDE))
    b = rng.standard_normal(op.shape[0])
    with pl.config(disable_rules=["solve-sparse"]):
        assert "SuperLU" not in says(op, b)
        assert eta(op.toarray(), pl.solve(op, b), b) < 1e-13


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_arrays_out_of_order_with_repeats_and_room(layout, rng):
    a = laplacian(SIDE).asformat(layout)
    n = a.shape[0]
    starts = a.indptr.copy()
    lines = [np.arange(starts[i], starts[i + 1])[::-1] for i in range(n)]
    order = np.concatenate([np.r_[at, at[:1]] for at in lines])  # the last entry twice
    room = np.zeros(3, a.indices.dtype)
    data = np.concatenate([[np.nan] * 3, a.data[order], [np.inf] * 3])
    index = np.concatenate([room, a.indices[order], room])
    ptr = 3 + np.concatenate([[0], np.cumsum([len(at) + 1 for at in lines])])
    twice = type(a)(a.shape)
    twice.data, twice.indices, twice.indptr = data, index, ptr.astype(np.int32)
    op, b = pl.Sparse(twice), rng.standard_normal(n)
    dense = np.zeros((n, n))
    at = (np.repeat(np.arange(n), np.diff(ptr)), index[3:-3])
    np.add.at(dense, at if layout == "csr" else at[::-1], data[3:-3])
    for whole, want in ((op, dense), (op + op.T, dense + dense.T), (op @ op, dense @ dense)):
        assert "SuperLU" in says(whole, b)
        assert eta(want, pl.solve(whole, b), b) < 1e-13
    np.testing.assert_array_equal(twice.data, data)
    np.testing.assert_array_equal(twice.indices, index)
