"""What PyMC's users write for one and the same structure, and what is near to it and is not."""

import os

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor")

import pytensor.tensor as pt
from frameworks.pytensor import pytensor_graphs as graphs
from frameworks.pytensor.test_pytensor_rewrites import (
    compiled,
    same,
    small_sizes,  # noqa: F401
    used,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import pylinop.pytensor as pp
from pylinop._programs.entry import road

N = 24
LAG = graphs.distances(N)
GROUPS = np.repeat(np.arange(6), 4)
Z = np.eye(6)[GROUPS]
LINE = (LAG == 1).astype(float)
s, t = pt.dscalar("s"), pt.dscalar("t")
d, c, v = pt.dvector("d"), pt.dvector("c"), pt.dvector("v")
W, C, G = pt.dmatrix("W"), pt.tensor("C", shape=(3, 3)), pt.dmatrix("G")
GIVEN = [s, t, d, c, v, W, C, G]


def numbers(seed=0):
    r = np.random.default_rng(seed)
    return [
        np.array(0.7),
        np.array(0.4),
        0.5 + r.random(N),
        0.3 + r.random(3),
        0.3 + r.random(6),
        r.standard_normal((N, 3)),
        graphs.definite(3, seed),
        graphs.definite(6, seed),
    ]


def framed(K, u=None):
    u = pt.sqrt(d) if u is None else u
    return u[:, None] * K * u[None, :]


def first_difference(by):
    return pt.eye(N) - by * np.eye(N, k=-1)


def with_ends(K):
    return pt.set_subtensor(pt.set_subtensor(K[0, 0], 1.0)[-1, -1], 1.0)


LOW, D, NOISE = W @ W.T, pt.diag(d), s**2 * pt.eye(N)
GRID, KNOWN = pt.exp(-s * LAG), graphs.definite(N)
GRADES = 10.0 ** np.linspace(-6, 6, N)
BAND = pt.diag(2 + d) - 0.3 * s * LINE
MARKOV = (1 + t**2) * pt.eye(N) - t * np.eye(N, k=1) - t * np.eye(N, k=-1)
SPELLINGS = {
    "columns times a function of a vector": ((W * pt.exp(c)) @ W.T + D, "sum(weighted, diagonal)"),
    "rows of the transpose": (W @ (pt.exp(c)[:, None] * W.T) + D, "sum(weighted, diagonal)"),
    "diag between": (W @ (pt.diag(c) @ W.T) + NOISE, "sum(weighted, identity)"),
    "columns divided": ((W / c) @ W.T + D, "sum(weighted, diagonal)"),
    "a constant design": ((Z[:, :3] * c) @ Z[:, :3].T + D, "sum(weighted, diagonal)"),
    "random slopes": (Z[:, :3] @ C @ Z[:, :3].T + NOISE, "sum(congruence, identity)"),
    "groups by numbers": (G[GROUPS][:, GROUPS] + NOISE, "sum(congruence, identity)"),
    "groups the other way": (G[:, GROUPS][GROUPS] + NOISE, "sum(congruence, identity)"),
    "groups at once": (G[GROUPS[:, None], GROUPS[None]] + D, "sum(congruence, diagonal)"),
    "random intercepts": (s**2 * Z @ Z.T + t * np.eye(N), "sum(scaled(root), identity)"),
    "variances of groups": (Z @ pt.diag(v) @ Z.T + NOISE, "sum(weighted, identity)"),
    "einsum": (pt.einsum("ik,jk->ij", W, W) + D, "sum(root, diagonal)"),
    "identity_like": (LOW + s * pt.identity_like(LOW), "sum(root, identity)"),
    "a vector with itself": (pt.outer(d, d) + D, "sum(root, diagonal)"),
    "functions of it": (t * framed(1.0, pt.exp(d)) + D, "sum(scaled(root), diagonal)"),
    "alloc": (pt.alloc(s, N, N) + D, "sum(constant, diagonal)"),
    "ones": (s * pt.ones((N, N)) + D, "sum(constant, diagonal)"),
    "compound symmetry": (
        s**2 * ((1 - t) * np.eye(N) + t * np.ones((N, N))),
        "sum(diagonal, constant)",
    ),
    "blocks of that": (
        pt.linalg.block_diag(s * pt.eye(3) + t, pt.diag(c), s * pt.eye(3)),
        "blocks(sum(diagonal, constant), diagonal, diagonal)",
    ),
    "the inverse of that": (
        pt.linalg.inv(s * pt.eye(N) + t * np.ones((N, N))) + D,
        "sum(inverse(sum(diagonal, constant)), diagonal)",
    ),
    "switch": (pt.switch(np.eye(N) > 0, s, 0.1 * s * t), "toeplitz"),
    "lag zero apart": (pt.switch(pt.eq(LAG, 0), 1.0, s * t**LAG), "toeplitz"),
    "deviations around low rank": (framed(LOW + D), "sum(root, diagonal)"),
    "by diag": (
        pt.diag(d) @ (LOW + 0.2 * pt.eye(N) + t) @ pt.diag(d),
        "sum(root, diagonal, weighted)",
    ),
    "a number divided": (s / (d[:, None] * d[None, :]) + D, "sum(scaled(root), diagonal)"),
    "a number of two axes": (
        np.full((1, 1), 3.0) * s / (d[:, None] * d[None, :]) + D,
        "sum(scaled(root), diagonal)",
    ),
    "divided": ((s * LOW + pt.eye(N)) / pt.outer(d, d), "sum(scaled(root), diagonal)"),
    "around a grid": (t * framed(GRID + NOISE), "framed(sum(toeplitz, identity))"),
    "around a product": (
        framed(pt.linalg.kron(GRID[:4, :4], KNOWN[:6, :6])),
        "framed(kron(symmetric, symmetric))",
    ),
    "its precision": (pt.linalg.inv(framed(t**LAG)), "framed(inverse(toeplitz))"),
    "a constant precision": (pt.linalg.inv(s * KNOWN + NOISE), "rotated"),
    "around a constant": (KNOWN * pt.outer(d, d), "framed(rotated)"),
    "a constant twice": (s * KNOWN + t * KNOWN - 0.1 * NOISE, "rotated"),
    "blocks of these": (
        pt.linalg.block_diag(s * KNOWN + NOISE, framed(GRID)),
        "blocks(rotated, framed(toeplitz))",
    ),
    "blocks of these beside noise": (
        pt.linalg.block_diag(s * KNOWN + NOISE, framed(GRID), t**LAG) + s * pt.eye(3 * N),
        "sum(blocks(dense, dense, toeplitz), identity)",
    ),
    "sums along a grid": (
        s * (GRID + t * (0.3 * s**LAG - 0.1 * t**LAG)) + t**LAG + NOISE,
        "sum(toeplitz, identity)",
    ),
    "around others": (
        framed(W @ pt.diag(c) @ W.T + W @ C @ W.T + D),
        "sum(weighted, congruence, diagonal)",
    ),
    "around a band": (framed(BAND), "sum(diagonal, off, off)"),
    "its inverse": (pt.linalg.inv(framed(BAND)), "inverse(sum(diagonal, off, off))"),
    "ends set": (with_ends(MARKOV) / s, "sum(diagonal, off, off)"),
    "ends set at once": (
        pt.set_subtensor(MARKOV[[0, -1], [0, -1]], 1.0),
        "sum(diagonal, off, off)",
    ),
    "noise added to the diagonal": (
        pt.inc_subtensor((0.8**LAG * s)[np.diag_indices(N)], d),
        "sum(toeplitz, diagonal)",
    ),
    "(I - r L)' (I - r L)": (
        first_difference(t).T @ first_difference(t),
        "sum(diagonal, off, off)",
    ),
    "(I - r W) (I - r W)'": (
        (np.eye(N) - t * LINE) @ (np.eye(N) - t * LINE).T,
        "sum(diagonal, off, off, off, off)",
    ),
    "a factor of three diagonals": (
        (lambda B: B @ B.T)(pt.diag(d) + pt.diag(0.2 * d[1:], -1) + pt.diag(t * d[1:], 1)),
        "sum(diagonal, off, off, off, off)",
    ),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings(name):
    K, structure = SPELLINGS[name]
    y = pt.dvector("y")
    f = graphs.by_cholesky(K, y)
    assert structure in [r.structure for r in pp.explain(f)]
    rows = K.eval(dict(zip(GIVEN, numbers(), strict=True)), on_unused_input="ignore").shape[0]
    free = [x for x in GIVEN if x not in (C, G)]  # symmetric ones: one triangle has all of it there
    on, off = compiled([*GIVEN, y], f, [*free, y])
    assert used(*on.maker.fgraph.outputs)
    same(on, off, *numbers(), np.random.default_rng(1).standard_normal(rows))


def rounded(a):
    a = a.copy()
    a[0, 1] = np.nextafter(a[0, 1], 2)
    return a


DESIGN = np.random.default_rng(2).random((N, 3))
NEAR = {
    "two vectors": framed(1.0) + 0 * t + d[:, None] * pt.exp(d)[None, :] + 9 * D,
    "other weights on the right": d[:, None] * (LOW + D) * pt.sqrt(d)[None, :],
    "rows and columns of other groups": G[GROUPS][:, np.roll(GROUPS, 1)] + 9 * NOISE,
    "numbers from the end": G[GROUPS][:, GROUPS - 6] + 9 * NOISE,
    "more groups than half of the rows": (
        pt.exp(-s * LAG[:13, :13] ** 1.5)[np.arange(N) % 13][:, np.arange(N) % 13] * d[0] * d[1]
        + NOISE
        + 0 * LOW
    ),
    "a design that differs in one digit": (DESIGN * c) @ rounded(DESIGN).T + 9 * D,
    "rows weighted": (pt.exp(d)[:, None] * W) @ W.T + 9 * D,
    "an entry beside the diagonal": pt.set_subtensor(MARKOV[1, 0], 0.1),
    "deviations beside noise": framed(GRID) + NOISE,
    "two constants": s * KNOWN + t * graphs.definite(N, 1) + NOISE,
    "a constant beside others": s * KNOWN + D,
    "a constant that is not symmetric": s * np.triu(KNOWN, 1) + np.tril(KNOWN) + NOISE,
    "a constant of many sizes": s * GRADES[:, None] * KNOWN * GRADES + NOISE,
    "a constant that is nearly I": (np.eye(N) + 1e-9 * KNOWN) * (1 + s) - pt.eye(N),
    "the diagonal of low rank set": pt.set_subtensor((LOW + D)[0, 0], 9.0),
}


@pytest.mark.parametrize("name", NEAR)
def test_near_misses_are_as_without(name):
    """Lower triangles of other matrices: nothing that reads the whole may be taken; nor what has
    fewer digits."""
    y = pt.dvector("y")
    f = graphs.by_cholesky(NEAR[name], y)
    on, off = compiled([*GIVEN, y], f, [s, t, d, c, W, y])
    same(on, off, *numbers(), np.random.default_rng(1).standard_normal(N))


def test_products_of_wide_bands_are_roots():
    """Up to nine diagonals."""
    e = pt.dvector("e")
    for k, due in ((4, "sum(diagonal, off, off)"), (5, "root")):
        B = pt.diag(d) + pt.diag(e, -k)
        [report] = pp.explain(graphs.by_cholesky(B @ B.T + 0 * NOISE + 0.1 * pt.eye(N), v))
        assert report.structure.startswith(f"sum({due[4:-1] if k == 4 else due}")


def test_explain_says_where_structure_does_not_pay():
    d, y = pt.tensor("d", shape=(300,)), pt.tensor("y", shape=(300,))
    T, words = t ** graphs.distances(300), "no way by this structure is cheaper"
    for K, is_dear in ((T + pt.diag(d), True), (T + s * pt.eye(300), False), (T + s + d, False)):
        found = pp.explain(graphs.by_cholesky(K, y))
        assert (words in str(found)) == (words in found._repr_html_()) == is_dear


def test_sizes_that_are_said_are_checked():
    """s 1 1' of 24 rows and a diagonal of 5."""
    y = pt.dvector("y")
    on, off = compiled([s, d, y], graphs.by_cholesky(s * np.ones((N, N)) + D, y), [s])
    assert used(*on.maker.fgraph.outputs)
    for f in (on, off):
        with pytest.raises((AssertionError, ValueError)):
            f(0.3, np.ones(5), np.ones(5))
    for shape in ((N, N), (N, None), (None, N)):
        of_low = pt.specify_shape(pt.specify_shape(LOW, shape) + 0 * D, shape) + D
        on, off = compiled([W, d, y], graphs.by_cholesky(of_low, y), [W, d, y])
        given = numbers()[5], numbers()[2], np.ones(N)
        same(on, off, *given)


@pytest.mark.parametrize("n", [1, N + 1])
def test_deviations_of_another_length(n):
    """A determinant adds up their logarithms, however many there are."""
    for f in (pt.linalg.slogdet(framed(GRID))[1], graphs.by_cholesky(framed(GRID), pt.ones(N))):
        on, off = compiled([d, s], f, [s])
        assert used(*on.maker.fgraph.outputs)
        for g in (on, off):
            with pytest.raises(ValueError):
                g(np.ones(n), 0.4)


@pytest.mark.parametrize("bad", [0.0, np.inf, -np.inf, np.nan])
def test_deviations_and_multiples_that_divide_nothing(bad):
    """NaN in all that is asked, where PyTensor's is NaN or an error."""
    for K, x, value in ((framed(GRID), d, np.r_[np.ones(N - 1), bad]), (s * KNOWN, s, bad)):
        for f in (pt.linalg.slogdet(K)[1], pt.linalg.solve(K, v)[0], graphs.by_cholesky(K, v)):
            on, _ = compiled([d, s, v], f, [x])
            assert used(*on.maker.fgraph.outputs)
            given = (value, 0.4) if x is d else (np.ones(N), value)
            found = on(*given, np.ones(N))
            assert all(np.isnan(a).any() for a in found) or (bad == 0 and found[0] == -np.inf)


def test_a_right_hand_side_that_is_wider():
    """A float32 matrix and float64 data: results as wide as without."""
    W, y = pt.fmatrix("W"), pt.dvector("y")
    f = graphs.by_cholesky(W @ W.T + pt.eye(9, dtype="float32"), y)
    on, off = compiled([W, y], f, [W, y])
    assert used(*on.maker.fgraph.outputs)
    r = np.random.default_rng(0)
    same(on, off, r.standard_normal((9, 2)).astype("float32"), r.standard_normal(9), rtol=2e-5)


def test_stacks_of_diagonals():
    """By alloc_diag along the last two axes."""
    W, d = pt.dtensor3("W"), pt.dmatrix("d")
    L = pt.linalg.cholesky(W @ W.mT + pt.basic.alloc_diag(d, axis1=-2, axis2=-1))
    f = pt.sum(pt.log(pt.diagonal(L, axis1=-2, axis2=-1)))
    on, off = compiled([W, d], f, [W, d])
    assert [r.structure for r in pp.explain(f)] == ["sum(root, diagonal)"]
    r = np.random.default_rng(0)
    same(on, off, r.standard_normal((3, 9, 2)), 0.5 + r.random((3, 9)))


def test_products_of_a_kernel_and_a_covariance_of_outputs():
    """As `pm.gp.cov.Coregion` writes it."""
    outputs, x = np.repeat(np.arange(3), 8)[:, None], np.tile(np.linspace(0, 1, 8), 3)
    y = pt.dvector("y")
    K = (C + C.T)[outputs, outputs.T] * pt.exp(-s * np.subtract.outer(x, x) ** 2) + NOISE
    f = graphs.by_cholesky(K, y)
    assert pp.explain(f)[0].structure == "sum(kron(symmetric, symmetric), identity)"
    on, off = compiled([*GIVEN, y], f, [s, t, C, y])
    same(on, off, *numbers(), np.random.default_rng(0).standard_normal(N))


def test_graphs_of_many_steps():
    """Whether two of them are alike is seen; what is too deep to be read is dense."""
    left, right = W, W.T
    for _ in range(400):
        left, right = left + 0.01 * s, right + 0.01 * s
    assert pp.explain(graphs.by_cholesky(left @ right + D, v))[0].structure == "sum(root, diagonal)"
    for _ in range(800):
        left = 1.01 * pt.tanh(left)
    [report] = pp.explain(graphs.by_cholesky(left @ left.T + D, v))
    assert report.structure == "dense"


TERMS = [
    LOW,
    t * LOW,
    (W * c) @ W.T,
    W @ C @ W.T,
    Z @ pt.diag(v) @ Z.T,
    pt.outer(d, d),
    D,
    NOISE,
    1e-6 * np.eye(N),
    pt.diag(pt.alloc(t, N)),
    s * pt.ones((N, N)),
    pt.exp(-s * LAG),
    t**LAG,
    pt.linalg.kron(G, pt.exp(-s * graphs.distances(4))),
    pt.linalg.kron(pt.eye(6), pt.exp(-t * graphs.distances(4))),
    pt.linalg.block_diag(G, C, pt.diag(pt.exp(-s * np.arange(N - 9.0)))),
    BAND,
    MARKOV,
    pt.linalg.inv(BAND),
    s * KNOWN,
]
Y = pt.dvector("y")


@settings(max_examples=8, deadline=None, derandomize=True)
@given(
    st.lists(st.integers(0, len(TERMS) - 1), min_size=1, max_size=4),
    st.booleans(),
    st.integers(0, 3),
)
def test_sums_of_structures_are_as_without(places, is_framed, seed):
    K = sum((TERMS[k] for k in places[1:]), TERMS[places[0]]) + 0.3 * pt.eye(N)
    K = framed(K) if is_framed else K
    on, off = compiled([*GIVEN, Y], graphs.by_cholesky(K, Y), [s, t, d, c, v, W, Y])
    same(on, off, *numbers(seed), np.random.default_rng(seed).standard_normal(N), rtol=1e-8)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_compiled_function_in_a_forked_child():
    """A tape that the parent made, and a first call with arrays of another size."""
    y = pt.dvector("y")
    on, off = compiled([W, d, y], graphs.by_cholesky(LOW + D, y), [W, d, y], mode="NUMBA")
    r = np.random.default_rng(0)
    sets = [(r.standard_normal((n, 3)), 1 + r.random(n), r.standard_normal(n)) for n in (17, 31)]
    due = [off(*values) for values in sets]
    for _ in range(4):
        before = on(*sets[0])
    child = os.fork()
    if child == 0:
        fine = False
        try:
            found = [on(*values) for values in sets for _ in range(3)]
            fine = all(
                np.array_equal(a, b) for x in found[:3] for a, b in zip(x, before, strict=True)
            ) and all(
                np.allclose(a, b, rtol=1e-9, atol=1e-9)
                for x in found[3:]
                for a, b in zip(x, due[1], strict=True)
            )
        finally:
            os._exit(0 if fine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    same(on, off, *sets[0])
    assert any(road(f"pytensor\n{n.op.text}") == "from C" for n in _nodes(on))


def _nodes(function):
    return [n for n in function.maker.fgraph.apply_nodes if isinstance(n.op, pp.Structured)]
