"""Solves go by iteration where that is cheaper and as accurate, by the planner's prices alone."""

import functools

import numpy as np
import pytest

import pylinop as pl
from pylinop import _core
from pylinop._iterative import by_price


def rng(seed=0):
    return np.random.default_rng(seed)


M, N = 40, 33
SIZE = M * N
T1, T2 = pl.Toeplitz(0.5 ** np.arange(M)), pl.Toeplitz(0.6 ** np.arange(N))
D = rng(1).uniform(0.5, 2, SIZE)
SUM = pl.Kron(T1, T2) + pl.Diag(D)


def single(op):
    """By its parts in single precision."""
    return pl.Kron(T1.astype(op), T2.astype(op)) + pl.Diag(D.astype(op))


def went(op, b, **how):
    """The solution, and whether it came by iteration."""
    with pl.explaining() as e:
        x = pl.solve(op, b, **how)
    names = [step["name"] for plan in e.plans for step in plan.steps]
    by = {"cg", "minres", "gmres"} & set(names)
    return x, bool(by) and not {"getrf", "potrf", "sytrf"} & set(names)


def eta(op, x, b):
    """The largest backward error of the columns, with a lower bound of |A|."""
    v = np.ones(SIZE) / np.sqrt(SIZE)
    below = np.linalg.norm(op @ v) * np.linalg.norm(x, axis=0) + np.linalg.norm(b, axis=0)
    return np.max(np.linalg.norm(b - op @ x, axis=0) / below)


CASES = {
    "definite": (SUM, float),
    "shifted": (SUM + 3 * pl.Identity(SIZE), float),
    "complex b": (SUM, complex),
    "single": (single(np.float32), np.float32),
    "not Hermitian": (
        pl.Kron(pl.Toeplitz(0.4 ** np.arange(M), 0.1 ** np.arange(M)), T2) + pl.Diag(5 + D),
        float,
    ),
}


@pytest.mark.parametrize(
    "name, columns", [(name, None) for name in CASES] + [("definite", 1), ("single", 3)]
)
def test_the_cheaper_way_is_taken_at_working_accuracy(name, columns):
    op, dtype = CASES[name]
    b = rng(2).standard_normal(SIZE if columns is None else (SIZE, columns)).astype(dtype)
    if dtype is complex:
        b = b * (1 + 0.5j)
    with pl.config(warn_limit=1 << 40):
        x, iterated = went(op, b)
        direct, by_factor = went(op, b, method="direct")
    assert iterated and not by_factor
    assert x.dtype == direct.dtype and x.shape == direct.shape and x.flags.c_contiguous
    assert eta(op, x, b) <= 5 * SIZE * np.finfo(x.dtype).eps  # 10 n u
    cond = 40  # their eigenvalues lie within 0.5 and 20
    assert np.abs(x - direct).max() <= 1e3 * cond * np.finfo(x.dtype).eps * np.abs(direct).max()


def test_no_warning_where_nothing_is_made_dense(recwarn):
    with pl.config(warn_limit=1 << 20):
        pl.solve(SUM, np.ones(SIZE))
    assert not [w for w in recwarn if w.category is pl.MaterializationWarning]


def test_every_side_and_view():
    b = rng(3).standard_normal(SIZE) + 1j * rng(4).standard_normal(SIZE)
    op = pl.Kron(pl.Toeplitz(0.4 ** np.arange(M), 0.1 ** np.arange(M)), T2) + pl.Diag(5 + D + 0.5j)
    a = op.toarray()
    B = np.stack([b, 2 * b.real], 1)
    inverse = pl.inv(op)
    for made, want in [
        (pl.solve(op.T, b), np.linalg.solve(a.T, b)),
        (pl.solve(op.H, b), np.linalg.solve(a.conj().T, b)),
        (pl.solve(op.conj(), b), np.linalg.solve(a.conj(), b)),
        (inverse @ B, np.linalg.solve(a, B)),
        (b @ inverse, np.linalg.solve(a.T, b)),
        (B.T @ inverse, np.linalg.solve(a.T, B).T),
        (inverse.rmatvec(b), np.linalg.solve(a.conj().T, b)),
        (np.linalg.solve(op, b), np.linalg.solve(a, b)),
        (inverse.T @ b, np.linalg.solve(a.T, b)),
        (inverse.H @ B, np.linalg.solve(a.conj().T, B)),
        (inverse.conj() @ b, np.linalg.solve(a.conj(), b)),
        (b @ inverse.T, np.linalg.solve(a, b)),
        (B.T @ inverse.H, np.linalg.solve(a.conj(), B).T),
        (pl.inv(op.T).H @ b, np.linalg.solve(a.conj(), b)),
    ]:
        assert made.shape == want.shape and np.allclose(made, want, rtol=1e-11, atol=1e-11)


