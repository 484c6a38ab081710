"""How explanations read: one sentence, the cost, the road; below a line what only matters where
something fails or surprises."""

import pickle
import re

import numpy as np
import pytest

import pylinop as pl

LINE = "--- if a step fails; the rules; the formula as written ---"


def update(n, k, seed=None):
    rng = np.random.default_rng(seed)
    U = rng.standard_normal((n, k))
    return pl.Diag(1 + rng.random(n)) + pl.LowRank(U, U)


def parts(e):
    """The opening sentence, what is above the line, what is below."""
    above, line, below = str(e).partition(f"{LINE}\n")
    assert line
    first = re.match(r".*\n(?: .*\n)*", above)[0]
    return " ".join(first.split()), above[len(first) :], below


def words(text):
    return [line.split()[0] for line in text.splitlines() if line[:1].strip()]


@pytest.mark.parametrize("n", [15, 200])
def test_a_solve_opens_with_what_is_done(n):
    first, above, below = parts(update(n, 3).explain("solve", np.ones(n)))
    assert first.startswith("solve by Woodbury's formula, Cholesky of 3 x 3")
    assert first.endswith(" B at most, exact to rounding") or "kB at most" in first
    assert words(above) == ["total", "memory", "steps"]
    assert words(below) == ["otherwise", "rules", "refused", "written", "canonical"]
    assert "(apply" not in above and "only where" not in above


def test_steps_in_reserve_are_below_and_in_the_data():
    e = update(50, 2).explain("solve", np.ones(50))
    _, above, below = parts(e)
    reserve = [s["name"] for s in e.steps if s["conditional"]]
    shown = [int(i) for i in re.findall(r"^ {2,3}(\d+) \S", above, re.M)]
    assert shown == [i for i, s in enumerate(e.steps) if not s["conditional"]]
    assert f"steps     {len(shown)} of {len(e.steps)}, the others where one fails" in above
    said = re.match(r"otherwise (\d+) steps, all in e.steps: ((?:.|\n )*)", below)
    assert int(said[1]) == len(reserve) and set(re.split(r",\s+", said[2].strip())) == set(reserve)


def test_what_ran_is_shown_though_it_was_in_reserve():
    a = np.diag([1.0, -2.0, 3.0])  # positive definite by word alone, so that Cholesky fails
    with pytest.warns(pl.FallbackWarning, match="LU"):
        e = pl.Dense(a, assume_a="pos").explain("solve", np.ones(3), run=True)
    _, above, _ = parts(e)
    ran = [s for s in e.steps if s["conditional"] and s["took"] is not None]
    assert ran and all(re.search(rf"^ +\d+ {s['name']} ", above, re.M) for s in ran)


@pytest.mark.parametrize(
    ("make", "begins", "ends"),
    [
        (lambda A, b: A.explain("apply", b), "product by", "exact to rounding"),
        (lambda A, b: A.explain("logdet"), "logdet by the determinant lemma", "exact to rounding"),
        (lambda A, b: A.explain("dense"), "dense form by", "exact to rounding"),
        (lambda A, b: A.explain("eigh", k=2, method="iterative"), "eigh by", "to its tolerance"),
        (lambda A, b: A.explain("trace", method="hutchinson"), "trace by", "an estimate"),
        (
            lambda A, b: pl.Kron(A, A).explain("eigh"),
            "eigh by LAPACK on 30 x 30, the structure of Kron",
            "exact to rounding",
        ),
        (lambda A, b: pl.Dense(A.toarray()).explain("svd"), "svd by LAPACK on 30", "to rounding"),
    ],
)
def test_each_opens_with_a_sentence(make, begins, ends):
    e = make(update(30, 2), np.ones(30))
    first = " ".join(re.match(r".*\n(?: .*\n)*", str(e))[0].split())
    assert first.startswith(begins) and first.endswith(ends), first
    assert re.search(r"about [\d.e+]+ [mun]?s, [\d.]+ [kMGT]?flop, [\d.]+ [kMGT]?B at most", first)


def test_several_plans_are_summed_first():
    A, b = update(30, 2), np.ones(30)
    with pl.explaining() as e:
        A.solve(b)
        A @ b
    first = str(e).splitlines()[0]
    assert first.startswith("2 plans by Woodbury's formula") and "took" in first
    assert str(e).count(LINE) == 2


def test_data_survive_a_pickle_and_the_line_is_said_once():
    e = update(30, 2).explain("solve", np.ones(30))
    again = pickle.loads(pickle.dumps(e))
    assert str(again) == str(e) and again.steps == e.steps
    assert str(e).count(LINE) == 1 and str(e).count("\nrules ") == 1


def test_html_folds_what_is_below_the_line():
    html = update(30, 2).explain("solve", np.ones(30))._repr_html_()
    open_, folded = html[: html.index("<details>")], html[html.index("<details>") :]
    assert open_.startswith("<div><b>solve</b> by Woodbury&#x27;s formula, Cholesky of 2 x 2")
    assert "weighted-gram" in open_ and "getrf" not in open_ and "(apply" not in open_
    assert "more steps, where one fails</summary>" in folded and "getrf" in folded
    assert "rules fired</summary>" in folded and "<summary>as written</summary>" in folded


def test_steps_of_the_core_are_not_taken_for_lapack():
    e = pl.Toeplitz(np.arange(5.0)).explain("dense")
    assert [s["name"] for s in e.steps] == ["toeplitz-dense"]
    assert str(e).startswith("dense form by toeplitz-dense: about")


@pytest.mark.no_verify  # whose own plans would be explained
@pytest.mark.parametrize("n", [17, 300])
@pytest.mark.parametrize("kind", ["root", "scaled", "gram", "weighted"])
def test_what_is_there_by_a_step_before_is_not_among_what_runs(n, kind):
    """A solve and a determinant share a factor, and what it is made of."""
    rng = np.random.default_rng()
    W, d = rng.standard_normal((n, 3)), 1 + rng.random(n)
    part = {
        "root": lambda: pl.Root(W),
        "scaled": lambda: 2.5 * pl.LowRank(W, W),
        "gram": lambda: pl.Dense(W) @ pl.Dense(W).T,
        "weighted": lambda: pl.LowRank(W, W @ pl.Diag(rng.random(3))),
    }[kind]()
    with pl.explaining() as record:
        A = pl.lazy(part + pl.Diag(d))
        pl.evaluate(pl.solve(A, rng.standard_normal(n)), pl.logdet(A))
    (e,) = record.plans
    run = [s for s in e.steps if not s["conditional"]]
    assert sum(s["name"] in ("potrf", "getrf") for s in run) == 1
    if n == 300 or kind == "weighted":  # else one serves both without a second step
        assert sum(s["name"] in ("potrf", "getrf") for s in e.steps) > 1
    assert all(s["took"] is not None or s["by_strides"] for s in run)
    assert e.flops == pytest.approx(sum(s["flops"] for s in run), rel=1e-12)
    above = parts(e)[1]
    assert len(re.findall(r"^ +\d+ (?:potrf|getrf) ", above, re.M)) == 1
