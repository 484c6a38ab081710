"""Arguments of a function that is differentiated: LazyArrays whose values nobody may ask for while
the function runs, since what is made of the values would have no derivative."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core


class Watch:
    """The function of a watched argument, which is called only where its value is asked for."""

    __name__ = "watched"

    def __call__(self, *args: Any) -> Any:
        raise TypeError(
            "the value of a LazyArray was asked for while its function is differentiated (by "
            "np.asarray, float, bool, out=, or a function that computes at once): what is made of "
            "values has no derivative. Use NumPy's and pylinop's functions of the LazyArray "
            "itself, or pl.stop_gradient for what is to have none"
        )


def watched(array: Any) -> Any:
    """A LazyArray whose value cannot be asked for yet."""
    return _core._LazyArray("call", (array,), array.shape, array.dtype, (Watch(), {}))


def release(a: Any) -> None:
    """Allows the value to be asked for from now on."""
    if a._value is None:
        value = np.array(a._args[0])
        value.flags.writeable = False
        a._value = value
