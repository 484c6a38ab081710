"""Where tapes write."""

import numpy as np
import pytest

import pylinop as pl
from pylinop import _core
from pylinop._base import config
from pylinop._programs import tapes
from pylinop._programs.programs import Written

pytestmark = pytest.mark.skipif(config.get("verify"), reason="there are no tapes under verify=")


def beside(leaves):
    a, y = leaves
    return [y + y, pl.solve(pl.Dense(a, assume_a="pos"), y)]


def test_what_fails_has_not_written_over_its_arguments(rng):
    """A result is made where it is wanted, and may lie where an argument does that is no run of
    numbers, which the tape takes a copy of. What it is not for is computed of the argument
    itself."""
    n, program = 16, Written(beside, beside, 2)
    a, y = rng.standard_normal((n, n)), rng.standard_normal(n)
    a = a @ a.T + np.eye(n)
    kinds = program.kinds(((a.shape, a.dtype), (y.shape, y.dtype)))
    for _ in range(3):
        tapes.values(program, [a, y], kinds)
    assert tapes.quick(program, (a, y), kinds) is not None
    room = np.zeros(2 * n + 8)
    at = -room.ctypes.data % 64 // 8
    strided, over = room[at : at + 2 * n : 2], room[at : at + n]
    strided[:] = y
    key = _core._tape_call(tapes._text(program), (-a, strided), (over, np.empty(n)))
    assert type(key) is bytes
    np.testing.assert_array_equal(strided, y)
