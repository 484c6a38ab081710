"""Rewritten graphs against the same graphs without: values, gradients, what fires and what not."""

import pickle

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor")

import pytensor.tensor as pt
from frameworks.pytensor import pytensor_graphs as graphs
from pytensor.graph.traversal import ancestors

import pylinop as pl
import pylinop.pytensor as pp
from pylinop.pytensor import constants

EPS = np.finfo(float).eps
PLAIN = pytensor.compile.mode.Mode(linker="py", optimizer="fast_compile")


@pytest.fixture(autouse=True)
def small_sizes():
    before = pp.rewrites.settings.least, pp.rewrites.settings.least_dense
    pp.config(least=0, least_dense=0)
    yield
    pp.config(least=before[0], least_dense=before[1])


def used(*outputs):
    """How many programs of pylinop are in a graph."""
    nodes = {v.owner for v in ancestors(outputs) if v.owner is not None}
    return sum(isinstance(node.op, pp.Structured) for node in nodes)


def compiled(inputs, f, wrt, mode=PLAIN):
    """value and gradients, with pylinop and without."""

    def function():
        rewritten = pp.rewrite(f)
        found = pytensor.grad(rewritten, wrt, disconnected_inputs="ignore")
        more = {"mode": mode, "on_unused_input": "ignore"}
        return pytensor.function(inputs, [rewritten, *found], **more)

    on = function()
    with pp.off():
        off = function()
    assert not used(*off.maker.fgraph.outputs)
    return on, off


def same(on, off, *values, rtol=1e-9):
    found, due = on(*values), off(*values)
    for a, b in zip(found, due, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(b).max(initial=1e-30))


FREE = {graphs.kron: 2, graphs.blocks: 1, graphs.congruence: 2}  # K is as symmetric as they are


@pytest.mark.parametrize("n", [1, 2, 7, 33])
@pytest.mark.parametrize("form", [graphs.naive, graphs.by_cholesky])
@pytest.mark.parametrize("row", graphs.ROWS, ids=lambda row: row.__name__)
def test_rows(row, form, n):
    if n < graphs.LEAST.get(row, 1):
        pytest.skip("too few rows for its structure")
    inputs, K, values = row(n)
    y = pt.dvector("y")
    f = form(K, y)
    rows = K.eval(dict(zip(inputs, values, strict=True))).shape[0]
    rhs = np.random.default_rng(n).standard_normal(rows)
    if row in FREE:  # a symmetric matrix is a function of its lower triangle
        k = FREE[row] if row is graphs.congruence else 0
        stop = FREE[row] if row is not graphs.congruence else k + 1
        whole = [x + x.T for x in inputs[k:stop]]
        f = pytensor.graph.replace.clone_replace(f, dict(zip(inputs[k:stop], whole, strict=True)))
        values = [v / 2 if k <= i < stop else v for i, v in enumerate(values)]
    on, off = compiled([*inputs, y], f, [*inputs, y])
    same(on, off, *values, rhs)
    if n > 2:  # PyTensor computes some of one row, and of two all are Toeplitz
        assert used(*on.maker.fgraph.outputs)
        assert graphs.ROWS[row] in [r.structure for r in pp.explain(form(K, y))]


@pytest.mark.parametrize(
    "row",
    [
        graphs.root,
        graphs.kron,
        graphs.toeplitz,
        graphs.tridiagonal,
        graphs.dense,
        graphs.given,
        graphs.deviations,
    ],
)
def test_not_definite_is_nan_as_without(row):
    inputs, K, values = row(9)
    y = pt.dvector("y")
    on, off = compiled([*inputs, y], graphs.by_cholesky(K, y), inputs)
    rhs = np.ones(27 if row is graphs.kron else 9)
    for k, bad in enumerate(values):
        for other in (-bad - 1, np.full_like(bad, np.nan), np.full_like(bad, np.inf), 0 * bad):
            given = [*values[:k], other, *values[k + 1 :], rhs]
            a, b = on(*given)[0], off(*given)[0]
            assert np.isnan(a) == np.isnan(b) or not np.isfinite([a, b]).any()
            if np.isfinite(b):
                np.testing.assert_allclose(a, b, rtol=1e-8)