VIEWS_OF_INVERSES = {
    "T": lambda inverse, b: inverse.T @ b,
    "H": lambda inverse, b: inverse.H @ b,
    "from the right": lambda inverse, b: b @ inverse.T,
    "of a transpose": lambda inverse, b: pl.inv(SUM.T).H @ b,
}


@pytest.mark.parametrize("view", VIEWS_OF_INVERSES)
def test_a_view_of_an_inverse_is_solved_as_the_inverse_is(view):
    b = rng(21).standard_normal(SIZE)
    with pl.config(warn_limit=1 << 40), pl.explaining() as e:
        x = VIEWS_OF_INVERSES[view](pl.inv(SUM), b)
    names = {step["name"] for plan in e.plans for step in plan.steps}
    assert names & {"cg", "minres"} and not names & {"getrf", "potrf", "sytrf"}
    assert eta(SUM, x, b) <= 5 * SIZE * np.finfo(float).eps


@functools.cache
def known_inverse():
    return pl.Dense(np.linalg.inv(SUM.toarray()))


PARTS_OF_INVERSES = {
    "an entry": lambda inverse: inverse[3, 70],
    "a row": lambda inverse: inverse[-2],
    "a column": lambda inverse: inverse.T[:, 5],
    "a corner": lambda inverse: inverse[:4, 2:9:2].toarray(),
    "by indices": lambda inverse: inverse[np.ix_([5, 3], [9, 9, 0])].toarray(),
    "rows of an adjoint": lambda inverse: inverse.H[[4, 1]].toarray(),
    "an entry of a corner": lambda inverse: (
        inverse[:6][2, 700] + inverse[:6, 3:][np.ix_([1], [2])][0]
    ),
    "of a multiple": lambda inverse: (2j * inverse).H[:, 7],
}


@pytest.mark.parametrize("part", PARTS_OF_INVERSES)
def test_parts_of_an_inverse_go_as_solves_do(part):
    """They took LU of the dense form, 8 times as long as a solve of 1500 rows."""
    take = PARTS_OF_INVERSES[part]
    with pl.config(warn_limit=1 << 40), pl.explaining() as e:
        got = take(pl.inv(SUM))
    names = {step["name"] for plan in e.plans for step in plan.steps}
    assert names & {"cg", "minres"} and not names & {"getrf", "potrf", "sytrf"}
    want = np.asarray(take(known_inverse()))
    assert np.asarray(got).shape == want.shape and np.asarray(got).dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


def test_multiples_of_an_inverse_go_as_it_does():
    b = rng(22).standard_normal(SIZE)
    x = pl.solve(SUM, b)
    for made, want in [
        ((3 * pl.inv(SUM)) @ b, 3 * x),
        (b @ (2j * pl.inv(SUM)), 2j * x),
        ((2j * pl.inv(SUM)).H @ b, -2j * x),
        ((-(pl.inv(SUM) * 2)).T @ b, -2 * x),
    ]:
        with pl.config(warn_limit=1 << 40):
            assert made.dtype == want.dtype
            np.testing.assert_allclose(made, want, rtol=1e-11, atol=1e-13)
    single = pl.inv(pl.Kron(T1.astype(np.float32), T2.astype(np.float32)) + pl.Identity(SIZE))
    wide = (np.float64(2) * single) @ b.astype(np.float32)
    assert wide.dtype == np.float64
    inverse = pl.inv(CASES["single"][0])
    for turned in ((2j * inverse).H, ((1 + 2j) * inverse.T).conj()):  # a conjugate is as weak
        assert turned.dtype == (turned @ b.astype(np.float32)).dtype == np.complex64
        assert turned[3, 4].dtype == turned[:2].toarray().dtype == np.complex64


