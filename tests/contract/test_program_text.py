"""Programs as text: what is read back is the program, and only numbered ones are held."""

import numpy as np
import pytest

from pylinop._programs import formulas, text
from pylinop._programs.programs import Formula

operation = formulas.operations(lambda x: x if isinstance(x, np.ndarray) else None)


def program(*args, **kwargs):
    node = operation("norm", formulas.leaf(np.ones((3, 3))), *args, **kwargs)
    return Formula(formulas.flat([node], False)[0])


@pytest.mark.parametrize("word", ["fro", np.str_("fro"), "a 'quoted' word"])
@pytest.mark.parametrize("number", [2, -0.0, 1j, True, None, np.inf, np.dtype("f4")])
def test_texts_are_read_back(word, number):
    made = program(word, number, [number], axis=(0, 1), ord=word)
    said = text.of_program(made)
    again = text._read.__wrapped__(said, ())
    assert again.flat == made.flat and text.of_program(again) == said
    assert "np.str_" not in said


def test_words_of_numpy_are_those_of_python():
    assert program("fro").flat == program(np.str_("fro")).flat


def test_what_text_tells_is_not_held():
    for k in range(20):
        made = program(k)
        text.kept(made)
        assert made not in text._numbers
    held = program(lambda x: x)
    said = text.kept(held)
    assert held in text._numbers and text.program_of(said) is held
