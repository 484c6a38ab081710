"""What a notebook shows: pictures of blocks, explanations, tables, bars."""

import pickle
import sys
import types
import xml.dom.minidom

import numpy as np
import pytest

import pylinop as pl
from pylinop._base import progress
from pylinop._operators import draw


def blocks():
    return pl.Block(
        [
            [pl.Diag(np.ones(4)), np.ones((4, 2)), pl.Zeros((4, 6))],
            [pl.Zeros((8, 4)), np.ones((8, 2)), pl.Kron(np.ones((4, 3)), np.eye(2))],
        ]
    )


def test_a_block_draws_its_blocks():
    svg = draw.picture(blocks())
    drawn = xml.dom.minidom.parseString(svg)
    groups = drawn.getElementsByTagName("g")
    assert len(groups) == 6
    at = [tuple(map(float, g.getAttribute("transform")[10:-1].split())) for g in groups]
    scale = 64 / 12
    wanted = [(x * scale, y * scale) for y in (0, 4) for x in (0, 4, 6)]
    np.testing.assert_allclose(at, wanted, atol=0.06)
    inside = [[n.tagName for n in g.childNodes] for g in groups]
    assert inside[0] == ["line", "rect"]  # the diagonal, the frame
    assert inside[2] == ["rect"] and inside[3] == ["rect"]  # zeros: the frame alone
    assert inside[5].count("rect") == 10  # the Kron's nine, the frame
    assert svg in blocks()._repr_html_()


def test_other_pictures_of_blocks():
    single = draw.picture(pl.Block([[np.eye(2)]]))
    assert "translate" in single
    nested = pl.Block([[blocks(), np.ones((12, 1))]])
    assert draw.picture(nested).count("<g ") == 8
    wide = pl.Block([[np.ones((1, 1))] * 101])
    assert "<g " not in draw.picture(wide)  # too many to see
    xml.dom.minidom.parseString(draw.picture(blocks() + blocks()))


def explained():
    A = pl.Dense(np.random.default_rng(0).standard_normal((60, 60)))
    return (A.T @ A + pl.Identity(60)).explain("solve", np.ones(60))


def test_an_explanation_opens_with_what_was_done():
    e = explained()
    html = e._repr_html_()
    head = html[: html.index("<table>")]
    assert head.startswith("<div><b>solve</b> by ")
    assert "Cholesky of" in head and "flop" in head and "B at most" in head and "about" in head
    assert "<details><summary>" in html and "rules refused</summary>" in html
    refused = [r["name"] for r in e.rules if r["outcome"] == "refused"]
    assert refused and refused[0] not in html[: html.index("<details>")]
    assert f"{len(refused)} rules refused" in html and f"{refused[-1]} (" in html


HEADS = {"apply": "product", "dense": "dense form", "det": "determinant"}


@pytest.mark.parametrize("action", ["apply", "solve", "diagonal", "trace", "dense", "det"])
def test_the_heading_is_what_was_asked(action):
    A = pl.Dense(np.eye(3)) @ pl.Diag(np.ones(3))
    head = f"<div><b>{HEADS.get(action, action)}</b>"
    assert A.explain(action)._repr_html_().startswith(head)
    run = A.explain(action, run=True)._repr_html_()
    assert run.startswith(head) and "took " in run and "expected" in run


def test_blocks_that_are_recorded_print():
    A = pl.Dense(np.eye(3) * 2)
    with pl.explaining() as e:
        pl.solve(A, np.ones(3))
    assert str(e) == repr(e) == str(e.explanation) and "getrf" in repr(e)
    assert "<table>" in e._repr_html_()
    with pl.explaining() as e:
        pass
    assert repr(e) == "nothing was computed\n"


@pytest.mark.parametrize("table", [pl.kinds, pl.rules])
def test_tables(table):
    made = table()
    assert isinstance(made, list) and all(type(row) is dict for row in made) and len(made) > 40
    lines = repr(made).splitlines()
    assert len(lines) == 42 and lines[0].split() == list(made.columns)
    assert str(len(made) - 40) in lines[-1] and "fired" in lines[-1] or "signature" in lines[-1]
    assert max(map(len, lines)) < 60 * len(made.columns)
    html = made._repr_html_()
    assert html.count("<tr>") == len(made) + 1 and "<script" not in html
    xml.dom.minidom.parseString(html)
    again = pickle.loads(pickle.dumps(made))
    assert again == made and repr(again) == repr(made)