@pytest.mark.parametrize("noise", [0.0, 0.4])
@pytest.mark.parametrize("negative", [0, 1, 2])
def test_products_with_a_precision_that_is_not_definite(negative, noise):
    """A solve is a product with it, which does not fail: its factor is asked."""
    d, y = pt.dvector("d"), pt.dvector("y")
    Q = pt.diag(d) + pt.diag(0.1 * pt.ones(8), 1) + pt.diag(0.1 * pt.ones(8), -1)
    K = pt.linalg.inv(Q) + (noise * pt.eye(9) if noise else 0)
    z = pt.linalg.solve_triangular(pt.linalg.cholesky(K), y, lower=True)
    [report] = pp.explain(pt.sum(z**2))
    assert "inverse" in report.structure
    on, off = compiled([d, y], pt.sum(z**2), [d, y])
    given = np.r_[-np.ones(negative), 3 * np.ones(9 - negative)], np.arange(9.0)
    assert used(*on.maker.fgraph.outputs) and np.isnan(off(*given)[0]) == (negative > 0)
    if negative:
        assert np.isnan(on(*given)[0])
    else:
        same(on, off, *given)


def test_two_negative_eigenvalues_are_not_definite():
    """The determinant is positive, the matrix is not."""
    W, d, y = pt.dmatrix("W"), pt.dvector("d"), pt.dvector("y")
    on, _ = compiled([W, d, y], graphs.by_cholesky(W @ W.T + pt.diag(d), y), [d])
    low = np.r_[-5.0, -5.0, np.ones(8)]
    assert np.isnan(on(np.ones((10, 1)), low, np.ones(10))[0])
    c = pt.dvector("c")
    K = c[graphs.distances(8).astype(int)]
    on, _ = compiled([c, y], graphs.by_cholesky(K, y), [c])
    assert np.isnan(on(np.r_[1.0, 2.0, np.zeros(6)], np.ones(8))[0])
    A, B = pt.dmatrix("A"), pt.dmatrix("B")
    K = pt.linalg.kron(A, B) + 0.1 * pt.eye(20)
    on, _ = compiled([A, B, y], graphs.by_cholesky(K, y), [A])
    assert np.isnan(on(np.diag([1.0, -2.0]), np.eye(10), np.ones(20))[0])
    assert np.isfinite(on(-np.eye(2), -np.eye(10), np.ones(20))[0])


def test_precisions_that_are_not_definite():
    inputs, K, _ = graphs.neighbours(12)
    y = pt.dvector("y")
    on, off = compiled([*inputs, y], graphs.by_cholesky(K, y), inputs)
    same(on, off, 0.9, 2.0, np.ones(12))
    for rho, s in ((1.7, 1.0), (0.5, -1.0), (np.nan, 1.0)):
        assert np.isnan(on(rho, s, np.ones(12))[0]) and np.isnan(off(rho, s, np.ones(12))[0])


def test_only_the_lower_triangle_counts():
    K, y = pt.dmatrix("K"), pt.dvector("y")
    on, off = compiled([K, y], graphs.by_cholesky(K, y), [y])
    lower = np.tril(graphs.definite(6))
    same(on, off, lower, np.ones(6))
    A, B = pt.dmatrix("A"), pt.dmatrix("B")
    on, off = compiled([A, B, y], graphs.by_cholesky(pt.linalg.kron(A, B), y), [y])
    same(on, off, np.tril(graphs.definite(3)), graphs.definite(2), np.ones(6))
    d, e = pt.dvector("d"), pt.dvector("e")
    K = pt.diag(d) + pt.diag(e, -1) + pt.diag(7 * e, 1)
    on, off = compiled([d, e, y], graphs.by_cholesky(K, y), [d, e])
    same(on, off, 3 + np.arange(6.0), np.ones(5), np.ones(6))