PRODUCTS = {
    "a quadratic form": lambda inverse, X, b: (X.H @ inverse @ X).toarray(),
    "of a view": lambda inverse, X, b: ((inverse.T @ X).T @ X).toarray(),
    "from the left": lambda inverse, X, b: (X.T @ (2 * inverse)).toarray(),
    "times a vector": lambda inverse, X, b: (X.T @ inverse) @ b,
    "between": lambda inverse, X, b: (SUM @ inverse.H @ pl.Diag(D)) @ b,
}


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("dtype", [float, complex])
def test_products_with_an_inverse_go_as_its_solves_do(product, dtype):
    """They took a factor of the dense form where `inv(A) @ b` took none: 38 ms for 5."""
    g = rng(23)
    x = g.standard_normal((SIZE, 3)) + (
        1j * g.standard_normal((SIZE, 3)) if dtype is complex else 0
    )
    b = g.standard_normal(SIZE)
    with pl.config(warn_limit=1 << 40), pl.explaining() as e:
        got = PRODUCTS[product](pl.inv(SUM), pl.Dense(x), b)
    names = {step["name"] for plan in e.plans for step in plan.steps}
    assert names & {"cg", "minres"} and not names & {"getrf", "potrf", "sytrf"}
    want = PRODUCTS[product](known_inverse(), pl.Dense(x), b)
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9 * np.abs(want).max())


SUMS = {
    "plus the identity": lambda A, X: A + pl.Identity(SIZE),
    "a multiple taken off": lambda A, X: pl.Identity(SIZE) - 0.5 * A,
    "a product among them": lambda A, X: pl.Diag(D) @ A + 2 * pl.Identity(SIZE),
    "under a view": lambda A, X: (A @ pl.Diag(D) + pl.Diag(D)).T,
    "three terms": lambda A, X: pl.LowRank(X) + (pl.Diag(D) - A),
}


@pytest.mark.parametrize("columns", [None, 3])
@pytest.mark.parametrize("name", SUMS)
def test_sums_with_an_inverse_go_as_its_solves_do(name, columns):
    r = rng(8)
    x, b = r.standard_normal((SIZE, 2)), r.standard_normal((SIZE, columns) if columns else SIZE)
    with pl.config(warn_limit=1 << 40), pl.explaining() as e:
        got = SUMS[name](pl.inv(SUM), x) @ b
    names = {step["name"] for plan in e.plans for step in plan.steps}
    assert names & {"cg", "minres"} and not names & {"getrf", "potrf", "sytrf"}
    want = SUMS[name](known_inverse(), x) @ b
    assert got.dtype == want.dtype and got.shape == want.shape
    assert np.abs(got - want).max() <= 1e-11 * np.abs(want).max()


def test_quadratic_forms_of_lazy_arrays():
    b = rng(24).standard_normal(SIZE)
    K, y = pl.lazy(SUM), pl.lazy(b)
    want = b @ pl.solve(SUM, b)
    for made in (y @ np.linalg.solve(K, b), y @ np.linalg.inv(K) @ b, b @ (pl.inv(K) @ y)):
        with pl.config(warn_limit=1 << 40), pl.explaining() as e:
            assert pl.evaluate(made) == pytest.approx(want, rel=1e-11)
        names = {step["name"] for plan in e.plans for step in plan.steps}
        assert names & {"cg", "minres"} and not names & {"getrf", "potrf", "sytrf"}


def test_a_solve_and_its_quadratic_form_together():
    """One plan of both took a factor, 39 ms for 5; beside a determinant it does in any case."""
    b = rng(25).standard_normal(SIZE)
    x = pl.solve(SUM, b)
    for beside in (False, True):
        s = np.linalg.solve(pl.lazy(SUM), b)
        also = pl.slogdet(pl.lazy(SUM))[1:] if beside else ()
        with pl.config(warn_limit=1 << 40), pl.explaining() as e:
            got = pl.evaluate(s, pl.lazy(b) @ s, *also)
        np.testing.assert_allclose(got[0], x, rtol=1e-10, atol=1e-12)
        assert got[1] == pytest.approx(b @ x, rel=1e-11)
        names = {step["name"] for plan in e.plans for step in plan.steps}
        assert bool(names & {"cg", "minres"}) is not beside
        assert bool(names & {"getrf", "potrf", "sytrf"}) is beside


def test_the_same_bits_again():
    b = rng(5).standard_normal(SIZE)
    first = pl.solve(SUM, b)
    pl.solve(SUM, b, method="direct")  # its factor is there now
    assert pl.solve(SUM, b).tobytes() == first.tobytes()
    _core._clear_store()
    assert pl.solve(SUM, b).tobytes() == first.tobytes()
    again = pl.Kron(pl.Toeplitz(0.5 ** np.arange(M)), pl.Toeplitz(0.6 ** np.arange(N))) + pl.Diag(D)
    assert pl.solve(again, b).tobytes() == first.tobytes()
    assert (pl.inv(SUM) @ b).tobytes() == first.tobytes()


