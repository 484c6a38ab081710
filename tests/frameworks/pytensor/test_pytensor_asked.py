"""What is asked of a matrix beside solves, squares and log-determinants: products of triangular
solves, the product of the diagonal, the inverse; and noise of several sizes beside a precision."""

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor")

import pytensor.tensor as pt
from contract.c_face import as_c, run_program
from frameworks.pytensor import pytensor_graphs as graphs
from frameworks.pytensor.test_pytensor_rewrites import (
    compiled,
    same,
    small_sizes,  # noqa: F401
    used,
)

import pylinop.pytensor as pp
from pylinop._programs.entry import road


def predictions(K, Z, y):
    """As those of a Gaussian process: mean, covariance, variances and density."""
    L = pt.linalg.cholesky(K)
    A = pt.linalg.solve_triangular(L, Z, lower=True)
    B = pt.linalg.solve_triangular(L, pt.cos(Z[:, :1]), lower=True)
    z = pt.linalg.solve_triangular(L, y, lower=True)
    products = pt.sin(A.T @ z).sum() + pt.sin(A.T @ A).sum() + pt.sin(B.T @ A).sum() + (z @ A).sum()
    return products + z @ z - pt.sum(A**2) + pt.log(pt.prod(pt.diag(L)))


def inverse_by_factor(K, Z, y):
    x = pt.linalg.cho_solve((pt.linalg.cholesky(K), True), pt.eye(K.shape[0]))
    return pt.sin(x).sum() + y @ pt.linalg.cho_solve((pt.linalg.cholesky(K), True), y)


def inverse(K, Z, y):
    return pt.sin(pt.linalg.inv(K)).sum() + (y @ Z).sum()


def by_factor(K, Z, y):
    return predictions(K, Z, y) + inverse_by_factor(K, Z, y)


CASES = [(row, 17) for row in graphs.ROWS]
CASES += [(row, n) for row in (graphs.root, graphs.toeplitz, graphs.dense) for n in (2, 15, 100)]


@pytest.mark.parametrize("form", [by_factor, inverse])
@pytest.mark.parametrize(("row", "n"), CASES, ids=lambda x: getattr(x, "__name__", x))
def test_rows(row, n, form, rng):
    inputs, K, values = row(n)
    known = [pt.tensor(x.name, shape=v.shape) for x, v in zip(inputs, values, strict=True)]
    K = pytensor.graph.replace.clone_replace(K, dict(zip(inputs, known, strict=True)))
    inputs, Z, y = known, pt.dmatrix("Z"), pt.dvector("y")
    rows = K.eval(dict(zip(inputs, values, strict=True))).shape[0]
    given = [*values, rng.standard_normal((rows, 3)), rng.standard_normal(rows)]
    at = {graphs.kron: (0, 1), graphs.blocks: (0,), graphs.congruence: (2,)}.get(row, ())
    wrt = [x for k, x in enumerate(inputs) if k not in at]  # those by symmetric parts are symmetric
    on, off = compiled([*inputs, Z, y], form(K, Z, y), [*wrt, Z, y])
    same(on, off, *given, rtol=1e-8)
    reports = [r for r in pp.explain(form(K, Z, y)) if not r.reason]
    asked = {what for r in reports for what in r.asked}
    if n == 2:  # a dense one is Toeplitz with a diagonal, a product of one column no product
        return
    if form is by_factor and row is graphs.dense:
        assert not reports  # products of triangular solves are by the factor alone cheapest
    elif form is by_factor:
        assert {"solve", "squares", "logdet", "inverse"} == asked
    else:  # an inverse of an inverse is PyTensor's, and that of one Kronecker product
        known = {graphs.dense, graphs.blocks, graphs.kron_alone}
        known |= {graphs.autoregression, graphs.neighbours}
        assert asked == (set() if row in known else {"inverse"})
        factors = row is graphs.kron_alone  # one of them is Toeplitz, and inverted as such
        assert bool(used(*on.maker.fgraph.outputs)) == (bool(asked) or factors)


def test_the_inverse_of_a_dense_matrix_by_its_factor(rng):
    inputs, K, values = graphs.dense(33)
    Z, y = pt.dmatrix("Z"), pt.dvector("y")
    on, off = compiled([*inputs, Z, y], inverse_by_factor(K, Z, y), [*inputs, y])
    [report] = pp.explain(inverse_by_factor(K, Z, y))
    assert report.structure == "dense" and set(report.asked) == {"inverse", "squares"}
    same(on, off, *values, np.ones((33, 1)), rng.standard_normal(33))


def test_not_definite_is_nan(rng):
    inputs, K, values = graphs.jitter(16)
    Z, y = pt.dmatrix("Z"), pt.dvector("y")
    given = [0.1 * values[0], np.nan, rng.standard_normal((16, 3)), np.ones(16)]
    for form in (predictions, inverse_by_factor):
        on, off = compiled([*inputs, Z, y], form(K, Z, y), [])
        assert used(*on.maker.fgraph.outputs)
        assert np.isnan(on(*given)[0]) and np.isnan(off(*given)[0])
    inputs, K, values = graphs.constant(16)
    bad = np.r_[-5.0, -5.0, np.ones(14)]
    inputs = inputs[::-1]
    on, off = compiled([*inputs, Z, y], inverse_by_factor(K, Z, y), [])
    given = [0.1, bad, *given[2:]]
    assert np.isnan(on(*given)[0]) and np.isnan(off(*given)[0])
    on, off = compiled([*inputs, Z, y], inverse(K, Z, y), inputs)
    same(on, off, *given, rtol=1e-8)


