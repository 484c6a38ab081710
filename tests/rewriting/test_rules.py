"""Rules switched off and users' rules: what acts, what is refused, what plans are used."""

import contextvars
import threading

import numpy as np
import pytest
import ref
from samples import leaf

import pylinop as pl
from pylinop import _core
from pylinop._base import config


@pytest.fixture(autouse=True)
def put_back():
    yield
    pl.config(disable_rules=[])
    assert not config._local.get()
    for row in pl.rules():
        if row["origin"] == "user":
            pl.unregister_rule(row["name"])


def names(explanation, outcome="fired", by=None):
    rows = [r for r in explanation.rules if r["outcome"] == outcome]
    return {r["name"] for r in rows if by is None or r["by"] == by}


def rows():
    return [{k: v for k, v in row.items() if k != "fired"} for row in pl.rules()]


def matrices(rng, *shapes):
    return [pl.Dense(rng.standard_normal(s) + 1j * rng.standard_normal(s)) for s in shapes]


# -- switched off ----------------------------------------------------------------------------------


def test_a_rule_switched_off_does_not_act_and_shows(rng):
    A, B = matrices(rng, (40, 3), (3, 40))
    x = rng.standard_normal(40)
    want = A.toarray() @ (B.toarray() @ x)
    assert "apply-chain" in names((A @ B).explain("apply", x))
    with pl.config(disable_rules=["apply-chain"]):
        e = (A @ B).explain("apply", x)
        np.testing.assert_allclose((A @ B) @ x, want)
    assert "apply-chain" not in names(e) and "apply-prod" in names(e)
    assert names(e, "refused", "config") == {"apply-chain"}
    assert "off       apply-chain" in e
    assert "apply-chain" in names((A @ B).explain("apply", x))


def test_close_rules_too():
    D = pl.Diag([1.0, 2.0])
    with pl.config(disable_rules=["close-diag-diag"]):
        P = D @ D
        assert type(P) is pl.Product
    assert type(D @ D) is pl.Diag
    np.testing.assert_array_equal(P @ np.ones(2), [1.0, 4.0])
    with pl.config(disable_rules=["close-slice"]):
        assert type(pl.Toeplitz([1.0, 2.0, 3.0])[:2]) is pl.Sliced


def test_plans_are_kept_by_what_is_off(rng):
    """The operator's own plans and those by structure: none of another setting is used."""
    A, B = matrices(rng, (30, 4), (4, 30))
    P, x = A @ B, np.ones(30)

    def used(op):
        with pl.explaining() as e:
            op @ x
        return "apply-chain" in names(e)

    P @ x
    assert used(P)
    with pl.config(disable_rules=["apply-chain"]):
        P @ x
        assert not used(P) and not used(A @ B)
    pl.config(disable_rules=["apply-chain", "apply-chain"])
    assert not used(P) and not used(A @ B)
    with pl.config(disable_rules=[]):
        assert used(P)
    pl.config(disable_rules=[])
    assert used(P) and used(A @ B)


def test_with_holds_for_one_context(rng):
    D = pl.Diag([1.0, 2.0])
    seen = []

    def other():
        seen.append(type(D @ D))

    with pl.config(disable_rules=["close-diag-diag"]):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        contextvars.copy_context().run(other)
        contextvars.Context().run(other)
        assert type(D @ D) is pl.Product
    assert seen == [pl.Diag, pl.Product, pl.Diag]
    pl.config(disable_rules=["close-diag-diag"])
    other()
    assert seen[-1] is pl.Product


@pytest.mark.parametrize("wrong", ["apply-chain", None, 3, [3], ["apply-chain", b"x"]])
def test_what_is_no_list_of_names(wrong):
    with pytest.raises(TypeError, match="list of names of rules") as seen:
        pl.config(disable_rules=wrong)
    assert repr(wrong) in str(seen.value)
    assert config.get("disable_rules") == ()


