"""explain() says which arguments an action takes, and nothing of their types."""

import numpy as np
import pytest

import pylinop as pl


@pytest.mark.parametrize(
    ("action", "args", "takes"),
    [
        ("trace", (1,), "explain('trace'): "),
        ("element", (1,), "explain('element', i, j): "),
        ("diagonal", (1, 2), "explain('diagonal', offset=0): "),
        ("solve", (1, 2), "explain('solve', b=...): "),
    ],
)
def test_wrong_arguments_are_told_by_name(action, args, takes):
    with pytest.raises(TypeError) as told:
        pl.Diag(np.ones(3)).explain(action, *args)
    assert str(told.value).startswith(takes)
