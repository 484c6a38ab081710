"""What a first-time reader finds with Tab: of the things in tests/wanted.py nineteen of twenty, and
which ones not is written here. The site's search is asked by `make site-test`."""

import rlcompleter

import numpy as np
import pytest
from wanted import WANTED

import pylinop as pl

NAMES = {"pl": pl, "A": pl.Toeplitz([2.0, 1.0]) + pl.Identity(2), "x": pl.lazy(np.ones((2, 2)))}
# Known by another name, and what an AttributeError says instead.
OTHERWISE = {"filter": "Convolution", "fft": "DFT"}


def offered(typed):
    """The names that begin so, in whatever case, as IPython completes them: of those that Python's
    own completer offers after ``pl.`` and after an operator."""
    completer, found = rlcompleter.Completer(NAMES), set()
    for before in ("pl.", "A."):
        k = 0
        while (match := completer.complete(before, k)) is not None:
            found.add(match.removeprefix(before).partition("(")[0])
            k += 1
    return {name for name in found if name.casefold().startswith(typed)}


def test_nineteen_of_twenty_are_found():
    missed = {w.typed: w.name for w in WANTED if w.name not in offered(w.typed)}
    assert missed == OTHERWISE
    assert len(WANTED) - len(missed) >= 0.95 * len(WANTED) and len(WANTED) >= 40


def test_few_are_offered():
    """What Tab shows can be looked over."""
    assert all(1 <= len(offered(w.typed)) <= 16 for w in WANTED if w.typed not in OTHERWISE)


@pytest.mark.parametrize("typed", OTHERWISE)
def test_the_others_are_named_by_the_error(typed):
    with pytest.raises(AttributeError, match=OTHERWISE[typed]):
        getattr(pl, typed)


OPERATOR = """\
H T adjoint astype cholesky conj conjugate det diagonal dot dtype eigh eigvalsh
explain factorized inv logdet matmat matvec ndim norm pinv rmatmat rmatvec sample shape size slogdet
solve svd toarray tosparse trace transpose"""


def test_an_operator_shows_what_can_be_asked_of_it():
    shown = {name for name in dir(NAMES["A"]) if not name.startswith("_")}
    assert shown >= set(OPERATOR.split()), set(OPERATOR.split()) - shown


ARRAY = """\
H T all any argmax argmin argsort astype cholesky clip conj copy cumsum det diagonal dot dtype eigh
explain flatten imag inv item logdet max mean min ndim norm pinv prod ravel real repeat
reshape round shape size slogdet solve sort squeeze std sum svd swapaxes take tolist trace transpose
var"""


def test_a_lazy_array_shows_what_an_array_does():
    shown = {name for name in dir(NAMES["x"]) if not name.startswith("_")}
    assert shown >= set(ARRAY.split()), set(ARRAY.split()) - shown
