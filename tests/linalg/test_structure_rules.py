"""The functions on structure are rules as all else: listed, priced, seen, switched off; and what a
plan says is what runs."""

import numpy as np
import pytest
import ref
from samples import leaf

import pylinop as pl
from pylinop._api import explain_functions
from pylinop._structured import dispatch, prices, trees
from pylinop._structured.rows import GUARDS, rules

FUNCTIONS = {
    **explain_functions.FUNCTIONS,
    "eigh": (pl.eigh, None),
    "eigvalsh": (pl.eigvalsh, None),
}
ARGS = {
    "fractional_matrix_power": (0.3,),
    "funm": (np.cos,),
    "lstsq": (np.arange(6.0),),
    "sqrt_inv_matmul": (np.arange(6.0),),
}
KINDS = [k for k in ref.LEAVES if k not in ("MatVec", "Block", "Sparse", "KhatriRao")]
OURS = {row["name"] for row in rules()}


def gram(rng, m, n):
    X = pl.Dense(rng.standard_normal((m, n)))
    return X.T @ X


def symmetric(rng, n):
    a = rng.standard_normal((n, n))
    return a + a.T


def seen(call):
    """What explaining() says of a call; None where the function refuses the operator."""
    with pl.explaining() as e:
        try:
            call()
        except (np.linalg.LinAlgError, ImportError, NotImplementedError):
            return None
    return e


def rules_of(explanation, outcome="fired"):
    return {r["name"] for r in explanation.rules if r["outcome"] == outcome} & OURS


# -- listed --


def test_every_cost_is_a_price():
    """What the tables print is what is computed: no cost is a text alone."""
    A = pl.Dense(np.ones((8, 8)))
    for question in dispatch.QUESTIONS.values():
        for cost in [question.text[1], *(row.cost for row in question.rows.values())]:
            read = prices.read(cost)
            assert read.asks or read.price(A).flops > 0, cost


@pytest.mark.parametrize("text", ["fast", "n^", "3 q^2", "its fill", "O(n", "n log"])
def test_what_is_no_cost(text):
    with pytest.raises(ValueError, match="is no formula"):
        prices.Cost(text)


def test_formulas():
    A = pl.Banded((2, 1), np.ones((4, 50)))
    for text, flops in {
        "4 n^3 / 3": 4 * 50**3 / 3,
        "2 n l (l + u)": 2 * 50 * 2 * 3,
        "n w^2": 50 * 4,
        "4 m n^2 + 8 n^3": 12 * 50**3,
        "m n min(m, n); more is said": 50**3,
    }.items():
        assert prices.read(text).price(A).flops == pytest.approx(flops), text
    assert prices.read("O(n k^2)").price(pl.LowRank(np.ones((50, 3)))).flops == 10 * 50 * 9


def test_the_rows_are_listed():
    rows = [row for row in pl.rules() if row["phase"] == "structure"]
    names = [row["name"] for row in pl.rules()]
    assert len(names) == len(set(names)) and len(rows) > 250
    row = next(row for row in rows if row["name"] == "eigh-kron")
    assert row["left"] == "(eigh (kron))" and row["guard"] == "hermitian"
    assert row["price"] == "sum of the factors'" and row["source"]
    assert set(row) == set(pl.rules()[0]) == {"price", *pl._core.rules()[0]}
    for one in rows:
        assert (
            one["source"]
            and one["price"]
            and all(name in GUARDS for name in (one["guard"] or "").split())
        )
    pl.eigh(pl.Kron(symmetric(np.random.default_rng(), 3), np.eye(2)))
    assert next(r["fired"] for r in pl.rules() if r["name"] == "eigh-kron") == row["fired"] + 1


def test_names_are_taken():
    with pytest.raises(ValueError, match="the name is taken"):
        pl.register_rule("eigh-kron", "(view:1 (view:1 ?a))", "?a", cost="always")
    with pytest.raises(ValueError, match="rule of the table"):
        pl.unregister_rule("eigh-kron")
    with pytest.raises(ValueError, match="did you mean eigh-kron"):
        pl.config(disable_rules=["eigh-kon"])


# -- switched off --


@pytest.mark.parametrize(
    "rule, make, ask",
    [
        ("eigh-kron", lambda r: pl.Kron(symmetric(r, 3), symmetric(r, 4)), lambda A: pl.eigh(A)[0]),
        ("svdvals-circulant", lambda r: pl.Circulant(r.standard_normal(7)), pl.svdvals),
        ("cholesky-blockdiag", lambda r: pl.BlockDiag(np.eye(2), 3 * np.eye(3)), pl.cholesky),
        ("expm-diag", lambda r: pl.Diag(r.standard_normal(5)), pl.expm),
        ("matrix_norm-kron", lambda r: pl.Kron(symmetric(r, 3), symmetric(r, 2)), pl.matrix_norm),
    ],
)
def test_a_row_switched_off(rng, rule, make, ask):
    A, value = make(rng), lambda x: x.toarray() if isinstance(x, pl.LinearOperator) else x
    want = value(ask(A))
    assert rule in rules_of(seen(lambda: ask(make(rng))))
    with pl.config(disable_rules=[rule]):
        got = value(ask(A))  # not from the cache of the other way
        e = seen(lambda: ask(make(rng)))
    np.testing.assert_allclose(np.sort(np.ravel(got)), np.sort(np.ravel(want)), atol=1e-12)
    off = [r["name"] for r in e.rules if r["by"] == "config"]
    assert rule in off and rule not in rules_of(e) and f"off       {rule}" in str(e)