def test_unknown_names_are_met_with_near_ones():
    for use in (lambda: pl.config(disable_rules=["aply-chain"]), lambda: pl.config(
        disable_rules=["apply-chain", "aply-chain"]
    ).__enter__()):  # fmt: skip
        with pytest.raises(ValueError, match="no rule 'aply-chain'.*apply-chain"):
            use()
    with pytest.raises(ValueError, match=r"no rule 'qqqqqqqq': pl.rules\(\) lists them$"):
        pl.config(disable_rules=["qqqqqqqq"])


def test_a_row_that_nothing_stands_in_for_raises_and_says_so():
    A = pl.Kron(pl.Toeplitz([1.0, 2.0]), np.eye(2))
    with pl.config(disable_rules=["apply-kron"]):
        with pytest.raises(NotImplementedError, match="switched off here: apply-kron"):
            A @ np.ones(4)
    np.testing.assert_allclose(A @ np.ones(4), [3.0, 3.0, 3.0, 3.0])


def expressions(rng):
    for kind in ref.LEAVES:
        for m, n, invertible in ((4, 4, True), (2, 6, False), (6, 2, False)):
            dtype = "complex128" if kind in ("DFT", "Toeplitz", "LowRank", "Dense") else "float64"
            d = leaf(kind, rng, m, n, dtype, invertible=invertible)
            if d is None or kind == "MatVec":
                continue
            e = leaf("Dense", rng, n, m, dtype)
            yield from (d, ("T", d), ("H", d), ("Scaled", d, 2.5), ("Product", d, e))
            yield from (("Product", e, d), ("Sum", d, leaf("Dense", rng, m, n, dtype)))
            if invertible:
                yield from (("Inverse", d), ("Inverse", ("H", d)), ("Power", d, 3))


def actions(A):
    yield lambda: A @ np.ones(A.shape[1])
    yield A.toarray
    yield A.diagonal
    yield lambda: A[::2, 1:].toarray()
    if A.shape[0] == A.shape[1]:
        yield A.trace
        yield lambda: pl.det(A)


def test_without_any_one_rule_values_stay_or_it_raises(rng):
    """Each row that fires on some expression is switched off there."""
    where = {}
    for d in expressions(rng):
        A = ref.build(d)
        for i, act in enumerate(actions(A)):
            try:
                with pl.explaining() as e:
                    want = act()
            except np.linalg.LinAlgError:
                continue
            for name in names(e):
                cases = where.setdefault(name, [])
                if len(cases) < 2:
                    cases.append((d, i, want))
    assert len(where) > 100, len(where)
    raised = 0
    for name, cases in where.items():
        for d, i, want in cases:
            with pl.config(disable_rules=[name]):
                try:
                    got = list(actions(ref.build(d)))[i]()
                except NotImplementedError as error:
                    assert name in str(error)
                    raised += 1
                    continue
            scale = 1e-9 * max(1.0, float(np.max(np.abs(want), initial=0)))
            np.testing.assert_allclose(got, want, rtol=0, atol=scale, err_msg=f"{name}: {d[0]}")
    assert raised < len(where)  # about a third of what fired is all there is


def test_rows_that_random_draws_seldom_reach(rng):
    """tests/c/battery_rules.c draws from left sides; these take expressions of a size or kind."""
    A = pl.Dense(rng.standard_normal((300, 300)) + 300 * np.eye(300))
    P, x = pl.Permutation(rng.permutation(300)), np.ones(300)
    U = pl.Dense(rng.standard_normal((300, 2)))
    assert "first-cancel" in (A - A).explain("apply", x).fired
    np.testing.assert_array_equal((A - A) @ x, np.zeros(300))
    assert "permutation-inverse" in pl.inv(P).explain("apply", x).fired
    np.testing.assert_array_equal(P @ (pl.inv(P) @ x), x)
    S = 2.0 * pl.Identity(300) + U @ U.T
    assert "solve-thin-sum" in pl.inv(S).explain("apply", x).fired
    np.testing.assert_allclose(S @ (pl.inv(S) @ x), x)
    L = pl.Triangular(A.toarray())
    assert "triangular-view" in L.T.explain("apply", x).fired
    np.testing.assert_allclose(L.T @ x, np.tril(A.toarray()).T @ x)


