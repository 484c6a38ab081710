"""Explanations: what they say is what is done, of operators, LazyArrays and blocks."""

import asyncio
import contextvars
import html.parser
import pickle
import re
import threading

import numpy as np
import pytest

import pylinop as pl
from pylinop._base import config
from pylinop._base.explanation_text import in_reserve

N = 60


@pytest.fixture
def chain(rng):
    """A (B (C x)) is best; the other orders cost more."""
    A = pl.Dense(rng.standard_normal((N, 3)))
    B = pl.Dense(rng.standard_normal((3, N)))
    C = pl.Dense(rng.standard_normal((N, N)))
    return A, B, C


def test_a_function_for_all_three(chain):
    A, B, C = chain
    x = np.ones(N)

    def text(e):
        return re.sub(r"#\d+", "", e)  # leaves are numbered anew

    assert text(pl.explain(A @ B, "apply", x)) == text((A @ B).explain("apply", x))
    assert text(pl.explain(C, "solve", x)) == text(C.explain("solve", x))
    y = pl.lazy(A.toarray()) @ B @ x
    assert text(pl.explain(y)) == text(y.explain())
    for wrong in (x, 3, None, [A]):
        with pytest.raises(TypeError, match="LazyArray or an operator"):
            pl.explain(wrong)
    with pytest.raises(TypeError, match="explained as it is"):
        pl.explain(y, "solve")


def test_text_and_data_say_the_same(chain):
    A, B, C = chain
    e = (A @ B @ C).explain("apply", np.ones((N, 2)))
    assert isinstance(e, str) and repr(e) == str(e) and e.plans == [e]
    fired = [r["name"] for r in e.rules if r["outcome"] == "fired"]
    line = re.search(r"rules +\d+ fired: (.*)", e)[1]
    assert set(line.split(", ")) == set(fired)
    assert len(e.steps) == int(re.search(r"steps +(\d+)", e)[1])
    for i, step in enumerate(e.steps):
        assert re.search(rf"^ +{i} {step['name']} +{re.escape(step['writes'])} <-", e, re.M)
        assert step["took"] is None
    assert f"{e.flops:.3g} flops, {e.bytes:.3g} bytes moved" in e
    assert f"estimated {e.seconds:.3g} s" in e and e.took is None
    assert e.seconds == pytest.approx(sum(s["seconds"] for s in e.steps))
    assert e.flops == sum(s["flops"] for s in e.steps)
    assert f"memory    {e.memory} bytes at most" in e


def test_the_runner_up_is_among_the_alternatives(chain):
    """All orders of five factors, priced by brute force through the planner itself."""
    rng = np.random.default_rng(5)
    for sizes in ([20, 30, 4, 50, 9, 20], [40, 3, 40, 3, 40, 3], [5, 60, 50, 40, 30, 2]):
        F = [pl.Dense(rng.standard_normal(s)) for s in zip(sizes, sizes[1:], strict=False)]

        def orders(i, j):
            if i == j:
                yield "ABCDE"[i], 0.0
            for k in range(i, j):
                for s, a in orders(i, k):
                    for t, b in orders(k + 1, j):
                        yield f"({s} {t})", a + b + gemm(sizes[i], sizes[k + 1], sizes[j + 1])

        def gemm(m, k, n):
            work = 2 * m * k * n * (1 + 8 / min(m, k, n)) / 4e10
            return max(work, 8 * (m * k + k * n + m * n) / 1.2e10) + 2e-8

        e = (F[0] @ F[1] @ F[2] @ F[3] @ F[4]).explain("dense")
        ranked = sorted(orders(0, 4), key=lambda o: o[1])
        least = ranked[0][1]
        assert re.search(r"planned +(.*)", e)[1] in {t for t, c in ranked if c < least * 1.001}
        found = [o for o in e.alternatives if o["text"].startswith("(")]
        assert len(found) == 3
        second = ranked[1][1]
        assert found[0]["seconds"] == pytest.approx(second, rel=1e-6)
        costs = dict(ranked)
        for o in found:
            assert o["seconds"] == pytest.approx(costs[o["text"]], rel=1e-6)
        for o in found:
            assert f"{o['text']}: {o['seconds']:.3g} s" in e