# -- priced before, and what is said is what runs --


def test_nothing_is_computed(rng, monkeypatch):
    """explain() makes no dense form and calls no LAPACK."""
    A = pl.Kron(
        gram(rng, 20, 6), pl.BlockDiag(symmetric(rng, 3), symmetric(rng, 4)) + 2 * pl.Identity(7)
    )

    def never(*args, **how):
        raise AssertionError("computed")

    monkeypatch.setattr(dispatch, "_made", never)
    for name in "svd eig eigh eigvalsh qr cholesky svdvals pinv inv lstsq".split():
        if hasattr(np.linalg, name):
            monkeypatch.setattr(np.linalg, name, never)
    for name in FUNCTIONS:
        args = (np.ones(42),) if name in ("lstsq", "sqrt_inv_matmul") else ARGS.get(name, ())
        e = A.explain(name, *args)
        assert e.flops > 0 and e.seconds > 0 and e.bytes > 0 and e.memory > 0 and e.took is None


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_plan_is_what_runs(name, rng):
    """The rows that are said to answer do, unless one refused that only shows when it runs; then
    that is seen."""
    met = 0
    for kind in KINDS:
        d = leaf(kind, rng, 6, 6, "float64")
        if d is None:
            continue
        op = ref.build(d)
        args = ARGS.get(name, ())
        try:
            planned = op.explain(name, *args)
        except np.linalg.LinAlgError:
            continue
        public = FUNCTIONS[name][0]
        e = seen(lambda: public(op, *args))
        if e is None:
            continue
        late = rules_of(e, "refused") - rules_of(planned, "refused")
        fired = rules_of(e)
        said = rules_of(planned)
        cached = "from the cache" in str(e)
        if not late and not cached:
            met += bool(said)
            assert said - fired == set(), f"{kind}: said {said}, fired {fired}"
    assert met > 0 or name in ("ldl", "cholesky")


@pytest.mark.parametrize("name", "eigh svd svdvals qr lu pinv eigvalsh cond".split())
def test_flops_of_the_plan_are_those_of_the_run(name, rng):
    A = pl.Kron(pl.Dense(rng.standard_normal((9, 9))), pl.Dense(rng.standard_normal((7, 7))))
    if name.startswith("eigh") or name == "eigvalsh":
        A = pl.Kron(symmetric(rng, 9), symmetric(rng, 7))
    planned, e = A.explain(name), seen(lambda: FUNCTIONS[name][0](A))
    assert e.explanation.flops == pytest.approx(planned.flops)
    assert all(s["took"] is not None and s["took"] >= 0 for s in e.steps)


def test_run_shows_the_times(rng):
    A = pl.Kron(symmetric(rng, 9), symmetric(rng, 7))
    for name in ("eigh", "svd"):
        e = A.explain(name, run=True)
        assert e.took > 0 and "took" in str(e) and f"{name}-kron" in e.fired


def test_guards_are_seen(rng):
    """A refusal says what was asked; an unknown is said to be looked at later."""
    A = pl.Kron(rng.standard_normal((3, 3)), rng.standard_normal((3, 3)))
    assert "if hermitian, looked at when it runs" in A.explain("eigh")
    e = seen(lambda: pl.eigh(A))
    assert ("eigh-kron", "hermitian") in {(r["name"], r["guard"]) for r in e.rules}
    assert "eigh-kron (guard hermitian)" in str(e).replace("\n          ", " ")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_explaining_sees_every_function(name, rng):
    a = rng.standard_normal((6, 6))
    A = a @ a.T + 6 * np.eye(6)
    e = seen(lambda: FUNCTIONS[name][0](A, *ARGS.get(name, ())))
    assert set(e.explanation.fired) <= {row["name"] for row in pl.rules()}
    if name in ("matrix_norm", "matrix_rank", "norm") and not e.plans:
        return  # of an array, NumPy's own
    assert any(step["flops"] > 0 for step in e.steps), str(e)


def test_what_explain_refuses():
    A = pl.Diag([1.0, 2.0])
    with pytest.raises(ValueError, match="no action 'nothing' to explain; there are apply.*svd"):
        A.explain("nothing")
    with pytest.raises(TypeError, match="explain.'svd'"):
        A.explain("svd", wrong=1)
    with pytest.raises(np.linalg.LinAlgError):
        pl.Dense(np.ones((2, 3))).explain("cholesky")
    with pytest.raises(NotImplementedError, match="explaining"):
        A.explain("lstsq", np.ones(2), method="lsqr")
    with pytest.raises(ValueError, match="integer power"):
        A.explain("fractional_matrix_power", 2)
    with pytest.raises(ValueError, match="raw"):
        A.explain("qr", "raw")


