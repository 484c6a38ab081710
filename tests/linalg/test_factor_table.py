"""What docs/factorisations.md says of a kind is what runs: where it names a way of its own no dense
form is made, where it says dense one is."""

import numpy as np
import pytest
import ref
from samples import leaf

import pylinop as pl
from pylinop import _core
from pylinop._structured import dispatch
from pylinop._structured.scalar_function import Function

_ARGS = {
    "svdvals": (),
    "matrix_norm": (2,),
    "cond": (2,),
    "eigvalsh": ("L",),
    "pinv": ({},),
    "cholesky": ("L",),
    "qr": ("reduced",),
    "sqrt_inv_matmul": (-0.5,),
    "sample": (),
    "lu": (),
    "ldl": (True, True),
    "lstsq, null_space, orth": ("solve",),
    "eigh": ("L",),
    "eig": (),
    "eigvals": (),
    "expm": (Function("exp"),),
    "logm": (Function("log"),),
    "sqrtm, fractional_matrix_power": (Function("power", 0.5),),
    "funm": (Function("any", call=np.cos),),
    "svd": (False,),
}
KINDS = [k for k in ref.LEAVES if k not in ("MatVec", "Block", "Sparse", "KhatriRao")]


def heads_asked(monkeypatch, question, op, args):
    """The heads that were answered by the dense form."""
    seen = []
    plain = question.of_dense

    def watched(inner, *rest, **how):
        seen.append(inner._head)
        return plain(inner, *rest, **how)

    monkeypatch.setattr(question, "of_dense", watched)
    try:
        question(op, *args)
    except (np.linalg.LinAlgError, ImportError, NotImplementedError):
        pass
    monkeypatch.undo()
    return seen


def test_every_question_is_in_the_table():
    assert set(_ARGS) == set(dispatch.QUESTIONS)


@pytest.mark.parametrize("name", _ARGS)
def test_what_is_said_of_a_kind_runs(name, monkeypatch, rng):
    question, met = dispatch.QUESTIONS[name], 0
    for kind in KINDS:
        d = leaf(kind, rng, 6, 6, "float64")
        if d is None:
            continue
        op = ref.build(d)
        asked = heads_asked(monkeypatch, question, op, _ARGS[name])
        if op._head not in question.rows:
            assert asked[:1] == [op._head], f"{kind}: said to go by the dense form, asked {asked}"
        elif op._head not in asked:
            met += 1  # an answer of its own
    assert met >= 2


@pytest.mark.parametrize(
    "make, functions",
    [
        (lambda: pl.Diag(np.arange(1.0, 7.0)), "svdvals eigvalsh cholesky qr lu ldl eigh svd expm"),
        (lambda: pl.Circulant(np.array([4.0, 1, 0, 0, 0, 1])), "eigvalsh svdvals eigh expm cond"),
        (lambda: pl.Tridiagonal(np.ones(5), np.full(6, 4.0), np.ones(5)), "cholesky eigvalsh eigh"),
        (lambda: pl.LowRank(np.ones((6, 1))), "svdvals eigh svd pinv"),
        (lambda: pl.Permutation([2, 0, 1]), "qr lu svdvals cond eig"),
        (lambda: pl.BlockDiag(pl.Diag([1.0, 2.0]), pl.Identity(3)), "cholesky lu qr eigh svdvals"),
        (lambda: pl.KronSum(pl.Diag([1.0, 2.0]), pl.Diag([3.0, 1.0])), "eigh eigvalsh expm"),
        (lambda: pl.Laplacian((3, 4)), "eigvalsh eigh svdvals"),
        (lambda: pl.Hadamard(8), "qr svdvals eigh"),
    ],
)
def test_ways_of_their_own_make_no_dense_form(make, functions, monkeypatch):
    def never(op, *args, **how):
        raise AssertionError(f"the dense form of {op!r}")

    op = make()
    for name in functions.split():
        question = dispatch.QUESTIONS[name]
        monkeypatch.setattr(question, "of_dense", never)
        question(op, *_ARGS[name])
        assert question.texts[op._head][0], "the table says how"


@pytest.mark.parametrize(
    "make, step",
    [
        (lambda: pl.Dense(np.eye(3)), "getrf"),
        (lambda: pl.Dense(np.eye(3), "lower triangular"), "trsm"),
        (lambda: pl.Dense(np.eye(30), "sym"), "sytrf"),
        (lambda: pl.Dense(np.eye(100), "pos"), "potrf"),
        (lambda: pl.Tridiagonal(np.ones(5), np.full(6, 4.0), np.ones(5)), "gtsv"),
        (lambda: pl.Banded((1, 1), np.ones((3, 6)) + [[0], [5], [0]]), "gbtrf"),
        (lambda: pl.Circulant(np.array([4.0, 1, 0, 0, 0, 1])), "circulant"),
    ],
)
def test_solves_take_the_step_that_is_named(make, step):
    op = make()
    names = [s["name"] for s in op.explain("solve", np.ones(op.shape[0])).steps]
    assert any(step in name for name in names), names
    assert isinstance(op, _core.Operator)


def test_each_kind_has_one_file():
    """Rows of one head are in `kinds`, and all of a head in one file; rows of heads of several
    files are where the question is."""
    home, shared = {}, 0
    for question in dispatch.QUESTIONS.values():
        for row in dict.fromkeys(question.rows.values()):
            heads = [h for h, one in question.rows.items() if one.answer is row.answer]
            *_, folder, file = row.answer.__module__.split(".")
            if folder == "kinds":
                for head in heads:
                    assert home.setdefault(head, file) == file, (row.name, head)
            else:
                shared += 1
                assert len(heads) > 1, row.name
    assert len(home) > 35 and shared < 40