# -- users' rules ----------------------------------------------------------------------------------

TRACE = ("(trace@k (prod ?a (view:3 ?a)))", "(trace@k (prod (view:3 ?a) ?a))")


def test_a_rule_is_listed_fires_and_goes(rng):
    before = len(pl.rules())
    pl.register_rule("mine", "(view:1 (view:1 ?a))", "?a", cost="always", source="(A^T)^T = A")
    row = pl.rules()[-1]
    assert row == {
        "name": "mine",
        "phase": "explore",
        "tier": "kind",
        "left": "(view:1 (view:1 ?a))",
        "right": "?a",
        "guard": None,
        "cost": "always",
        "source": "(A^T)^T = A",
        "origin": "user",
        "fired": 0,
        "price": None,
    }
    assert {r["origin"] for r in pl.rules()[:-1]} == {"table"}
    with pytest.raises(ValueError, match="there is a rule mine already"):
        pl.register_rule("mine", *TRACE)
    with pytest.raises(ValueError, match="there is a rule apply-chain already"):
        pl.register_rule("apply-chain", *TRACE)
    pl.unregister_rule("mine")
    assert len(pl.rules()) == before
    with pytest.raises(ValueError, match="no rule 'mine' was registered"):
        pl.unregister_rule("mine")
    with pytest.raises(ValueError, match="rule of the table.*disable_rules"):
        pl.unregister_rule("apply-chain")


def test_explore_takes_what_is_cheaper_and_says_what_it_refused(rng):
    """(A^-1)^-1 x is A x; the table solves with the inverse made dense."""
    A, x = matrices(rng, (60, 60))[0], rng.standard_normal(60)
    twice = pl.Dense(np.eye(60)) @ pl.inv(A) @ A
    want = twice @ x
    pl.register_rule("inverse-cancels", "(prod (inverse ?a) ?a)", "(power:0 ?a)", guard="square")
    e = twice.explain("apply", x)
    # the product is written (I A^-1) A: nothing to match; associated the other way it fires
    assert "inverse-cancels" not in names(e)
    other = pl.Dense(np.eye(60)) @ (pl.inv(A) @ A)
    e = other.explain("apply", x)
    assert "inverse-cancels" in names(e) and "getrf" not in e
    assert e.alternatives[0]["seconds"] > e.seconds
    np.testing.assert_allclose(other @ x, want, rtol=1e-9)
    pl.register_rule("inverse-comes", "(prod ?b (power:0 ?a))", "(prod ?b (prod (inverse ?a) ?a))")
    # dearer: refused by cost, with its estimate
    B = matrices(rng, (60, 60))[0]
    with pl.config(disable_rules=["inverse-cancels"]):
        e = (B @ A**0).explain("apply", x)
    assert "inverse-comes" in names(e, "refused", "cost")
    assert any(o["rule"] == "inverse-comes" and o["seconds"] > e.seconds for o in e.alternatives)


def test_plans_made_before_are_not_used(rng):
    """With the operator and by structure: a rule registered later is seen, one taken out is not."""
    A, B = matrices(rng, (3, 80), (80, 80))
    E, x = pl.inv(B) @ B, np.ones(80)

    def solves(op):
        with pl.explaining() as e:
            op @ x
        return "getrf" in str(e)

    E @ x
    assert solves(E)
    pl.register_rule("cancels", "(prod (inverse ?a) ?a)", "(power:0 ?a)", guard="square")
    assert not solves(E) and not solves(pl.inv(B) @ B)
    with pl.config(disable_rules=["cancels"]):
        assert solves(E) and solves(pl.inv(B) @ B)
    pl.unregister_rule("cancels")
    assert solves(E) and solves(pl.inv(B) @ B)
    pl.config(disable_rules=[])


