"""Arguments of a function that is differentiated: LazyArrays whose values nobody may ask for while
the function runs, since what is made of the values would have no derivative."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._base import errors

_SHOWN = {
    **dict.fromkeys(("__call__", "__array__"), "np.asarray, or a function that computes at once"),
    "__float__": "float",
    "__complex__": "complex",
    "__int__": "int",
    "__bool__": "bool, as by if",
    "__index__": "int, as of an index",
    "": "np.asarray, float, bool, out=, or a function that computes at once",
}


class Watch:
    """The function of a watched argument, which is called only where its value is asked for."""

    __name__ = "watched"

    def __call__(self, *args: Any) -> Any:
        name, line = errors.asked()
        raise TypeError(
            f"the value of a LazyArray of shape {np.shape(args[0])} was asked for while its "
            f"function is differentiated (by {_SHOWN.get(name, name)}): what is made of values has "
            "no derivative. Use NumPy's and pylinop's functions of the LazyArray itself, or "
            "pl.stop_gradient for what is to have none"
            + (f"\n  asked for at {line}" if line else "")
        )


def watched(array: Any) -> Any:
    """A LazyArray whose value cannot be asked for yet."""
    return _core._LazyArray("call", (array,), array.shape, array.dtype, (Watch(), {}))


def is_watch(x: Any) -> bool:
    return x._head == "call" and isinstance(x._more[0], Watch)


def release(a: Any) -> None:
    """Allows the value to be asked for from now on."""
    if a._value is None:
        value = np.array(a._args[0])
        value.flags.writeable = False
        a._value = value
