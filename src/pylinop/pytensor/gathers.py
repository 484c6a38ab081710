"""Rows and columns that are picked by constant numbers, as E Y E' with E of one entry 1 a row:
groups of observations, and what PyTensor makes of products with such an E."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt

from ._compat import AdvancedSubtensor, Constant
from .views import op_of

__all__ = ["gathered"]

WHOLE = slice(None, None, None)


def _picks(v: Any) -> dict[int, Any] | None:
    """{axis: its constant numbers} of what v picks from a matrix; None of other ones."""
    if not isinstance(op_of(v), AdvancedSubtensor) or v.ndim != 2 or v.owner.inputs[0].ndim != 2:
        return None
    found = {}
    for axis, at in enumerate(v.owner.op.idx_list):
        if at == WHOLE:
            continue
        number = v.owner.inputs[1 + at] if isinstance(at, int) else None
        if not isinstance(number, Constant) or np.asarray(number.data).dtype.kind not in "iu":
            return None
        found[axis] = np.asarray(number.data)
    if len(found) == 2:
        shapes = [found[0].shape, found[1].shape]
        if shapes[0][1:] != (1,) or shapes[1][:-1] != (1,):
            return None
    elif any(at.ndim != 1 for at in found.values()):
        return None
    made = {axis: at.ravel() for axis, at in found.items()}
    return None if any((at < 0).any() for at in made.values()) else made


def _both(v: Any) -> tuple[Any, Any] | None:
    """(Y, the numbers) of Y[numbers][:, numbers], in any order or at once."""
    outer = _picks(v)
    if not outer:
        return None
    inner = v.owner.inputs[0]
    if len(outer) == 1:
        more = _picks(inner)
        if not more or set(more) & set(outer) or len(more) != 1:
            return None
        outer, inner = {**outer, **more}, inner.owner.inputs[0]
    same = np.array_equal(outer[0], outer[1])
    return (inner, outer[0]) if same else None


def gathered(v: Any) -> Any:
    """("congruence", E, Y) of Y[numbers][:, numbers], ("product", X, E') of the columns of another
    matrix; None where it is neither, or E has more than half as many columns as rows."""
    found = _both(v)
    at = _picks(v)
    if found is not None:
        Y, numbers = found
    elif at is not None and set(at) == {1}:
        Y, numbers = v.owner.inputs[0], at[1]
    else:
        return None
    known = Y.type.shape[1] if Y.type.shape[1] is not None else Y.type.shape[0]
    least = int(numbers.max(initial=0)) + 1
    if 2 * (least if known is None else known) > len(numbers) or (known or least) < least:
        return None
    # of an unknown size: numbers that it has not are an error there too
    E = pt.eye(Y.shape[1], dtype=v.dtype)[numbers]
    if known is not None:
        E = pt.constant(np.eye(known, dtype=v.dtype)[numbers])
    if found is not None:
        return ("congruence", E, Y)
    return ("product", Y, pt.constant(np.ascontiguousarray(E.data.T))) if known else None