def test_a_name_switched_off_stays_so_when_it_comes_again(rng):
    B = matrices(rng, (20, 20))[0]
    x = np.ones(20)

    def fires():
        return "cancels" in names((pl.inv(B) @ B).explain("apply", x))

    pl.register_rule("cancels", "(prod (inverse ?a) ?a)", "(power:0 ?a)", guard="square")
    assert fires()
    pl.config(disable_rules=["cancels"])
    pl.unregister_rule("cancels")
    pl.config(warn_limit=config.get("warn_limit"))  # the process's options are told again
    pl.register_rule("other", *TRACE)
    pl.register_rule("cancels", "(prod (inverse ?a) ?a)", "(power:0 ?a)", guard="square")
    assert not fires()
    pl.config(disable_rules=[])
    assert fires()


@pytest.mark.parametrize("phase", ["first", "push"])
def test_the_other_phases_act_before_the_table(phase, rng):
    A, x = matrices(rng, (30, 30))[0], rng.standard_normal(30)
    want = 0.5 * (A.toarray() @ x) + 0.5 * (A.toarray() @ x)
    pl.register_rule("inv-inv", "(inverse (inverse ?a))", "?a", phase=phase, guard="square")
    E = pl.Dense(np.eye(30)) @ pl.inv(pl.inv(A) * 1.0)
    np.testing.assert_allclose(E @ x, want, rtol=1e-9)
    left = "(apply (inverse (prod ?a ?b)) ?x)"
    right = "(apply (inverse ?b) (apply (inverse ?a) ?x))"
    pl.register_rule("inv-prod", left, right, phase=phase, guard="both_square")
    P = pl.inv(A @ A)
    e = P.explain("apply", x)
    assert ("inv-prod" in names(e)) == (phase == "push")  # `first` sees operators alone
    np.testing.assert_allclose(P @ x, np.linalg.solve(A.toarray() @ A.toarray(), x), rtol=1e-8)


def test_rules_that_do_not_end_are_stopped(rng):
    A, x = matrices(rng, (4, 4))[0], np.ones(4)
    pl.register_rule("to", "(apply (scaled@c ?a) ?x)", "(scale@c (apply ?a ?x))", phase="push")
    pl.register_rule("fro", "(scale@c (apply ?a ?x))", "(apply (scaled@c ?a) ?x)", phase="push")
    with pytest.raises(ValueError, match="must come to an end"):
        (2 * A) @ x
    pl.unregister_rule("fro")
    np.testing.assert_allclose((2 * A) @ x, 2 * A.toarray() @ x)
    # of the phase explore they are bounded by counts
    pl.register_rule("there", "(prod ?a (sum ?b ?c))", "(sum (prod ?a ?b) (prod ?a ?c))",
                     cost="always")  # fmt: skip
    pl.register_rule("back", "(sum (prod ?a ?b) (prod ?a ?c))", "(prod ?a (sum ?b ?c))",
                     cost="always")  # fmt: skip
    B, C = matrices(rng, (4, 4), (4, 4))
    want = A.toarray() @ (B.toarray() + C.toarray()) @ x
    np.testing.assert_allclose((A @ (B + C)) @ x, want)