def test_products_by_what_may_have_any_rank_are_left_alone():
    """As in sparse Gaussian processes, where W has more columns than rows."""
    inputs, K, _ = graphs.root(9)
    z = pt.linalg.solve_triangular(pt.linalg.cholesky(K), pt.dmatrix("Z"), lower=True)
    for f in (z.T @ z, pt.prod(pt.diag(pt.linalg.cholesky(K))), pt.linalg.inv(K)):
        [report] = pp.explain(pt.sin(f))
        assert "its rank may be as large as its size" in report.reason


def test_other_uses_of_a_triangular_solve_are_named():
    inputs, K, _ = graphs.root(9)
    L, M = pt.linalg.cholesky(K), pt.dmatrix("M")
    Z = pt.dmatrix("Z")
    A = pt.linalg.solve_triangular(L, Z, lower=True)
    for f in (A.T @ M, M @ A, pt.exp(A), A.T.sum(0)):
        [report] = pp.explain(f)
        assert "a triangular solve is used by" in report.reason


def test_an_inverse_in_a_matrix_that_is_asked_of_stays_for_its_structure():
    inputs, K, _ = graphs.noisy(12)
    y = pt.dvector("y")
    L = pt.linalg.cholesky(K)
    found = pp.explain([graphs.naive(K, y), L.sum()])
    assert any("is a part of a matrix that is asked of itself" in r.reason for r in found)
    A = pt.dmatrix("A")
    assert "no structure is known" in pp.explain([A, pt.linalg.inv(A)])[0].reason
    [report] = pp.explain(pt.linalg.inv(A))
    assert "no structure is known" in report.reason and "assume" not in report.reason


def general(K, y):
    return y @ pt.linalg.solve(K, pt.sin(y)) + pt.linalg.slogdet(K)[1]


@pytest.mark.parametrize(("n", "width"), [(2, 1), (15, 1), (16, 2), (17, 1), (100, 2)])
def test_noise_of_several_sizes_beside_a_precision(n, width, rng):
    """An autoregression that is measured with known errors, which may vanish."""
    d, e, v, s = pt.dvector("d"), pt.dvector("e"), pt.dvector("v"), pt.dscalar("s")
    Q = pt.diag(d) + pt.diag(e, width) + pt.diag(e, -width)
    K = pt.linalg.inv(Q) + s * pt.eye(n) + pt.diag(v)
    y = pt.dvector("y")
    sizes = rng.random(n)
    for form, word in ((graphs.by_cholesky, "sum("), (general, "general(sum(")):
        on, off = compiled([d, e, v, s, y], form(K, y), [d, e, v, s, y])
        [report] = [r for r in pp.explain(form(K, y)) if not r.reason]
        assert report.structure.startswith(f"{word}inverse(") and used(*on.maker.fgraph.outputs)
        for noise in (sizes, np.r_[1e-13, sizes[1:]], np.zeros(n), np.r_[-0.05, sizes[1:]]):
            for number in (0.0, 0.3):
                given = 3 + rng.random(n), rng.random(n - width), noise, number
                same(on, off, *given, rng.standard_normal(n), rtol=1e-8)


@pytest.mark.parametrize("n", [2, 15, 16, 17])
@pytest.mark.parametrize("kind", ["identity", "diagonal"])
def test_a_precision_that_is_not_definite_beside_large_noise(n, kind):
    """The sum is definite all the same; from C, and in Python."""
    band = ("sum", ("diagonal", 0), ("off", "1", 1), ("off", "-1", 1))
    tree = ("sum", ("inverse", band), (kind, 2))
    spec = ("values", tree, (("logdet",), ("squares", 3)), 4)
    text = f"pytensor\n{spec!r}".encode()
    noise = np.ones(() if kind == "identity" else n)
    for k, precision in enumerate((3.0, 4.0, 5.0, 6.0, -3.0, -0.5, np.nan, 3.0)):
        Q = np.diag(np.full(n, precision)) + 0.2 * (graphs.distances(n) == 1)
        given = np.full(n, precision), np.full(n - 1, 0.2), noise, np.arange(1.0, n + 1)
        outs = [np.zeros(()), np.zeros(())]
        assert run_program()(text, len(text), 4, as_c(given), 2, as_c(outs), 0) == 0
        due = np.full(2, np.nan)
        if not np.isnan(precision):
            K = np.linalg.inv(Q) + np.eye(n)
            if np.linalg.eigvalsh(K)[0] > 0:
                due = np.linalg.slogdet(K)[1], given[3] @ np.linalg.solve(K, given[3])
        np.testing.assert_allclose(np.stack(outs), due, rtol=1e-11)
        if k == 3:
            assert road(text.decode()) == "from C"
    assert "its tape is not for these values" in road(text.decode())


def test_inverses_of_kronecker_products_are_those_of_the_factors():
    """By PyTensor's own rewrite, as its tests expect."""
    A, B = pt.dmatrix("A"), pt.dmatrix("B")
    inverse = pt.linalg.inv(pt.linalg.kron(A, B))
    [r] = pp.explain(inverse)
    assert "inverts the factors" in r.reason
    a, b = graphs.definite(3), graphs.definite(4, 1)
    found = pytensor.function([A, B], inverse, mode="FAST_COMPILE")(a, b)
    np.testing.assert_allclose(found, np.linalg.inv(np.kron(a, b)), rtol=1e-9, atol=1e-12)