def test_writes_in_between_are_seen():
    d = D.copy()
    op = pl.Kron(T1, T2) + pl.Diag(d)
    b = rng(6).standard_normal(SIZE)
    pl.solve(op, b)
    d *= 2
    assert eta(pl.Kron(T1, T2) + pl.Diag(2 * D), pl.solve(op, b), b) <= 1e-12


def singular():
    """A sum of Krons that all annul the same vectors."""
    P = np.eye(M) - 1 / M
    Q = P @ np.diag(rng(7).uniform(1, 2, M)) @ P
    return pl.Kron(P, T2) + pl.Kron(Q, pl.Toeplitz(0.3 ** np.arange(N)))


def test_a_singular_matrix_goes_by_the_factor_though_b_is_consistent():
    op = singular()
    b = op @ rng(8).standard_normal(SIZE)
    with pl.config(warn_limit=1 << 40):
        with pl.explaining() as e:
            _core._build("inverse", op) @ b
    assert "getrf" in [s["name"] for p in e.plans for s in p.steps]


@pytest.mark.parametrize("shift", [1e-13, 1e-15])
def test_a_matrix_near_to_singular_is_seen(shift):
    """The vector of signs grows as 1 / shift, where b does not show it."""
    op = singular() + shift * pl.Identity(SIZE)
    b = singular() @ rng(9).standard_normal(SIZE)
    with pl.config(warn_limit=1 << 40):
        x, iterated = went(op, b)
    assert not iterated and eta(op, x, b) <= 1e-12


def test_what_does_not_converge_costs_a_third_at_most():
    """An indefinite matrix; the products are counted."""
    op = pl.Kron(T1, T2) - pl.Diag(1.5 * D)
    b = rng(10).standard_normal(SIZE)
    with pl.config(warn_limit=1 << 40), pl.explaining() as e:
        x = pl.solve(op, b)
    tries = [p for p in e.plans if {"cg", "minres", "gmres"} & {s["name"] for s in p.steps}]
    plan = _core._build("inverse", op)._explain(0, b, 0, 0)
    granted = by_price.offer(op, b, plan["seconds"])
    assert len(tries) == 1 and "not converged" in tries[0]
    assert granted.products * granted.each <= plan["seconds"] / 3
    spent = int(str(tries[0]).split(" products, ")[0].split()[-1])
    assert 0 < spent <= granted.products + 3  # residuals beside
    assert eta(op, x, b) <= 1e-13


def test_the_first_products_tell_what_is_hopeless():
    signs = np.where(np.arange(SIZE) % 3, 1, -1)  # indefinite: it has no preconditioner
    op = pl.Kron(T1, T2) + pl.Diag(signs * np.geomspace(1e-7, 1e3, SIZE))
    b = rng(11).standard_normal(SIZE)
    with pl.config(warn_limit=1 << 40), pl.explaining() as e:
        pl.solve(op, b)
    tried = next(p for p in e.plans if "not converged" in p)
    plan = _core._build("inverse", op)._explain(0, b, 0, 0)
    granted = by_price.offer(op, b, plan["seconds"]).products
    spent = int(str(tried).split(" products, ")[0].split()[-1])
    assert spent <= granted / 3


@pytest.mark.parametrize("b", [np.zeros(SIZE), np.full(SIZE, np.nan), np.full(SIZE, np.inf)])
def test_odd_right_sides(b):
    with pl.config(warn_limit=1 << 40), np.errstate(all="ignore"):
        x = pl.solve(SUM, b)
    assert (x == 0).all() if not b[0] else not np.isfinite(x).all()


def wide(p, q, low):
    """Two definite factors of condition 300, and a diagonal from 10**low to 1."""
    g = rng(14)
    factors = []
    for n in (p, q):
        u = np.linalg.qr(g.standard_normal((n, n)))[0] * np.geomspace(3, 0.1, n) ** 0.5
        factors.append(pl.Dense(u @ u.T, "pos"))
    return pl.Kron(*factors), 10 ** g.uniform(low, 0, p * q)