def test_of_no_rows_and_of_callables():
    """Nothing takes nothing; what has no price says so."""
    for A in (pl.Dense(np.ones((0, 0))), pl.Kron(np.ones((0, 0)), np.eye(2))):
        for name in FUNCTIONS:
            args = (np.ones(0),) if name in ("lstsq", "sqrt_inv_matmul") else ARGS.get(name, ())
            assert A.explain(name, *args).flops == 0
    for name in ("svd", "cholesky", "eigh"):
        said = pl.LinearOperator((3, 3), matvec=lambda x: x, dtype=float).explain(name)
        assert "products of a callable, which have no price" in said


def test_a_users_array_stays_writable():
    """What is shared within a call is a view: the array of an operator's own dense form is hers."""

    class Own(pl.LinearOperator):
        def __init__(self, a):
            super().__init__(a.dtype, a.shape)
            self.a = a

        def _matvec(self, x):
            return self.a @ x

        def toarray(self):
            return self.a

    a = 2 * np.eye(4)
    pl.eigh(pl.Kron(Own(a), np.eye(13)))
    a[0, 0] = 1


def test_arguments_of_the_function_count(rng):
    A = pl.Kron(symmetric(rng, 5), symmetric(rng, 4))
    assert A.explain("pinv", rtol=1e-9).fired == ["pinv-kron"]
    assert A.explain("pinv", 1e-9, True).flops > 0
    assert A.explain("svd", hermitian=True).fired == ["eigh-kron"]
    assert A.explain("svd", compute_uv=False).fired == ["svdvals-kron"]
    assert A.explain("matrix_rank", hermitian=True).fired == ["eigvalsh-kron"]
    assert A.explain("cholesky", upper=True).fired == ["cholesky-kron"]
    assert "svdvals-dense" in str(pl.Dense(np.ones((5, 4))).explain("matrix_rank"))
    fro, two = (pl.Toeplitz(np.arange(5.0)).explain("matrix_norm", o) for o in ("fro", 2))
    assert fro.fired == ["matrix_norm-values"] and two.flops > fro.flops


def test_deep_expressions(rng):
    """No recursion: neither in the plan nor in what is shown of a run."""
    A = pl.Dense(symmetric(rng, 3))
    for _ in range(2000):
        A = pl.BlockDiag(A) if _ % 2 else 1.0001 * A
    assert A.explain("eigh").flops > 0
    assert seen(lambda: pl.svdvals(A)).explanation.flops > 0


# -- one memo a call --


def products(call):
    with pl.explaining() as e:
        call()
    return sum(s["name"] == "syrk" for p in e.plans for s in p.steps if s["took"] is not None)


@pytest.mark.parametrize("name", "sqrtm logm eigh cholesky sample svdvals expm pinv".split())
def test_each_product_is_made_once(name, rng):
    A = pl.Kron(gram(rng, 40, 13), gram(rng, 30, 14)) * 1e-3
    assert products(lambda: getattr(pl, name)(A)) == 2


def test_a_dense_form_is_not_made_again(rng, monkeypatch):
    """By operator, within one call and not beyond; and never where a memory limit counts."""
    made, plain = [], dispatch._made
    monkeypatch.setattr(dispatch, "_made", lambda op: made.append(op) or plain(op))
    X, Y = rng.standard_normal((2, 12, 12))
    A = pl.Kron(pl.Dense(X) @ pl.Dense(Y), pl.Dense(Y) @ pl.Dense(X))
    pl.eigh(A)  # asks whether it is Hermitian first
    assert len(made) == len({id(op) for op in made})
    assert dispatch._memo.get() is None
    made.clear()
    pl.svdvals(pl.Kron(pl.Dense(X) @ pl.Dense(Y), np.eye(13)))
    assert len(made) == 1


def test_a_trace_ends_with_its_call(rng):
    seen(lambda: pl.eigh(pl.Kron(symmetric(rng, 3), np.eye(3))))
    assert trees.here() is None
    with pytest.raises(np.linalg.LinAlgError), pl.explaining() as e:
        pl.cholesky(pl.Kron(np.eye(3), -np.eye(13)))
    assert trees.here() is None and str(e)


def test_the_root_of_a_negative_multiple_is_said_as_it_runs():
    """-A of a negative definite A goes by the eigenvectors of A, and explain says so."""
    op = -pl.Laplacian((5, 4), "dirichlet", np.float64)
    said = op.explain("sqrt_inv_matmul", np.ones(20))
    with pl.explaining() as e:
        x = pl.sqrt_inv_matmul(op, np.ones(20))
    ran = {r["name"] for plan in e.plans for r in plan.rules if r["outcome"] == "fired"}
    assert {"sqrt_inv_matmul-scaled", "eigh-scaled", "eigh-laplacian"} <= set(said.fired) & ran
    w, q = np.linalg.eigh(op.toarray())
    np.testing.assert_allclose(x, q / w**0.5 @ q.T @ np.ones(20), rtol=0, atol=1e-12)
    assert (2 * pl.Kron(np.eye(2), np.eye(3))).explain("sqrt_inv_matmul", np.ones(6)).fired