def test_cells_are_cut_between_words():
    for line in repr(pl.kinds()).splitlines()[1:-1]:
        shown = line.partition("...")[0].split(None, 1)[1]
        if "..." in line[:90]:
            whole = next(r["what"] for r in pl.kinds() if r["name"] == line.split()[0])
            assert whole.startswith(shown) and not whole[len(shown)].isalnum()


def test_short_tables():
    from pylinop._api.tables import Table

    made = Table([{"a": 1, "b": "x < y"}, {"a": None, "b": "z"}], ("a", "b"))
    assert repr(made) == "a  b\n1  x < y\n   z"
    assert "x &lt; y" in made._repr_html_()
    assert repr(Table([], ("a", "b"))) == "a  b"


class Bars:
    """tqdm, as far as it is used."""

    def __init__(self):
        self.made = []

    def __call__(self, **words):
        self.made.append(words)
        self.n = 0
        return self

    def set_postfix_str(self, text, refresh):
        self.said = text

    def update(self, k):
        self.n += k

    def close(self):
        self.closed = True


@pytest.fixture
def bars(monkeypatch):
    found = Bars()
    module = types.ModuleType("tqdm.auto")
    module.tqdm = found
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    return found


@pytest.fixture
def notebook(monkeypatch):
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=True)
    monkeypatch.setitem(sys.modules, "IPython", ipython)


A = pl.Toeplitz(np.r_[4.0, 1.0, np.zeros(298)])
RUNS = {
    "cg": lambda **p: pl.cg(A, np.ones(300), **p)[0],
    "solve": lambda **p: pl.solve(A, np.ones(300), method="gmres", **p),
    "columns": lambda **p: pl.solve(A, np.eye(300)[:, :3], method="block_cg", **p),
    "lsmr": lambda **p: pl.lsmr(A, np.ones(300), **p)[0],
    "eigsh": lambda **p: pl.eigsh(A, k=3, return_eigenvectors=False, rng=0, **p),
    "trace": lambda **p: pl.estimate_trace(A, rng=0, **p).value,
    "kaczmarz": lambda **p: pl.lstsq(
        A, np.ones(300), method="block_kaczmarz", rtol=1e-3, rng=0, **p
    )[0],
}


@pytest.mark.parametrize("run", RUNS)
def test_a_notebook_has_a_bar_by_itself(run, bars, notebook):
    quiet = RUNS[run](progress=False)
    assert not bars.made
    for words in ({}, {"progress": "auto"}, {"progress": None}):
        np.testing.assert_array_equal(RUNS[run](**words), quiet)
    assert len(bars.made) >= 3 and bars.closed
    assert all(words["delay"] == 2.0 for words in bars.made)  # short work shows none
    bars.made.clear()
    RUNS[run](progress=True)
    assert [words["delay"] for words in bars.made] == [0.0] * len(bars.made) and bars.made


@pytest.mark.parametrize("run", RUNS)
def test_elsewhere_only_when_asked_for(run, bars):
    for words in ({}, {"progress": "auto"}, {"progress": None}, {"progress": False}):
        RUNS[run](**words)
    assert not bars.made
    RUNS[run](progress=True)
    assert bars.made


def test_what_is_a_notebook(monkeypatch):
    assert not progress.in_notebook()
    ipython = types.ModuleType("IPython")
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    for shell, wanted in (
        (None, False),
        (object(), False),
        (types.SimpleNamespace(kernel=1), True),
    ):
        ipython.get_ipython = lambda shell=shell: shell
        assert progress.in_notebook() is wanted


def test_other_words_are_refused():
    with pytest.raises(TypeError, match="progress is True, False, 'auto' or a callable, got 'yes'"):
        pl.cg(A, np.ones(300), progress="yes")