VIEWS = {
    "itself": lambda A, b: (pl.solve(A, b), A, b),
    "transposed": lambda A, b: (pl.solve(A.T, b), A, b),
    "twice": lambda A, b: (pl.solve(2 * A, b), 2 * A, b),
    "negative": lambda A, b: (pl.solve(-A, b), -A, b),
    "twice its transpose": lambda A, b: (pl.solve(2 * A.T, b), 2 * A, b),
    "less its transpose": lambda A, b: (pl.solve((-(A.T)) * 3, b), -3 * A, b),
    "from the right": lambda A, b: (b @ pl.inv(A), A, b),
    "columns": lambda A, b: (pl.solve(A, np.stack([b, b[::-1]], 1))[:, 1], A, b[::-1]),
    "more beside": lambda A, b: (
        pl.solve(A + 0.1 * pl.Identity(SIZE), b),
        A + 0.1 * pl.Identity(SIZE),
        b,
    ),
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_wide_spectrum_of_kron_and_diag_takes_few_products(view):
    """Without a preconditioner these take 400 to 1,000."""
    kron, d = wide(M, N, -2)
    b = rng(15).standard_normal(SIZE)
    with pl.config(warn_limit=1 << 40), pl.explaining() as e:
        x, op, side = VIEWS[view](kron + pl.Diag(d), b)
    told = next(str(p) for p in e.plans if {"cg", "minres"} & {s["name"] for s in p.steps})
    assert "kronecker" in told and eta(op, x, side) <= 5 * SIZE * np.finfo(float).eps
    assert int(told.split(" products, ")[0].split()[-1]) <= 150


def test_complex_views_of_kron_and_diag():
    g = rng(16)
    a, c = (x @ x.conj().T / len(x) for x in (
        g.standard_normal((n, n)) + 1j * g.standard_normal((n, n)) for n in (M, N)
    ))  # fmt: skip
    op = pl.Kron(pl.Dense(a, "pos"), pl.Dense(c, "pos")) + pl.Diag(D)
    b = g.standard_normal(SIZE) + 1j * g.standard_normal(SIZE)
    for view in (op, op.T, op.conj(), op.H):
        with pl.config(warn_limit=1 << 40), pl.explaining() as e:
            x = pl.solve(view, b)
        assert any("kronecker" in str(p) for p in e.plans)
        assert eta(view, x, b) <= 5 * SIZE * np.finfo(float).eps


def test_no_preconditioner_where_its_eigenvectors_cost_more_than_is_granted():
    half = SIZE // 2
    op = pl.Kron(pl.Toeplitz(0.5 ** np.arange(half)), pl.Toeplitz([2.0, 1.0])) + pl.Diag(D)
    b = rng(17).standard_normal(SIZE)
    with pl.config(warn_limit=1 << 40), pl.explaining() as e:
        x = pl.solve(op, b)
    assert not any("kronecker" in str(p) for p in e.plans)
    assert eta(op, x, b) <= 5 * SIZE * np.finfo(float).eps


def test_it_can_be_switched_off():
    b = np.ones(SIZE)
    with pl.config(warn_limit=1 << 40):
        with pl.config(iterate=False):
            assert not went(SUM, b)[1]
        assert went(SUM, b)[1]
        assert not went(SUM, b, method="direct")[1]
        with pl.explaining() as e:
            pl.factorized(SUM).solve(b)
        assert not {"cg"} & {s["name"] for p in e.plans for s in p.steps}


def test_explain_says_so():
    b = np.ones(SIZE)
    for said in (SUM.explain("solve", b), SUM.explain("solve", b, method="auto")):
        assert "are granted to cg" in said and "method='direct'" in said
    assert "are granted" not in SUM.explain("solve", b, method="direct")


@pytest.mark.parametrize(
    "op",
    [
        pl.Dense(rng(12).standard_normal((500, 500))),
        pl.Toeplitz(0.5 ** np.arange(500)),
        pl.Kron(T1, T2),
        pl.Kron(T1, T2) + pl.Identity(SIZE),
        pl.LowRank(rng(13).standard_normal((500, 3))) + pl.Diag(np.ones(500)),
        pl.Kron(pl.Toeplitz(0.5 ** np.arange(10)), T2) + pl.Diag(D[: 10 * N]),
    ],
    ids=["dense", "toeplitz", "kron", "kron + c", "woodbury", "small"],
)
def test_what_has_a_structured_way_or_was_given_dense_is_not_tried(op):
    assert not went(op, np.ones(op.shape[0]))[1]