def test_second_order():
    inputs, K, values = graphs.toeplitz(12)
    y = pt.dvector("y")
    f = pp.rewrite(graphs.naive(K, y))
    first = pytensor.grad(f, inputs)
    second = [g for x in first for g in pytensor.grad(x, inputs)]
    on = pytensor.function([*inputs, y], second, mode=PLAIN)
    with pp.off():
        f = pp.rewrite(graphs.naive(K, y))
        first = pytensor.grad(f, inputs)
        second = [g for x in first for g in pytensor.grad(x, inputs)]
        off = pytensor.function([*inputs, y], second, mode=PLAIN)
    same(on, off, *values, np.arange(12.0), rtol=1e-7)


def test_solves_and_several_right_hand_sides():
    inputs, K, values = graphs.root(11)
    B = pt.dmatrix("B")
    L = pt.linalg.cholesky(K)
    x = pt.linalg.cho_solve((L, True), B, b_ndim=2)
    half = pt.linalg.solve_triangular(L, B, lower=True, b_ndim=2)
    f = pt.sum(pt.sin(x)) + pt.sum(pt.sum(half**2, axis=0) ** 2)
    on, off = compiled([*inputs, B], f, [*inputs, B])
    same(on, off, *values, np.random.default_rng(1).standard_normal((11, 3)))
    assert used(*on.maker.fgraph.outputs) == 2  # one for the values, one for the gradients


def test_single_precision():
    W, d, y = pt.fmatrix("W"), pt.fvector("d"), pt.fvector("y")
    on, off = compiled([W, d, y], graphs.by_cholesky(W @ W.T + pt.diag(d), y), [W, d, y])
    r = np.random.default_rng(0)
    given = r.standard_normal((20, 3)), 0.5 + r.random(20), r.standard_normal(20)
    same(on, off, *(np.float32(v) for v in given), rtol=2e-5)


def refused(K, f=graphs.by_cholesky):
    y = pt.dvector("y")
    found = pp.explain(f(K, y))
    assert found and all(r.reason for r in found) and not used(pp.rewrite(f(K, y)))
    return found[-1].reason


def test_near_misses_say_why():
    inputs, K, _ = graphs.root(8)

    def factor_too(K, y):
        L = pt.linalg.cholesky(K)
        return graphs.by_cholesky(K, y) + L.sum()

    assert "L is used by" in refused(K, factor_too)
    stack = pt.dtensor4("stack")
    y = pt.dvector("y")
    L = pt.linalg.cholesky(stack)
    [report] = pp.explain(pt.sum(pt.log(pt.diagonal(L, axis1=-2, axis2=-1))))
    assert report.reason == "a batch of matrices"
    pp.config(least=192, least_dense=200)
    fixed = pt.tensor("W", dtype="float64", shape=(8, 2))
    assert "8 rows are fewer" in refused(fixed @ fixed.T + pt.eye(8))
    small = pt.tensor("K", dtype="float64", shape=(30, 30))
    assert "no structure is known" in refused(small)
    W = pt.tensor("W", dtype="float64", shape=(300, 2))
    pp.config(least_dense=1000)
    assert "is singular" in refused(W @ W.T)
    assert "left as it is" in str(pp.explain(graphs.by_cholesky(W @ W.T, y)))


def test_each_matrix_is_listed_once():
    inputs, K, _ = graphs.root(8)
    other = graphs.toeplitz(8)[1]
    y, stack = pt.dvector("y"), pt.dtensor4("stack")
    logs = pt.log(pt.diagonal(pt.linalg.cholesky(stack), axis1=-2, axis2=-1))
    found = pp.explain([graphs.naive(K, y), graphs.naive(other, y), pt.sum(logs)])
    assert sorted(r.structure for r in found) == [
        "",
        "sum(root, diagonal)",
        "sum(toeplitz, identity)",
    ]
    assert "stack (?, ?, ?, ?): left as it is: a batch of matrices" in str(found)


