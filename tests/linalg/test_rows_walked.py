"""Every row of the functions on structure: it fires on some operator, and the answer is right
beside the dense form; where the row is switched off it is right too, and explain() names others.
All functions of operators of all kinds, in `make sweep`."""

import functools

import numpy as np
import pytest
from beside_dense import wrong
from every_kind import FUNCTIONS, LARGE, all_arguments, many

import pylinop as pl
from pylinop._structured.rows import QUESTIONS, rules

REFUSED = (np.linalg.LinAlgError, ImportError)
# Of null spaces and ranges, which no array holds; of what has no entries, as NumPy says it.
NO_VALUE = "of a batch have different dimensions", "zero-size array"
ROWS = {row["name"] for row in rules()}
OF = {  # the functions that ask a question, and those that ask it of others
    "lstsq": ("lstsq", "null_space", "orth"),
    "sqrtm": ("sqrtm", "fractional_matrix_power"),
}
OPERATORS = dict(many())
PARTS = 24  # of the whole walk


def ran(name, make, args):
    """(the answer, the rows that fired); None where there is none."""
    pl._core._clear_store()
    with pl.explaining() as e:
        try:
            found = FUNCTIONS[name](make(), *args)
        except REFUSED:
            return None
        except ValueError as error:
            assert any(words in str(error) for words in NO_VALUE)
            return None
    return found, {r["name"] for r in e.rules if r["outcome"] == "fired"} & ROWS


@functools.cache
def built():
    """(name of the operator, what makes it, one of them)."""
    found = [(name, make, make()) for name, make in OPERATORS.items()]
    return [(name, make, op) for name, make, op in found if op is not None]


def cases(question):
    """Operators on which rows of a question may act, those first that it is asked of."""
    functions = OF.get(question.word, (question.word,))
    for make, large in LARGE.values():
        yield from ((f, make, make()) for f in functions if f in large)
    for function in functions:
        yield from ((function, make, op) for _, make, op in built())


@pytest.mark.no_verify
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("word", [q.word for q in QUESTIONS.values()])
def test_each_row_fires_and_is_switched_off(word):
    """Two operators a row, of two dtypes where there are such; each is tried where the row is that
    of the whole, and the parts of all of them for what is left."""
    question = next(q for q in QUESTIONS.values() if q.word == word)
    met = {row.name: set() for row in question.rows.values()}

    def look(row, function, make, op):
        for args in all_arguments(function, op):
            found = ran(function, make, args)
            for name in (found[1] if found is not None else set()) & ({row} if row else set(met)):
                if len(met[name]) < 2 and op.dtype not in met[name]:
                    met[name].add(op.dtype)
                    is_right_without(name, function, make, args, found)

    for function, make, op in cases(question):
        row = question.row_of(op)
        if row is not None and len(met[row.name]) < 2 and op.dtype not in met[row.name]:
            look(row.name, function, make, op)
    for function, make, op in cases(question):
        if all(met.values()):
            break
        look(None, function, make, op)
    assert not [name for name, seen in met.items() if not seen]


def is_right_without(row, function, make, args, found):
    """The answer is right, and so is another's where the row is switched off; explain() says so."""
    a = make().toarray()
    assert not wrong(function, make(), a, found[0], args), (row, function, make(), args)
    with pl.config(disable_rules=[row]):
        said = make().explain(function, *args)
        found = ran(function, make, args)
        if found is not None:  # as SciPy's logm of a DFT
            assert not wrong(function, make(), a, found[0], args), (row, function, make())
            assert row not in found[1]
    assert row not in said.fired


@pytest.mark.no_verify
@pytest.mark.sweep(40)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_of_every_kind(name, part):
    for kind in list(OPERATORS)[part::PARTS]:
        op = OPERATORS[kind]()
        if op is None:
            continue
        a = op.toarray()
        for args in all_arguments(name, op):
            found = ran(name, OPERATORS[kind], args)
            assert found is None or not wrong(name, op, a, found[0], args), (kind, args)