WRONG = {
    "order": ("(prod ?a ?b)", "(prod ?b ?a)", "shape|entry"),
    "adjoint for transpose": ("(view:1 (prod ?a ?b))", "(prod (view:3 ?b) (view:3 ?a))", "entry"),
    "conjugate forgotten": ("(view:3 (scaled@c ?a))", "(scaled@c (view:3 ?a))", "entry"),
    "shape": ("(sum ?a ?b)", "(prod ?a ?b)", "entry|shape|not well-formed"),
    "square only": ("(trace@k (prod ?a ?b))", "(trace@k (sum ?a ?b))", "not well-formed|entry"),
    "nearly": ("(scaled@c ?a)", "(scaled:2.0000001,0,0,1,0 ?a)", "entry"),
    "square of a sum": ("(power:2 (sum ?a ?b))", "(sum (power:2 ?a) (power:2 ?b))", "entry"),
    "rank": ("(lowrank ?u ?v)", "(prod ?u (view:1 ?v))", "entry"),
    "diagonal": ("(diag (mul ?a ?b))", "(prod (diag ?a) (diag ?a))", "entry"),
    "unbound": ("(prod ?a ?b)", "(prod ?a ?c)", r"\?c on the right is not bound"),
    "unbound attribute": ("(view@m ?a)", "(view@n ?a)", "@n on the right is not bound"),
    "open": ("(prod ?a ?b", "?a", "expected one closed expression"),
    "no head": ("?a", "?a", "needs a head on the left"),
    "unknown head": ("(produkt ?a ?b)", "?a", "unknown head"),
    "zero is not invertible": ("(prod ?a (inverse ?b))", "?a", "shape|entry"),
    "sizeless": ("(prod ?a (inverse ?a))", "(identity)", "no operands"),
    "too many": ("(prod ?a ?b)", "(prod ?a ?b ?a)", "takes 2 to 2 operands"),
    "class": ("(prod ?a ?b)", "(apply ?a ?b)", "mixes up operators and arrays"),
    "empty": ("", "", "expected"),
    "deep": ("(view:1 " * 900 + "?a" + ")" * 900, "?a", "more than 2000 characters"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_rules_are_refused_with_the_numbers(what):
    left, right, match = WRONG[what]
    before, live = rows(), _core.live()
    with pytest.raises(ValueError, match=match) as seen:
        pl.register_rule("wrong", left, right)
    assert "rule wrong" in str(seen.value) and rows() == before
    assert _core.live() == live


RIGHT = {
    "mixed product": (
        "(prod (kron ?a ?b) (kron ?c ?d))",
        "(kron (prod ?a ?c) (prod ?b ?d))",
        "krons_fit",
    ),
    "trace": (*TRACE, None),
    "adjoint": ("(view:3 (prod ?a ?b))", "(prod (view:3 ?b) (view:3 ?a))", None),
    "hermitian": ("(view:3 ?a)", "?a", "self_adjoint"),
    "symmetric": ("(view:1 ?a)", "?a", "symmetric"),
    "unitary": ("(inverse ?a)", "(view:3 ?a)", "unitary"),
    "positive": ("(view:3 (inverse ?a))", "(inverse ?a)", "positive"),
    "determinant": ("(scaledet@k (inverse ?a))", "(pow_det:-1 (scaledet@k ?a))", None),
    "push-through": (
        "(prod (inverse (sum ?a (prod ?b ?c))) ?b)",
        "(prod (prod (inverse ?a) ?b) (inverse (sum (power:0 (prod ?c ?b)) "
        "(prod ?c (prod (inverse ?a) ?b)))))",
        None,
    ),
    "circulants": (
        "(prod (circulant ?a ?s) (circulant ?b ?s))",
        "(prod (circulant ?b ?s) (circulant ?a ?s))",
        None,
    ),  # fmt: skip
}


@pytest.mark.parametrize("what", RIGHT)
def test_right_rules_are_taken(what):
    left, right, guard = RIGHT[what]
    pl.register_rule("right", left, right, guard=guard)
    assert pl.rules()[-1]["guard"] == guard
    if guard in ("self_adjoint", "unitary"):  # and without the guard they are wrong
        with pytest.raises(ValueError):
            pl.register_rule("no-guard", left, right)


def test_rules_with_shape_needs_stay_away_elsewhere(rng):
    """Batches are not part of the trial: where the right side does not fit, the rule does not."""
    pl.register_rule("swap", *TRACE)
    A = pl.Dense(rng.standard_normal((5, 3, 4)))
    np.testing.assert_allclose(
        (A @ A.H).trace(), np.trace(A.toarray() @ A.H.toarray(), axis1=1, axis2=2)
    )


@pytest.mark.parametrize(
    "more, error, match",
    [
        ({"name": ""}, ValueError, "1 to 60 characters"),
        ({"name": "a b"}, ValueError, "no blanks"),
        ({"name": 3}, TypeError, "name must be text, got 3"),
        ({"left": None}, TypeError, "left must be text"),
        ({"phase": "close"}, ValueError, "explore, first, push, got 'close'"),
        ({"cost": "sometimes"}, ValueError, "cheaper or always, got 'sometimes'"),
        ({"phase": "push", "cost": "cheaper"}, ValueError, "always, got 'cheaper'"),
        ({"guard": "squar"}, ValueError, r"did you mean .*square.* There are .*square: \?a is sq"),
        ({"guard": "main_square"}, ValueError, "no guard 'main_square'"),
        ({"guard": "both_square"}, ValueError, r"both_square needs \?b on the left"),
        ({"guard": "transposes"}, ValueError, "could not be tried: .* fitted 0 of 8000"),
        ({"guard": "coef_zero"}, ValueError, "coef_zero needs @c on the left"),
    ],
)
def test_wrong_arguments(more, error, match):
    given = {"name": "new", "left": TRACE[0], "right": TRACE[1], **more}
    before = rows()
    with pytest.raises(error, match=match):
        pl.register_rule(given.pop("name"), given.pop("left"), given.pop("right"), **given)
    assert rows() == before


@pytest.mark.parametrize("cost", ["always", "cheaper"])
def test_what_cannot_be_planned_is_no_variant(rng, cost):
    """A row whose outcome other rows of the user's never bring to an end: planned as written."""
    A, B = matrices(rng, (20, 20), (20, 20))
    x = rng.standard_normal(20)
    left = "(apply (prod (inverse ?b) ?a) ?x)"
    right = "(apply (prod (inverse (inverse (inverse ?b))) ?a) ?x)"
    pl.register_rule("grows", left, right, phase="push", guard="both_square")
    with pytest.raises(ValueError, match="must come to an end"):
        (pl.inv(B) @ A) @ x
    left, right = "(inverse (prod ?a ?b))", "(prod (inverse ?b) (inverse ?a))"
    pl.register_rule("splits", left, right, guard="both_square", cost=cost)
    whole = A.toarray() @ B.toarray()
    assert "splits" not in names(pl.inv(A @ B).explain("apply", x))
    np.testing.assert_allclose(pl.inv(A @ B) @ x, np.linalg.solve(whole, x), rtol=1e-8)
    null = pl.Dense(np.zeros((20, 20)))
    with pytest.raises(np.linalg.LinAlgError, match="[Ss]ingular"):
        pl.inv(A @ null) @ x
    pl.unregister_rule("grows")
    assert "splits" in names(pl.inv(A @ B).explain("apply", x)) or cost == "cheaper"


def test_the_same_plan_again(rng):
    pl.register_rule("cancels", "(prod (inverse ?a) ?a)", "(power:0 ?a)", guard="square")
    A = matrices(rng, (20, 20))[0]
    texts, bits = set(), set()
    for _ in range(3):
        E = pl.Dense(np.ones((20, 20))) @ (pl.inv(A) @ A)
        _core._clear_store()
        bits.add((E @ np.ones(20)).tobytes())
        plan, rules = str(E.explain("apply", np.ones(20))).split("steps", 1)[1].split("\n---")
        texts.add(plan + rules.split("written")[0])
    assert len(bits) == 1 and len(texts) == 1


def test_large_expressions_are_planned_as_written(rng):
    """Beyond so many nodes users' rules of the phase explore are not tried; the value is right."""
    pl.register_rule("cancels", "(prod (inverse ?a) ?a)", "(power:0 ?a)", guard="square")
    D = pl.Dense(np.diag([1.0, 0.5]))
    E = D
    for _ in range(300):
        E = E + D
    np.testing.assert_allclose(E @ np.ones(2), [301.0, 150.5])


@pytest.mark.parametrize("n", [0, 1, 2, 17, 10**12])
def test_the_trace_of_an_identity_makes_no_vector(n):
    assert pl.Identity(n).trace() == n
    assert (2.5 * pl.Identity(n)).trace() == 2.5 * n
    assert pl.Identity((2, n, n)).trace().tolist() == [n, n]
    assert pl.Identity(min(n, 17), np.int32).trace() == min(n, 17)