def test_off_and_excluding():
    inputs, K, values = graphs.root(8)
    y = pt.dvector("y")
    f = graphs.by_cholesky(K, y)
    mode = PLAIN.excluding("pylinop")
    for function in (
        lambda: pytensor.function([*inputs, y], f, mode=mode),
        lambda: pytensor.function([*inputs, y], f, mode=PLAIN),
    ):
        with pp.off():
            assert not used(*function().maker.fgraph.outputs)
    assert not used(*pytensor.function([*inputs, y], f, mode=mode).maker.fgraph.outputs)
    assert used(*pytensor.function([*inputs, y], f, mode=PLAIN).maker.fgraph.outputs) == 1
    assert not used(f)  # the graph that was given stays as it is


def test_ops_are_text():
    inputs, K, _ = graphs.root(8)
    y = pt.dvector("y")
    f = pp.rewrite(graphs.naive(K, y))
    [op] = {
        v.owner.op
        for v in ancestors([f])
        if v.owner is not None and isinstance(v.owner.op, pp.Structured)
    }
    again = pickle.loads(pickle.dumps(op))
    assert again == op and hash(again) == hash(op) and again.text == op.text
    assert "Structured{sum: " in str(op) and "squares" in str(op)
    with pytest.raises(ValueError, match="takes 3 tensors"):
        op(y)


def test_gradients_that_nobody_asks_for_are_not_computed():
    inputs, K, values = graphs.root(8)
    y = pt.dvector("y")
    on, off = compiled([*inputs, y], graphs.by_cholesky(K, y), inputs[:1])
    specs = [n.op.spec for n in on.maker.fgraph.toposort() if isinstance(n.op, pp.Structured)]
    assert [spec[2] for spec in specs if spec[0] in ("pullback", "joined")] == [(0,)]
    same(on, off, *values, np.ones(8))


def test_wrong_settings():
    for wrong in (-1, 2.5, True, "8"):
        with pytest.raises(ValueError, match="a number of rows"):
            pp.config(least=wrong)


def test_shapes_without_computing():
    inputs, K, values = graphs.root(8)
    y = pt.dmatrix("y")
    L = pt.linalg.cholesky(K)
    x = pp.rewrite(pt.linalg.cho_solve((L, True), y, b_ndim=2))
    assert used(x) == 1
    shape = pytensor.function([*inputs, y], x.shape, mode=PLAIN, on_unused_input="ignore")
    assert not used(*shape.maker.fgraph.outputs)
    assert tuple(shape(*values, np.ones((8, 3)))) == (8, 3)


def general(K, y):
    """Of which nobody said that it is positive definite."""
    return y @ pt.linalg.solve(K, pt.sin(y)) + pt.linalg.slogdet(K)[1]


@pytest.mark.parametrize("n", [2, 3, 8, 33])
@pytest.mark.parametrize("row", graphs.ROWS, ids=lambda row: row.__name__)
def test_matrices_that_are_not_said_to_be_definite(row, n):
    if row is graphs.dense:
        pytest.skip("nothing to gain")
    if n < graphs.LEAST.get(row, 1) or (row is graphs.toeplitz_of_a_column and n < 3):
        pytest.skip("too few rows for its structure")
    inputs, K, values = row(n)
    y = pt.dvector("y")
    if row is graphs.kron:  # factors that are not symmetric, and an indefinite matrix
        r = np.random.default_rng(n)
        values = [r.standard_normal(v.shape) for v in values[:2]] + [np.array(-0.7)]
    rows = K.eval(dict(zip(inputs, values, strict=True))).shape[0]
    on, off = compiled([*inputs, y], general(K, y), [*inputs, y])
    same(on, off, *values, np.random.default_rng(n).standard_normal(rows))
    if n > 2 and row is not graphs.blocks:
        assert used(*on.maker.fgraph.outputs)
        assert any(r.structure.startswith("general(") for r in pp.explain(general(K, y)))


def test_blocks_that_may_not_be_square_are_left_alone():
    """As by PyTensor's own rewrites of solves with them."""
    A, B, y = pt.tensor("A", shape=(3, 3)), pt.dmatrix("B"), pt.dvector("y")
    [report, *_] = pp.explain(pt.linalg.solve(pt.linalg.block_diag(A, B), y))
    assert "not known to be square" in report.reason