def test_refusals_name_what_refused(rng):
    a = rng.standard_normal((5, 5))
    e = pl.Dense(a).explain("solve", np.ones(5))
    refused = {r["name"]: r for r in e.rules if r["outcome"] == "refused"}
    row = refused["solve-positive"]
    assert row["by"] == "guard" and row["guard"] == "positive"
    assert row["why"] == "?a is assumed or known to be positive definite"
    assert "solve-positive (guard positive)" in " ".join(e.split())
    e = pl.Dense(a @ a.T + np.eye(5), assume_a="pos").explain("solve", np.ones(5))
    assert "solve-positive" in {r["name"] for r in e.rules if r["outcome"] == "fired"}


@pytest.mark.parametrize("action", ["apply", "solve", "dense", "diagonal", "trace", "det"])
def test_run_shows_what_each_step_took(action, rng):
    A = pl.Dense(rng.standard_normal((N, N))) @ pl.Dense(rng.standard_normal((N, N)))
    args = (rng.standard_normal((N, 3)),) if action in ("apply", "solve") else ()
    plain, ran = A.explain(action, *args), A.explain(action, *args, run=True)
    assert plain.took is None
    assert ran.took == pytest.approx(sum(s["took"] or 0 for s in ran.steps))
    assert 0 < ran.took < 10
    assert [s["name"] for s in ran.steps] == [s["name"] for s in plain.steps]
    assert ran.seconds == plain.seconds and ran.memory == plain.memory
    assert f"took {ran.took:.3g} s" in ran
    for s in ran.steps:
        assert (s["took"] is None) == (s["name"] == "swap" and s["flops"] == 0 and not s["bytes"])
    assert pl.explain(A, "element", 1, 2, run=True).took > 0


def test_run_of_a_lazy_array(rng):
    a = rng.standard_normal((N, 4))
    X, y = pl.lazy(a), pl.lazy(rng.standard_normal(N))
    b = np.exp(np.linalg.solve(X.T @ X, X.T @ y))
    plain, ran = b.explain(), b.explain(run=True)
    assert len(ran.plans) == len(plain.plans) == 1  # the vectors are columns of one expression
    assert ran.took > 0 and plain.took is None and "by NumPy" in ran
    assert [s["name"] for s in ran.steps] == [s["name"] for s in plain.steps]
    assert b._value is None  # a copy was computed
    np.testing.assert_allclose(b, np.exp(np.linalg.lstsq(a, y.toarray(), rcond=None)[0]))


def test_memory_is_what_the_plan_has():
    A = pl.Dense(np.ones((100, 200)))
    e = A.explain("apply", np.ones((200, 7)))
    assert e.memory == 8 * 100 * 7
    C = pl.Circulant(np.ones(1 << 12))
    e = C.explain("apply", np.ones(1 << 12))
    kept = int(re.search(r"(\d+) kept", e)[1])
    assert kept >= 8 * (1 << 12) and e.memory > kept + 8 * (1 << 12)


def test_steps_that_did_not_run_say_so(rng):
    """What only serves a factor that is kept: the second time it is left out."""
    X = pl.Dense(rng.standard_normal((2000, 150)))
    S, b = pl.inv(X.T @ X), rng.standard_normal(150)
    with pl.explaining() as e:
        first, second = S @ b, S @ b
    np.testing.assert_array_equal(first, second)
    ran = [[s["name"] for s in p.steps if s["took"] is not None] for p in e.plans]
    assert len(ran[1]) < len(ran[0]) and "did not run" in e.plans[1]
    assert e.plans[1].took == pytest.approx(sum(s["took"] or 0 for s in e.plans[1].steps))


# -- blocks ----------------------------------------------------------------------------------------


def test_a_block_has_all_that_is_computed_in_it(chain):
    A, B, C = chain
    x = np.ones(N)
    with pl.explaining() as e:
        assert e.plans == [] and "nothing" in str(e)
        C @ x
        C @ x  # the direct road too
        y = (A @ B).trace()
        pl.solve(C, x)
        np.matmul(C, x)
        C.matvec(x)
        x @ C
    C @ x
    actions = [p._data["action"] for p in e.plans]
    assert actions == ["apply", "apply", "trace", "apply", "apply", "apply", "apply"]
    assert y == (A @ B).trace()
    assert all(p.took is not None for p in e.plans)
    assert len(e.steps) == sum(len(p.steps) for p in e.plans) > 7
    assert e.explanation.took == pytest.approx(sum(p.took for p in e.plans))
    assert {r["name"] for r in e.rules} >= {"trace-chain", "solve-dense"}
    assert "6. apply" in str(e)


