"""Nested tuples, lists and dicts of arrays and operators: taken apart and put together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._base import dlpack


class Leaf(NamedTuple):
    """The place of a part in a nested structure."""

    at: int


def flatten(x: Any, found: list[Any]) -> Any:
    """The structure of x with a Leaf for each part, which is added to `found`."""
    if type(x) is dict:
        return {k: flatten(v, found) for k, v in x.items()}
    if type(x) in (list, tuple):
        return type(x)(flatten(v, found) for v in x)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(flatten(v, found) for v in x))
    found.append(x)
    return Leaf(len(found) - 1)


def filled(structure: Any, values: Any) -> Any:
    """The structure with values in their places."""
    if type(structure) is Leaf:
        return values[structure.at]
    if type(structure) is dict:
        return {k: filled(v, values) for k, v in structure.items()}
    if type(structure) in (list, tuple):
        return type(structure)(filled(v, values) for v in structure)
    return type(structure)(*(filled(v, values) for v in structure))


def as_parameter(x: Any, name: str) -> Any:
    """What a derivative is taken by: an operator, or an array of real or complex numbers."""
    if isinstance(x, _core.Operator):
        if x.dtype is None or x.dtype.kind not in "fc":
            raise TypeError(f"{name}: an operator of dtype {x.dtype} has no derivative")
        return x
    a = dlpack.as_array(x)
    if a.dtype.kind not in "fc":
        raise TypeError(
            f"{name}: a derivative by an array of dtype {a.dtype} is not defined: give floats or "
            f"complex numbers, not {x!r:.40}"
        )
    return np.asarray(a)