def test_determinants_and_solves_of_what_is_not_definite():
    d, e, y = pt.dvector("d"), pt.dvector("e"), pt.dvector("y")
    K = pt.diag(d) + pt.diag(e, -1) + pt.diag(7 * e, 1)  # not symmetric
    on, off = compiled([d, e, y], general(K, y), [d, e, y])
    r = np.random.default_rng(3)
    same(on, off, r.standard_normal(9), r.standard_normal(8), r.standard_normal(9))
    W = pt.dmatrix("W")
    logdet = pt.log(pt.linalg.det(W @ W.T + pt.diag(d)))
    on, off = compiled([W, d], logdet, [W, d])
    assert used(*on.maker.fgraph.outputs)
    low = np.r_[-5.0, np.ones(8)]
    assert np.isnan(on(np.ones((9, 1)) / 9, low)[0]) and np.isnan(off(np.ones((9, 1)) / 9, low)[0])
    same(on, off, r.standard_normal((9, 2)), np.r_[-5.0, -4.0, np.ones(7)], rtol=1e-8)


def test_what_is_left_alone_says_what_to_promise():
    K, y = pt.dmatrix("K"), pt.dvector("y")
    [report] = pp.explain(general(K, y))
    assert "no structure is known" in report.reason and "positive_definite=True" in report.reason
    W, d = pt.dmatrix("W"), pt.dvector("d")
    K = W @ W.T + pt.diag(d)
    assert "the determinant is used by" in pp.explain(pt.sin(pt.linalg.det(K)))[-1].reason


def _programs(function):
    nodes = function.maker.fgraph.apply_nodes
    return sorted(n.op.spec[0] for n in nodes if isinstance(n.op, pp.Structured))


@pytest.mark.parametrize("row", graphs.ROWS, ids=lambda row: row.__name__)
def test_values_and_gradients_are_one_program(row):
    """The same bits as two programs, whatever the numbers."""
    inputs, K, values = row(19)
    y = pt.dvector("y")
    rows = K.eval(dict(zip(inputs, values, strict=True))).shape[0]
    f = pp.rewrite(graphs.by_cholesky(K, y))
    made = [f, *pytensor.grad(f, [*inputs, y])]
    on = pytensor.function([*inputs, y], made, mode=PLAIN)
    apart = pytensor.function([*inputs, y], made, mode=PLAIN.excluding("pylinop_joined"))
    assert _programs(on) == ["joined"] and _programs(apart) == ["pullback", "values"]
    rhs = np.random.default_rng(1).standard_normal(rows)
    wrong = [-v - 1 for v in values], [np.full_like(v, np.nan) for v in values]
    for given in (values, *wrong):
        for a, b in zip(on(*given, rhs), apart(*given, rhs), strict=True):
            np.testing.assert_array_equal(a, b)


def test_cotangents_that_depend_on_values_stay_apart():
    inputs, K, values = graphs.root(15)
    y = pt.dvector("y")
    on, off = compiled([*inputs, y], pt.exp(graphs.by_cholesky(K, y) / 100), [*inputs, y])
    assert _programs(on) == ["pullback", "values"]
    same(on, off, *values, np.ones(15))


