"""Cotangents of the generators of Matern functions: rows by x have the derivative of one order more
as theirs, and so do their inner products, so that two functions are enough for any order."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._operators.quasiseparable_formulas import markov_rows, markov_sums, rows_of
from .pieces import call

_Said = dict[str, Any]


def _sums(x: Any, g: Any, said: _Said) -> Any:
    """The inner products with g of the rows of `said`, differentiated once more."""
    more = {**said, "derivative": said["derivative"] + 1}
    return call(markov_sums, (x, g), x.shape, np.float64, **more)


def of_rows(y: Any, g: Any, k: int) -> Any:
    """The cotangent of x."""
    return _sums(y._args[0], g, y._more[1])


def of_sums(y: Any, g: Any, k: int) -> Any:
    """The cotangent of x, or of what the rows are multiplied with."""
    x, by = y._args
    if k == 0:
        return g * _sums(x, by, y._more[1])
    return np.reshape(g, (*g.shape, 1)) * rows_of(x, **y._more[1])


ROWS = {markov_rows: of_rows, markov_sums: of_sums}
