"""explain() before a call names what explaining() sees run: each row, on each operand; or says
which numbers decide, and what runs where they decide otherwise."""

from collections import Counter

import numpy as np
import pytest
from every_kind import FUNCTIONS, MADE, arguments, array, built, definite

import pylinop as pl
from pylinop._structured.rows import QUESTIONS

REFUSED = (np.linalg.LinAlgError, ValueError, NotImplementedError, ImportError)
LABELS = {f"{name.partition(',')[0]}-dense" for name in QUESTIONS} | {"lstsq-within-band"}
LABELS |= {row["name"] for row in pl.rules() if row["phase"] == "structure"}


def rows(*explanations):
    """Rows and dense forms of the functions, with their operands, each as often as it ran."""
    steps = [step for e in explanations for step in e.steps]
    return Counter(
        f"{step['name']} of {step['reads'][0]}" for step in steps if step["name"] in LABELS
    )


@pytest.mark.filterwarnings("ignore::pylinop.FallbackWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_said_runs(name):
    alike, sure, wrong = 0, 0, []
    for kind in MADE:
        op = built(kind)
        if op is None:
            continue
        args = arguments(name, op)
        pl._core._clear_store()  # kinds without arrays are the same ones again
        try:
            said = op.explain(name, *args)
            with pl.explaining() as e:
                FUNCTIONS[name](built(kind), *args)
        except REFUSED:
            continue
        before, after = rows(said), rows(*e.plans)
        otherwise = " ".join(other["text"] for other in said.alternatives)
        told = all(row in otherwise for row in after - before)
        told = told and (not before - after or "where" in otherwise)
        alike, sure = alike + told, sure + (before == after)
        if not told:
            wrong.append(f"{kind}: said {dict(before - after)}, ran {dict(after - before)}")
    assert not wrong, "\n".join(wrong)
    assert alike >= 20 and sure >= 0.7 * alike  # not by naming everything


def test_both_ways_are_priced():
    """Which of two ways is taken, only numbers say: both have a price, and the reason is told."""
    A = pl.Kron(pl.Dense(array(1, 9, 9)), pl.Dense(definite(2, 8)))
    said = A.explain("eigh")
    (other,) = [a for a in said.alternatives if "eigh-dense of Kron (72, 72)" in a["text"]]
    assert "where the guard hermitian does not hold" in other["text"]
    assert other["flops"] >= 9 * 72**3 > said.flops > 0 and other["seconds"] > said.seconds
    assert "instead" in str(said)
    assert not pl.Kron(pl.Diag(np.ones(3)), pl.Identity(2)).explain("eigh").alternatives