def test_a_block_changes_no_value(rng):
    A = pl.Dense(rng.standard_normal((N, N))) @ pl.Toeplitz(rng.standard_normal(N))
    S = pl.Kron(rng.standard_normal((4, 4)), rng.standard_normal((5, 5)))
    x, z = rng.standard_normal(N), rng.standard_normal((20, 2))
    want = [(A @ x).tobytes(), (pl.inv(S) @ z).tobytes(), A.trace()]
    with pl.explaining() as e:
        got = [(A @ x).tobytes(), (pl.inv(S) @ z).tobytes(), A.trace()]
    assert got == want and len(e.plans) == 3


def test_a_block_is_its_context_s_own(chain):
    A = chain[2]
    x = np.ones(N)

    def other():
        A @ x

    with pl.explaining() as outer:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        contextvars.Context().run(other)
        assert len(outer.plans) == 0
        with pl.explaining() as inner:
            A @ x
        with pl.config(fft=False):
            A @ x
        A.explain("apply", x, run=True)
    assert len(inner.plans) == 1 and len(outer.plans) == 3
    assert not config._local.get()

    async def main():
        async def task():
            A @ x

        with pl.explaining() as e:
            await asyncio.gather(task(), task())
        return len(e.plans)

    assert asyncio.run(main()) == 2


def test_a_block_that_raises(chain):
    C = chain[2]
    with pytest.raises(np.linalg.LinAlgError), pl.explaining() as e:
        C @ np.ones(N)
        pl.solve(pl.Dense(np.zeros((3, 3))), np.ones(3))
    assert len(e.plans) == 1 and not config._local.get()


def test_lazy_arrays_in_a_block(rng):
    X = pl.lazy(rng.standard_normal((N, 4)))
    with pl.explaining() as e:
        pl.evaluate(X.T @ X, (X.T @ X).sum())
    assert len(e.plans) >= 1 and "gram" in str(e)


def test_callables_are_computed_and_not_written_down():
    A = pl.MatVec((3, 3), lambda x: 2 * x, dtype=float)
    with pl.explaining() as e:
        np.testing.assert_array_equal(A @ np.ones(3), 2 * np.ones(3))
    assert e.plans == []
    with pytest.raises(NotImplementedError):
        A.explain("apply", run=True)


# -- how it looks ----------------------------------------------------------------------------------


def all_kinds_of_text(chain, rng):
    A, B, C = chain
    deep = A @ B
    for _ in range(6):
        deep = deep @ C + 2 * (A @ B)
    X = pl.lazy(rng.standard_normal((N, 4)))
    yield deep.explain("apply", np.ones(N))
    yield deep.explain("dense", run=True)
    yield pl.inv(pl.LowRankUpdate(pl.Diag(np.ones(N)), A.toarray())).explain("apply")
    yield (np.exp(X.T @ X) + np.linalg.inv(X.T @ X) @ (X.T @ X)).explain(run=True)
    yield pl.Kron(*[np.ones((2, 2))] * 8).explain("diagonal", 3)
    with pl.config(disable_rules=[r["name"] for r in pl.rules() if r["name"].startswith("close")]):
        yield (pl.Diag(np.ones(4)) @ pl.Diag(np.ones(4))).explain("apply")
    with pl.explaining() as e:
        deep @ np.ones(N)
        deep.trace()
    yield e.explanation


def test_text_fits_a_terminal(chain, rng):
    for e in all_kinds_of_text(chain, rng):
        assert max(map(len, e.splitlines())) <= 100, e
        assert e.endswith("\n")


class Checker(html.parser.HTMLParser):
    """Tags close in order."""

    def __init__(self):
        super().__init__()
        self.open, self.cells, self.rows, self.text = [], [], 0, ""

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "tr":
            self.rows += 1
            self.cells.append(0)
        if tag in ("td", "th"):
            self.cells[-1] += 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_a_table_in_a_notebook(chain, rng):
    for e in all_kinds_of_text(chain, rng):
        checker = Checker()
        checker.feed(e._repr_html_())
        assert not checker.open
        reserved = [any(map(in_reserve, p.steps)) for p in e.plans]
        heads = 2 * len(e.plans) + sum(reserved)  # steps that run where one fails: another table
        assert checker.rows == len(e.steps) + heads
        assert len(set(checker.cells)) == 1
        for step in e.steps:
            assert step["name"] in checker.text
    with pl.explaining() as block:
        pass
    assert "nothing was computed" in block._repr_html_()


def test_explanations_pickle(chain):
    e = (chain[0] @ chain[1]).explain("apply", np.ones(N))
    again = pickle.loads(pickle.dumps(e))
    assert again == e and again.steps == e.steps and again.alternatives == e.alternatives
    assert again.memory == e.memory and len(again.plans) == 1
