"""What messages blame, and the figures of explain()."""

import re
import warnings

import numpy as np
import pytest

import pylinop as pl


def said(error, f):
    with pytest.raises(error) as seen:
        f()
    return str(seen.value)


def test_dimensions_in_the_singular_and_the_plural():
    text = said(ValueError, lambda: pl.Diag(1.0))
    assert "expected 1 dimension (and at most 6 of batch before it), got 0" in text
    text = said(ValueError, lambda: pl.Dense(np.ones(3)))
    assert "expected 2 dimensions (and at most 6 of batch before them), got 1" in text


def test_a_square_kind_is_named():
    assert "Identity is square, got shape (2, 3)" in said(ValueError, lambda: pl.Identity((2, 3)))


@pytest.mark.parametrize(
    "build",
    [
        lambda A: pl.inv(A),
        lambda A: 2 * pl.inv(A),
        lambda A: pl.inv(pl.Diag(np.ones(3)) @ A),
        lambda A: pl.inv(A) + pl.Identity(3),
    ],
)
def test_the_operand_with_the_assumption_is_blamed(build):
    A = pl.Dense(np.diag([1.0, 1.0, -1.0]), assume_a="pos")
    B = build(A)
    with pytest.warns(pl.FallbackWarning) as seen:
        B @ np.ones(3)
    text = str(seen[0].message)
    assert text.startswith("Dense (3, 3), built at ") and "test_messages.py" in text
    assert "was assumed positive definite (assume_a='pos') and is not" in text
    assert "Inverse" not in text and "Scaled" not in text


def test_several_assumptions_in_one_expression():
    A = pl.Dense(-np.eye(2), assume_a="pos")
    B = pl.Dense(-2 * np.eye(2), assume_a="positive definite")
    with pytest.warns(pl.FallbackWarning, match=r"one of Dense \(2, 2\).* and Dense \(2, 2\)"):
        pl.inv(pl.Kron(A, B)) @ np.ones(4)
    with pl.config(provenance=False):
        C = pl.inv(pl.Dense(-np.eye(2), assume_a="pos"))
    with pytest.warns(pl.FallbackWarning, match=r"^Dense \(2, 2\) was assumed"):
        C @ np.ones(2)


def steps(text):
    """name -> (flops, bytes) of each step of a plan's text."""
    found = re.findall(r"^ +\d+ (\S+).*?(?:\n)? +(\S+) flops, (\S+) bytes$", text, re.M)
    return {name: (float(flops), float(moved)) for name, flops, moved in found}


def test_explain_counts_every_step():
    a, b = np.ones((20, 30)), np.ones((30, 20))
    got = steps((pl.Dense(a) @ pl.Dense(b)).explain("trace"))
    assert got["product_diagonal"] == (2 * 20 * 30, 8 * (2 * 20 * 30 + 20))
    assert got["sumall"] == (20, 8 * 21)
    got = steps(pl.Dense(a).explain("diagonal"))
    assert got["array_diagonal"] == (0, 2 * 8 * 20)
    got = steps(pl.Dense(a).T.explain("dense"))
    assert got["swap"] == (0, 2 * 8 * 600)  # moves only
    got = steps(pl.Dense(a * 1j).H.explain("dense"))
    assert got["swap"] == (600, 2 * 16 * 600)
    got = steps(pl.Kron(a, b).explain("dense"))
    assert got["kronarray"][0] == 600 * 600
    got = steps((pl.inv(pl.Diag(np.ones(9)))).explain("diagonal"))
    assert got["recip"] == (9, 2 * 8 * 9)
    got = steps((pl.inv(pl.Diag(np.ones(9)))).explain("apply", np.ones((9, 4))))
    assert got["div"][0] == 36


@pytest.mark.parametrize("word, names", [("pos", ("potrf", "potrs")), (None, ("getrf", "getrs"))])
def test_explain_counts_solves_of_batches(word, names):
    a = np.broadcast_to(np.eye(10), (7, 10, 10)).copy()
    got = steps(pl.inv(pl.Dense(a, assume_a=word)).explain("apply", np.ones((7, 10, 3))))
    factor = 7 * 1000 / 3 if word else 7 * 2000 / 3
    assert got[names[0]][0] == pytest.approx(factor, rel=1e-2)
    assert got[names[1]][0] == 7 * 2 * 100 * 3
    assert all(flops > 0 for name, (flops, _) in got.items() if name != "named")


def test_no_warning_where_the_assumption_holds():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pl.inv(pl.Dense(np.eye(3), assume_a="pos")) @ np.ones(3)


ACTIONS = ["apply", "matvec", "solve", "dense", "diagonal", "trace", "element"]


@pytest.mark.parametrize(
    "args, written",
    [
        ((), "(apply (diag"),
        (("apply", np.ones((3, 2))), "(array:float64[3,2]"),
        (("matvec", np.ones(3, "c8")), "(array:complex64[3,1]"),
        (("solve",), "(apply (diag (recip"),
        (("solve", np.ones((5, 3, 2), "f4")), "(array:float32[5,3,2]"),
        (("dense",), "(todense"),
        (("diagonal",), "(diagonal:0"),
        (("diagonal", -2), "(diagonal:-2"),
        (("trace",), "(trace"),
        (("element", 1, 2), "(element:1,2"),
        (("element", -1, np.int8(-3)), "(element:2,0"),
    ],
)
def test_every_action_is_explained(args, written):
    text = pl.Diag(np.ones(3)).explain(*args)
    assert re.search(rf"^written .*{re.escape(written)}", text, re.M), text
    assert "total" in text


def test_explain_solve_shows_the_solver_and_computes_nothing():
    a = np.zeros((4, 4))  # singular: a computation would raise
    assert "getrf" in pl.Dense(a).explain("solve", np.ones(4))
    assert "potrf" in pl.Dense(a, assume_a="pos").explain("solve", b=np.ones((4, 9)))
    assert "(4, 9)" in pl.Dense(a).explain("solve", b=np.ones((4, 9)))
    assert "trsm" in pl.Dense(a, assume_a="lower triangular").explain("solve")
    assert "gemm" in pl.Dense(a).explain(x=np.ones((4, 9)))
    assert "array_element" in pl.Dense(a).explain("element", i=0, j=3)


def test_explain_refuses_clearly():
    A = pl.Dense(np.ones((3, 4)))
    for wrong in ("svds", "", None, 3, ["apply"]):
        text = said(ValueError, lambda: A.explain(wrong))
        assert repr(wrong) in text and all(name in text for name in ACTIONS)
    with pytest.raises(np.linalg.LinAlgError, match=r"\(3, 4\)"):
        A.explain("solve", np.ones(3))
    with pytest.raises(ValueError, match=r"\(3, 4\).*\(3, 1\)"):
        A.explain("apply", np.ones(3))
    with pytest.raises(ValueError, match="got 0"):
        A.explain("apply", 1.0)
    with pytest.raises(IndexError, match="index 4 is out of bounds for size 4"):
        A.explain("element", 0, 4)
    assert "'element', i, j" in said(TypeError, lambda: A.explain("element", 0))
    assert "'trace')" in said(TypeError, lambda: A.explain("trace", 0))
    with pytest.raises(TypeError):
        A.explain("diagonal", 0.5)