def test_a_joined_program_has_derivatives_and_shapes():
    spec = ("values", ("sum", ("root", 0), ("diagonal", 1)), (("logdet",), ("squares", 2)), 3)
    op = pp.Structured(repr(("joined", spec, (1, 2), 2)))
    W, d, y = pt.dmatrix("W"), pt.dvector("d"), pt.dvector("y")
    r = np.random.default_rng(4)
    given = r.standard_normal((9, 2)), 1 + r.random(9), r.standard_normal(9)
    values = op(W, d, y, pt.constant(0.5), pt.constant(2.0), return_list=True)
    plain = pp.Structured(repr(spec))(W, d, y, return_list=True)
    f = 0.5 * plain[0] + 2.0 * plain[1]
    due = [*plain, *pytensor.grad(f, [d, y])]
    for a, b in zip(values, due, strict=True):
        assert a.type == b.type
        np.testing.assert_allclose(
            a.eval(dict(zip((W, d, y), given, strict=True)), mode=PLAIN, on_unused_input="ignore"),
            b.eval(dict(zip((W, d, y), given, strict=True)), mode=PLAIN, on_unused_input="ignore"),
        )
    second = pytensor.grad(pt.sum(pt.sin(values[2])), [W, d])
    other = pytensor.grad(pt.sum(pt.sin(due[2])), [W, d])
    found = pytensor.function([W, d, y], [*second, *other], mode=PLAIN)(*given)
    for a, b in zip(found[:2], found[2:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    assert [tuple(v.shape.eval({W: given[0], d: given[1], y: given[2]})) for v in values] == [
        (), (), (9,), (9,)
    ]  # fmt: skip


def test_explain_counts_flops_and_what_is_left_dense():
    n, k = 400, 3
    W, d, S = pt.tensor("W", shape=(n, k)), pt.tensor("d", shape=(n,)), pt.tensor("S", shape=(7, 7))
    y = pt.tensor("y", shape=(n,))
    f = graphs.by_cholesky(W @ W.T + pt.diag(d), y) + pt.linalg.cholesky(S)[0, 0]
    found = pp.explain(f)
    fired, left = sorted(found, key=lambda r: r.reason)
    assert fired.before == n**3 / 3 + n**2 and 2 * n * k < fired.after < fired.before / 10
    assert [p.took for p in fired.plans] == [None] and left.before is None
    assert "potrf" in str(fired.plans[0])
    assert found.left == {"Cholesky of (7, 7)": 1}
    assert "flops in place of 2.1e+07" in str(found) and "left dense: 1 Cholesky" in str(found)
    table = found._repr_html_()
    assert "<details>" in table and "left dense" in table and "flops in place of" in table
    W = pt.dmatrix("W")
    [fired] = pp.explain(graphs.by_cholesky(W @ W.T + pt.diag(d), y))
    assert fired.before is None and fired.plans == () and "flops" not in str([fired])


@pytest.mark.parametrize("row", graphs.ROWS, ids=lambda row: row.__name__)
def test_flops_of_rows(row):
    """Where all sizes are known: of the one plan that all is computed by, so with one factor."""
    inputs, K, values = row(64)
    known = [pt.tensor(x.name, shape=v.shape) for x, v in zip(inputs, values, strict=True)]
    K = pytensor.graph.replace.clone_replace(K, dict(zip(inputs, known, strict=True)))
    y = pt.tensor("y", shape=(K.eval(dict(zip(known, values, strict=True))).shape[0],))
    [r] = pp.explain(graphs.by_cholesky(K, y))
    rows = y.type.shape[0]
    [plan] = r.plans
    assert len(r.asked) == 2 and r.before == rows**3 / 3 + rows**2 and r.after == plan.flops > 0
    if row is graphs.dense:
        assert r.after < 1.5 * r.before
    if row in (graphs.root, graphs.gram, graphs.scaled, graphs.dense):
        f = pytensor.function([*known, y], graphs.by_cholesky(K, y), mode=PLAIN)
        with pl.explaining() as e:
            f(*values, np.ones(rows))
        ran = [s["name"] for p in e.plans for s in p.steps if s["took"] is not None]
        assert ran.count("potrf") == 1


def test_values_may_be_written_to():
    """By nodes that work in place: none is read-only, an argument, or another value."""
    spec = ("values", ("diagonal", 0), (("solve", 1), ("squares", 1)), 2)
    op = pp.Structured(repr(("joined", spec, (0, 1), 2)))
    node = op.make_node(*(pt.dvector() for _ in range(3)), pt.dscalar())
    given = [np.ones(5), np.arange(1.0, 6.0), np.zeros(5), np.zeros(())]
    cells: list = [[None] for _ in node.outputs]
    op.perform(node, given, cells)
    found = [c[0] for c in cells]
    for k, a in enumerate(found):
        assert a.flags.writeable
        assert not any(np.may_share_memory(a, b) for b in [*given, *found[:k]])


def test_constants_of_few_columns(rng):
    """Products that were folded, to rounding of each entry; nothing near to one."""
    for n, k in ((12, 1), (15, 3), (16, 4), (17, 4), (100, 20), (401, 100)):
        for scales in (np.ones(n), 10.0 ** rng.uniform(-6, 6, n)):
            W = rng.standard_normal((n, k)) * scales[:, None]
            W[::7] = 0
            a = W @ W.T
            kind, found = constants.what(a)
            assert kind == "root" and found.shape == (n, k)
            size = np.linalg.norm(W, axis=1)
            assert (np.abs(found @ found.T - a) <= 70 * EPS * np.outer(size, size)).all()
            off, jitter, zero = a.copy(), a + np.diag(200 * EPS * size**2), a.copy()
            off[1, -1 - (n % 7 == 1)] += 200 * EPS * size[1] * size[-1 - (n % 7 == 1)]
            zero[0, 1] = zero[1, 0] = 1e-30
            wide = rng.standard_normal((n, n // 4 + 1)) * scales[:, None]
            for other in (
                off,
                jitter,
                zero,
                -a,
                a[:, ::-1],
                wide @ wide.T,
                np.full_like(a, np.nan),
            ):
                assert constants.what(other)[0] == "dense", n


@pytest.mark.parametrize("n", [15, 16, 17, 60, 100, 200])
def test_constants_of_slowly_falling_pivots_are_dense(n, rng):
    """Kernels with and without jitter, of float32 too; a root beside what is large in one row."""
    t = np.linspace(0, 10, n)
    kernel = np.exp(-((t[:, None] - t) ** 2) / 2)
    diffuse = 0.5 * np.ones((n, n)) + 0.5 * np.eye(n)
    near = rng.standard_normal((n, 2))
    for a in (kernel, kernel + 1e-6 * np.eye(n), diffuse, near @ near.T + 1e-7 * np.eye(n)):
        for ratio in (1.0, 1e3, 1e8):
            scales = np.r_[ratio, np.ones(n - 1)]
            for dtype in ("float64", "float32"):
                scaled = (a * scales[:, None] * scales).astype(dtype)
                assert constants.what(scaled)[0] == "dense", (n, ratio, dtype)


def test_float32_constants_are_roots_where_they_are_exact(rng):
    """Of groups; their rounding hides jitters, so nothing else is one."""
    for n, k in ((16, 4), (17, 4), (100, 20)):
        Z = np.eye(k, dtype="float32")[np.r_[:k, rng.integers(0, k, n - k)]]
        for c in (0.25, 1.0, 4.0):
            kind, found = constants.what(np.float32(c) * (Z @ Z.T))
            assert kind == "root" and found.dtype == "float32" and found.shape == (n, k)
            np.testing.assert_array_equal(found @ found.T, c * Z @ Z.T)
        jittered = Z @ Z.T + np.float32(1e-6) * np.eye(n, dtype="float32")
        W = rng.standard_normal((n, k)).astype("float32")
        for other in (jittered, W @ W.T, 1.1 * (Z @ Z.T)):
            assert constants.what(other)[0] == "dense", n


@pytest.mark.parametrize("n", [40, 200])
def test_a_constant_with_one_diffuse_row(n, rng):
    """Its other rows' variances are not lost: as written."""
    a = 0.5 * np.ones((n, n)) + 0.5 * np.eye(n)
    a[0] *= 1e8
    a[:, 0] *= 1e8
    rhs, unit = rng.standard_normal(n), np.r_[1e-8, np.ones(n - 1)]
    due = (a + 0.01 * np.eye(n)) * unit[:, None] * unit
    s, y = pt.dscalar("s"), pt.dvector("y")
    K = pt.constant(a) + s * pt.eye(n)
    logdet, square = pt.linalg.slogdet(K)[1], y @ pt.linalg.solve(K, y, assume_a="pos")
    given = {"mode": PLAIN, "on_unused_input": "ignore"}
    for term, value in (
        (logdet, np.linalg.slogdet(due)[1] + 2 * np.log(1e8)),
        (square, (rhs * unit) @ np.linalg.solve(due, rhs * unit)),
    ):
        found = pytensor.function([s, y], pp.rewrite(term), **given)(0.01, rhs)
        np.testing.assert_allclose(found, value, rtol=1e-9)
